"""Finds the turns and messages of a thread: ranges of ids in the thread itself and in the threads from which
it was forked.

A forked thread adds a segment where its parent's share ends. Finding the segments costs one look-up for each
fork, however many turns there are. A thread is always newer than its parent, so damage cannot make them a
circle.
"""

from typing import NamedTuple

import apsw

SHIFT = 32
PER_THREAD = 1 << SHIFT
"""Most turns, and most messages, of a thread."""

_WAY = """
WITH RECURSIVE way (depth, id, key, parent, base_seq, base_messages, end_seq, end_messages) AS (
    SELECT 0, id, key, parent, base_seq, base_messages, seq, messages FROM thread WHERE id = ?
    UNION ALL
    SELECT depth + 1, thread.id, thread.key, thread.parent, thread.base_seq, thread.base_messages,
        way.base_seq, way.base_messages
    FROM way JOIN thread ON thread.id = way.parent AND thread.id < way.id
)
SELECT id, key, base_seq, base_messages, end_seq, end_messages FROM way ORDER BY depth DESC
"""


class Segment(NamedTuple):
    """The part of a thread's history that is stored in one thread: in the thread itself or in an ancestor.

    It has the turns with `base_seq` < seq <= `end_seq`. It has the messages from the position `base_messages`
    up to, not including, `end_messages`.
    """

    thread: int
    key: str
    base_seq: int
    base_messages: int
    end_seq: int
    end_messages: int


class Range(NamedTuple):
    """A range of ids from `first` up to, not including, `end`."""

    first: int
    end: int


def segments(connection: apsw.Connection, thread: int) -> list[Segment]:
    """Return the segments of a thread, oldest first. The last one is the thread's own."""
    return [Segment(*row) for row in connection.execute(_WAY, (thread,))]


def turn_ranges(lineage: list[Segment], after: int = 0, until: int = PER_THREAD) -> list[Range]:
    """Return the ranges of ids of the turns with `after` < seq <= `until`, oldest first."""
    ranges = []
    for segment in lineage:
        first_seq, last_seq = max(segment.base_seq, after) + 1, min(segment.end_seq, until)
        if first_seq <= last_seq:
            ranges.append(
                Range((segment.thread << SHIFT) + first_seq, (segment.thread << SHIFT) + last_seq + 1)
            )
    return ranges


def message_ranges(lineage: list[Segment], start: int = 0, end: int = PER_THREAD) -> list[Range]:
    """Return the ranges of ids of the messages at the positions from `start` up to, not including, `end`,
    oldest first.
    """
    ranges = []
    for segment in lineage:
        range_start, range_end = max(segment.base_messages, start), min(segment.end_messages, end)
        if range_start < range_end:
            ranges.append(
                Range((segment.thread << SHIFT) + range_start, (segment.thread << SHIFT) + range_end)
            )
    return ranges


def turn_name(key: str, seq: int) -> str:
    """Return the public id of a turn. It consists of the key of its thread and its number."""
    return f"{key}-{seq}"


def split_name(turn: str) -> tuple[str, int] | None:
    """Return the thread key and the number in the public id of a turn. Return None if the id is invalid."""
    key, _, seq = turn.rpartition("-")
    return (key, int(seq)) if key and seq.isascii() and seq.isdigit() and len(seq) < 12 else None
