"""Reads histories, turns, new messages and receipts from the ranges of a thread.

1. A history is the summary in force, the messages kept beside it, and all messages of queries after it;
   without a compaction, all messages of queries.
2. With a limit only both ends are read; the size of the gap follows from sums that turns carry. Neither end
   is much longer than the limit, whatever the conversation looks like.
3. A receipt is found by the id of its compaction, even after its session was renamed.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import apsw
import msgspec

from nexus_context.conversation.message import Message, without_old_preambles
from nexus_context.conversation.summary import as_summary
from nexus_context.ledger import sessions
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import (
    PER_THREAD,
    SHIFT,
    Range,
    Segment,
    message_ranges,
    segments,
    turn_name,
    turn_ranges,
)
from nexus_context.ledger.records import Head, StoredHistory, StoredMessage, StoredReceipt, Turn
from nexus_context.ledger.rows import (
    SELECTED,
    DamagedError,
    message_of,
    optional_value,
    outcome_of,
    permissions_of,
    read_messages,
    row,
    value,
    value_of,
)
from nexus_context.ledger.sessions import SessionPosition
from nexus_context.ledger.turn_writer import state

BATCH = 200
"""Turns per read."""
LONGEST_TURN = 2
"""Times the limit above which a turn is not read to its beginning."""
LONGEST_OPENING = 8_000
"""Most tokens of messages before the first answer that are read, or the limit if that is more."""

_MASK = PER_THREAD - 1

_QUERIES = SELECTED + " AND summary = 0 ORDER BY id"
_BACKWARDS = _QUERIES + " DESC"

_SPAN = "SELECT min(first), max(first + messages) FROM turn WHERE id >= ? AND id < ?"
_TURNS = """
SELECT turn.id, turn.type, turn.messages, turn.created, turn.tokens, turn.model, turn.role,
    turn.event, turn.context, compaction.name, compaction.receipt, compaction.kept,
    turn.toolset, turn.permissions, turn.outcome, turn.first
FROM turn LEFT JOIN compaction ON compaction.turn = ifnull(turn.undoes, turn.id)
WHERE turn.id >= ? AND turn.id < ? ORDER BY turn.id
"""

_NEWEST_FROZEN = "SELECT state FROM frozen WHERE turn >= ? AND turn < ? ORDER BY turn DESC LIMIT 1"
_RECEIPT = """
SELECT turn, receipt FROM compaction
WHERE turn >= ?1 AND turn < ?2 AND (?3 IS NULL OR name = ?3) ORDER BY turn DESC LIMIT 1
"""
_HOLDER = """
SELECT session.name FROM compaction
JOIN thread ON thread.id = compaction.turn >> 32 JOIN session ON session.thread = thread.id
WHERE session.workspace = ? AND compaction.name = ? LIMIT 1
"""
_BELOW = "SELECT below FROM compaction WHERE turn = ?"


class _Lead(NamedTuple):
    """The beginning of a history, and the position from which messages of queries follow.

    `messages` and `tokens` count the messages of queries from that position on.
    """

    stored: list[StoredMessage]
    position: int
    messages: int
    tokens: int
    compaction: str | None = None


class _TurnMessage(NamedTuple):
    """A message of a turn."""

    message: Message
    tokens: int
    counter: str


def history(
    connection: apsw.Connection, workspace: str, session: str, tokens: int | None
) -> StoredHistory | None:
    position = sessions.find(connection, workspace, session)
    if position is None:
        return None
    parts = whole(connection, position)
    in_force, undone, _ = state(connection, position)
    updated = value(connection, "SELECT updated FROM session WHERE id = ?", position.session)
    if in_force is not None:
        lead = _compacted(connection, parts, position.head, in_force)
    elif tokens is not None:
        lead = _opening(connection, parts, position.head, max(tokens, LONGEST_OPENING))
    else:
        summaries, cost = sessions.count_summaries(connection, parts, 0)
        lead = _Lead([], 0, position.messages - summaries, position.tokens - cost)
    rest = message_ranges(parts, lead.position)
    if tokens is None:
        read = _read_ranges(connection, _QUERIES, rest)
        if len(read) != lead.messages:
            raise DamagedError(f"it has {lead.messages} messages, but {len(read)} exist")
        messages = (*lead.stored, *read)
        return StoredHistory(position.head, messages, lead.compaction, undone, updated=updated)
    read = _tail(connection, rest, tokens)
    return StoredHistory(
        position.head,
        (*lead.stored, *read),
        lead.compaction,
        undone,
        updated=updated,
        lead=len(lead.stored),
        gap_messages=lead.messages - len(read),
        gap_tokens=lead.tokens - sum(stored.tokens for stored in read),
    )


def whole(connection: apsw.Connection, position: SessionPosition) -> list[Segment]:
    """The segments of a session's thread. DamagedError if there is more than its row says."""
    behind = (position.thread << SHIFT) + position.seq, (position.thread + 1) << SHIFT
    if value(connection, "SELECT 1 FROM turn WHERE id > ? AND id < ? LIMIT 1", *behind):
        raise DamagedError(f"it has {position.seq} turns, but more exist")
    return segments(connection, position.thread)


