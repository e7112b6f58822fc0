"""Counters that have only `count` and `count_messages`, used as a `TokenCounter`.

1. Every text is counted by the counter itself, and shown as an estimate. A message costs what
   `count_message` says, so that the rows of a usage sum to its total whatever the counter adds to a message.
2. A counter keeps one adapter, and so one name, as long as it is among the last MOST_COUNTERS: counts are
   cached by name, and another counter must never read them.
"""

import functools
import itertools
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from nexus_context.tokens.counter import CountedMessage, TokenCounter, count_message

MOST_COUNTERS = 64


@runtime_checkable
class MinimalCounter(Protocol):
    """The least that a counter needs."""

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        ...

    def count_messages(self, messages: list[Any]) -> int:
        """Tokens of all `messages`."""
        ...


class PlainCounter:
    """A `TokenCounter` around a counter without `name` and `exact`."""

    exact = False

    def __init__(self, counter: MinimalCounter) -> None:
        self.counter = counter
        self.name = f"{type(counter).__qualname__} {next(_serials)}"

    def count(self, text: str) -> int:
        """Tokens of `text`."""
        return max(int(self.counter.count(text)), 0)

    def count_messages(self, messages: Iterable[CountedMessage]) -> int:
        """Tokens of all `messages` (rule 1)."""
        return sum(count_message(self, message.content, message.tool_calls) for message in messages)

    def __repr__(self) -> str:
        return f"<PlainCounter {self.name}>"


def complete(counter: MinimalCounter | TokenCounter) -> TokenCounter:
    """The counter itself if it has a name and says whether it is exact, else an adapter around it.

    Raises TypeError for a value that cannot count.
    """
    if not isinstance(counter, MinimalCounter):
        raise TypeError(
            f"{type(counter).__name__} is not a token counter: it needs count(text) and "
            "count_messages(messages)."
        )
    named = isinstance(getattr(counter, "name", None), str) and hasattr(counter, "exact")
    if named and type(counter).__hash__ is not None:
        return counter  # type: ignore[return-value]  # it has everything
    return _adapter(_Identity(counter))


class _Identity:
    """A counter as a key: by identity, since it may not be hashable."""

    __slots__ = ("counter",)

    def __init__(self, counter: MinimalCounter) -> None:
        self.counter = counter

    def __hash__(self) -> int:
        return id(self.counter)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.counter is self.counter


@functools.lru_cache(maxsize=MOST_COUNTERS)
def _adapter(key: _Identity) -> PlainCounter:
    return PlainCounter(key.counter)


_serials = itertools.count(1)
