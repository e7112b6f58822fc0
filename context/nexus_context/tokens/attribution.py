"""Divides the tokens of a text among its spans, so that the parts sum to its count exactly."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

from nexus_context.tokens import segments
from nexus_context.tokens.counter import AdditiveCounter, TokenCounter


def count_spans(counter: TokenCounter, text: str, cuts: Sequence[int]) -> tuple[int, ...]:
    """Return the tokens of each `text[cuts[i]:cuts[i + 1]]`. No count is negative, and they sum to
    `counter.count(text)`.

    `cuts` are offsets in code points, ascending from 0 to `len(text)`; otherwise it raises ValueError. A span
    that begins and ends where `segments.split` cuts the text has its own exact count. Elsewhere a token that
    straddles a cut belongs to one side, and the estimated count of a span can differ by one, depending on
    what precedes it.
    """
    marks = _marks(counter, text, cuts)
    if isinstance(counter, AdditiveCounter):
        marks = [counter.tokens(units) for units in marks]
    return tuple(b - a for a, b in pairwise(marks))


def span_units(counter: TokenCounter, text: str, cuts: Sequence[int]) -> tuple[int, ...]:
    """Return the units of each span, as `count_spans` measures them before rounding. `part_tokens` converts a
    sum of these units to tokens.
    """
    return tuple(b - a for a, b in pairwise(_marks(counter, text, cuts)))


def part_tokens(counter: TokenCounter, units: int) -> int:
    """Convert the units of a part of a text to tokens. The result does not depend on where the part stands.

    It is rounded down, so that parts never sum to more than the whole.
    """
    return counter.part_tokens(units) if isinstance(counter, AdditiveCounter) else units


def whole_tokens(counter: TokenCounter, units: int) -> int:
    """Convert the units of a whole text to tokens: the result equals `counter.count` of that text."""
    return counter.tokens(units) if isinstance(counter, AdditiveCounter) else units


def _marks(counter: TokenCounter, text: str, cuts: Sequence[int]) -> list[int]:
    """Units before each cut; for a counter that is not additive these are tokens."""
    if not cuts or cuts[0] != 0 or cuts[-1] != len(text) or any(a > b for a, b in pairwise(cuts)):
        raise ValueError(f"cuts must ascend from 0 to {len(text)}, the length of the text")
    if isinstance(counter, AdditiveCounter):
        return list(_cumulative(counter, text, cuts))
    return _scaled(counter.count, text, cuts, counter.count(text))


def _cumulative(counter: AdditiveCounter, text: str, cuts: Sequence[int]) -> Iterator[int]:
    """Units before each cut; never decreasing, and the last is the units of the whole text."""
    done = 0  # units of the segments before this one
    start = 0
    index = 0
    for segment in segments.split(text):
        end = start + len(segment)
        segment_units = counter.segment_units(segment)
        next_index = bisect_left(cuts, end, index)  # a cut at the end belongs to the next segment
        for units in _inside(
            counter, segment, [cut - start for cut in cuts[index:next_index]], segment_units
        ):
            yield done + units
        done += segment_units
        start, index = end, next_index
    yield from [done] * (len(cuts) - index)


def _inside(counter: AdditiveCounter, segment: str, offsets: Sequence[int], total: int) -> list[int]:
    """Units of `segment` before each offset, from 0 to `total`, never decreasing."""
    if len(segment) > _PREFIX_LIMIT:
        return _scaled(counter.segment_units, segment, [0, *offsets, len(segment)], total)[1:-1]
    units = (min(counter.segment_units(segment[:offset]), total) for offset in offsets)
    return list(accumulate(units, max))


def _scaled(count: Callable[[str], int], text: str, cuts: Sequence[int], total: int) -> list[int]:
    """Each span counted alone, summed up, and scaled so that the sum is `total`."""
    sums = [0, *accumulate(count(text[start:end]) for start, end in pairwise(cuts))]
    if not sums[-1]:
        return [0] * (len(cuts) - 1) + [total]
    return [partial_sum * total // sums[-1] for partial_sum in sums]


# Code points. Counting a prefix for each cut of a segment is quadratic in the cuts: longer segments
# count their spans alone instead.
_PREFIX_LIMIT = 16_384
