"""Markdown, as far as the prompt needs it: where code and comments are.

1. A fence opens with three or more backticks or tildes, also behind list and quote marks, and closes
   with at least as many of the same alone on a line; an open fence runs to the end.
2. A code span is a run of backticks up to the next run of the same length in the same paragraph.
3. A comment is `<!--` to `-->`.
"""

import bisect
import re

from nexus_context.errors import Span

_FENCE = re.compile(r"(?:[ \t]|>|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}(?=[^`]*$)|~{3,})")
_BACKTICKS = re.compile(r"`+")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")


def code_ranges(text: str) -> list[Span]:
    """Ranges of fences, code spans and comments, in order, without overlap. Linear in the text's length."""
    if "`" not in text and "~~~" not in text and "<!--" not in text:
        return []
    ranges: list[Span] = []
    for block in _blocks(text):
        if block.fenced:
            ranges.append(block.span)
        else:
            ranges.extend(_spans(text, block.span))
    return _with_comments(text, ranges)


class _Block:
    """A fence, or a paragraph: lines without a blank one."""

    __slots__ = ("fenced", "span")

    def __init__(self, span: Span, *, fenced: bool) -> None:
        self.span = span
        self.fenced = fenced


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    fence = ""  # the open fence's mark
    start = 0
    for match in _LINE.finditer(text):
        line = match[0].rstrip()
        if fence:
            if _closes(line, fence):
                blocks.append(_Block(Span(start, match.end()), fenced=True))
                fence, start = "", match.end()
            continue
        opening = _FENCE.match(line)
        if opening or not line:
            blocks.append(_Block(Span(start, match.start()), fenced=False))
            start = match.start()
            fence = opening[1] if opening else ""
    blocks.append(_Block(Span(start, len(text)), fenced=bool(fence)))
    return blocks


def _closes(line: str, fence: str) -> bool:
    mark = line.lstrip(" \t>")
    return len(mark) >= len(fence) and not mark.strip(fence[0])


def _spans(text: str, paragraph: Span) -> list[Span]:
    runs = [Span(*match.span()) for match in _BACKTICKS.finditer(text, *paragraph)]
    of_length: dict[int, list[int]] = {}
    for index, run in enumerate(runs):
        of_length.setdefault(run.end - run.start, []).append(index)
    spans: list[Span] = []
    index = 0
    while index < len(runs):
        run = runs[index]
        same = of_length[run.end - run.start]
        following = bisect.bisect_right(same, index)
        if following < len(same):
            index = same[following]
            spans.append(Span(run.start, runs[index].end))
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
