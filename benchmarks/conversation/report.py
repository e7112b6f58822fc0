"""The outcome as Markdown that also reads well in a terminal, and as JSON."""

import statistics
from collections.abc import Iterable, Sequence

import msgspec
from benchmarks.conversation.fact_quality import MODELS, UNCUT, FactQuality
from benchmarks.conversation.runner import LOCK, Outcome
from benchmarks.conversation.speed import Stepping
from benchmarks.conversation.survival import KINDS, Share
from benchmarks.conversation.targets import Verdict
from benchmarks.conversation.traces import tau_file
from benchmarks.conversation.worker import Walked

SHOWN = ("langchain-core", "haystack-ai", "pydantic-ai-harness", "openai-agents", "tiktoken")

TRACES = ("tau-bench", "synthetic", "coding", "coding, observations", "long tool turns")
VENDORS: list[str] = [*MODELS]

Row = Sequence[str]


def versions() -> dict[str, str]:
    """The locked versions of the peers, and of the tokenizer that counts for all."""
    pins = (line.partition("==") for line in LOCK.read_text(encoding="utf-8").splitlines())
    return {name: version for name, _, version in pins if name in SHOWN}


def markdown(title: str, facts: dict[str, str], verdicts: Iterable[Verdict], outcome: Outcome) -> str:
    """The whole report."""
    parts = [f"# Benchmark {title}", table(("", ""), facts.items()), "## Targets", judged(verdicts)]
    if not tau_file().is_file():
        parts.append("tau-bench: not present (see `NEXUS_CORPORA`); the targets are held on the made chat.")
    for sessions, window in _survivals(outcome):
        title = f"## Survival: {sessions}, window {window:,} tokens"
        parts += [title, _survival(outcome, sessions, window)]
    for vendor, trace, budget in _fact_walks(outcome):
        room = "uncut" if budget >= UNCUT else f"budget {budget:,} tokens"
        parts += [
            f"## With facts in every turn, {vendor}: {trace}, {room}",
            _facts(outcome, vendor, trace, budget),
        ]
    if outcome.turns:
        parts += ["## A turn with facts: append, build, append, µs", _steps(outcome.turns)]
    if not outcome.walks:
        return "\n\n".join([*parts, *_failures(outcome)]) + "\n"
    walks = sorted(
        {(each.trace, each.budget) for found in outcome.walks.values() for each in found}, key=_order
    )
    for trace, budget in walks:
        parts += [f"## Quality: {trace}, budget {budget:,} tokens", _quality(outcome, trace, budget)]
    parts += [
        "## Add + build, µs",
        _steps(outcome.steps),
        "## Add with an exact count, µs a message",
        _added(outcome),
    ]
    parts += ["## Encode 500 messages, µs", _encoded(outcome)]
    return "\n\n".join([*parts, *_failures(outcome)]) + "\n"


def _failures(outcome: Outcome) -> list[str]:
    rows = [(each.subject, each.question, each.reason) for each in outcome.failures]
    return ["## Not measured", table(("subject", "question", "why"), rows)] if rows else []


def as_json(title: str, facts: dict[str, str], verdicts: Iterable[Verdict], outcome: Outcome) -> bytes:
    """The same for programs."""
    judged = [msgspec.to_builtins(verdict) | {"result": verdict.result} for verdict in verdicts]
    whole = {"title": title, "facts": facts, "verdicts": judged, "outcome": outcome}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def _order(walk: tuple[str, int]) -> tuple[int, int]:
    trace, budget = walk
    return TRACES.index(trace), -budget


def judged(verdicts: Iterable[Verdict]) -> str:
    """The table of the promises."""
    rows = [
        (
            each.promise,
            "" if each.value is None else number(each.value),
            each.unit,
            f"{'≥' if each.at_least else '≤'} {each.limit:g}",
            each.result,
        )
        for each in verdicts
    ]
    return table(("promise", "nexus", "unit", "target", "outcome"), rows)


def _quality(outcome: Outcome, trace: str, budget: int) -> str:
    heads = ("", "requests", "full", "broken", "start", "over", "lost", "no system", "refused")
    rows = [
        (name, *_counts(each), *_shares(each))
        for name, found in outcome.walks.items()
        for each in found
        if (each.trace, each.budget) == (trace, budget)
    ]
    return table((*heads, "hit %", "cost", "recall", "far"), rows)


def _counts(walk: Walked) -> list[str]:
    found = walk.quality
    counts = (found.requests, found.full, found.broken, found.wrong_start, found.over_budget)
    return [str(each) for each in (*counts, found.lost, found.no_system, found.failed)]


