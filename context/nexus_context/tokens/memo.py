"""Units of text segments, remembered for each encoding within a bound on memory.

Two generations stand in for an exact LRU: a hit in the old one moves to the young one, and when the
young one is half the bound it becomes the old one. No entry is touched per use, and no list is kept.
"""

import sys
import threading
from collections.abc import Callable

MEMO_BYTES = 8 * 1024 * 1024  # of segment text, for each encoding


def recall(name: str, part: str, measure: Callable[[str], int]) -> int:
    """`measure(part)`, from memory if it was measured under `name` lately."""
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
            units = measure(part)  # outside the lock: tiktoken works without the GIL
        with self._lock:
            if part not in self._young:
                self._young[part] = units
                self._bytes += sys.getsizeof(part) + _ENTRY_BYTES
                if self._bytes > MEMO_BYTES // 2:
                    self._old, self._young, self._bytes = self._young, {}, 0
        return units


_ENTRY_BYTES = 100  # a dict slot and an int

_memos: dict[str, _Generations] = {}
