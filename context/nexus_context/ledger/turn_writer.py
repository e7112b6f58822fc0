"""Appends turns: queries, compactions, and undos, which take compactions back.

1. Existing turns do not change: queries, compactions and undos are new turns after the last one. The one
   exception is a turn that continues, for example with tool calls. It gets more messages as long as it is the
   last turn and no fork shares it.
2. Each turn records which compaction is in force after it, so that nobody has to search for it.
3. A compaction takes effect at the current end of its thread. Messages that were appended since it was
   planned are kept, so appends cannot delay it.
4. An append whose parent is no longer the last turn creates a fork. An append without a parent goes to the
   end.
5. Each turn has a sum that covers it and the turn before it (`chain`).
6. A compaction and an undo drop the stored prompt and tools (`frozen`), so the next request renders them
   anew.
7. An import writes turns from elsewhere to a new session: all or none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from nexus_context.conversation.compaction.receipt import nothing_to_undo
from nexus_context.ledger import forks, sessions, usage_reports
from nexus_context.ledger.chain import MessageColumns, SummedMessages, summed_columns, turn_sum
from nexus_context.ledger.errors import HeadMovedError, LedgerError, key_reused
from nexus_context.ledger.lineage import PER_THREAD, SHIFT, segments, turn_name, turn_ranges
from nexus_context.ledger.part_index import split_runs
from nexus_context.ledger.records import (
    Appended,
    Counted,
    Head,
    NewCompaction,
    NewTurn,
    Ranges,
    Turn,
    TurnType,
    as_new_turn,
)
from nexus_context.ledger.rows import (
    MessageRow,
    json_text,
    optional_json,
    permissions_text,
    row,
    row_of,
    value,
)
from nexus_context.ledger.sessions import SessionPosition

_TURN = """
INSERT INTO turn (id, type, first, messages, before, tokens, in_force, undone, undoes, created,
    model, role, permissions, toolset, event, context, sum, outcome)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_EXTENDABLE = """
SELECT type, first, messages, before, tokens, in_force, undone, undoes, created, model, role, permissions,
    toolset, event, context, outcome, sum
FROM turn
WHERE id = ?1 AND type = 'query'
    AND NOT EXISTS (SELECT 1 FROM thread WHERE parent = ?1 >> 32 AND base_seq >= ?1 & 0xffffffff)
"""
_SUM_BEFORE = """
SELECT turn.sum FROM thread
JOIN turn ON turn.id = (iif(?2 > thread.base_seq, thread.id, thread.parent) << 32) + ?2
WHERE thread.id = ?1
"""
_EXTEND = """
UPDATE turn SET messages = ?, tokens = ?, model = ?, role = ?, permissions = ?, toolset = ?, event = ?,
    context = ?, sum = ?, outcome = ?
WHERE id = ?
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
_FROZEN = "INSERT OR REPLACE INTO frozen (turn, state) VALUES (?, ?)"
_ANSWER = """
SELECT turn.first, turn.messages, turn.before, turn.tokens, thread.key, thread.base_seq, parent.key,
    session.name
