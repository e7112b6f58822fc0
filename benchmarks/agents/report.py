"""The outcome as Markdown that also reads well in a terminal."""

from collections.abc import Iterable

from benchmarks.agents.runner import Outcome
from benchmarks.agents.targets import WAYS
from benchmarks.conversation.report import judged, number, table
from benchmarks.conversation.targets import Verdict
from benchmarks.ledger.report import times


def markdown(title: str, facts: dict[str, str], verdicts: Iterable[Verdict], outcome: Outcome) -> str:
    """The whole report."""
    parts = [f"# Benchmark {title}", table(("", ""), facts.items()), "## Targets", judged(verdicts)]
    if (spawning := outcome.spawning) is not None:
        rows = [
            ("in the workspace folder", spawning.own),
            ("in another directory", spawning.other),
            ("there, below an agent of the same", spawning.below),
        ]
        parts += ["## Spawn, warm", times(rows)]
    parts += ["## Many agents", _many(outcome)]
    if (previewing := outcome.previewing) is not None:
        rows = [("a folder, in Python", previewing.folder), ("as an agent, in Python", previewing.view)]
        rows += [("the first time, which makes it", previewing.first)]
        said = (
            f"Of an agent's prompt of {previewing.characters:,} characters, the tokens of each part counted."
        )
        parts += ["## Preview", said, times(rows)]
    if (asking := outcome.asking) is not None:
        rows = [("spawn in another directory", asking.spawn), ("preview of the folder", asking.folder)]
        rows += [("preview of a live agent", asking.agent), ("preview of one not started", asking.view)]
        rows += [("the first time, which makes it", asking.first)]
        parts += ["## Asked of a daemon", times(rows)]
    return "\n\n".join(parts) + "\n"


def _many(outcome: Outcome) -> str:
    rows = [
        (
            f"{each.folders} × {each.agents // each.folders}, {WAYS[way]}",
            f"{each.seconds:.2f}",
            f"{each.loading:.2f}",
            *(number(value / 1e3) for value in (each.spawn.p50, each.spawn.p95, each.spawn.worst)),
            f"{each.kilobytes:.0f}",
            f"{each.text / each.agents / 1e3:.0f}",
        )
        for way, each in outcome.many.items()
    ]
    heads = ("", "s", "s to load", "spawn ms, p50", "p95", "worst", "KB an agent", "KB its prompt")
    return table(heads, rows)
