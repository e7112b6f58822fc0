"""The records in a piece of a file that another program may be writing.

1. A piece is as many lines as fit into a size; a longer line is a piece of its own, up to LONGEST_LINE.
2. The last line is left for later unless it is complete: it ends with a line end, or is a JSON object.
3. Lines that are not JSON objects are counted, with the place of the first one.
"""

from typing import Any

import msgspec

from nexus_context.assistant_sessions.appended import read_lines
from nexus_context.conversation.transcripts.records import decode_value

LONGEST_LINE = 256 << 20
"""Most bytes of one line."""

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
    """The records from an offset on, about `size` bytes of them. OSError if the file cannot be read."""
    read = read_lines(path, start, size, LONGEST_LINE)
    piece = FilePiece([], [], start, start, is_last=read.is_last, stamp=read.stamp)
    for line in read.lines:
        _take(piece, line, piece.end + len(line) + 1)
    if read.is_last and read.rest.strip(b" \t\r") and _is_whole(read.rest):
        _take(piece, read.rest, piece.end + len(read.rest))
    elif read.is_too_long:  # a line that nobody reads
        piece.damaged, piece.first_damaged, piece.end = 1, start, read.end
    return piece


def _take(piece: FilePiece, line: bytes, end: int) -> None:
    """Take a line in; one of NULs, as after a crash, is damaged."""
    if line.strip(b" \t\r"):
        value = _value(line) if line.strip(b" \t\r\0") else None
        if isinstance(value, dict):
            piece.values.append(value)
            piece.ends.append(end)
        else:
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
