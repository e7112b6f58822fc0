"""Finds the headings of a Markdown text, each with the section below it."""

import re
from collections.abc import Iterator

import msgspec

from nexus_context.errors import Span
from nexus_context.folder.prompt.markdown import code_ranges

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?=[ \t]|$)([^\r\n]*)", re.MULTILINE)


class Heading(msgspec.Struct, frozen=True):
    """A line that begins with `#`, outside of code and comments. `level` is 1 to 6.

    `section` reaches from the line to the next heading of this level or above.
    """

    level: int
    title: str
    line: Span
    mark: int  # where its `#` stands
    section: Span


def find_headings(text: str) -> list[Heading]:
    """Return the headings in the order of the text."""
    matches = list(_outside_code(text))
    ends = [len(text)] * len(matches)
    open_numbers: list[int] = []
    for number, match in enumerate(matches):
        while open_numbers and len(matches[open_numbers[-1]][1]) >= len(match[1]):
            ends[open_numbers.pop()] = match.start()
        open_numbers.append(number)
    return [
        Heading(
            level=len(match[1]),
            title=match[2].strip().rstrip("#").rstrip(),
            line=Span(*match.span()),
            mark=match.start(1),
            section=Span(match.start(), end),
        )
        for match, end in zip(matches, ends, strict=True)
    ]


def _outside_code(text: str) -> Iterator[re.Match[str]]:
    """The matches of headings outside of code and comments."""
    code = code_ranges(text)
    index = 0
    for match in _HEADING.finditer(text):
        while index < len(code) and code[index].end <= match.start():
            index += 1
        if index == len(code) or code[index].start > match.start():
            yield match
