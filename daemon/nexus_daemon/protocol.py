"""The `nexus/*` methods: names, parameters and results (SPEC §10).

Parameters and results are msgspec structs with camelCase names on the wire, decoded from and encoded to
raw bytes. Ranges are in the position encoding that the client and the daemon agreed on. Fields may be
added, never renamed. `docs/protocol.md` shows each with a real example.
"""

from typing import Any

import msgspec

from nexus_context.conversation.message import Message


class Wire(msgspec.Struct, frozen=True, rename="camel"):
    """Base of everything that crosses the wire."""


class Sparse(Wire, frozen=True, omit_defaults=True):
    """A wire value whose absent fields are left out."""


class Position(Wire, frozen=True):
    """A place in a text."""

    line: int  # from 0
    character: int  # from 0, in units of the agreed position encoding


class Range(Wire, frozen=True):
    """A part of a text."""

    start: Position  # first position
    end: Position  # position after the last character


class Location(Wire, frozen=True):
    """A part of a file."""

    uri: str  # a file
    range: Range  # a part of its text


class FolderParams(Wire, frozen=True):
    """Which folder: the URI of a workspace folder, or of anything inside one."""

    workspace_folder: str  # URI of a workspace folder, or of anything inside one


class SessionParams(FolderParams, frozen=True):
    """A folder and one of its conversations."""

    session: str = "main"  # name of a conversation; each folder has its own


# ---------------------------------------------------------------- problems


class FixEdit(Wire, frozen=True):
    """One replacement in a text."""

    range: Range  # the text to replace
    new_text: str  # what takes its place


class Fix(Wire, frozen=True):
    """A mend of one problem."""

    title: str  # what the edits do, in a few words
    edits: list[FixEdit]  # edits of the problem's file, none overlapping another


class Problem(Sparse, frozen=True):
    """A mistake in a file. The same problems are published as diagnostics with the source `nexus`."""

    uri: str  # the file that has it
    range: Range  # where in the file
    severity: int  # 1 error, 2 warning, 3 information, 4 hint, as in LSP
    code: str  # stable name: `json.…`, `config.…`, `mcp.…`, `layer.…` or `prompt.…`
    message: str  # what is wrong and what to do
    fix: Fix | None = None  # edits that mend it, where there is one sure way


# ---------------------------------------------------------------- token usage


class Counter(Wire, frozen=True):
    """Which counter made the figures, and whether it is the model's own."""

    name: str  # an encoding such as `o200k_base`, or the name of an estimate
    exact: bool  # false: the figures are an estimate


class UsageRow(Sparse, frozen=True):
    """One thing that tokens are spent on."""

    category: str  # `system`, `tools`, `history`, `memory` or `event`
    label: str  # what it is, for people
    tokens: int  # its tokens
    exact: bool  # false: an estimate
    source: Location | None = None  # the part of a file that it comes from


class TokenUsage(Wire, frozen=True):
    """What a context costs. Σ rows.tokens = total, exactly."""

    model: str  # the model that it is counted for
    limit: int  # tokens of the model's window, or of the configured maximum
    limit_known: bool  # false: the model is unknown, and the limit a guess
    reserved: int  # tokens kept free for the answer and for tool results
    available: int  # the smaller of limit - reserved and what the model takes as input, never below 0
    total: int  # tokens used: the sum of the rows
    remaining: int  # available - total; below 0 when over
    percent: float  # total as a share of available, in percent, to one decimal
    over: bool  # total > available
    counter: Counter  # who counted
    rows: list[UsageRow]  # in the order in which they are sent


# ---------------------------------------------------------------- nexus/context/*


class AssembleOptions(Wire, frozen=True):
    """What one request changes; a field that is absent or null keeps what the configuration says."""

    model: str | None = None  # instead of the configured model
    parameters: dict[str, Any] = {}  # model parameters by name; they win over the configured ones
    additional_system_prompt: str | None = None  # text that is added to the system prompt
    additional_tools: list[dict[str, Any]] = []  # tool definitions, in the form of any provider
    disabled_tools: list[str] = []  # names or patterns such as `browser.*`, beside the configured
    max_context_tokens: int | None = None  # a smaller window than the model's
    reserve_tokens: int | None = None  # instead of the configured reserve


