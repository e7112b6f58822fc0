"""Histories, turns, and what came since: read from the ranges of a thread.

1. A history is the summary in force, what was kept, and all queries' messages behind the summary; else all
   queries' messages.
2. With a limit only both ends are read; what lies between follows from sums that turns carry. Neither end
   is much longer than the limit, whatever the conversation looks like.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

import apsw

from nexus_context.conversation.message import Message
from nexus_context.ledger import sessions
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
from nexus_context.ledger.records import Head, StoredHistory, StoredMessage, Turn
from nexus_context.ledger.rows import (
    SELECTED,
    DamagedError,
    message_of,
    optional_value,
    read_messages,
    value_of,
)
from nexus_context.ledger.sessions import SessionPosition
from nexus_context.ledger.sql import row, value
from nexus_context.ledger.turn_writer import state

BATCH = 200
"""Turns that are read at once."""
LONGEST_TURN = 2
"""Times the limit: a turn that is longer is not read to its beginning."""
LONGEST_OPENING = 8_000
"""Tokens of the messages before the first answer that are read, or the limit where that is more."""

_MASK = PER_THREAD - 1

_QUERIES = SELECTED + " AND summary = 0 ORDER BY id"
_BACKWARDS = _QUERIES + " DESC"

_SPAN = "SELECT min(first), max(first + messages) FROM turn WHERE id >= ? AND id < ?"
_TURNS = """
SELECT turn.id, turn.type, turn.messages, turn.created, turn.tokens, turn.model, turn.role,
    turn.event, turn.context, compaction.name, compaction.receipt, compaction.kept,
    turn.toolset, turn.permissions
FROM turn LEFT JOIN compaction ON compaction.turn = ifnull(turn.undoes, turn.id)
WHERE turn.id >= ? AND turn.id < ? ORDER BY turn.id
"""


class _Lead(NamedTuple):
    """What stands first in a history, and the position from which on queries' messages follow.

    `messages` and `tokens` are of the queries' messages from that position on.
    """

    held: list[StoredMessage]
    position: int
    messages: int
    tokens: int
    compaction: str | None = None


class _Said(NamedTuple):
    """A message of a turn."""

    message: Message
    tokens: int
    counter: str


def history(
    connection: apsw.Connection, workspace: str, session: str, tokens: int | None
) -> StoredHistory | None:
    known = sessions.find(connection, workspace, session)
    if known is None:
        return None
    parts = whole(connection, known)
    in_force, undone, _ = state(connection, known)
    if in_force is not None:
        lead = _compacted(connection, parts, known.head, in_force)
    elif tokens is not None:
        lead = _opening(connection, parts, known.head, max(tokens, LONGEST_OPENING))
    else:
        summaries, cost = sessions.count_summaries(connection, parts, 0)
        lead = _Lead([], 0, known.messages - summaries, known.tokens - cost)
    rest = message_ranges(parts, lead.position)
    if tokens is None:
        read = _held(connection, _QUERIES, rest)
        if len(read) != lead.messages:
            raise DamagedError(f"it has {lead.messages} messages, and {len(read)} are there")
        return StoredHistory(known.head, (*lead.held, *read), lead.compaction, undone)
    read = _tail(connection, rest, tokens)
    return StoredHistory(
        known.head,
        (*lead.held, *read),
        lead.compaction,
        undone,
        lead=len(lead.held),
        gap_messages=lead.messages - len(read),
        gap_tokens=lead.tokens - sum(held.tokens for held in read),
    )


def whole(connection: apsw.Connection, known: SessionPosition) -> list[Segment]:
    """The segments of a session's thread. DamagedError where there is more than it says."""
    behind = (known.thread << SHIFT) + known.seq, (known.thread + 1) << SHIFT
    if value(connection, "SELECT 1 FROM turn WHERE id > ? AND id < ? LIMIT 1", *behind):
        raise DamagedError(f"it has {known.seq} turns, and more are there")
    return segments(connection, known.thread)


def since(
    connection: apsw.Connection, workspace: str, session: str, head: Head
) -> tuple[StoredMessage, ...] | None:
    known = sessions.find(connection, workspace, session)
    if known is None or known.key != head.thread or head.seq > known.seq:
        return None
    parts = segments(connection, known.thread)
    for ids in turn_ranges(parts, head.seq):
        sql = "SELECT 1 FROM turn WHERE id >= ? AND id < ? AND type != 'query' LIMIT 1"
        if connection.execute(sql, ids).fetchone():
            return None
    return tuple(_held(connection, _QUERIES, message_ranges(parts, head.messages)))


