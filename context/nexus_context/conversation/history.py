"""Holds the messages of one conversation since its last compaction, each counted and encoded once.

1. Messages are only appended. A compaction creates a new history, which reuses the counts of the messages
   that it keeps.
2. Counts are running sums for each counter, so the tokens of any range of messages are the difference of two
   sums. Only the sums of the COUNTERS most recent counters are cached.
3. `messages` are what their authors wrote, together with the preambles with which user messages were sent.
   `sent` are the same messages as a model receives them. Sums and groups are those of `sent`.
4. If a history is stored in a ledger, only its beginning and its end may be loaded. Indexes and sums are then
   those of the loaded messages. No group or turn spans the gap. A call id that also occurs in the gap counts
   as new.
5. System messages at the start are rules for the whole conversation. A message that opens the session may
   precede them: a summary, or the message with the time. `leading` has the indexes of these system messages.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

import msgspec

from nexus_context.conversation.body_shape import BodyShape, added_tokens, is_reshaped
from nexus_context.conversation.groups import Grouping
from nexus_context.conversation.message import (
    GAP,
    Message,
    content_of,
    sent_content,
    sent_message,
    written_message,
)
from nexus_context.conversation.repair import lifted_as
from nexus_context.conversation.revealed_tools import RevealedTools
from nexus_context.conversation.summary import is_summary
from nexus_context.conversation.times import is_opening
from nexus_context.errors import RequestError
from nexus_context.tokens import TokenCounter, count_message, count_spans
from nexus_context.tokens.estimates import is_estimated, is_opaque

_Item = TypeVar("_Item")

COUNTERS = 4
"""Counters whose sums are cached: one for each tokenizer of the models in use."""


PIECE = 128 * 1024
"""Bytes of a piece of JSON, or little more: two megabytes are sent about a third faster in 20 pieces than
message by message.
"""

_encode = msgspec.json.Encoder().encode


class Gap(NamedTuple):
    """Messages that are not loaded, with their tokens. They follow the first `lead` loaded messages."""

    lead: int = 0
    messages: int = 0
    tokens: int = 0


NO_GAP = Gap()


class PreambleTokens(NamedTuple):
    """The tokens of preambles, by kind of text."""

    event: int = 0
    memory: int = 0
    changes: int = 0

    def plus(self, other: "PreambleTokens", factor: int = 1) -> "PreambleTokens":
        return PreambleTokens(
            *(
                own_tokens + factor * other_tokens
                for own_tokens, other_tokens in zip(self, other, strict=True)
            )
        )


class History:
    """Messages, oldest first, with their groups, turns, tokens and JSON. Only one thread may use it at a
    time.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = []
        self.sent: list[Message] = []
        self.preambles: list[int] = []  # indexes of the messages with one
        self.notes: list[int] = []  # indexes of those that tell of changes in prompt and tools
        self.note_number = 0  # the highest `Preamble.frozen`
        self.items: dict[str, int] = {}  # hash of a memory item → the last message that has it whole
        self.grouping = Grouping()
        self.leading = range(0)
        self._begins = True  # whether all messages are leading ones, or what opens the session
        self._kinds = [(0, 0)]  # running sums: system messages, results of tools
        self.tool_calls = 0
        self.revealed = RevealedTools()
        self.reasoning = False  # whether any answer may have reasoning
        self.binding: object = None  # what `bound_thinking` knows of the last view
        self.opaque = 0  # messages with what only its provider can read: bound to what precedes it
        self.images = 0  # messages with images or files, whose tokens are always an estimate
        self._encoded = Encoded()
        self._sent_encoded = self._encoded  # one of its own as soon as a message has a preamble
        self._sums: dict[str, list[int]] = {}
        self.replaced_preambles: tuple[object, object, PreambleTokens] | None = None  # of the last view
        self._preamble_tokens: dict[str, list[PreambleTokens]] = {}
        self.reshaped: list[int] = []  # indexes of the messages that a format may change
        self._added: dict[tuple[str, BodyShape], tuple[int, dict[int, int]]] = {}
        self.sizes: list[int] = []  # bytes of messages as JSON, as far as `body_bytes` measured them
        self._reasoning_tokens: dict[tuple[str, int], int] = {}
        self.gap = NO_GAP
        self.extend(messages)

    def __len__(self) -> int:
        """The number of loaded messages."""
        return len(self.messages)

    @classmethod
    def restored(
        cls,
        messages: Sequence[Message],
        tokens: Sequence[int],
        counter: str,
        gap: Gap,
    ) -> "History":
        """Restore a history from a ledger. `tokens` are the counts of the messages by the counter with the
        name `counter`.

        Raise ValueError if messages and tokens differ in number, or if fewer than `gap.lead` messages are
        loaded.
        """
        if len(tokens) != len(messages) or gap.lead > len(messages):
            raise ValueError(f"{len(messages)} messages, {len(tokens)} counted, {gap.lead} before a gap")
        if gap.messages:
            history = cls(messages[: gap.lead])
            history.gap = gap
            history.grouping.skip()
            history._begins = False
            history.extend(messages[gap.lead :])
        else:
            history = cls(messages)
        history._sums[counter] = [0, *accumulate(tokens)]
        return history

    @property
    def least_start(self) -> int:
        """The index of the first message after the gap whose group is loaded completely. It is 0 if there is
        no gap.
        """
        if not self.gap.messages:
            return 0
        messages, least = self.messages, self.gap.lead
        while least < len(messages) and messages[least].role == "tool":  # its call is in the gap
            least += 1
        return least

    def needs_all(self) -> None:
        """Raise RequestError if some messages are not loaded."""
        if self.gap.messages:
            raise RequestError(
                f"This needs the whole conversation, but {self.gap.messages:,} of its messages are not "
                "loaded. Load them first.",
                code="history-not-loaded",
            )

    def append(self, message: Message) -> None:
        index = len(self.messages)
        self.messages.append(message)
        self.sent.append(sent_message(message))
        if message.preamble is not None:
            if not self.preambles:  # the two were the same so far
                self._sent_encoded = self._encoded.copy()
            self.preambles.append(index)
            self.items.update(dict.fromkeys(message.preamble.items, index))
            if message.preamble.changes:
                self.notes.append(index)
                self.note_number = max(self.note_number, message.preamble.frozen)
        self.grouping.add(self.sent[-1])
        if self._begins:
            self._begin(message, index)
        if message.tool_calls:
            self.tool_calls += len(message.tool_calls)
        self.revealed.read(message)
        content = message.content
        opaque = image = False
        if isinstance(content, list):
            self.reasoning = self.reasoning or message.role == "assistant"
            for part in content:
                if isinstance(part, dict):
                    opaque = opaque or is_opaque(part)
                    image = image or is_estimated(part)
            self.images += image
            self.opaque += opaque
        if opaque or is_reshaped(message):
            self.reshaped.append(index)

    def extend(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.append(message)

    def _begin(self, message: Message, index: int) -> None:
        """Note a message at the start: whether it leads, opens the session, or ends the start."""
        content = message.content
        is_plain = not message.tool_calls and not (isinstance(content, list) and any(map(lifted_as, content)))
        if message.role == "system" and is_plain:
            self.leading = range(self.leading.start if self.leading else index, index + 1)
        else:
            self._begins = not self.leading and (is_opening(message) or is_summary(message))

    def systems_and_results(self, start: int, end: int) -> tuple[int, int]:
        """Return how many of `messages[start:end]` are system messages, and how many are results of tools."""
        sums = self._kinds
        systems, results = sums[-1]
        for message in self.messages[len(sums) - 1 :]:
            systems, results = systems + (message.role == "system"), results + (message.role == "tool")
            sums.append((systems, results))
        return sums[end][0] - sums[start][0], sums[end][1] - sums[start][1]

    def with_leading(self, kept_messages: Iterable[Message]) -> list[Message]:
        """Return the messages that a compaction keeps, with the leading system messages before them if they
        are missing.
        """
        messages = list(kept_messages)
        rules = [self.messages[index] for index in self.leading]
        return [*(rule for rule in rules if rule not in messages), *messages]

    def in_order(self, items: list[_Item]) -> list[_Item]:
        """Put a list with one item for each message into the order in which the messages are sent (rule
        5).
        """
        leading = self.leading
        if leading.start:
            items[: leading.stop] = [*items[leading.start : leading.stop], *items[: leading.start]]
        return items

    def sums(self, counter: TokenCounter) -> Sequence[int]:
        """Return running sums of the tokens: `sums[b] - sums[a]` are the tokens of `messages[a:b]`.

        Only messages that this counter has not counted are counted. Call it in a worker thread if there are
        many.
        """
        sums = self._sums.get(counter.name)
        if sums is None:
            if len(self._sums) >= COUNTERS:
                del self._sums[next(iter(self._sums))]
            sums = self._sums[counter.name] = [0]
        if len(sums) <= len(self.messages):
            total = sums[-1]
            for message in self.messages[len(sums) - 1 :]:
                total += count_message(counter, sent_content(message), message.tool_calls, message.role)
                sums.append(total)
        return sums

    def tokens(self, counter: TokenCounter) -> int:
        """Return the tokens of all messages. Those of messages in the gap are as the ledger counted them."""
        return self.sums(counter)[-1] + self.gap.tokens

    def preamble_tokens(self, counter: TokenCounter, start: int, end: int) -> PreambleTokens:
        """Return the tokens of the preambles of `messages[start:end]`.

        Only preambles that this counter has not counted are counted.
        """
        if not self.preambles:
            return PreambleTokens()
        sums = self._preamble_tokens.setdefault(counter.name, [PreambleTokens()])
        for index in self.preambles[len(sums) - 1 :]:
            sums.append(sums[-1].plus(_count_preamble(self.messages[index], counter)))
        first_index, end_index = bisect_left(self.preambles, start), bisect_left(self.preambles, end)
        return sums[end_index].plus(sums[first_index], -1) if first_index < end_index else PreambleTokens()

    def added_tokens(self, counter: TokenCounter, shape: BodyShape) -> Mapping[int, int]:
        """Return what a body of this shape adds to the tokens of messages: index → tokens. Each message is
        counted once.
        """
        key = counter.name, shape._replace(number=0)
        done, added = self._added.pop(key, (0, {}))
        for index in self.reshaped[done:]:
            tokens = added_tokens(self.messages[index], counter, shape)
            if tokens:
                added[index] = tokens
        self._added[key] = len(self.reshaped), added
        if len(self._added) > COUNTERS:
            del self._added[next(iter(self._added))]
        return added

    def reasoning_tokens(self, counter: TokenCounter, index: int, bare_message: Message) -> int:
        """Return the tokens of the reasoning in a message. `bare_message` is the same message without its
        reasoning.
        """
        key = counter.name, index
        if key not in self._reasoning_tokens:
            sums = self.sums(counter)
            tokens = count_message(
                counter, content_of(bare_message), bare_message.tool_calls, bare_message.role
            )
            self._reasoning_tokens[key] = sums[index + 1] - sums[index] - tokens
        return self._reasoning_tokens[key]

    @property
    def all_encoded(self) -> bool:
        """Whether all messages are loaded and already encoded, so that `encoded` returns at once."""
        return len(self._encoded.each) == len(self.messages) and not self.gap.messages

    def encoded(self) -> list[msgspec.Raw]:
        """Return the messages as JSON, oldest first, as their authors wrote them. Each is encoded once.

        Raise RequestError if some messages are not loaded.
        """
        self.needs_all()
        self._encode()
        return list(self._encoded.each)

    def encoded_in_pieces(self) -> list[msgspec.Raw]:
        """Return the same JSON as `encoded` in fewer values. Each value is the JSON of several messages with
        commas between them.
        """
        self.needs_all()
        self._encode()
        return self._encoded.pieces()

    def encoded_slice(self, start: int, end: int) -> list[msgspec.Raw]:
        """Return `messages[start:end]` as JSON, as their authors wrote them."""
        self._encode()
        return self._encoded.each[start:end]

    def encoded_sent(self, start: int, end: int) -> list[msgspec.Raw]:
        """Return `sent[start:end]` as JSON."""
        encoded = self._sent_encoded
        encoded.extend(self.sent[len(encoded.each) :])
        return encoded.each[start:end]

    def _encode(self) -> None:
        self._encoded.extend(map(written_message, self.messages[len(self._encoded.each) :]))

    def take_over(self, other: "History", start: int) -> None:
        """Append `other.messages[start:]` with their token counts."""
        for name, sums in self._sums.items():
            other_sums = other._sums.get(name, ())  # noqa: SLF001 - of its own class
            if len(sums) == len(self.messages) + 1 and len(other_sums) > start:
                offset = sums[-1] - other_sums[start]
                sums += [offset + other_sum for other_sum in other_sums[start + 1 :]]
        self.extend(other.messages[start:])

    def remade(self, messages: Iterable[Message], counter: TokenCounter) -> "History":
        """Return a history of other messages. The token counts of messages that are the same objects are
        reused.
        """
        sums = self.sums(counter)
        counts = {
            id(message): sum_after - sum_before
            for message, (sum_before, sum_after) in zip(self.messages, pairwise(sums), strict=True)
        }
        history = History(messages)
        total = 0
        new_sums = history._sums[counter.name] = [0]
        for message in history.messages:
            tokens = counts.get(id(message))
            if tokens is None:
                tokens = count_message(counter, sent_content(message), message.tool_calls, message.role)
            total += tokens
            new_sums.append(total)
        return history


class Encoded:
    """The JSON of messages, oldest first. `each` has one value for each message, and `pieces()` returns few
    large ones.

    A piece is the JSON of several messages with commas between them, and shares their memory. The newest
    messages wait until their piece is full. Only one thread may use it at a time.
    """

    def __init__(self) -> None:
        self.each: list[msgspec.Raw] = []  # read-only for callers
        self._pieces: list[msgspec.Raw] = []  # the full ones
        self._first = 0  # first message that is in none of them
        self._size = 0  # bytes from that one on, a comma counted for each

    def extend(self, messages: Iterable[object]) -> None:
        for message in messages:
            text = _encode(message)
            self.each.append(msgspec.Raw(text))
            self._size += len(text) + 1
            if self._size > PIECE:
                self._fill()

    def copy(self) -> "Encoded":
        """Return an independent copy, whose messages share the memory of the original."""
        copied = Encoded()
        copied.each, copied._pieces = list(self.each), list(self._pieces)
        copied._first, copied._size = self._first, self._size
        return copied

    def pieces(self) -> list[msgspec.Raw]:
        """Return the JSON of all messages in pieces. Joined with commas they are the text between the
        brackets of an array.
        """
        loose_messages = self.each[self._first :]
        return (
            [*self._pieces, msgspec.Raw(b",".join(loose_messages))] if loose_messages else list(self._pieces)
        )

    def _fill(self) -> None:
        texts = [memoryview(text) for text in self.each[self._first :]]
        piece = memoryview(b",".join(texts))
        at = 0
        for number, text in enumerate(texts, self._first):
            self.each[number] = msgspec.Raw(piece[at : at + len(text)])
            at += len(text) + 1
        self._pieces.append(msgspec.Raw(piece))
        self._first, self._size = len(self.each), 0


def _count_preamble(message: Message, counter: TokenCounter) -> PreambleTokens:
    """Tokens that a message's preamble adds to its content."""
    preamble, content = message.preamble, sent_content(message)
    assert preamble is not None  # noqa: S101 - only called for messages with one
    text = content if isinstance(content, str) else content[0]["text"]
    ends, end = [0], 0
    for part in (preamble.event, preamble.memory, preamble.changes):
        end += len(part) + len(GAP) if part else 0
        ends.append(min(end, len(text)))
    return PreambleTokens(*count_spans(counter, text, [*ends, len(text)])[:3])
