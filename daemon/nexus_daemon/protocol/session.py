"""`nexus/session/*`: conversations in the ledger."""

from typing import Annotated, Any

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon.protocol.shapes import (
    Counter,
    FolderParams,
    OneOf,
    Params,
    SessionParams,
    Sparse,
    TokenUsage,
    Wire,
)


class CreateParams(SessionParams, frozen=True):
    """A conversation to create."""

    agent: str | None = None  # the agent that it belongs to
    # model parameters by name, for all its requests: they win over the agent's and the configured ones, and
    # `options.parameters` of a request wins over them. Forks inherit them
    parameters: dict[str, Any] = {}


class SetParametersParams(SessionParams, frozen=True):
    """What to change of a conversation."""

    parameters: dict[str, Any] = {}  # model parameters by name; null drops one


class SetParametersResult(Wire, frozen=True):
    """The parameters that a conversation has now."""

    session: str  # the conversation
    parameters: dict[str, Any]  # model parameters by name


class SessionPlace(Wire, frozen=True):
    """A conversation and its thread."""

    session: str  # the conversation
    thread: str  # id of its line of turns; clearing the conversation starts a new one


class SessionOrigin(Sparse, frozen=True):
    """The session of another assistant that a conversation was kept from."""

    assistant: str  # its program
    id: str  # the id that its program gave it
    path: str  # the file that had it
    parent: str | None = None  # of a sub-agent: the id of the session that started it
    parent_session: str | None = None  # the conversation that was kept of that one


class SessionInfo(Sparse, frozen=True):
    """One conversation. `turns` and `messages` include compacted ones."""

    session: str  # its name
    thread: str  # id of its line of turns
    turns: int  # number of turns, including compactions and their undoing
    messages: int  # number of messages, including those shared with other conversations
    # tokens of its history in the next request, if all of it fitted, by the counts at the time of each
    # append: after a compaction the summary, the kept messages and the newer ones; after an undo as before
    tokens: int
    created: str  # when, in ISO 8601
    updated: str  # when it last changed
    last_turn: str | None = None  # when its last turn began: of an import, in its program, if that says it
    agent: str | None = None  # the agent that it belongs to
    forked_from: str | None = None  # the conversation that it is a fork of
    model: str | None = None  # the model that the user picked for it in the editor
    max_context_tokens: int | None = None  # this model's limit according to the editor
    # false: `tokens` are an estimate, or some were counted for another model than the conversation has now
    exact: bool = True
    estimated: bool = False  # true: some of `tokens` are an estimate
    parameters: dict[str, Any] = {}  # its model parameters
    origin: SessionOrigin | None = None  # of a conversation that was kept from another assistant
    workspace_folder: str | None = None  # URI of its folder, in a list of all folders


class FocusResult(Sparse, frozen=True):
    """The conversation for whose model the folder's figures are counted."""

    session: str  # the conversation
    model: str | None = None  # the picked model; absent: the model of the settings
    max_context_tokens: int | None = None  # its limit according to the editor


class ListParams(Params, frozen=True):
    """The conversations to list."""

    workspace_folder: str | None = None  # URI of a workspace folder, or of anything inside one; null: all


class ListResult(Wire, frozen=True):
    """Conversations."""

    sessions: list[SessionInfo]  # most recently changed first


class FindParams(FolderParams, frozen=True, kw_only=True):
    """A conversation as a person names it."""

    session: str  # its name, its id in its program or its thread; the beginning of one is enough


class TurnsParams(SessionParams, frozen=True):
    """The turns to read."""

    first: int = 1  # number of the first turn
    limit: int = 100  # at most this many, up to 1,000


class StoredTurn(Wire, frozen=True):
    """One turn of a conversation with everything that is stored of it."""

    id: str  # its id
    seq: int  # its number in the conversation, from 1
    # `query`: messages were appended; `compaction`; `undo`: a compaction was undone
    type: Annotated[str, OneOf("query", "compaction", "undo", open=True)]
    created: str  # when, in ISO 8601
    tokens: int  # of all its messages
    messages: list[Message]  # as they were appended; of a compaction the summary
    first: int  # number, from 0, of its first message
    parent: str | None  # id of the turn before it
    compaction: str | None  # id of a compaction, or of the one that an undo took back
    receipt: Any  # of a compaction
    kept: list[tuple[int, int]]  # by a compaction: numbers of messages, each pair up to before the second
    counter: str  # what counted the tokens
    counts: list[int]  # tokens of each message
    model: str | None  # the model that answered
    role: str | None  # of the agent
    toolset: list[str]  # names of the tools that were offered
    permissions: Any  # what the agent was granted
    event: Any  # the cause of the turn
    context: Any  # what the system prompt and the user's message were made of
    outcome: Any  # the provider's usage, its reason to stop, or an error


