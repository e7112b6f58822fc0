"""The messages of one conversation since its last compaction, each counted and encoded once.

1. Messages are only ever appended; a compaction makes a new history, which takes over what is known of
   the messages that it keeps.
2. Counts are kept as running sums, for each counter that asked: the tokens of any run of messages are one
   subtraction. Only the counters that asked last are remembered.
3. Of a history that a ledger keeps, only the beginning and the end may be loaded. Indexes and sums are then
   those of what is loaded; no group and no turn goes on from one part to the other. An id of a call that
   occurs in the gap, too, is not known to have been used before.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec

from nexus_context.conversation.encoded import Encoded
from nexus_context.conversation.groups import Grouping
from nexus_context.conversation.message import Message, content_of
from nexus_context.errors import RequestError
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.tokens.estimates import is_image

COUNTERS = 4
"""Counters whose sums are kept: one for each tokenizer that the models in use have."""


class Gap(NamedTuple):
    """What of a history is not loaded: messages with their tokens, behind the first `lead` that are."""

    lead: int = 0
    messages: int = 0
    tokens: int = 0


NO_GAP = Gap()


class History:
    """Messages, oldest first, with their groups, turns, tokens and JSON. Not safe for several threads."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = []
        self.grouping = Grouping()
        self.tool_calls = 0
        self.images = 0  # messages with images, whose tokens are always an estimate
        self._encoded = Encoded()
        self._sums: dict[str, list[int]] = {}
        self.gap = NO_GAP
        self.extend(messages)

    def __len__(self) -> int:
        """The messages that are loaded."""
        return len(self.messages)

    @classmethod
    def restored(
        cls,
        messages: Sequence[Message],
        tokens: Sequence[int],
        counter: str,
        gap: Gap,
    ) -> "History":
        """A history as a ledger gives it back: `tokens` of each message by the counter of that name.

        ValueError where there are not as many tokens as messages, or fewer messages than before the gap.
        """
        if len(tokens) != len(messages) or gap.lead > len(messages):
            raise ValueError(f"{len(messages)} messages, {len(tokens)} counted, {gap.lead} before a gap")
        if gap.messages:
            made = cls(messages[: gap.lead])
            made.gap = gap
            made.grouping.skip()
            made.extend(messages[gap.lead :])
        else:
            made = cls(messages)
        made._sums[counter] = [0, *accumulate(tokens)]
        return made

    @property
    def least_start(self) -> int:
        """The first message behind the gap that has all that belongs to it; 0 where all is loaded."""
        if not self.gap.messages:
            return 0
        messages, least = self.messages, self.gap.lead
        while least < len(messages) and messages[least].role == "tool":  # its call is in the gap
            least += 1
        return least

    def needs_all(self) -> None:
        """Raises RequestError where messages are not loaded."""
        if self.gap.messages:
            raise RequestError(
                f"This needs the whole conversation, but {self.gap.messages:,} of its messages are not "
                "loaded. Load them first.",
                code="history-not-loaded",
            )

    def append(self, message: Message) -> None:
        self.messages.append(message)
        self.grouping.add(message)
        if message.tool_calls:
            self.tool_calls += len(message.tool_calls)
        content = message.content
        if isinstance(content, list) and any(isinstance(part, dict) and is_image(part) for part in content):
            self.images += 1

    def extend(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.append(message)

    def sums(self, counter: TokenCounter) -> Sequence[int]:
        """Running sums: `sums[b] - sums[a]` are the tokens of `messages[a:b]`.

        Only messages that this counter has not seen are counted: in a worker thread, if there are many.
        """
        sums = self._sums.get(counter.name)
        if sums is None:
            if len(self._sums) >= COUNTERS:
                del self._sums[next(iter(self._sums))]
            sums = self._sums[counter.name] = [0]
        if len(sums) <= len(self.messages):
            total = sums[-1]
            for message in self.messages[len(sums) - 1 :]:
                total += count_message(counter, content_of(message), message.tool_calls)
                sums.append(total)
        return sums

    def tokens(self, counter: TokenCounter) -> int:
        """Tokens of all messages, those in the gap as they were counted before."""
        return self.sums(counter)[-1] + self.gap.tokens

    @property
    def all_encoded(self) -> bool:
        """Whether `encoded` has nothing left to do."""
        return len(self._encoded.each) == len(self.messages) and not self.gap.messages

    def encoded(self) -> list[msgspec.Raw]:
        """The messages as JSON, oldest first. Each is encoded once: a long history is sent often.

        Raises RequestError where messages are not loaded.
        """
        self.needs_all()
        self._encode()
        return list(self._encoded.each)

    def encoded_in_pieces(self) -> list[msgspec.Raw]:
        """The same in fewer values, each the JSON of several messages with commas between: for an array."""
        self.needs_all()
        self._encode()
        return self._encoded.pieces()

    def encoded_slice(self, start: int, end: int) -> list[msgspec.Raw]:
        """The JSON of `messages[start:end]`."""
        self._encode()
        return self._encoded.each[start:end]

    def _encode(self) -> None:
        self._encoded.extend(self.messages[len(self._encoded.each) :])

    def take_over(self, other: "History", start: int) -> None:
        """Append `other.messages[start:]`; what is counted there is not counted again."""
        for name, sums in self._sums.items():
            theirs = other._sums.get(name, ())
            if len(sums) == len(self.messages) + 1 and len(theirs) > start:
                before = sums[-1] - theirs[start]
                sums += [before + each for each in theirs[start + 1 :]]
        self.extend(other.messages[start:])

    def remade(self, messages: Iterable[Message], counter: TokenCounter) -> "History":
        """A history of other messages; those that are the very ones of this one are not counted again."""
        sums = self.sums(counter)
        known = {
            id(message): after - before
            for message, (before, after) in zip(self.messages, pairwise(sums), strict=True)
        }
        made = History(messages)
        total = 0
        remade = made._sums[counter.name] = [0]
        for message in made.messages:
            tokens = known.get(id(message))
            if tokens is None:
                tokens = count_message(counter, content_of(message), message.tool_calls)
            total += tokens
            remade.append(total)
        return made