def since(
    connection: apsw.Connection, workspace: str, session: str, head: Head
) -> tuple[StoredMessage, ...] | None:
    position = sessions.find(connection, workspace, session)
    if position is None or position.key != head.thread or head.seq > position.seq:
        return None
    parts = segments(connection, position.thread)
    for ids in turn_ranges(parts, head.seq):
        sql = "SELECT 1 FROM turn WHERE id >= ? AND id < ? AND type != 'query' LIMIT 1"
        if connection.execute(sql, ids).fetchone():
            return None
    return tuple(_read_ranges(connection, _QUERIES, message_ranges(parts, head.messages)))


def frozen(connection: apsw.Connection, workspace: str, session: str) -> str | None:
    position = sessions.find(connection, workspace, session)
    if position is None:
        return None
    own = position.thread << SHIFT, (position.thread + 1) << SHIFT  # also without a turn of its own
    inherited = turn_ranges(segments(connection, position.thread)[:-1])
    for ids in (own, *reversed(inherited)):
        newest = row(connection, _NEWEST_FROZEN, *ids)
        if newest is not None:
            state: str | None = newest[0]
            return state
    return None


def turns(connection: apsw.Connection, parts: list[Segment], after: int, until: int) -> list[Turn]:
    """The turns with `after` < seq <= `until`."""
    rows = [each for ids in turn_ranges(parts, after, until) for each in connection.execute(_TURNS, ids)]
    messages = _of_turns(connection, parts, after, until)
    keys = {part.thread: part.key for part in parts}
    parents = [_name_at(parts, after), *(turn_name(keys[each[0] >> SHIFT], each[0] & _MASK) for each in rows)]
    return [
        _turn(each, keys[each[0] >> SHIFT], messages.get(each[0] & _MASK, []), parent=parent)
        for each, parent in zip(rows, parents, strict=False)
    ]


def _name_at(parts: list[Segment], seq: int) -> str | None:
    """The id of the turn with this number; None for 0."""
    numbers = [ids.first for ids in turn_ranges(parts, seq - 1, seq)] if seq else []
    keys = {part.thread: part.key for part in parts}
    return turn_name(keys[numbers[0] >> SHIFT], seq) if numbers else None


# ---------------------------------------------------------------- inside


def _compacted(connection: apsw.Connection, parts: list[Segment], head: Head, in_force: int) -> _Lead:
    first, before, summary_tokens, name, kept_ranges = row(
        connection,
        "SELECT turn.first, turn.before, turn.tokens, name, kept FROM turn JOIN compaction ON turn = id"
        " WHERE id = ?",
        in_force,
    )
    ranges = message_ranges(parts, first, first + 1)
    for start, end in value_of(kept_ranges):
        ranges += message_ranges(parts, start, end)
    stored = _read_ranges(connection, SELECTED + " ORDER BY id", ranges)
    stored[:1] = [msgspec.structs.replace(one, message=as_summary(one.message)) for one in stored[:1]]
    messages = _without_old_preambles(stored)
    summaries, cost = sessions.count_summaries(connection, parts, in_force & _MASK)
    count = head.messages - first - 1 - summaries
    tokens = head.tokens - before - summary_tokens - cost
    return _Lead(messages, first + 1, count, tokens, compaction=name)


def _without_old_preambles(kept: Sequence[StoredMessage]) -> list[StoredMessage]:
    """What a compaction keeps, as it is sent from then on.

    Who needs the tokens of a changed one counts it.
    """
    messages = without_old_preambles(one.message for one in kept)
    return [
        one if one.message is message else StoredMessage(one.position, one.tokens, "", message)
        for one, message in zip(kept, messages, strict=True)
    ]


def _opening(connection: apsw.Connection, parts: list[Segment], head: Head, most: int) -> _Lead:
    """The messages before the first answer, as far as they begin within `most` tokens, and leading system
    messages of any length.
    """
    rows: list[tuple[Any, ...]] = []
    position, total = head.messages, 0
    for each in chain.from_iterable(connection.execute(_QUERIES, ids) for ids in message_ranges(parts)):
        if each[2] != "system" and (each[2] != "user" or total >= most):
            position = each[0] & _MASK
            break
        rows.append(each)
        total += each[3]
    messages = _read_rows(connection, rows)
    summaries, cost = sessions.count_summaries(connection, parts, 0)
    count = head.messages - summaries - len(messages)
    return _Lead(messages, position, count, head.tokens - cost - sum(one.tokens for one in messages))