class AssembleParams(SessionParams, frozen=True):
    """A folder, a conversation and the turn to assemble."""

    agent: str | None = None  # given back as it came; agents have no context of their own yet
    # what the user says: text, a list of parts or a whole message
    message: str | list[Any] | Message | None = None
    event: dict[str, Any] | None = None  # facts of this turn, put before the message line by line
    format: str = "neutral"  # `neutral`, or with a body to send: `openai`, `anthropic`
    options: AssembleOptions | None = None  # what is different for this one request


class ParameterValue(Wire, frozen=True):
    """A model parameter and where its value comes from."""

    value: Any  # the value that wins
    origin: str  # `request`, the layer that sets it, or `built-in`


class Assembled(Sparse, frozen=True):
    """One turn as a model is sent it."""

    revision: int  # revision of the folder's snapshot; it grows with every change
    workspace_folder: str  # URI of the folder that was chosen
    session: str  # the conversation that was used
    system_prompt: str  # the whole system prompt
    history: list[Message] | list[msgspec.Raw]  # messages of the session, oldest first
    current_message: Message | None  # the turn's facts and the message; null without both
    tools: list[dict[str, Any]]  # tool definitions in the order of their names, disabled ones left out
    parameters: dict[str, ParameterValue]  # model parameters by name, each with its origin
    model: str  # the model's name
    provider: str  # the configured provider
    usage: TokenUsage  # what all of it costs
    # `tokens` by category; `stablePrefixTokens` and `prefixHash` of what providers can cache; `assemblyMs`
    metadata: dict[str, Any]
    problems: list[Problem]  # what is wrong in the folder's files
    agent: str | None = None  # the agent that was asked for
    request: dict[str, Any] | None = None  # the body to send, for the formats openai and anthropic


class Fragment(Wire, frozen=True):
    """A run of the prompt's text and where it came from."""

    section: str  # the section of the prompt
    layer: str | None  # the layer that wrote it; null for text of Nexus itself
    title: str  # what it is, for people
    range: Range  # its place in the prompt's text
    source: Location | None  # its place in a file; an empty range where the text itself is not there
    tokens: int  # its share of the prompt's tokens
    verbatim: bool  # the source's text word for word, but for line ends; else made from what stands there


class Preview(Wire, frozen=True):
    """The system prompt and the source of its every character."""

    revision: int  # revision of the folder's snapshot
    text: str  # the system prompt
    fragments: list[Fragment]  # they cover the text without gap or overlap, in order
    tokens: int  # tokens of the text: the sum over the fragments


class LayerFile(Sparse, frozen=True):
    """One file that a layer has or may have."""

    kind: str  # `instructions`, `config`, `mcp` or `readme`
    uri: str  # the file, also where it is missing
    status: str  # `loaded`, `missing`, `stale`, `invalid`, `unreadable` or `too-large`
    tokens: int | None = None  # its tokens in the prompt; absent where nothing of it is there


class Layer(Wire, frozen=True):
    """One directory's say in the context."""

    name: str  # `defaults`, `global`, `ancestor:<directory>` or `local`
    path: str  # the directory of its configuration
    files: list[LayerFile]  # the files that it may have


class SkippedLayer(Wire, frozen=True):
    """Something that could have been a layer and is not."""

    path: str  # a directory or file that was left out
    reason: str  # why


class LayersResult(Wire, frozen=True):
    """What a folder's context is made of."""

    revision: int  # revision of the folder's snapshot
    layers: list[Layer]  # lowest first; a later one wins
    skipped: list[SkippedLayer]  # what was not read
    problems: list[Problem]  # what is wrong in the files


class ContextDidChange(Wire, frozen=True):
    """Sent to every client when what the model will see, or what it costs, is different from before."""

    workspace_folder: str  # URI of the folder
    revision: int  # revision of its snapshot now
    # `folder` (was added), `config`, `mcp`, `instructions`, `layers` (init), `disk`, `session`
    # or `tokens` (what was estimated is exact now)
    reason: str
    usage: TokenUsage  # what the session `main` costs now


# ---------------------------------------------------------------- nexus/config/*


class Provenance(Wire, frozen=True):
    """One value that a layer sets."""

    layer: str  # the layer that sets the value; `built-in` for a default
    uri: str  # its file
    range: Range  # the value in the file
    value: Any  # the value as it stands there
    wins: bool  # whether it is, or is part of, the value in force


