"""`nexus/memory/*` and messages between agents."""

from typing import Any

from nexus_daemon.protocol.shapes import FolderParams, SessionParams, Sparse, Wire


class MemoryQueryParams(SessionParams, frozen=True, kw_only=True):
    """A call of a memory tool, as a model made it."""

    tool: str  # `query_l2_memory`, `query_l3_memory` or `query_l4_memory`
    arguments: dict[str, Any] | str | None = None  # the call's arguments, as an object or as JSON text


class MemoryQueryResult(Wire, frozen=True):
    """The result of the call."""

    text: str  # for the model: the matches, or that there are none


class AgentMessageParams(FolderParams, frozen=True, kw_only=True):
    """A message from one agent to another in the same folder."""

    source: str  # the sender
    target: str  # the recipient
    content: str  # its text, at most 16,000 characters
    priority: float = 0.5  # 0 to 1; the highest is delivered first
    ttl_seconds: float | None = None  # seconds until it expires; null: never
    node: str | None = None  # the recipient's node, if it has several
    task: str | None = None  # the related task
    metadata: Any = None  # stored with the message
    session: str | None = None  # the sender's conversation
    id: str | None = None  # repeating an id sends nothing; null: a new id


class AgentMessageResult(Wire, frozen=True):
    """The stored message."""

    id: str  # its id


class AgentMessagesParams(FolderParams, frozen=True, kw_only=True):
    """The agent whose messages to list."""

    agent: str  # the recipient
    node: str | None = None  # only messages for this node or for all nodes


class AgentMessage(Sparse, frozen=True, kw_only=True):
    """A message that waits for delivery."""

    id: str  # its id
    source: str  # the sender
    target: str  # the recipient
    content: str  # its text
    priority: float  # 0 to 1
    created: str  # when, in ISO 8601
    ttl_seconds: float | None = None  # seconds from `created` until it expires
    node: str | None = None  # the recipient's node
    task: str | None = None  # the related task
    metadata: Any = None  # as sent
    session: str | None = None  # the sender's conversation


class AgentMessagesResult(Wire, frozen=True):
    """The messages that wait for an agent."""

    messages: list[AgentMessage]  # highest priority first, then oldest first
