"""Prompt caches as the providers describe them: what of a request is read, and what is written for how long.

Three of them: explicit breakpoints with a look-back (Anthropic), any common prefix (OpenAI up to GPT-5.5),
and breakpoints at the newest message and wherever the request asks for them (OpenAI from GPT-5.6 on). The
clock is the caller's, in seconds; if it goes back, entries live longer, and nothing breaks.
"""

import hashlib
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from support.strict_request import Block, Count, texts_of

Clock = Callable[[], float]

LOOKBACK = 20  # blocks, the breakpoint's own included
STEP = 128  # tokens
LEAST_AUTOMATIC = 1_024  # tokens
AUTOMATIC_LIFETIME_S = 300
MOST_WRITTEN = 4  # breakpoints of a request
MOST_READ = 80  # breakpoints of a conversation
HOUR_S = 3_600


class Limits(NamedTuple):
    """What keeps a cache from reading all that two requests share. Sizes are in tokens."""

    lookback: int = LOOKBACK
    most_read: int = MOST_READ
    least_automatic: int = LEAST_AUTOMATIC
    step: int = STEP
    in_blocks: bool = False  # reads whole blocks only


UNLIMITED = Limits(lookback=10**9, most_read=10**9, least_automatic=0, step=1, in_blocks=True)


class Settled(NamedTuple):
    """Tokens of a request: read, written for the short and the long lifetime, and neither.

    `through` is the number of blocks that were read. `held` are the lengths of the prefixes, in tokens, that
    the cache holds from now on for its whole lifetime.
    """

    read: int
    written: int
    written_1h: int
    plain: int
    through: int
    held: tuple[int, ...] = ()


class Prefix(NamedTuple):
    """A request up to and including a block: a digest of its bytes, and its tokens."""

    digest: bytes
    tokens: int


class _Entry:
    __slots__ = ("expires", "lifetime")

    def __init__(self, lifetime: float, now: float) -> None:
        self.lifetime = lifetime
        self.expires = now + lifetime


def prefixes_of(blocks: Iterable[Block], *, start: bytes = b"", settings: bytes = b"") -> list[Prefix]:
    """The prefix that ends with each block. `settings` change the messages, not what comes before them."""
    digest, tokens, in_messages = start, 0, False
    prefixes = []
    for block in blocks:
        if block.section == "messages" and not in_messages:
            in_messages = True
            digest = _digest(digest, settings)
        digest, tokens = _digest(digest, block.said), tokens + block.tokens
        prefixes.append(Prefix(digest, tokens))
    return prefixes


def _digest(before: bytes, said: bytes) -> bytes:
    return hashlib.blake2b(before + said, digest_size=16).digest()


class BreakpointCache:
    """Entries end exactly at breakpoints. A prefix below the minimum is never stored."""

    def __init__(self, clock: Clock, minimum: int, limits: Limits) -> None:
        self._clock = clock
        self._minimum = minimum
        self._limits = limits
        self._entries: dict[bytes, _Entry] = {}

    def settle_anthropic(self, prefixes: Sequence[Prefix], lifetimes: dict[int, int]) -> Settled:
        """Anthropic, Prompt caching. `lifetimes` has the seconds of the breakpoint on a block, by its index.

        At each breakpoint the API looks for an entry at its block and at up to 19 blocks before it, and reads
        the longest. What lies between that and the last breakpoint is written: for an hour as far as the last
        breakpoint of an hour, for 5 minutes from there. Each use renews an entry, at no cost.
        """
        now = self._clock()
        through = 0
        for at in lifetimes:
            positions = range(at, max(at - self._limits.lookback, -1), -1)
            through = max(through, next((end + 1 for end in positions if self._has(prefixes[end], now)), 0))
        kept = {at: seconds for at, seconds in lifetimes.items() if prefixes[at].tokens >= self._minimum}
        read = self._renew(prefixes, through, kept, now)
        ends = [prefixes[at].tokens for at in kept if at >= through]
        long = [prefixes[at].tokens for at, seconds in kept.items() if at >= through and seconds >= HOUR_S]
        hour, last = max(long, default=read), max(ends, default=read)
        held = _held(prefixes, through, kept)
        return Settled(read, last - hour, hour - read, prefixes[-1].tokens - last, through, held)

    def settle_openai(
        self,
        prefixes: Sequence[Prefix],
        ends: Sequence[int],
        explicit: Sequence[int],
        lifetime: int,
        *,
        implicit: bool,
    ) -> Settled:
        """OpenAI, Prompt caching, GPT-5.6 and later.

        `ends` are the last blocks of messages that can hold a breakpoint, `explicit` the marked blocks. An
        implicit breakpoint sits at the newest message; a request writes it and the latest three explicit
        ones, or, without it, the latest four. It reads the longest entry at one of the latest 80 places that
        are or were breakpoints; there is no limit of blocks to look back, and no rounding.
        """
        now = self._clock()
        newest = [ends[-1]] if implicit and ends else []
        candidates = sorted({*explicit, *(ends if implicit else ())})[-self._limits.most_read :]
        through = max((at + 1 for at in candidates if self._has(prefixes[at], now)), default=0)
        marks = [at for at in explicit if at not in newest][-(MOST_WRITTEN - len(newest)) :]
        kept = {at: lifetime for at in [*marks, *newest] if prefixes[at].tokens >= self._minimum}
        read = self._renew(prefixes, through, kept, now)
        last = max((prefixes[at].tokens for at in kept), default=0)
        written = max(last - read, 0)
        held = _held(prefixes, through, kept)
        return Settled(read, written, 0, prefixes[-1].tokens - read - written, through, held)

    def _has(self, prefix: Prefix, now: float) -> bool:
        entry = self._entries.get(prefix.digest)
        return entry is not None and now < entry.expires

    def _renew(self, prefixes: Sequence[Prefix], through: int, kept: dict[int, int], now: float) -> int:
        """Renew the entry that is read, and store or renew those at breakpoints; the tokens that are read."""
        for at in {*kept, through - 1} - {-1}:
            entry = self._entries.get(prefixes[at].digest)
            if entry is not None and now < entry.expires:
                entry.expires = max(entry.expires, now + entry.lifetime)
            else:
                self._entries[prefixes[at].digest] = _Entry(kept[at], now)
        return prefixes[through - 1].tokens if through else 0


