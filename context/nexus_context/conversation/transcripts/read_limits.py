"""How much of a file is read at most, so that no file takes more memory than is stated here.

1. A packed file is unpacked step by step, up to a size. One that grows more than LARGEST_RATIO times is
   refused as soon as that shows: real transcripts shrink to a tenth or a twentieth.
2. A line is at most LONGEST_LINE long.
3. A file holds at most MOST_VALUES values of JSON: in memory each takes up to thirty times its text.
"""

import re
import zlib
from typing import NamedTuple

GZIP = b"\x1f\x8b"
"""What a packed file begins with."""

LARGEST_RATIO = 250
"""Times its size that a packed file may have, unpacked."""
SMALL = 16 << 20
"""Bytes that any packed file may have, unpacked."""
LONGEST_LINE = 64 << 20
"""Bytes, or code points, of one line."""
MOST_VALUES = 10_000_000
"""Items of lists and members of objects in one file: up to a gigabyte of memory."""

_STEP = 1 << 16  # packed bytes that are unpacked at once
_MARKS = ("[", "{", ",")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{,]', re.DOTALL)


class Unpacked(NamedTuple):
    """The content of a packed file as far as it is whole, and why there is no more, as a sentence.

    `refused`: it breaks a limit, and nothing of it should be read.
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
                text = f"The file is no transcript: it unpacks to more than {LARGEST_RATIO} times its size."
                return Unpacked(b"", text, True)
            if member.eof:
                if not data.startswith(GZIP, at):
                    return Unpacked(bytes(content))
                member = zlib.decompressobj(wbits=31)
    except zlib.error as error:
        return Unpacked(bytes(content), f"The gzip file is damaged: {error}. Copy it again.")
    ended = "The gzip file ends too early. Copy it again."
    return Unpacked(bytes(content), None if member.eof or not data else ended)


def values_in(text: str, most: int) -> int:
    """About how many values a JSON text holds, marks within strings apart; more than `most` is `most + 1`."""
    count = sum(map(text.count, _MARKS))
    if count <= most:
        return count
    count = 0
    for token in _TOKEN.finditer(text):  # rarely needed: a transcript with so many commas is mostly prose
        count += token[0] in _MARKS
        if count > most:
            break
    return count


def too_many_values() -> str:
    """The sentence for a file that holds more than MOST_VALUES."""
    return f"The file holds more than {MOST_VALUES:,} values of JSON, more than are read. Split it."


def line_at(text: str, offset: int) -> int:
    """The number, from 1, of the line in which an offset lies; needs no memory, unlike a table of lines."""
    ends = text.count("\n", 0, offset) + text.count("\r", 0, offset) - text.count("\r\n", 0, offset)
    return ends + 1