class TurnsResult(Wire, frozen=True):
    """Turns of a conversation."""

    session: str  # the conversation
    turns: list[StoredTurn]  # oldest first


class ProviderUsage(Params, frozen=True):
    """The tokens of a turn's last request and its answer, by the provider's own count.

    A sum over several requests says nothing about the size of a context. The figures correct the totals of
    the conversation from then on, and those of all conversations with models of this family. What is less
    than half or more than twice the estimate is stored, but corrects nothing.
    """

    input_tokens: int  # of the request, without those that its cache read or wrote
    output_tokens: int  # of the answer
    cache_read_tokens: int | None = None  # of the request, read from the provider's cache
    cache_write_tokens: int | None = None  # of the request, written to the provider's cache
    stop_reason: str | None = None  # why the model stopped, in the provider's words


class AppendParams(SessionParams, frozen=True, kw_only=True):
    """Messages to append to a conversation."""

    messages: list[Message]  # the messages of one turn, in order
    # identifies this append: repeating a key adds nothing and returns the first turn's id. Reusing a key with
    # a different message count is an error; an empty key is ignored
    idempotency_key: str | None = None
    # the last turn that the client knows, from `parentTurn` of an assembled context or `turn` of an append;
    # null: none. If another window has appended since, the messages go to a fork
    parent_turn: str | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None  # the model that answered; null: the model of the last assembled context
    # the cause of the turn, stored with it; null: the event of the last assembled context
    event: dict[str, Any] | None = None
    # the request that the messages answer, from `requestId` of its assembled context: the reasoning of an
    # answer is bound to it. The eight newest of a window are kept; null: the one whose message comes first
    # here, else the last
    request_id: str | None = None
    provider_usage: ProviderUsage | None = None  # what the provider counted of the last request
    error: str | None = None  # what made the turn fail; stored with it


class AppendResult(Sparse, frozen=True):
    """The result of an append."""

    session: str  # the conversation that holds the messages; a new one if `forked`
    turn: str  # id of the new turn
    count: int  # messages since the last compaction
    usage: TokenUsage  # what the conversation now costs
    forked: bool = False  # true: `parentTurn` was not the last turn, so this is a fork
    # false: the ledger is in memory only, and `nexus/status` says why; absent if the turn is on the disk
    persists: bool = True


class MessagesParams(SessionParams, frozen=True):
    """A conversation, or a page of it."""

    limit: int | None = None  # at most this many, the latest; null: all since the last compaction
    before: int | None = None  # only messages before this position, from `before` of the following page


class MessagesResult(Sparse, frozen=True):
    """The messages of a conversation since its last compaction."""

    session: str  # the conversation
    # oldest first; after a compaction the summary, as a user's message, then the kept messages
    messages: list[Message] | list[msgspec.Raw]
    before: int | None = None  # for the preceding page; absent on the first one


class ForkParams(SessionParams, frozen=True, kw_only=True):
    """A conversation to fork."""

    to: str  # name of the new conversation
    turn: str | int | None = None  # the last turn that both share, its id or number; null: the last one


class RenameParams(SessionParams, frozen=True, kw_only=True):
    """A conversation and its new name."""

    to: str  # a name that no other conversation of the folder has


class DeleteResult(Wire, frozen=True):
    """The deleted conversation."""

    session: str  # the conversation


class ExportParams(SessionParams, frozen=True):
    """A conversation to export."""

    # `jsonl`, which can be imported, or `markdown`, for people
    format: Annotated[str, OneOf("jsonl", "markdown")] = "jsonl"


class ExportResult(Wire, frozen=True):
    """A whole conversation as text, including compacted messages."""

    session: str  # the conversation
    format: str  # `jsonl` or `markdown`
    text: str  # the text


class SearchParams(Params, frozen=True, kw_only=True):
    """A full-text search."""

    # words that must all occur; `"two words"` is a phrase, `word*` a prefix, `-word` must not occur
    query: str
    workspace_folder: str | None = None  # only in this folder; null: everywhere
    inside: bool = False  # true: also in the folders inside it
    above: bool = False  # true, with `inside`: also in the folders above it, up to the user's home
    # only in this conversation; in one folder named as in `nexus/session/find`
    session: str | None = None
    limit: int = 20  # at most this many hits


