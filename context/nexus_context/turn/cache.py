"""Caches the assembled contexts of one session as long as nothing that they depend on changes.

An entry's key contains the revisions of everything that the context depends on. An entry also expires after
`TTL` seconds, in case something changed that has no revision.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import msgspec

TTL = 60.0
"""Seconds after which an entry expires."""

ENTRIES = 8
"""Entries that are kept; the least recently used one goes first."""

T = TypeVar("T")


class Statistics(msgspec.Struct, frozen=True, rename="camel"):
    """Hits, misses and entries of one or more caches since they were made."""

    hits: int = 0
    misses: int = 0
    entries: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of requests that were answered from a cache, from 0 to 1. It is 0 if there were no
        requests.
        """
        return self.hits / (self.hits + self.misses) if self.hits else 0.0

    def __add__(self, other: "Statistics") -> "Statistics":
        return Statistics(self.hits + other.hits, self.misses + other.misses, self.entries + other.entries)


class AssemblyCache(Generic[T]):
    """Stores values by key until they expire. Only one thread may use it at a time.

    `clock` returns seconds that never decrease.
    """

    def __init__(self, clock: Callable[[], float], *, ttl: float = TTL, entries: int = ENTRIES) -> None:
        self._clock = clock
        self._ttl = ttl
        self._most = entries
        self._entries: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()
        self._hits = 0
        self._misses = 0

    def get(self, key: Hashable) -> T | None:
        """Return the value, or None if there is none or it has expired."""
        entry = self._entries.pop(key, None)
        if entry is None or self._clock() - entry[0] >= self._ttl:
            self._misses += 1
            return None
        self._entries[key] = entry
        self._hits += 1
        return entry[1]

    def put(self, key: Hashable, value: T) -> None:
        self._entries.pop(key, None)
        self._entries[key] = (self._clock(), value)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def invalidate(self) -> None:
        """Drop all entries."""
        self._entries.clear()

    def statistics(self) -> Statistics:
        return Statistics(self._hits, self._misses, len(self._entries))
