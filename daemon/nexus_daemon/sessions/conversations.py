"""Keep the conversations of one folder that are in memory, by session name, for all windows of the folder.

The ledger has all conversations.

1. A conversation stays in memory until MOST_IN_MEMORY others have been used since. A conversation that the
   ledger does not have is dropped after use, unless its first turn is under way: a request was made for a
   message, or agents' messages were handed out with it.
2. Access is exclusive, in the order of the requests.
3. A conversation in memory equals the ledger's (`sync`). Only state that matters while the daemon runs is in
   memory alone: what was sent last, which warnings the user has had.
4. A turn under way belongs to the window that requested its context (`TurnUnderWay`). If two windows each
   make a request and then append, each append is stored with the facts of its own window's request.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from nexus_context.ledger.errors import key_reused
from nexus_context.turn.cache import AssemblyCache, Statistics
from nexus_daemon.process import lazy

if TYPE_CHECKING:  # the first diagnostics need not wait for it
    from nexus_context.conversation.message import Message
    from nexus_context.conversation.reported_usage import Estimate
    from nexus_context.conversation.sent_requests import SentRequests
    from nexus_context.folder.snapshot import Snapshot
    from nexus_context.ledger.records import Head, SessionOptions, TurnFacts
    from nexus_context.tokens.correction import UsageReport
    from nexus_context.turn.manager import ContextManager
    from nexus_context.turn.prefix import Prefix
    from nexus_context.turn.request import AssembledContext, Options

MOST_KEYS = 1_000
"""The most idempotency keys of a conversation that are kept in memory. The ledger has all."""
MOST_IN_MEMORY = 100


class Answer(msgspec.Struct, frozen=True):
    """The outcome of an append. `session` is a new session if the conversation was forked."""

    session: str
    turn: str
    forked: bool = False


class RequestFacts(NamedTuple):
    """The facts of a request that are stored with its turn, and the estimate of its tokens."""

    facts: "TurnFacts"
    estimate: "Estimate"


class SessionState(msgspec.Struct, frozen=True):
    """A session as the ledger had it when it was last read. Only `sync` makes a new one.

    `head` is how far the session was read; None means that the ledger has no such session. `compaction` is
    the one in force. `undone` says that the user undid a compaction and has not requested one since. `loaded`
    is the number of tokens of the history that were requested; None means all. `frozen` is the beginning of
    requests, `anchor` the newest report of a provider on a request, and `parameters` are those of the model.
    """

    head: "Head | None" = None
    compaction: str | None = None
    undone: bool = False
    loaded: int | None = None
    frozen: str | None = None
    anchor: "UsageReport | None" = None
    parameters: Mapping[str, Any] = {}


class TurnUnderWay:
    """The facts of a window's last requests, until the window appends their turns.

    `requests` are `ContextManager.requests` while the window uses the conversation. `facts` has, by request
    id, those of the requests that a model is to answer.
    """

    def __init__(self) -> None:
        self.requests: SentRequests = lazy.sent_requests.SentRequests()
        self.facts: dict[str, RequestFacts] = {}
        self.options: SessionOptions | None = None
        self.handed_out: dict[str, tuple[str, ...]] = {}  # ids of messages in each agent's last request
        self.handed_out_event = 0  # number of the newest event when it was made
        # the window's snapshot, and the same for the conversation's model; they stay for the next turn
        self.rendered: tuple[Snapshot, Snapshot] | None = None


class _Prepared:
    now = False


def is_prepared() -> bool:
    """Whether a conversation can be created without importing or compiling anything."""
    return _Prepared.now


def prepare() -> None:
    """Import and compile what a conversation needs. Call it in a thread, since it takes up to 50 ms."""
    lazy.manager.ContextManager()
    _Prepared.now = True


class Conversation:
    """One session in memory. `lock` keeps the order of the requests.

    `turn` is the turn under way of the client whose request has the lock. `users` counts the requests that
    have the lock or wait for it. `positions` are those of the messages that `manager` has loaded.
    """

    def __init__(self, session: str) -> None:
        self.session = session
        self.manager = lazy.manager.ContextManager()
        self.lock = asyncio.Lock()
        self.summarizing = (
            asyncio.Lock()
        )  # of the request that waits for a summary; never awaited with `lock`
        self.users = 0
        self.state = SessionState()
        self.positions: list[int] = []
        self.turn = TurnUnderWay()
        self.manager.requests = self.turn.requests
        self._client: object = None  # whose turn this is; None: of one that has left, or of nobody
        self._turns: WeakKeyDictionary[object, TurnUnderWay] = WeakKeyDictionary()
        self.opening: Message | None = None  # begins the messages of `manager`, but the ledger lacks it
        self.last_prefix: Prefix | None = None  # of the last request for a message or an event
        self.last_options: Options | None = None  # of the same request, without its turn tools
        self.last_turn_tools: Sequence[dict[str, Any]] = ()  # of the same request
        self.last_event = 0  # number of the newest event when the last turn was sent
        self.futile = False  # a compaction did not bring the last turn below the threshold
        self.warned: int | None = 0  # percent of the last warning; None: before the daemon started
        self.counted: dict[tuple[str, str, int], int] = {}  # tokens, by counter, turn and position
        self.assembled: AssemblyCache[AssembledContext] = AssemblyCache(time.monotonic)
        self._answers: OrderedDict[str, tuple[Answer, int]] = OrderedDict()

    @property
    def stored(self) -> "ContextManager":
        """Return the messages that the ledger has.

        The opening message is left out until the first turn is written.
        """
        if self.opening is None:
            return self.manager
        empty = lazy.manager.ContextManager()
        empty.correction = self.manager.correction
        return empty

    @property
    def last_turn(self) -> str | None:
        return None if self.state.head is None else self.state.head.turn

    @property
    def has_messages_out(self) -> bool:
        """Whether agents' messages were handed out with the turn under way of some window."""
        return any(turn.handed_out for turn in (self.turn, *self._turns.values()))

    def use_turn(self, client: object) -> None:
        """Set `turn` to the turn under way of `client`, whose request has the lock from now on."""
        if client is not self._client:
            self._client = client
            self.turn = self._turns.setdefault(client, TurnUnderWay())
            self.manager.requests = self.turn.requests

    def note_facts(self, request_id: str, facts: "RequestFacts") -> None:
        """Keep the facts of a request until it can no longer be answered."""
        turn = self.turn
        turn.facts = {
            name: request_facts for name, request_facts in turn.facts.items() if name in turn.requests
        }
        turn.facts[request_id] = facts

    def drop_turn(self, client: object) -> None:
        """Forget the turn under way of a client that has left.

        If a request of it has the lock, that request keeps it.
        """
        self._turns.pop(client, None)
        if client is self._client:
            self._client = None

    def drop_proposals(self) -> None:
        """Forget the proposals of turns under way, since the beginning of requests has changed."""
        for turn in (self.turn, *self._turns.values()):
            turn.requests.drop_proposals()

    @asynccontextmanager
    async def unlocked(self) -> AsyncIterator[None]:
        """Release the lock, which the caller holds, until the end of the block.

        The lock is then held again.
        """
        client = self._client
        self.lock.release()
        try:
            yield
        finally:
            locking = asyncio.ensure_future(self.lock.acquire())
            cancelled: asyncio.CancelledError | None = None
            while not locking.done():
                try:
                    await asyncio.wait([locking])
                except asyncio.CancelledError as error:  # the caller releases the lock: it has to have it
                    cancelled = error
            self.use_turn(client)
            if cancelled is not None:
                raise cancelled

    def answer_for(self, key: str | None, messages: int) -> Answer | None:
        """Return the outcome of an earlier append with this key, if it is still in memory, else None.

        LedgerError with the code `key-reused` if that append had another number of messages.
        """
        if key is None or key not in self._answers:
            return None
        answer, count = self._answers[key]
        if count != messages:
            raise key_reused(key, count, messages)
        return answer

    def add_answer(self, key: str | None, answer: Answer, messages: int) -> None:
        if key is not None:
            self._answers[key] = answer, messages
            if len(self._answers) > MOST_KEYS:
                self._answers.popitem(last=False)

    def changed(self) -> None:
        """Forget warnings and assembled contexts, since the next request does not continue the last one."""
        self.warned = 0
        self.assembled.invalidate()

    def forget(self) -> None:
        """Reset to an empty conversation."""
        self.manager.clear_messages()
        self.state = SessionState()
        self.opening = self.last_prefix = self.last_options = None
        self.last_turn_tools = ()
        self.positions = []
        self.turn = TurnUnderWay()
        self.manager.requests = self.turn.requests
        self._turns.clear()
        if self._client is not None:
            self._turns[self._client] = self.turn
        self.futile = False
        self.changed()
        self._answers.clear()


