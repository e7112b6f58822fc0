"""Creates forks: sessions that continue from a turn of another session, and share the turns up to it.

1. A user forks a session at one of its turns, or at a turn that it had before it was cleared.
2. If the writer of a turn had not seen the session's newest turn, its turn goes to a fork, and nothing is
   overwritten. The fork gets the first free name of "name (2)", "name (3)", …
"""

import re

import apsw

from nexus_context.conversation.compaction.receipt import opaque_provider
from nexus_context.ledger import sessions
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import SHIFT, segments, split_name, turn_ranges
from nexus_context.ledger.rows import optional_value, row, value

_NUMBERED = re.compile(r" \(\d{1,6}\)\Z")


def fork(connection: apsw.Connection, workspace: str, session: str, *, to: str, turn: str | None) -> None:
    """Create the session `to`, which continues after `turn` of another session, or after its last turn if
    `turn` is None.
    """
    position = sessions.require(connection, workspace, session)
    base = (
        base_at(connection, position.owner, position.seq)
        if turn is None
        else base_of(connection, position, turn)
    )
    agent = sessions.agent_of(connection, position)
    sessions.begin(connection, workspace, to, agent=agent, origin=position.session, base=base)


def fork_late_turn(
    connection: apsw.Connection, workspace: str, position: sessions.SessionPosition, parent: str | None
) -> sessions.SessionPosition:
    """Create a session that continues after `parent`, for a turn whose writer had not seen the newest
    turn.
    """
    base = None if parent is None else base_of(connection, position, parent)
    agent = sessions.agent_of(connection, position)
    name = free_name(connection, workspace, position.name, is_taken=True)
    return sessions.begin(connection, workspace, name, agent=agent, origin=position.session, base=base)


def free_name(connection: apsw.Connection, workspace: str, session: str, *, is_taken: bool = False) -> str:
    """Return the name if it is free and not `is_taken`. Otherwise return the first free name of "name (2)",
    "name (3)", …
    """
    if not is_taken and sessions.find(connection, workspace, session) is None:
        return session
    stem = _NUMBERED.sub("", session)
    number = 2
    while sessions.find(connection, workspace, sessions.fitting(stem, f" ({number})")) is not None:
        number += 1
    return sessions.fitting(stem, f" ({number})")


def base_at(connection: apsw.Connection, thread: int | None, seq: int) -> sessions.Base | None:
    """Return the base from which a thread continues after a turn. Return None if `thread` is None or does not
    have the turn.
    """
    if thread is None:
        return None
    sums = "SELECT first + messages, before + tokens FROM turn WHERE id = ?"
    sums_row = row(connection, sums, (thread << SHIFT) + seq)
    return None if sums_row is None else sessions.Base(thread, seq, *sums_row)


def base_of(connection: apsw.Connection, position: sessions.SessionPosition, turn: str) -> sessions.Base:
    """Return the base from which a thread continues after a turn of the session, or a turn that it had before
    it was cleared. Raise LedgerError if it has no such turn.

    If a provider's server compacted the conversation with this turn, the base is after that compaction.
    """
    name = split_name(turn)
    if name is not None:
        thread = value(connection, "SELECT id FROM thread WHERE key = ?", name[0])
        if thread is not None and _has(connection, position, thread, name[1]):
            base = base_at(connection, thread, name[1] + _is_compacted(connection, position, thread, name[1]))
            if base is not None:
                return base
    raise LedgerError(f"The session {position.name!r} has no turn {turn!r}.", code="unknown-turn")


def _is_compacted(
    connection: apsw.Connection, position: sessions.SessionPosition, thread: int, seq: int
) -> bool:
    """Whether a compaction by the provider's server came with a turn: then it is the next turn."""
    receipt = value(connection, "SELECT receipt FROM compaction WHERE turn = ?", (thread << SHIFT) + seq + 1)
    is_opaque = receipt is not None and opaque_provider(optional_value(receipt)) is not None
    return is_opaque and _has(connection, position, thread, seq + 1)


def _has(connection: apsw.Connection, position: sessions.SessionPosition, thread: int, seq: int) -> bool:
    turn_id = (thread << SHIFT) + seq
    return any(
        start <= turn_id < end
        for session_thread in sessions.threads_of(connection, position)
        for start, end in turn_ranges(segments(connection, session_thread))
    )
