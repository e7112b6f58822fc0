"""Represents the messages of a conversation that are sent, and what became of the others."""

from collections.abc import Mapping, Sequence

import msgspec

from nexus_context.conversation.history import History, PreambleTokens
from nexus_context.conversation.message import Message, changes_apart, sent_content
from nexus_context.conversation.repair import Repair, Traced, traced
from nexus_context.conversation.summary import server_compaction
from nexus_context.conversation.truncation import Strategy
from nexus_context.errors import ContextOverflowError
from nexus_context.tokens import TokenCounter, count_message

_TOO_LARGE = (
    "{count} of the oldest images and files are not sent: with them the request would have more bytes than "
    "the provider takes."
)
_USED_TWICE = "The id of a tool call was used before; it is sent with a new id."


class View(msgspec.Struct, frozen=True):
    """The messages that are sent, and what became of the others. Sizes are in tokens.

    First come the leading system messages of the history, since they follow the system prompt. Then come the
    first `head` messages of the history, the `note`, the `anchor`, and `history[start:]`.

    `replaced` maps the index of a message to the message that is sent in its place: a shortened one if it is
    too long, or one without its preamble if it stands before the last turn. `shortened` are the indexes of
    shortened messages, ascending. `added` maps the index of a message to the tokens that the format of a body
    adds to it (`body_shape`); the number is negative if the format leaves something out.
    """

    strategy: Strategy
    history: History
    head: int
    pinned: int  # tokens of the first `head` messages
    uncut_tokens: int  # tokens of this request without a new cut
    note: Message | None
    note_tokens: int
    anchor: int | None
    start: int
    replaced: Mapping[int, Message]
    tokens: int
    repair_tokens: int  # tokens that repairs add, minus those that they leave out
    original_tokens: int
    room: int
    end: int
    shortened: tuple[int, ...] = ()
    added: Mapping[int, int] = {}
    excess_bytes: int = 0  # above what the provider takes
    unsent_media: int = 0  # images and files that are not sent, for their bytes
    moved: bool = False  # something that was sent before this request is not sent again, or shortened

    @property
    def over(self) -> bool:
        """Whether even these messages do not fit."""
        return self.tokens > self.room

    @property
    def removed(self) -> int:
        """The number of messages that are not sent, including those that are not loaded."""
        cut = self.start - self.head - (self.anchor is not None)
        return cut + self.history.gap.messages

    @property
    def truncated(self) -> bool:
        return self.removed > 0 or bool(self.replaced.keys() - self.history.notes)

    def sent_indexes(self) -> list[int]:
        """Return the indexes of the messages that are sent, ascending. The note has no index."""
        anchor = () if self.anchor is None else (self.anchor,)
        return [*range(self.head), *anchor, *range(self.start, self.end)]

    def _front(self, messages: list[Message]) -> list[Message]:
        """The messages before `history[start:]`."""
        replaced = self.replaced
        front = [replaced.get(index, messages[index]) for index in range(self.head)]
        if self.note is not None:
            front.append(self.note)
        if self.anchor is not None:
            front.append(replaced.get(self.anchor, messages[self.anchor]))
        return front

    def messages(self) -> list[Message]:
        """Return the messages that are sent, oldest first, each in the form in which it is sent."""
        messages = self.history.sent
        if not self.start and not self.replaced:
            return self.history.in_order(messages[: self.end])
        sent_messages = messages[self.start : self.end]
        for index, message in self.replaced.items():
            if index >= self.start:
                sent_messages[index - self.start] = message
        sent_messages[:0] = self._front(messages)
        return self.history.in_order(sent_messages)

    def left_out(self) -> list[Repair]:
        """Return repairs that say what is not sent: messages of a cut that are system messages, results of
        tools or not loaded; and images and files.
        """
        history = self.history
        systems, results = history.systems_and_results(min(self.head, self.start), self.start)
        media = []
        if self.unsent_media:
            media = [Repair("media-left-out", _TOO_LARGE.format(count=self.unsent_media))]
        if self.removed <= 0 or not (systems or results or history.gap.messages):
            return media
        kinds = [
            f"{count:,} {singular if count == 1 else plural}"
            for count, singular, plural in (
                (systems, "system message", "system messages"),
                (results, "result of a tool", "results of tools"),
                (history.gap.messages, "that is not loaded", "that are not loaded"),
            )
            if count
        ]
        text = f"The cut leaves out {self.removed:,} messages, among them {' and '.join(kinds)}."
        return [Repair("cut", text), *media]

    def sound_messages(self) -> Traced:
        """Repair the messages so that providers accept them. This is cheap if there is nothing to repair.

        Indexes are those of `messages()`.
        """
        sent_messages = self.messages()
        renames = self.history.grouping.renamed
        repairs = []
        for position, index in enumerate(self.indexes() if renames else ()):
            renamed = None if index is None else renames.get(index)
            if renamed is not None:
                sent_messages[position] = _named(sent_messages[position], renamed)
                repairs.append(Repair("id-used-twice", _USED_TWICE, position))
        if self.history.grouping.is_sound(self.head, self.anchor, self.start, self.end):
            return Traced(sent_messages, repairs, range(len(sent_messages)))
        repaired = traced(sent_messages)
        return Traced(repaired.messages, [*repairs, *repaired.repairs], repaired.origins)

    def sizes(self, counter: TokenCounter) -> list[int]:
        """Return the tokens of each message that is sent. They sum to `tokens`, apart from repairs."""
        sums = self.history.sums(counter)
        sizes = []
        for index in self.indexes():
            if index is None:
                sizes.append(self.note_tokens)
            elif index in self.replaced:
                message = self.replaced[index]
                sizes.append(count_message(counter, sent_content(message), message.tool_calls, message.role))
            else:
                sizes.append(sums[index + 1] - sums[index] + self.added.get(index, 0))
        return sizes

    def has_item(self, item: str) -> bool:
        """Whether one of the sent messages contains the memory item with this hash."""
        index = self.history.items.get(item)
        if index is None or index in self.replaced or index >= self.end:
            return False
        return index >= self.start or index < self.head or index == self.anchor

    def preamble_tokens(self, counter: TokenCounter) -> PreambleTokens:
        """Return the tokens of the event text, memory text and notes with which earlier messages are sent."""
        count = self.history.preamble_tokens
        ranges = [(self.start, self.end)]
        if self.start:
            ranges.append((0, self.head))
        if self.anchor is not None:
            ranges.append((self.anchor, self.anchor + 1))
        notes = (self.added.get(index, 0) for index in self.history.notes) if self.added else ()
        total = PreambleTokens(changes=sum(notes))
        for start, end in ranges:
            total = total.plus(count(counter, start, end))
        return total.plus(self._replaced_preambles(counter, ranges), -1) if self.replaced else total

    def _replaced_preambles(self, counter: TokenCounter, ranges: Sequence[tuple[int, int]]) -> PreambleTokens:
        """Tokens of preambles in these ranges that are not sent any more; counted once for each cut."""
        key = (counter.name, self.start, self.head, self.anchor)
        cached = self.history.replaced_preambles
        if cached is not None and cached[0] is self.replaced and cached[1] == key:
            return cached[2]
        total = PreambleTokens()
        for index in self.replaced:
            if any(start <= index < end for start, end in ranges):
                total = total.plus(self.history.preamble_tokens(counter, index, index + 1))
        self.history.replaced_preambles = (self.replaced, key, total)
        return total

    def notes_apart(self) -> dict[int, tuple[Message, Message]]:
        """Split the messages that carry a note on prompt and tools: index among `messages()` → the note, and
        the rest of the message.
        """
        notes = [index for index in self.history.notes if index not in self.replaced]
        if not notes:
            return {}
        positions = {index: position for position, index in enumerate(self.indexes())}
        apart = {positions[at]: changes_apart(self.history.messages[at]) for at in notes if at in positions}
        return {position: messages for position, messages in apart.items() if messages is not None}

    def indexes(self) -> Sequence[int | None]:
        """Return the index of each message that is sent, in the order of sending. It is None for the note."""
        note = () if self.note is None else (None,)
        anchor = () if self.anchor is None else (self.anchor,)
        return self.history.in_order([*range(self.head), *note, *anchor, *range(self.start, self.end)])

    def encoded(self) -> list[msgspec.Raw]:
        """Return the messages that are sent as JSON. Only those before `start`, and replaced ones, are
        encoded again.
        """
        if not self.start and not self.replaced:
            self.history.needs_all()
            return self.history.in_order(self.history.encoded_sent(0, self.end))
        encoded_messages = [
            msgspec.Raw(msgspec.json.encode(message)) for message in self._front(self.history.sent)
        ]
        front = len(encoded_messages)
        encoded_messages += self.history.encoded_sent(self.start, self.end)
        for index, message in self.replaced.items():
            if index >= self.start:
                encoded_messages[front + index - self.start] = msgspec.Raw(msgspec.json.encode(message))
        return self.history.in_order(encoded_messages)


