"""The embedded summarizer: sentences picked from the conversation, without a model, as the summary states.

1. Facts come from `extract_facts`; names and values that no fact holds come from an index of identifiers.
2. Every section gets its share of the limit, the most important facts first. What is left goes to the
   sections in the order of SHARES. Within a section facts stand in the order of time.
3. Facts are taken or dropped whole; only a message longer than its share is shortened, with a mark. The
   summary says how many facts of each section were dropped.
4. Pins come whole. The text never exceeds the limit. The same messages give the same text.
"""

from collections.abc import Mapping, Sequence

import msgspec

from nexus_context.conversation.compaction.extract_facts import (
    SECTIONS,
    Fact,
    Facts,
    Section,
    extract_facts,
    headings,
)
from nexus_context.conversation.compaction.receipt import CompactionError
from nexus_context.conversation.compaction.summarizer import SummaryRequest, Written
from nexus_context.conversation.identifiers import IdentifierIndex, list_of
from nexus_context.conversation.message import Message
from nexus_context.conversation.shortening import shorten_text
from nexus_context.conversation.summary import unwrapped, with_pins
from nexus_context.prompt import texts
from nexus_context.tokens import TokenCounter

NAME = "extractive"

# section → share of the limit, in the order in which sections get what others leave
SHARES: Mapping[Section, float] = {
    "goal": 0.10,
    "instructions": 0.25,
    "latest": 0.12,
    "tasks": 0.08,
    "files": 0.10,
    "errors": 0.08,
    "decisions": 0.12,
    "commands": 0.10,
    "state": 0.05,
}
NAMES_SHARE = 0.15
"""Most of the limit that names and values may take; it is reserved for them."""
RECENCY = 0.8
"""Weight that the newest fact has over the oldest."""
MOST_LATEST = 6
"""Newest user messages that stay verbatim."""
_CHARACTERS = 3  # of a token, at least: to shorten a message to a share without counting twice


def extract(request: SummaryRequest, counter: TokenCounter) -> Written:
    """The embedded summary of a request. Raises `CompactionError` if nothing fits the limit."""
    facts = extract_facts(request.replaced)
    text = _summary(request.replaced, facts, counter, limit=request.limit, pins=request.pins)
    if not text:
        raise CompactionError(
            f"Nothing was compacted: {request.limit} tokens are too few for a summary.", code="no-summary"
        )
    return Written(text, NAME, facts=facts)


def summary(
    messages: Sequence[Message], counter: TokenCounter, *, limit: int, pins: Sequence[str] = ()
) -> str:
    """A summary of the messages in at most `limit` tokens, pins included; empty if none fits."""
    return _summary(messages, extract_facts(messages), counter, limit=limit, pins=pins)


def _summary(
    messages: Sequence[Message], facts: Facts, counter: TokenCounter, *, limit: int, pins: Sequence[str]
) -> str:
    pinned = with_pins("", pins).strip()
    room = limit - (counter.count(f"\n\n{pinned}") + 2 if pinned else 0)
    shell = _rendered({}, _dropped(facts, {}), "")
    chosen = _chosen(facts, counter, room - counter.count(shell) - 2)
    while True:
        text = _rendered(chosen, _dropped(facts, chosen), "")
        spent = counter.count(text)
        if spent <= room:
            break
        if not _drop_one(chosen):
            return pinned if counter.count(pinned) <= limit else ""
    names = _names(messages, counter, min(room - spent, int(limit * NAMES_SHARE)), text)
    if not any(chosen.values()) and not names:
        return pinned if counter.count(pinned) <= limit else ""
    end = [pinned] if pinned else []
    whole = "\n\n".join([_rendered(chosen, _dropped(facts, chosen), names), *end])
    return whole if counter.count(whole) <= limit else "\n\n".join([text, *end])


