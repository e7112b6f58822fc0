"""What benchmarks promise, and whether a run kept it: the one mechanism of all benchmarks.

A benchmark is a function in one of the modules that `benchmarks.MODULES` lists:

    @promises(Promise("reply to initialize", 0.75, "vscode-json-languageserver"))
    def startup(run: Run) -> Iterator[Measured]:
        \"\"\"From the spawn of a server to its first reply.\"\"\"
        turns = take_turns({"nexus": …, "peer": …}, run.pick(full=20, quick=4))
        yield "reply to initialize", turns["nexus"], turns["peer"]

1. A promise is a ratio: of what Nexus takes to what a peer or a floor takes in the same run, named by
   `beside`. Without `beside` it is a share or a count, which no machine changes.
2. A benchmark yields each promise once: its name, the value and that of the reference, in the promise's unit.
   Either is a number, or a `Series`; a series whose step failed makes the promise "not run" or an "error".
3. What a benchmark does not yield because it raised has that error as its outcome. `UnavailableError` (a
   peer that does not install, a machine without node) is "not run", anything else an "error".
4. Each benchmark runs in a process and a home of its own (`Run`), with no garbage collection in `take_turns`.
   Lanes take turns, so that what loads the machine loads all of them.
5. Figures without a promise go to the report by `Run.note`.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

ROOT = Path(__file__).resolve().parents[1]

Statistic = Literal["p50", "p95", "p99", "worst"]
Outcome = Literal["pass", "MISS", "not run", "error"]


class UnavailableError(Exception):
    """This machine lacks something that a measure needs, such as a peer; no fault of Nexus."""


class Promise(msgspec.Struct, frozen=True):
    """The ratio of Nexus to `beside` is at most `limit`; without `beside`, the value itself is."""

    what: str
    limit: float
    beside: str = ""
    statistic: Statistic = "p50"
    unit: str = "ms"
    at_least: bool = False

    @property
    def title(self) -> str:
        """What is promised, with its statistic unless that is the median."""
        return self.what if self.statistic == "p50" else f"{self.what}, {self.statistic}"


class Series(msgspec.Struct):
    """The values of one lane in one measure, in the order in which they were taken, or why there are none."""

    values: list[float] = []
    error: Exception | None = None

    def at(self, statistic: Statistic) -> float:
        """The statistic; p95 and p99 are nearest ranks."""
        ordered = sorted(self.values)
        if statistic == "p50":
            return statistics.median(ordered)
        percent = {"p95": 95, "p99": 99, "worst": 100}[statistic]
        return ordered[-(-len(ordered) * percent // 100) - 1]


Value = Series | float
Measured = tuple[str, Value] | tuple[str, Value, Value]
"""The name of a promise, the value, and that of the reference if the promise has one."""


class Row(msgspec.Struct, frozen=True):
    """One promise with its outcome, as reports hold it; `ratio` is None without a reference."""

    benchmark: str
    what: str
    unit: str
    limit: float
    outcome: Outcome
    beside: str = ""
    at_least: bool = False
    value: float | None = None
    reference: float | None = None
    ratio: float | None = None
    reason: str = ""


class Note(msgspec.Struct, frozen=True):
    """Figures without a promise: a row of one of the report's further tables."""

    table: str
    row: str
    columns: dict[str, str | float | None]


class Run(msgspec.Struct, frozen=True):
    """What a benchmark is given: a folder that is removed afterwards, and how much to measure."""

    root: Path
    is_quick: bool = False
    nexus: tuple[str, ...] = (str(Path(sys.executable).with_name("nexus")),)

    def pick(self, *, full: int, quick: int) -> int:
        """How much of something this run measures."""
        return quick if self.is_quick else full

    @property
    def environ(self) -> dict[str, str]:
        """The environment of all processes: nothing of the user's own home or configuration reaches them."""
        home = self.root / "home"
        directories = {"HOME": home, "NEXUS_HOME": home / ".nexus3", "NEXUS_STATE": home / ".nexus-state"}
        directories |= {"TMPDIR": self.root / "tmp", "XDG_RUNTIME_DIR": self.root / "run"}
        for name in ("CONFIG", "STATE", "DATA", "CACHE"):
            directories[f"XDG_{name}_HOME"] = home / f".{name.lower()}"
        for directory in directories.values():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        plain = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        return plain | {name: str(directory) for name, directory in directories.items()}

    def execute(self, command: Sequence[str], *, cwd: Path | None = None, data: bytes = b"") -> bytes:
        """Run a command to its end and return what it printed. CalledProcessError if it fails."""
        process = subprocess.run(
            command, cwd=cwd or self.root, env=self.environ, input=data, capture_output=True, check=True
        )
        return process.stdout

    def folder(self, name: str, files: Mapping[str, str]) -> Path:
        """A workspace folder with these files."""
        folder = self.root / "folders" / name
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def stop_daemon(self) -> None:
        """End the daemon that all windows of this run's home share, if one runs."""
        self.execute([*self.nexus, "stop"])

    def note(self, table: str, row: str, **columns: str | float | None) -> None:
        """Add figures to the report."""
        emit(Note(table, row, columns))

    def note_turns(self, table: str, turns: "Turns") -> None:
        """Add the statistics of each lane and measure, or why there are none."""
        for lane, error in turns.errors.items():
            self.note(table, lane, why=_reason(error))
        for lane, name in turns.measures():
            series = turns[lane, name]
            columns = {"n": len(series.values), "best": min(series.values), "p50": series.at("p50")}
            columns["p95"] = series.at("p95")
            self.note(table, f"{lane}, {name}" if name else lane, **columns)


