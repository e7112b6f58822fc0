"""What a fault is measured by, and the table of it all."""

import random
import time
from collections.abc import Iterable
from typing import Literal

import msgspec

SHOWN_WRONGS = 12  # of one fault

Result = Literal["", "pass", "FAIL"]


class Figure(msgspec.Struct, frozen=True):
    """One figure; with `at_most` or `at_least` a promise."""

    what: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def result(self) -> Result:
        if self.at_most is None and self.at_least is None:
            return ""
        low = self.at_least is None or self.value >= self.at_least
        high = self.at_most is None or self.value <= self.at_most
        return "pass" if low and high else "FAIL"

    @property
    def promise(self) -> str:
        """What it has to be, as text."""
        if self.at_most is not None and self.at_most == self.at_least:
            return f"{self.at_most:g}"
        if self.at_most is not None:
            return f"{'' if self.at_most == 0 else '≤ '}{self.at_most:g}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}"


class Outcome(msgspec.Struct, frozen=True):
    """What came of one fault. `wrong` says each broken promise in a line; `skipped` why it was not tried."""

    fault: str
    figures: tuple[Figure, ...] = ()
    wrong: tuple[str, ...] = ()
    skipped: str | None = None
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether all promises were kept, or nothing was tried."""
        return not self.wrong and all(figure.result != "FAIL" for figure in self.figures)


class Watch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started


def nothing_wrong(wrong: Iterable[str]) -> Figure:
    """The figure that every fault ends with."""
    return Figure("anything else wrong", len(list(wrong)), at_most=0)


def table(outcomes: Iterable[Outcome]) -> str:
    """All figures as a Markdown table, and below it what was wrong or not tried."""
    outcomes = list(outcomes)
    rows: list[tuple[str, ...]] = [("fault", "what", "figure", "must be", "outcome")]
    for outcome in outcomes:
        if outcome.skipped:
            rows.append((outcome.fault, f"not tried: {outcome.skipped}", "", "", ""))
        for number, figure in enumerate(outcome.figures):
            shown = f"{_number(figure.value)} {figure.unit}".rstrip()
            name = outcome.fault if number == 0 else ""
            rows.append((name, figure.what, shown, figure.promise, figure.result))
    lines = [_aligned(row, rows) for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in _widths(rows)) + "|")
    for outcome in outcomes:
        lines += [f"\n{outcome.fault}: {line}" for line in outcome.wrong[:SHOWN_WRONGS]]
        if len(outcome.wrong) > SHOWN_WRONGS:
            lines.append(f"\n{outcome.fault}: … and {len(outcome.wrong) - SHOWN_WRONGS} more")
    return "\n".join(lines) + "\n"


def summary(outcomes: Iterable[Outcome]) -> str:
    """A Markdown table with a row for each fault: how often, and how many promises were kept."""
    lines = ["| Fault | How often | Promises kept |", "|---|---|--:|"]
    for outcome in outcomes:
        promises = [figure.result for figure in outcome.figures if figure.result]
        first = next(iter(outcome.figures), None)
        often = f"{_number(first.value)} {first.unit}".rstrip() + f" {first.what}" if first else "not tried"
        lines.append(f"| {outcome.fault} | {often} | {promises.count('pass')} of {len(promises)} |")
    return "\n".join(lines) + "\n"


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    return [max(3, *(len(row[column]) for row in rows)) for column in range(len(rows[0]))]


def _aligned(row: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = (
        cell.rjust(width) if column == 2 else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, _widths(rows), strict=True))
    )
    return "| " + " | ".join(cells) + " |"


def _number(value: float) -> str:
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def p95(values: list[float]) -> float:
    """The nearest rank; 0 of nothing."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * 95 // 100) - 1] if ordered else 0.0


def dice_of(seed: float) -> random.Random:
    """Chance that can be repeated."""
    return random.Random(seed)  # noqa: S311 - no secret
