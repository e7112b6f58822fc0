"""`nexus/session/*`: conversations, as the ledger keeps them."""

from typing import Annotated, Any

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon.protocol.shapes import OneOf, SessionParams, Sparse, TokenUsage, Wire


class CreateParams(SessionParams, frozen=True):
    """A conversation to begin."""

    agent: str | None = None  # who it is for


class SessionPlace(Wire, frozen=True):
    """Where a conversation is."""

    session: str  # the conversation
    thread: str  # id of its line of turns; another one after it was cleared


class SessionInfo(Sparse, frozen=True):
    """One conversation. Turns and messages are all there are, compacted ones among them."""

    session: str  # its name
    thread: str  # id of its line of turns
    turns: int  # how many; compactions and what took one back are turns, too
    messages: int  # how many, those that it shares with other conversations among them
    # of what the next request would send of it, had it room, as messages were counted when they came: after a
    # compaction the summary, what was kept and what came since; after its undoing as before
    tokens: int
    created: str  # when, in ISO 8601
    updated: str  # when it changed last
    agent: str | None = None  # who it is for
    forked_from: str | None = None  # the conversation that it was forked from
    model: str | None = None  # the model that the user picked for it in the editor
    max_context_tokens: int | None = None  # the most tokens that this model takes, as the editor said


class FocusResult(Sparse, frozen=True):
    """The conversation whose model a folder's figures are counted for."""

    session: str  # the conversation
    model: str | None = None  # the picked model; absent: the one that the settings name
    max_context_tokens: int | None = None  # the most tokens that it takes, as the editor said


class ListResult(Wire, frozen=True):
    """The conversations of a folder."""

    sessions: list[SessionInfo]  # those that changed last first


class AppendParams(SessionParams, frozen=True, kw_only=True):
    """Messages for the end of a conversation."""

    messages: list[Message]  # the messages of one turn, in order
    # names this one append: the same key again adds nothing and returns the first turn's id; with another
    # number of messages it is an error. An empty one is none
    idempotency_key: str | None = None
    # the last turn that the client has seen, as `parentTurn` of an assembled context or `turn` of an append
    # says it; null: none. If another window appended since, the messages go to a fork
    parent_turn: str | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None  # who answered; none: the model of the last context that was assembled
    event: dict[str, Any] | None = None  # what caused the turn; kept with it


class AppendResult(Sparse, frozen=True):
    """What the append came to."""

    session: str  # the conversation that the messages are in: a new one, if `forked`
    turn: str  # id of what was appended
    count: int  # messages that the session now holds since its last compaction
    usage: TokenUsage  # what the session now costs
    forked: bool = False  # true: the conversation had gone on from `parentTurn`; this is a fork of it
    # false: the ledger is in memory only, and `nexus/status` says why; absent where the turn is on the disk
    persists: bool = True


class MessagesParams(SessionParams, frozen=True):
    """A conversation, or a page of it."""

    limit: int | None = None  # at most so many messages, the last ones; none: all since the last compaction
    before: int | None = None  # those before this position: `before` of the page that follows


class MessagesResult(Sparse, frozen=True):
    """The messages of a conversation since its last compaction."""

    session: str  # the conversation
    # oldest first; after a compaction the summary, a user's message, then what was kept
    messages: list[Message] | list[msgspec.Raw]
    before: int | None = None  # for the page before this one; absent where there is none


class ForkParams(SessionParams, frozen=True, kw_only=True):
    """A conversation to go on with in two ways."""

    to: str  # name of the new conversation
    turn: str | None = None  # the last turn that both share; none: all there are


class RenameParams(SessionParams, frozen=True, kw_only=True):
    """A conversation and its new name."""

    to: str  # a name that no conversation of the folder has


class DeleteResult(Wire, frozen=True):
    """What is gone."""

    session: str  # the conversation


class ExportParams(SessionParams, frozen=True):
    """A conversation to write down."""

    # `jsonl`, which can be imported again, or `markdown`, to be read
    format: Annotated[str, OneOf("jsonl", "markdown")] = "jsonl"


class ExportResult(Wire, frozen=True):
    """A whole conversation as text, what was compacted too."""

    session: str  # the conversation
    format: str  # `jsonl` or `markdown`
    text: str  # for a file


class SearchParams(Wire, frozen=True, kw_only=True):
    """What to look for."""

    # all of these words; `"two words"` stand together, `word*` is a beginning, `-word` must not occur
    query: str
    workspace_folder: str | None = None  # only in this folder's conversations; none: everywhere
    session: str | None = None  # only in this conversation
    limit: int = 20  # at most so many, the best first


