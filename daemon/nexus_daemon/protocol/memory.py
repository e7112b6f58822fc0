"""`nexus/memory/*` and messages from one agent to another: what is remembered, and what waits."""

from typing import Any

from nexus_daemon.protocol.shapes import FolderParams, SessionParams, Sparse, Wire


class MemoryQueryParams(SessionParams, frozen=True, kw_only=True):
    """A call of a memory tool, as a model made it."""

    tool: str  # `query_l2_memory`, `query_l3_memory` or `query_l4_memory`
    arguments: dict[str, Any] | str | None = None  # of the call, as an object or as its JSON text


class MemoryQueryResult(Wire, frozen=True):
    """What the call returns."""

    text: str  # for the model: what was found, or that nothing was


class AgentMessageParams(FolderParams, frozen=True, kw_only=True):
    """A message from one agent to another in the same folder."""

    source: str  # the agent that says it
    target: str  # the agent that it is for
    content: str  # what it says, at most 16,000 characters
    priority: float = 0.5  # 0 to 1; the highest is delivered first
    ttl_seconds: float | None = None  # after so many seconds it is delivered to nobody; null: it waits
    node: str | None = None  # the target's node, where it has several
    task: str | None = None  # the task that it belongs to
    metadata: Any = None  # kept with it
    session: str | None = None  # the conversation that it comes from
    id: str | None = None  # the same id again is the same message; none: a new one


class AgentMessageResult(Wire, frozen=True):
    """The message that was kept."""

    id: str  # its id


class AgentMessagesParams(FolderParams, frozen=True, kw_only=True):
    """An agent."""

    agent: str  # whose messages
    node: str | None = None  # only those for this node, or for every one


class AgentMessage(Sparse, frozen=True, kw_only=True):
    """A message that waits for its agent."""

    id: str  # its id
    source: str  # the agent that says it
    target: str  # the agent that it is for
    content: str  # what it says
    priority: float  # 0 to 1
    created: str  # when, in ISO 8601
    ttl_seconds: float | None = None  # counted from then
    node: str | None = None  # the target's node
    task: str | None = None  # the task that it belongs to
    metadata: Any = None  # as it was given
    session: str | None = None  # the conversation that it comes from


class AgentMessagesResult(Wire, frozen=True):
    """What waits for an agent."""

    messages: list[AgentMessage]  # the highest priority first, then in the order in which they came
