"""The one mechanism of all benchmarks: verdicts, lanes that fail, processes that crash or hang, tables."""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from inline_snapshot import snapshot

# a test's own folder is on the path, the repository's root need not be
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import __main__ as command
from benchmarks.promises import (
    ROOT,
    Measured,
    Note,
    Promise,
    Run,
    Series,
    UnavailableError,
    best,
    judge,
    measure,
    note_tables,
    promise_table,
    promises,
    take_turns,
    title_of,
)

from support.waiting import block_until

RATIO = Promise("reply", 2.0, "a peer")
RUN = Run(Path("unused"))


@pytest.mark.parametrize(
    ("promise", "values", "expected"),
    [
        (RATIO, (4.0, 2.0), ("pass", 2.0, "")),
        (RATIO, (4.1, 2.0), ("MISS", 2.05, "")),
        (RATIO, (Series([1, 9, 4]), Series([2.0])), ("pass", 2.0, "")),
        (msgspec.structs.replace(RATIO, statistic="p95"), (Series([1, 9, 4]), 2.0), ("MISS", 4.5, "")),
        (msgspec.structs.replace(RATIO, at_least=True), (3.0, 2.0), ("MISS", 1.5, "")),
        (Promise("errors", 0), (0,), ("pass", None, "")),
        (Promise("errors", 0), (1,), ("MISS", None, "")),
        (Promise("recall", 0.9, at_least=True), (0.9,), ("pass", None, "")),
        (RATIO, (4.0, Series([], UnavailableError("no node"))), ("not run", None, "no node")),
        (RATIO, (Series([], ValueError("a\nb")), 1.0), ("error", None, "a b")),
        (RATIO, (Series([]), 1.0), ("error", None, "nothing was measured")),
    ],
)
def test_verdicts(promise: Promise, values: tuple[Any, ...], expected: tuple[str, float | None, str]) -> None:
    """Outcome, ratio and reason."""
    row = judge("bench", promise, *values)
    assert (row.outcome, row.ratio, row.reason) == expected


@pytest.mark.parametrize(("promise", "values"), [(RATIO, (1.0,)), (Promise("errors", 0), (1.0, 1.0))])
def test_a_ratio_needs_its_reference_and_nothing_else_has_one(promise: Promise, values: Any) -> None:
    with pytest.raises(ValueError, match="bench: "):
        judge("bench", promise, *values)


def test_statistics_are_nearest_ranks() -> None:
    series = Series([float(value) for value in range(100, 0, -1)])
    assert [series.at(name) for name in ("p50", "p95", "p99", "worst")] == [50.5, 95, 99, 100]


@promises(Promise("one", 1.0), Promise("two", 1.0), Promise("three", 1.0))
def failing(run: Run) -> Iterator[Measured]:
    """Yields one of three."""
    yield "two", 1.0
    raise UnavailableError("needs a peer") if run.is_quick else RuntimeError("broken")


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (RUN, [("two", "pass", ""), ("one", "error", "broken"), ("three", "error", "broken")]),
        (
            Run(Path("unused"), is_quick=True),
            [("two", "pass", ""), ("one", "not run", "needs a peer"), ("three", "not run", "needs a peer")],
        ),
    ],
)
def test_what_raises_costs_only_what_it_did_not_yield(run: Run, expected: Any) -> None:
    assert [(row.what, row.outcome, row.reason) for row in measure(failing, run)] == expected


def test_lanes_take_turns_and_a_lane_that_fails_drops_out() -> None:
    steps: list[str] = []

    def step(lane: str) -> float:
        steps.append(lane)
        if lane == "b" and len(steps) > 3:
            raise OSError("gone")
        return float(len(steps))

    turns = take_turns({"a": lambda: step("a"), "b": lambda: {"x": step("b")}}, 2)
    assert steps == ["a", "b", "a", "b", "a"]
    assert turns["a"] == Series([3.0, 5.0])
    assert turns["b", "x"].values == []
    assert str(turns["b", "x"].error) == "gone"
    assert best(turns["b", "x"], turns["a"], Series([9.0])) == turns["a"]


# ---------------------------------------------------------------- processes


def run_alone(monkeypatch: pytest.MonkeyPatch, script: str) -> command.Report:
    """What is reported of `failing` if its process runs this script."""
    monkeypatch.setattr(command, "command_of", lambda title, run: [sys.executable, "-c", script])
    monkeypatch.setattr(command, "END_S", 0.5)
    report = command.Report({})
    command.measure_all([failing], argparse.Namespace(quick=True, nexus="nexus"), report)
    return report


ROW = '{"row": {"benchmark": "TITLE", "what": "two", "unit": "", "limit": 1, "outcome": "pass"}}'
ROW = ROW.replace("TITLE", title_of(failing))
PRINT = f"print({ROW!r}, flush=True)"


