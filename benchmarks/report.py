"""From figures to verdicts, and both as Markdown and JSON."""

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from benchmarks.figures import Failure, Series
from benchmarks.measures import ASYNCIO_PIPE, BARE_PIPE, ERRORS, LARGE_LINES, SMALL_LINES
from benchmarks.servers import ROOT, peer_versions

INITIALIZE_RATIO = 1.3
WARM_RATIO = 0.3  # where the daemon that all windows share runs already
FORWARDED_RATIO = 1.15  # of an edit in a window with a daemon of its own
FORWARDED_REPLY_RATIO = 1.6
FIRST_RATIO = 0.7  # the peers wait for more edits before their first push
# against pull diagnostics, which have no such delay
EDIT_RATIOS = {SMALL_LINES: 0.7, LARGE_LINES: 0.3}
MEMORY_RATIO = 1.0
ASSEMBLE_MS = 5.0
REPLY_RATIO = 1.5
REQUEST_RATIO = 2.0
VOCABULARY_RATIO = 2.5


class Target(msgspec.Struct, frozen=True):
    """One promise: `statistic` of nexus in `measure` is at most `limit` times that of the best of `against`.

    `lane` is the nexus lane. `against` are endings of lane names, the best one counts; if there are none,
    `limit` is absolute.
    `other` is the measure of `against` where it differs.
    """

    measure: str
    lane: str
    against: tuple[str, ...]
    limit: float
    statistic: Literal["p50", "p95"] = "p50"
    other: str | None = None
    is_beside_own: bool = False  # whether `against` is a lane of nexus


class Verdict(msgspec.Struct, frozen=True):
    """A target with its outcome; value and reference in the measure's unit, None where not measured."""

    target: Target
    unit: str
    value: float | None
    reference: float | None
    reference_lane: str | None
    ratio: float | None
    outcome: Literal["pass", "MISS", "not run"]


def targets() -> tuple[Target, ...]:
    """All promises, in the order in which they are printed."""
    push, pull = ("(push)",), ("(pull)",)
    lane = "nexus (push)"
    peer = ("vscode-json-languageserver (push)",)
    shared = [
        Target("startup / initialize", "nexus, shared (push)", peer, WARM_RATIO),
        Target("startup / initialize", "nexus, shared, cold (push)", peer, INITIALIZE_RATIO),
        *(
            Target(
                f"edit / {lines:,} lines, {error} error",
                "nexus, shared (push)",
                (lane,),
                FORWARDED_RATIO,
                is_beside_own=True,
            )
            for lines in EDIT_RATIOS
            for error in ERRORS
        ),
        Target("wire / 2 MB reply", "nexus, shared (push)", (BARE_PIPE,), FORWARDED_REPLY_RATIO),
    ]
    edits = [
        Target(f"edit / {lines:,} lines, {error} error", lane, pull, ratio, "p95")
        for lines, ratio in EDIT_RATIOS.items()
        for error in ERRORS
    ]
    resident = "memory / resident"
    return (
        Target("startup / initialize", lane, push, INITIALIZE_RATIO),
        Target("startup / first diagnostics", lane, push, FIRST_RATIO),
        *edits,
        Target("assemble / assemble", lane, (), ASSEMBLE_MS, "p95"),
        Target("wire / 2 MB reply", lane, (BARE_PIPE,), REPLY_RATIO),
        # to look at 2 MB of JSON once takes longer than a blocking pipe does: see README.md
        Target("wire / 2 MB request", lane, (ASYNCIO_PIPE,), REQUEST_RATIO),
        Target(resident, lane, push, MEMORY_RATIO),
        Target(f"{resident}, vocabulary loaded", lane, push, VOCABULARY_RATIO, other=resident),
        *shared,
    )


