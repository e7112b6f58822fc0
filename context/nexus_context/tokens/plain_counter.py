"""Adapts token counters that the calling program brings to the interface `TokenCounter`.

1. Such a counter needs only the method `count`. If it also has `count_messages`, that method says what a
   message costs: it is called with one message at a time, so that the rows of a usage sum to its total.
   Otherwise a message costs what `count_message` says. The counts are shown as estimates, unless the counter
   has a name and its `exact` is true.
2. A counter that fails, or returns something else than a number, is named in a RequestError, `bad-counter`.
   Fractions are rounded up. A text is counted once as long as it is among the last MOST_TEXTS: the counter
   may be slow.
3. A counter keeps one adapter, and so one name, as long as it is among the last MOST_COUNTERS: counts are
   cached by name, and another counter must never read them.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from nexus_context.errors import RequestError
from nexus_context.tokens.counter import (
    AdditiveCounter,
    CountedMessage,
    TokenCounter,
    count_message,
    family_of_counter,
    fields_of,
)

MOST_COUNTERS = 64
MOST_TEXTS = 1024
BAD_COUNTER = "bad-counter"
"""A code that only programs meet: clients of the daemon bring no counter."""


@runtime_checkable
class MinimalCounter(Protocol):
    """The least that a counter needs. If it also has `count_messages(messages)`, that method counts the
    messages.
    """

    def count(self, text: str) -> int:
        """Return the tokens of `text`."""
        ...


class MessageToCount(NamedTuple):
    """The part of a message that is sent, as it is passed to a counter of the caller."""

    role: str
    content: Any  # text, or parts; None: nothing
    tool_calls: Any = ()


class PlainCounter:
    """Makes a `TokenCounter` of a counter that the caller brought."""

    def __init__(self, counter: MinimalCounter) -> None:
        self.counter = counter
        name, exact = getattr(counter, "name", None), getattr(counter, "exact", None)
        named = isinstance(name, str) and exact is not None
        self.name: str = name if named else f"{type(counter).__qualname__} {next(_serials)}"  # type: ignore[assignment]
        self.exact = bool(exact) if named else False
        self.family = family_of_counter(counter)
        self.count = functools.lru_cache(MOST_TEXTS)(self._count)
        count_messages = getattr(counter, "count_messages", None)
        self.own_count = self._own_count if callable(count_messages) else None

    def count_messages(self, messages: Iterable[CountedMessage | Mapping[str, Any]]) -> int:
        """Return the tokens of all `messages` (rule 1)."""
        return sum(count_message(self, *fields_of(message)) for message in messages)

    def _count(self, text: str) -> int:
        """Tokens of `text`."""
        return self._checked(self.counter.count, text)

    def _own_count(self, content: Any, tool_calls: Any, role: str) -> int:
        message = MessageToCount(role, content, tool_calls or ())
        return self._checked(self.counter.count_messages, [message])  # type: ignore[attr-defined]

    def _checked(self, count: Callable[[Any], Any], counted: Any) -> int:
        method = f"{type(self.counter).__qualname__}.{count.__name__}"
        try:
            tokens = count(counted)
        except Exception as error:
            text = f"The token counter failed: {method} raised {type(error).__name__}: {error}."
            raise RequestError(text, code=BAD_COUNTER) from error
        if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not math.isfinite(tokens):
            text = f"{method} returned {tokens!r}; it must return a number of tokens."
            raise RequestError(text, code=BAD_COUNTER)
        return max(math.ceil(tokens), 0)

    def __repr__(self) -> str:
        return f"<PlainCounter {self.name}>"


def complete(counter: MinimalCounter | TokenCounter) -> TokenCounter:
    """Return `counter` itself if it is a counter of this package, else an adapter around it.

    Raise TypeError if the value is not a token counter.
    """
    if isinstance(counter, AdditiveCounter | PlainCounter):
        return counter
    if isinstance(counter, Sequence) or not isinstance(counter, MinimalCounter):  # a str has a `count`, too
        raise TypeError(f"{type(counter).__name__} is not a token counter: it needs count(text).")
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
