"""Chooses where Anthropic and OpenAI are asked to cache: breakpoints, each at the end of a prefix that later
requests will repeat.

Anthropic takes at most four breakpoints:

1. One is at the end of the system prompt, or of the tools if there is no system prompt.
2. One is at the stable frontier: the last block that the next request repeats.
3. One is at the last block, because the next request of this turn repeats all of this request.
4. A breakpoint finds prefixes that were cached up to REACH blocks before it. The remaining breakpoints go to
   ends of user messages, where earlier requests ended, that are further away than that from the next
   breakpoint. After many parallel calls it is the newest such end, otherwise the end of the newest turn that
   began out of reach.
5. There is no breakpoint after a prefix shorter than the model's minimum, and none on reasoning, which cannot
   have one.
6. All breakpoints of a request have the same lifetime: where lifetimes mix, the longer ones must come first.

OpenAI sets a breakpoint at the newest message by itself and finds cached prefixes at any distance. The body
sets two more, by rules 1 and 2 with the minimum of rule 5. An assistant's message cannot have one.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from nexus_context.tokens import Lifetime
from nexus_context.tokens.estimates import is_opaque, opaque_tokens

MOST = 4
"""Breakpoints that a request may have."""

REACH = 19
"""Blocks before a breakpoint that are searched for a cached prefix: 20 with its own."""

MINIMUM = 1_024
"""Tokens of the shortest prefix that is cached, for models whose own minimum is unknown."""

_CHARACTERS = 4  # of a token, unless the caller knows the count
_IMAGE = 255 * _CHARACTERS
_PICTURES = ("image", "document")
_UNMARKED = ("thinking", "redacted_thinking")
_encode = msgspec.json.Encoder().encode

Body = dict[str, Any]


class Cache(msgspec.Struct, frozen=True):
    """What the caller knows about a request and the next one. Sizes are in tokens; they are estimated if they
    are None.

    `stable` is how many messages, from the first, the next request repeats unchanged; None means all but the
    last. `messages` has the tokens of each message. `ttl` is how long the provider keeps what it caches; a
    longer time costs more to write.
    """

    stable: int | None = None
    minimum: int = MINIMUM
    tools: int | None = None
    system: int | None = None
    messages: Sequence[int] | None = None
    ttl: Lifetime = "5m"


class Breakpoint(NamedTuple):
    """The block of a body that ends a cached prefix: `messages[item].content[block]`, `system[item]` or
    `tools[item]`.
    """

    section: str
    item: int
    block: int = 0


def choose_breakpoints(body: Body, origins: Sequence[Sequence[int]], cache: Cache) -> list[Breakpoint]:
    """Choose the breakpoints of a body for Anthropic, first to last. `origins` has, for each block of each
    message, the index of the stored message.
    """
    return _Search(body, origins, cache).places()


def mark_breakpoints(body: Body, chosen: Sequence[Breakpoint], ttl: Lifetime = "5m") -> Body:
    """Return a copy of the body with the breakpoints set. A lifetime of 5 minutes is the provider's default
    and is not written.
    """
    mark = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    copy = dict(body)
    for section, item, block in chosen:
        items = copy[section] = list(copy[section])
        if section != "messages":
            items[item] = items[item] | {"cache_control": mark}
            continue
        blocks = list(items[item]["content"])
        blocks[block] = blocks[block] | {"cache_control": mark}
        items[item] = items[item] | {"content": blocks}
    return copy


class Markable(NamedTuple):
    """A content part of a body for OpenAI that may have a breakpoint. `origin` is the index of its stored
    message.
    """

    item: int
    part: int
    origin: int


OPENAI_MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}


def mark_openai(items: list[Body], markables: Sequence[Markable], cache: Cache, fixed: Any) -> None:
    """Set the breakpoints of rules 1 and 2 in the items of a body. The contents of the items must be lists of
    parts.

    `markables` are in order. A system prompt has the origin -1 and comes first. `fixed` is what precedes the
    items: the tools.
    """
    system = markables[0] if markables and markables[0].origin < 0 else None
    stable = cache.stable
    if stable is None:
        stable = max((markable.origin for markable in markables), default=0)
    frontier = next((markable for markable in reversed(markables) if 0 <= markable.origin < stable), None)
    for markable in (system, frontier):
        if markable is None or _openai_tokens(items, markable, cache, fixed) < cache.minimum:
            continue
        content = items[markable.item]["content" if "content" in items[markable.item] else "output"]
        content[markable.part] = content[markable.part] | OPENAI_MARK


def _openai_tokens(items: list[Body], markable: Markable, cache: Cache, fixed: Any) -> int:
    """Tokens of the prefix that ends at a place."""
    tokens = _tokens(fixed, cache.tools)
    if cache.messages is None or cache.system is None:
        return tokens + _tokens(items[: markable.item + 1], None)
    return tokens + cache.system + sum(cache.messages[: markable.origin + 1])


class _Search:
    """Blocks are numbered through all messages, from 0."""

    def __init__(self, body: Body, origins: Sequence[Sequence[int]], cache: Cache) -> None:
        self._body = body
        self._messages: list[Body] = body["messages"]
        self._origins = origins
        self._cache = cache
        self._ends = list(accumulate(len(message["content"]) for message in self._messages))
        self._fixed = _tokens(body.get("tools"), cache.tools) + _tokens(body.get("system"), cache.system)
        self._given = max(map(max, origins), default=-1) + 1  # number of stored messages
        self._sizes = self._cumulative()

    def places(self) -> list[Breakpoint]:
        chosen: list[Breakpoint] = []
        anchor = "system" if self._body.get("system") else "tools"
        items = self._body.get(anchor) or []
        last_item = next(
            (at for at in reversed(range(len(items))) if not items[at].get("defer_loading")), None
        )
        if last_item is not None and self._fixed >= self._cache.minimum:  # a deferred tool may not have one
            chosen.append(Breakpoint(anchor, last_item))
        ends = (self._cacheable(self._frontier()), self._cacheable(self._ends[-1] - 1))
        positions = {at for at in ends if at >= 0}
        earliest = min(positions, default=-1)
        while earliest >= 0 and len(chosen) + len(positions) < MOST:
            earliest = self._earlier(earliest)
            if earliest >= 0:
                positions.add(earliest)
        return chosen + [self._breakpoint(at) for at in sorted(positions)]

    def _frontier(self) -> int:
        """The last block that the next request repeats."""
        stable = self._cache.stable if self._cache.stable is not None else self._given - 1
        for index in range(len(self._messages) - 1, -1, -1):
            for block in range(len(self._origins[index]) - 1, -1, -1):
                if 0 <= self._origins[index][block] < stable:
                    return self._ends[index] - len(self._origins[index]) + block
        return -1

    def _earlier(self, position: int) -> int:
        """The best end of an earlier request for another breakpoint; -1 without one."""
        newest = True
        for index in range(bisect_right(self._ends, position), -1, -1):
            blocks, end = self._messages[index]["content"], self._ends[index] - 1
            if end >= position or self._messages[index]["role"] != "user":
                continue
            if newest and position - end > REACH:
                return self._cacheable(end)
            newest = False
            results = sum(block["type"] == "tool_result" for block in blocks)
            if results < len(blocks) and position - (end - len(blocks) + results) > REACH:
                return self._cacheable(end)
        return -1

    def _cacheable(self, at: int) -> int:
        """The last block up to `at` that may have a breakpoint; -1 if the prefix is too short."""
        while at >= 0:
            _, index, block = self._breakpoint(at)
            if self._messages[index]["content"][block]["type"] not in _UNMARKED:
                origin = min(max(self._origins[index][block], 0), len(self._sizes) - 1)
                size = self._fixed + (self._sizes[origin] if self._sizes else 0)
                return at if size >= self._cache.minimum else -1
            at -= 1
        return -1

    def _breakpoint(self, at: int) -> Breakpoint:
        index = bisect_right(self._ends, at)
        return Breakpoint("messages", index, at - self._ends[index] + len(self._messages[index]["content"]))

    def _cumulative(self) -> list[int]:
        """Running sums of the tokens of the stored messages."""
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
    """Approximate characters of a block's JSON; an image counts as many as its tokens."""
    kind = block["type"]
    if kind == "text":
        return len(block["text"])
    if kind in _PICTURES:
        return _IMAGE
    if kind == "tool_result" and "content" in block:
        return sum(map(_length, block["content"]))
    if is_opaque(block):
        return _CHARACTERS * opaque_tokens(block)
    return len(_encode(block))
