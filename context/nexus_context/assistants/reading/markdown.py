"""Reads the Markdown of an instruction file as Claude Code does: front matter, comments, and imports.

1. Front matter is what stands between a first line `---` and the next `---`; it is not sent.
2. A block that begins with `<!--` at the top level loses its comments; if nothing else is in it, its line
   ends go, too. A comment within a paragraph, a list or another block of HTML stays. If any comment is
   removed, all line ends become LF.
3. An import is `@path` at the start of a text or after white space, outside of code and HTML. A path begins
   with `./`, `~/`, `/` or one of `A-Za-z0-9._-`; `#` ends it, and `\\ ` is a blank in it.
4. At most NOTE_LINES lines and NOTE_CHARACTERS of the index of its notes are sent. If there are more, a
   warning follows.

Source: Claude Code 2.1.330 itself. It parses Markdown with marked; constructs that nest more deeply than an
inline mark in a list are approximated here.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.errors import Span
from nexus_context.folder.prompt.markdown import code_ranges

WHITE_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What JavaScript trims, as the inside of a set."""

NOTE_LINES = 200
NOTE_CHARACTERS = 25_000

_TRIM_START = re.compile(rf"[{WHITE_SPACE}]+")
_TRIM_END = re.compile(rf"[{WHITE_SPACE}]+\Z")
_FRONT_MATTER = re.compile(rf"\ufeff?---[{WHITE_SPACE}]*\n([\s\S]*?)---[{WHITE_SPACE}]*\n?")
_COMMENT = re.compile(r"<!--[\s\S]*?-->")
_COMMENT_BLOCK = re.compile(r" {0,3}<!--[\s\S]*?-->[^\n]*(?:\n+|\Z)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])(?:( {1,4})(?! )|( )| *$)")
_RAW_HTML = re.compile(r" {0,3}<(script|pre|style|textarea)(?=[\s>]|$)", re.IGNORECASE)
_HTML = re.compile(
    r" {0,3}</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|"
    r"dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|"
    r"iframe|legend|li|link|main|menu|menuitem|meta|nav|noframes|ol|optgroup|option|p|param|section|summary|"
    r"table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?=\s|/?>|$)",
    re.IGNORECASE,
)
_INDENTED = re.compile(r"(?: {4}|\t)[^\n]*+(?:\n|\Z)(?:(?:[ \t]*+\n)*+(?: {4}|\t)[^\n]*+(?:\n|\Z))*+")
_IMPORT = re.compile(rf"(?:^|[{WHITE_SPACE}])@((?:[^{WHITE_SPACE}\\]|\\ )+)")
_BOUNDARY = re.compile(
    r"\*+|(?<![\w@/.-])_(?=\S)|(?<=[^\s_@])_(?![\w/.])|</?[A-Za-z][^<>\n]*>|\\[!-/:-@\[-`{-~]|\[|\]\([^()\n]*\)"
)
_STARTS = re.compile(r"[A-Za-z0-9._-]")


class Stripped(NamedTuple):
    """The text of a file that is sent. `changed` is true if anything of the file was removed."""

    text: str
    changed: bool


class ImportToken(NamedTuple):
    """An import `@path` in a text. `path` is the file name that it stands for."""

    path: str
    span: Span


def split_front_matter(text: str) -> tuple[str | None, str]:
    """Split a text into its front matter, None if it has none, and what follows that."""
    match = _FRONT_MATTER.match(text) if text.find("---", 3) >= 0 else None
    return (None, text) if match is None else (match[1], text[match.end() :])


def trim(text: str) -> str:
    """Return a text without white space at its ends, as JavaScript's `trim` does."""
    start = _TRIM_START.match(text)
    return _TRIM_END.sub("", text[start.end() :] if start else text)


def strip_comments(text: str) -> str:
    """Return a text without the comments that rule 2 removes."""
    if "<!--" not in text:
        return text
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    out, position = "", 0
    for block in (span for kind, span in _blocks(plain) if kind == "comment"):
        remaining_text = _COMMENT.sub("", plain[block.start : block.end])
        out += plain[position : block.start] + (remaining_text if trim(remaining_text) else "")
        position = block.end
    return text if position == 0 else out + plain[position:]


def import_tokens(text: str) -> list[ImportToken]:
    """List the imports in a text in their order. Of several with one path only the first is in the list."""
    tokens: dict[str, ImportToken] = {}
    for piece in _pieces(text):
        for match in _IMPORT.finditer(text[piece.start : piece.end]):
            path = match[1].partition("#")[0].replace("\\ ", " ")
            if path and _is_path(path):
                span = Span(piece.start + match.start(1) - 1, piece.start + match.end(1))
                tokens.setdefault(path, ImportToken(path, span))
    return list(tokens.values())


