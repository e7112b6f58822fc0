"""Repairs: what is sent differently from how it was stored, one entry for each, in words for people."""

from collections.abc import Iterable

import msgspec

_LONGEST_QUOTE = 60  # code points of an id or a name in a sentence


class Repair(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that is sent differently from how it was stored.

    `index` is that of the message. `given` and `sent` are a name or an id before and after, if it changed.
    """

    kind: str  # such as result-missing; the same words for the same repair
    text: str  # one sentence for people
    index: int | None = None
    tool_call_id: str | None = None
    given: str | None = None
    sent: str | None = None


class RepairLog:
    """The repairs of one request body. A repeated repair is listed once, with its count and first index."""

    def __init__(self, repairs: Iterable[Repair]) -> None:
        self._repairs = list(repairs)
        self._counts: dict[tuple[str, str], tuple[Repair, int]] = {}

    def add(self, kind: str, text: str, index: int | None = None, **details: str | None) -> None:
        """Add a repair; `details` are fields of `Repair`. The same text again only raises the count."""
        first, count = self._counts.get((kind, text), (None, 0))
        if first is None:
            first = Repair(kind, text, index, **details)
        self._counts[kind, text] = (first, count + 1)

    def repairs(self) -> list[Repair]:
        """All repairs in the order in which each first occurred."""
        counted = (
            first if count == 1 else msgspec.structs.replace(first, text=f"{first.text} ({count} times)")
            for first, count in self._counts.values()
        )
        return [*self._repairs, *counted]


def place(index: int) -> str:
    """The place of a message, in words."""
    return f"message {index + 1}"


def quote_name(name: str | None) -> str:
    """An id or a name for a sentence."""
    if not name:
        return '""'
    return name if len(name) <= _LONGEST_QUOTE else name[:_LONGEST_QUOTE] + "…"
