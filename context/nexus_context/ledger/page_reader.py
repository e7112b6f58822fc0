"""The rows of a damaged SQLite file: of every readable page, whatever points to it.

1. Every page that looks like a leaf of a table is read cell by cell; indexes and inner pages are not needed.
2. The last committed pages of a write-ahead log replace those of the file.
3. The header of a cell is trusted as far as it is consistent; other cells are skipped.

The format: https://www.sqlite.org/fileformat2.html
"""

import os
import struct
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

_LEAF = 0x0D
_PAGE_SIZES = frozenset(1 << power for power in range(9, 17))
_WAL_HEADER = 32  # bytes
_FRAME_HEADER = 24
_LARGEST = 1 << 30  # bytes of a row; SQLite's own limit
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer by its type."""


class StoredRow(NamedTuple):
    """A row: its number, and its columns as stored (a column that is the number itself is None).

    Text comes as bytes: it may be damaged.
    """

    number: int
    columns: tuple[Any, ...]


class StoredText(bytes):
    """Stored text: UTF-8 if undamaged."""


class _Broken(Exception):  # noqa: N818  # never leaves this module
    pass


def rows(path: str) -> Iterator[StoredRow]:
    """The rows of all tables of the file, page by page. OSError if the file cannot be read."""
    with open(path, "rb") as file:
        pages = _Pages(file, path)
        try:
            for number in range(1, pages.count + 1):
                yield from _rows_of(pages, number)
        finally:
            pages.close()


class _Pages:
    """The newest version of each page of a file."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        header = file.read(100)
        size = int.from_bytes(header[16:18], "big")
        self.size = 65536 if size == 1 else size if size in _PAGE_SIZES else 4096
        reserved = header[20] if len(header) > 20 and header[20] < 64 else 0
        self.usable = self.size - reserved
        self._frames: dict[int, int] = {}
        self._wal: IO[bytes] | None = None
        if os.path.exists(path + "-wal"):
            self._wal = open(path + "-wal", "rb")  # noqa: SIM115  # closed by `close`
            self._frames = _frames(self._wal, self.size)
        length = os.fstat(file.fileno()).st_size
        self.count = max(-(-length // self.size), *self._frames, 0)

    def read(self, number: int) -> bytes:
        file, at = self._file, (number - 1) * self.size
        if self._wal is not None and number in self._frames:
            file, at = self._wal, self._frames[number]
        file.seek(at)
        return file.read(self.size)

    def close(self) -> None:
        if self._wal is not None:
            self._wal.close()


def _frames(wal: IO[bytes], size: int) -> dict[int, int]:
    """The offset of the newest committed version of each page in a write-ahead log."""
    header = wal.read(_WAL_HEADER)
    if len(header) < _WAL_HEADER or int.from_bytes(header[8:12], "big") != size:
        return {}
    salts = header[16:24]
    committed: dict[int, int] = {}
    waiting: dict[int, int] = {}
    at = _WAL_HEADER
    while len(frame := wal.read(_FRAME_HEADER)) == _FRAME_HEADER and frame[8:16] == salts:
        waiting[int.from_bytes(frame[:4], "big")] = at + _FRAME_HEADER
        if frame[4:8] != b"\0\0\0\0":  # the last of a transaction
            committed |= waiting
            waiting = {}
        at += _FRAME_HEADER + size
        wal.seek(at)
    return committed


def _rows_of(pages: _Pages, number: int) -> Iterator[StoredRow]:
    page = pages.read(number)
    start = 100 if number == 1 else 0
    if len(page) < pages.size or page[start] != _LEAF:
        return
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    for index in range(min(count, pages.size // 4)):
        pointer = start + 8 + 2 * index
        try:
            yield _row(pages, page, int.from_bytes(page[pointer : pointer + 2], "big"))
        except (_Broken, IndexError, ValueError, OSError, struct.error):
            continue


def _row(pages: _Pages, page: bytes, at: int) -> StoredRow:
    length, at = _varint(page, at)
    number, at = _varint(page, at)
    if not 0 < length < _LARGEST:
        raise _Broken
    return StoredRow(number, _columns(_payload(pages, page, at, length)))


def _payload(pages: _Pages, page: bytes, at: int, length: int) -> bytes:
    """The bytes of a row: those in its page and in its chain of overflow pages."""
    most = pages.usable - 35
    if length <= most:
        here = length
    else:
        least = (pages.usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (pages.usable - 4)
        here = here if here <= most else least
    parts = [page[at : at + here]]
    missing = length - here
    next_page = int.from_bytes(page[at + here : at + here + 4], "big") if missing else 0
    visited = set()
    while missing:
        if not 0 < next_page <= pages.count or next_page in visited:
            raise _Broken
        visited.add(next_page)
        page = pages.read(next_page)
        next_page = int.from_bytes(page[:4], "big")
        parts.append(page[4 : 4 + min(missing, pages.usable - 4)])
        missing -= len(parts[-1])
    data = b"".join(parts)
    if len(data) != length:
        raise _Broken
    return data


def _columns(data: bytes) -> tuple[Any, ...]:
    end, at = _varint(data, 0)
    body = end
    columns = []
    while at < end:
        kind, at = _varint(data, at)
        if body > len(data):
            raise _Broken
        value, size = _value(data, body, kind)
        columns.append(value)
        body += size
    if at != end or body != len(data):
        raise _Broken
    return tuple(columns)


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    """A value of a type, and its size in bytes."""
    if kind == 0:
        return None, 0
    if kind in (8, 9):
        return kind - 8, 0
    if size := _INTEGERS.get(kind):
        return int.from_bytes(data[at : at + size], "big", signed=True), size
    if kind == 7:
        return struct.unpack(">d", data[at : at + 8])[0], 8
    if kind < 12:
        raise _Broken
    size = (kind - 12) // 2
    part = data[at : at + size]
    return (StoredText(part) if kind % 2 else part), size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    value = 0
    for index in range(at, at + 8):
        value = value << 7 | data[index] & 0x7F
        if data[index] < 0x80:
            return value, index + 1
    return value << 8 | data[at + 8], at + 9
