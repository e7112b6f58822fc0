"""Defines the report of a session of another assistant: its window, its cache, its compactions, its cost."""

from typing import Literal

import msgspec

from nexus_context.assistants.sessions.session_types import Usage
from nexus_context.assistants.sessions.steps import Category

MissCause = Literal["first", "idle", "model", "compaction", "version", "instructions", "tools", "rewritten"]
"""Why a request wrote what an earlier one had already sent. `rewritten`: the beginning changed, and
none of the other causes is in the transcript."""
CostOrigin = Literal["program", "nexus", "both"]
"""Who summed up a cost: the program, Nexus by usage and prices, or Nexus what came after the program's."""


class WindowPart(msgspec.Struct, frozen=True):
    """A part of the window. `label` is a tool, a file or a kind of attachment; `server` is the MCP server of
    a tool.
    """

    category: Category
    tokens: int
    label: str = ""
    server: str | None = None


class ReportedWindow(msgspec.Struct, frozen=True):
    """What the last request sent. `used` is what the provider counted, and the sum of the tokens of all
    parts.

    `is_estimate` is true if there was no request since a compaction. `size` is the size of the model's window
    in tokens.
    """

    used: int
    size: int | None
    parts: tuple[WindowPart, ...]
    is_estimate: bool = False


class CacheMiss(msgspec.Struct, frozen=True, kw_only=True):
    """A request that wrote to the cache again what had been there. The first request counts as one, with all
    that it wrote.

    `tokens` were written again. `cost_usd` is what that cost more than reading them. `idle_s` are the seconds
    since the request before. `detail` names the model, the version or the file that changed.
    """

    at: float
    cause: MissCause
    tokens: int
    cost_usd: float | None = None
    idle_s: float | None = None
    detail: str = ""


class CacheState(msgspec.Struct, frozen=True, kw_only=True):
    """What the next turn finds in the cache. The cache is cold at `cold_at`, in seconds since 1970; that is
    None if the provider promises no time.

    `next_tokens` are the tokens that the next turn sends at least. `warm_usd` and `cold_usd` are what sending
    them costs from a warm and a cold cache, None without prices.
    """

    lifetime_s: int | None
    cold_at: float | None
    next_tokens: int
    warm_usd: float | None
    cold_usd: float | None


class DroppedItems(msgspec.Struct, frozen=True):
    """What was in the window before a compaction and is nowhere after it. `counts` has the number of items of
    each kind, also of those that are not listed.
    """

    instructions: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    counts: dict[str, int] = {}


class CompactionReport(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction. `before` and `after` are the tokens in the window, None where they are not known.

    `dropped` is known only of the last compaction. If `is_partial`, not all messages before it were read.
    """

    at: float
    trigger: str | None
    before: int | None
    after: int | None
    dropped: DroppedItems | None = None
    is_partial: bool = False


class ToolCost(msgspec.Struct, frozen=True):
    """What the calls of a tool took. `tokens` are those of all results, `in_window` those of the results in
    the window now.
    """

    tool: str
    server: str | None
    calls: int
    errors: int
    tokens: int
    in_window: int
    cost_usd: float | None


class SubAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent with a window of its own. The session's `requests` do not include its requests.

    For `lacks` and `estimated` see `SessionReport`.
    """

    id: str
    title: str | None
    model: str | None
    requests: int
    usage: Usage
    window: int
    cost_usd: float | None
    changed: float
    lacks: dict[str, int] = {}
    estimated: int = 0


class SessionReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session after its last step. Times are in seconds since 1970, costs in US dollars.

    `last` and `last_at` are the usage and the time of the last request. `total` and `cost_usd` include
    sub-agents; `total_origin` and `cost_origin` tell who summed them up. `requests` counts the requests of
    the session alone, without those in the `skipped_bytes` of the file. `lacks` says what the cost does not
    include, and in how many requests, 0 if that is not known; if it is not empty, the cost is at least
    `cost_usd`. `estimated` is how many of the answered tokens are estimates, for answers that were recorded
    before they ended. `unread` counts records of each kind that Nexus does not know. `damaged` counts lines
    that are not records, `long_lines` those that are too long to be read.
    """

    assistant: str
    id: str
    path: str
    folder: str | None
    title: str | None
    model: str | None
    version: str | None
    started: str | None
    changed: str
    requests: int
    window: ReportedWindow
    last: Usage | None
    last_at: float
    total: Usage
    total_origin: CostOrigin
    cost_usd: float | None
    cost_origin: CostOrigin | None
    cache: CacheState | None
    misses: tuple[CacheMiss, ...]
    missed_tokens: int
    missed_usd: float | None
    compactions: tuple[CompactionReport, ...]
    tools: tuple[ToolCost, ...]
    agents: tuple[SubAgent, ...]
    instructions: tuple[str, ...]
    lacks: dict[str, int] = {}
    estimated: int = 0
    parent: str | None = None
    fork_of: str | None = None
    skipped_bytes: int = 0
    unread: dict[str, int] = {}
    damaged: int = 0
    long_lines: int = 0