def _held(prefixes: Sequence[Prefix], through: int, kept: Iterable[int]) -> tuple[int, ...]:
    """The lengths of the prefixes that were read or written."""
    return tuple(prefixes[at].tokens for at in sorted({*kept, through - 1} - {-1}))


class _Node:
    __slots__ = ("children", "expires", "role", "text")

    def __init__(self, block: Block | None = None) -> None:
        self.role = b"" if block is None else _role(block)
        self.text = "" if block is None else _text(block)
        self.expires = -math.inf
        self.children: dict[bytes, _Node] = {}


class AutomaticCache:
    """OpenAI, Prompt caching, before GPT-5.6: any common prefix of 1,024 tokens or more, in steps of 128.

    Entries live for 5 minutes after their last use (the guide: 5 to 10 minutes, at most an hour), or for the
    24 hours that the request asks for. Writes are free.
    """

    def __init__(self, clock: Clock, count: Count, limits: Limits) -> None:
        self._clock = clock
        self._count = count
        self._limits = limits
        self._roots: dict[bytes, _Node] = {}

    def settle(self, scope: bytes, blocks: Sequence[Block], lifetime: int = AUTOMATIC_LIFETIME_S) -> Settled:
        """Read and store a request; `scope` is what must be the same, too: model and cache key."""
        now = self._clock()
        node = self._roots.setdefault(scope, _Node())
        common, matching, through = 0, True, 0
        for block in blocks:
            child = node.children.get(block.said)
            if matching and child is not None and now < child.expires:
                common, through = common + block.tokens, through + 1
            elif matching:
                matching = False
                common += 0 if self._limits.in_blocks else self._common(node, block, now)
            if child is None:
                child = node.children[block.said] = _Node(block)
            child.expires = max(child.expires, now + lifetime)
            node = child
        total = sum(block.tokens for block in blocks)
        step = self._limits.step
        read = common // step * step if common >= self._limits.least_automatic else 0
        held = tuple(accumulate(block.tokens for block in blocks))
        return Settled(read, 0, 0, total - read, through, held)

    def _common(self, node: _Node, block: Block, now: float) -> int:
        """Tokens of the longest beginning shared with a block of that role that is stored in its place."""
        role, text = _role(block), _text(block)
        stored = [
            child.text for child in node.children.values() if child.role == role and now < child.expires
        ]
        longest = max((_common(text, other) for other in stored), default=0)
        return min(self._count(text[:longest]), block.tokens) if longest else 0


def _role(block: Block) -> bytes:
    return block.said.partition(b"\0")[0]


def _text(block: Block) -> str:
    return "\n".join(texts_of(block.content))


def _common(one: str, other: str) -> int:
    """The length of the common beginning of two texts."""
    return bisect_left(
        range(1, min(len(one), len(other)) + 1), True, key=lambda end: one[:end] != other[:end]
    )
