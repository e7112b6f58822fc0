"""What was worked out of texts, remembered without the texts.

1. All files but the one that is edited are the same on every keystroke, and there may be thousands: each is
   known by its hash and length, so that what is remembered of a large one takes no more than of a small one.
   Hashes are 64 bits with a key of the process: two texts of one length have the same once in 10^19.
2. Two generations stand in for the order of use: what is asked for moves to the young one, which becomes the
   old one when it has MOST entries. So that many can be walked in turn, and all are known the next time.
3. Of threads that ask at once, each may work it out: no one waits for another.
"""

from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from nexus_context.errors import Span

MOST = 4096  # entries of a generation, about 400 bytes each

_Value = TypeVar("_Value")


class TextSlice(NamedTuple):
    """A part of a text. It is cut out only where it is looked at: a text keeps its hash, a part has none."""

    text: str
    span: Span

    def cut(self) -> str:
        """The part as a text."""
        return self.text[self.span.start : self.span.end]


def whole(text: str) -> TextSlice:
    """All of a text."""
    return TextSlice(text, Span(0, len(text)))


class TextMemo(Generic[_Value]):
    """Values of parts of texts."""

    def __init__(self) -> None:
        self._young: dict[Hashable, _Value] = {}
        self._old: dict[Hashable, _Value] = {}

    def of(self, part: TextSlice, look: Callable[[str], _Value], by: Hashable = None) -> _Value:
        """`look(part.cut())`, from memory if it was worked out lately; `by` is what else it depends on."""
        key = (hash(part.text), len(part.text), part.span, by)
        young = self._young
        if key in young:
            return young[key]
        old = self._old
        value = young[key] = old[key] if key in old else look(part.cut())
        if len(young) >= MOST and young is self._young:
            self._old, self._young = young, {}
        return value
