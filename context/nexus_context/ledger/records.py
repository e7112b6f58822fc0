"""Defines what a ledger stores and returns: sessions, turns, messages, compactions, direct messages, agents.

A *session* has a name in a workspace and a current *thread*. A thread is a sequence of *turns*. A forked
thread shares the first turns of another thread and continues after them. Turns and messages of a thread,
including shared ones, are numbered without gaps: the `seq` of a turn from 1, the `position` of a message from
0. These numbers define the order; times never do.
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
    """The end of a thread. `messages` is the number of its messages, and so the position of the next
    message.
    """

    thread: str
    turn: str | None = None  # the last one; None if there is none
    seq: int = 0
    messages: int = 0
    tokens: int = 0  # of all messages, by the counters that counted them


class SessionOrigin(msgspec.Struct, frozen=True):
    """The session of another assistant from which a session of the ledger was copied.

    `id` is the id that the assistant's program gave the session, and `path` is the file that had it. For a
    sub-agent, `parent` is the id of the session that started it. `parent_session` is the name of the ledger's
    copy of that session, if there is one.
    """

    assistant: str
    id: str
    path: str
    parent: str | None = None
    parent_session: str | None = None


class Session(msgspec.Struct, frozen=True):
    """One session. `head` is the end of its current thread, and counts shared turns, too."""

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
    """The model that the user picked for a session, and what is sent beside the conversation."""

    choice: ModelChoice = ModelChoice()
    besides: Any = None  # JSON


class Counted(msgspec.Struct, frozen=True, gc=False):
    """A message with its number of tokens, by the counter that the turn names."""

    message: Message
    tokens: int


class TurnFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn was made, and how it ended.

    `permissions` is what the agent was granted; turns of earlier versions have only the level. `context` is
    the `context_json` of the seed: what the system prompt and the user's message were made of. `outcome` is
    None if no provider said anything about the turn.
    """

    model: str | None = None
    role: str | None = None  # of the agent
    toolset: tuple[str, ...] = ()  # names of the tools that were offered
    permissions: Any = None  # JSON
    event: Any = None  # JSON: its cause
    context: Any = None  # JSON
    outcome: TurnOutcome | None = None


class ServerCompaction(msgspec.Struct, frozen=True):
    """A compaction that a provider's server made in an answer of a turn.

    After the turn, the history consists of the summary and the last `kept` messages of the turn.
    """

    id: str
    summary: Counted
    kept: int


class NewTurn(TurnFacts, frozen=True, kw_only=True):
    """One turn to be appended.

    `key`: if the same key was appended to the same session before, nothing is written. `parent` is the last
    turn that the writer saw. If another turn has been appended since, the new turn goes to a fork; if
    `parent` is UNSET, it is always appended at the end. `opening` is a message that precedes the others if
    the thread is empty. `options` are the session's options from now on, or None if they do not change.

    `frozen` is the prompt and tools, as JSON, with which the session's requests begin after this turn. None
    renders them anew, and UNSET leaves them unchanged. `compaction` follows the turn at once: both are
    written, or neither. If `extends` is the present end of the session, the messages extend its last turn.
    Only `append` uses `parent`, `opening`, `options`, `frozen`, `compaction` and `extends`. `report` has what
    the provider counted for the turn's last request.
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
    """A compaction. From now on the history is the summary, then the messages at the positions `kept`, then
    what follows.

    Messages that were appended after the turn `seq`, and messages that have extended it since, are kept as
    well.
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
    """The result of an append. `before` is the head of the thread before it, and `head` the one after it.

    If a compaction by the provider's server followed `turn`, `head` is after that compaction, unless the
    append is `repeated`.
    """

    session: str
    turn: str
    head: Head
    before: Head
    repeated: bool = False  # the key was known: this is the first answer; nothing was written
    forked: bool = False  # `session` is new, because `parent` was no longer the last turn


class StoredMessage(msgspec.Struct, frozen=True, gc=False):
    """A message with its position, its number of tokens, and the name of the counter that counted them."""

    position: int
    tokens: int
    counter: str
    message: Message


