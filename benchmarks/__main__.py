"""Measure Nexus beside peers and floors, and hold it to its promises: `python -m benchmarks`.

Each benchmark runs in a process and a home of its own; one that crashes, hangs or is missed does not stop the
others. At the end comes one table of all promises, also as results/<date>-<name>.md and .json.
The exit code is 1 if a promise is missed or a benchmark failed, 130 after Ctrl-C; promises that this machine
cannot measure ("not run") do not count.
"""

import argparse
import datetime
import importlib
import importlib.metadata
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from benchmarks.promises import (
    ROOT,
    Benchmark,
    Note,
    Promise,
    Row,
    Run,
    by_promise,
    compared,
    emit,
    failure,
    measure,
    note_tables,
    promise_table,
    table,
    title_of,
)

MODULES = (
    "editor_features",
    "language_servers",
    "windows",
    "folders",
    "instructions",
    "assistant_checks",
    "assistant_sessions",
    "hooks",
    "mcp_server",
    "mcp_servers",
    "keep",
    "ledger.measures",
    "agents.measures",
    "knowledge.measures",
    "conversation.measures",
    "panel",
    "providers",
)
"""Where the benchmarks are: each function of these modules that `promises` decorates."""
TIMEOUT_S = 600.0  # of one benchmark
END_S = 10.0  # until a benchmark that is interrupted is killed


class Report(msgspec.Struct):
    """Everything that a run measured."""

    facts: dict[str, str]
    rows: list[Row] = []
    notes: list[Note] = []


def main() -> int:
    """Run what is chosen and print the table."""
    options = _options()
    if options.measure:
        return _measure_here(options)
    if options.list:
        print(promises_declared(options.before))
        return 0
    chosen = list(benchmarks(*options.only))
    if not chosen:
        print(f"no benchmark is called {', '.join(options.only)}; see --list", file=sys.stderr)
        return 2
    report = Report(facts())
    is_interrupted = measure_all(chosen, options, report)
    before = by_promise(options.before)
    name = options.name or ("quick" if options.quick else "full")
    print(_write(report, options.results / f"{_today()}-{name}", promise_table(report.rows, before)))
    failed = any(row.outcome in ("MISS", "error") for row in report.rows)
    return 130 if is_interrupted else int(failed)


def benchmarks(*names: str) -> Iterator[Benchmark]:
    """The benchmarks of these modules or titles, or all, in the order in which they run."""
    for name in MODULES:
        short = name.split(".")[0]
        if names and short not in {chosen.split(".")[0] for chosen in names}:
            continue
        module = importlib.import_module(f"benchmarks.{name}")
        for item in vars(module).values():
            is_benchmark = hasattr(item, "promises") and item.__module__ == module.__name__
            if is_benchmark and (not names or {short, title_of(item)} & set(names)):
                yield item


def promises_declared(measured: Sequence[Row] = ()) -> str:
    """All promises; with the rows of a run, as README.md lists them: beside what that run measured."""
    rows = by_promise(measured)
    heads = ["benchmark", "promise", "beside", "limit", *(["measured"] if measured else [])]
    lines = [
        [
            title_of(benchmark),
            promise.title,
            promise.beside or f"({promise.unit or 'share'})",
            f"{'≥' if promise.at_least else '≤'} {promise.limit:g}{' ×' if promise.beside else ''}",
            *([compared(rows.get((title_of(benchmark), promise.title)))] if measured else []),
        ]
        for benchmark in benchmarks()
        for promise in benchmark.promises
    ]
    return table(heads, lines)


