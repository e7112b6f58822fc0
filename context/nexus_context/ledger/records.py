"""What a ledger keeps and gives back: sessions, turns, messages, compactions, direct messages, agents.

A *session* has a name in a workspace and is at a *thread*. A thread is a line of *turns*; one that was forked
goes on where another's turns are shared with it. Turns and messages of a thread, shared ones included, are
numbered without gaps: a turn's `seq` from 1, a message's `position` from 0. Order is by these numbers, never
by a clock.
"""

from typing import Any, Literal

import msgspec

from nexus_context.config.picked_model import ModelChoice
from nexus_context.conversation.message import Message

TurnType = Literal["query", "compaction", "undo"]
"""A query holds messages as they came; a compaction one summary; an undo nothing."""

Ranges = tuple[tuple[int, int], ...]
"""Positions, as half-open ranges in ascending order."""


class Head(msgspec.Struct, frozen=True):
    """How far a thread goes. `messages` is also the position of the next one."""

    thread: str
    turn: str | None = None  # the last one; None while there is none
    seq: int = 0
    messages: int = 0
    tokens: int = 0  # of all messages, by the counters that counted them


class Session(msgspec.Struct, frozen=True):
    """One session; its head is that of the thread it is at, and counts turns shared with others."""

    workspace: str  # absolute real path of the folder
    name: str
    head: Head
    created: str  # ISO 8601, UTC; for people
    updated: str
    agent: str | None = None
    forked_from: str | None = None  # name of the session that it was forked from
    sent_tokens: int = 0  # of what the next request would send of it, had it room: without what is compacted


class SessionOptions(msgspec.Struct, frozen=True):
    """What a session is used with: the model that the user picked, and what is sent besides the
    conversation.
    """

    choice: ModelChoice = ModelChoice()
    besides: Any = None  # JSON


class Counted(msgspec.Struct, frozen=True, gc=False):
    """A message with its tokens, by the counter that the turn names."""

    message: Message
    tokens: int


class NewTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn to be appended.

    `key`: the same key for the same session again appends nothing. `parent`: the turn that the writer saw
    last; if another has been appended since, the new turn goes to a fork instead. UNSET: wherever the head
    is. `opening`: comes before the messages where the thread has none yet; `options`: what the session is
    used with from now on, None: as before. Only an append looks at these two.
    """

    messages: tuple[Counted, ...]
    counter: str  # name of the counter that counted
    opening: Counted | None = None
    key: str | None = None
    parent: str | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None
    role: str | None = None  # of the agent
    toolset: tuple[str, ...] = ()
    permissions: str | None = None
    event: Any = None  # what caused it
    context: Any = None  # `context_json`: what was put around the user's message
    created: str | None = None  # ISO 8601, UTC: when it happened, if that is not now (an import)
    options: SessionOptions | None = None


class NewCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction: from now on the history is the summary, then what lies at `kept`, then what follows.

    What was appended after the turn `seq` is kept, too.
    """

    id: str
    seq: int  # of the thread's last turn when it was planned; refused if more than appends came since
    summary: Counted
    counter: str
    kept: Ranges
    receipt: Any  # JSON
    thread: str | None = None  # for which it was planned; refused where the session is at another by now


class Appended(msgspec.Struct, frozen=True):
    """What came of an append. `before` is the head that it was put behind, `head` the one after it."""

    session: str
    turn: str
    head: Head
    before: Head
    repeated: bool = False  # the key was known: this is the first turn's answer; nothing was written
    forked: bool = False  # `session` is a new one, because `parent` was not the last turn any more


class StoredMessage(msgspec.Struct, frozen=True, gc=False):
    """A message as the ledger holds it."""

    position: int
    tokens: int
    counter: str
    message: Message


class StoredHistory(msgspec.Struct, frozen=True):
    """What the next request is made of: from the latest compaction on, else all; or the end of it.

    `messages` are in the order in which they are sent: the summary, what was kept, what followed. Where a
    limit was given, `gap_messages` messages of `gap_tokens` tokens are left out between the first `lead` of
    `messages` and the rest.
    """

    head: Head
    messages: tuple[StoredMessage, ...]
    compaction: str | None = None  # id of the compaction that is in force
    undone: bool = False  # the last thing that happened to compactions is that one was taken back
    lead: int = 0
    gap_messages: int = 0
    gap_tokens: int = 0


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a thread, for reading it all: export, lists, memory."""

    id: str
    seq: int
    type: TurnType
    created: str  # ISO 8601, UTC; for people
    tokens: int
    messages: tuple[Message, ...]
    model: str | None = None
    role: str | None = None
    event: Any = None
    context: Any = None
    compaction: str | None = None  # id: of a compaction, or of the one that an undo takes back
    receipt: Any = None  # of a compaction
    kept: Ranges = ()  # of a compaction
    counter: str = ""  # name of the counter that counted
    counts: tuple[int, ...] = ()  # tokens of each message
    toolset: tuple[str, ...] = ()
    permissions: str | None = None


class ExcerptTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of an excerpt: `messages` messages from the position `first` on, of which it has `held`."""

    id: str
    seq: int
    type: TurnType
    created: str  # ISO 8601, UTC; for people
    first: int
    messages: int
    held: tuple[StoredMessage, ...]
    model: str | None = None
    context: Any = None
    compaction: str | None = None  # id: of a compaction, or of the one that an undo takes back
    receipt: Any = None  # of a compaction
    kept: Ranges = ()  # of a compaction
    folded: Ranges = ()  # of a compaction: what its summary stands for


class Excerpt(msgspec.Struct, frozen=True):
    """The messages of a thread from the position `first` up to, not including, `end`, in their turns."""

    thread: str
    current: bool  # false: the session was cleared since
    turns: int  # of the whole thread
    messages: int  # of the whole thread
    first: int
    end: int
    page: tuple[ExcerptTurn, ...]


class StoredReceipt(msgspec.Struct, frozen=True):
    """The receipt of a compaction, as the ledger keeps it."""

    session: str  # that holds the compaction
    receipt: Any  # JSON
    in_force: bool  # whether it was not taken back


class Hit(msgspec.Struct, frozen=True):
    """A message that a search found. `snippet` marks what matched with `before` and `after`."""

    workspace: str
    session: str
    turn: str
    seq: int
    position: int
    role: str
    snippet: str
    created: str


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
    """An agent to be kept. `parent` None: it is below the folder's own; `most`: so many may live."""

    name: str
    parent: str | None
    wanted: Any  # JSON: what it was asked to be
    most: int | None = None


class LiveAgent(msgspec.Struct, frozen=True):
    """An agent that lives. `number` is of no other, also where the name comes again."""

    number: int
    name: str
    parent: str | None
    started: str  # ISO 8601, UTC; for people
    wanted: Any


class Verified(msgspec.Struct, frozen=True):
    """What came of walking a session's chain. `broken` is the first turn that is not what was written."""

    workspace: str
    session: str
    turns: int
    broken: int | None = None
    reason: str | None = None


class Verification(msgspec.Struct, frozen=True):
    """What came of verifying a whole ledger. `damage` is what SQLite's own check says of the file.

    `unchained` turns were written before there was a chain: only their messages have checksums.
    """

    sessions: tuple[Verified, ...]
    unchained: int = 0
    damage: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.damage and all(session.broken is None for session in self.sessions)
