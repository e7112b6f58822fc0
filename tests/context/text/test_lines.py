"""Line index: LSP's line ends, clamping, and the way there and back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.text.lines import LineIndex


def check(text: str, lines: list[str], positions: list[tuple[int, int]]) -> None:
    """The lines of a text, and the position of each of its offsets."""
    index = LineIndex(text)
    assert [index.line(number) for number in range(index.count)] == lines
    assert [index.position(offset) for offset in range(len(text) + 1)] == positions


def test_line_ends() -> None:
    check("", [""], [(0, 0)])
    check("ab\nc", ["ab", "c"], [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)])
    check("a\r\nb\r", ["a", "b", ""], [(0, 0), (0, 1), (0, 1), (1, 0), (1, 1), (2, 0)])
    check("\n\r", ["", "", ""], [(0, 0), (1, 0), (2, 0)])
    check("a\u2028b\x85c\x0cd", ["a\u2028b\x85c\x0cd"], [(0, column) for column in range(8)])
    check("😀\n", ["😀", ""], [(0, 0), (0, 1), (1, 0)])


@pytest.mark.parametrize(
    ("line", "column", "offset"),
    [(-1, 5, 0), (0, -3, 0), (0, 99, 2), (1, 0, 4), (1, 99, 5), (2, 0, 6), (9, 0, 6)],
)
def test_offset_is_clamped(line: int, column: int, offset: int) -> None:
    assert LineIndex("ab\r\nc\n").offset(line, column) == offset


def test_position_is_clamped() -> None:
    index = LineIndex("ab\nc")
    assert (index.position(-1), index.position(99)) == ((0, 0), (1, 1))


def test_no_such_line() -> None:
    for number in (-1, 1):
        with pytest.raises(IndexError, match="of a text with 1 lines"):
            LineIndex("a").line(number)


TEXTS = st.text(alphabet="a😀\r\n\u2028")


@given(TEXTS)
def test_there_and_back(text: str) -> None:
    index = LineIndex(text)
    for offset in range(len(text) + 1):
        if text[max(offset - 1, 0) : offset + 1] != "\r\n":
            assert index.offset(*index.position(offset)) == offset


@given(TEXTS)
def test_lines_are_those_of_a_split(text: str) -> None:
    index = LineIndex(text)
    assert [index.line(number) for number in range(index.count)] == re.split(r"\r\n|\n|\r", text)


@given(st.text(alphabet="ab\r\né😀\u2028", max_size=30), st.integers(-2, 32))
def test_the_first_positions_are_those_of_the_table(text: str, offset: int) -> None:
    index, table = LineIndex(text), LineIndex(text)
    table.line(0)  # builds the table
    line, column = table.position(offset)
    assert index.position(offset) == (line, column)
    assert index.before(offset, column) == table.line(line)[:column]
