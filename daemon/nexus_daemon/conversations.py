"""The conversations of one folder, by session name. In memory only; the ledger will keep them.

1. A session is there from its first message until it is cleared: one that holds no message is not kept.
2. Whoever changes a session has it for himself, and gets it in the order in which he asked.
3. A cleared session is a new one: the idempotency keys of its appends are forgotten with its messages.
"""

import asyncio
import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from nexus_context.cache import AssemblyCache, Statistics
from nexus_context.conversation.message import Message
from nexus_context.errors import RequestError
from nexus_daemon import messages, protocol

if TYPE_CHECKING:
    from nexus_context.assembly import AssembledContext
    from nexus_context.manager import ContextManager
    from nexus_context.prefix import Prefix

REMEMBERED_KEYS = 1_000
MOST_SESSIONS = 1_000
WARNED_AT = (75, 90, 95)
"""Percent of the available tokens at which the user is told, once until it is compacted or cleared."""


class Conversation:
    """One session. `lock` keeps its changes in the order in which they were asked for.

    `users` counts who has it for changing or waits for that.
    """

    def __init__(self) -> None:
        self.manager = _manager()
        self.lock = asyncio.Lock()
        self.users = 0
        self.last_turn: str | None = None
        self.last_prefix: Prefix | None = None  # of the last request that was made for a message
        self.futile = False  # a compaction did not bring the last turn below the threshold
        self.kept_whole = False  # the user took a compaction back, and has not asked for one since
        self.warned = 0  # percent of the budget at which the user was last warned
        self.assembled: AssemblyCache[AssembledContext] = AssemblyCache(time.monotonic)
        self._answered: OrderedDict[str, str] = OrderedDict()

    def append(self, messages: Iterable[Message], key: str | None) -> str:
        """Add messages as one turn and return the turn's id; a repeated key adds nothing."""
        if key is not None and key in self._answered:
            return self._answered[key]
        if not len(self.manager):
            self.manager = _manager(started=datetime.now().astimezone())
        self.manager.add(messages)
        self.assembled.invalidate()
        turn = self.last_turn = uuid.uuid4().hex
        if key is not None:
            self._answered[key] = turn
            if len(self._answered) > REMEMBERED_KEYS:
                self._answered.popitem(last=False)
        return turn

    def warning(
        self, session: str, folder: str, spent: protocol.TokenUsage, wanted: float
    ) -> messages.ShowMessageParams | None:
        """What to tell the user at `wanted` percent of the budget: once for each threshold."""
        reached = max((percent for percent in WARNED_AT if wanted >= percent), default=0)
        if reached <= self.warned:
            return None
        self.warned = reached
        said = (
            f"Nexus: the conversation {session!r} of {folder} fills {wanted:g} % of what "
            f"{spent.model or 'the model'} takes ({spent.available:,} tokens)."
        )
        what = (
            "The oldest turns are not sent any more."
            if wanted > 100
            else "Past 100 % the oldest turns are not sent."
        )
        return messages.ShowMessageParams(
            type=3 if reached == WARNED_AT[0] else 2,
            message=f"{said} {what} nexus.session.compact makes room.",
        )

    def undo(self, compaction: str | None) -> None:
        """Take back a compaction: by id, or the last. RequestError where there is none."""
        self.manager.undo_compaction(compaction)
        self.kept_whole = True
        self.changed()

    def changed(self) -> None:
        """What was sent before is another conversation now."""
        self.warned = 0
        self.assembled.invalidate()

    def clear(self) -> None:
        self.manager = _manager()
        self.last_turn = self.last_prefix = None
        self.futile = self.kept_whole = False
        self.changed()
        self._answered.clear()


class Conversations:
    """The sessions of one folder."""

    def __init__(self) -> None:
        self._by_name: dict[str, Conversation] = {}

    def __len__(self) -> int:
        return len(self.names())

    def names(self) -> list[str]:
        return sorted(name for name, one in self._by_name.items() if len(one.manager))

    def statistics(self) -> Statistics:
        """What the caches of all sessions were good for."""
        return sum((one.assembled.statistics() for one in self._by_name.values()), Statistics())

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


def _manager(*, started: datetime | None = None) -> "ContextManager":
    from nexus_context.manager import ContextManager  # the first diagnostics need not wait for it

    return ContextManager(started=started)