class Benchmark(Protocol):
    """A function with its promises."""

    promises: tuple[Promise, ...]
    __name__: str
    __module__: str
    __doc__: str | None

    def __call__(self, run: Run) -> Iterator[Measured]:
        """Measure and yield."""


def promises(*declared: Promise) -> Callable[[Callable[[Run], Iterator[Measured]]], Benchmark]:
    """Make a function a benchmark that keeps these promises."""

    def declare(function: Any) -> Benchmark:
        function.promises = declared
        return function  # type: ignore[no-any-return]  # what it lacked was just set

    return declare


def title_of(benchmark: Benchmark) -> str:
    """`startup` of `benchmarks.language_servers` is `language_servers.startup`."""
    return f"{benchmark.__module__.removeprefix('benchmarks.').split('.')[0]}.{benchmark.__name__}"


# ---------------------------------------------------------------- verdicts


def measure(benchmark: Benchmark, run: Run) -> Iterator[Row]:
    """The rows of a benchmark, as they become known; those that it did not yield come last."""
    missing = {promise.what: promise for promise in benchmark.promises}
    try:
        for what, *values in benchmark(run):
            yield judge(title_of(benchmark), missing.pop(what), *values)
        reason: Exception = LookupError("not measured")
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs this benchmark's rows only
        reason = error
    for promise in missing.values():
        yield failure(title_of(benchmark), promise, reason)


def judge(benchmark: str, promise: Promise, value: Value, reference: Value | None = None) -> Row:
    """Hold what was measured against a promise. ValueError if it has no reference but needs one."""
    for part in (value, reference):
        if isinstance(part, Series) and not part.values:
            row = failure(benchmark, promise, part.error or LookupError("nothing was measured"))
            return row if part is value else msgspec.structs.replace(row, value=_number(promise, value))
    if (reference is not None) != bool(promise.beside):
        raise ValueError(f"{benchmark}: {promise.what} is measured without its reference")
    number, base = _number(promise, value), None if reference is None else _number(promise, reference)
    ratio = None if base is None else number / base
    compared = number if ratio is None else ratio
    is_kept = compared >= promise.limit if promise.at_least else compared <= promise.limit
    row = failure(benchmark, promise, Exception())
    return msgspec.structs.replace(
        row, value=number, reference=base, ratio=ratio, reason="", outcome="pass" if is_kept else "MISS"
    )


def failure(benchmark: str, promise: Promise, error: Exception) -> Row:
    """The row of a promise that could not be measured."""
    return Row(
        benchmark=benchmark,
        what=promise.title,
        unit=promise.unit,
        limit=promise.limit,
        beside=promise.beside,
        at_least=promise.at_least,
        outcome="not run" if isinstance(error, UnavailableError) else "error",
        reason=_reason(error),
    )


def _number(promise: Promise, value: Value) -> float:
    return value.at(promise.statistic) if isinstance(value, Series) else float(value)


def _reason(error: Exception) -> str:
    text = str(error).strip()
    if isinstance(error, subprocess.CalledProcessError) and error.stderr:
        text += f" {error.stderr.decode(errors='replace').strip()[-300:]}"
    return " ".join((text or type(error).__name__).split())


# ---------------------------------------------------------------- measuring


Step = Callable[[], float | Mapping[str, float]]
"""One turn of a lane: its value, or one for each of its measures."""


