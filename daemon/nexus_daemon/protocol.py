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
    line: int
    character: int


class Range(Wire, frozen=True):
    start: Position
    end: Position


class Location(Wire, frozen=True):
    uri: str
    range: Range


class FolderParams(Wire, frozen=True):
    """Which folder: the URI of a workspace folder, or of anything inside one."""

    workspace_folder: str


class SessionParams(FolderParams, frozen=True):
    session: str = "main"


# ---------------------------------------------------------------- problems


class FixEdit(Wire, frozen=True):
    range: Range
    new_text: str


class Fix(Wire, frozen=True):
    title: str
    edits: list[FixEdit]


class Problem(Sparse, frozen=True):
    uri: str
    range: Range
    severity: int
    code: str
    message: str
    fix: Fix | None = None


# ---------------------------------------------------------------- token usage


class Counter(Wire, frozen=True):
    """Which counter made the figures, and whether it is the model's own."""

    name: str
    exact: bool


class UsageRow(Sparse, frozen=True):
    """One thing that tokens are spent on. `category` is system, tools, history, memory or event."""

    category: str
    label: str
    tokens: int
    exact: bool
    source: Location | None = None


class TokenUsage(Wire, frozen=True):
    """What a context costs. Σ rows.tokens = total, exactly.

    `limit` is the window, `reserved` what is kept free for the answer and for tool results,
    `available` = limit - reserved, `remaining` = available - total, `percent` of available.
    """

    model: str
    limit: int
    reserved: int
    available: int
    total: int
    remaining: int
    percent: float
    over: bool
    counter: Counter
    rows: list[UsageRow]


# ---------------------------------------------------------------- nexus/context/*


class AssembleOptions(Wire, frozen=True):
    model: str | None = None
    parameters: dict[str, Any] = {}
    additional_system_prompt: str | None = None
    additional_tools: list[dict[str, Any]] = []
    disabled_tools: list[str] = []
    max_context_tokens: int | None = None
    reserve_tokens: int | None = None


class AssembleParams(SessionParams, frozen=True):
    agent: str | None = None
    message: str | list[Any] | Message | None = None
    event: dict[str, Any] | None = None
    format: str = "neutral"
    options: AssembleOptions = AssembleOptions()


class ParameterValue(Wire, frozen=True):
    value: Any
    origin: str


class Assembled(Sparse, frozen=True):
    revision: int
    workspace_folder: str
    session: str
    system_prompt: str
    history: list[Message]
    current_message: Message | None
    tools: list[dict[str, Any]]
    parameters: dict[str, ParameterValue]
    model: str
    provider: str
    usage: TokenUsage
    metadata: dict[str, Any]
    problems: list[Problem]
    agent: str | None = None
    request: dict[str, Any] | None = None


class Fragment(Wire, frozen=True):
    """A run of the prompt's text and where it came from."""

    section: str
    layer: str | None
    title: str
    range: Range
    source: Location | None
    tokens: int


class Preview(Wire, frozen=True):
    revision: int
    text: str
    fragments: list[Fragment]
    tokens: int


class LayerFile(Sparse, frozen=True):
    kind: str
    uri: str
    status: str
    tokens: int | None = None


class Layer(Wire, frozen=True):
    name: str
    path: str
    files: list[LayerFile]


class SkippedLayer(Wire, frozen=True):
    path: str
    reason: str


class LayersResult(Wire, frozen=True):
    revision: int
    layers: list[Layer]
    skipped: list[SkippedLayer]
    problems: list[Problem]


class ContextDidChange(Wire, frozen=True):
    """`reason` is what moved: opened, config, mcp, instructions, layers, session or folder."""

    workspace_folder: str
    revision: int
    reason: str
    usage: TokenUsage


# ---------------------------------------------------------------- nexus/config/*


class Provenance(Wire, frozen=True):
    layer: str
    uri: str
    range: Range
    value: Any
    wins: bool


class McpServer(Sparse, frozen=True):
    name: str
    type: str
    origin: str
    uri: str
    range: Range
    enabled: bool
    shadowed_by: str | None = None


class EffectiveResult(Wire, frozen=True):
    revision: int
    config: dict[str, Any]
    provenance: dict[str, list[Provenance]]
    mcp_servers: list[McpServer]


# ---------------------------------------------------------------- nexus/tokens/*


class CountParams(Wire, frozen=True):
    texts: list[str] = []
    uris: list[str] = []
    model: str | None = None
    encoding: str | None = None


class CountResult(Wire, frozen=True):
    encoding: str
    exact: bool
    counts: list[int]
    total: int


# ---------------------------------------------------------------- nexus/session/*


class AppendParams(SessionParams, frozen=True, kw_only=True):
    messages: list[Message]
    idempotency_key: str | None = None


class AppendResult(Wire, frozen=True):
    """`turn` names what was appended; `count` is the number of messages that the session then holds."""

    session: str
    turn: str
    count: int
    usage: TokenUsage


class MessagesResult(Wire, frozen=True):
    session: str
    messages: list[Message]


class ClearResult(Wire, frozen=True):
    session: str
    usage: TokenUsage


# ---------------------------------------------------------------- nexus/workspace/*, nexus/status


class InitResult(Wire, frozen=True):
    created: list[str]
    existing: list[str]


class NoParams(Wire, frozen=True):
    """A request that needs nothing."""


class FolderStatus(Wire, frozen=True):
    uri: str
    name: str
    revision: int
    layers: int
    errors: int
    warnings: int
    sessions: list[str]


class Status(Wire, frozen=True):
    """`memory` is the resident size in bytes, `uptime` in seconds."""

    version: str
    folders: list[FolderStatus]
    sessions: int
    connections: int
    caches: dict[str, Any]
    memory: int
    uptime: float
