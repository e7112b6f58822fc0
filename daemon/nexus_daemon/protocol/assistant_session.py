"""`nexus/assistant/sessions` and `session`: what other assistants do in a folder."""

from typing import Annotated

from nexus_daemon.protocol.shapes import FolderParams, OneOf, Sparse, TokenUsage, Wire

WRITERS = OneOf("claude-code", "codex", "opencode", "gemini", open=True)
CATEGORIES = OneOf(
    "system",
    "tools",
    "instructions",
    "user",
    "answers",
    "thinking",
    "calls",
    "results",
    "attachments",
    "summary",
    "earlier",
    open=True,
)
CAUSES = OneOf(
    "first", "idle", "model", "compaction", "version", "instructions", "tools", "rewritten", open=True
)
ORIGINS = OneOf("program", "nexus", "both")
REASONS = OneOf("appeared", "changed", "idle", open=True)


class AssistantSessionsParams(FolderParams, frozen=True, kw_only=True):
    """A folder; by default all sessions of all assistants in it and in the folders inside it."""

    assistant: Annotated[str, WRITERS] | None = None  # `claude-code`, `codex`, `opencode` or `gemini`
    live: bool = False  # only those that changed in the last quarter of an hour


class AssistantTokens(Wire, frozen=True):
    """Tokens of one or more requests, each counted once, by the provider."""

    fresh: int  # of the input, neither read from the cache nor written to it
    cache_read: int  # of the input, read from the cache
    cache_write: int  # of the input, written to the cache
    output: int  # of the answers


class AssistantSessionInfo(Sparse, frozen=True, kw_only=True):
    """A session of another assistant, as the ends of its file say; of a live one, as all of it says."""

    assistant: Annotated[str, WRITERS]  # `claude-code`, `codex`, `opencode` or `gemini`
    id: str  # the program's own
    uri: str  # the file that holds it
    folder: str | None = None  # URI of the folder where it works
    title: str | None = None  # a message of the user or the program's title, without secrets
    updated: str  # when it changed, ISO 8601
    live: bool  # whether that was in the last quarter of an hour
    model: str | None = None  # that of its last request
    parent: str | None = None  # the session whose sub-agent it is
    last: AssistantTokens | None = None  # of its last request
    window: int | None = None  # tokens of the model's window
    # of a live session: its window, with the rows of `nexus/assistant/session`
    usage: TokenUsage | None = None
    cost_usd: float | None = None  # so far
    cost_at_least: bool = False  # it lacks something: what, `costLacks` of `nexus/assistant/session` says
    fork_of: str | None = None  # the session from which it was forked, whose requests it does not count
    compactions: int | None = None  # of a live session: how many there were


class AssistantSessionFailure(Wire, frozen=True):
    """A file of sessions that cannot be read."""

    uri: str  # the file
    message: str  # why


class AssistantSessionsResult(Sparse, frozen=True):
    """The sessions."""

    sessions: list[AssistantSessionInfo]  # the one that changed last first
    failures: list[AssistantSessionFailure]  # what could not be read
    notice: str | None = None  # why there are none, for people, if `views.conversations` is off


class AssistantSessionParams(FolderParams, frozen=True, kw_only=True):
    """A session of another assistant."""

    assistant: Annotated[str, WRITERS]  # `claude-code`, `codex`, `opencode` or `gemini`
    id: str  # the program's own


class AssistantWindowPart(Sparse, frozen=True, kw_only=True):
    """A part of the window."""

    # the program's own `system` prompt with all that is not in the transcript, definitions of `tools`,
    # `instructions` files, messages of the `user`, `answers`, `thinking`, `calls` of tools and their
    # `results`, `attachments` by the program, a `summary`; `earlier`: before the part that was read
    category: Annotated[str, CATEGORIES]
    label: str = ""  # the tool, the file or the kind of attachment
    server: str | None = None  # the MCP server of the tool
    tokens: int  # estimated by length; the sum is the provider's


class AssistantWindow(Sparse, frozen=True, kw_only=True):
    """What the last request sent. Σ parts.tokens = used."""

    used: int  # tokens that the provider counted
    size: int | None = None  # tokens of the model's window, if known
    parts: list[AssistantWindowPart]  # by category and size
    estimate: bool = False  # there was no request since a compaction: `used` is an estimate


class AssistantCache(Sparse, frozen=True, kw_only=True):
    """What the next turn finds in the provider's cache."""

    lifetime_seconds: int | None = None  # how long what was sent is kept, if the provider promises it
    cold_at: float | None = None  # when it goes cold, in seconds since 1970
    next_tokens: int  # what the next turn sends at least
    warm_usd: float | None = None  # what that costs with a warm cache, US dollars
    cold_usd: float | None = None  # what that costs with a cold one


