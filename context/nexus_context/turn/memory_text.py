"""Puts memory into the last user message, as far as there is room.

1. The order is (SPEC §6, §9): the system prompt; the history, which covers L1 as far as it reaches; the last
   user message. The last user message has time, platform and git state; then, between <memory> and </memory>,
   messages of other agents, the levels (L1 last), events, and knowledge; then the user's text. Tools are
   separate.
2. If room is short, memory is cut first. It takes only the room that the history leaves. The history is
   fitted as if there were no memory, so that memory cuts no message and the cached prefix stays the same.
3. If there is not enough room, the items of the lowest priority are left out, and of equal ones the later.
   The first item that does not fit is shortened, with a mark, if LEAST tokens of it fit.
4. Each item has its row. Text between items counts with the next item, and text at the end with the last one.
   The rows of memory and message sum to the tokens of the sent message.
5. An item that an earlier message has whole, and is sent with again, is not repeated. A direct message always
   counts as new.
6. Memory never triggers a compaction, which would not make it smaller.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.budget import UsageRow
from nexus_context.conversation.message import GAP, sent_content
from nexus_context.conversation.shortening import shorten_text
from nexus_context.conversation.view import View
from nexus_context.folder.prompt import texts
from nexus_context.folder.snapshot import Snapshot
from nexus_context.memory.item import ORDER, MemoryItem
from nexus_context.tokens import TokenCounter, count_spans
from nexus_context.turn.costs import FixedPart
from nexus_context.turn.last_message import current_message, head, takes_memory
from nexus_context.turn.request import Request
from nexus_context.turn.usage_rows import event_rows

LEAST = 48
"""The minimum number of tokens of an item that is sent."""
JOINED = 2
"""The maximum number of tokens that an item saves within a text, compared with counting it alone."""
_START, _END = "<memory>", "</memory>"
_ATTEMPTS = 5
_FEW = 3  # characters; `shorten_text` keeps a third of them for the end
_AIM = 0.94  # of the room: tokens of a text are nearly proportional to its length


Chosen = dict[int, MemoryItem]
"""Items by their index among the given ones, the most important first."""


class PlacedMemory(NamedTuple):
    """The fixed part with memory in its last message, and a report on the items. The report is None if there
    are no items.
    """

    fixed: FixedPart
    report: dict[str, Any] | None


class _Block(NamedTuple):
    """The text of memory; its items in the order of the text, and where each one's part ends.

    `hashes` are those of the items that are whole.
    """

    text: str
    items: tuple[MemoryItem, ...]
    ends: tuple[int, ...]
    hashes: tuple[str, ...]


def place(
    snapshot: Snapshot,
    request: Request,
    fixed: FixedPart,
    items: Sequence[MemoryItem],
    *,
    view: View,
    room: int,
    now: datetime,
) -> PlacedMemory:
    """Put the items that fit into `room` tokens before the user's text. `view` has the messages before that
    text.
    """
    if not items:
        return PlacedMemory(fixed, None)
    bare = sum(row.tokens for row in fixed.after)
    new_items = [
        item if item.source == "message" or not view.has_item(_hash(item)) else None for item in items
    ]
    chosen = _chosen(new_items, fixed.counter, room) if takes_memory(request) else {}
    while chosen:
        with_memory = _with(snapshot, request, fixed, _block(chosen, items), now=now)
        excess = sum(row.tokens for row in with_memory.after) - bare - room
        if excess <= 0:
            return PlacedMemory(with_memory, _report(items, new_items, chosen, with_memory))
        chosen = _less(items, chosen, fixed.counter, excess)
    return PlacedMemory(fixed, _report(items, new_items, {}, fixed))


def _report(
    items: Sequence[MemoryItem], new_items: Sequence[MemoryItem | None], chosen: Chosen, fixed: FixedPart
) -> dict[str, Any]:
    """Report the labels of items that are sent or not, and the ids of delivered messages.

    `new_items` has None in place of an item that an earlier message has.
    """
    report: dict[str, Any] = {
        "included": [item.label for index, item in enumerate(items) if index in chosen],
        "dropped": [
            item.label for index, item in enumerate(new_items) if item is not None and index not in chosen
        ],
        "tokens": sum(row.tokens for row in fixed.after if row.category == "memory"),
    }
    cut = [item.label for index, item in sorted(chosen.items()) if item.text != items[index].text]
    message_ids = [item.id for _, item in sorted(chosen.items()) if item.id is not None]
    earlier = [item.label for index, item in enumerate(items) if new_items[index] is None]
    optional = {"shortened": cut, "messages": message_ids, "sentBefore": earlier}
    return report | {name: values for name, values in optional.items() if values}


def _chosen(items: Sequence[MemoryItem | None], counter: TokenCounter, room: int) -> Chosen:
    """The items that fit approximately, by priority; the first that does not, shortened."""
    room += JOINED * len(items) - counter.count(_block({}, ()).text)
    chosen: Chosen = {}
    headed: set[str] = set()
    indexed_items = [
        (index, item) for index, item in enumerate(items) if item is not None and item.text.strip()
    ]
    for index, item in sorted(indexed_items, key=lambda pair: -pair[1].priority):
        title = 0 if item.source in headed else counter.count(_title(item))
        tokens = counter.count(f"{GAP}{_safe(item.text)}") + title
        if tokens > room:
            short = _short(item, counter, room - title)
            return chosen | ({index: short} if short is not None else {})
        headed.add(item.source)
        chosen[index] = item
        room -= tokens
    return chosen


def _less(items: Sequence[MemoryItem], chosen: Chosen, counter: TokenCounter, over: int) -> Chosen:
    """Shorten the least important item by a little more than `over` tokens, or leave it out."""
    index, last_item = next(reversed(chosen.items()))
    remaining_items = {item_index: item for item_index, item in chosen.items() if item_index != index}
    short = _short(items[index], counter, counter.count(last_item.text) - over - JOINED)
    return (
        remaining_items
        if short is None or len(short.text) >= len(last_item.text)
        else {**remaining_items, index: short}
    )


def _short(item: MemoryItem, counter: TokenCounter, room: int) -> MemoryItem | None:
    """The item in at most `room` tokens; None if that is too little to be useful."""
    if room < LEAST:
        return None
    size = max(counter.count(item.text), 1)
    max_characters = len(item.text) * room // size
    for _ in range(_ATTEMPTS):
        text = shorten_text(item.text, max(max_characters - _mark(), _FEW))
        tokens = counter.count(text)
        if tokens <= room:
            return msgspec.structs.replace(item, text=text)
        max_characters = int(max_characters * room * _AIM / tokens)
    return None


def _mark() -> int:
    return len(texts.text("summary_shortened")) + 4


def _block(chosen: Chosen, items: Sequence[MemoryItem]) -> _Block:
    """The items by source, each source under its heading, in their given order."""
    text = f"{_START}\n{texts.text('memory_head')}"
    ordered = sorted(chosen.items(), key=lambda pair: (ORDER.index(pair[1].source), pair[0]))
    ends: list[int] = []
    previous_source = ""
    for _, item in ordered:
        text += (_title(item) if item.source != previous_source else "") + GAP + _safe(item.text)
        previous_source = item.source
        ends.append(len(text))
    hashes = tuple(_hash(item) for index, item in ordered if item.text == items[index].text)
    return _Block(f"{text}\n{_END}", tuple(item for _, item in ordered), tuple(ends), hashes)


def _hash(item: MemoryItem) -> str:
    return blake2b(item.text.encode(errors="replace"), digest_size=8).hexdigest()


def _title(item: MemoryItem) -> str:
    return f"{GAP}## {texts.table('memory_headings')[item.source]}"


def _safe(text: str) -> str:
    """The text with the tags of memory broken up: files and other agents may contain anything."""
    return text.strip().replace(_END, "</ memory>").replace(_START, "< memory>")


def _with(
    snapshot: Snapshot, request: Request, fixed: FixedPart, block: _Block, *, now: datetime
) -> FixedPart:
    """The fixed part with the block in its last message, and its rows."""
    counter = fixed.counter
    current = current_message(
        snapshot, request, now=now, memory=block.text, items=block.hashes, note=fixed.note
    )
    content = "" if current is None else sent_content(current)
    text = content if isinstance(content, str) else content[0]["text"]
    front = head(snapshot, request, now=now)
    start = len(front) + len(GAP) if front else 0
    inner = [start + end for end in block.ends[:-1]]
    cuts = [0, start, *inner, start + len(block.text), len(text)]
    counts = count_spans(counter, text, cuts)[1:-1]
    rows = [
        UsageRow("memory", item.label, tokens, counter.exact, path=item.path, span=item.span)
        for item, tokens in zip(block.items, counts, strict=True)
    ]
    other_rows = event_rows(
        snapshot, request, current, counter, now=now, shape=fixed.shape, memory=sum(counts)
    )
    return msgspec.structs.replace(fixed, current=current, after=(*rows, *other_rows))
