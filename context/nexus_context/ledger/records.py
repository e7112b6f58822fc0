"""What a ledger stores and returns: sessions, turns, messages, compactions, direct messages, agents.

A *session* has a name in a workspace and a current *thread*. A thread is a sequence of *turns*; a forked one
continues after turns that it shares with another. Turns and messages of a thread, shared ones included, are
numbered without gaps: the `seq` of a turn from 1, the `position` of a message from 0. These numbers define
the order, never a clock.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from nexus_context.config.picked_model import ModelChoice
from nexus_context.conversation.agent_result import TurnOutcome
from nexus_context.conversation.message import Message
from nexus_context.tokens.correction import UsageReport

TurnType = Literal["query", "compaction", "undo"]
"""A query has the messages of one exchange, a compaction one summary, an undo none."""

Ranges = tuple[tuple[int, int], ...]
"""Positions, as half-open ranges in ascending order."""


class Head(msgspec.Struct, frozen=True):
    """The end of a thread. `messages` is also the position of the next one."""

    thread: str
    turn: str | None = None  # the last one; None if there is none
    seq: int = 0
    messages: int = 0
    tokens: int = 0  # of all messages, by the counters that counted them


class SessionOrigin(msgspec.Struct, frozen=True):
    """Which session of another assistant a session was kept from.

    `id` is that of its program, `path` the file that had it. `parent`: of a sub-agent, the id of the session
    that started it. `parent_session` is the name of what was kept of that one, if anything was.
    """

    assistant: str
    id: str
    path: str
    parent: str | None = None
    parent_session: str | None = None


class Session(msgspec.Struct, frozen=True):
    """One session; its head is that of its current thread and counts shared turns."""

    workspace: str  # absolute real path of the folder
    name: str
    head: Head
    created: str  # ISO 8601, UTC; for people
    updated: str
    last_turn: str | None = None  # when its last turn began: of an import, in its program
    agent: str | None = None
    forked_from: str | None = None  # name of the session that it was forked from
    parameters: Mapping[str, Any] = {}  # of the model, as the session was created with
    sent_tokens: int = 0  # that the next request would send if they fit: without what is compacted
    counters: frozenset[str] = frozenset()  # names of those that counted the `sent_tokens`
    origin: SessionOrigin | None = None  # of a session of another assistant


class SessionOptions(msgspec.Struct, frozen=True):
    """The model that the user picked for a session, and what is sent besides the conversation."""

    choice: ModelChoice = ModelChoice()
    besides: Any = None  # JSON


class Counted(msgspec.Struct, frozen=True, gc=False):
    """A message with its tokens, by the counter that the turn names."""

    message: Message
    tokens: int


class TurnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn was made, and how it ended.

    `permissions` is what the agent was granted, or only the level in turns of earlier versions. `context` is
    the `context_json` of the seed: what the system prompt and the user's message were made of. `outcome` is
    None where no provider said anything.
    """

    model: str | None = None
    role: str | None = None  # of the agent
    toolset: tuple[str, ...] = ()  # names of the tools that were offered
    permissions: Any = None  # JSON
    event: Any = None  # JSON: its cause
    context: Any = None  # JSON
    outcome: TurnOutcome | None = None


class ServerCompaction(msgspec.Struct, frozen=True):
    """A compaction by a provider's server, which came with an answer of a turn.

    Behind the turn, the history is the summary, then the last `kept` messages of the turn.
    """

    id: str
    summary: Counted
    kept: int


class NewTurn(TurnFacts, frozen=True, kw_only=True):
    """One turn to be appended.

    `key`: appending the same key to the same session again does nothing. `parent`: the last turn that the
    writer saw; if another has been appended since, the new turn goes to a fork. UNSET: append at the head.
    `opening`: precedes the messages if the thread is empty; `options`: those of the session from now on,
    None: unchanged. `frozen`: the prompt and tools that the session's requests begin with after this turn, as
    JSON; None: they are rendered anew; UNSET: unchanged. `compaction` follows the turn at once: both are
    written, or none. Only `append` uses these four. `report`: what the provider counted of its last request.
    """

    messages: tuple[Counted, ...]
    counter: str  # name of the counter that counted
    opening: Counted | None = None
    key: str | None = None
    parent: str | msgspec.UnsetType | None = msgspec.UNSET
    created: str | None = None  # ISO 8601, UTC: if not now (an import)
    options: SessionOptions | None = None
    frozen: str | msgspec.UnsetType | None = msgspec.UNSET
    compaction: ServerCompaction | None = None
    extends: Head | None = None
    report: UsageReport | None = None


class NewCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction: from now on the history is the summary, then the messages at `kept`, then what follows.

    Messages appended after the turn `seq` are kept as well, and those that extended it since.
    """

    id: str
    seq: int  # of the last turn when it was planned; refused if anything but appends followed
    messages: int | None = None  # of the thread when it was planned; None: the turn was not extended since
    summary: Counted
    counter: str
    kept: Ranges
    receipt: Any  # JSON
    thread: str | None = None  # for which it was planned; refused if the session is at another now


class Appended(msgspec.Struct, frozen=True):
    """The result of an append. `before` is the head before it, `head` the one after it.

    If a compaction by the provider's server followed `turn`, `head` is behind that, unless it is `repeated`.
    """

    session: str
    turn: str
    head: Head
    before: Head
    repeated: bool = False  # the key was known: this is the first answer; nothing was written
    forked: bool = False  # `session` is new, because `parent` was no longer the last turn


class StoredMessage(msgspec.Struct, frozen=True, gc=False):
    """A message with its position and tokens."""

    position: int
    tokens: int
    counter: str
    message: Message


class StoredState(msgspec.Struct, frozen=True):
    """A session at one moment, without its messages. `parameters` are those of the model.

    `frozen` is what its requests begin with (`NewTurn.frozen`); None: the next one is rendered anew. `anchor`
    is the newest report of a provider that later requests contain.
    """

    head: Head
    parameters: Mapping[str, Any] = {}
    frozen: str | None = None
    anchor: UsageReport | None = None


class StoredHistory(msgspec.Struct, frozen=True):
    """The messages for the next request: everything since the latest compaction, or only the end of it.

    `messages` are in the order of sending: the summary, what was kept, what followed. With a limit,
    `gap_messages` messages of `gap_tokens` tokens are left out between the first `lead` of `messages` and the
    rest.
    """

    head: Head
    messages: tuple[StoredMessage, ...]
    compaction: str | None = None  # id of the compaction that is in force
    undone: bool = False  # the last compaction was taken back
    lead: int = 0
    gap_messages: int = 0
    gap_tokens: int = 0
    updated: str = ""  # ISO 8601, UTC: when the session was last written


class Turn(TurnFacts, frozen=True, kw_only=True):
    """One turn of a thread with everything in it: for export, lists, memory. `parent` is the turn before.

    `first` is the position of its first message. The last turn of a thread may get more messages.
    """

    id: str
    seq: int
    type: TurnType
    created: str  # ISO 8601, UTC; for people
    tokens: int
    messages: tuple[Message, ...]
    first: int = 0
    parent: str | None = None  # id; None: it is the first
    compaction: str | None = None  # id: of a compaction, or of the one that an undo takes back
    receipt: Any = None  # of a compaction
    kept: Ranges = ()  # of a compaction
    counter: str = ""  # name of the counter that counted
    counts: tuple[int, ...] = ()  # tokens of each message


_FACTS = tuple(field.name for field in msgspec.structs.fields(TurnFacts))


def turn_facts(turn: TurnFacts) -> dict[str, Any]:
    """The facts of a turn, as arguments for another one."""
    return {name: getattr(turn, name) for name in _FACTS}


def as_new_turn(turn: Turn, counts: Iterable[int]) -> NewTurn:
    """The content of a turn, to be written again with these token counts of its messages."""
    return NewTurn(
        messages=tuple(map(Counted, turn.messages, counts)),
        counter=turn.counter,
        created=turn.created or None,
        **turn_facts(turn),
    )


class MirroredSession(msgspec.Struct, frozen=True):
    """The ledger's copy of a session of another assistant.

    `session` is its name; None: the user deleted it. `turn` is the last one that its program wrote, `head`
    the end of the session, where others may have written since. `is_reported`: its usages have been compared
    with our counts.
    """

    origin: SessionOrigin
    workspace: str
    session: str | None
    turn: str | None
    head: Head | None
    is_reported: bool = False


class MirrorTurns(msgspec.Struct, frozen=True, kw_only=True):
    """New turns of a session of another assistant.

    They go to a new session called `name`; or, with `after`, behind the head that the writer saw; or, with
    `base`, to a fork that shares the turns of `after` up to that one. `existing` is what the writer found in
    the ledger, whatever it does with it.
    """

    origin: SessionOrigin
    workspace: str
    name: str
    turns: tuple[NewTurn, ...]
    after: MirroredSession | None = None
    base: str | None = None
    existing: MirroredSession | None = None
    is_reported: bool = False
    changed: str | None = None  # ISO 8601, UTC: when its program wrote; None: now


class MirroredFile(msgspec.Struct, frozen=True):
    """How far a file of another assistant was read: its stamp then, and what its reader noted, as JSON."""

    path: str
    stamp: tuple[int, ...]
    progress: str


class ExcerptTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of an excerpt: `messages` messages from the position `first` on; `stored` are on the page."""

    id: str
    seq: int
    type: TurnType
    created: str  # ISO 8601, UTC; for people
    first: int
    messages: int
    stored: tuple[StoredMessage, ...]
    model: str | None = None
    context: Any = None
    compaction: str | None = None  # id: of a compaction, or of the one that an undo takes back
    receipt: Any = None  # of a compaction
    kept: Ranges = ()  # of a compaction
    folded: Ranges = ()  # of a compaction: what its summary replaces


