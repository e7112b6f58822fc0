"""Reads a page of a thread for people: every turn and message, whether it is still sent or was compacted.

1. A page is a range of positions: forwards from a position, or backwards from a position or from the end. It
   ends after `limit` messages or CHARACTERS of text, so that its cost depends on its own size, not on the
   size of the thread.
2. A turn that extends beyond the page is listed with the messages on the page.
3. A compaction lists the messages that its summary replaces: the history before it, except the messages that
   it keeps. The list has at most MOST_RANGES ranges.
4. Turns from before a session was cleared can be read by the id of their thread.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import apsw

from nexus_context.ledger import sessions
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import (
    PER_THREAD,
    SHIFT,
    Segment,
    message_ranges,
    segments,
    turn_name,
    turn_ranges,
)
from nexus_context.ledger.read_history import current_lineage
from nexus_context.ledger.records import Excerpt, ExcerptTurn, Ranges, StoredMessage
from nexus_context.ledger.rows import SELECTED, optional_value, read_messages, row, value, value_of
from nexus_context.ledger.sessions import SessionPosition

CHARACTERS = 1_000_000
"""Characters of a page after which it takes no further message."""
MOST_RANGES = 100
MOST_SUMMARIES = 1_000
"""Most undone summaries that are left out of a range."""

_MASK = PER_THREAD - 1

_TURNS = """
SELECT turn.id, turn.type, turn.first, turn.messages, turn.created, turn.model, turn.context,
    compaction.name, compaction.receipt, compaction.kept, before.first, below.kept
