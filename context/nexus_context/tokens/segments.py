"""Cuts a text at places that no token can span, so that counts of the parts add up exactly.

1. A cut is safe before a line that has a non-blank character and does not begin with `/` (o200k merges
   `)\\n/`). Blank lines stay with the segment before. A line ends at `\\n` only.
2. Which safe lines are cuts depends on their content, not on their distance from the start, so an edit
   moves only the cuts around itself: all other segments stay the same, and their counts are cached.
3. A line longer than LONG is cut inside, after a letter or digit and before a blank or an ASCII mark
   other than `'` (no pattern of either encoding continues there).
4. A run longer than LONG without such a place is cut at LONG. Only there can a count differ from
   tiktoken's, by a token or two per cut; without it a run of a million blanks could not be counted.
"""

import re
from collections.abc import Iterator
from zlib import crc32

# Code points. tiktoken fails at 999,999 blanks, and is n log n within one run. Three times a power of two:
# digits go by threes, and runs of one character by powers of two, so both still count exactly.
LONG = 49_152


def split(text: str) -> Iterator[str]:
    """Yield the segments of `text` in order, about 1,000 to 8,000 code points each. Joined together they are
    `text`.
    """
    start = 0
    for cut in _line_cuts(text):
        yield from _split_long(text[start:cut])
        start = cut
    yield from _split_long(text[start:])


# literal [ \t] and \n: \s and splitlines() would take characters that the encodings treat otherwise
_SAFE_LINE = re.compile(r"\n(?!/)(?=[ \t]*\S)")
_SAFE_PLACE = re.compile(r"(?<=[^\W_])[\t\n\r -&(-/:-@\[-`{-~]")

_SHORTEST = 1024  # code points
_LONGEST = 8192
_PROBE = 32  # code points of the line that decide
_ONE_IN = 4  # lines of at least _SHORTEST distance that are cuts


def _line_cuts(text: str) -> Iterator[int]:
    search = _SAFE_LINE.search
    start = 0
    position = _SHORTEST
    while (match := search(text, position)) is not None:
        cut = match.end()
        # not hash(): it differs from process to process
        probe = text[cut : cut + _PROBE].encode("utf-8", "surrogatepass")
        if crc32(probe) % _ONE_IN == 0 or cut - start >= _LONGEST:
            yield cut
            start = cut
            position = cut + _SHORTEST
        else:
            position = cut


def _split_long(segment: str) -> Iterator[str]:
    start = 0
    while len(segment) - start > LONG:
        cut = _last_safe_place(segment, start + 1, start + LONG)
        yield segment[start:cut]
        start = cut
    if start < len(segment):
        yield segment[start:] if start else segment


def _last_safe_place(segment: str, low: int, high: int) -> int:
    for window in (256, LONG):  # nearly always in the last few words
        places = [match.start() for match in _SAFE_PLACE.finditer(segment, max(low, high - window), high + 1)]
        if places:
            return min(places[-1], high)
    return high
