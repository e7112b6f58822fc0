"""Divides a file's text into passages, the units of search.

1. A heading begins a section: `#` and underlines in Markdown, underlines in reStructuredText, `=` in
   AsciiDoc. Plain text has none. There are no headings in fences or in the front matter of Markdown.
2. A section of at most LONGEST is one passage. A longer section is cut at blank lines into parts of similar
   size. A longer paragraph or fence is cut at its lines, and a longer line at white space.
3. A heading without text belongs to the deeper section that follows it.
4. After MOST_SECTIONS of a file, headings are ignored, because such a file is generated.
5. Passages are in order and do not overlap. Only white space belongs to no passage.
"""

import os
import re
from collections.abc import Iterator
from itertools import zip_longest

import msgspec

from nexus_context.errors import Span

LONGEST = 1_600
"""Code points of a passage: about 400 tokens of English."""

MOST_SECTIONS = 5_000
MARKDOWN = (".md", ".markdown", ".mdx", ".mdc")
_SHORTEST_RULE = 3  # characters of an underline in reStructuredText

_FENCE = re.compile(r"(?:[ \t]|>|[-*+][ \t]|\d{1,9}[.)][ \t])*(`{3,}(?=[^`]*$)|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)(.*)")
_SETEXT = re.compile(r" {0,3}(={2,}|-{3,})$")
_NO_TITLE = re.compile(r" {0,3}(?:[-*+>|]|\d{1,9}[.)])(?:\s|$)")
_ADOC = re.compile(r"(={1,6})[ \t]+(\S.*)$")
_ADOC_BLOCK = re.compile(r"(-{4,}|={4,}|\.{4,}|\*{4,}|_{4,}|\+{4,}|/{4,})$")
_RULE = re.compile(r"([!-/:-@\[-`{-~])\1*$")


class Chunk(msgspec.Struct, frozen=True):
    """A passage of a file: its `text` stands at `span`. `heading` are the titles above it, outermost
    first.
    """

    path: str
    heading: tuple[str, ...]
    span: Span
    text: str


class _Section(msgspec.Struct):
    """A heading and the paragraphs up to the next one; the heading's own lines are the first."""

    level: int
    heading: tuple[str, ...]
    blocks: list[Span]
    title_end: int  # where the heading's own lines end; 0 before the first heading


def chunks(path: str, text: str) -> list[Chunk]:
    """Return the passages of a text in order. The suffix of `path` determines the syntax of headings."""
    return [
        Chunk(path, section.heading, span, text[span.start : span.end])
        for section in _with_lone_headings(_Outline(path, text).sections())
        for span in _parts(text, section.blocks)
    ]