FROM turn JOIN thread ON thread.id = turn.id >> 32 JOIN session ON session.id = thread.session
LEFT JOIN thread AS parent ON parent.id = thread.parent
WHERE turn.id = ?
"""

MOST_EXTENDED = 256
"""Messages of a turn up to which it is extended: its sum is made anew of all of them."""

_SINCE = "SELECT group_concat(DISTINCT type), min(first) FROM turn WHERE id >= ? AND id < ?"


class CompactionState(NamedTuple):
    """The state after a turn: the row number of the compaction in force, and whether the last compaction was
    taken back. `sum` is the sum of the turn.
    """

    in_force: int | None = None
    undone: bool = False
    sum: bytes | None = None


def append(connection: apsw.Connection, workspace: str, session: str, turn: NewTurn) -> Appended:
    position = sessions.find(connection, workspace, session)
    if position is None:
        position = sessions.begin(connection, workspace, session)
    key = turn.key or None
    if key is not None and (answer := _repeated(connection, position.session, key, turn.messages)):
        return answer
    addressed, forked = position.session, False
    if isinstance(turn.parent, str | None) and turn.parent != position.head.turn:
        position, forked = forks.fork_late_turn(connection, workspace, position, turn.parent), True
    if turn.opening is not None and not position.messages:
        turn = msgspec.structs.replace(turn, messages=(turn.opening, *turn.messages))
    moment = sessions.now()
    new_position = _extended(connection, position, turn) or put_query(connection, position, turn, moment)
    if not isinstance(turn.frozen, msgspec.UnsetType):
        connection.execute(_FROZEN, (new_position.turn, turn.frozen))
    if turn.report is not None and new_position.turn is not None:
        usage_reports.write(connection, new_position.turn, turn.report)
    advance(connection, new_position, moment)
    if key is not None:
        remember(connection, addressed, key, new_position, forked=forked)
    if turn.options is not None:
        sessions.keep_session_options(connection, position.session, turn.options)
    return _appended(position, new_position, forked=forked)


def compact(connection: apsw.Connection, workspace: str, session: str, compaction: NewCompaction) -> Appended:
    position = sessions.require(connection, workspace, session)
    compaction_turn = state(connection, position).in_force
    if (
        compaction_turn is not None
        and compaction_turn == position.turn
        and _name(connection, compaction_turn) == compaction.id
    ):
        answer = _answer(connection, compaction_turn, forked=False)  # repeated: nothing is written
        if answer is not None:
            return answer
    if compaction.thread not in (None, position.key):
        raise HeadMovedError(session)
    preserved = compaction.kept + _appended_since(connection, position, compaction)
    moment = sessions.now()
    turn = NewTurn(messages=(compaction.summary,), counter=compaction.counter)
    new_position = put_compaction(
        connection, position, turn, moment, name=compaction.id, kept=preserved, receipt=compaction.receipt
    )
    advance(connection, new_position, moment)
    return _appended(position, new_position)


def _appended_since(
    connection: apsw.Connection, position: SessionPosition, compaction: NewCompaction
) -> Ranges:
    """The positions of the messages appended since a compaction was planned.

    HeadMovedError if the session changed in any other way.
    """
    if compaction.seq > position.seq:
        raise HeadMovedError(position.name)
    first_message = position.messages
    for ids in reversed(turn_ranges(segments(connection, position.thread), compaction.seq)):
        types, first_message = row(connection, _SINCE, *ids)
        if types != "query":
            raise HeadMovedError(position.name)
    first_message = first_message if compaction.messages is None else compaction.messages
    return ((first_message, position.messages),) if first_message < position.messages else ()


def undo(connection: apsw.Connection, workspace: str, session: str, compaction: str | None) -> Appended:
    position = sessions.require(connection, workspace, session)
    moment = sessions.now()
    new_position = put_undo(connection, position, NewTurn(messages=(), counter=""), moment, name=compaction)
    advance(connection, new_position, moment)
    return _appended(position, new_position)


def render_anew(connection: apsw.Connection, workspace: str, session: str) -> None:
    """Drop the stored prompt and tools, so that the session's next request renders them anew."""
    position = sessions.require(connection, workspace, session)
    connection.execute(_FROZEN, (_next(position) - 1, None))


def state(connection: apsw.Connection, position: SessionPosition) -> CompactionState:
    """Return the compaction state at the end of a session."""
    columns = row(connection, "SELECT in_force, undone, sum FROM turn WHERE id = ?", position.turn)
    return CompactionState() if columns is None else CompactionState(columns[0], bool(columns[1]), columns[2])


# ---------------------------------------------------------------- imports


def import_turns(
    connection: apsw.Connection,
    workspace: str,
    session: str,
    turns: Iterable[NewTurn | Turn],
    *,
    parameters: Mapping[str, Any] | None,
    on_progress: Callable[[int], None],
    continues: bool = False,
) -> None:
    """Write turns from elsewhere to a new session. `on_progress` is called with the number of turns so far.

    With `continues`, the turns are appended to an existing session.
    """
    if continues:
        position = sessions.require(connection, workspace, session)
    else:
        position = sessions.begin(connection, workspace, session, parameters=parameters)
    moment = sessions.now()
    keys: set[str] = set()
    for count, turn in enumerate(turns, 1):
        if isinstance(turn, Turn):
            position = _put_again(connection, position, turn, moment)
        elif turn.key is None or turn.key not in keys:
            position = put_query(connection, position, turn, moment)
            if turn.report is not None and position.turn is not None:
                usage_reports.write(connection, position.turn, turn.report)
            if turn.key is not None:
                keys.add(turn.key)
                remember(connection, position.session, turn.key, position, forked=False)
        on_progress(count)
    advance(connection, position, moment)


