"""Counts tokens: exactly in two encodings, by a factor on these, or by the number of characters.

1. A counter measures text in units that add up over segments, and converts a sum of units to tokens by a
   monotonic function. So counts of a document's parts can sum exactly.
2. Segments are counted once: their units are cached, within MEMO_BYTES, for each encoding.
3. A counter never raises, whatever the text is. Special tokens count as ordinary text, and lone surrogates as
   U+FFFD.
"""

import math
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from nexus_context.disk import cancellation
from nexus_context.tokens import estimates, families, segments, vocabulary
from nexus_context.tokens.families import Family
from nexus_context.tokens.images import image_tokens

MEMO_BYTES = 8 * 1024 * 1024  # of segment text, for each encoding
_ENTRY_BYTES = 100  # a dict slot and an int


class CountedToolCall(Protocol):
    """The fields of a tool call that a counter reads."""

    @property
    def name(self) -> str:
        """The tool's name."""
        ...

    @property
    def arguments(self) -> Any:
        """The arguments as a JSON value, or as a string of JSON."""
        ...


class CountedMessage(Protocol):
    """The fields of a message that a counter reads."""

    @property
    def content(self) -> Any:
        """A text, a list of parts, or None. A part is a JSON object whose `type` is text, image or anything
        else.
        """
        ...

    @property
    def tool_calls(self) -> "Sequence[CountedToolCall] | None":
        """The tool calls that the message makes."""
        ...


class TokenCounter(Protocol):
    """Counts the tokens of texts and messages for one model."""

    @property
    def name(self) -> str:
        """The tokenizer's name for people, such as `o200k_base`, `o200k_base × 1.18 (Claude)` or
        `characters`.
        """
        ...

    @property
    def exact(self) -> bool:
        """Whether counts of text equal those of the model's own tokenizer. Otherwise they are estimates,
        which are shown with ≈.
        """
        ...

    def count(self, text: str) -> int:
        """Return the tokens of `text`."""
        ...

    def count_messages(self, messages: "Iterable[CountedMessage | Mapping[str, Any]]") -> int:
        """Return the tokens of all `messages`: the sum of `count_message` of each. A message may be a
        dictionary with the same fields.
        """
        ...

    def __hash__(self) -> int:
        """Counts are cached by counter."""
        ...


def count_message(
    counter: TokenCounter,
    content: "str | Sequence[Any] | None",
    tool_calls: "Sequence[CountedToolCall] | None" = None,
    role: str = "user",
) -> int:
    """Return the tokens of one message: 4, its text and images, and for each tool call its name, its
    arguments and an overhead.

    The family of the counter says what an image and the overhead of a call cost, 5 tokens a call by default
    (`families`). A part that only marks the place of a call is not sent and costs nothing. Opaque parts,
    which only their provider can read, count by `estimates`. Any other part that is neither text nor an image
    counts as its JSON text.

    If the caller's own counter counts messages (`plain_counter`), its result is returned instead. `role` is
    used only for such a counter.
    """
    own_count = getattr(counter, "own_count", None)
    if own_count is not None:
        return int(own_count(content, tool_calls, role))
    total = families.MESSAGE_OVERHEAD
    if isinstance(content, str):
        total += counter.count(content)
    elif content:
        total += sum(_count_part(counter, part) for part in content)
    if tool_calls:
        for call in tool_calls:
            total += counter.count(call.name) + counter.count(estimates.json_text(call.arguments))
        total += len(tool_calls) * family_of_counter(counter).call_overhead
    return total


class _Call(NamedTuple):
    name: str
    arguments: Any


def fields_of(message: CountedMessage | Mapping[str, Any]) -> tuple[Any, Any, str]:
    """Return content, tool calls and role of a message. The tool calls of a dictionary may have OpenAI's
    form.
    """
    if not isinstance(message, Mapping):
        return message.content, message.tool_calls, getattr(message, "role", "user")
    functions = [call.get("function") or call for call in message.get("tool_calls") or ()]
    calls = [_Call(str(function.get("name") or ""), function.get("arguments")) for function in functions]
    return message.get("content"), calls, str(message.get("role") or "user")


def family_of_counter(counter: object) -> Family:
    """Return the family that says what calls and images cost for this counter, or the default family if the
    counter has none.
    """
    family = getattr(counter, "family", None)
    return family if isinstance(family, Family) else families.DEFAULT


