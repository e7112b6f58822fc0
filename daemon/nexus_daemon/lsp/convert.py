"""Convert between LSP and Nexus: URI ↔ path, position ↔ offset, span → range, Problem → diagnostic.

1. Nexus counts code points. LSP counts lines, which end only with \\n, \\r\\n or \\r, and units of the
   negotiated position encoding: utf-8 bytes, utf-16 code units or utf-32.
2. A character past the end of its line is clamped to the line's end, a line past the last one to the text's
   end.
3. A position inside a character (half a surrogate pair) is clamped to the start of that character.
"""

import functools
import os
from collections import ChainMap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, unquote_to_bytes

import msgspec

from nexus_context.config.overridden import OVERRIDDEN
from nexus_context.errors import Problem, Span
from nexus_context.text.lines import LineIndex
from nexus_daemon.protocol.shapes import Location, Position, Range

SOURCE = "nexus"
UNNECESSARY = 1  # of `DiagnosticTag`: an editor greys the text out
COUNTED = 8  # positions in a file that are cheaper to count than an index of its lines


class HasTexts(Protocol):
    """The part of a snapshot that `Locator` needs: `texts`, absolute path → decoded text."""

    @property
    def texts(self) -> Mapping[str, str]: ...


# ---------------------------------------------------------------- URIs


def uri_to_path(uri: str, *, windows: bool = os.name == "nt") -> str | None:
    """Return the absolute path of a file URI, without a slash at the end. None for any other URI.

    A host means a UNC path on Windows. Elsewhere it means another machine, and the result is None. Bytes that
    are not UTF-8 become surrogates, as `os.fsdecode` makes them.
    """
    scheme, _, hierarchical_part = uri.partition(":")
    if scheme.lower() != "file" or not hierarchical_part.startswith("/"):
        return None
    host, path = "", hierarchical_part
    if hierarchical_part.startswith("//"):
        host, slash, path = hierarchical_part[2:].partition("/")
        path = slash + path
    path = unquote_to_bytes(path).decode("utf-8", "surrogateescape")
    if not path or "\0" in path:
        return None
    if windows:
        return _windows_path(host, path)
    if host and host.lower() != "localhost":
        return None
    return path.rstrip("/") or "/"


@functools.lru_cache(maxsize=4096)
def path_to_uri(path: str, *, windows: bool = os.name == "nt") -> str:
    """Return the file URI of an absolute path, escaped as VS Code does: all but A-Z a-z 0-9 - . _ ~ /."""
    if windows:
        path = path.replace("\\", "/")
        if path.startswith("//"):
            return "file:" + _escape(path)
        path = "/" + path[:1].lower() + path[1:]
    return "file://" + _escape(path)


def _escape(path: str) -> str:
    return quote(path.encode("utf-8", "surrogateescape"), safe="/")


def _windows_path(host: str, path: str) -> str | None:
    path = path.replace("/", "\\")
    if host and host.lower() != "localhost":
        return f"\\\\{host}{path}".rstrip("\\")
    drive = path[1:3]
    if len(drive) != 2 or not drive[0].isalpha() or drive[1] not in ":|":
        return None
    return f"{drive[0].upper()}:\\{path[3:].strip(chr(92))}"


# ---------------------------------------------------------------- positions


def column_units(prefix: str, encoding: str) -> int:
    """Return how many units of `encoding` the start of a line takes."""
    if encoding == "utf-32" or prefix.isascii():
        return len(prefix)
    codec, width = _codec(encoding)
    return len(prefix.encode(codec, "replace")) // width


def column_offset(line: str, units: int, encoding: str) -> int:
    """Return how many code points of `line` come before the unit `units`, at most all.

    `line` has no line end.
    """
    prefix = line[: max(units, 0)]
    if encoding == "utf-32" or prefix.isascii():
        return len(prefix)
    codec, width = _codec(encoding)
    # "replace": a lone surrogate counts as one unit; "ignore": a character cut in two stays out
    return len(prefix.encode(codec, "replace")[: units * width].decode(codec, "ignore"))


def _codec(encoding: str) -> tuple[str, int]:
    return ("utf-8", 1) if encoding == "utf-8" else ("utf-16-le", 2)


def position_at(index: LineIndex, offset: int, encoding: str) -> Position:
    """Return the LSP position of a code-point offset."""
    line, column = index.position(offset)
    if column and encoding != "utf-32" and not index.text.isascii():
        column = column_units(index.line(line)[:column], encoding)
    return Position(line=line, character=column)


def offset_at(index: LineIndex, line: int, character: int, encoding: str) -> int:
    """Return the code-point offset of an LSP position.

    Positions outside the text are clamped (rules 2 and 3).
    """
    if line < 0:
        return 0
    if line >= index.count:
        return index.offset(index.count, 0)
    return index.offset(line, column_offset(index.line(line), character, encoding))


def _count_out(text: str, offset: int, encoding: str) -> Position:
    """`position_at` for a text without \\r."""
    offset = min(max(offset, 0), len(text))
    start = text.rfind("\n", 0, offset) + 1
    column = offset - start if text.isascii() else column_units(text[start:offset], encoding)
    return Position(line=text.count("\n", 0, offset), character=column)


