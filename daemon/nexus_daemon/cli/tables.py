"""Prints tables and sentences: with colours and bars on a terminal, as plain text in a pipe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Literal
from urllib.parse import unquote

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text

from nexus_context.text.visible import visible_line
from nexus_daemon import protocol
from nexus_daemon.cli.output import console

ROLE_COLOURS = {"system": "cyan", "user": "green", "assistant": "yellow", "tool": "magenta"}
ROW_COLOURS = {
    "system": "cyan",
    "tools": "magenta",
    "history": "yellow",
    "memory": "blue",
    "event": "green",
}
BAR = 20
PADDING = 3
"""What a table adds to the width of each column."""
_FIRST_STYLE = Style(bold=True)
LEAST_PATH = 16
"""Columns of a terminal that paths and texts keep."""


def print_usage(usage: protocol.TokenUsage) -> None:
    """Print every row with its share of the total, and the total against what is available."""
    mark = "" if usage.counter.exact else "≈"
    guess = "" if usage.limit_known else "≈"
    model = f"for {usage.model}" if usage.model else "(no model is set)"
    percent = "" if usage.over or not usage.available else f" ({usage.percent} %)"
    title = f"{mark}{usage.total:,} of {guess}{usage.available:,} tokens {model}" + percent
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("category", footer="total")
    table.add_column("what", footer=f"counted with {usage.counter.name}", overflow="fold")
    table.add_column("tokens", justify="right", footer=f"{mark}{usage.total:,}")
    table.add_column("share", justify="right")
    table.add_column("", min_width=BAR)
    for row in usage.rows:
        share = row.tokens / max(usage.total, 1)
        bar = Text("█" * max(1, round(BAR * share)))
        cells = (row.category, visible_line(row.label), f"{mark}{row.tokens:,}", f"{share:.0%}", bar)
        table.add_row(*cells, style=ROW_COLOURS[row.category])
    console().print(table)
    if usage.corrected is not None:
        print_sentence(console(), _corrected(usage.corrected))


def _corrected(corrected: protocol.CorrectedTotal) -> str:
    error = "" if corrected.error_percent is None else f", lately ±{corrected.error_percent:g} %"
    return (
        f"≈{corrected.total:,} tokens ({corrected.percent} %), corrected by what the provider counted{error}."
    )


def print_overflow(usage: protocol.TokenUsage) -> None:
    """Say that the result does not fit, and by how much."""
    mark = "" if usage.counter.exact else "≈"
    reason = f"{mark}{usage.total - usage.available:,} more than the {usage.available:,} available."
    if not usage.available and usage.reserved >= usage.limit:
        reason = f"the reserve of {usage.reserved:,} tokens takes the whole budget of {usage.limit:,}."
    print_sentence(console(), Text(f"Does not fit: {mark}{usage.total:,} tokens, {reason}", "bold red"))


def print_sentence(out: Console, text: Text | str) -> None:
    """Print a sentence. On a terminal its words are wrapped; in a pipe it is one line."""
    out.print(Text(text) if isinstance(text, str) else text, soft_wrap=not out.is_terminal)


@dataclass(frozen=True)
class Column:
    """A column of a list. If a terminal is too narrow, columns leave in the order of their `worth`.

    The least `worth` leaves first; a column without one never leaves. The cells of a column with a `least`
    width may be cut down to that, all others are never cut. They are cut at the end named by `cut`. On a
    narrow terminal each word of the name has a line.
    """

    name: str
    cells: Sequence[str]
    worth: int | None = None
    least: int | None = None
    justify: Literal["left", "right"] = "left"
    footer: str = ""
    cut: Literal["start", "end"] = "end"

    @cached_property
    def full_width(self) -> int:
        """The width that the column takes uncut, in columns of a terminal."""
        return max(map(cell_len, (*self.name.split("\n"), self.footer, *self.cells)))

    @property
    def width(self) -> int:
        """The least width that the column needs, in columns of a terminal."""
        return self.full_width if self.least is None else min(self.full_width, self.least)


def print_columns(columns: Sequence[Column]) -> None:
    """Print a list as wide as the terminal, the first column in bold."""
    out = console()
    fitting_columns = list(columns)
    if _needed(fitting_columns) > out.width:
        fitting_columns = [replace(column, name=column.name.replace(" ", "\n")) for column in columns]
    while _needed(fitting_columns) > out.width:
        leaving = [column for column in fitting_columns if column.worth is not None]
        if not leaving:
            break
        fitting_columns.remove(min(leaving, key=lambda column: column.worth or 0))
    table = Table(box=box.SIMPLE_HEAD, show_footer=any(column.footer for column in fitting_columns))
    widths = _widths(fitting_columns, out.width)
    for number, (column, width) in enumerate(zip(fitting_columns, widths, strict=True)):
        footer = Text(_cut(column.footer, width, column.cut), no_wrap=True)
        style = "" if number else _FIRST_STYLE
        table.add_column(column.name, footer, style=style, justify=column.justify, width=width)
    table.add_row()
    lines = out.render_lines(table, pad=False)
    row_at = 2 + max(column.name.count("\n") + 1 for column in fitting_columns)
    cut_columns = [_fit(column, width) for column, width in zip(fitting_columns, widths, strict=True)]
    rows = map(_segments, *cut_columns)  # rich would take a millisecond for each
    texts = (*lines[:row_at], *rows, *lines[row_at + 1 :])
    out.print(Segments(chain.from_iterable((*line, Segment.line()) for line in texts)), end="", crop=False)


def _fit(column: Column, width: int) -> list[str]:
    """Cut and pad the cells of a column to a width."""
    lines = (cell if cell.isprintable() else visible_line(cell) for cell in column.cells)
    cells = [_cut(line, width, column.cut) for line in lines]
    if column.justify == "right":
        return [" " * (width - cell_len(cell)) + cell for cell in cells]
    return [set_cell_size(cell, width) for cell in cells]


def _segments(first_cell: str, *cells: str) -> list[Segment]:
    """Lay out a row as SIMPLE_HEAD does."""
    rest = "".join(f"  {cell} " for cell in cells)
    return [Segment(" "), Segment(f" {first_cell} ", _FIRST_STYLE), Segment(f"{rest} ")]


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.width + PADDING for column in columns) + 1


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Compute each column's width: its minimum, and a share of the remaining width of the terminal."""
    widths = [column.width for column in columns]
    remaining_width = width - _needed(columns)
    wanting = sorted(
        range(len(columns)), key=lambda column_index: columns[column_index].full_width - widths[column_index]
    )
    for position, column_index in enumerate(wanting):
        share = max(0, remaining_width) // (len(wanting) - position)
        extra_width = min(share, columns[column_index].full_width - widths[column_index])
        widths[column_index] += extra_width
        remaining_width -= extra_width
    while remaining_width < 0 and max(widths) > 1:  # not even the least widths fit
        widths[widths.index(max(widths))] -= 1
        remaining_width += 1
    return widths


