"""The editor's open documents, exactly as the editor sees them.

1. A document is an immutable value; a change makes a new one, so a reader never sees half an edit.
2. Lines end at \\n, \\r\\n and \\r only, as in LSP.
3. Positions past the end of a line or of the text are clamped; a reversed range counts as its mirror.
4. Versions are stored, not compared: changes apply in the order of their arrival.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from nexus_daemon.lsp import convert
from nexus_daemon.lsp.lsp_types import DEFAULT_ENCODING, ContentChange, TextDocumentItem
from nexus_daemon.protocol.shapes import Position

_LINE_END = re.compile(r"\r\n|\r|\n")
logger = logging.getLogger(__name__)


class Document(msgspec.Struct, frozen=True):
    """One open document. `text` is what the editor shows, `path` its file when it has one."""

    uri: str
    language_id: str
    version: int | None
    text: str
    path: str | None = None


class OpenDocuments:
    """URI → document, of one client."""

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        self.encoding = encoding
        self._documents: dict[str, Document] = {}
        self._uris: dict[str, str] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents.values())

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, uri: str) -> Document | None:
        return self._documents.get(uri)

    def by_path(self, path: str) -> Document | None:
        """Return the document of a file, however the client spells its URI."""
        uri = self._uris.get(path)
        return None if uri is None else self._documents.get(uri)

    def open(self, item: TextDocumentItem) -> Document:
        """Add a document, replacing one with the same URI."""
        path = convert.uri_to_path(item.uri)
        document = Document(item.uri, item.language_id, item.version, item.text, path=path)
        self._documents[item.uri] = document
        if path is not None:
            self._uris[path] = item.uri
        return document

    def change(self, uri: str, version: int | None, changes: Sequence[ContentChange]) -> Document | None:
        """Apply the changes in order; None if the document is not open."""
        document = self._documents.get(uri)
        if document is None:
            logger.warning("ignored a change of %s, which is not open", uri)
            return None
        text = document.text
        for change in changes:
            text = apply_change(text, change, self.encoding)
        changed = Document(uri, document.language_id, version, text, path=document.path)
        self._documents[uri] = changed
        return changed

    def close(self, uri: str) -> Document | None:
        """Remove a document and return its last state; None if it was not open."""
        document = self._documents.pop(uri, None)
        if document is None:
            logger.warning("ignored the closing of %s, which is not open", uri)
            return None
        if document.path is not None and self._uris.get(document.path) == uri:
            del self._uris[document.path]
        return document


def apply_change(text: str, change: ContentChange, encoding: str) -> str:
    """Return `text` with one LSP change; a change without a range is the whole new text."""
    if change.range is None:
        return change.text
    start = _offset(text, change.range.start, encoding)
    end = _offset(text, change.range.end, encoding)
    if end < start:
        start, end = end, start
    return text[:start] + change.text + text[end:]


def _offset(text: str, position: Position, encoding: str) -> int:
    start = _line_start(text, position.line)
    if start is None:
        return len(text) if position.line > 0 else 0
    if text.isascii() or encoding == "utf-32":
        limit = start + max(position.character, 0)
        return min(limit, _line_end(text, start, limit))
    # a unit is at most one code point: no need to look further into a long line
    end = _line_end(text, start, start + max(position.character, 0))
    return start + convert.column_offset(text[start:end], position.character, encoding)


def _line_start(text: str, line: int) -> int | None:
    """Return where a line starts; None when there is no such line."""
    if line <= 0:
        return 0 if line == 0 else None
    if "\r" not in text or text.count("\r") == text.count("\r\n"):
        # every line ends with \n: one pass in C, much faster than an index of all lines per edit
        pieces = text.split("\n", line)
        return len(text) - len(pieces[line]) if len(pieces) > line else None
    found = next(islice(_LINE_END.finditer(text), line - 1, None), None)
    return None if found is None else found.end()


def _line_end(text: str, start: int, limit: int) -> int:
    """Return where the line from `start` ends, without its line end; at most `limit`."""
    end = text.find("\n", start, limit)
    if end < 0:
        end = min(limit, len(text))
    carriage = text.find("\r", start, end)
    return end if carriage < 0 else carriage
