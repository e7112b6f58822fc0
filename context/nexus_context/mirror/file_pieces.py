"""A file that another program may be writing, in pieces of complete lines, in bounded memory.

1. A piece is as many lines as fit into a size; a longer line is a piece of its own, up to LONGEST_LINE.
2. The last line is left for later unless it is complete: it ends with a line end, or is a JSON object.
3. Lines that are not JSON objects are counted, with the place of the first one.
4. A file is another one, or was rewritten, if its beginning differs, or what lies before the place where
   reading resumes.
"""

import hashlib
from typing import Any

import msgspec

from nexus_context import files
from nexus_context.conversation.transcripts.records import decode_value

LONGEST_LINE = 256 << 20
"""Most bytes of one line."""

HEAD = 512
"""Bytes at the beginning of a file, and before a place in it, by which it is recognized."""

_decode = msgspec.json.Decoder().decode


class FilePiece(msgspec.Struct):
    """The JSON objects in a piece of a file, each with the offset behind its line.

    `end` is behind the last line that was read; `is_last` whether the file ended there, but for an unfinished
    line. `damaged` counts the other lines; `first_damaged` is the offset of the first.
    """

    values: list[dict[str, Any]]
    ends: list[int]
    start: int
    end: int
    is_last: bool
    stamp: tuple[int, ...]
    damaged: int = 0
    first_damaged: int | None = None


def read_piece(path: str, start: int, size: int) -> FilePiece:
    """The lines from an offset on, about `size` bytes of them. OSError if the file cannot be read."""
    stamp, data = files.read_range(path, start, size)
    while len(data) == size and b"\n" not in data and size < LONGEST_LINE:
        size = min(4 * size, LONGEST_LINE)
        stamp, data = files.read_range(path, start, size)
    is_last = len(data) < size
    piece = FilePiece(values=[], ends=[], start=start, end=start, is_last=is_last, stamp=stamp)
    lines = data.split(b"\n")
    rest = lines.pop()
    for line in lines:
        _take(piece, line, piece.end + len(line) + 1)
    if is_last and rest.strip(b" \t\r") and _is_whole(rest):
        _take(piece, rest, piece.end + len(rest))
    elif not is_last and not lines:  # a line that nobody reads
        piece.damaged, piece.first_damaged, piece.end = 1, start, _end_of_line(path, start + size)
    return piece


def mark_of(path: str, offset: int) -> str:
    """What identifies a file up to an offset: digests of its beginning and of what lies before the offset."""
    _, head = files.read_range(path, 0, min(HEAD, offset))
    _, before = files.read_range(path, max(offset - HEAD, 0), min(HEAD, offset))
    return hashlib.blake2b(head + b"\0" + before, digest_size=16).hexdigest()


def _take(piece: FilePiece, line: bytes, end: int) -> None:
    if line.strip(b" \t\r\0"):
        value = _value(line)
        if isinstance(value, dict):
            piece.values.append(value)
            piece.ends.append(end)
        else:
            piece.damaged += 1
            if piece.first_damaged is None:
                piece.first_damaged = piece.end
    elif line.strip(b" \t\r"):  # NULs, as after a crash
        piece.damaged += 1
        if piece.first_damaged is None:
            piece.first_damaged = piece.end
    piece.end = end


def _value(line: bytes) -> Any:
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode_value(line.decode(errors="replace"))[0]


def _is_whole(line: bytes) -> bool:
    """Whether a line without an end is complete: more may come."""
    try:
        return isinstance(_decode(line), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _end_of_line(path: str, offset: int) -> int:
    """The offset behind the line that goes on at an offset; the end of the file if it does not end."""
    while True:
        _, data = files.read_range(path, offset, 1 << 24)
        at = data.find(b"\n")
        if at >= 0:
            return offset + at + 1
        if not data:
            return offset
        offset += len(data)