def _cut(cell: str, width: int, side: Literal["start", "end"]) -> str:
    """The cell without what is too much of it."""
    if cell_len(cell) <= width:
        return cell
    if side == "end":
        return f"{set_cell_size(cell, width - 1).rstrip()}…"
    cell = cell[-width:]
    while cell_len(cell) > width - 1:
        cell = cell[1:]
    return f"…{cell}"


def print_layers(result: protocol.LayersResult, *, display_path: Callable[[str], str] = str) -> None:
    """Print the layers with their files, then what was skipped and why.

    `display_path` shortens a path.
    """
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("layer", style="bold")
    table.add_column("file", overflow="fold")
    table.add_column("status")
    table.add_column("tokens", justify="right")
    mark = "" if result.counter.exact else "≈"
    for layer in result.layers:
        name = visible_line(layer.name)
        for file in layer.files:
            count = "" if file.tokens is None else f"{mark}{file.tokens:,}"
            condition = "" if file.applies_to is None else f": {visible_line(file.applies_to)}"
            table.add_row(name, display_path(_path(file.uri)), f"{file.status}{condition}", count)
            name = ""
            for imported in file.imports or ():
                count = "" if imported.tokens is None else f"{mark}{imported.tokens:,}"
                path = display_path(_path(imported.uri))
                table.add_row("", f"{'  ' * imported.depth}@{path}", "imported", count)
    out = console()
    out.print(table)
    for skipped in result.skipped:
        text = f"{display_path(visible_line(skipped.path))}: {visible_line(skipped.reason)}"
        out.print(Text.assemble(("skipped ", "yellow"), text))


def _path(uri: str) -> str:
    return visible_line(unquote(uri.removeprefix("file://")))
