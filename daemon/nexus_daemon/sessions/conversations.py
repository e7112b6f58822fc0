"""The conversations of one folder that are in memory, by session name. The ledger has them all.

1. A conversation is here while it is used, and afterwards until it is the one that was not used for longest
   and there are too many. One that the ledger does not have is let go at once, unless its first turn is under
   way: a request was made for a message, or messages of agents were given out with it.
2. Who uses a conversation has it for himself, and gets it in the order in which he asked.
3. It holds what the ledger holds (`following`). What only matters while the daemon lives is here alone: what
   was sent last, what the user was warned of.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.cache import AssemblyCache, Statistics
from nexus_daemon import protocol
from nexus_daemon.lsp import lsp_types

if TYPE_CHECKING:  # the first diagnostics need not wait for it
    from nexus_context.assembly import AssembledContext, Options
    from nexus_context.ledger.records import Head, SessionOptions
    from nexus_context.prefix import Prefix
    from nexus_context.snapshot import Snapshot

REMEMBERED_KEYS = 1_000
MOST_IN_MEMORY = 100
WARNED_AT = (75, 90, 95)
"""Percent of the available tokens at which the user is told, once until it is compacted or cleared."""


class Answer(msgspec.Struct, frozen=True):
    """What an append came to: `session` is another one where it was forked."""

    session: str
    turn: str
    forked: bool = False


class Conversation:
    """One session. `lock` keeps what is done with it in the order in which it was asked for.

    `users` counts who has it or waits for it. `positions` are those of the messages that `manager` has
    loaded; `head` is how far it has read, None where the ledger has no such session.
    """

    def __init__(self, session: str) -> None:
        from nexus_context.manager import ContextManager  # the first diagnostics need not wait for it

        self.session = session
        self.manager = ContextManager()
        self.lock = asyncio.Lock()
        self.summarizing = asyncio.Lock()  # of who asks for a summary; not waited for with `lock` in hand
        self.users = 0
        self.head: Head | None = None
        self.positions: list[int] = []
        self.compaction: str | None = None  # the one in force
        self.loaded: int | None = None  # tokens that were asked for when it was read; None: all
        self.record: dict[str, Any] | None = None  # what the last request was made of, for its turn
        self.last_prefix: Prefix | None = None  # of the last request that was made for a message
        self.last_options: Options | None = None  # of the same
        self.options: SessionOptions | None = None  # that the turn under way was made with
        self.rendered: tuple[Snapshot, Snapshot] | None = None  # the folder's, and the same for our model
        self.given_out: dict[str, tuple[str, ...]] = {}  # ids of messages, with each agent's last request
        self.futile = False  # a compaction did not bring the last turn below the threshold
        self.kept_whole = False  # the user took a compaction back, and has not asked for one since
        self.warned: int | None = 0  # percent at which the user was last warned; None: in another life
        self.counted: dict[tuple[str, str, int], int] = {}  # tokens, by counter, turn and position
        self.assembled: AssemblyCache[AssembledContext] = AssemblyCache(time.monotonic)
        self._answered: OrderedDict[str, tuple[Answer, int]] = OrderedDict()

    @property
    def last_turn(self) -> str | None:
        return None if self.head is None else self.head.turn

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Let others have the conversation, which the caller has locked, until the end of the block."""
        self.lock.release()
        try:
            yield
        finally:
            back = asyncio.ensure_future(self.lock.acquire())
            cancelled: asyncio.CancelledError | None = None
            while not back.done():
                try:
                    await asyncio.wait([back])
                except asyncio.CancelledError as error:  # who locked it will unlock it
                    cancelled = error
            if cancelled is not None:
                raise cancelled

    def answer_to(self, key: str | None, messages: int) -> Answer | None:
        """What the append of that key came to, as far as it is remembered here.

        LedgerError, code `key-reused`, where that had another number of messages.
        """
        if key is None or (known := self._answered.get(key)) is None:
            return None
        answer, count = known
        if count != messages:
            from nexus_context.ledger.errors import key_reused

            raise key_reused(key, count, messages)
        return answer

    def remember(self, key: str | None, answer: Answer, messages: int) -> None:
        if key is not None:
            self._answered[key] = answer, messages
            if len(self._answered) > REMEMBERED_KEYS:
                self._answered.popitem(last=False)

    def warning(
        self, folder: str, spent: protocol.TokenUsage, wanted: float
    ) -> lsp_types.ShowMessageParams | None:
        """What to tell the user at `wanted` percent of the budget: once for each threshold."""
        reached = threshold_at(wanted)
        if reached <= (self.warned or 0):
            return None
        self.warned = reached
        said = (
            f"Nexus: the conversation {self.session!r} of {folder} fills {wanted:g} % of what "
            f"{spent.model or 'the model'} takes ({spent.available:,} tokens)."
        )
        what = (
            "The oldest turns are not sent any more."
            if wanted > 100
            else "Past 100 % the oldest turns are not sent."
        )
        return lsp_types.ShowMessageParams(
            type=3 if reached == WARNED_AT[0] else 2,
            message=f"{said} {what} nexus.session.compact makes room.",
        )

    def changed(self) -> None:
        """What was sent before is another conversation now."""
        self.warned = 0
        self.assembled.invalidate()

    def forget(self) -> None:
        """It is another conversation, or none, from now on: nothing of this one is left."""
        self.manager.clear_messages()
        self.head = self.compaction = self.loaded = self.record = None
        self.last_prefix = self.last_options = None
        self.positions = []
        self.given_out = {}
        self.options = None
        self.futile = self.kept_whole = False
        self.changed()
        self._answered.clear()


class Conversations:
    """The conversations of one folder that are in memory."""

    def __init__(self) -> None:
        self._by_name: OrderedDict[str, Conversation] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_name)

    def statistics(self) -> Statistics:
        """What the caches of all sessions were good for."""
        return sum((one.assembled.statistics() for one in self._by_name.values()), Statistics())

    def peek(self, session: str) -> Conversation:
        """The conversation as it is in memory; an empty one where it is not."""
        known = self._by_name.get(session)
        return Conversation(session) if known is None else known

    @asynccontextmanager
    async def using(self, session: str) -> AsyncIterator[Conversation]:
        """The conversation of a session, locked; it is kept in memory if there is something to keep."""
        conversation = self._by_name.setdefault(session, self.peek(session))
        self._by_name.move_to_end(session)
        conversation.users += 1
        try:
            async with conversation.lock:
                yield conversation
        finally:
            conversation.users -= 1
            known = conversation.head or conversation.given_out or conversation.last_prefix
            over = not (conversation.users or known)
            if over and self._by_name.get(session) is conversation:
                del self._by_name[session]
            self._make_room()

    def _make_room(self) -> None:
        idle = [name for name, one in self._by_name.items() if not one.users]
        for name in idle[: max(len(self._by_name) - MOST_IN_MEMORY, 0)]:
            del self._by_name[name]


def threshold_at(percent: float) -> int:
    """The highest of the thresholds that is reached; 0 below the first."""
    return max((threshold for threshold in WARNED_AT if percent >= threshold), default=0)
