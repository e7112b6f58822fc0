"""Reads histories, turns, new messages and receipts of a thread.

1. A history is the summary of the compaction in force, the messages that it keeps, and all messages of
   queries after it. Without a compaction, it is all messages of queries.
2. With a limit, only both ends of the history are read. The size of the gap between them is computed from
   sums that turns carry. Neither end is much longer than the limit, whatever the conversation looks like.
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
    lineage = current_lineage(connection, position)
    in_force, undone, _ = state(connection, position)
    updated = value(connection, "SELECT updated FROM session WHERE id = ?", position.session)
    if in_force is not None:
        lead = _compacted(connection, lineage, position.head, in_force)
    elif tokens is not None:
        lead = _opening(connection, lineage, position.head, max(tokens, LONGEST_OPENING))
    else:
        summaries, cost = sessions.count_summaries(connection, lineage, 0)
        lead = _Lead([], 0, position.messages - summaries, position.tokens - cost)
    ranges_after_lead = message_ranges(lineage, lead.position)
    if tokens is None:
        stored_messages = _read_ranges(connection, _QUERIES, ranges_after_lead)
        if len(stored_messages) != lead.messages:
            raise DamagedError(f"it has {lead.messages} messages, but {len(stored_messages)} exist")
        messages = (*lead.stored, *stored_messages)
        return StoredHistory(position.head, messages, lead.compaction, undone, updated=updated)
    stored_messages = _tail(connection, ranges_after_lead, tokens)
    return StoredHistory(
        position.head,
        (*lead.stored, *stored_messages),
        lead.compaction,
        undone,
        updated=updated,
        lead=len(lead.stored),
        gap_messages=lead.messages - len(stored_messages),
        gap_tokens=lead.tokens - sum(stored.tokens for stored in stored_messages),
    )


def current_lineage(connection: apsw.Connection, position: SessionPosition) -> list[Segment]:
    """Return the segments of a session's thread. Raise DamagedError if the thread has more turns than its row
    says.
    """
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
    own_range = position.thread << SHIFT, (position.thread + 1) << SHIFT  # also without a turn of its own
    inherited_ranges = turn_ranges(segments(connection, position.thread)[:-1])
    for ids in (own_range, *reversed(inherited_ranges)):
        newest = row(connection, _NEWEST_FROZEN, *ids)
        if newest is not None:
            state: str | None = newest[0]
            return state
    return None


def turns(connection: apsw.Connection, lineage: list[Segment], after: int, until: int) -> list[Turn]:
    """Return the turns with `after` < seq <= `until`, oldest first."""
    rows = [
        columns for ids in turn_ranges(lineage, after, until) for columns in connection.execute(_TURNS, ids)
    ]
    messages = _of_turns(connection, lineage, after, until)
    keys = {segment.thread: segment.key for segment in lineage}
    parents = [
        _name_at(lineage, after),
        *(turn_name(keys[columns[0] >> SHIFT], columns[0] & _MASK) for columns in rows),
    ]
    return [
        _turn(columns, keys[columns[0] >> SHIFT], messages.get(columns[0] & _MASK, []), parent=parent)
        for columns, parent in zip(rows, parents, strict=False)
    ]


def _name_at(lineage: list[Segment], seq: int) -> str | None:
    """The id of the turn with this number; None for 0."""
    numbers = [ids.first for ids in turn_ranges(lineage, seq - 1, seq)] if seq else []
    keys = {segment.thread: segment.key for segment in lineage}
    return turn_name(keys[numbers[0] >> SHIFT], seq) if numbers else None


# ---------------------------------------------------------------- inside


def _compacted(connection: apsw.Connection, lineage: list[Segment], head: Head, in_force: int) -> _Lead:
    first_message, tokens_before, summary_tokens, name, kept_text = row(
        connection,
        "SELECT turn.first, turn.before, turn.tokens, name, kept FROM turn JOIN compaction ON turn = id"
        " WHERE id = ?",
        in_force,
    )
    ranges = message_ranges(lineage, first_message, first_message + 1)
    for start, end in value_of(kept_text):
        ranges += message_ranges(lineage, start, end)
    stored_messages = _read_ranges(connection, SELECTED + " ORDER BY id", ranges)
    stored_messages[:1] = [
        msgspec.structs.replace(stored_message, message=as_summary(stored_message.message))
        for stored_message in stored_messages[:1]
    ]
    messages = _without_old_preambles(stored_messages)
    summaries, cost = sessions.count_summaries(connection, lineage, in_force & _MASK)
    count = head.messages - first_message - 1 - summaries
    tokens = head.tokens - tokens_before - summary_tokens - cost
    return _Lead(messages, first_message + 1, count, tokens, compaction=name)


def _without_old_preambles(stored_messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Remove old preambles from the messages that a compaction keeps, as they are sent from then on.

    A changed message has no counter: callers that need its tokens count it.
    """
    messages = without_old_preambles(stored_message.message for stored_message in stored_messages)
    return [
        stored_message
        if stored_message.message is message
        else StoredMessage(stored_message.position, stored_message.tokens, "", message)
        for stored_message, message in zip(stored_messages, messages, strict=True)
    ]


