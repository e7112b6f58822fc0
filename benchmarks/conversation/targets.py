"""The promises about conversations, and whether they are kept."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from benchmarks.conversation.fact_quality import UNCUT, WalkedWithFacts
from benchmarks.conversation.runner import BUDGETS, Outcome
from benchmarks.conversation.subject import NEXUS
from benchmarks.conversation.survival import Survived
from benchmarks.conversation.worker import Walked

ADD_US = 100.0
STEP_US = 50.0
STEP_RATIO = 2.0  # of the slowest length of history to the quickest
ENCODE_RATIO = 0.1  # of `json.dumps`
HIT = 0.94
COST = 0.17
RECALL = 0.95
FACTS_HIT = 0.95
FACTS_HIT_UNCUT = 0.97
FACTS_COST = 0.14

NAMES_KEPT = {40_000: 0.83, 100_000: 0.80}
MARKS_KEPT = {"order": 0.95, "error": 0.8}
EDITED_KEPT = {200_000: 1.0}
COMPACTION_MS = 300.0

Result = Literal["pass", "MISS", "not run"]


class Verdict(msgspec.Struct, frozen=True):
    """One promise with its outcome; `value` is None where nothing was measured."""

    promise: str
    value: float | None
    unit: str
    limit: float
    at_least: bool = False

    @property
    def result(self) -> Result:
        if self.value is None:
            return "not run"
        kept = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "pass" if kept else "MISS"


def verdicts(outcome: Outcome) -> list[Verdict]:
    """All promises, in the order in which they are printed."""
    survival = list(_survival(outcome.survived.get(NEXUS, [])))
    if outcome.survived and not outcome.with_facts:
        return survival
    facts = list(_with_facts(outcome.with_facts.get(NEXUS, [])))
    if not outcome.walks and outcome.with_facts:
        return facts
    return [*_speed(outcome), *_quality(outcome.walks.get(NEXUS, [])), *facts, *survival]


def _speed(outcome: Outcome) -> Iterator[Verdict]:
    added = outcome.added.get(NEXUS)
    yield Verdict("add a message, with its exact count", added.added.p50 if added else None, "µs", ADD_US)
    steps = outcome.steps.get(NEXUS, [])
    for each in steps:
        yield Verdict(f"add + build at {each.messages:,} messages", each.steps.p50, "µs", STEP_US)
    medians = [each.steps.p50 for each in steps]
    ratio = max(medians) / min(medians) if len(medians) > 1 else None
    yield Verdict("add + build, slowest length to quickest", ratio, "×", STEP_RATIO)
    encoded = outcome.encoded.get(NEXUS)
    relative = encoded.encoded.p50 / encoded.stdlib.p50 if encoded else None
    yield Verdict("encode 500 messages, relative to json.dumps", relative, "×", ENCODE_RATIO)


def _quality(walks: list[Walked]) -> Iterator[Verdict]:
    for name, what in (
        ("broken", "a broken pair"),
        ("wrong_start", "a wrong start"),
        ("over_budget", "more than the budget"),
        ("lost", "the newest message lost"),
        ("no_system", "the system prompt lost"),
        ("failed", "a refusal"),
    ):
        value = sum(getattr(walk.quality, name) for walk in walks) if walks else None
        yield Verdict(f"requests with {what}, all chats", value, "", 0)
    judged = next((walk for walk in walks if walk.budget == BUDGETS[0]), None)
    where = f", {judged.trace} at {judged.budget:,}" if judged else ""
    quality = judged.quality if judged else None
    yield Verdict(f"read from the cache{where}", quality.hit if quality else None, "", HIT, at_least=True)
    yield Verdict(f"cost of a sent token{where}", quality.cost if quality else None, "", COST)
    yield Verdict(
        f"recall of identifiers{where}", quality.recall if quality else None, "", RECALL, at_least=True
    )


def _survival(survived: list[Survived]) -> Iterator[Verdict]:
    """What survives compactions of the held-out sessions; the worst window counts if none is named."""
    held = {each.window: each.survival for each in survived if each.sessions == "held-out"}
    for window, least in NAMES_KEPT.items():
        value = held[window].names.value if window in held else None
        promise = f"names needed next, after a compaction at {window:,}"
        yield Verdict(promise, value, "", least, at_least=True)
    for window, least in EDITED_KEPT.items():
        value = held[window].marks["edited"].value if window in held else None
        promise = f"edited files, after a compaction at {window:,}"
        yield Verdict(promise, value, "", least, at_least=True)
    for kind, least in MARKS_KEPT.items():
        shares = [share for each in held.values() if (share := each.marks[kind].value) is not None]
        promise = f"{kind}s word for word, after a compaction at any window"
        yield Verdict(promise, min(shares, default=None), "", least, at_least=True)
    five = [each for each in held.values() if each.least_plain is not None]
    orders = min((each.five["orders"].value or 0.0 for each in five), default=None)
    plain = min((each.least_plain or 0 for each in five), default=None)
    yield Verdict("orders after five compactions", orders, "", 1.0, at_least=True)
    yield Verdict(
        "plain facts, preferences, findings after five, of 6, worst session", plain, "", 4, at_least=True
    )
    worst = max((max(each.milliseconds) for each in held.values()), default=None)
    yield Verdict("compaction of 200,000 tokens or less, worst", worst, "ms", COMPACTION_MS)


def _with_facts(walks: list[WalkedWithFacts]) -> Iterator[Verdict]:
    """Of the two vendors the worse one counts. Cut, the first chat counts, as without facts."""
    for name, what in (("refused", "thinking refused"), ("invalid", "another refusal")):
        value = sum(getattr(walk.quality, name) for walk in walks) if walks else None
        yield Verdict(f"requests with facts and {what}, all chats", value, "", 0)
    for trace, budget in dict.fromkeys((walk.trace, walk.budget) for walk in walks):
        if budget < UNCUT and trace != walks[0].trace:
            continue
        qualities = [walk.quality for walk in walks if (walk.trace, walk.budget) == (trace, budget)]
        where = f", {trace} {'uncut' if budget >= UNCUT else f'at {budget:,}'}, with facts"
        least = FACTS_HIT_UNCUT if budget >= UNCUT else FACTS_HIT
        hit, cost = min(each.hit for each in qualities), max(each.cost for each in qualities)
        yield Verdict(f"read from the cache{where}", hit, "", least, at_least=True)
        yield Verdict(f"cost of a sent token{where}", cost, "", FACTS_COST)
        if budget < UNCUT:
            recall = min(each.recall for each in qualities)
            yield Verdict(f"recall of identifiers{where}", recall, "", RECALL, at_least=True)