def facts() -> dict[str, str]:
    """The facts without which figures mean nothing."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    processors = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "CPU": next(processors, platform.processor()),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "node": _output("node", "--version"),
        "nexusd": importlib.metadata.version("nexusd"),
        "commit": _output("git", "describe", "--always", "--dirty"),
        "load": " ".join(f"{value:.2f}" for value in os.getloadavg()),
    }


# ---------------------------------------------------------------- processes


def measure_all(chosen: list[Benchmark], options: argparse.Namespace, report: Report) -> bool:
    """Measure each benchmark in its process; whether the user interrupted that."""
    for number, benchmark in enumerate(chosen):
        print(f"{number + 1}/{len(chosen)} {title_of(benchmark)} …", file=sys.stderr)
        try:
            measure_apart(benchmark, options, report)
        except KeyboardInterrupt:
            for skipped in chosen[number:]:
                _fail_rest(skipped, report, "interrupted")
            return True
    return False


def measure_apart(benchmark: Benchmark, options: argparse.Namespace, report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="nexus-bench-", ignore_cleanup_errors=True) as root:
        run = Run(Path(root), options.quick, tuple(shlex.split(options.nexus)))
        with tempfile.TemporaryFile() as output:
            command = command_of(title_of(benchmark), run)
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, start_new_session=True)
            reason = f"took longer than {TIMEOUT_S:g} s"
            try:
                status = process.wait(TIMEOUT_S)
                reason = f"its process ended with status {status}"
            except subprocess.TimeoutExpired:
                pass
            finally:
                _end(process, run)
                output.seek(0)
                read_output(output.read(), report)
        _fail_rest(benchmark, report, reason)


def command_of(title: str, run: Run) -> list[str]:
    """The command of the process that measures one benchmark and prints its rows."""
    command = [sys.executable, "-m", "benchmarks", "--measure", title, str(run.root)]
    return [*command, "--nexus", shlex.join(run.nexus), *(["--quick"] if run.is_quick else [])]


def _end(process: "subprocess.Popen[bytes]", run: Run) -> None:
    """End a benchmark with all that it started, also the daemon of its home."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(END_S)
    if (run.root / "run").exists():
        with suppress(OSError):
            subprocess.run([*run.nexus, "stop"], env=run.environ, capture_output=True, check=False)


def read_output(output: bytes, report: Report) -> None:
    """Add the rows and notes that a benchmark printed."""
    for line in output.rpartition(b"\n")[0].splitlines():  # the last may be cut
        item = json.loads(line)
        if "row" in item:
            report.rows.append(msgspec.convert(item["row"], Row))
            print(promise_table(report.rows[-1:], {}).splitlines()[-1], file=sys.stderr)
        else:
            report.notes.append(msgspec.convert(item["note"], Note))


def _fail_rest(benchmark: Benchmark, report: Report, reason: str) -> None:
    """Give the promises that a benchmark left without a row their reason."""
    title = title_of(benchmark)
    present = {(row.benchmark, row.what) for row in report.rows}
    missing: list[Promise] = [one for one in benchmark.promises if (title, one.title) not in present]
    report.rows += [failure(title, promise, RuntimeError(reason)) for promise in missing]


def _measure_here(options: argparse.Namespace) -> int:
    """The part of the process that measures: print each row as soon as it is known."""
    title, root = options.measure
    (benchmark,) = benchmarks(title)
    for row in measure(benchmark, Run(Path(root), options.quick, tuple(shlex.split(options.nexus)))):
        emit(row)
    return 0


# ---------------------------------------------------------------- report


def _write(report: Report, stem: Path, promises: str) -> str:
    parts = [f"# Benchmark {stem.name}", table(("", ""), list(map(list, report.facts.items())))]
    parts += ["## Promises", promises, note_tables(report.notes)]
    text = "\n\n".join(filter(None, parts)) + "\n"
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".md").write_text(text, encoding="utf-8")
    stem.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")
    print(f"written to {stem}.md and .json", file=sys.stderr)
    return promises


def read_rows(path: str) -> list[Row]:
    """The rows of an earlier run. ArgumentTypeError if there are none."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Report).rows
    except (OSError, msgspec.DecodeError) as error:
        raise argparse.ArgumentTypeError(f"{path} is not the .json of a run: {error}") from error


def _today() -> str:
    return datetime.datetime.now().astimezone().date().isoformat()


def _output(*command: str) -> str:
    try:
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return "none"
    return process.stdout.strip() or "none"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a module or a benchmark; repeatable"
    )
    parser.add_argument("--list", action="store_true", help="print all promises and measure nothing")
    parser.add_argument("--quick", action="store_true", help="few repetitions: does everything work?")
    parser.add_argument("--before", type=read_rows, default=[], metavar="FILE.json", help="an earlier run")
    parser.add_argument("--nexus", default=shlex.join(Run(Path()).nexus), help="the program that is measured")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results", help="for the report")
    parser.add_argument("--name", help="the report's name after the date [full or quick]")
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "ROOT"), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
