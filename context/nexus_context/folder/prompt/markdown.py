"""Finds code and comments in Markdown, as far as the prompt needs it.

1. A fence opens with three or more backticks or tildes, also behind list and quote marks, and closes with at
   least as many of the same alone on a line; an unclosed fence runs to the end.
2. A code span is a run of backticks up to the next run of the same length in the same paragraph.
3. A comment is `<!--` to `-->`.
"""

import re
from collections.abc import Iterator, Sequence

from nexus_context.errors import Span

# a line begins where the text does and after each line end; no match can begin within CR LF
_BEGINS, _ENDS = r"(?:(?<=\n)|(?<=\r)(?!\n)|\A)", r"(?=[\r\n]|\Z)"
_FENCE = re.compile(
    rf"{_BEGINS}(?:[ \t]|>|[-*+][ \t]|\d{{1,9}}[.)][ \t])*+(?:(`{{3,}})[^`\r\n]*+|(~{{3,}})[^\r\n]*+){_ENDS}"
)
_CLOSING = {
    mark: re.compile(rf"{_BEGINS}[ \t>]*+({mark}{{3,}}+)[^\S\r\n]*+(?:\r\n|\r|\n|\Z)") for mark in ("`", "~")
}
_BLANK_LINE = re.compile(r"(?:\n|\r(?!\n))[^\S\r\n]*+[\r\n]")  # with the line end before it
_MARKS = re.compile("```|~~~")
_LINE_END = re.compile(r"[\r\n]")
_BACKTICKS = re.compile(r"`+")


def code_ranges(text: str) -> list[Span]:
    """Return the ranges of fences, code spans and comments, in order, without overlap.

    Takes time in proportion to the text's length.
    """
    if "`" not in text and "~~~" not in text and "<!--" not in text:
        return []
    ranges: list[Span] = []
    position = 0  # end of the last fence
    for fence in _fences(text):
        ranges.extend(_spans_between(text, position, fence.start))
        ranges.append(fence)
        position = fence.end
    ranges.extend(_spans_between(text, position, len(text)))
    return _with_comments(text, ranges)


def _fences(text: str) -> Iterator[Span]:
    """Each fence, from its opening line to the end of its closing line."""
    opening = _opening(text, 0)
    while opening is not None:
        mark = opening[1] or opening[2]
        closings = _CLOSING[mark[0]].finditer(text, opening.end())
        closing = next((candidate for candidate in closings if len(candidate[1]) >= len(mark)), None)
        if closing is None:
            yield Span(opening.start(), len(text))
            return
        yield Span(opening.start(), closing.end())
        opening = _opening(text, closing.end())


def _opening(text: str, start: int) -> re.Match[str] | None:
    """As `_FENCE.search(text, start)`, but only on lines with such marks; `start` begins a line."""
    while True:
        marks = _MARKS.search(text, start)
        if marks is None:
            return None
        mark_position = marks.start()
        line = (
            max(text.rfind("\n", start, mark_position), text.rfind("\r", start, mark_position), start - 1) + 1
        )
        opening = _FENCE.match(text, line)
        if opening is not None:
            return opening
        line_end = _LINE_END.search(text, mark_position)
        if line_end is None:
            return None
        start = line_end.end()


def _spans_between(text: str, start: int, end: int) -> Iterator[Span]:
    """The code spans of the paragraphs between two fences."""
    if text.find("`", start, end) < 0:
        return
    runs: list[tuple[int, int]] = []
    for match in _BACKTICKS.finditer(text, start, end):
        previous_end, begin = runs[-1][1] if runs else start, match.start()
        one_line = text.find("\n", previous_end, begin) < 0 and text.find("\r", previous_end, begin) < 0
        if not one_line and _BLANK_LINE.search(text, previous_end, begin) is not None:
            yield from _spans(runs)
            runs = []
        runs.append(match.span())
    yield from _spans(runs)


def _spans(runs: Sequence[tuple[int, int]]) -> list[Span]:
    """The code spans of one paragraph, by its runs of backticks."""
    next_run = [0] * len(runs)  # the next run of the same length; 0: none
    of_length: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        start, end = runs[index]
        next_run[index] = of_length.get(end - start, 0)
        of_length[end - start] = index
    spans: list[Span] = []
    index = 0
    while index < len(runs):
        closing = next_run[index]
        if closing:
            spans.append(Span(runs[index][0], runs[closing][1]))
            index = closing
        index += 1
    return spans


def _with_comments(text: str, code: list[Span]) -> list[Span]:
    """The code ranges and the comments that start outside them; code within a comment is part of it."""
    ranges: list[Span] = []
    position = 0  # end of the last range
    last_close = text.rfind("-->")
    for span in [*code, Span(len(text), len(text))]:
        while (start := text.find("<!--", position, span.start)) >= 0 and start + 4 <= last_close:
            position = text.find("-->", start + 4) + 3
            ranges.append(Span(start, position))
        if position <= span.start < span.end:
            ranges.append(span)
            position = span.end
    return ranges