FROM turn LEFT JOIN compaction ON compaction.turn = ifnull(turn.undoes, turn.id)
LEFT JOIN compaction AS below ON below.turn = compaction.below
LEFT JOIN turn AS before ON before.id = compaction.below
WHERE turn.id >= ? AND turn.id < ? ORDER BY turn.id
"""
_SUMMARIES = """
SELECT turn.first FROM compaction JOIN turn ON turn.id = compaction.turn
WHERE compaction.turn >= ? AND compaction.turn < ? ORDER BY compaction.turn
"""
_COUNTERS = "SELECT id, name FROM counter"
_ORIGIN = """
SELECT origin.name FROM session JOIN session AS origin ON origin.id = session.forked_from WHERE session.id = ?
"""


class _Rows(NamedTuple):
    """The messages of a page, the seq of the turn of each, and the first position."""

    messages: list[StoredMessage]
    seqs: list[int]
    first: int

    @property
    def end(self) -> int:
        return self.first + len(self.messages)


def excerpt(
    connection: apsw.Connection,
    workspace: str,
    session: str,
    *,
    thread: str | None = None,
    first: int | None = None,
    before: int | None = None,
    limit: int,
) -> Excerpt | None:
    """Return a page of a session. Return None if there is no such session.

    The page begins at the position `first`, or ends before the position `before` or at the end. Raise
    LedgerError, code `unknown-turn`, for a `thread` that the session never had.
    """
    position = sessions.find(connection, workspace, session)
    if position is None:
        return None
    lineage, is_current = _lineage(connection, position, thread)
    newest_segment = lineage[-1]
    rows = _page(connection, lineage, first=first, before=before, limit=limit)
    return Excerpt(
        thread=newest_segment.key,
        current=is_current,
        turns=newest_segment.end_seq,
        messages=newest_segment.end_messages,
        first=rows.first,
        end=rows.end,
        page=tuple(_turns(connection, lineage, rows)),
        forked_from=value(connection, _ORIGIN, position.session),
    )


def _lineage(
    connection: apsw.Connection, position: SessionPosition, thread: str | None
) -> tuple[list[Segment], bool]:
    """The segments to read, and whether they are those of the current thread."""
    current = current_lineage(connection, position)
    if thread is None or any(segment.key == thread for segment in current):
        return current, True
    number = value(
        connection, "SELECT id FROM thread WHERE key = ? AND session = ?", thread, position.session
    )
    if number is None:
        raise LedgerError(
            f"The session {position.name!r} has no turns of the thread {thread!r}.", code="unknown-turn"
        )
    return segments(connection, number), False


def _page(
    connection: apsw.Connection,
    lineage: list[Segment],
    *,
    first: int | None,
    before: int | None,
    limit: int,
) -> _Rows:
    total_messages = lineage[-1].end_messages
    start = min(max(0, first or 0), total_messages)
    end = min(total_messages, total_messages if before is None else max(before, start))
    forwards = first is not None
    ranges = message_ranges(lineage, start, end)
    sql = SELECTED + (" ORDER BY id" if forwards else " ORDER BY id DESC")
    cursor = chain.from_iterable(
        connection.execute(sql, ids) for ids in (ranges if forwards else reversed(ranges))
    )
    rows = list(islice(_bounded(cursor), limit))
    if not forwards:
        rows.reverse()
    messages = read_messages(rows, dict(connection.execute(_COUNTERS)))
    return _Rows(
        messages,
        [columns[1] for columns in rows],
        messages[0].position if messages else start if forwards else end,
    )


def _bounded(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    size = 0
    for columns in rows:
        yield columns
        size += len(columns[5]) + len(columns[6] or b"")
        if size >= CHARACTERS:
            return


def _turns(connection: apsw.Connection, lineage: list[Segment], rows: _Rows) -> Iterator[ExcerptTurn]:
    after, until = _span(connection, lineage, rows)
    keys = {segment.thread: segment.key for segment in lineage}
    turns = [
        columns for ids in turn_ranges(lineage, after, until) for columns in connection.execute(_TURNS, ids)
    ]
    summaries: list[int] = []
    if any(columns[1] == "compaction" for columns in turns):
        ranges = turn_ranges(lineage, 0, until)
        summaries = [
            summary_position for ids in ranges for (summary_position,) in connection.execute(_SUMMARIES, ids)
        ]
    messages: dict[int, list[StoredMessage]] = {}
    for seq, message in zip(rows.seqs, rows.messages, strict=True):
        messages.setdefault(seq, []).append(message)
    for columns in turns:
        (
            number,
            kind,
            first,
            count,
            created,
            model,
            context,
            name,
            receipt,
            kept_text,
            summary_before,
            kept_before,
        ) = columns
        compacted = kind == "compaction"
        own_kept = _ranges(kept_text) if compacted else ()
        replaced = (
            _history_before(first, summary_before, _ranges(kept_before), summaries) if compacted else []
        )
        folded = _without(replaced, own_kept)
        yield ExcerptTurn(
            id=turn_name(keys[number >> SHIFT], number & _MASK),
            seq=number & _MASK,
            type=kind,
            created=created,
            first=first,
            messages=count,
            stored=tuple(messages.get(number & _MASK, ())),
            model=model,
            context=optional_value(context),
            compaction=name,
            receipt=optional_value(receipt) if compacted else None,
            kept=own_kept,
            folded=tuple(islice(folded, MOST_RANGES)),
        )


def _span(connection: apsw.Connection, lineage: list[Segment], rows: _Rows) -> tuple[int, int]:
    """The turns of a page, as `after` < seq <= `until`. A turn without messages belongs to the one before."""
    newest_segment = lineage[-1]
    seq_before_page = _seq_at(connection, lineage, rows.first - 1)
    after = rows.seqs[0] - 1 if rows.seqs else seq_before_page
    if rows.end >= newest_segment.end_messages:
        return after, newest_segment.end_seq
    last_seq, next_seq = (rows.seqs or [seq_before_page])[-1], _seq_at(connection, lineage, rows.end)
    return after, next_seq - (last_seq != next_seq)


def _seq_at(connection: apsw.Connection, lineage: list[Segment], position: int) -> int:
    """The seq of the turn of the message at a position; 0 before the first."""
    for ids in message_ranges(lineage, max(position, 0), position + 1):
        return int(row(connection, "SELECT turn FROM message WHERE id = ?", ids.first)[0])
    return 0


def _history_before(
    compaction_position: int, summary_before: int | None, kept_before: Ranges, summaries: Sequence[int]
) -> list[tuple[int, int]]:
    """The history before the compaction at `compaction_position`.

    It is the earlier summary, at `summary_before`, with what was kept beside it, then all later messages
    except summaries.
    """
    start = 0 if summary_before is None else summary_before + 1
    index = bisect_left(summaries, start)
    summary_ranges = [(position, position + 1) for position in summaries[index : index + MOST_SUMMARIES]]
    history = list(_without(((start, compaction_position),), summary_ranges))
    if summary_before is not None:
        history += [(summary_before, summary_before + 1), *kept_before]
    return _joined(history)


def _without(ranges: Iterable[tuple[int, int]], cuts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges minus others; both in ascending order."""
    for start, end in ranges:
        at = start
        for cut_start, cut_end in islice(cuts, max(bisect_right(cuts, (start, PER_THREAD)) - 1, 0), None):
            if cut_start >= end:
                break
            if cut_start > at:
                yield at, cut_start
            at = max(at, cut_end)
        if at < end:
            yield at, end


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order, adjacent ones merged."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def _ranges(text: str | None) -> Ranges:
    return () if text is None else tuple((start, end) for start, end in value_of(text))
