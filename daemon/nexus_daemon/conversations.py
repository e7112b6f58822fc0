"""The conversations of one folder, by session name. In memory only; the ledger will keep them.

1. A session is there from its first message until it is cleared: one that holds no message is not kept.
2. Whoever changes a session has it for himself, and gets it in the order in which he asked.
3. A cleared session is a new one: the idempotency keys of its appends are forgotten with its messages.
"""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime

from nexus_context.conversation.message import Message
from nexus_context.errors import RequestError
from nexus_context.manager import ContextManager

REMEMBERED_KEYS = 1_000
MOST_SESSIONS = 1_000


class Conversation:
    """One session. `lock` keeps its changes in the order in which they were asked for.

    `users` counts who has it for changing or waits for that.
    """

    def __init__(self) -> None:
        self.manager = ContextManager()
        self.lock = asyncio.Lock()
        self.users = 0
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
        self._answered.clear()


class Conversations:
    """The sessions of one folder."""

    def __init__(self) -> None:
        self._by_name: dict[str, Conversation] = {}

    def __len__(self) -> int:
        return len(self.names())

    def names(self) -> list[str]:
        return sorted(name for name, one in self._by_name.items() if len(one.manager))

    def peek(self, session: str) -> Conversation:
        """The session for reading; an empty one when it does not exist."""
        known = self._by_name.get(session)
        return Conversation() if known is None else known

    @asynccontextmanager
    async def changing(self, session: str, *, begin: bool = True) -> AsyncIterator[Conversation]:
        """The session for changing, locked; afterwards it is kept if it holds a message.

        One that does not exist is begun, or stands in for the session without being kept.

        Raises
        ------
        RequestError
            When it would be one session too many.

        """
        conversation = self.peek(session)
        if begin and session not in self._by_name:
            if len(self._by_name) >= MOST_SESSIONS:
                raise RequestError(
                    f"The folder has {MOST_SESSIONS} conversations, the most there may be; {session!r} was "
                    "not begun. Clear one that is over (nexus/session/clear).",
                    code="too-many-sessions",
                )
            self._by_name[session] = conversation
        conversation.users += 1
        try:
            async with conversation.lock:
                yield conversation
        finally:
            conversation.users -= 1
            over = not conversation.users and not len(conversation.manager)
            if over and self._by_name.get(session) is conversation:
                del self._by_name[session]