def _tail(connection: apsw.Connection, ranges: list[Range], tokens_needed: int) -> list[StoredMessage]:
    """Messages of whole turns from the end until they have enough tokens; of a long turn its end."""
    tail: list[StoredMessage] = []
    counters = _counters(connection)
    total, last = 0, None
    for ids in reversed(ranges):
        for columns in connection.execute(_BACKWARDS, ids):
            number, turn, tokens, counter = columns[0], columns[1], columns[3], columns[8]
            if total >= tokens_needed and (turn != last or total >= LONGEST_TURN * tokens_needed):
                return tail[::-1]
            total, last = total + tokens, turn
            tail.append(StoredMessage(number & _MASK, tokens, counters[counter], message_of(columns)))
    return tail[::-1]


def _read_ranges(connection: apsw.Connection, sql: str, ranges: Iterable[Range]) -> list[StoredMessage]:
    return _read_rows(connection, chain.from_iterable(connection.execute(sql, ids) for ids in ranges))


def _read_rows(connection: apsw.Connection, rows: Iterable[tuple[Any, ...]]) -> list[StoredMessage]:
    return read_messages(rows, _counters(connection))


def _counters(connection: apsw.Connection) -> dict[int, str]:
    return dict(connection.execute("SELECT id, name FROM counter"))


def _of_turns(
    connection: apsw.Connection, parts: list[Segment], after: int, until: int
) -> dict[int, list[_TurnMessage]]:
    """Messages of the turns with `after` < seq <= `until`, by seq."""
    by_turn: dict[int, list[_TurnMessage]] = {}
    counters = _counters(connection)
    for ids in turn_ranges(parts, after, until):
        first, end = row(connection, _SPAN, *ids)
        base = ids.first >> SHIFT << SHIFT
        rows = connection.execute(SELECTED + " ORDER BY id", (base + (first or 0), base + (end or 0)))
        for each in rows:
            message = _TurnMessage(message_of(each), each[3], counters[each[8]])
            by_turn.setdefault(each[1], []).append(message)
    return by_turn


def _turn(columns: tuple[Any, ...], key: str, messages: list[_TurnMessage], *, parent: str | None) -> Turn:
    (
        number,
        kind,
        count,
        created,
        tokens,
        model,
        role,
        event,
        context,
        compaction,
        receipt,
        kept_ranges,
        tools,
        permissions,
        outcome,
        first,
    ) = columns
    seq = number & _MASK
    if len(messages) != count:
        raise DamagedError(f"the turn {seq} has {count} messages, but {len(messages)} exist")
    compacted = kind == "compaction"
    return Turn(
        id=turn_name(key, seq),
        seq=seq,
        type=kind,
        created=created,
        tokens=tokens,
        messages=tuple(as_summary(one.message) if compacted else one.message for one in messages),
        first=first,
        model=model,
        role=role,
        event=optional_value(event),
        context=optional_value(context),
        compaction=compaction,
        receipt=optional_value(receipt) if compacted else None,
        kept=tuple((first, end) for first, end in value_of(kept_ranges)) if compacted else (),
        counter=messages[0].counter if messages else "",
        counts=tuple(one.tokens for one in messages),
        toolset=tuple(optional_value(tools) or ()),
        permissions=permissions_of(permissions),
        outcome=outcome_of(optional_value(outcome)),
        parent=parent,
    )


def receipt(
    connection: apsw.Connection, workspace: str, session: str, compaction: str | None
) -> StoredReceipt:
    """The receipt of a compaction, by default the last one of the session.

    If the session does not have the compaction, the other sessions of the workspace are searched.
    """
    if compaction is None:
        place = sessions.require(connection, workspace, session)
        last = _receipt_of(connection, session, place, None)
        if last is not None:
            return last
        raise LedgerError(f"The session {session!r} was never compacted.", code="unknown-compaction")
    holder = row(connection, _HOLDER, workspace, compaction)
    for name in (session, *(holder or ())):
        position = sessions.find(connection, workspace, name)
        stored = None if position is None else _receipt_of(connection, name, position, compaction)
        if stored is not None:
            return stored
    raise LedgerError(
        f"No session of {workspace} has the compaction {compaction!r}: it was deleted or cleared.",
        code="unknown-compaction",
    )


def _receipt_of(
    connection: apsw.Connection, session: str, place: SessionPosition, compaction: str | None
) -> StoredReceipt | None:
    for ids in reversed(turn_ranges(whole(connection, place))):
        row_of_compaction = row(connection, _RECEIPT, *ids, compaction)
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