class Turns:
    """The series of lanes, by lane and measure; `turns[lane]` is the one measure of a lane that has one."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[float]] = {}
        self.errors: dict[str, Exception] = {}

    def __getitem__(self, key: str | tuple[str, str]) -> Series:
        lane, name = (key, "") if isinstance(key, str) else key
        if lane in self.errors:
            return Series([], self.errors[lane])
        return Series(self._values.get((lane, name), []))

    def measures(self) -> list[tuple[str, str]]:
        """The lanes and measures that have values."""
        return [(lane, name) for lane, name in self._values if lane not in self.errors]

    def add(self, lane: str, value: float | Mapping[str, float], *, is_warm: bool) -> None:
        """Add one value of a lane, or one for each of its measures; the first rounds only warm up."""
        named = value if isinstance(value, Mapping) else {"": value}
        for name, number in named.items() if is_warm else ():
            self._values.setdefault((lane, name), []).append(number)

    def attempt(self, lane: str, step: Step, *, is_warm: bool) -> None:
        """Run a step of a lane; a lane that failed once takes no more turns."""
        if lane not in self.errors:
            try:
                self.add(lane, step(), is_warm=is_warm)
            except Exception as error:  # noqa: BLE001 - a lane that fails drops out; the others go on
                self.errors[lane] = error


def take_turns(steps: Mapping[str, Step], rounds: int, *, warm: int = 1) -> Turns:
    """Run the step of each lane in each round; the values of the first `warm` rounds are thrown away."""
    turns = Turns()
    with quiet():
        for number in range(warm + rounds):
            for lane, step in steps.items():
                turns.attempt(lane, step, is_warm=number >= warm)
    return turns


def best(*series: Series) -> Series:
    """The one with the smallest median; one that failed only if all have."""
    measured = [one for one in series if one.values]
    return min(measured, key=lambda one: one.at("p50")) if measured else series[0]


def milliseconds(step: Callable[[], object]) -> float:
    """The milliseconds that a call takes by the clock."""
    began = time.perf_counter()
    step()
    return (time.perf_counter() - began) * 1e3


def processor_ms(step: Callable[[], object]) -> float:
    """The milliseconds that a call takes by the processor: what else runs on the machine does not count."""
    began = time.process_time()
    step()
    return (time.process_time() - began) * 1e3


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection within."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


# ---------------------------------------------------------------- what is printed


def emit(item: Row | Note) -> None:
    """Hand a row or a note to the process that runs the benchmarks, which reads this one's output."""
    kind = "row" if isinstance(item, Row) else "note"
    print(json.dumps({kind: msgspec.to_builtins(item)}), flush=True)


def by_promise(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """Rows by benchmark and promise."""
    return {(row.benchmark, row.what): row for row in rows}


def promise_table(rows: Sequence[Row], before: Mapping[tuple[str, str], Row]) -> str:
    """The one table of all promises; `before` are the rows of an earlier run by benchmark and promise."""
    heads = ["benchmark", "promise", "nexus", "beside", "ratio", "limit", "outcome"]
    heads[5:5] = ["before"] if before else []
    lines = []
    for row in rows:
        reference = f"{figure(row.reference)} {row.unit} " if row.reference is not None else ""
        cells = [
            row.benchmark,
            row.what,
            f"{figure(row.value)} {row.unit}".strip() if row.value is not None else "",
        ]
        cells += [f"{reference}{row.beside}", compared(row)]
        cells += [compared(before.get((row.benchmark, row.what)))] if before else []
        limit = f"{'≥' if row.at_least else '≤'} {row.limit:g}{' ×' if row.beside else ''}"
        lines.append([*cells, limit, f"{row.outcome}: {row.reason}" if row.reason else row.outcome])
    return table(heads, lines)


def note_tables(notes: Sequence[Note]) -> str:
    """All further tables, in the order in which their first rows came."""
    parts = []
    for title in dict.fromkeys(note.table for note in notes):
        rows = [note for note in notes if note.table == title]
        heads = list(dict.fromkeys(name for note in rows for name in note.columns))
        lines = [[note.row, *(_cell(note.columns.get(name)) for name in heads)] for note in rows]
        parts.append(f"## {title}\n\n{table(['', *heads], lines)}")
    return "\n\n".join(parts)


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    every = [heads, *lines]
    widths = [max(3, *(len(line[column]) for line in every)) for column in range(len(heads))]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in every
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]])


def figure(value: float | None) -> str:
    """Three digits or so; whole numbers as such."""
    if value is None:
        return ""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def compared(row: Row | None) -> str:
    """The ratio of a row, or the value of one that has no reference."""
    if row is None or row.ratio is None:
        return "" if row is None or row.beside else figure(row.value)
    return f"{row.ratio:.3g} ×"


def _cell(value: str | float | None) -> str:
    return value if isinstance(value, str) else figure(value)