def _put_again(
    connection: apsw.Connection, position: SessionPosition, turn: Turn, moment: str
) -> SessionPosition:
    """Write a turn of another session unchanged."""
    counts = turn.counts if len(turn.counts) == len(turn.messages) else (0,) * len(turn.messages)
    new_turn = as_new_turn(turn, counts)
    if turn.type == "query":
        return put_query(connection, position, new_turn, moment)
    if turn.type == "undo":
        return put_undo(connection, position, new_turn, moment, name=turn.compaction)
    return put_compaction(
        connection,
        position,
        new_turn,
        moment,
        name=turn.compaction or "",
        kept=turn.kept,
        receipt=turn.receipt,
    )


# ---------------------------------------------------------------- rows


class _Entry(NamedTuple):
    """A turn to write: the state before and after it, and what only one kind of turn has."""

    kind: TurnType
    turn: NewTurn
    before: CompactionState
    after: CompactionState
    undoes: int | None = None
    compaction: tuple[Any, ...] | None = None  # its row from `name` to `receipt`


def put_query(
    connection: apsw.Connection, position: SessionPosition, turn: NewTurn, moment: str
) -> SessionPosition:
    """Write a query's turn at a position, and return the position after it. `put_compaction` and `put_undo`
    do the same for their kinds.
    """
    compaction_state = state(connection, position)
    return _put(connection, position, _Entry("query", turn, compaction_state, compaction_state), moment)


def put_compaction(
    connection: apsw.Connection,
    position: SessionPosition,
    turn: NewTurn,
    moment: str,
    *,
    name: str,
    kept: Ranges,
    receipt: Any,
) -> SessionPosition:
    previous_end = 0
    for start, end in kept:
        if not previous_end <= start < end <= position.messages:
            raise ValueError(f"kept {kept} are not ascending ranges of {position.messages} messages")
        previous_end = end
    number, state_before = _next(position), state(connection, position)
    tokens = sum(counted.tokens for counted in turn.messages)
    compaction = (name, state_before.in_force, tokens, json_text(kept), json_text(receipt))
    connection.execute(_COMPACTION, (number, *compaction))
    connection.execute(_FROZEN, (number, None))
    entry = _Entry("compaction", turn, state_before, CompactionState(number), compaction=compaction)
    return _put(connection, position, entry, moment)


def put_undo(
    connection: apsw.Connection, position: SessionPosition, turn: NewTurn, moment: str, *, name: str | None
) -> SessionPosition:
    """Write an undo of the compaction `name`, or of the one in force if it is None. Return the position after
    it.
    """
    state_before = state(connection, position)
    undone_turn = turn_below = state_before.in_force
    newer_compactions = []
    while undone_turn is not None:
        compaction, turn_below = row(
            connection, "SELECT name, below FROM compaction WHERE turn = ?", undone_turn
        )
        if name in (None, compaction):
            break
        newer_compactions.append(compaction)
        undone_turn = turn_below
    if undone_turn is None:
        raise LedgerError(nothing_to_undo(name, reversed(newer_compactions)), code="unknown-compaction")
    connection.execute(_FROZEN, (_next(position), None))
    entry = _Entry("undo", turn, state_before, CompactionState(turn_below, undone=True), undoes=undone_turn)
    return _put(connection, position, entry, moment)