def _named(message: Message, renamed: Message) -> Message:
    """The message, shortened or not, with the ids of `renamed`."""
    return msgspec.structs.replace(message, tool_calls=renamed.tool_calls, tool_call_id=renamed.tool_call_id)


def overflow(view: View, available: int, *, is_assumed: bool = False) -> ContextOverflowError:
    """Make the error for a view that does not fit. `is_assumed` is true if no configuration set the limit."""
    messages = view.messages()
    count, advice = len(messages), "Shorten the message, the system prompt or the tools"
    size = f"{view.tokens:,} tokens" + (" even when shortened" if view.shortened else "")
    cause = f"what cannot be left out of the conversation takes {size}"
    if not count:
        cause = "the conversation is empty"
    elif count == 1:
        cause = f"the newest message takes {size}"
    elif server_compaction(view.history.messages[0]) is not None:
        cause = (
            f"the compaction by the provider takes {view.pinned:,} of the {view.tokens:,} tokens that stay"
        )
        advice = f"{advice}, undo the compaction"
    elif view.anchor is None:
        cause = f"the newest {count} messages, which belong together, take {size}"
    remainder = f"{view.room:,} of {available:,} are left for the conversation"
    if view.room <= 0:
        remainder = (
            f"system prompt, tools and current message take {available - view.room:,} of {available:,}"
        )
    if view.excess_bytes and view.tokens <= view.room:
        cause = f"it has {view.excess_bytes:,} bytes more than the provider takes"
        remainder = "nothing but the current message and text is left"
    if not available:
        remainder = "what is reserved for the answer takes the whole window (context.reserve_tokens)"
    choice = "choose a model with a larger window"
    if is_assumed:
        choice = "give the manager its model, or ContextConfig its max_tokens: without them it keeps 8,000"
    return ContextOverflowError(f"The context does not fit: {cause}, and {remainder}. {advice}, or {choice}.")
