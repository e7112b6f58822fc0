"""The conversations of one folder, by session name. In memory only; the ledger will keep them."""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime

from nexus_context.conversation.message import Message
from nexus_context.manager import ContextManager

REMEMBERED_KEYS = 1_000


class Conversation:
    """One session. `lock` keeps its changes in the order in which they were asked for.

    A session begins with its first message: before that, and after `clear`, it holds none.
    """

    def __init__(self) -> None:
        self.manager = ContextManager()
        self.lock = asyncio.Lock()
        self._answered: OrderedDict[str, str] = OrderedDict()

    def append(self, messages: Iterable[Message], key: str | None) -> str:
        """Add messages as one turn and return the turn's id; a repeated key adds nothing."""
        if key is not None and key in self._answered:
            return self._answered[key]
        if not len(self.manager):
            self.manager = ContextManager(started=datetime.now().astimezone())
        self.manager.add(messages)
        turn = uuid.uuid4().hex
        if key is not None:
            self._answered[key] = turn
            if len(self._answered) > REMEMBERED_KEYS:
                self._answered.popitem(last=False)
        return turn

    def clear(self) -> None:
        self.manager = ContextManager()


class Conversations:
    """The sessions of one folder; one that nobody wrote to is not kept."""

    def __init__(self) -> None:
        self._by_name: dict[str, Conversation] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def names(self) -> list[str]:
        return sorted(self._by_name)

    def peek(self, session: str) -> Conversation:
        """The session for reading; an empty one when it does not exist."""
        return self._by_name.get(session) or Conversation()

    def open(self, session: str) -> Conversation:
        """The session for writing, begun if need be."""
        return self._by_name.setdefault(session, Conversation())