class _Outline:
    """Reads the lines of a text in order."""

    def __init__(self, path: str, text: str) -> None:
        suffix = os.path.splitext(path)[1].lower()
        self._text = text
        self._markdown = suffix in MARKDOWN
        self._rst = suffix == ".rst"
        self._adoc = suffix in (".adoc", ".asciidoc")
        self._sections = [_Section(0, (), [], 0)]
        self._above: list[tuple[int, str]] = []  # level and title of the open headings
        self._rules: list[tuple[str, bool]] = []  # underlines of reStructuredText, by level
        self._lines: list[Span] = []  # of the current paragraph, without line ends
        self._fence = ""

    def sections(self) -> list[_Section]:
        lines = self._text.splitlines(keepends=True)
        skipped = _front_matter(lines) if self._markdown else 0
        start = 0
        for number, line in enumerate(lines):
            bare = line.rstrip()
            if number == skipped:
                self._close()
            if bare:
                span = Span(start, start + len(bare))
                if number < skipped:
                    self._lines.append(span)
                else:
                    self._line(bare, span)
            elif not self._fence:
                self._close()
            start += len(line)
        self._close()
        return [section for section in self._sections if section.blocks]

    def _line(self, line: str, span: Span) -> None:
        if self._fence:
            mark = line.lstrip(" \t>")
            if len(mark) >= len(self._fence) and not mark.strip(self._fence[0]):
                self._fence = ""
                self._lines.append(span)
                self._close()
                return
        elif (opened := self._opens(line)) is not None:
            self._fence = opened
        elif len(self._sections) > MOST_SECTIONS:
            pass
        elif (heading := self._heading(line)) is not None:
            self._close()
            self._begin(*heading, span.end)
        elif (heading := self._underlined(line)) is not None:
            self._begin(*heading, span.end)
        self._lines.append(span)

    def _opens(self, line: str) -> str | None:
        if self._markdown:
            match = _FENCE.match(line) if "`" in line or "~" in line else None
        else:
            match = _ADOC_BLOCK.match(line) if self._adoc else None
        return match[1] if match else None

    def _heading(self, line: str) -> tuple[int, str] | None:
        """Level and title of a heading that is marked on its own line."""
        if self._markdown:
            match = _ATX.match(line) if "#" in line else None
        else:
            match = _ADOC.match(line) if self._adoc else None
        if match is None:
            return None
        title = match[2].strip()
        open_title = title.rstrip("#")  # `# Title #`, but not `# C#`
        return len(match[1]), open_title.strip() if open_title[-1:] in ("", " ", "\t") else title

    def _underlined(self, line: str) -> tuple[int, str] | None:
        """Level and title of a heading that this line underlines."""
        lines = self._lines
        if self._markdown and len(lines) == 1 and _SETEXT.match(line):
            title = self._text[lines[0].start : lines[0].end]
            return None if _NO_TITLE.match(title) else (1 if "=" in line else 2, title.strip())
        if self._rst and 1 <= len(lines) <= 2 and _RULE.match(line) and len(line) >= _SHORTEST_RULE:
            title = self._text[lines[-1].start : lines[-1].end]
            overline = self._text[lines[0].start : lines[0].end] if len(lines) == 2 else None
            if overline not in (None, line) or _RULE.match(title) or len(title.strip()) > len(line):
                return None
            rule = (line[0], overline is not None)
            if rule not in self._rules:
                self._rules.append(rule)
            return self._rules.index(rule) + 1, title.strip()
        return None

    def _begin(self, level: int, title: str, end: int) -> None:
        """Begin a section; pending lines belong to its heading."""
        while self._above and self._above[-1][0] >= level:
            self._above.pop()
        self._above.append((level, title))
        heading = tuple(outer_title for _, outer_title in self._above if outer_title)
        self._sections.append(_Section(level, heading, [], end))

    def _close(self) -> None:
        if self._lines:
            self._sections[-1].blocks.append(Span(self._lines[0].start, self._lines[-1].end))
            self._lines = []


def _front_matter(lines: list[str]) -> int:
    """The number of lines of front matter, between two lines `---`."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((at + 1 for at, line in enumerate(lines) if at and line.rstrip() in ("---", "...")), 0)


def _with_lone_headings(sections: list[_Section]) -> Iterator[_Section]:
    pending: list[Span] = []  # headings that wait for the next section
    for section, next_section in zip_longest(sections, sections[1:]):
        section.blocks[:0] = pending
        pending = []
        alone = section.blocks[-1].end <= section.title_end
        if alone and next_section is not None and next_section.level > section.level:
            pending = section.blocks
        else:
            yield section


def _parts(text: str, blocks: list[Span]) -> Iterator[Span]:
    """The spans of the passages of a section."""
    start, end = blocks[0].start, blocks[-1].end
    size = end - start
    if size <= LONGEST:
        yield Span(start, end)
        return
    like = size / -(-size // LONGEST)
    end = start
    for piece in (piece for block in blocks for piece in _pieces(text, block)):
        if end > start and (piece.end - start > LONGEST or end - start >= like):
            yield Span(start, end)
            start = piece.start
        end = piece.end
    yield Span(start, end)


def _pieces(text: str, block: Span) -> Iterator[Span]:
    """The units of a paragraph: all of it, else its lines, else parts of a line."""
    if block.end - block.start <= LONGEST:
        yield block
        return
    start = block.start
    for line in text[block.start : block.end].splitlines(keepends=True):
        bare = Span(start, start + len(line.rstrip()))
        start += len(line)
        while bare.end - bare.start > LONGEST:
            cut = _white(text, bare.start, bare.start + LONGEST)
            piece = text[bare.start : cut]
            yield Span(bare.start, bare.start + len(piece.rstrip()))
            remaining = text[cut : bare.end]
            bare = Span(bare.end - len(remaining.lstrip()), bare.end)
        if bare.end > bare.start:
            yield bare


def _white(text: str, start: int, end: int) -> int:
    """Where to cut a line: after its last space in this range, else at the end of the range."""
    body = start + len(text[start:end]) - len(text[start:end].lstrip())  # after its indentation
    return max(text.rfind(" ", body, end), text.rfind("\t", body, end)) + 1 or end
