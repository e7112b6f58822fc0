"""A cache of the units of text segments, for each encoding, of bounded size.

Two generations approximate an LRU: a hit in the old one moves to the young one, and when the young one
reaches half the bound it becomes the old one.
"""

import sys
import threading
from collections.abc import Callable

MEMO_BYTES = 8 * 1024 * 1024  # of segment text, for each encoding


def recall(name: str, part: str, measure: Callable[[str], int]) -> int:
    """`measure(part)`, from the cache of `name` if it was measured recently."""
    generations = _memos.get(name)
    if generations is None:
        generations = _memos.setdefault(name, _Generations())
    return generations.get(part, measure)


def clear() -> None:
    """Forget everything."""
    _memos.clear()


class _Generations:
    def __init__(self) -> None:
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, part: str, measure: Callable[[str], int]) -> int:
        units = self._young.get(part)
        if units is not None:
            return units
        units = self._old.get(part)
        if units is None:
            units = measure(part)  # outside the lock: tiktoken releases the GIL
        with self._lock:
            if part not in self._young:
                self._young[part] = units
                self._bytes += sys.getsizeof(part) + _ENTRY_BYTES
                if self._bytes > MEMO_BYTES // 2:
                    self._old, self._young, self._bytes = self._young, {}, 0
        return units


_ENTRY_BYTES = 100  # a dict slot and an int

_memos: dict[str, _Generations] = {}
