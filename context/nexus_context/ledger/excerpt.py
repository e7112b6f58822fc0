"""A page of a thread for people: every turn and message, whether compacted, sent or not.

1. A page is a range of positions: forwards from one, or backwards from one or from the end. It ends after
   `limit` messages or CHARACTERS of text, so that it costs what it holds, not what there is.
2. A turn that extends beyond the page is listed with the messages on the page.
3. A compaction lists the messages that its summary stands for: the history before it except what it keeps, in
   at most MOST_RANGES ranges.
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
from nexus_context.ledger.read_history import whole
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
    """The page; None if there is no such session.

    LedgerError `unknown-turn` for a thread that the session never had.
    """
    place = sessions.find(connection, workspace, session)
    if place is None:
        return None
    parts, is_current = _lineage(connection, place, thread)
    newest = parts[-1]
    rows = _page(connection, parts, first=first, before=before, limit=limit)
    return Excerpt(
        thread=newest.key,
        current=is_current,
        turns=newest.end_seq,
        messages=newest.end_messages,
        first=rows.first,
        end=rows.end,
        page=tuple(_turns(connection, parts, rows)),
        forked_from=value(connection, _ORIGIN, place.session),
    )


def _lineage(
    connection: apsw.Connection, place: SessionPosition, thread: str | None
) -> tuple[list[Segment], bool]:
    """The segments to read, and whether they are those of the current thread."""
    current = whole(connection, place)
    if thread is None or any(part.key == thread for part in current):
        return current, True
    number = value(connection, "SELECT id FROM thread WHERE key = ? AND session = ?", thread, place.session)
    if number is None:
        raise LedgerError(
            f"The session {place.name!r} has no turns of the thread {thread!r}.", code="unknown-turn"
        )
    return segments(connection, number), False


def _page(
    connection: apsw.Connection,
    parts: list[Segment],
    *,
    first: int | None,
    before: int | None,
    limit: int,
) -> _Rows:
    total = parts[-1].end_messages
    start = min(max(0, first or 0), total)
    end = min(total, total if before is None else max(before, start))
    forwards = first is not None
    ranges = message_ranges(parts, start, end)
    sql = SELECTED + (" ORDER BY id" if forwards else " ORDER BY id DESC")
    cursor = chain.from_iterable(
        connection.execute(sql, ids) for ids in (ranges if forwards else reversed(ranges))
    )
    rows = list(islice(_bounded(cursor), limit))
    if not forwards:
        rows.reverse()
    messages = read_messages(rows, dict(connection.execute(_COUNTERS)))
    return _Rows(
        messages, [each[1] for each in rows], messages[0].position if messages else start if forwards else end
    )


def _bounded(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    size = 0
    for each in rows:
        yield each
        size += len(each[5]) + len(each[6] or b"")
        if size >= CHARACTERS:
            return


def _turns(connection: apsw.Connection, parts: list[Segment], rows: _Rows) -> Iterator[ExcerptTurn]:
    after, until = _span(connection, parts, rows)
    keys = {part.thread: part.key for part in parts}
    turns = [each for ids in turn_ranges(parts, after, until) for each in connection.execute(_TURNS, ids)]
    summaries: list[int] = []
    if any(each[1] == "compaction" for each in turns):
        ranges = turn_ranges(parts, 0, until)
        summaries = [first for ids in ranges for (first,) in connection.execute(_SUMMARIES, ids)]
    messages: dict[int, list[StoredMessage]] = {}
    for seq, message in zip(rows.seqs, rows.messages, strict=True):
        messages.setdefault(seq, []).append(message)
    for each in turns:
        number, kind, first, count, created, model, context, name, receipt, kept_text, before, kept_before = (
            each
        )
        compacted = kind == "compaction"
        own_kept = _ranges(kept_text) if compacted else ()
        replaced = _history_before(first, before, _ranges(kept_before), summaries) if compacted else []
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


def _span(connection: apsw.Connection, parts: list[Segment], rows: _Rows) -> tuple[int, int]:
    """The turns of a page, as `after` < seq <= `until`. A turn without messages belongs to the one before."""
    newest = parts[-1]
    before = _seq_at(connection, parts, rows.first - 1)
    after = rows.seqs[0] - 1 if rows.seqs else before
    if rows.end >= newest.end_messages:
        return after, newest.end_seq
    last, next_seq = (rows.seqs or [before])[-1], _seq_at(connection, parts, rows.end)
    return after, next_seq - (last != next_seq)


def _seq_at(connection: apsw.Connection, parts: list[Segment], position: int) -> int:
    """The seq of the turn of the message at a position; 0 before the first."""
    for ids in message_ranges(parts, max(position, 0), position + 1):
        return int(row(connection, "SELECT turn FROM message WHERE id = ?", ids.first)[0])
    return 0


def _history_before(
    first: int, before: int | None, kept_before: Ranges, summaries: Sequence[int]
) -> list[tuple[int, int]]:
    """The history before a compaction at the position `first`.

    It is the summary at `before` with what was kept beside it, then everything except summaries.
    """
    start = 0 if before is None else before + 1
    index = bisect_left(summaries, start)
    others = [(position, position + 1) for position in summaries[index : index + MOST_SUMMARIES]]
    history = list(_without(((start, first),), others))
    if before is not None:
        history += [(before, before + 1), *kept_before]
    return _joined(history)


def _without(ranges: Iterable[tuple[int, int]], cuts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges minus others; both in ascending order."""
    for start, end in ranges:
        at = start
        for first, after in islice(cuts, max(bisect_right(cuts, (start, PER_THREAD)) - 1, 0), None):
            if first >= end:
                break
            if first > at:
                yield at, first
            at = max(at, after)
        if at < end:
            yield at, end


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order, adjacent ones merged."""
    joined: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((first, end))
    return joined


def _ranges(text: str | None) -> Ranges:
    return () if text is None else tuple((first, end) for first, end in value_of(text))