class AssistantCacheMiss(Sparse, frozen=True, kw_only=True):
    """A request that wrote again what had been in the cache; of the first one, all that it wrote."""

    at: float  # seconds since 1970
    # it was the `first`; more time passed than the cache lives (`idle`); another `model`; a `compaction`;
    # another `version` of the program; `instructions` changed on disk; other `tools` or another prompt;
    # else the beginning was `rewritten`
    cause: Annotated[str, CAUSES]
    tokens: int  # that were written again
    cost_usd: float | None = None  # beyond reading them
    idle_seconds: float | None = None  # since the request before
    detail: str = ""  # the models, the versions or the file


class AssistantDropped(Wire, frozen=True):
    """What was in the window before a compaction and is nowhere after it; at most 50 of a kind."""

    instructions: list[str]  # sentences of the user
    tasks: list[str]  # that were open
    paths: list[str]  # of files
    identifiers: list[str]  # names and values
    counts: dict[str, int]  # of each kind, listed or not


class AssistantCompaction(Sparse, frozen=True, kw_only=True):
    """A compaction by the program."""

    at: float  # seconds since 1970
    trigger: str | None = None  # `manual` or `auto`, where the program says so
    before: int | None = None  # tokens of the window
    after: int | None = None  # of the next request; until then as the program states them
    dropped: AssistantDropped | None = None  # of the last compaction
    partial: bool = False  # messages before it were not read: more may be missing


class AssistantTool(Sparse, frozen=True, kw_only=True):
    """What the calls of a tool took."""

    tool: str  # its name
    server: str | None = None  # its MCP server
    calls: int  # how many
    errors: int = 0  # those that failed
    tokens: int  # of all results
    in_window: int  # of the results in the window now
    # what calls and results cost so far: as part of an answer, new in the next request, and old in each later
    # one up to a compaction
    cost_usd: float | None = None


class AssistantSubAgent(Sparse, frozen=True, kw_only=True):
    """A sub-agent, with a window of its own."""

    id: str  # the program's own
    title: str | None = None  # its task, without secrets
    model: str | None = None  # that of its last request
    requests: int  # of the ones that were read
    tokens: AssistantTokens  # of all requests
    window: int  # tokens of the last request
    cost_usd: float | None = None  # so far
    cost_at_least: bool = False  # it lacks something
    updated: float  # when it changed, in seconds since 1970


class AssistantSessionResult(Sparse, frozen=True, kw_only=True):
    """All about a session of another assistant."""

    session: AssistantSessionInfo  # as in `nexus/assistant/sessions`
    version: str | None = None  # that of the program
    requests: int  # of the session itself, in the part that was read
    context: AssistantWindow  # what is in its window
    total: AssistantTokens  # of all requests, with those of sub-agents
    total_origin: Annotated[str, ORIGINS]  # who summed it up: the `program`, `nexus`, or `both`
    # who summed up `session.costUsd`: the `program`, `nexus`, or `both`
    cost_origin: Annotated[str, ORIGINS] | None = None
    cost_lacks: dict[str, int] = {}  # what the cost does not include: in how many requests, 0 if not known
    estimated_output: int = 0  # of `total.output`: estimates of answers that were recorded before they ended
    cache: AssistantCache | None = None  # absent before the first request
    misses: list[AssistantCacheMiss]  # the last 50, oldest first
    missed_tokens: int  # of all misses but the first request
    missed_usd: float | None = None  # what they cost
    compactions: list[AssistantCompaction]  # the last 50, oldest first
    tools: list[AssistantTool]  # the one that cost most first
    agents: list[AssistantSubAgent]  # its sub-agents
    instructions: list[str]  # URIs of the instruction files that are in its window
    skipped_bytes: int = 0  # of a large file: what was not read of its beginning
    unread: dict[str, int] = {}  # records of kinds that Nexus does not know
    damaged_lines: int = 0  # lines that are no records
    long_lines: int = 0  # lines of more than 32 MiB, which are not read


class AssistantDidChange(Sparse, frozen=True):
    """A session of another assistant appeared or changed in a folder, or no longer counts as running.

    Sent to clients whose `initialize` has the capability `experimental.nexus.assistantSessions`.
    """

    workspace_folder: str  # URI of the folder
    assistant: Annotated[str, WRITERS]  # `claude-code`, `codex`, `opencode` or `gemini`
    id: str  # the session
    # `appeared`, `changed`, or `idle`: it did not change for a quarter of an hour, or is gone
    reason: Annotated[str, REASONS]