class McpServer(Sparse, frozen=True):
    """One MCP server that a file names. No server is started."""

    name: str  # the server's name
    type: str  # `stdio`, `http` or `sse`
    origin: str  # the layer of its file; `project` for `.mcp.json`, `vscode` for `.vscode/mcp.json`
    uri: str  # that file
    range: Range  # its entry in the file
    enabled: bool  # false: switched off in its file
    shadowed_by: str | None = None  # origin of the server of this name that wins over it


class EffectiveResult(Wire, frozen=True):
    """The settings in force and where each comes from."""

    revision: int  # revision of the folder's snapshot
    config: dict[str, Any]  # every setting, defaults included
    provenance: dict[str, list[Provenance]]  # who set a value, lowest layer first, by JSON pointer
    mcp_servers: list[McpServer]  # in the order of the layers, shadowed ones too


# ---------------------------------------------------------------- nexus/tokens/*


class CountParams(Wire, frozen=True):
    """What to count, and how."""

    texts: list[str] = []  # texts to count
    uris: list[str] = []  # files to count; the unsaved text of an open one
    model: str | None = None  # count as this model does
    encoding: str | None = None  # without a model: count with this encoding, else `o200k_base`


class CountResult(Wire, frozen=True):
    """Token counts, in the order of the parameters."""

    encoding: str  # an encoding such as `o200k_base`, or the name of an estimate
    exact: bool  # false: an estimate
    counts: list[int]  # tokens of each text, then of each file
    total: int  # their sum


# ---------------------------------------------------------------- nexus/session/*


class AppendParams(SessionParams, frozen=True, kw_only=True):
    """Messages for the end of a conversation."""

    messages: list[Message]  # the messages of one turn, in order
    idempotency_key: str | None = None  # a repeated key adds nothing and returns the first turn's id


class AppendResult(Wire, frozen=True):
    """What the append came to."""

    session: str  # the conversation
    turn: str  # id of what was appended
    count: int  # messages that the session now holds
    usage: TokenUsage  # what the session now costs


class MessagesResult(Wire, frozen=True):
    """The messages of a conversation."""

    session: str  # the conversation
    messages: list[Message] | list[msgspec.Raw]  # oldest first


class ClearResult(Wire, frozen=True):
    """What a cleared conversation costs."""

    session: str  # the conversation
    usage: TokenUsage  # what is left: the system prompt


# ---------------------------------------------------------------- nexus/workspace/*, nexus/status


class InitResult(Wire, frozen=True):
    """What was written, and what was there before."""

    created: list[str]  # URIs of the files that were written
    existing: list[str]  # URIs of the files that were there and were left alone


class NoParams(Wire, frozen=True):
    """A request that needs nothing."""


class FolderStatus(Wire, frozen=True):
    """One folder of the daemon."""

    uri: str  # the folder
    name: str  # its name in the editor
    revision: int  # revision of its snapshot; 0 before the first
    layers: int  # number of its layers
    errors: int  # number of errors in its files
    warnings: int  # number of warnings
    sessions: list[str]  # names of its conversations


class Status(Wire, frozen=True):
    """What the daemon holds."""

    version: str  # version of Nexus
    folders: list[FolderStatus]  # every folder that is served
    sessions: int  # number of conversations in all folders
    connections: int  # number of clients
    caches: dict[str, Any]  # what is kept in memory, by kind
    memory: int  # resident size, in bytes
    uptime: float  # seconds since the start


METHODS: dict[str, tuple[type[Wire], type[Wire]]] = {
    "nexus/context/assemble": (AssembleParams, Assembled),
    "nexus/context/preview": (FolderParams, Preview),
    "nexus/context/usage": (SessionParams, TokenUsage),
    "nexus/context/layers": (FolderParams, LayersResult),
    "nexus/config/effective": (FolderParams, EffectiveResult),
    "nexus/session/append": (AppendParams, AppendResult),
    "nexus/session/messages": (SessionParams, MessagesResult),
    "nexus/session/clear": (SessionParams, ClearResult),
    "nexus/tokens/count": (CountParams, CountResult),
    "nexus/workspace/init": (FolderParams, InitResult),
    "nexus/status": (NoParams, Status),
}
"""Every request: its parameters and its result."""