class SearchHit(Sparse, frozen=True):
    """A message that matches."""

    workspace_folder: str  # URI of its folder
    session: str  # its conversation
    turn: str  # id of its turn
    seq: int  # number of that turn in its conversation, from 1
    position: int  # number of the message, from 0
    role: str  # the role of its author
    snippet: str  # the text around the matches, each marked: `«word»`
    created: str  # when, in ISO 8601
    # id of its line of turns, which differs from the present one if the conversation was cleared since
    thread: str
    assistant: str | None = None  # the program that the conversation was kept from


class SearchResult(Wire, frozen=True):
    """The matches."""

    hits: list[SearchHit]  # best first


class ClearResult(Wire, frozen=True):
    """A cleared conversation."""

    session: str  # the conversation
    usage: TokenUsage  # what it costs now: the system prompt


class CompactParams(SessionParams, frozen=True):
    """A conversation to compact."""

    # instructions for the client's model, instead of the configured ones. The built-in extractive summarizer
    # ignores them: use `pins`
    instructions: str | None = None
    # texts that the summary must contain verbatim, and numbers, from 0, of messages that stay whole
    pins: list[str | int] = []
    overflow: bool = False  # true: a provider refused the context as too long, so compact further


class Lost(Wire, frozen=True):
    """What the replaced messages contained and nothing contains now. At most 50 of each kind are listed."""

    paths: list[str]  # paths of files
    commands: list[str]  # commands that were run
    identifiers: list[str]  # names, ids and numbers
    errors: list[str]  # error messages
    instructions: list[str]  # the user's instructions
    decisions: list[str]  # decisions
    counts: dict[str, int]  # number of each kind, listed or not
    rules: list[str] | msgspec.UnsetType = msgspec.UNSET  # system messages from inside the conversation


class Receipt(Wire, frozen=True):
    """The receipt of a compaction."""

    id: str  # id of the compaction, for `nexus/session/undoCompaction`
    # `explicit`, `token_limit`, or `provider`: the provider's server compacted the conversation
    reason: Annotated[str, OneOf("explicit", "token_limit", "provider", open=True)]
    # who wrote the summary: `editor` (the client's model), `extractive` (no model), or a provider, such as
    # `anthropic`: its model, or its server (`opaque`)
    summarizer: str
    replaced_messages: int  # messages that the summary stands for
    tokens_before: int  # tokens of the conversation before it
    tokens_after: int  # tokens after it
    created: str  # when, in ISO 8601
    lost: Lost  # what was lost
    failures: list[str]  # summarizers that failed first, with the reason: `editor: …`
    model: str | msgspec.UnsetType = msgspec.UNSET  # the model that wrote the summary, if it is known
    # number of results of tools among the replaced messages, by tool; `…`: of all other tools
    replaced_results: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    # number of replaced messages that neither the summary nor `lost` covers, because there were too many
    unread_messages: int | msgspec.UnsetType = msgspec.UNSET
    # true: a provider's server compacted the conversation. Only the provider can read the result, so `lost`
    # is empty: nobody can say what is lost
    opaque: bool | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET  # of an opaque one: what can be read of it, maybe shortened
    # the provider whose opaque compaction this one replaced: `anthropic` or `openai`
    replaced_opaque: str | msgspec.UnsetType = msgspec.UNSET


class CompactResult(Wire, frozen=True):
    """The result of a compaction."""

    compaction: str  # id of the compaction
    receipt: Receipt  # what it replaced and what was lost
    usage: TokenUsage  # what the conversation now costs


class ReceiptParams(SessionParams, frozen=True):
    """The compaction whose receipt to return."""

    compaction: str | None = None  # its id, even after a rename of its conversation; null: the last one


class ReceiptResult(Wire, frozen=True):
    """A stored receipt."""

    session: str  # the conversation that holds the compaction
    receipt: Receipt  # what it replaced and what was lost
    in_force: bool  # false: it was undone


class UndoParams(SessionParams, frozen=True):
    """A compaction to undo."""

    compaction: str | None = None  # its id; null: the last one. Later compactions are undone with it


class UndoResult(Wire, frozen=True):
    """The conversation after an undo."""

    session: str  # the conversation
    usage: TokenUsage  # what it costs now


class RebaseResult(Wire, frozen=True):
    """A conversation whose next request begins with the present system prompt and tools."""

    session: str  # the conversation
    usage: TokenUsage  # what the next request costs; `cache` says what it does not reuse


