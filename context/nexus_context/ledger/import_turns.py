"""Turns from elsewhere, put into a new session: all of them or none."""

from collections.abc import Callable, Iterable

import apsw

from nexus_context.ledger import sessions, turn_writer
from nexus_context.ledger.records import Counted, NewTurn, Turn
from nexus_context.ledger.sessions import SessionPosition


def import_turns(
    connection: apsw.Connection,
    workspace: str,
    session: str,
    turns: Iterable[NewTurn | Turn],
    told: Callable[[int], None],
) -> None:
    after = sessions.begin(connection, workspace, session)
    moment = sessions.now()
    keys: set[str] = set()
    for count, turn in enumerate(turns, 1):
        if isinstance(turn, Turn):
            after = _again(connection, after, turn, moment)
        elif turn.key is None or turn.key not in keys:
            after = turn_writer.put_query(connection, after, turn, moment)
            if turn.key is not None:
                keys.add(turn.key)
                turn_writer.remember(connection, after.session, turn.key, after, forked=False)
        told(count)
    turn_writer.advance(connection, after, moment)


def _again(connection: apsw.Connection, known: SessionPosition, turn: Turn, moment: str) -> SessionPosition:
    """Write a turn of another session behind a place, as it was."""
    counts = turn.counts if len(turn.counts) == len(turn.messages) else (0,) * len(turn.messages)
    new = NewTurn(
        messages=tuple(map(Counted, turn.messages, counts)),
        counter=turn.counter,
        model=turn.model,
        role=turn.role,
        toolset=turn.toolset,
        permissions=turn.permissions,
        event=turn.event,
        context=turn.context,
        created=turn.created,
    )
    if turn.type == "query":
        return turn_writer.put_query(connection, known, new, moment)
    if turn.type == "undo":
        return turn_writer.put_undo(connection, known, new, moment, name=turn.compaction)
    return turn_writer.put_compaction(
        connection, known, new, moment, name=turn.compaction or "", kept=turn.kept, receipt=turn.receipt
    )
