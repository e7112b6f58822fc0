"""Patterns of names such as `fs.read` or `network.*`, set beside each other."""

import functools
import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

NOTHING = ("[]",)
"""A list of patterns that nothing is named by, where an empty list would stand for everything."""

_WILD = re.compile(r"[*?[]")


class Patterns:
    """Patterns that many others are set beside; looked at are only those that begin alike.

    What stands before a pattern's first wildcard is its head: where no head begins the other, nothing can
    match both.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._by_head: dict[str, list[str]] = {}
        for pattern in dict.fromkeys(patterns):
            self._by_head.setdefault(_head(pattern), []).append(pattern)
        self._heads = sorted(self._by_head)
        self._lengths = sorted({len(head) for head in self._heads})

    def naming(self, name: str) -> str | None:
        """One of the patterns that stands for a name; None if there is none."""
        return next((one for one in self._beginning(name) if fnmatchcase(name, one)), None)

    def cover(self, pattern: str) -> bool:
        """Whether one of them surely stands for all that a pattern can mean, see `covered`."""
        return covered(pattern, self._beginning(_head(pattern)))

    def meet(self, pattern: str) -> bool:
        """Whether some name can match a pattern and one of these, see `overlap`."""
        head = _head(pattern)
        if any(_inside(pattern, one) or overlap(pattern, one) for one in self._beginning(head)):
            return True
        if head == pattern:
            return False
        longer = self._heads[bisect_right(self._heads, head) :]
        alike = itertools.takewhile(lambda one: one.startswith(head), longer)
        return any(overlap(pattern, one) for beginning in alike for one in self._by_head[beginning])

    def _beginning(self, text: str) -> Iterator[str]:
        """The patterns whose head a text begins with, the shortest head first."""
        for length in self._lengths:
            if length <= len(text):
                yield from self._by_head.get(text[:length], ())


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of those that the patterns stand for."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def covered(pattern: str, wide: Iterable[str]) -> bool:
    """Whether one of the `wide` patterns surely stands for all that `pattern` can mean."""
    return any(pattern == one or one == "*" or _inside(pattern, one) for one in wide)


def _inside(pattern: str, wide: str) -> bool:
    # a `*` in the narrow pattern has to meet a `*` in the wide one, which any character stands for
    plain = not any(character in pattern for character in "?[") and "[" not in wide
    return plain and fnmatchcase(pattern.replace("*", "\0\0"), wide) and not _asks(pattern, wide)


def _asks(pattern: str, wide: str) -> bool:
    """Whether `?` of the wide pattern could meet a `*`, which may stand for nothing."""
    return "?" in wide and "*" in pattern


@functools.lru_cache(maxsize=1024)
def overlap(one: str, other: str) -> bool:
    """Whether some name can match both patterns; sets (`[…]`) count as any one character."""
    return _meet(_plain(one), _plain(other))


def servers_named(tool: str) -> list[str]:
    """The patterns of MCP servers that a pattern of tools names: what stands before the tool's own name."""
    if tool == "*":
        return ["*"]
    if tool.startswith("mcp__"):
        return [tool.removeprefix("mcp__").partition("__")[0]]
    server, dot, _ = tool.rpartition(".")
    return [server] if dot else []


def _head(pattern: str) -> str:
    return _WILD.split(pattern, maxsplit=1)[0]


def _plain(pattern: str) -> str:
    made, rest = "", pattern
    while rest:
        end = rest.find("]", 3 if rest[1:2] == "!" else 2) if rest[0] == "[" else -1
        made += "?" if end > 0 else rest[0]
        rest = rest[end + 1 :] if end > 0 else rest[1:]
    return made


def _meet(one: str, other: str) -> bool:
    """By dynamic programming: the rests of `other` that can still match after each character of `one`."""
    rests = {0, *_stars(other, 0)}
    for character in one:
        if character == "*":
            first = min(rests)
            rests = set(range(first, len(other) + 1))
            continue
        after: set[int] = set()
        for at in rests:
            if at < len(other):
                if other[at] == "*":
                    after.update((at, *_stars(other, at)))
                elif "?" in (character, other[at]) or character == other[at]:
                    after.update((at + 1, *_stars(other, at + 1)))
        if not after:
            return False
        rests = after
    return len(other) in rests


def _stars(pattern: str, at: int) -> Sequence[int]:
    """The places after the `*`s at a place: each may stand for nothing."""
    end = at
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    return range(at + 1, end + 1)
