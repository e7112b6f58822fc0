"""Defines what happens in a session of another assistant, in words that all of them share.

Each format's module turns records into steps, in the order in which they matter: what a request sends comes
before the request, its answer after it.
"""

from typing import Any, Literal

import msgspec

from nexus_context.assistants.sessions.session_types import Usage, sum_usages
from nexus_context.conversation.message import Message

Category = Literal[
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
]
"""What a part of a window is. `system` is the program's own prompt with whatever else is not in the
transcript, `tools` are the definitions of tools, `earlier` is what came before the part of a file that was
read."""


class BilledUsage(msgspec.Struct, frozen=True):
    """Tokens that are billed together. `modes` are what multiplies their prices, such as "fast", a service
    tier or a place.
    """

    model: str | None
    usage: Usage
    written_1h: int = 0
    modes: tuple[str, ...] = ()
    searches: int = 0


class AssistantRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was answered. Records with the same key belong to one request; of each figure the
    largest counts.

    `at` is in seconds since 1970. `usage` is that of the window: of the last iteration that the conversation
    was sent in. `written_1h` are those tokens of `usage.cache_write` that are kept for an hour. For `modes`
    and `searches` see `BilledUsage`. `iterations` are all that was billed, if that is more than the window.
    `cost_usd` is the cost that the program states.

    `is_aside` is true if the request did not send the conversation as the next one does, as one for a
    summary. `is_unended` is true if the answer was recorded before the provider ended it. `is_inherited` is
    true if the request is of the session that this one was forked from. `lifetime` is how long the program
    asked to keep the cache ("5m", "1h", "off"). `miss` is the reason that the provider states for a cache
    miss.
    """

    key: str
    at: float
    model: str | None
    usage: Usage
    written_1h: int = 0
    version: str | None = None
    is_aside: bool = False
    cost_usd: float | None = None
    modes: tuple[str, ...] = ()
    searches: int = 0
    iterations: tuple[BilledUsage, ...] = ()
    is_unended: bool = False
    is_inherited: bool = False
    lifetime: str | None = None
    miss: str | None = None

    @property
    def billed(self) -> tuple[BilledUsage, ...]:
        """All usages that were billed for the request."""
        own_usage = BilledUsage(self.model, self.usage, self.written_1h, self.modes, searches=self.searches)
        return self.iterations or (own_usage,)

    @property
    def total(self) -> Usage:
        """The tokens of all that was billed for the request."""
        return sum_usages(iteration.usage for iteration in self.iterations) if self.iterations else self.usage


class WindowText(msgspec.Struct, frozen=True):
    """A text in the window. `label` is a path or a kind of attachment, `id` the id of its record."""

    category: Category
    text: str
    label: str = ""
    id: str = ""
    units: int = 0
    """60ths of a token of what is not text: images."""


class ToolUse(msgspec.Struct, frozen=True):
    """A call of a tool. `server` is the MCP server of the tool, None for other tools."""

    id: str
    tool: str
    server: str | None
    arguments: Any
    record: str = ""


class ToolOutput(msgspec.Struct, frozen=True):
    """The result of a tool call. `call` is the id of the call."""

    call: str
    text: str
    is_error: bool = False
    units: int = 0
    record: str = ""


class SessionCompaction(msgspec.Struct, frozen=True):
    """A compaction: from here on, a summary replaces the records before it, except those in `preserved`."""

    at: float
    trigger: str | None = None
    before: int | None = None  # tokens, as the program states them
    after: int | None = None
    preserved: frozenset[str] = frozenset()
    is_recorded: bool = True  # its own request, as any other


class LoadedInstructions(msgspec.Struct, frozen=True):
    """The instruction files that are in the window from here on: the path and text of each."""

    files: tuple[tuple[str, str], ...]


class Definitions(msgspec.Struct, frozen=True):
    """The system prompt and the tools of the next requests. `fingerprint` changes whenever one of them
    does.
    """

    fingerprint: str
    system: str
    tools: tuple[tuple[str, str | None, str], ...]
    """Name, server of MCP, definition."""


class StatedTotals(msgspec.Struct, frozen=True):
    """What the program itself has summed up so far.

    `at` is when the program stated it, in seconds since 1970; None if it does not say. `is_continued` is true
    if this version of the program goes on counting when a session is resumed. `lacks` says what the stated
    cost does not include, and how often.
    """

    usage: Usage | None = None
    cost_usd: float | None = None
    window: int | None = None
    at: float | None = None
    is_continued: bool = False
    lacks: dict[str, int] = {}


Step = (
    AssistantRequest
    | WindowText
    | ToolUse
    | ToolOutput
    | SessionCompaction
    | LoadedInstructions
    | Definitions
    | StatedTotals
)


class AgentStep(msgspec.Struct, frozen=True):
    """A step of a sub-agent whose records are in the file of its session. `agent` is the id of the
    sub-agent.
    """

    agent: str
    step: Step


class Memo(msgspec.Struct, frozen=True):
    """A message and the id of its record, kept to compare what is there before and after a compaction."""

    record: str
    message: Message


def split_server(name: str) -> tuple[str, str | None]:
    """Split a tool's name `mcp__server__tool` into tool and server. The server is None for other names."""
    if not name.startswith("mcp__"):
        return name, None
    server, separator, tool = name[5:].partition("__")
    return (tool, server) if separator and server and tool else (name, None)
