"""Converts offsets to lines and columns and back.

Line ends are exactly \\n, \\r\\n and \\r, as in LSP 3.17.
"""

import re
from bisect import bisect_right

FEW_POSITIONS = 20
"""Look-ups in the text itself, after which a table of all lines pays."""

_LINE_END = re.compile(r"\r\n|\n|\r")


class LineIndex:
    """Where the lines of one text start.

    Lines and columns count from 0, columns in code points. U+2028, U+0085 and form feeds are ordinary
    characters, unlike in `str.splitlines`. The first positions are searched in the text itself, which is
    faster than a table of all lines for the few problems that most texts have.
    """

    __slots__ = ("_few", "_plain", "_table", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._table: list[int] | None = None
        self._plain = "\r" not in text
        self._few = FEW_POSITIONS if self._plain else 0

    @property
    def _starts(self) -> list[int]:
        if self._table is None:
            self._table = [0, *(end.end() for end in _LINE_END.finditer(self.text))]
        return self._table

    @property
    def count(self) -> int:
        """The number of lines. A text that ends with a line end has an empty last line."""
        return len(self._starts)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, which is clamped to the text.

        An offset between \\r and \\n counts as the end of its line.
        """
        offset = min(max(offset, 0), len(self.text))
        if self._table is None and self._few:
            self._few -= 1
            line = self.text.count("\n", 0, offset)
            return line, offset - self.text.rfind("\n", 0, offset) - 1
        starts = self._starts
        line = bisect_right(starts, offset) - 1
        if self._plain:  # no offset lies within a line end
            return line, offset - starts[line]
        return line, min(offset, self._end(line)) - starts[line]

    def before(self, offset: int, column: int) -> str:
        """Return the text of an offset's line up to the offset.

        `column` is the one that `position` returned for the offset.
        """
        offset = min(max(offset, 0), len(self.text))
        if self.text[offset - 1 : offset + 1] == "\r\n":
            offset -= 1
        return self.text[offset - column : offset]

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, clamped to that line's end and to the text."""
        if line < 0:
            return 0
        if line >= len(self._starts):
            return len(self.text)
        return min(self._starts[line] + max(column, 0), self._end(line))

    def line(self, number: int) -> str:
        """Return the text of a line without its line end. IndexError if there is no such line."""
        if not 0 <= number < len(self._starts):
            raise IndexError(f"line {number} of a text with {len(self._starts)} lines")
        return self.text[self._starts[number] : self._end(number)]

    def _end(self, line: int) -> int:
        """Offset of the line's end, before its line-end characters."""
        if line + 1 >= len(self._starts):
            return len(self.text)
        end = self._starts[line + 1] - 1
        crlf = self.text.startswith("\r\n", end - 1) and end > self._starts[line]
        return end - 1 if crlf else end
