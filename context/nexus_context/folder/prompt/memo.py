"""Caches results computed from texts, without keeping the texts.

1. All files but the edited one are the same on every keystroke, and there may be thousands. The key of a text
   is its hash and length, so that a large text takes no more memory than a small one. Hashes are 64 bits,
   keyed per process: two texts of one length collide once in 10^19.
2. Two generations approximate the order of use. A requested value moves to the young one; with MOST entries,
   that becomes the old one. So a walk over many texts finds all of them the next time.
3. Threads that request a value at the same time may each compute it; none waits.
"""

from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from nexus_context.errors import Span

MOST = 4096  # entries of a generation, about 400 bytes each

_Value = TypeVar("_Value")


class TextSlice(NamedTuple):
    """A part of a text.

    It is cut out only when needed, since a text caches its hash, and a slice would not.
    """

    text: str
    span: Span

    def cut(self) -> str:
        """Return the part as a text."""
        return self.text[self.span.start : self.span.end]


def whole(text: str) -> TextSlice:
    """Return all of a text as a slice."""
    return TextSlice(text, Span(0, len(text)))


class TextMemo(Generic[_Value]):
    """Caches values of parts of texts."""

    def __init__(self) -> None:
        self._young: dict[Hashable, _Value] = {}
        self._old: dict[Hashable, _Value] = {}

    def __len__(self) -> int:
        """Number of cached values."""
        return len(self._young) + len(self._old)

    def of(self, part: TextSlice, look: Callable[[str], _Value], by: Hashable = None) -> _Value:
        """Return `look(part.cut())`, or its cached value. `by` is what else the value depends on."""
        key = (hash(part.text), len(part.text), part.span, by)
        young = self._young
        if key in young:
            return young[key]
        old = self._old
        value = young[key] = old[key] if key in old else look(part.cut())
        if len(young) >= MOST and young is self._young:
            self._old, self._young = young, {}
        return value