def judge(target: Target, series: Sequence[Series]) -> Verdict:
    """Holds one target against the figures."""
    own = next((s for s in series if s.measure == target.measure and s.lane == target.lane), None)
    rivals = [
        s
        for s in series
        if s.measure == (target.other or target.measure)
        and s.lane.startswith("nexus") == target.is_beside_own
        and s.lane.endswith(target.against)
    ]
    best = min(rivals, key=lambda s: _figure(s, target)) if target.against and rivals else None
    unit = own.unit if own else best.unit if best else "ms"
    value = _figure(own, target) if own else None
    reference = _figure(best, target) if best else None
    lane = best.lane if best else None
    if value is None or (target.against and reference is None):
        return Verdict(target, unit, value, reference, lane, None, "not run")
    ratio = value / reference if reference is not None else None
    kept = (value if ratio is None else ratio) <= target.limit
    return Verdict(target, unit, value, reference, lane, ratio, "pass" if kept else "MISS")


def _figure(series: Series, target: Target) -> float:
    return series.p95 if target.statistic == "p95" else series.p50


# ---------------------------------------------------------------- Markdown


def markdown(
    title: str,
    facts: dict[str, str],
    verdicts: Iterable[Verdict],
    series: Iterable[Series],
    failures: Sequence[Failure],
) -> str:
    """The whole report as Markdown that also reads well in a terminal."""
    parts = [f"# Benchmark {title}", _table(("", ""), facts.items()), "## Targets", _verdict_table(verdicts)]
    parts += ["## Figures", _series_table(series)]
    if failures:
        rows = [(f.measure, f.lane, f.reason.replace("\n", " ")) for f in failures]
        parts += ["## Not measured", _table(("measure", "server", "why"), rows)]
    return "\n\n".join(parts) + "\n"


def _verdict_table(verdicts: Iterable[Verdict]) -> str:
    rows = []
    for verdict in verdicts:
        target = verdict.target
        limit = f"≤ {target.limit:g} ×" if target.against else f"≤ {target.limit:g} {verdict.unit}"
        reference = (
            "" if verdict.reference is None else f"{_number(verdict.reference)} {verdict.reference_lane}"
        )
        value = "" if verdict.value is None else _number(verdict.value)
        ratio = "" if verdict.ratio is None else f"{verdict.ratio:.3g} ×"
        rows.append(
            (
                target.measure,
                target.statistic,
                target.lane,
                value,
                verdict.unit,
                reference,
                ratio,
                limit,
                verdict.outcome,
            )
        )
    heads = ("measure", "", "lane", "nexus", "unit", "reference", "ratio", "target", "outcome")
    return _table(heads, rows)


def _series_table(series: Iterable[Series]) -> str:
    rows = [
        (
            s.measure,
            s.lane,
            str(len(s.values)),
            _number(s.p50),
            _number(s.p95),
            _number(min(s.values)),
            s.unit,
        )
        for s in series
    ]
    return _table(("measure", "server", "n", "p50", "p95", "min", "unit"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [tuple(heads), *(tuple(row) for row in rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(heads))]
    text = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]])


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# ---------------------------------------------------------------- machine


def machine(node: str) -> dict[str, str]:
    """The facts without which figures mean nothing."""
    facts = {
        "CPU": _cpu(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "node": _output(node, "--version"),
        "nexusd": importlib.metadata.version("nexusd"),
        "commit": _output("git", "describe", "--always", "--dirty") or "none",
    }
    return facts | peer_versions()


def load() -> str:
    """Load averages of 1, 5 and 15 minutes."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def _output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


# ---------------------------------------------------------------- JSON


def as_json(
    title: str,
    facts: dict[str, str],
    verdicts: Iterable[Verdict],
    series: Iterable[Series],
    failures: Sequence[Failure],
) -> bytes:
    """The same, with every single value, for programs."""
    figures: list[dict[str, Any]] = [{**msgspec.to_builtins(s), "p50": s.p50, "p95": s.p95} for s in series]
    whole = {"title": title, "facts": facts, "verdicts": verdicts, "series": figures, "failures": failures}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"