class SearchHit(Wire, frozen=True):
    """A message that was found."""

    workspace_folder: str  # URI of its folder
    session: str  # its conversation
    turn: str  # id of its turn
    seq: int  # number of that turn in its conversation, from 1
    position: int  # number of the message, from 0
    role: str  # who speaks
    snippet: str  # the text around the words, each marked: `«word»`
    created: str  # when, in ISO 8601
    thread: str  # id of the line of turns that it is in: another one where the conversation was cleared


class SearchResult(Wire, frozen=True):
    """What was found."""

    hits: list[SearchHit]  # best first


class ClearResult(Wire, frozen=True):
    """What a cleared conversation costs."""

    session: str  # the conversation
    usage: TokenUsage  # what is left: the system prompt


class CompactParams(SessionParams, frozen=True):
    """A conversation to compact, and what the summary must keep."""

    # what matters, in words, instead of the configured instructions; for the client's model: the embedded,
    # extractive summarizer does not read it, so use `pins`
    instructions: str | None = None
    # texts that must stand in the summary word for word; numbers: messages that stay whole, counted from 0
    pins: list[str | int] = []
    overflow: bool = False  # true: a provider refused the context as too long, so go down further


class Lost(Wire, frozen=True):
    """What stood in the replaced messages and stands nowhere now. At most 50 of each kind are listed."""

    paths: list[str]  # paths of files
    commands: list[str]  # commands that were run
    identifiers: list[str]  # names, ids and numbers
    errors: list[str]  # error messages
    instructions: list[str]  # what the user asked for
    decisions: list[str]  # what was decided
    counts: dict[str, int]  # how many there are of each, listed or not


class Receipt(Wire, frozen=True):
    """What a compaction did."""

    id: str  # the compaction, for `nexus/session/undoCompaction`
    reason: Annotated[str, OneOf("explicit", "token_limit", open=True)]  # `explicit` or `token_limit`
    # who wrote the summary: `editor`, the client's model, or `extractive`, which needs no model
    summarizer: str
    replaced_messages: int  # messages that the summary stands for
    tokens_before: int  # tokens of the conversation before
    tokens_after: int  # and after
    created: str  # when, in ISO 8601
    lost: Lost  # what appears nowhere any more
    failures: list[str]  # summarizers that were asked before, and why they failed: `editor: …`
    model: str | msgspec.UnsetType = msgspec.UNSET  # the model that wrote it, where the client names it
    # of the replaced messages, those that neither the summary nor `lost` covers: there were too many to read
    unread_messages: int | msgspec.UnsetType = msgspec.UNSET


class CompactResult(Wire, frozen=True):
    """What a compaction did, and what the conversation costs now."""

    compaction: str  # id of the compaction
    receipt: Receipt  # what it replaced, and what was lost
    usage: TokenUsage  # what the session now costs


class ReceiptParams(SessionParams, frozen=True):
    """A compaction whose receipt is wanted."""

    compaction: str | None = None  # its id, whatever its conversation is called now; none: the last one


class ReceiptResult(Wire, frozen=True):
    """What a compaction did, as the ledger has kept it."""

    session: str  # the conversation that holds the compaction
    receipt: Receipt  # what it replaced, and what was lost
    in_force: bool  # false: it was taken back


class UndoParams(SessionParams, frozen=True):
    """A compaction to take back."""

    compaction: str | None = None  # its id; none: the last one. Later ones are taken back with it


class UndoResult(Wire, frozen=True):
    """What the conversation costs again."""

    session: str  # the conversation
    usage: TokenUsage  # what it costs


class SessionDidChange(Sparse, frozen=True):
    """Sent to every client of a folder when one of its conversations is different from before."""

    workspace_folder: str  # URI of the folder
    session: str  # the conversation
    # `created`, `appended`, `compacted`, `undone`, `cleared`, `renamed`, `deleted` or `forked` (is a new one)
    reason: Annotated[
        str,
        OneOf(
            "created",
            "appended",
            "compacted",
            "undone",
            "cleared",
            "renamed",
            "deleted",
            "forked",
            open=True,
        ),
    ]
    # `self`: this client asked for it; `other`: another client, or another process
    by: Annotated[str, OneOf("self", "other")]
    turn: str | None = None  # the turn that was written, or the last one that there is
    former: str | None = None  # the name before, of a renamed one
