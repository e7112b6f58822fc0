"""Finds the sentences of a Markdown text that tell a model something, with the headings above.

1. Front matter, fences, comments, indented code, headings, rows of tables, quotes (`>`), lines of HTML and
   those of licences are no statements.
2. A paragraph or a list item is cut into sentences: after `.`, `!` or `?` before a capital, and after short
   lines that are one below the other without marks.
3. A statement has the titles of the headings above it, and its leads: the list items that it is nested in,
   and the paragraph before its list, or the line before its paragraph, if that ends with a colon.
4. The key of a sentence is its text in lower case with one blank for each white space, without emphasis,
   backticks and the punctuation at the ends of words: equal for two sentences that differ in looks alone.
5. A text of more than LONGEST code points is not read: it would take a second.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from nexus_context.errors import Span
from nexus_context.folder.prompt.markdown import code_ranges

LONGEST = 200_000
MOST_TEXTS = 64
"""Texts whose statements are cached: all files but the edited one are the same on every keystroke."""
MOST_SENTENCES = 4096
"""Sentences of which something is cached: all but the edited one are the same, too."""

_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n|\Z)")
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(?:(?!---)[^\n]*\n){0,200}---[ \t]*(?:\r?\n|\Z)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)(.*)")
_TITLE = re.compile(r"^ {0,3}#[ \t]", re.MULTILINE)
_ITEM = re.compile(r"([ \t]*)(?:[-*+\u2022\u2013]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_SKIPPED = re.compile(r"[ \t]*(?:[|>]|</?[A-Za-z!][^>]*>[ \t]*$|\[[^\]]*\]:|(?:[-=*_][ \t]*){3,}$)")
_SIGNS_OF_SKIPPED = "|><[-=*_\t"
_LICENCE = re.compile(r"copyright|licen[sc]ed? (?:under|by)\b|spdx-|all rights reserved")
_SENTENCE_END = re.compile(
    r"([.!?][\"')\]*_`]{0,4})\s+(?=[\"'(\[*_`]{0,4}[A-Z\d\u00c0-\u00de])|([\u3002\uff01\uff1f])\s*(?=\S)"
)
_ABBREVIATIONS = ("e.g.", "i.e.", "vs.")
_SHORT_LINE = 60  # characters; a wrapped paragraph has longer ones
_UNDERSCORES = re.compile(r"__|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)")
_LINK = re.compile(r"\[([^\]\[\n]*)\]\([^()\s]*\)")
_PUNCTUATION = "\"'([.,;:!?)]\u201c\u201d\u2018\u2019\u3002"
_NO_PROSE = re.compile(
    r"``[^`]*``|`[^`]*`|\"[^\"]*\"|\u201c[^\u201d]*\u201d|\]\([^()\s]*\)|https?://\S+|\S*[/\\=(){}<>]\S*"
)
_MOST_LEADS = 6


class Statement(NamedTuple):
    """A sentence at a span of its file's text. `headings` and `leads` begin with the outermost one.

    The first of the headings is the title of the file. It is "" if the file has none, or several of the first
    level. `block` is the range of the sentence's paragraph or list item with its marks; `begins` is true for
    the first sentence of a block.
    """

    span: Span
    key: str
    block: Span
    begins: bool
    headings: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()


class _Block(NamedTuple):
    """A paragraph or a list item; its `lines` are without marks."""

    span: Span
    lines: Sequence[Span]
    headings: tuple[str, ...]
    leads: tuple[str, ...]


@lru_cache(maxsize=MOST_TEXTS)
def read_statements(text: str) -> tuple[Statement, ...]:
    """Return the statements of a text in order. Takes time in proportion to its length."""
    if len(text) > LONGEST:
        return ()
    return tuple(statement for block in _blocks(text) for statement in _statements(text, block))


def plain(text: str) -> str:
    """Return a text on one line, without emphasis and backticks."""
    text = text.replace("*", "").replace("`", "")
    if "_" in text:
        text = _UNDERSCORES.sub("", text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    return " ".join(text.split())


def prose(text: str) -> str:
    """Return the key of a sentence without its code, quoted words and addresses."""
    return _key(plain(_NO_PROSE.sub(" ", text)))


def _statements(text: str, block: _Block) -> Iterator[Statement]:
    for number, span in enumerate(_sentences(text, block.lines)):
        key = _sentence_key(text[span.start : span.end])
        if key:
            yield Statement(span, key, block.span, number == 0, headings=block.headings, leads=block.leads)


@lru_cache(maxsize=MOST_SENTENCES)
def _sentence_key(source: str) -> str:
    """The key of a sentence; empty for one of a licence."""
    key = _key(plain(source))
    return "" if _LICENCE.search(key) else key


def _key(sentence: str) -> str:
    words = (word.strip(_PUNCTUATION) for word in sentence.casefold().split())
    return " ".join(word for word in words if word)


def _sentences(text: str, lines: Sequence[Span]) -> Iterator[Span]:
    start = lines[0].start
    for number, line in enumerate(lines):
        for match in _SENTENCE_END.finditer(text, max(line.start, start), line.end):
            end = match.end(1) if match[1] else match.end(2)
            if not text.endswith(_ABBREVIATIONS, start, match.start() + 1):
                yield Span(start, end)
                start = match.end()
        following = lines[number + 1] if number + 1 < len(lines) else None
        if following is None or _ends_with(text, line, following):
            if start < line.end:
                yield Span(start, line.end)
            start = following.start if following is not None else line.end


def _ends_with(text: str, line: Span, following: Span) -> bool:
    """Whether a sentence ends with a line of a paragraph."""
    last_character, next_character = text[line.end - 1], text[following.start]
    begins = next_character.isupper() or not (next_character.isalnum() or next_character in "`\"'([*_&-")
    return (
        begins
        and last_character != ","
        and (last_character in ".!?:\u3002" or line.end - line.start < _SHORT_LINE)
    )


class _Reader:
    """The state between two lines: headings and list items above, and the block that is being gathered."""

    def __init__(self, text: str) -> None:
        self.has_title = len(_TITLE.findall(text)) == 1
        self.headings: list[tuple[int, str]] = []
        self.items: list[tuple[int, str]] = []
        self.lead = ""  # the last paragraph, if it ends with a colon
        self.follows_lead = False  # the paragraph that is being gathered stands right below it
        self.lines: list[Span] = []

    def take(self, text: str) -> Iterator[_Block]:
        """The block that ends here, if any."""
        if self.lines:
            headings = tuple(title for _, title in self.headings)
            if not self.has_title or not self.headings or self.headings[0][0] > 1:
                headings = ("", *headings)
            outer_items = self.items[:-1] if self.items else ()
            lead = (self.lead,) if self.lead and (self.items or self.follows_lead) else ()
            leads = (*lead, *(_title(item) for _, item in outer_items))[-_MOST_LEADS:]
            start = (
                max(text.rfind("\n", 0, self.lines[0].start), text.rfind("\r", 0, self.lines[0].start)) + 1
            )
            yield _Block(Span(start, self.lines[-1].end), self.lines, headings, leads)
            if not self.items:
                paragraph = plain(text[self.lines[-1].start : self.lines[-1].end])
                self.lead = paragraph if paragraph.endswith(":") else ""
            self.lines, self.follows_lead = [], False


def _blocks(text: str) -> Iterator[_Block]:
    masked = _masked(text)
    reader, was_blank = _Reader(masked), True
    for line, content in _lines(masked):
        blank = not content.strip()
        indent = _width(content)
        first_character = content[indent : indent + 1] if "\t" not in content else "\t"
        heading = _HEADING.match(content) if first_character == "#" else None
        item = _ITEM.match(content) if not first_character.isalpha() else None
        if blank or heading or (first_character in _SIGNS_OF_SKIPPED and _SKIPPED.match(content)):
            yield from reader.take(text)
            if heading:
                level, title = len(heading[1]), plain(heading[2].rstrip("# \t"))
                reader.headings = [outer for outer in reader.headings if outer[0] < level]
                reader.headings.append((level, title))
                reader.items, reader.lead = [], ""
        elif item:
            yield from reader.take(text)
            reader.items = [outer for outer in reader.items if outer[0] < indent]
            start = line.start + item.end()
            if start < line.end:
                reader.items.append((indent, text[start : line.end]))
                reader.lines = [Span(start, line.end)]
        elif reader.lines:
            if len(reader.lines) == 1 and not reader.items and masked.endswith(":", 0, reader.lines[0].end):
                yield from reader.take(text)
                reader.follows_lead = True
            reader.lines.append(_stripped(text, line))
        elif was_blank and indent >= 4 and not reader.items:
            pass  # indented code
        else:
            if indent == 0:
                reader.items = []
            reader.lines = [_stripped(text, line)]
        was_blank = blank
    yield from reader.take(text)


_title = lru_cache(maxsize=16)(plain)  # of the items that others are nested in


def _stripped(text: str, line: Span) -> Span:
    line_text = text[line.start : line.end]
    return Span(line.end - len(line_text.lstrip()), line.end)


def _width(content: str) -> int:
    """The columns of white space at the start of a line."""
    if "\t" in content:
        content = content.expandtabs(4)
    return len(content) - len(content.lstrip(" "))


def _lines(text: str) -> Iterator[tuple[Span, str]]:
    """The lines without white space at their ends."""
    for match in _LINE.finditer(text):
        content = match[0].rstrip()
        if match[0]:
            yield Span(match.start(), match.start() + len(content)), content


def _masked(text: str) -> str:
    """The text with blanks in place of front matter, fences and comments."""
    pieces: list[str] = []
    front_matter = _FRONT_MATTER.match(text)
    position = front_matter.end() if front_matter else 0
    pieces.append(_BLANKED.sub(" ", text[:position]))
    for start, end in code_ranges(text):
        if start >= position and _is_hidden(text, start, end):
            pieces += (text[position:start], _BLANKED.sub(" ", text[start:end]))
            position = end
    return "".join((*pieces, text[position:]))


_BLANKED = re.compile(r"[^\r\n]")


def _is_hidden(text: str, start: int, end: int) -> bool:
    """Whether a range of code is a fence or a comment, not a span within a sentence."""
    opening = text[start : min(end, start + 40)].lstrip(" \t>-*+0123456789.)")
    return opening.startswith(("```", "~~~", "<!--")) or text.find("\n\n", start, end) >= 0