def _shares(walk: Walked) -> tuple[str, ...]:
    quality = walk.quality
    shares = f"{quality.cost:.3f}", f"{quality.recall:.3f}", f"{quality.far:.3f}"
    return (f"{100 * quality.hit:.1f}", *shares)


def _survivals(outcome: Outcome) -> list[tuple[str, int]]:
    keys = {(each.sessions, each.window): None for found in outcome.survived.values() for each in found}
    return list(keys)


def _survival(outcome: Outcome, sessions: str, window: int) -> str:
    heads = (
        "",
        "n",
        "names",
        *KINDS,
        "orders after 5",
        "plain of 6",
        "least",
        "tokens",
        "limit used",
        "worst ms",
    )
    rows = [
        (
            name,
            str(s.compactions),
            *map(_share, (s.names, *(s.marks[kind] for kind in KINDS), s.five["orders"])),
            "" if not s.five["plain"].total else f"{6 * (s.five['plain'].value or 0):.1f}",
            "" if s.least_plain is None else str(s.least_plain),
            f"{sum(s.tokens) / len(s.tokens):,.0f}",
            f"{statistics.median(s.used):.2f}" if s.used else "",
            number(max(s.milliseconds)) if s.used else "",
        )
        for name, survived in outcome.survived.items()
        for each in survived
        if (each.sessions, each.window) == (sessions, window)
        for s in (each.survival,)
    ]
    return table(heads, rows)


def _share(share: Share) -> str:
    return "" if share.value is None else f"{share.value:.2f}"


def _fact_walks(outcome: Outcome) -> list[tuple[str, str, int]]:
    walks = {
        (each.vendor, each.trace, each.budget): None
        for walked in outcome.with_facts.values()
        for each in walked
    }
    return sorted(walks, key=lambda walk: (VENDORS.index(walk[0]), *_order(walk[1:])))


def _facts(outcome: Outcome, vendor: str, trace: str, budget: int) -> str:
    heads = (
        "",
        "requests",
        "full",
        "over",
        "refused",
        "invalid",
        "hit %",
        "cost",
        "recall",
        "add + build µs",
    )
    rows = [
        (name, *map(str, (q.requests, q.full, q.over_budget, q.refused, q.invalid)), *_rates(q))
        for name, walked in outcome.with_facts.items()
        for each in walked
        if (each.vendor, each.trace, each.budget) == (vendor, trace, budget)
        for q in (each.quality,)
    ]
    return table(heads, rows)


def _rates(quality: FactQuality) -> tuple[str, ...]:
    if not quality.sent_tokens:
        return "", "", "", number(quality.step_us)
    rates = (f"{100 * quality.hit:.1f}", f"{quality.cost:.3f}", f"{quality.recall:.3f}")
    return (*rates, number(quality.step_us))


def _steps(steps: dict[str, list[Stepping]]) -> str:
    rows = [
        (
            name,
            f"{each.messages:,}",
            str(each.steps.n),
            *map(number, (each.steps.p50, each.steps.p95, each.steps.mean, each.steps.worst, each.cold)),
        )
        for name, found in steps.items()
        for each in found
    ]
    return table(("", "messages", "n", "p50", "p95", "mean", "worst", "first build"), rows)


def _added(outcome: Outcome) -> str:
    rows = []
    for name, each in outcome.added.items():
        for what, times in ((name, each.added), ("the tokenizer alone", each.floor)):
            rows.append((what, str(times.n), f"{each.tokens:.0f}", number(times.p50), number(times.p95)))
    return table(("", "n", "tokens", "p50", "p95"), rows)


def _encoded(outcome: Outcome) -> str:
    rows = [
        (
            name,
            str(each.encoded.n),
            *map(number, (each.encoded.p50, each.stdlib.p50, each.encoded.p50 / each.stdlib.p50)),
        )
        for name, each in outcome.encoded.items()
    ]
    return table(("", "n", "p50", "json.dumps of OpenAI's form", "ratio"), rows)


def number(value: float) -> str:
    """Three digits or so; whole numbers as such."""
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def table(heads: Row, rows: Iterable[Row]) -> str:
    """A Markdown table with aligned columns: the first to the left, the others to the right."""
    lines = [tuple(heads), *(tuple(row) for row in rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(heads))]
    text = [
        "| "
        + " | ".join(
            cell.rjust(width) if column and len(heads) > 3 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in lines
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]])