def range_of(index: LineIndex, span: Span, encoding: str) -> Range:
    """Return the LSP range of a span."""
    return Range(start=position_at(index, span.start, encoding), end=position_at(index, span.end, encoding))


# ---------------------------------------------------------------- values of the library


class Texts(NamedTuple):
    """The texts of a locator, by path. In a file without a text, all positions are the start of the file."""

    texts: Mapping[str, str] = MappingProxyType({})


class Locator:
    """Converts positions in one snapshot's files for a client.

    The first few positions in a file are counted without an index; for more, a line index is built and
    stored.
    """

    def __init__(
        self, snapshot: HasTexts, encoding: str, unsaved: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """`unsaved` has the client's texts by path. A text may begin with a byte order mark, which counts as
        a character.
        """
        self._texts = snapshot.texts
        self._encoding = encoding
        self._unsaved = unsaved
        self._indexes: dict[str, LineIndex] = {}
        self._counted: dict[str, int] = {}
        self._other: tuple[str, LineIndex] | None = None

    def beside(self, texts: Mapping[str, str]) -> "Locator":
        """Return a locator that also knows `texts`. The snapshot's own texts take precedence."""
        return Locator(Texts(ChainMap(dict(self._texts), dict(texts))), self._encoding, self._unsaved)

    def uri(self, path: str) -> str:
        return path_to_uri(path)

    def index(self, path: str) -> LineIndex:
        """Return the line index of a file, or of an empty text if the snapshot has not read it."""
        index = self._indexes.get(path)
        if index is None:
            index = self._indexes[path] = LineIndex(self._texts.get(path) or "")
        return index

    def text(self, path: str) -> str:
        """Return the text of a file, or an empty text if the snapshot has not read it."""
        return self._texts.get(path) or ""

    def offset(self, path: str, position: Position) -> int:
        """Return the code-point offset of the client's position in a file."""
        character = position.character - (self._mark(path) if position.line == 0 else 0)
        return offset_at(self.index(path), position.line, character, self._encoding)

    def span(self, path: str, range_: Range) -> Span:
        """Return the span of the client's range in a file."""
        return Span(self.offset(path, range_.start), self.offset(path, range_.end))

    def range(self, path: str, span: Span) -> Range:
        """Return the client's range of a span in a file."""
        client_range = self._range(path, span)
        mark = self._mark(path)
        if not mark:
            return client_range
        start, end = (
            msgspec.structs.replace(position, character=position.character + mark * (position.line == 0))
            for position in (client_range.start, client_range.end)
        )
        return Range(start=start, end=end)

    def _mark(self, path: str) -> int:
        """The units of a byte order mark in the client's text."""
        has_mark = self._unsaved.get(path, "").startswith("\ufeff")
        return column_units("\ufeff", self._encoding) if has_mark else 0

    def _range(self, path: str, span: Span) -> Range:
        range_count = self._counted.get(path, 0)
        text = self._texts.get(path) or ""
        if range_count >= COUNTED or path in self._indexes or "\r" in text:
            return range_of(self.index(path), span, self._encoding)
        self._counted[path] = range_count + 1
        start, end = (_count_out(text, offset, self._encoding) for offset in (span.start, span.end))
        return Range(start=start, end=end)

    def location(self, path: str, span: Span) -> Location:
        return Location(uri=self.uri(path), range=self.range(path, span))

    def range_in(self, text: str, span: Span) -> Range:
        """Return the range of a span in a text that is not a file, such as the prompt.

        The line index of the last such text is kept.
        """
        if self._other is None or self._other[0] is not text:
            self._other = (text, LineIndex(text))
        return range_of(self._other[1], span, self._encoding)


def visible_span(text: str, span: Span) -> Span:
    """Return the span, or for an empty span one character near it that the editor can underline.

    The character is the next one of the line. At the end of a line it is the nearest one before that is not a
    line end; if there is none before, the first one of the text. The span stays empty if the text has only
    line ends.
    """
    if span.end > span.start or not text:
        return span
    start = min(span.start, len(text))
    if text[start : start + 1] not in ("", "\n", "\r"):
        return Span(start, start + 1)
    previous_end = len(text[:start].rstrip("\r\n"))
    if previous_end:
        return Span(previous_end - 1, previous_end)
    next_start = len(text) - len(text.lstrip("\r\n"))
    return Span(next_start, next_start + 1) if next_start < len(text) else span


def diagnostic(
    problem: Problem, locate: Locator, *, source: str = SOURCE, data: Any = None
) -> dict[str, Any]:
    """Return the LSP diagnostic of a problem. `source` names the program that reports it.

    The client may send `data` back with a request for code actions.
    """
    lsp_diagnostic: dict[str, Any] = {
        "range": locate.range(problem.path, visible_span(locate.text(problem.path), problem.span)),
        "severity": int(problem.severity),
        "code": problem.code,
        "source": source,
        "message": problem.message,
    }
    if problem.code == OVERRIDDEN:
        lsp_diagnostic["tags"] = [UNNECESSARY]
    if problem.related:
        lsp_diagnostic["relatedInformation"] = [
            {"location": locate.location(related.path, related.span), "message": related.message}
            for related in problem.related
        ]
    if data is not None:
        lsp_diagnostic["data"] = data
    return lsp_diagnostic