def _chosen(facts: Facts, counter: TokenCounter, room: int) -> dict[Section, list[Fact]]:
    """The facts of each section that fit."""
    room -= int(room * NAMES_SHARE)
    waiting: dict[Section, list[tuple[Fact, int]]] = {}
    spent: dict[Section, int] = {}
    chosen: dict[Section, list[Fact]] = {section: [] for section in SECTIONS}
    titles = headings()
    for section, share in SHARES.items():
        most = int(room * share)
        candidates = [_fitting(fact, most) for fact in _ranked(facts, section)]
        title = counter.count(f"\n\n## {titles[section]}\n")
        waiting[section] = [(fact, counter.count(_line(fact)) + 1) for fact in candidates]
        spent[section] = title if candidates else 0
        _take(chosen[section], waiting[section], most - spent[section])
        spent[section] += sum(counter.count(_line(fact)) + 1 for fact in chosen[section])
    left = room - sum(cost for section, cost in spent.items() if chosen[section])
    for section in SHARES:
        before = len(chosen[section])
        title = 0 if before else counter.count(f"\n\n## {titles[section]}\n")
        cost = _take(chosen[section], waiting[section], left - title)
        left -= cost + (title if cost else 0)
    return chosen


def _take(chosen: list[Fact], waiting: list[tuple[Fact, int]], room: int) -> int:
    """Move the facts that fit from `waiting` to `chosen`; returns the tokens that they take."""
    taken = 0
    rest = []
    for fact, cost in waiting:
        if taken + cost <= room:
            chosen.append(fact)
            taken += cost
        else:
            rest.append((fact, cost))
    waiting[:] = rest
    return taken


def _ranked(facts: Facts, section: Section) -> list[Fact]:
    """The facts of a section, the most important first."""
    candidates = facts.of(section)
    if section == "latest":
        return [fact for fact in reversed(candidates) if fact not in facts.of("goal")][:MOST_LATEST]
    newest = max((fact.at for fact in candidates), default=0) or 1
    return sorted(
        candidates, key=lambda fact: (-fact.weight - RECENCY * fact.at / newest, -fact.at, fact.text)
    )


def _fitting(fact: Fact, most: int) -> Fact:
    """The fact, shortened with a mark if it is longer than `most` tokens can hold."""
    text = shorten_text(fact.text, max(most * _CHARACTERS, 80))
    return fact if text is fact.text else msgspec.structs.replace(fact, text=text)


def _dropped(facts: Facts, chosen: Mapping[Section, Sequence[Fact]]) -> dict[Section, int]:
    """How many facts of each section are left out."""
    counts = {}
    for section in SHARES:
        total = len(facts.of(section)) if section != "latest" else 0
        if total > len(chosen.get(section, ())):
            counts[section] = total - len(chosen.get(section, ()))
    return counts


def _drop_one(chosen: dict[Section, list[Fact]]) -> bool:
    """Drop the least important fact of the last section that has one."""
    for section in reversed(list(SHARES)):
        if chosen[section]:
            chosen[section].pop()
            return True
    return False


def _names(messages: Sequence[Message], counter: TokenCounter, room: int, text: str) -> str:
    """The names and values that `text` lacks, as many as fit."""
    title = f"\n\n## {headings()['facts']}"
    index = IdentifierIndex()
    index.extend(map(unwrapped, messages))
    names = (name for name in index.ranked() if name.kind != "command" and name.text not in text)
    return list_of(names, counter, room - counter.count(title) - 4)


def _rendered(chosen: Mapping[Section, Sequence[Fact]], dropped: Mapping[Section, int], names: str) -> str:
    titles = headings()
    opening = texts.text("summary_extractive")
    if dropped:
        counts = ", ".join(f"{titles[section]} {count}" for section, count in dropped.items())
        opening = f"{opening} {texts.text('summary_left_out').format(counts=counts)}"
    parts = [opening]
    for section in SECTIONS:
        facts = sorted(chosen.get(section, ()), key=lambda fact: fact.at)
        if facts:
            parts.append("\n".join([f"## {titles[section]}", *map(_line, facts)]))
    if names:
        parts.append(f"## {titles['facts']}\n{names}")
    return "\n\n".join(parts)


def _line(fact: Fact) -> str:
    return "- " + fact.text.replace("\n", "\n  ")
