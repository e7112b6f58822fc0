"""Limits what is read of a file, so that no file takes more memory than stated here.

1. A packed file is unpacked step by step, up to a size. One that grows more than LARGEST_RATIO times is
   refused as soon as that is clear: real transcripts shrink to a tenth or a twentieth.
2. A line has at most LONGEST_LINE characters.
3. A file holds at most MOST_VALUES JSON values: in memory each takes up to thirty times its text.
"""

import re
import zlib
from typing import NamedTuple

GZIP = b"\x1f\x8b"
"""The first bytes of a packed file."""

LARGEST_RATIO = 250
"""Most times that a packed file may grow."""
SMALL = 16 << 20
"""Unpacked bytes that are allowed whatever the ratio."""
LONGEST_LINE = 64 << 20
"""Most bytes, or code points, of one line."""
MOST_VALUES = 10_000_000
"""Most items of lists and members of objects in one file: up to a gigabyte of memory."""

_STEP = 1 << 16  # packed bytes per step
_MARKS = ("[", "{", ",")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{,]', re.DOTALL)


class Unpacked(NamedTuple):
    """The content of a packed file up to any damage. `problem` is a sentence about the damage.

    `refused` is true if the file exceeds a limit: none of it should be read.
    """

    data: bytes
    problem: str | None = None
    refused: bool = False


def unpacked(data: bytes, limit: int) -> Unpacked:
    """Unpack a gzip file of one member or several, to at most `limit` bytes."""
    content = bytearray()
    member = zlib.decompressobj(wbits=31)
    at = 0
    try:
        while at < len(data):
            piece = data[at : at + _STEP]
            content += member.decompress(piece, limit + 1 - len(content))
            at += len(piece) - len(member.unused_data)
            if len(content) > limit:
                return Unpacked(b"", f"The file is too large: it unpacks to more than {limit:,} bytes.", True)
            if len(content) > max(SMALL, LARGEST_RATIO * at):
                text = (
                    f"The file is not a transcript: it unpacks to more than {LARGEST_RATIO} times its size."
                )
                return Unpacked(b"", text, True)
            if member.eof:
                if not data.startswith(GZIP, at):
                    return Unpacked(bytes(content))
                member = zlib.decompressobj(wbits=31)
    except zlib.error as error:
        return Unpacked(bytes(content), f"The gzip file is damaged: {error}. Copy it again.")
    ended = "The gzip file ends too early. Copy it again."
    return Unpacked(bytes(content), None if member.eof or not data else ended)


def values_in(text: str, max_values: int) -> int:
    """Return about how many values a JSON text holds. Counting ends at `max_values + 1`."""
    count = sum(map(text.count, _MARKS))
    if count <= max_values:
        return count
    count = 0
    for token in _TOKEN.finditer(text):  # rarely needed: a transcript with so many commas is mostly prose
        count += token[0] in _MARKS
        if count > max_values:
            break
    return count


def too_many_values() -> str:
    """Return the message for a file with more than MOST_VALUES values."""
    return f"The file holds more than the {MOST_VALUES:,} JSON values that are read at most. Split it."


def line_at(text: str, offset: int) -> int:
    """Return the number, from 1, of the line at an offset. This takes no memory, unlike a table of lines."""
    ends = text.count("\n", 0, offset) + text.count("\r", 0, offset) - text.count("\r\n", 0, offset)
    return ends + 1