class AdditiveCounter:
    """Base class of this package's counters. Their `units` add up over the segments of a text, and `tokens`
    never decreases as units grow.
    """

    name: str
    exact: bool
    family: Family = families.DEFAULT

    def units(self, text: str) -> int:
        """Return the size of `text` in units, which add up over the segments of `segments.split`."""
        raise NotImplementedError

    def segment_units(self, segment: str) -> int:
        """Return the units of one segment, or of the beginning of one. A counter that is slow caches the
        result.
        """
        return self.units(segment)

    def tokens(self, units: int) -> int:
        """Convert a sum of units to tokens. `tokens(0)` is 0."""
        raise NotImplementedError

    def part_tokens(self, units: int) -> int:
        """Convert the units of a part of a text to tokens, rounded down, so that parts never sum to more than
        their whole.
        """
        raise NotImplementedError

    def count(self, text: str) -> int:
        """Return the tokens of `text`."""
        return self.tokens(self.units(text))

    def count_messages(self, messages: "Iterable[CountedMessage | Mapping[str, Any]]") -> int:
        """Return the tokens of all `messages`."""
        return sum(count_message(self, *fields_of(message)) for message in messages)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class TiktokenCounter(AdditiveCounter):
    """Counts exactly in `cl100k_base` or `o200k_base`, offline.

    The first count loads the vocabulary, which takes 0.1 to 0.3 s, so do not count on the event loop. A count
    can differ from tiktoken's only if more than 49,152 code points follow each other without an end of a word
    (`segments`, rule 4).
    """

    exact = True

    def __init__(self, encoding_name: str = "cl100k_base", *, family: Family = families.DEFAULT) -> None:
        if encoding_name not in vocabulary.ENCODINGS:
            names = ", ".join(vocabulary.ENCODINGS)
            raise ValueError(f"unknown encoding {encoding_name!r}; choose one of: {names}")
        self.encoding, self.family = encoding_name, family
        self.name = _name(encoding_name, family)

    def count(self, text: str) -> int:
        """Return the tokens of `text`."""
        if len(text) < _DIRECT:  # as in `units`, since most texts are short
            return len(vocabulary.load_encoding(self.encoding).encode(text, disallowed_special=()))
        return self.units(text)

    def units(self, text: str) -> int:
        """Return the tokens of `text`: a unit of this counter is a token."""
        if len(text) < _DIRECT:
            return self._encode_length(text)
        if len(text) > _LONG:
            return sum(map(self._checked_units, segments.split(text)))
        return sum(map(self.segment_units, segments.split(text)))

    def _checked_units(self, segment: str) -> int:
        cancellation.check()
        return self.segment_units(segment)

    def segment_units(self, segment: str) -> int:
        """Return the tokens of `segment`, from the cache if it was counted before."""
        return measure_cached(self.encoding, segment, self._encode_length)

    def tokens(self, units: int) -> int:
        """Return `units` as they are, since a unit is a token."""
        return units

    def part_tokens(self, units: int) -> int:
        """Return `units` as they are, since a unit is a token."""
        return units

    def _encode_length(self, text: str) -> int:
        # Not encode_ordinary: it panics with a BaseException where encode raises ValueError.
        return len(vocabulary.load_encoding(self.encoding).encode(text, disallowed_special=()))


class ScaledCounter(AdditiveCounter):
    """Estimates tokens for a vendor that publishes no tokenizer: the count of `base` times `factor`, rounded
    up.
    """

    exact = False

    def __init__(self, base: TiktokenCounter, factor: float, *, family: Family = families.DEFAULT) -> None:
        self.base, self.family = base, family
        self.name = _name(base.encoding if factor == 1 else f"{base.encoding} × {factor:g}", family)
        self._percent = round(factor * 100)

    def units(self, text: str) -> int:
        """Return the base counter's units of `text`."""
        return self.base.units(text)

    def segment_units(self, segment: str) -> int:
        """Return the base counter's units of `segment`, which it caches."""
        return self.base.segment_units(segment)

    def tokens(self, units: int) -> int:
        """Return the base counter's tokens times the factor, rounded up."""
        return -(-self.base.tokens(units) * self._percent // 100)

    def part_tokens(self, units: int) -> int:
        """Return the base counter's tokens times the factor, rounded down."""
        return self.base.part_tokens(units) * self._percent // 100


class SimpleTokenCounter(AdditiveCounter):
    """Estimates tokens by characters, without a vocabulary. A token has 4 characters, 2.5 in Cyrillic and 1.5
    in CJK.
    """

    name = "characters"
    exact = False

    def units(self, text: str) -> int:
        """Return the estimate for `text` in 60ths of a token."""
        return estimates.text_units(text)

    def tokens(self, units: int) -> int:
        """Convert 60ths of a token to tokens, rounded up."""
        return math.ceil(units / estimates.UNITS_PER_TOKEN)

    def part_tokens(self, units: int) -> int:
        """Convert 60ths of a token to tokens, rounded down."""
        return units // estimates.UNITS_PER_TOKEN


_LONG = 1_000_000  # code points; the count of a longer text can be cancelled
_DIRECT = 2048  # code points; shorter text is not cut into segments: a message is counted only once


def _name(tokenizer: str, family: Family) -> str:
    """The name of a counter: no other counter counts calls and images differently under the same name."""
    return f"{tokenizer} ({family.label})" if family.label else tokenizer


def _count_part(counter: TokenCounter, part: object) -> int:
    if not isinstance(part, Mapping):
        return counter.count(estimates.json_text(part))
    if part.get("type") == "tool_call":  # the place of a call, which is counted by itself
        return 0
    if estimates.is_image(part):
        return image_tokens(family_of_counter(counter).images, part)
    if estimates.is_opaque(part):
        return max(counter.count(estimates.opaque_text(part)), estimates.opaque_tokens(part))
    text = part.get("text")
    if part.get("type") in ("text", "input_text", "output_text") and isinstance(text, str):
        return counter.count(text)
    return counter.count(estimates.json_text(part))


def measure_cached(name: str, text: str, measure: Callable[[str], int]) -> int:
    """Return `measure(text)`, from the cache called `name` if the text was measured recently."""
    cache = _caches.get(name)
    if cache is None:
        cache = _caches.setdefault(name, _MeasureCache())
    return cache.get(text, measure)


class _MeasureCache:
    """Units of texts, at most MEMO_BYTES.

    Two generations approximate an LRU: a hit in the old one moves to the young one, and when the young one
    reaches half the bound it becomes the old one.
    """

    def __init__(self) -> None:
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, text: str, measure: Callable[[str], int]) -> int:
        units = self._young.get(text)
        if units is not None:
            return units
        units = self._old.get(text)
        if units is None:
            units = measure(text)  # outside the lock: tiktoken releases the GIL
        with self._lock:
            if text not in self._young:
                self._young[text] = units
                self._bytes += sys.getsizeof(text) + _ENTRY_BYTES
                if self._bytes > MEMO_BYTES // 2:
                    self._old, self._young, self._bytes = self._young, {}, 0
        return units


_caches: dict[str, _MeasureCache] = {}
