"""Keep the editor's open documents exactly as the editor sees them.

1. A document is an immutable value; a change makes a new one, so a reader never sees half an edit.
2. Lines end at \\n, \\r\\n and \\r only, as in LSP.
3. Positions past the end of a line or of the text are clamped. A range whose end is before its start is
   reversed.
4. Versions are stored, not compared: changes apply in the order of their arrival. A document that is closed
   and opened again is another opening, also with the same version and text.
5. The same file may be open under several paths, by links. Its text is that of the document that was edited
   last.
6. An edit in UTF-16 may replace half of a surrogate pair. The text has U+FFFD for a half that is alone, until
   an edit brings the other one.
7. After an edit that cannot be applied, the text is not known. The document stays open, and its text is known
   again once the client sends it whole.
"""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any

import msgspec

from nexus_daemon.lsp import convert
from nexus_daemon.lsp.lsp_types import DEFAULT_ENCODING, ContentChange, TextDocumentItem
from nexus_daemon.protocol.shapes import Position

_HALF = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n|\r|\n")
logger = logging.getLogger(__name__)


class Document(msgspec.Struct, frozen=True):
    """One open document. `text` is what the editor shows.

    `path` is its file as the client spells it, `real` the path without links. Both are None if it has no
    file. `opening` numbers the openings of a client, `edited` its openings and edits. `is_known` is false
    after an edit that could not be applied (rule 7).
    """

    uri: str
    language_id: str
    version: int | None
    text: str
    path: str | None = None
    real: str | None = None
    opening: int = 0
    edited: int = 0
    is_known: bool = True


class OpenDocuments:
    """The open documents of one client, by URI."""

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        self.encoding = encoding
        self._documents: dict[str, Document] = {}
        self._uris: dict[
            str | tuple[int, int], dict[str, None]
        ] = {}  # by path, resolved path, device and inode
        self._keys: dict[str, tuple[str | tuple[int, int], ...]] = {}  # of each URI in `_uris`
        self._halves: dict[str, str] = {}  # the texts with halves of surrogate pairs
        self._numbers = count(1)

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents.values())

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, uri: str) -> Document | None:
        return self._documents.get(uri)

    def of_file(self, path: str) -> list[Document]:
        """Return the documents of a file under any spelling of its path, the last edited first."""
        uris = self._uris.get(path, ())
        keys = {key for uri in uris for key in self._keys[uri]}
        documents = [self._documents[uri] for uri in {uri: None for key in keys for uri in self._uris[key]}]
        return sorted(documents, key=lambda document: -document.edited)

    def open(self, item: TextDocumentItem) -> Document:
        """Add a document, and replace one with the same URI."""
        self._forget(item.uri)
        path = convert.uri_to_path(item.uri)
        real = None if path is None else os.path.realpath(path)
        keys = () if path is None or real is None else _file_keys(path, real)
        number = next(self._numbers)
        document = Document(
            item.uri,
            item.language_id,
            item.version,
            item.text,
            path=path,
            real=real,
            opening=number,
            edited=number,
        )
        self._documents[item.uri] = document
        self._keys[item.uri] = keys
        for key in keys:
            self._uris.setdefault(key, {})[item.uri] = None
        return document

    def change(self, uri: str, version: int | None, changes: Sequence[ContentChange]) -> Document | None:
        """Apply changes to a document in their order. Return None if the document is not open."""
        document = self._documents.get(uri)
        if document is None:
            logger.warning("ignored a change of %s, which is not open", uri)
            return None
        text = self._halves.pop(uri, document.text)
        is_known = document.is_known
        for change in changes:
            is_known |= change.range is None
            text = apply_change(text, change, self.encoding) if is_known else text
        if _HALF.search(text):
            self._halves[uri] = text
            text = _HALF.sub("\ufffd", text)
        return self._put(document, version=version, text=text, is_known=is_known)

    def lose(self, uri: str, reason: object) -> None:
        """Mark a document's text as unknown until the editor sends it whole, since an edit could not be
        applied.
        """
        document = self._documents.get(uri)
        if document is not None and document.is_known:
            self._put(document, is_known=False)
            advice = "Close and reopen the file to have it checked again."
            logger.warning("An edit of %s could not be applied: %s %s", uri, reason, advice)

    def close(self, uri: str) -> Document | None:
        """Remove a document and return its last state, or None if it was not open."""
        document = self._forget(uri)
        if document is None:
            logger.warning("ignored the closing of %s, which is not open", uri)
        return document

    def _put(self, document: Document, **changes: Any) -> Document:
        changed = msgspec.structs.replace(document, edited=next(self._numbers), **changes)
        self._documents[document.uri] = changed
        return changed

    def _forget(self, uri: str) -> Document | None:
        self._halves.pop(uri, None)
        for key in self._keys.pop(uri, ()):
            del self._uris[key][uri]
            if not self._uris[key]:
                del self._uris[key]
        return self._documents.pop(uri, None)


def _file_keys(path: str, real: str) -> tuple[str | tuple[int, int], ...]:
    """What a file is known by: its path, the path without links, and its place on the disk if it is there."""
    names = (path,) if path == real else (path, real)
    try:
        status = os.stat(real)
    except (OSError, ValueError):
        return names
    return *names, (status.st_dev, status.st_ino)


def apply_change(text: str, change: ContentChange, encoding: str) -> str:
    """Return `text` with one LSP change applied. A change without a range is the whole new text."""
    if change.range is None:
        return change.text
    start_position, end_position = change.range.start, change.range.end
    if (end_position.line, end_position.character) < (start_position.line, start_position.character):
        start_position, end_position = end_position, start_position
    start, end = _offset(text, start_position, encoding), _offset(text, end_position, encoding)
    text_before, text_after = text[:start], text[end:]
    if encoding == "utf-16" and not text.isascii():
        cut, end_cut = _is_cut(text, start_position, start), _is_cut(text, end_position, end)
        text_before += _pair(text[start])[0] if cut else ""
        text_after = _pair(text[end])[1] + text[end + 1 :] if end_cut else text_after
    changed = text_before + change.text + text_after
    if _HALF.search(changed):
        return changed.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return changed


def _is_cut(text: str, position: Position, offset: int) -> bool:
    """Whether a position, whose character begins at an offset, is in the middle of a surrogate pair."""
    if offset >= len(text) or ord(text[offset]) < 0x10000:
        return False
    start = _line_start(text, position.line)
    return start is not None and convert.column_units(text[start:offset], "utf-16") < position.character


def _pair(character: str) -> str:
    """The surrogates of a character, each a character of its own."""
    high, low = divmod(ord(character) - 0x10000, 0x400)
    return chr(0xD800 + high) + chr(0xDC00 + low)


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
    """Return the offset of a line's start. None if there is no such line."""
    if line <= 0:
        return 0 if line == 0 else None
    if "\r" not in text or text.count("\r") == text.count("\r\n"):
        # every line ends with \n: one pass in C, much faster than an index of all lines per edit
        pieces = text.split("\n", line)
        return len(text) - len(pieces[line]) if len(pieces) > line else None
    line_end = next(islice(_LINE_END.finditer(text), line - 1, None), None)
    return None if line_end is None else line_end.end()


def _line_end(text: str, start: int, limit: int) -> int:
    """Return where the line from `start` ends, without its line end; at most `limit`."""
    end = text.find("\n", start, limit)
    if end < 0:
        end = min(limit, len(text))
    carriage = text.find("\r", start, end)
    return end if carriage < 0 else carriage
