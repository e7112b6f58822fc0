"""The receipt of a compaction by its id, even after its session was renamed."""

import apsw

from nexus_context.ledger import read_history, sessions
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import turn_ranges
from nexus_context.ledger.records import StoredReceipt
from nexus_context.ledger.rows import row, value_of
from nexus_context.ledger.sessions import SessionPosition
from nexus_context.ledger.turn_writer import state

_LATEST = "SELECT turn, receipt FROM compaction WHERE turn >= ? AND turn < ? ORDER BY turn DESC LIMIT 1"
_NAMED = "SELECT turn, receipt FROM compaction WHERE turn >= ? AND turn < ? AND name = ? LIMIT 1"
_HOLDER = """
SELECT session.name FROM compaction
JOIN thread ON thread.id = compaction.turn >> 32 JOIN session ON session.thread = thread.id
WHERE session.workspace = ? AND compaction.name = ? LIMIT 1
"""
_BELOW = "SELECT below FROM compaction WHERE turn = ?"


def receipt(
    connection: apsw.Connection, workspace: str, session: str, compaction: str | None
) -> StoredReceipt:
    """The receipt of a compaction, by default the last one of the session.

    If the session does not have the compaction, the other sessions of the workspace are searched.
    """
    if compaction is None:
        place = sessions.require(connection, workspace, session)
        last = _receipt(connection, session, place, None)
        if last is not None:
            return last
        raise LedgerError(f"The session {session!r} was never compacted.", code="unknown-compaction")
    holder = row(connection, _HOLDER, workspace, compaction)
    for name in (session, *(holder or ())):
        position = sessions.find(connection, workspace, name)
        stored = None if position is None else _receipt(connection, name, position, compaction)
        if stored is not None:
            return stored
    raise LedgerError(
        f"No session of {workspace} has the compaction {compaction!r}: it was deleted or cleared.",
        code="unknown-compaction",
    )


def _receipt(
    connection: apsw.Connection, session: str, place: SessionPosition, compaction: str | None
) -> StoredReceipt | None:
    for ids in reversed(turn_ranges(read_history.whole(connection, place))):
        row_of_compaction = (
            row(connection, _LATEST, *ids)
            if compaction is None
            else row(connection, _NAMED, *ids, compaction)
        )
        if row_of_compaction is not None:
            turn, text = row_of_compaction
            return StoredReceipt(session, value_of(text), in_force=_is_in_force(connection, place, turn))
    return None


def _is_in_force(connection: apsw.Connection, place: SessionPosition, turn: int) -> bool:
    """Whether the compaction was not taken back: it is in force, or below the one in force."""
    compaction = state(connection, place).in_force
    while compaction is not None and compaction != turn:
        (compaction,) = row(connection, _BELOW, compaction)
    return compaction is not None