def test_a_process_that_crashes_costs_the_rows_that_it_did_not_print(monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"import os; {PRINT}; print('{{cut', end='', flush=True); os.kill(os.getpid(), 9)"
    report = run_alone(monkeypatch, script)
    assert [(row.what, row.outcome, row.reason) for row in report.rows] == [
        ("two", "pass", ""),
        ("one", "error", "its process ended with status -9"),
        ("three", "error", "its process ended with status -9"),
    ]


HANGING = """
import signal, subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
process = subprocess.Popen([sys.executable, "-c", child])
{print}
open({path!r}, "w").write(str(process.pid))
time.sleep(600)
"""


def test_a_process_that_hangs_is_ended_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "process"

    class Hanging(subprocess.Popen):  # type: ignore[type-arg]  # subscripted it is no class to replace
        def wait(self, timeout: float | None = None) -> int:
            if timeout == command.TIMEOUT_S:  # it is over once the process hangs
                block_until(lambda: path.is_file() and path.read_text())
                raise subprocess.TimeoutExpired("hanging", timeout)
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Hanging)
    report = run_alone(monkeypatch, HANGING.format(path=str(path), print=PRINT))
    assert [row.reason for row in report.rows] == ["", *["took longer than 600 s"] * 2]
    block_until(lambda: not _is_running(int(path.read_text())))


def _is_running(process: int) -> bool:
    """Whether it runs: one that ended may stay until somebody collects it."""
    status = Path("/proc", str(process), "stat")
    return status.exists() and ") Z " not in status.read_text()


def test_an_interrupt_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(benchmark: Any, options: Any, report: command.Report) -> None:
        command.read_output(f"{ROW}\n".encode(), report)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "measure_apart", interrupt)
    report = command.Report({})
    assert command.measure_all([failing], argparse.Namespace(), report)
    assert [(row.what, row.reason) for row in report.rows] == [
        ("two", ""),
        ("one", "interrupted"),
        ("three", "interrupted"),
    ]


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        (["pass", "pass", "pass"], 0),
        (["pass", "not run", "pass"], 0),
        (["pass", "MISS", "pass"], 1),
        (["pass", "pass"], 1),  # the third has no row
    ],
)
def test_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcomes: list[str], status: int
) -> None:
    names = zip(("one", "two", "three"), outcomes, strict=False)
    script = "; ".join(PRINT.replace("two", name).replace("pass", outcome) for name, outcome in names)
    monkeypatch.setattr(command, "benchmarks", lambda *names: iter([failing]))
    monkeypatch.setattr(command, "command_of", lambda title, run: [sys.executable, "-c", script])
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--results", str(tmp_path), "--name", "x"])
    assert command.main() == status
    assert {path.suffix for path in tmp_path.iterdir()} == {".md", ".json"}


# ---------------------------------------------------------------- tables


def test_the_table_of_two_runs() -> None:
    rows = [
        judge("bench", RATIO, 4.0, 2.5),
        judge("bench", Promise("errors", 0, unit=""), 3),
        judge("bench", Promise("other", 2.0, "a peer", "p95"), 1.0, Series([], UnavailableError("no node"))),
    ]
    before = {("bench", "reply"): judge("bench", RATIO, 4.0, 1.25)}
    assert "\n" + promise_table(rows, before) == snapshot("""\

| benchmark | promise    | nexus | beside         | ratio | before | limit | outcome          |
|-----------|------------|-------|----------------|-------|--------|-------|------------------|
| bench     | reply      | 4 ms  | 2.50 ms a peer | 1.6 × | 3.2 ×  | ≤ 2 × | pass             |
| bench     | errors     | 3     |                | 3     |        | ≤ 0   | MISS             |
| bench     | other, p95 | 1 ms  | a peer         |       |        | ≤ 2 × | not run: no node |\
""")
    assert "before" not in promise_table(rows, {})


def test_further_tables_have_a_row_for_each_lane() -> None:
    notes = [Note("A", "nexus", {"p50": 1.234}), Note("B", "x", {"n": 1_200})]
    notes += [Note("A", "peer", {"p50": 12.34, "why": "no"})]
    assert "\n" + note_tables(notes) == snapshot("""\

## A

|       | p50  | why |
|-------|------|-----|
| nexus | 1.23 |     |
| peer  | 12.3 | no  |

## B

|     | n     |
|-----|-------|
| x   | 1,200 |\
""")


def test_the_readme_has_the_promises_of_the_code() -> None:
    readme = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8")
    shown = re.search(r"results/[0-9][\w-]+\.json", readme)
    assert shown is not None
    rows = command.read_rows(str(ROOT / "benchmarks" / shown[0]))
    told = f"run: python -m benchmarks --list --before {shown[0]}"
    assert command.promises_declared(rows) in readme, told


def test_each_benchmark_has_a_title_and_promises_of_its_own() -> None:
    benchmarks = list(command.benchmarks())
    titles = [title_of(benchmark) for benchmark in benchmarks]
    assert len(set(titles)) == len(titles)
    assert {title.split(".")[0] for title in titles} == {name.split(".")[0] for name in command.MODULES}
    for benchmark in benchmarks:
        names = [promise.title for promise in benchmark.promises]
        assert len(set(names)) == len(names) > 0
        assert benchmark.__doc__
        assert list(command.benchmarks(title_of(benchmark))) == [benchmark]


def test_an_earlier_run_must_be_one(tmp_path: Path) -> None:
    for text in (None, "{}", "not JSON"):
        file = tmp_path / "run.json"
        if text is not None:
            file.write_text(text)
        with pytest.raises(argparse.ArgumentTypeError, match=r"is not the \.json of a run"):
            command.read_rows(str(file))
