"""Writes summaries without a model: the embedded summarizer picks sentences from the conversation, and the
summary says so.

1. Facts come from `extract_facts`. Names and values come from an index of identifiers, unless a fact or a
   preserved message already has them. Files that were only read are among the names.
2. Every section gets its share of the limit, and takes its most important facts first. What the sections
   leave is offered to them again, in the order of LEFTOVER. Then SPARE facts (commands that only read,
   remarks of the assistant) get half of the rest. Names get NAMES_SHARE of the limit and everything that is
   left then. Within a section, facts stand in the order of time.
3. Facts are taken or dropped whole. Only a long message is shortened, with a mark; its sentences that
   instruct are facts of their own. The summary says how many facts of each section were dropped.
4. Pins are never shortened. The text never exceeds the limit. The same messages give the same text.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from nexus_context.conversation.compaction.extract_facts import (
    SECTIONS,
    Fact,
    Facts,
    Section,
    extract_facts,
    headings,
)
from nexus_context.conversation.compaction.names_note import NAMES_SHARE, missing_names, names_in, texts_of
from nexus_context.conversation.compaction.receipt import CompactionError
from nexus_context.conversation.compaction.summarizer import SummaryRequest, Written
from nexus_context.conversation.identifiers import IdentifierIndex
from nexus_context.conversation.message import Message
from nexus_context.conversation.shortening import shorten_text
from nexus_context.conversation.summary import with_pins
from nexus_context.folder.prompt import texts
from nexus_context.text.redact import redact_message
from nexus_context.tokens import TokenCounter

NAME = "extractive"

# section → share of the limit, in the order in which sections get what others leave
SHARES: Mapping[Section, float] = {
    "goal": 0.05,
    "latest": 0.28,
    "instructions": 0.08,
    "tasks": 0.05,
    "files": 0.18,
    "errors": 0.22,
    "decisions": 0.08,
    "commands": 0.02,
    "state": 0.04,
}
LITTLE = 500
"""Tokens for facts below which what the user said comes before all else."""
LEFTOVER: Sequence[Section] = (
    *("goal", "instructions", "latest", "tasks", "files", "errors", "decisions", "state", "commands"),
)
"""Sections in the order in which they get what the shares leave."""
RECENCY: Mapping[Section, float] = {"latest": 0.5, "instructions": 0.3, "decisions": 0.4}
"""Weight that the newest fact of a section has over the oldest; RECENT in other sections."""
RECENT = 0.8
LONG_MESSAGE = 0.35
"""Share of the room for messages that one long message may take."""
_USERS = ("goal", "latest", "instructions")
_MESSAGES: Sequence[Section] = ("goal", "latest")
_SPARE_SECTIONS: Sequence[Section] = ("commands", "decisions")
_MARK = 80  # characters of the mark of a shortened text, at most
SPARE = 0.3
"""Weight up to which a fact only uses room that nothing else takes: a command that only reads, a remark."""
_CHANGED = 2.0  # weight of a file that was changed
_CHARACTERS = 3  # of a token, at least: to shorten a message to a share without counting twice


def extract(request: SummaryRequest, counter: TokenCounter) -> Written:
    """Write the embedded summary for a request. Raise `CompactionError` if nothing fits the limit."""
    index = names_in(request.replaced)
    source = _Source(extract_facts(request.replaced), index, request.preserved)
    text = _summary(source, counter, limit=request.limit, pins=request.pins)
    if not text:
        raise CompactionError(
            f"Nothing was compacted: {request.limit} tokens are too few for a summary.", code="no-summary"
        )
    return Written(text, NAME, facts=source.facts, index=index)


def summary(
    messages: Sequence[Message], counter: TokenCounter, *, limit: int, pins: Sequence[str] = ()
) -> str:
    """Return a summary of the messages with at most `limit` tokens, including the pins. Return "" if none
    fits.
    """
    source = _Source(extract_facts(messages), names_in(messages))
    return _summary(source, counter, limit=limit, pins=pins)


class _Source(NamedTuple):
    """The input of a summary."""

    facts: Facts
    names: IdentifierIndex
    preserved: Sequence[Message] = ()  # messages that stay: names in them need no place


def _summary(source: _Source, counter: TokenCounter, *, limit: int, pins: Sequence[str]) -> str:
    pinned = with_pins("", [redact_message(pin) for pin in pins]).strip()
    room = limit - (counter.count(f"\n\n{pinned}") + 2 if pinned else 0)
    choice = _Choice(source.facts, counter)
    shell = _rendered({}, choice.dropped(), "")
    choice.choose(room - counter.count(shell) - 2)
    while True:
        text = _rendered(choice.chosen, choice.dropped(), "")
        spent = counter.count(text)
        if spent <= room:
            break
        if not choice.drop_one():
            return pinned if counter.count(pinned) <= limit else ""
    names = _names(source, counter, room - spent, text)
    if not any(choice.chosen.values()) and not names:
        return pinned if counter.count(pinned) <= limit else ""
    end = [pinned] if pinned else []
    text_with_names = "\n\n".join([_rendered(choice.chosen, choice.dropped(), names), *end])
    return text_with_names if counter.count(text_with_names) <= limit else "\n\n".join([text, *end])


class _Choice:
    """Chooses the facts of each section that fit."""

    def __init__(self, facts: Facts, counter: TokenCounter) -> None:
        self.chosen: dict[Section, list[Fact]] = {section: [] for section in SECTIONS}
        self._counter = counter
        self._ranked = {section: _ranked(facts, section) for section in SHARES}
        self._spare: dict[Section, list[Fact]] = {
            section: _ranked(facts, section, spare=True) for section in _SPARE_SECTIONS
        }
        self._waiting: dict[Section, list[tuple[Fact, int]]] = {}

    def choose(self, room: int) -> None:
        """Choose facts in `room` tokens, some of which stay for names."""
        room -= int(room * NAMES_SHARE)
        tokens_left = room
        for section, share in SHARES.items():
            if section == "instructions":
                self._drop_repeated()
            max_tokens = tokens_left if room < LITTLE and section in _USERS else int(room * share)
            self._waiting[section] = self._candidates(section, max_tokens)
            tokens_left -= self._take(section, max_tokens)
        for section in LEFTOVER:
            tokens_left -= self._take(section, tokens_left)
        tokens_left //= 2
        for section, spare in self._spare.items():
            self._waiting[section] = self._costs(spare)
            tokens_left -= self._take(section, tokens_left)
        self._drop_repeated()

    def dropped(self) -> dict[Section, int]:
        """How many facts of each section are left out."""
        counts: dict[Section, int] = {
            section: len(self._ranked[section])
            - sum(fact.weight > SPARE or section not in self._spare for fact in self.chosen[section])
            for section in SHARES
        }
        return {section: count for section, count in counts.items() if count > 0}

    def drop_one(self) -> bool:
        """Drop the least important fact of the last section that has one."""
        for section in reversed(list(SHARES)):
            if self.chosen[section]:
                self.chosen[section].pop()
                return True
        return False

    def _drop_repeated(self) -> None:
        """Drop the instructions that are in a chosen message anyway."""
        messages = "\n".join(fact.text for name in _MESSAGES for fact in self.chosen[name])
        for facts in (self.chosen["instructions"], self._ranked["instructions"]):
            facts[:] = [fact for fact in facts if fact.text not in messages]

    def _candidates(self, section: Section, max_tokens: int) -> list[tuple[Fact, int]]:
        """The facts of a section with the tokens that each takes."""
        facts = self._ranked[section]
        if section == "latest":
            fitting = [
                _fitting(fact, max_tokens if n == 0 else int(max_tokens * LONG_MESSAGE))
                for n, fact in enumerate(facts)
            ]
        else:
            fitting = [_fitting(fact, max_tokens) for fact in facts]
        return self._costs(fitting)

    def _costs(self, facts: Sequence[Fact]) -> list[tuple[Fact, int]]:
        """The facts with the tokens that each takes."""
        return [(fact, self._counter.count(_line(fact)) + 1) for fact in facts]

    def _take(self, section: Section, room: int) -> int:
        """Move the facts that fit from the waiting ones to the chosen ones; the tokens that they take."""
        title = 0 if self.chosen[section] else self._counter.count(f"\n\n## {headings()[section]}\n")
        taken = _take(self.chosen[section], self._waiting[section], room - title)
        return taken + title if taken else 0


def _take(chosen: list[Fact], waiting: list[tuple[Fact, int]], room: int) -> int:
    """Move the facts that fit from `waiting` to `chosen`; returns the tokens that they take."""
    taken = 0
    remaining = []
    for fact, cost in waiting:
        if taken + cost <= room:
            chosen.append(fact)
            taken += cost
        else:
            remaining.append((fact, cost))
    waiting[:] = remaining
    return taken


def _ranked(facts: Facts, section: Section, *, spare: bool = False) -> list[Fact]:
    """Rank the facts of a section by importance; the newest of the user's messages comes first.

    Those of at most SPARE weight are apart.
    """
    candidates = facts.of(section)
    if section in _SPARE_SECTIONS:
        candidates = tuple(fact for fact in candidates if (fact.weight <= SPARE) is spare)
    if section == "latest":
        goals = {fact.key for fact in facts.of("goal")}
        candidates = tuple(fact for fact in candidates if fact.key not in goals)
    if section == "files":
        candidates = tuple(fact for fact in candidates if fact.weight >= _CHANGED)
    if section == "errors":
        candidates = tuple(map(_without_command, candidates))
    newest = max((fact.at for fact in candidates), default=0) or 1
    recency = RECENCY.get(section, RECENT)
    ranked = sorted(
        candidates, key=lambda fact: (-fact.weight - recency * fact.at / newest, -fact.at, fact.text)
    )
    if section == "latest" and ranked:
        newest_fact = candidates[-1]
        ranked = [newest_fact, *(fact for fact in ranked if fact is not newest_fact)]
    return ranked


def _without_command(fact: Fact) -> Fact:
    """A resolved error without the command that it came from."""
    error, separator, ending = fact.text.rpartition(" (in `")
    if not (separator and ending.endswith("; resolved since)")):
        return fact
    return msgspec.structs.replace(fact, text=f"{error} (resolved since)")


def _fitting(fact: Fact, max_tokens: int) -> Fact:
    """The fact, shortened with a mark if it is longer than `max_tokens` tokens can hold."""
    longest = max(max_tokens * _CHARACTERS, 80)
    if len(fact.text) <= longest + _MARK:  # one that is already shortened is not shortened again
        return fact
    text = shorten_text(fact.text, longest)
    return fact if text is fact.text else msgspec.structs.replace(fact, text=text)


def _names(source: _Source, counter: TokenCounter, room: int, text: str) -> str:
    """The names and values that neither `text` nor a preserved message has, as many as fit."""
    title = f"\n\n## {headings()['facts']}"
    return missing_names(
        source.names, (text, *texts_of(source.preserved)), counter, room - counter.count(title) - 4
    )


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