def _put(
    connection: apsw.Connection, position: SessionPosition, entry: _Entry, moment: str
) -> SessionPosition:
    """Write a turn and its messages at a position; returns the position after them."""
    turn = entry.turn
    first_id = (position.thread << SHIFT) + position.messages
    messages = [
        row_of(counted.message, message_id, position.seq + 1, counted.tokens)
        for message_id, counted in enumerate(turn.messages, first_id)
    ]
    tokens = sum(counted.tokens for counted in turn.messages)
    *facts, outcome = _facts(turn)
    columns = (
        entry.kind,
        position.messages,
        len(messages),
        position.tokens,
        tokens,
        entry.after.in_force,
        int(entry.after.undone),
        entry.undoes,
        turn.created or moment,
        *facts,
    )
    summed = (_summed(message, turn.counter) for message in messages)
    total = turn_sum(entry.before.sum, summed_columns(columns, outcome), entry.compaction, summed)
    connection.execute(_TURN, (_next(position), *columns, total, outcome))
    _put_messages(connection, messages, turn.counter, summary=entry.kind == "compaction")
    return position._replace(
        seq=position.seq + 1,
        messages=position.messages + len(messages),
        tokens=position.tokens + tokens,
        owner=position.thread,
        owner_key=position.key,
    )


def _extended(
    connection: apsw.Connection, position: SessionPosition, turn: NewTurn
) -> SessionPosition | None:
    """Write the messages to the turn that they extend; returns the position after them.

    None if they belong in a new turn: another turn has been appended since, a fork shares this turn, or this
    turn is too long or damaged.
    """
    if turn.extends != position.head or position.owner != position.thread or turn.key is not None:
        return None
    turn_id = (position.thread << SHIFT) + position.seq
    extendable = row(connection, _EXTENDABLE, turn_id)
    if extendable is None:
        return None
    *columns, last_outcome, total = extendable
    kind, first_message, count, tokens_before, tokens, *in_force = columns[:8]
    if count + len(turn.messages) > MOST_EXTENDED:
        return None
    first_id = (position.thread << SHIFT) + first_message
    stored = SummedMessages(connection, first_id, first_id + count).take(position.seq, count)
    sum_before = value(connection, _SUM_BEFORE, position.thread, position.seq - 1)
    if total != turn_sum(sum_before, summed_columns(tuple(columns), last_outcome), None, stored):
        return None
    messages = [
        row_of(counted.message, message_id, position.seq, counted.tokens)
        for message_id, counted in enumerate(turn.messages, first_id + count)
    ]
    added = sum(counted.tokens for counted in turn.messages)
    stored_facts = (*columns[9:], last_outcome)
    *facts, outcome = (
        stored_fact if new_fact is None else new_fact
        for new_fact, stored_fact in zip(_facts(turn), stored_facts, strict=True)
    )
    sizes = count + len(messages), tokens + added
    columns = [kind, first_message, sizes[0], tokens_before, sizes[1], *in_force, columns[8], *facts]
    summed = (*stored, *(_summed(message, turn.counter) for message in messages))
    total = turn_sum(sum_before, summed_columns(tuple(columns), outcome), None, summed)
    connection.execute(_EXTEND, (*sizes, *facts, total, outcome, turn_id))
    _put_messages(connection, messages, turn.counter, summary=False)
    return position._replace(messages=position.messages + len(messages), tokens=position.tokens + added)


def _facts(turn: NewTurn) -> tuple[str | None, ...]:
    """The columns of a turn from `model` to `context`, and its outcome."""
    return (
        turn.model,
        turn.role,
        permissions_text(turn.permissions),
        json_text(turn.toolset) if turn.toolset else None,
        optional_json(turn.event),
        optional_json(turn.context),
        optional_json(turn.outcome),
    )


def _put_messages(
    connection: apsw.Connection, messages: Sequence[MessageRow], counter: str, *, summary: bool
) -> None:
    """Write messages and index their text."""
    if not messages:
        return
    shared = (summary, _counter(connection, counter))
    connection.executemany(_MESSAGE, ((*message, *shared) for message in messages))
    connection.executemany(_FOUND, ((message.id, message.text) for message in messages))
    parts = [(message.id, part) for message in messages if (part := split_runs(message.text)) is not None]
    if parts:
        connection.executemany(_PART, parts)


def _summed(message: MessageRow, counter: str) -> MessageColumns:
    return MessageColumns(
        position=message.id & (PER_THREAD - 1),
        role=message.role,
        tokens=message.tokens,
        counter=counter,
        length=message.length,
        text=message.text.encode(),
        data=None if message.data is None else message.data.encode(),
    )