class SessionDidChange(Sparse, frozen=True):
    """Sent to every client of a folder when one of its conversations changes."""

    workspace_folder: str  # URI of the folder
    session: str  # the conversation
    # `created`, `appended`, `compacted`, `undone`, `cleared`, `parameters` (they were set), `renamed`,
    # `deleted` or `forked` (a new one)
    reason: Annotated[
        str,
        OneOf(
            "created",
            "appended",
            "compacted",
            "undone",
            "cleared",
            "parameters",
            "renamed",
            "deleted",
            "forked",
            open=True,
        ),
    ]
    # `self`: by a request of this client; `other`: by another client or process
    by: Annotated[str, OneOf("self", "other")]
    turn: str | None = None  # the new turn, or the last one
    former: str | None = None  # the former name of a renamed one


# ---------------------------------------------------------------- nexus/session/transcript


class TranscriptParams(SessionParams, frozen=True):
    """A page of a conversation."""

    first: int | None = None  # number, from 0, of the page's first message
    # number of the message after the page; without `first` and `before` the page is the last one
    before: int | None = None
    limit: int = 200  # at most this many messages, up to 1,000; fewer if they are long
    # id of a line of turns from before the conversation was cleared, such as `thread` of a search hit; null:
    # the present one
    thread: str | None = None


class TranscriptCall(Sparse, frozen=True):
    """A tool call of an assistant."""

    name: str  # the tool
    arguments: str  # as text: indented JSON, or the client's own text
    id: str | None = None  # the id that the result refers to


class TranscriptMessage(Sparse, frozen=True):
    """A message for people: control characters are made visible, each character of a secret becomes `*`."""

    position: int  # number of the message, from 0
    # `system`, `user`, `assistant` or `tool`
    role: Annotated[str, OneOf("system", "user", "assistant", "tool")]
    text: str  # its text parts; only beginning and end of a very long text
    tokens: int  # its tokens, by the `counter` of the page
    exact: bool = True  # false: an estimate
    name: str | None = None  # name of the speaker or of the tool
    tool_call_id: str | None = None  # the call that a tool's message answers
    calls: list[TranscriptCall] = []  # its tool calls; the first hundred
    attachments: list[str] = []  # other parts, a few words each: `image image/png`
    time: str | None = None  # when, in ISO 8601, if the client sent it
    omitted: int = 0  # number of characters of text and arguments that are left out
    # what was put into it or attached to it: event, number of hooks, files with their hashes, memory. As
    # `contextJson.user` of the turn, with its `memory`
    context: Any = None


class TranscriptTurn(Sparse, frozen=True):
    """A turn with those of its messages that lie within the page."""

    turn: str  # its id, for `nexus/session/fork`
    seq: int  # its number, from 1
    # `query`, `compaction` (its one message is the summary) or `undo` (has no message)
    type: Annotated[str, OneOf("query", "compaction", "undo")]
    created: str  # when, in ISO 8601
    first: int  # number of its first message, even if outside the page
    count: int  # how many messages it has
    messages: list[TranscriptMessage]  # those within the page
    model: str | None = None  # the model that answered
    compaction: str | None = None  # id of the compaction, or of the one that is undone
    receipt: Receipt | None = None  # of a compaction: its receipt
    kept: list[tuple[int, int]] = []  # of a compaction: the messages kept beside the summary, as `folded`
    # of a compaction: the messages that the summary replaces, as ranges: the first one, and the one after the
    # last
    folded: list[tuple[int, int]] = []
    beside: list[str] = []  # what was sent beside the messages: git's state, attached files, memory
    left_out: list[str] = []  # what of that did not fit
    # what its system prompt was made of, as `contextJson.system`: the agent's role, files with their hashes
    context: Any = None


class TranscriptResult(Sparse, frozen=True):
    """A page of a conversation, and which messages the next request sends."""

    session: str  # the conversation
    thread: str  # id of its line of turns; empty if there is no such conversation
    messages: int  # number of messages, including compacted ones and summaries
    first: int  # number of the first message of the page
    end: int  # number of the message after the page
    turns: list[TranscriptTurn]  # oldest first
    counter: Counter  # the counter behind the figures
    # the messages that the next request sends, as ascending ranges like `folded`
    sent: list[tuple[int, int]] = []
    shortened: list[int] = []  # those of them that are shortened because they are too long
    # number of the summary in force; the messages that it replaces are no longer sent
    summary: int | None = None
    kept: list[tuple[int, int]] = []  # earlier messages that the summary in force does not replace
    cleared: bool = False  # true: the conversation was cleared since, so nothing of this is sent
    # the conversation that this one is a fork of; turns whose id does not begin with `thread` are shared
    forked_from: str | None = None
    # true: what its next request sends is not known, and `sent` is empty
    sent_unknown: bool = False
    # of a conversation that is not kept: how the program is written from whose file it is read
    read_from: str | None = None