def _opening(connection: apsw.Connection, lineage: list[Segment], head: Head, max_tokens: int) -> _Lead:
    """Read the messages before the first answer that begin within `max_tokens` tokens.

    Leading system messages count at any length.
    """
    rows: list[tuple[Any, ...]] = []
    position, total = head.messages, 0
    for columns in chain.from_iterable(connection.execute(_QUERIES, ids) for ids in message_ranges(lineage)):
        if columns[2] != "system" and (columns[2] != "user" or total >= max_tokens):
            position = columns[0] & _MASK
            break
        rows.append(columns)
        total += columns[3]
    messages = _read_rows(connection, rows)
    summaries, cost = sessions.count_summaries(connection, lineage, 0)
    count = head.messages - summaries - len(messages)
    return _Lead(
        messages,
        position,
        count,
        head.tokens - cost - sum(stored_message.tokens for stored_message in messages),
    )


def _tail(connection: apsw.Connection, ranges: list[Range], tokens_needed: int) -> list[StoredMessage]:
    """Read whole turns backwards until they have enough tokens; of a long turn only its end."""
    tail: list[StoredMessage] = []
    counters = _counters(connection)
    total, newer_turn = 0, None
    for ids in reversed(ranges):
        for columns in connection.execute(_BACKWARDS, ids):
            number, turn, tokens, counter = columns[0], columns[1], columns[3], columns[8]
            if total >= tokens_needed and (turn != newer_turn or total >= LONGEST_TURN * tokens_needed):
                return tail[::-1]
            total, newer_turn = total + tokens, turn
            tail.append(StoredMessage(number & _MASK, tokens, counters[counter], message_of(columns)))
    return tail[::-1]


def _read_ranges(connection: apsw.Connection, sql: str, ranges: Iterable[Range]) -> list[StoredMessage]:
    return _read_rows(connection, chain.from_iterable(connection.execute(sql, ids) for ids in ranges))


def _read_rows(connection: apsw.Connection, rows: Iterable[tuple[Any, ...]]) -> list[StoredMessage]:
    return read_messages(rows, _counters(connection))


def _counters(connection: apsw.Connection) -> dict[int, str]:
    return dict(connection.execute("SELECT id, name FROM counter"))


def _of_turns(
    connection: apsw.Connection, lineage: list[Segment], after: int, until: int
) -> dict[int, list[_TurnMessage]]:
    """Messages of the turns with `after` < seq <= `until`, by seq."""
    by_turn: dict[int, list[_TurnMessage]] = {}
    counters = _counters(connection)
    for ids in turn_ranges(lineage, after, until):
        first_message, end = row(connection, _SPAN, *ids)
        base = ids.first >> SHIFT << SHIFT
        rows = connection.execute(SELECTED + " ORDER BY id", (base + (first_message or 0), base + (end or 0)))
        for columns in rows:
            message = _TurnMessage(message_of(columns), columns[3], counters[columns[8]])
            by_turn.setdefault(columns[1], []).append(message)
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
        kept_text,
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
        messages=tuple(
            as_summary(turn_message.message) if compacted else turn_message.message
            for turn_message in messages
        ),
        first=first,
        model=model,
        role=role,
        event=optional_value(event),
        context=optional_value(context),
        compaction=compaction,
        receipt=optional_value(receipt) if compacted else None,
        kept=tuple((start, end) for start, end in value_of(kept_text)) if compacted else (),
        counter=messages[0].counter if messages else "",
        counts=tuple(turn_message.tokens for turn_message in messages),
        toolset=tuple(optional_value(tools) or ()),
        permissions=permissions_of(permissions),
        outcome=outcome_of(optional_value(outcome)),
        parent=parent,
    )


def receipt(
    connection: apsw.Connection, workspace: str, session: str, compaction: str | None
) -> StoredReceipt:
    """Return the receipt of a compaction, or of the session's last one if `compaction` is None.

    If the session does not have the compaction, the other sessions of the workspace are searched. Raise
    LedgerError, code `unknown-compaction`, if no session has it.
    """
    if compaction is None:
        session_position = sessions.require(connection, workspace, session)
        last_receipt = _receipt_of(connection, session, session_position, None)
        if last_receipt is not None:
            return last_receipt
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
    connection: apsw.Connection, session: str, position: SessionPosition, compaction: str | None
) -> StoredReceipt | None:
    for ids in reversed(turn_ranges(current_lineage(connection, position))):
        row_of_compaction = row(connection, _RECEIPT, *ids, compaction)
        if row_of_compaction is not None:
            turn, text = row_of_compaction
            return StoredReceipt(session, value_of(text), in_force=_is_in_force(connection, position, turn))
    return None


def _is_in_force(connection: apsw.Connection, position: SessionPosition, turn: int) -> bool:
    """Whether the compaction was not taken back: it is in force, or below the one in force."""
    compaction = state(connection, position).in_force
    while compaction is not None and compaction != turn:
        (compaction,) = row(connection, _BELOW, compaction)
    return compaction is not None