def _next(position: SessionPosition) -> int:
    """Row number of the next turn."""
    return (position.thread << SHIFT) + position.seq + 1


def advance(connection: apsw.Connection, position: SessionPosition, moment: str) -> None:
    """Move the end of the session to a position, and mark the session as changed."""
    connection.execute(
        "UPDATE thread SET seq = ?, messages = ?, tokens = ? WHERE id = ?",
        (position.seq, position.messages, position.tokens, position.thread),
    )
    sessions.touch(connection, position.session, moment)


def _counter(connection: apsw.Connection, name: str) -> int:
    number = value(connection, "SELECT id FROM counter WHERE name = ?", name)
    if number is None:
        connection.execute("INSERT INTO counter (name) VALUES (?)", (name,))
        return connection.last_insert_rowid()
    return int(number)


# ---------------------------------------------------------------- answers


def _appended(position: SessionPosition, new_position: SessionPosition, *, forked: bool = False) -> Appended:
    return Appended(
        new_position.name,
        turn_name(new_position.key, new_position.seq),
        new_position.head,
        position.head,
        forked=forked,
    )


def remember(
    connection: apsw.Connection, session: int, key: str, new_position: SessionPosition, *, forked: bool
) -> None:
    """Store the key of an append. A repeated append with the same key returns the turn that ends at
    `new_position`.
    """
    connection.execute(
        # not OR REPLACE: it would flush the index of words before each turn of an import
        "INSERT INTO key (session, key, turn, forked) VALUES (?, ?, ?, ?)",
        (session, key, new_position.turn, forked),
    )


def _repeated(
    connection: apsw.Connection, session: int, key: str, messages: Sequence[Counted]
) -> Appended | None:
    """The answer to an earlier append with this key; None for a new key or a deleted turn.

    LedgerError if that append had another number of messages.
    """
    key_row = row(connection, "SELECT turn, forked FROM key WHERE session = ? AND key = ?", session, key)
    if key_row is None:
        return None
    answer = _answer(connection, key_row[0], forked=bool(key_row[1]))
    if answer is None:
        connection.execute("DELETE FROM key WHERE session = ? AND key = ?", (session, key))
    elif (earlier_count := _count_appended(connection, key_row[0], answer, messages)) != len(messages):
        raise key_reused(key, earlier_count, len(messages))
    return answer


def _count_appended(
    connection: apsw.Connection, turn: int, answer: Appended, messages: Sequence[Counted]
) -> int:
    """Count the messages of an earlier append, without an opening message that the ledger added to it."""
    first_message = answer.before.messages
    count = answer.head.messages - first_message
    if first_message or count < 2 or not messages:
        return count
    number = (turn >> SHIFT) << SHIFT
    written = row(connection, "SELECT role, said, data FROM message WHERE id = ?", number)
    expected = row_of(messages[0].message, number, answer.head.seq, messages[0].tokens)
    opened: bool = written != (expected.role, expected.text, expected.data)
    return count - opened


def _answer(connection: apsw.Connection, turn: int, *, forked: bool) -> Appended | None:
    """The answer to the append of a turn."""
    columns = row(connection, _ANSWER, turn)
    if columns is None:
        return None
    first_message, messages, tokens_before, tokens, key, base_seq, parent, session = columns
    seq = turn & ((1 << SHIFT) - 1)
    owner = key if seq - 1 > base_seq else parent
    name = turn_name(key, seq)
    previous_turn = None if owner is None else turn_name(owner, seq - 1)
    return Appended(
        session=session,
        turn=name,
        head=Head(
            thread=key, turn=name, seq=seq, messages=first_message + messages, tokens=tokens_before + tokens
        ),
        before=Head(
            thread=key, turn=previous_turn, seq=seq - 1, messages=first_message, tokens=tokens_before
        ),
        repeated=True,
        forked=forked,
    )


def _name(connection: apsw.Connection, compaction: int) -> str:
    return str(value(connection, "SELECT name FROM compaction WHERE turn = ?", compaction))
