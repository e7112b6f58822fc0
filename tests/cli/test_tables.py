"""Lists on narrow terminals: a row is a line, what matters least leaves, a path keeps its end."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from nexus_daemon.cli import tables
from nexus_daemon.cli.tables import Column, print_columns

PATHS = ["packages/api/src/handlers/AGENTS.md", "AGENTS.md"]
TEXT = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=40)


def lines_of(columns: list[Column], width: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width, force_terminal=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "console", lambda: out)
        print_columns(columns)
    assert isinstance(out.file, io.StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines() if line.strip()]


def test_a_path_is_cut_at_its_start_and_a_name_has_a_line_for_each_word() -> None:
    columns = [
        Column("file", PATHS, least=16, cut="start"),
        Column("Claude Code", ["1,000", "2"], justify="right"),
        Column("from cache", ["99 %", "1 %"], worth=1),
    ]
    wide, narrow, narrower = (lines_of(columns, width) for width in (80, 45, 35))
    assert wide[0].split() == ["file", "Claude", "Code", "from", "cache"]
    assert PATHS[0] in wide[2]
    assert [line.split() for line in narrow[:2]] == [["Claude", "from"], ["file", "Code", "cache"]]
    assert narrow[3].split() == ["…/src/handlers/AGENTS.md", "1,000", "99", "%"]
    assert narrower[3].split() == ["…rc/handlers/AGENTS.md", "1,000"]


@given(
    st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=5),
    st.integers(13, 200),
    st.sampled_from(["start", "end"]),
)
def test_a_row_is_a_line_of_the_terminal(rows: list[tuple[str, ...]], width: int, cut: str) -> None:
    first, second, third = ([row[at] for row in rows] for at in range(3))
    columns = [
        Column("file", first, least=8, cut=cut),  # type: ignore[arg-type]
        Column("of it", second, worth=1, least=8, justify="right", footer="sum"),
        Column("x", third, worth=0),
    ]
    lines = lines_of(columns, width)
    assert all(cell_len(line) <= width for line in lines)
    assert len(lines) <= len(rows) + 4  # the names, perhaps in two lines, a rule, and the footer


def test_a_name_with_a_line_end_has_one_row() -> None:
    columns = [Column("folder", ["a\nlong folder", "b"]), Column("turns", ["1", "2"], justify="right")]
    assert [line.split()[-1] for line in lines_of(columns, 60)[2:]] == ["1", "2"]


def test_rows_are_laid_out_as_names_and_sums_are() -> None:
    columns = [
        Column("title", ["Ünïcode 日本", "x"], footer="2 conversations"),
        Column("cost", ["$1.25", "$10.00"], justify="right", footer="$11.25"),
    ]
    assert lines_of(columns, 60) == [
        "  title               cost",
        " ──────────────────────────",
        "  Ünïcode 日本       $1.25",
        "  x                 $10.00",
        "  2 conversations   $11.25",
    ]
