"""Patterns of names such as `fs.read` or `network.*`, set beside each other."""

import functools
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

NOTHING = ("[]",)
"""A list of patterns that nothing is named by, where an empty list would stand for everything."""


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


def _plain(pattern: str) -> str:
    made, rest = "", pattern
    while rest:
        end = rest.find("]", 2) if rest[0] == "[" else -1
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