def shorten_notes(text: str) -> str:
    """Return the part of a trimmed index of notes that is sent. If the rest is cut off, Claude Code's warning
    follows.
    """
    lines, size = text.count("\n") + 1, len(text.encode("utf-16-le")) // 2
    too_many, too_large = lines > NOTE_LINES, size > NOTE_CHARACTERS
    if not (too_many or too_large):
        return text
    kept_text = "\n".join(text.split("\n")[:NOTE_LINES]) if too_many else text
    if len(kept_text) > NOTE_CHARACTERS:
        end = kept_text.rfind("\n", 0, NOTE_CHARACTERS + 1)
        kept_text = kept_text[: end if end > 0 else NOTE_CHARACTERS]
    whole_lines = kept_text.count("\n") + 1 if text[len(kept_text) : len(kept_text) + 1] == "\n" else 0
    next_line = claude_shortened(text[len(kept_text) + 1 :].partition("\n")[0].strip(), 80)
    cut_note = f"{lines - whole_lines} of {lines} lines were cut off, starting at line {whole_lines + 1}"
    cut_note += f' ("{next_line}")' if next_line else ""
    if not whole_lines:
        cut_note = f"everything after the first {len(kept_text)} characters of line 1 was cut off"
    amount = f"{lines} lines and {_size(size)}"
    if too_large and not too_many:
        amount = f"{_size(size)} (limit: {_size(NOTE_CHARACTERS)}) \u2014 index entries are too long"
    elif too_many and not too_large:
        amount = f"{lines} lines (limit: {NOTE_LINES})"
    return (
        f"{kept_text}\n\n> WARNING: MEMORY.md is {amount}. Only part of it was loaded: {cut_note}. Keep "
        "index entries to one line under ~200 chars; move detail into topic files."
    )


def claude_shortened(text: str, most_characters: int) -> str:
    """Shorten a text to `most_characters`, with an ellipsis. It is cut after a word if more than half of that
    length remains.
    """
    if len(text) <= most_characters:
        return text
    start = text[: most_characters - 1]
    end = re.search(r"\s\S*$", start)
    words = start[: end.start()].rstrip() if end else ""
    return (words if len(words) > most_characters / 2 else start.rstrip()) + "\u2026"


def _size(characters: int) -> str:
    kilobytes = f"{characters / 1024:.1f}".removesuffix(".0")
    return f"{characters} bytes" if characters < 1024 else f"{kilobytes}KB"


def _is_path(path: str) -> bool:
    if path.startswith(("./", "~/")):
        return True
    return path != "/" if path.startswith("/") else _STARTS.match(path) is not None


def _pieces(text: str) -> Iterator[Span]:
    """The stretches of a text between code, HTML and inline marks."""
    blocks = (span for kind, span in _blocks(text) if kind in ("html", "code"))  # those at the top level
    skipped = sorted([*code_ranges(text), *blocks])
    position = 0
    for start, end in [*skipped, (len(text), len(text))]:
        if start >= position:
            yield from _between_marks(text, position, start)
        position = max(position, end)


def _between_marks(text: str, start: int, end: int) -> Iterator[Span]:
    for mark in _BOUNDARY.finditer(text, start, end):
        if mark[0] == "[" and not re.compile(r"\[[^\[\]\n]*\]\(").match(text, mark.start()):
            continue  # not a link
        yield Span(start, mark.start())
        start = mark.end()
    yield Span(start, end)


def _blocks(text: str) -> Iterator[tuple[str, Span]]:
    """The blocks at the top level whose kind matters: comment, html, code, in order."""
    position, item, blank = 0, 0, True  # item: the indentation that continues a list, 0 outside
    while position < len(text):
        end = text.find("\n", position) + 1 or len(text)
        line = text[position:end].rstrip("\r\n")
        indent = len(line) - len(line.lstrip(" "))
        if not line.strip():
            position, blank = end, True
            continue
        if item and indent < item and (blank or _begins_block(line)):
            item = 0
        marker = _ITEM.match(line)
        if marker is not None:
            item = len(marker[0]) if marker[3] or marker[4] else len(marker[0]) + 1
        elif item and blank and indent >= item + 4:
            yield "code", Span(position, end)
        elif item == 0:
            block = _block_at(text, position, line, after_blank=blank)
            if block is not None:
                yield block
                position, blank = block[1].end, True
                continue
        fence = _FENCE.match(line.lstrip(" >") if item else line)
        if fence is not None and not (fence[1][0] == "`" and "`" in fence[2]):
            end = _fence_end(text, end, fence[1])
        position, blank = end, False


def _begins_block(line: str) -> bool:
    return any(begin.match(line) for begin in (_FENCE, _HTML, _RAW_HTML)) or line.lstrip(" ").startswith(
        ("<!--", "#", ">")
    )


def _block_at(text: str, position: int, line: str, *, after_blank: bool) -> tuple[str, Span] | None:
    comment = _COMMENT_BLOCK.match(text, position)
    if comment is not None:
        return "comment", Span(*comment.span())
    if line.lstrip(" ").startswith("<!--") and len(line) - len(line.lstrip(" ")) <= 3:
        return "html", Span(position, len(text))  # it is never closed
    raw = _RAW_HTML.match(line)
    if raw is not None:
        closing = re.compile(rf"</{raw[1]}>[^\n]*(?:\n|\Z)", re.IGNORECASE).search(text, position)
        return "html", Span(position, closing.end() if closing else len(text))
    if _HTML.match(line):
        blank = re.compile(r"\n[ \t]*(?:\n|\Z)").search(text, position)
        return "html", Span(position, blank.end() if blank else len(text))
    if after_blank and line.startswith(("    ", "\t")):
        match = _INDENTED.match(text, position)
        return None if match is None else ("code", Span(*match.span()))
    return None


def _fence_end(text: str, position: int, mark: str) -> int:
    """Where a fence ends that opened before `position`."""
    closing = re.compile(rf"^[ >]*{mark[0]}{{{len(mark)},}}[ \t]*\r?$", re.MULTILINE).search(text, position)
    if closing is None:
        return len(text)
    return text.find("\n", closing.end()) + 1 or len(text)
