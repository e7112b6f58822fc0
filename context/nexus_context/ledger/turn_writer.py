"""Turns that are appended: queries, compactions, and undos that take these back.

1. Nothing is changed: all three are turns behind the last one.
2. Each turn says which compaction is in force after it, so that nobody has to look for it.
3. A compaction is put in force at the present end of its thread: what was appended since it was planned is
   kept. So nobody who appends can hold it up.
4. Whoever names a parent that is not the last turn any more gets a fork; whoever names none is put at the
   end.
5. Each turn has a sum that covers it and the turn before it (`chain`).
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from nexus_context.ledger import options, sessions
from nexus_context.ledger.chain import MessageColumns, turn_sum
from nexus_context.ledger.errors import HeadMovedError, LedgerError, key_reused
from nexus_context.ledger.lineage import PER_THREAD, SHIFT, segments, turn_name, turn_ranges
from nexus_context.ledger.records import Appended, Counted, Head, NewCompaction, NewTurn, Ranges, TurnType
from nexus_context.ledger.rows import MessageRow, json_text, optional_json, row_of
from nexus_context.ledger.sessions import SessionPosition
from nexus_context.ledger.sql import row, value
from nexus_context.ledger.unspaced_text import split_runs

_TURN = """
INSERT INTO turn (id, type, first, messages, before, tokens, in_force, undone, undoes, created,
    model, role, permissions, toolset, event, context, sum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_MESSAGE = """
INSERT INTO message (id, turn, role, tokens, length, said, data, crc, summary, counter)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_FOUND = "INSERT INTO found (rowid, said) VALUES (?, ?)"
_PART = "INSERT INTO part (rowid, said) VALUES (?, ?)"
_COMPACTION = """
INSERT INTO compaction (turn, name, below, tokens, kept, receipt) VALUES (?, ?, ?, ?, ?, ?)
"""
_ANSWER = """
SELECT turn.first, turn.messages, turn.before, turn.tokens, thread.key, thread.base_seq, parent.key,
    session.name
FROM turn JOIN thread ON thread.id = turn.id >> 32 JOIN session ON session.id = thread.session
LEFT JOIN thread AS parent ON parent.id = thread.parent
WHERE turn.id = ?
"""
_SINCE = "SELECT group_concat(DISTINCT type), min(first) FROM turn WHERE id >= ? AND id < ?"
_NUMBERED = re.compile(r" \(\d{1,6}\)\Z")


class State(NamedTuple):
    """Which compaction is in force after a turn (number of its turn's row), whether one was taken back since
    the last one was made, and the sum of the turn.
    """

    in_force: int | None = None
    undone: bool = False
    sum: bytes | None = None


def append(connection: apsw.Connection, workspace: str, session: str, turn: NewTurn) -> Appended:
    known = sessions.find(connection, workspace, session)
    if known is None:
        known = sessions.begin(connection, workspace, session)
    key = turn.key or None
    if key is not None and (answer := _repeated(connection, known.session, key, turn.messages)):
        return answer
    addressed, forked = known.session, False
    if isinstance(turn.parent, str | None) and turn.parent != known.head.turn:
        known, forked = _fork(connection, workspace, known, turn.parent), True
    if turn.opening is not None and not known.messages:
        turn = msgspec.structs.replace(turn, messages=(turn.opening, *turn.messages))
    moment = sessions.now()
    after = put_query(connection, known, turn, moment)
    advance(connection, after, moment)
    if key is not None:
        remember(connection, addressed, key, after, forked=forked)
    if turn.options is not None:
        options.keep_of(connection, known.session, turn.options)
    return _appended(known, after, forked=forked)


def compact(connection: apsw.Connection, workspace: str, session: str, compaction: NewCompaction) -> Appended:
    known = sessions.require(connection, workspace, session)
    last = state(connection, known).in_force
    if last is not None and last == known.turn and _name(connection, last) == compaction.id:
        answer = _answer(connection, last, forked=False)  # the same once more: nothing is written
        if answer is not None:
            return answer
    if compaction.thread not in (None, known.key):
        raise HeadMovedError(session)
    kept = compaction.kept + _appended_since(connection, known, compaction.seq)
    moment = sessions.now()
    turn = NewTurn(messages=(compaction.summary,), counter=compaction.counter)
    after = put_compaction(
        connection, known, turn, moment, name=compaction.id, kept=kept, receipt=compaction.receipt
    )
    advance(connection, after, moment)
    return _appended(known, after)


def _appended_since(connection: apsw.Connection, known: SessionPosition, seq: int) -> Ranges:
    """The positions of what was appended behind a turn. HeadMovedError where anything else happened."""
    if seq > known.seq:
        raise HeadMovedError(known.name)
    first = known.messages
    for ids in reversed(turn_ranges(segments(connection, known.thread), seq)):
        types, first = row(connection, _SINCE, *ids)
        if types != "query":
            raise HeadMovedError(known.name)
    return ((first, known.messages),) if first < known.messages else ()


def undo(connection: apsw.Connection, workspace: str, session: str, compaction: str | None) -> Appended:
    known = sessions.require(connection, workspace, session)
    moment = sessions.now()
    after = put_undo(connection, known, NewTurn(messages=(), counter=""), moment, name=compaction)
    advance(connection, after, moment)
    return _appended(known, after)


def state(connection: apsw.Connection, known: SessionPosition) -> State:
    """What is in force at the end of a session's thread."""
    found = row(connection, "SELECT in_force, undone, sum FROM turn WHERE id = ?", known.turn)
    return State() if found is None else State(found[0], bool(found[1]), found[2])


# ---------------------------------------------------------------- rows


def put_query(
    connection: apsw.Connection, known: SessionPosition, turn: NewTurn, moment: str
) -> SessionPosition:
    """Write a turn behind a place; returns the place behind the turn. So do the next two."""
    before = state(connection, known)
    return _put(connection, known, "query", turn, before, before, moment)


def put_compaction(
    connection: apsw.Connection,
    known: SessionPosition,
    turn: NewTurn,
    moment: str,
    *,
    name: str,
    kept: Ranges,
    receipt: Any,
) -> SessionPosition:
    end = 0
    for first, after in kept:
        if not end <= first < after <= known.messages:
            raise ValueError(f"kept {kept} are no ascending ranges of {known.messages} messages")
        end = after
    number, before = _next(known), state(connection, known)
    tokens = sum(counted.tokens for counted in turn.messages)
    compaction = (name, before.in_force, tokens, json_text(kept), json_text(receipt))
    connection.execute(_COMPACTION, (number, *compaction))
    return _put(connection, known, "compaction", turn, before, State(number), moment, compaction=compaction)


def put_undo(
    connection: apsw.Connection, known: SessionPosition, turn: NewTurn, moment: str, *, name: str | None
) -> SessionPosition:
    """`name`: the compaction that is taken back, else the one in force."""
    before = state(connection, known)
    taken = below = before.in_force
    while taken is not None:
        found, below = row(connection, "SELECT name, below FROM compaction WHERE turn = ?", taken)
        if name in (None, found):
            break
        taken = below
    if taken is None:
        what = "no compaction" if name is None else f"no compaction {name!r}"
        raise LedgerError(f"The session {known.name!r} has {what} to take back.", code="unknown-compaction")
    return _put(connection, known, "undo", turn, before, State(below, undone=True), moment, undoes=taken)


def _put(
    connection: apsw.Connection,
    known: SessionPosition,
    kind: TurnType,
    turn: NewTurn,
    before: State,
    force: State,
    moment: str,
    *,
    undoes: int | None = None,
    compaction: tuple[Any, ...] | None = None,
) -> SessionPosition:
    """Write a turn and its messages behind a place; returns the place behind them.

    `before` is the state there, `force` the one after the turn.
    """
    tokens = sum(counted.tokens for counted in turn.messages)
    first = (known.thread << SHIFT) + known.messages
    messages = [
        row_of(counted.message, number, known.seq + 1, counted.tokens)
        for number, counted in enumerate(turn.messages, first)
    ]
    columns = (
        kind,
        known.messages,
        len(messages),
        known.tokens,
        tokens,
        force.in_force,
        int(force.undone),
        undoes,
        turn.created or moment,
        turn.model,
        turn.role,
        turn.permissions,
        json_text(turn.toolset) if turn.toolset else None,
        optional_json(turn.event),
        optional_json(turn.context),
    )
    total = turn_sum(before.sum, columns, compaction, (_summed(each, turn.counter) for each in messages))
    connection.execute(_TURN, (_next(known), *columns, total))
    if messages:
        same = (kind == "compaction", _counter(connection, turn.counter))
        connection.executemany(_MESSAGE, ((*each, *same) for each in messages))
        connection.executemany(_FOUND, ((each.id, each.said) for each in messages))
        parts = [(each.id, part) for each in messages if (part := split_runs(each.said)) is not None]
        if parts:
            connection.executemany(_PART, parts)
    return known._replace(
        seq=known.seq + 1,
        messages=known.messages + len(messages),
        tokens=known.tokens + tokens,
        owner=known.thread,
        owner_key=known.key,
    )


def _summed(message: MessageRow, counter: str) -> MessageColumns:
    position, data = message.id & (PER_THREAD - 1), message.data
    return MessageColumns(
        position,
        message.role,
        message.tokens,
        counter,
        message.length,
        message.said.encode(),
        None if data is None else data.encode(),
    )


def _next(known: SessionPosition) -> int:
    """Number of the row of the turn that comes next."""
    return (known.thread << SHIFT) + known.seq + 1


def advance(connection: apsw.Connection, after: SessionPosition, moment: str) -> None:
    """The session is at this place now."""
    connection.execute(
        "UPDATE thread SET seq = ?, messages = ?, tokens = ? WHERE id = ?",
        (after.seq, after.messages, after.tokens, after.thread),
    )
    sessions.touch(connection, after.session, moment)


def _counter(connection: apsw.Connection, name: str) -> int:
    number = value(connection, "SELECT id FROM counter WHERE name = ?", name)
    if number is None:
        connection.execute("INSERT INTO counter (name) VALUES (?)", (name,))
        return connection.last_insert_rowid()
    return int(number)


# ---------------------------------------------------------------- answers


def _appended(known: SessionPosition, after: SessionPosition, *, forked: bool = False) -> Appended:
    return Appended(after.name, turn_name(after.key, after.seq), after.head, known.head, forked=forked)


def remember(
    connection: apsw.Connection, session: int, key: str, after: SessionPosition, *, forked: bool
) -> None:
    """Whoever appends to the session with this key again gets the turn before that place."""
    connection.execute(
        # no OR REPLACE: the index of words would be written out before each turn of an import
        "INSERT INTO key (session, key, turn, forked) VALUES (?, ?, ?, ?)",
        (session, key, after.turn, forked),
    )


def _repeated(
    connection: apsw.Connection, session: int, key: str, messages: Sequence[Counted]
) -> Appended | None:
    """The answer to the append that had this key; None for a new key, or where that turn was deleted.

    LedgerError where that had another number of messages.
    """
    found = row(connection, "SELECT turn, forked FROM key WHERE session = ? AND key = ?", session, key)
    if found is None:
        return None
    answer = _answer(connection, found[0], forked=bool(found[1]))
    if answer is None:
        connection.execute("DELETE FROM key WHERE session = ? AND key = ?", (session, key))
    elif (before := _own(connection, found[0], answer, messages)) != len(messages):
        raise key_reused(key, before, len(messages))
    return answer


def _own(connection: apsw.Connection, turn: int, answer: Appended, messages: Sequence[Counted]) -> int:
    """How many messages an append was given, as far as what is given now tells whether one opened it."""
    first = answer.before.messages
    count = answer.head.messages - first
    if first or count < 2 or not messages:
        return count
    number = (turn >> SHIFT) << SHIFT
    written = row(connection, "SELECT role, said, data FROM message WHERE id = ?", number)
    given = row_of(messages[0].message, number, answer.head.seq, messages[0].tokens)
    opened: bool = written != (given.role, given.said, given.data)
    return count - opened


def _answer(connection: apsw.Connection, turn: int, *, forked: bool) -> Appended | None:
    """What was answered when a turn was appended."""
    found = row(connection, _ANSWER, turn)
    if found is None:
        return None
    first, messages, before, tokens, key, base_seq, parent, session = found
    seq = turn & ((1 << SHIFT) - 1)
    owner = key if seq - 1 > base_seq else parent
    name = turn_name(key, seq)
    return Appended(
        session,
        name,
        Head(key, name, seq, first + messages, before + tokens),
        Head(key, None if owner is None else turn_name(owner, seq - 1), seq - 1, first, before),
        repeated=True,
        forked=forked,
    )


def _fork(
    connection: apsw.Connection, workspace: str, known: SessionPosition, parent: str | None
) -> SessionPosition:
    """A new session behind `parent`, for a turn that somebody else was faster than."""
    base = None if parent is None else sessions.base_of(connection, known, parent)
    agent = sessions.agent_of(connection, known)
    name = _free(connection, workspace, known.name)
    return sessions.begin(connection, workspace, name, agent=agent, origin=known.session, base=base)


def _free(connection: apsw.Connection, workspace: str, session: str) -> str:
    """The first of "name (2)", "name (3)", … that no session has."""
    stem = _NUMBERED.sub("", session)
    number = 2
    while sessions.find(connection, workspace, sessions.fitting(stem, f" ({number})")) is not None:
        number += 1
    return sessions.fitting(stem, f" ({number})")


def _name(connection: apsw.Connection, compaction: int) -> str:
    return str(value(connection, "SELECT name FROM compaction WHERE turn = ?", compaction))