class StoredState(msgspec.Struct, frozen=True):
    """A session at one moment, without its messages. `parameters` are model parameters: name → value.

    `frozen` is the prompt and tools with which its requests begin (`NewTurn.frozen`), or None if the next
    request renders them anew. `anchor` is the newest provider's report about a request that later requests
    contain.
    """

    head: Head
    parameters: Mapping[str, Any] = {}
    frozen: str | None = None
    anchor: UsageReport | None = None


class StoredHistory(msgspec.Struct, frozen=True):
    """The messages for the next request: all since the latest compaction, or only both ends of them.

    `messages` are in the order of sending: the summary, what was kept beside it, and what followed. If a
    limit was set, `gap_messages` messages of `gap_tokens` tokens are missing after the first `lead` of
    `messages`.
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
    """One complete turn of a thread, for exports, lists and memory. `parent` is the id of the turn before it.

    `first` is the position of its first message. If it is the last turn of its thread, it may still get more
    messages.
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
    """Return the facts of a turn as keyword arguments for another turn."""
    return {name: getattr(turn, name) for name in _FACTS}


def as_new_turn(turn: Turn, counts: Iterable[int]) -> NewTurn:
    """Return the content of a turn as a new turn to be written. `counts` are the tokens of its messages."""
    return NewTurn(
        messages=tuple(map(Counted, turn.messages, counts)),
        counter=turn.counter,
        created=turn.created or None,
        **turn_facts(turn),
    )


class MirroredSession(msgspec.Struct, frozen=True):
    """The ledger's copy of a session of another assistant.

    `session` is the copy's name, or None if the user deleted it. `turn` is the last turn that the assistant
    wrote. `head` is the end of the copy, to which other programs may have written since. `is_reported` is
    true if the provider's counts in the session have been compared with ours.
    """

    origin: SessionOrigin
    workspace: str
    session: str | None
    turn: str | None
    head: Head | None
    is_reported: bool = False


class MirrorTurns(msgspec.Struct, frozen=True, kw_only=True):
    """New turns of a session of another assistant.

    They go to a new session called `name`. If `after` is set, they are appended to that copy, at the end that
    the writer saw. If `base` is set, too, they go to a fork that shares the turns of `after` up to `base`.
    `existing` is what the writer found in the ledger; if that has changed, nothing is written.
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
    """How far a file of another assistant was read. `stamp` is the file's stamp at that time, and `progress`
    what its reader noted, as JSON.
    """

    path: str
    stamp: tuple[int, ...]
    progress: str


class ExcerptTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of an excerpt. It has `messages` messages, from the position `first` on; those in `stored` are
    on the page.
    """

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
    """A page of a thread: the messages from the position `first` up to, not including, `end`, in their
    turns.
    """

    thread: str
    current: bool  # false: the session was cleared since
    turns: int  # of the whole thread
    messages: int  # of the whole thread
    first: int
    end: int
    page: tuple[ExcerptTurn, ...]
    forked_from: str | None = None  # name of the session that this one was forked from


class StoredReceipt(msgspec.Struct, frozen=True):
    """The receipt of a compaction, as it is stored."""

    session: str  # that holds the compaction
    receipt: Any  # JSON
    in_force: bool  # not taken back


class Hit(msgspec.Struct, frozen=True):
    """A message that a search found. The matching words are marked in `snippet`."""

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
    """A message from one agent to another in the same workspace (`node.message`)."""

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
    """An agent to store. `parent` is None if that is the folder's own agent; `most` limits the number of
    running agents.
    """

    name: str
    parent: str | None
    wanted: Any  # JSON: the requested options
    most: int | None = None


class LiveAgent(msgspec.Struct, frozen=True):
    """A running agent. Its `number` is unique, even if its name is used again later."""

    number: int
    name: str
    parent: str | None
    started: str  # ISO 8601, UTC; for people
    wanted: Any


class Verified(msgspec.Struct, frozen=True):
    """The result of verifying a session's chain. `broken` is the number of the first damaged turn, or None if
    there is none.
    """

    workspace: str
    session: str
    turns: int
    broken: int | None = None
    reason: str | None = None


class Verification(msgspec.Struct, frozen=True):
    """The result of verifying a whole ledger. `damage` is the report of SQLite's own check.

    `unchained` is the number of turns that were written before chains existed. Only their messages have
    checksums.
    """

    sessions: tuple[Verified, ...]
    unchained: int = 0
    damage: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.damage and all(session.broken is None for session in self.sessions)
