"""Represents the messages of a conversation at one moment, and the steps from one moment to the next.

1. A step returns the next state. A state never changes, but its history grows when messages are appended.
   `length` is the length that the history had in this state.
2. If a ledger has the conversation, these steps are taken only with what the ledger has stored. Messages are
   appended after they were written, and after any other step the history is read from the ledger and
   restored.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message, without_old_preambles
from nexus_context.tokens import TokenCounter


class AppliedCompaction(NamedTuple):
    """A compaction that can be undone. `history` is the history before it, and `length` the length of the
    history right after it.
    """

    id: str
    history: History
    length: int


class ConversationState(msgspec.Struct, frozen=True):
    """All messages since the last compaction, and the compactions that can be undone, oldest first.

    `replaced` is how often a step replaced the history by another.
    """

    history: History
    length: int = 0
    compactions: tuple[AppliedCompaction, ...] = ()
    replaced: int = 0

    def append(self, messages: Iterable[Message]) -> "ConversationState":
        """Return the state with these messages added."""
        self.history.extend(messages)
        return replace(self, length=len(self.history))

    def append_counted(self, messages: History) -> "ConversationState":
        """Return the state with these messages added, including their token counts."""
        self.history.take_over(messages, 0)
        return replace(self, length=len(self.history))

    def compact(self, name: str, messages: Iterable[Message], counter: TokenCounter) -> "ConversationState":
        """Return the state in which a summary and the messages that a compaction keeps replace all
        messages.
        """
        history = self.history.remade(without_old_preambles(messages), counter)
        applied = AppliedCompaction(name, self.history, len(history))
        return replace(self._with(history), compactions=(*self.compactions, applied))

    def undo(self, name: str | None) -> "ConversationState":
        """Return the state before the last compaction, or before the compaction with this name and all later
        ones. Messages that were added since stay.
        """
        compactions, history = [*self.compactions], self.history
        while compactions:
            compaction = compactions.pop()
            compaction.history.take_over(history, compaction.length)
            history = compaction.history
            if name in (None, compaction.id):
                break
        return replace(self._with(history), compactions=tuple(compactions))

    def cut(self, order: Sequence[int], counter: TokenCounter) -> "ConversationState":
        """Return the state with only the messages with these indexes, in this order."""
        positions = {index: position for position, index in enumerate(order)}
        history = self.history.remade([self.history.messages[index] for index in order], counter)
        compactions = tuple(
            compaction._replace(
                length=1 + max((positions.get(at, -1) for at in range(compaction.length)), default=-1)
            )
            for compaction in self.compactions
        )
        return replace(self._with(history), compactions=compactions)

    def restore(self, history: History) -> "ConversationState":
        """Return the state in which another history replaces all messages. After that, no compaction can be
        undone.
        """
        return replace(self._with(history), compactions=())

    def _with(self, history: History) -> "ConversationState":
        return replace(self, history=history, length=len(history), replaced=self.replaced + 1)