def turns(connection: apsw.Connection, parts: list[Segment], after: int, until: int) -> list[Turn]:
    """The turns with `after` < seq <= `until`."""
    rows = [each for ids in turn_ranges(parts, after, until) for each in connection.execute(_TURNS, ids)]
    messages = _of_turns(connection, parts, after, until)
    keys = {part.thread: part.key for part in parts}
    return [_turn(each, keys[each[0] >> SHIFT], messages.get(each[0] & _MASK, [])) for each in rows]


# ---------------------------------------------------------------- inside


def _compacted(connection: apsw.Connection, parts: list[Segment], head: Head, in_force: int) -> _Lead:
    first, before, own, name, kept = row(
        connection,
        "SELECT turn.first, turn.before, turn.tokens, name, kept FROM turn JOIN compaction ON turn = id"
        " WHERE id = ?",
        in_force,
    )
    ranges = message_ranges(parts, first, first + 1)
    for start, end in value_of(kept):
        ranges += message_ranges(parts, start, end)
    held = _held(connection, SELECTED + " ORDER BY id", ranges)
    summaries, cost = sessions.count_summaries(connection, parts, in_force & _MASK)
    count = head.messages - first - 1 - summaries
    return _Lead(held, first + 1, count, head.tokens - before - own - cost, name)


def _opening(connection: apsw.Connection, parts: list[Segment], head: Head, most: int) -> _Lead:
    """The messages before the first answer, as far as they begin within `most` tokens."""
    rows: list[tuple[Any, ...]] = []
    position, total = head.messages, 0
    for each in chain.from_iterable(connection.execute(_QUERIES, ids) for ids in message_ranges(parts)):
        if each[2] not in ("user", "system") or total >= most:
            position = each[0] & _MASK
            break
        rows.append(each)
        total += each[3]
    held = _all_held(connection, rows)
    summaries, cost = sessions.count_summaries(connection, parts, 0)
    count = head.messages - summaries - len(held)
    return _Lead(held, position, count, head.tokens - cost - sum(one.tokens for one in held))


def _tail(connection: apsw.Connection, ranges: list[Range], wanted: int) -> list[StoredMessage]:
    """Messages of whole turns from the end, until they have so many tokens; of a very long turn its end."""
    found: list[StoredMessage] = []
    counters = _counters(connection)
    total, last = 0, None
    for ids in reversed(ranges):
        for number, turn, role, tokens, length, said, data, crc, counter in connection.execute(
            _BACKWARDS, ids
        ):
            if total >= wanted and (turn != last or total >= LONGEST_TURN * wanted):
                return found[::-1]
            total, last = total + tokens, turn
            message = message_of(number, turn, role, tokens, length, said, data, crc)
            found.append(StoredMessage(number & _MASK, tokens, counters[counter], message))
    return found[::-1]


def _held(connection: apsw.Connection, sql: str, ranges: Iterable[Range]) -> list[StoredMessage]:
    return _all_held(connection, chain.from_iterable(connection.execute(sql, ids) for ids in ranges))


def _all_held(connection: apsw.Connection, rows: Iterable[tuple[Any, ...]]) -> list[StoredMessage]:
    return read_messages(rows, _counters(connection))


def _counters(connection: apsw.Connection) -> dict[int, str]:
    return dict(connection.execute("SELECT id, name FROM counter"))


def _of_turns(
    connection: apsw.Connection, parts: list[Segment], after: int, until: int
) -> dict[int, list[_Said]]:
    """Messages of the turns with `after` < seq <= `until`, by seq."""
    found: dict[int, list[_Said]] = {}
    counters = _counters(connection)
    for ids in turn_ranges(parts, after, until):
        first, end = row(connection, _SPAN, *ids)
        base = ids.first >> SHIFT << SHIFT
        rows = connection.execute(SELECTED + " ORDER BY id", (base + (first or 0), base + (end or 0)))
        for each in rows:
            held = _Said(message_of(*each[:8]), each[3], counters[each[8]])
            found.setdefault(each[1], []).append(held)
    return found


def _turn(found: tuple[Any, ...], key: str, said: list[_Said]) -> Turn:
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
        kept,
        tools,
        may,
    ) = found
    seq = number & _MASK
    if len(said) != count:
        raise DamagedError(f"the turn {seq} has {count} messages, and {len(said)} are there")
    compacted = kind == "compaction"
    return Turn(
        id=turn_name(key, seq),
        seq=seq,
        type=kind,
        created=created,
        tokens=tokens,
        messages=tuple(one.message for one in said),
        model=model,
        role=role,
        event=optional_value(event),
        context=optional_value(context),
        compaction=compaction,
        receipt=optional_value(receipt) if compacted else None,
        kept=tuple((first, end) for first, end in value_of(kept)) if compacted else (),
        counter=said[0].counter if said else "",
        counts=tuple(one.tokens for one in said),
        toolset=tuple(optional_value(tools) or ()),
        permissions=may,
    )
