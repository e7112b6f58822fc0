"""The messages of a conversation at one moment, and the steps from one moment to the next.

1. A step returns the next state. A state is never changed, but for its history, which grows by what is
   appended: whoever keeps an earlier state has its `length`.
2. A conversation that a ledger has takes these steps only with what the ledger has stored: it appends what
   was written, and restores what was read after any other step.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message, without_old_preambles
from nexus_context.tokens import TokenCounter


class AppliedCompaction(NamedTuple):
    """A compaction that can be undone: the `history` before it, and the length of that after it."""

    id: str
    history: History
    length: int


class ConversationState(msgspec.Struct, frozen=True):
    """All messages since the last compaction, and the compactions that can be undone, oldest first.

    `replaced` counts the steps by which other messages took the place of the history.
    """

    history: History
    length: int = 0
    compactions: tuple[AppliedCompaction, ...] = ()
    replaced: int = 0

    def append(self, messages: Iterable[Message]) -> "ConversationState":
        """Add messages."""
        self.history.extend(messages)
        return replace(self, length=len(self.history))

    def append_counted(self, messages: History) -> "ConversationState":
        """Add messages whose tokens are known."""
        self.history.take_over(messages, 0)
        return replace(self, length=len(self.history))

    def compact(self, name: str, messages: Iterable[Message], counter: TokenCounter) -> "ConversationState":
        """Put a summary and what a compaction keeps in the place of all messages."""
        history = self.history.remade(without_old_preambles(messages), counter)
        applied = AppliedCompaction(name, self.history, len(history))
        return replace(self._with(history), compactions=(*self.compactions, applied))

    def undo(self, name: str | None) -> "ConversationState":
        """Take back the last compaction, or the one of that name with all later ones; later messages stay."""
        compactions, history = [*self.compactions], self.history
        while compactions:
            compaction = compactions.pop()
            compaction.history.take_over(history, compaction.length)
            history = compaction.history
            if name in (None, compaction.id):
                break
        return replace(self._with(history), compactions=tuple(compactions))

    def cut(self, order: Sequence[int], counter: TokenCounter) -> "ConversationState":
        """Keep the messages of these indexes, in this order."""
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
        """Put another history in the place of all messages; no compaction can be undone then."""
        return replace(self._with(history), compactions=())

    def _with(self, history: History) -> "ConversationState":
        return replace(self, history=history, length=len(history), replaced=self.replaced + 1)
