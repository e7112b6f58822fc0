"""The embedded summarizer: sentences picked from the conversation, no model needed, and it says so.

1. Items come from `harvest`; names and values that no item holds from an index of identifiers.
2. Every section gets its share of the limit, the most important items first; what is left goes to the
   sections in the order of SHARES. Within a section items stand in the order of time.
3. Items are kept or dropped whole; only a message longer than its share is shortened, with a mark. The
   summary says how many items of each section were dropped.
4. Pins come first, whole. The text is never longer than the limit. The same messages give the same text.
"""

from collections.abc import Mapping, Sequence

from nexus_context.conversation.compaction.errors import CompactionError
from nexus_context.conversation.compaction.extract_facts import (
    SECTIONS,
    Harvest,
    Item,
    Section,
    harvest,
    headings,
)
from nexus_context.conversation.compaction.summarizer import SummaryRequest, Written, shortened
from nexus_context.conversation.compaction.summary import unwrapped, with_pins
from nexus_context.conversation.identifiers.names_note import IdentifierIndex, list_of
from nexus_context.conversation.message import Message
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
"""Most of the limit that names and values may take; they get at least what is left of it."""
RECENCY = 0.8
"""Weight that the newest item has over the oldest."""
MOST_LATEST = 6
"""Newest messages of the user that are kept word for word."""
_CHARACTERS = 3  # of a token, at least: to shorten a message to a share without counting twice


class Extractive:
    """The embedded summarizer as a `Summarizer`. `counter` counts as the caller does."""

    name = NAME

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    async def summarize(self, request: SummaryRequest) -> str:
        return summary(request.replaced, self._counter, limit=request.limit, pins=request.pins)


def extract(request: SummaryRequest, counter: TokenCounter) -> Written:
    """The embedded summary of a request. `CompactionError` where there is nothing to say within the limit."""
    harvested = harvest(request.replaced)
    text = _summary(request.replaced, harvested, counter, limit=request.limit, pins=request.pins)
    if not text:
        raise CompactionError(
            f"Nothing was compacted: {request.limit} tokens are too few for a summary.", code="no-summary"
        )
    return Written(text, NAME, harvest=harvested)


def summary(
    messages: Sequence[Message], counter: TokenCounter, *, limit: int, pins: Sequence[str] = ()
) -> str:
    """A summary of the messages in at most `limit` tokens, pins included; empty where none fits."""
    return _summary(messages, harvest(messages), counter, limit=limit, pins=pins)


def _summary(
    messages: Sequence[Message], found: Harvest, counter: TokenCounter, *, limit: int, pins: Sequence[str]
) -> str:
    pinned = with_pins("", pins).strip()
    room = limit - (counter.count(f"\n\n{pinned}") + 2 if pinned else 0)
    chosen = _chosen(found, counter, room - counter.count(_rendered({}, _dropped(found, {}), "")) - 2)
    while True:
        made = _rendered(chosen, _dropped(found, chosen), "")
        spent = counter.count(made)
        if spent <= room:
            break
        if not _drop_one(chosen):
            return pinned if counter.count(pinned) <= limit else ""
    names = _names(messages, counter, min(room - spent, int(limit * NAMES_SHARE)), made)
    if not any(chosen.values()) and not names:
        return pinned if counter.count(pinned) <= limit else ""
    end = [pinned] if pinned else []
    whole = "\n\n".join([_rendered(chosen, _dropped(found, chosen), names), *end])
    return whole if counter.count(whole) <= limit else "\n\n".join([made, *end])


def _chosen(found: Harvest, counter: TokenCounter, room: int) -> dict[Section, list[Item]]:
    """The items of each section that fit."""
    room -= int(room * NAMES_SHARE)
    waiting: dict[Section, list[tuple[Item, int]]] = {}
    spent: dict[Section, int] = {}
    chosen: dict[Section, list[Item]] = {section: [] for section in SECTIONS}
    titles = headings()
    for section, share in SHARES.items():
        most = int(room * share)
        items = [_fitting(item, most) for item in _ranked(found, section)]
        title = counter.count(f"\n\n## {titles[section]}\n")
        waiting[section] = [(item, counter.count(_line(item)) + 1) for item in items]
        spent[section] = title if items else 0
        _take(chosen[section], waiting[section], most - spent[section])
        spent[section] += sum(counter.count(_line(item)) + 1 for item in chosen[section])
    left = room - sum(cost for section, cost in spent.items() if chosen[section])
    for section in SHARES:
        before = len(chosen[section])
        title = 0 if before else counter.count(f"\n\n## {titles[section]}\n")
        cost = _take(chosen[section], waiting[section], left - title)
        left -= cost + (title if cost else 0)
    return chosen


def _take(chosen: list[Item], waiting: list[tuple[Item, int]], room: int) -> int:
    """Move the first items that fit from `waiting` to `chosen`; the tokens that they take."""
    taken = 0
    rest = []
    for item, cost in waiting:
        if taken + cost <= room:
            chosen.append(item)
            taken += cost
        else:
            rest.append((item, cost))
    waiting[:] = rest
    return taken


def _ranked(found: Harvest, section: Section) -> list[Item]:
    """The items of a section, the most important first."""
    items = found.items(section)
    if section == "latest":
        return [item for item in reversed(items) if item not in found.items("goal")][:MOST_LATEST]
    newest = max((item.at for item in items), default=0) or 1
    return sorted(items, key=lambda item: (-item.weight - RECENCY * item.at / newest, -item.at, item.text))


def _fitting(item: Item, most: int) -> Item:
    """The item, shortened with a mark where it is larger than `most` tokens are likely to hold."""
    text = shortened(item.text, max(most * _CHARACTERS, 80))
    return item if text is item.text else Item(text, item.key, item.at, item.weight)


def _dropped(found: Harvest, chosen: Mapping[Section, Sequence[Item]]) -> dict[Section, int]:
    """How many items of each section are not there."""
    counts = {}
    for section in SHARES:
        total = len(found.items(section)) if section != "latest" else 0
        if total > len(chosen.get(section, ())):
            counts[section] = total - len(chosen.get(section, ()))
    return counts


def _drop_one(chosen: dict[Section, list[Item]]) -> bool:
    """Drop the least important item of the last section that has one."""
    for section in reversed(list(SHARES)):
        if chosen[section]:
            chosen[section].pop()
            return True
    return False


def _names(messages: Sequence[Message], counter: TokenCounter, room: int, shown: str) -> str:
    title = f"\n\n## {headings()['facts']}"
    index = IdentifierIndex()
    index.extend(map(unwrapped, messages))
    names = (found for found in index.ranked() if found.kind != "command" and found.text not in shown)
    return list_of(names, counter, room - counter.count(title) - 4)


def _rendered(chosen: Mapping[Section, Sequence[Item]], dropped: Mapping[Section, int], names: str) -> str:
    titles = headings()
    opening = texts.text("summary_extractive")
    if dropped:
        counts = ", ".join(f"{titles[section]} {count}" for section, count in dropped.items())
        opening = f"{opening} {texts.text('summary_left_out').format(counts=counts)}"
    parts = [opening]
    for section in SECTIONS:
        items = sorted(chosen.get(section, ()), key=lambda item: item.at)
        if items:
            parts.append("\n".join([f"## {titles[section]}", *map(_line, items)]))
    if names:
        parts.append(f"## {titles['facts']}\n{names}")
    return "\n\n".join(parts)


def _line(item: Item) -> str:
    return "- " + item.text.replace("\n", "\n  ")
