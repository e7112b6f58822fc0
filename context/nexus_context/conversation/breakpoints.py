"""Where Anthropic is told to cache: at most four places, each the end of a prefix that comes again.

1. The end of the system prompt, or of the tools where there is none.
2. The stable frontier: the last block that the next request begins with, too.
3. The last block: what follows within this turn begins with all of this request.
4. What is left goes to ends of user messages, where earlier requests ended, out of reach of the breakpoint
   after them: the newest before it, behind many parallel calls, else that of the newest turn that began out
   of reach. A breakpoint finds what was cached up to REACH blocks before it.
5. None where the prefix is shorter than what the model caches, and none on reasoning, which takes none.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

MOST = 4
"""Breakpoints that a request may have."""

REACH = 19
"""Blocks before a breakpoint that are searched for what is cached: 20 with its own."""

MINIMUM = 1_024
"""Tokens of the shortest prefix that is cached, where the model's own figure is not known."""

_CHARACTERS = 4  # a token, where the caller does not know better
_IMAGE = 255 * _CHARACTERS
_PICTURES = ("image", "document")
_UNMARKED = ("thinking", "redacted_thinking")
_MARK = {"type": "ephemeral"}
_encode = msgspec.json.Encoder().encode

Body = dict[str, Any]


class Cache(msgspec.Struct, frozen=True):
    """What the caller knows of a request and of the next one. Sizes are in tokens; None: estimated.

    `stable` is how many of the given messages, from the first, the next request repeats as they are; None:
    all but the last. `messages` has the tokens of each message given.
    """

    stable: int | None = None
    minimum: int = MINIMUM
    tools: int | None = None
    system: int | None = None
    messages: Sequence[int] | None = None


class Breakpoint(NamedTuple):
    """A block of a body: `messages[item].content[block]`, or `system[item]`, or `tools[item]`."""

    section: str
    item: int
    block: int = 0


def choose_breakpoints(body: Body, origins: Sequence[Sequence[int]], cache: Cache) -> list[Breakpoint]:
    """Where the breakpoints go, first to last. `origins` has, for each block, the given message's index."""
    return _Search(body, origins, cache).places()


def mark_breakpoints(body: Body, chosen: Sequence[Breakpoint]) -> Body:
    """The body with breakpoints; `body` stays as it is."""
    copy = dict(body)
    for section, item, block in chosen:
        items = copy[section] = list(copy[section])
        if section != "messages":
            items[item] = items[item] | {"cache_control": _MARK}
            continue
        blocks = list(items[item]["content"])
        blocks[block] = blocks[block] | {"cache_control": _MARK}
        items[item] = items[item] | {"content": blocks}
    return copy


class _Search:
    """Blocks are counted through all messages, from 0."""

    def __init__(self, body: Body, origins: Sequence[Sequence[int]], cache: Cache) -> None:
        self._body = body
        self._messages: list[Body] = body["messages"]
        self._origins = origins
        self._cache = cache
        self._ends = list(accumulate(len(message["content"]) for message in self._messages))
        self._fixed = _tokens(body.get("tools"), cache.tools) + _tokens(body.get("system"), cache.system)
        self._given = max(map(max, origins), default=-1) + 1  # messages that were given
        self._sizes = self._cumulative()

    def places(self) -> list[Breakpoint]:
        chosen: list[Breakpoint] = []
        anchor = "system" if self._body.get("system") else "tools"
        if self._body.get(anchor) and self._fixed >= self._cache.minimum:
            chosen.append(Breakpoint(anchor, len(self._body[anchor]) - 1))
        ends = (self._cacheable(self._frontier()), self._cacheable(self._ends[-1] - 1))
        positions = {at for at in ends if at >= 0}
        first = min(positions, default=-1)
        while first >= 0 and len(chosen) + len(positions) < MOST:
            first = self._earlier(first)
            if first >= 0:
                positions.add(first)
        return chosen + [self._place(at) for at in sorted(positions)]

    def _frontier(self) -> int:
        """The last block that the next request repeats."""
        stable = self._cache.stable if self._cache.stable is not None else self._given - 1
        for index in range(len(self._messages) - 1, -1, -1):
            for block in range(len(self._origins[index]) - 1, -1, -1):
                if 0 <= self._origins[index][block] < stable:
                    return self._ends[index] - len(self._origins[index]) + block
        return -1

    def _earlier(self, before: int) -> int:
        """The end of an earlier request that a further breakpoint is worth most at; -1 without one."""
        newest = True
        for index in range(bisect_right(self._ends, before), -1, -1):
            blocks, end = self._messages[index]["content"], self._ends[index] - 1
            if end >= before or self._messages[index]["role"] != "user":
                continue
            if newest and before - end > REACH:
                return self._cacheable(end)
            newest = False
            results = sum(block["type"] == "tool_result" for block in blocks)
            if results < len(blocks) and before - (end - len(blocks) + results) > REACH:
                return self._cacheable(end)
        return -1

    def _cacheable(self, at: int) -> int:
        """The last block up to `at` that may have a breakpoint; -1 where the prefix is too short."""
        while at >= 0:
            _, index, block = self._place(at)
            if self._messages[index]["content"][block]["type"] not in _UNMARKED:
                origin = min(max(self._origins[index][block], 0), len(self._sizes) - 1)
                size = self._fixed + (self._sizes[origin] if self._sizes else 0)
                return at if size >= self._cache.minimum else -1
            at -= 1
        return -1

    def _place(self, at: int) -> Breakpoint:
        index = bisect_right(self._ends, at)
        return Breakpoint("messages", index, at - self._ends[index] + len(self._messages[index]["content"]))

    def _cumulative(self) -> list[int]:
        """Tokens of the messages up to and with each of those given."""
        if self._cache.messages is not None:
            return list(accumulate(self._cache.messages))
        sizes = [0] * self._given
        for message, origins in zip(self._messages, self._origins, strict=True):
            for block, origin in zip(message["content"], origins, strict=True):
                if origin >= 0:
                    sizes[origin] += _length(block) // _CHARACTERS
        return list(accumulate(sizes))


def _tokens(items: Any, counted: int | None) -> int:
    return counted if counted is not None else len(_encode(items or ())) // _CHARACTERS


def _length(block: Body) -> int:
    """Characters of a block's JSON, nearly; an image counts as its tokens would."""
    kind = block["type"]
    if kind == "text":
        return len(block["text"])
    if kind in _PICTURES:
        return _IMAGE
    if kind == "tool_result" and "content" in block:
        return sum(map(_length, block["content"]))
    return len(_encode(block))