class Excerpt(msgspec.Struct, frozen=True):
    """The messages of a thread from the position `first` up to, not including, `end`, in their turns."""

    thread: str
    current: bool  # false: the session was cleared since
    turns: int  # of the whole thread
    messages: int  # of the whole thread
    first: int
    end: int
    page: tuple[ExcerptTurn, ...]
    forked_from: str | None = None  # name of the session that this one was forked from


class StoredReceipt(msgspec.Struct, frozen=True):
    """The receipt of a compaction, as stored."""

    session: str  # that holds the compaction
    receipt: Any  # JSON
    in_force: bool  # not taken back


class Hit(msgspec.Struct, frozen=True):
    """A match of a search. `snippet` marks the matching words."""

    workspace: str
    session: str
    turn: str
    seq: int
    position: int
    role: str
    snippet: str
    created: str
    assistant: str | None = None  # from which the session was kept


class DirectMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message from one agent to another (`node.message`), in one workspace."""

    id: str
    workspace: str
    source: str  # agent
    target: str  # agent
    content: str
    created: float  # seconds since the epoch
    node: str | None = None  # the target's node, where it has several
    priority: float = 0.5  # 0 to 1; the highest is delivered first
    ttl: float | None = None  # seconds; None: it never expires
    task: str | None = None  # the parent task
    metadata: Any = None
    session: str | None = None


class NewAgent(msgspec.Struct, frozen=True):
    """An agent to store. `parent` None: the folder's own agent; `most`: limit of running agents."""

    name: str
    parent: str | None
    wanted: Any  # JSON: the requested options
    most: int | None = None


class LiveAgent(msgspec.Struct, frozen=True):
    """A running agent. `number` is unique, even if the name is reused."""

    number: int
    name: str
    parent: str | None
    started: str  # ISO 8601, UTC; for people
    wanted: Any


class Verified(msgspec.Struct, frozen=True):
    """The result of verifying a session's chain. `broken` is the first damaged turn."""

    workspace: str
    session: str
    turns: int
    broken: int | None = None
    reason: str | None = None


class Verification(msgspec.Struct, frozen=True):
    """The result of verifying a whole ledger. `damage` is the report of SQLite's own check.

    `unchained` turns were written before chains existed: only their messages have checksums.
    """

    sessions: tuple[Verified, ...]
    unchained: int = 0
    damage: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.damage and all(session.broken is None for session in self.sessions)