class Conversations:
    """The conversations of one folder that are in memory, for all windows of the folder."""

    def __init__(self) -> None:
        self._by_name: OrderedDict[str, Conversation] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[str]:
        """The names of their sessions, the least recently used first."""
        return iter(self._by_name)

    def statistics(self) -> Statistics:
        """Sum up the hits and misses of the caches of all conversations."""
        return sum(
            (conversation.assembled.statistics() for conversation in self._by_name.values()), Statistics()
        )

    def peek(self, session: str) -> Conversation:
        """Return the conversation in memory, or an empty one, without locking it."""
        conversation = self._by_name.get(session)
        return Conversation(session) if conversation is None else conversation

    def drop_turns(self, client: object) -> None:
        """Forget the turns under way of a client that has left."""
        for conversation in self._by_name.values():
            conversation.drop_turn(client)

    @asynccontextmanager
    async def using(self, session: str, *, by: object) -> AsyncIterator[Conversation]:
        """Lock the conversation of a session for the client `by`.

        Afterwards it stays in memory if it holds anything.
        """
        conversation = self._by_name.get(session)
        if conversation is None:
            conversation = self._by_name[session] = Conversation(session)
        self._by_name.move_to_end(session)
        conversation.users += 1
        try:
            async with conversation.lock:
                conversation.use_turn(by)
                yield conversation
        finally:
            conversation.users -= 1
            holds_something = (
                conversation.state.head or conversation.has_messages_out or conversation.last_prefix
            )
            is_over = not (conversation.users or holds_something)
            if is_over and self._by_name.get(session) is conversation:
                del self._by_name[session]
            self._make_room()

    def _make_room(self) -> None:
        idle = [name for name, conversation in self._by_name.items() if not conversation.users]
        for name in idle[: max(len(self._by_name) - MOST_IN_MEMORY, 0)]:
            del self._by_name[name]
