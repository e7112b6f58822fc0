"""`nexus/agent/*`: start, list, inspect and end the agents of a folder; messages between them."""

from typing import Annotated, Any

from nexus_daemon.protocol.shapes import FolderParams, OneOf, Params, Sparse, TokenUsage, Wire

Role = Annotated[str, OneOf("manager", "worker", "unified")]


class SpawnParams(FolderParams, frozen=True, kw_only=True):
    """An agent to start. An absent or null field comes from `agents` of config.json, then from the parent."""

    agent_id: str  # its name; unique among the live agents of the folder
    # its working directory: a path, absolute or relative to the workspace folder, or a URI
    cwd: str | None = None
    role: Role | None = None  # `manager`, `worker` (default) or `unified`
    task: str | None = None  # its task, in words
    parent: str | None = None  # its parent; null: the folder's own agent, `main`
    system_prompt: str | None = None  # replaces the prompt of its directory and parents
    model: str | None = None  # the model of its requests
    tools: list[str] | None = None  # names or patterns such as `fs.*`, a subset of its parent's
    # `level`, `allow` and `deny`, or only the allowed patterns; never more than its parent has
    permissions: dict[str, Any] | list[str] | None = None
    parameters: dict[str, Any] | None = None  # model parameters by name


class ViewAs(Params, frozen=True, kw_only=True):
    """An agent that is not started: the parameters of `nexus/agent/spawn`, all of them optional."""

    cwd: str | None = None  # its working directory, as a path or a URI
    role: Role | None = None  # `manager`, `worker` (default) or `unified`
    task: str | None = None  # its task, in words
    # its parent: a live agent or one in the settings; null: as in `nexus/agent/spawn`
    parent: str | None = None
    agent_id: str | None = None  # its name, which may be a live agent's; null: `agent`
    system_prompt: str | None = None  # replaces the prompt of its directory and parents
    model: str | None = None  # the model of its requests
    tools: list[str] | None = None  # names or patterns
    permissions: dict[str, Any] | list[str] | None = None  # as in `nexus/agent/spawn`
    parameters: dict[str, Any] | None = None  # model parameters by name


class AgentParams(FolderParams, frozen=True):
    """A folder and one of its agents."""

    agent_id: str  # a live agent, or `main`


class AgentInfo(Sparse, frozen=True, kw_only=True):
    """A live agent."""

    agent_id: str  # its name
    parent: str | None = None  # its parent; absent for the folder's own agent
    cwd: str  # path of its working directory
    role: Role  # `manager`, `worker` or `unified`
    task: str | None = None  # its task, in words
    depth: int  # how many agents are above it, including the folder's own
    session: str  # its conversation
    usage: TokenUsage  # cost of its next request, without the message and tools of that request
    # what went wrong since its start: its directory is gone, or its parent lost permissions that it has
    notice: str | None = None


class AgentDetails(AgentInfo, frozen=True, kw_only=True):
    """A live agent with its grants.

    `permissions.allow` are patterns for names of tools and permissions. An empty list allows everything. If
    nothing is allowed, because the agent's directory or spawn parameters allow nothing that its parent has,
    the list is `["[]"]`: the pattern `[]` matches no name.
    """

    model: str | None = None  # the model of its requests
    system_prompt: str | None = None  # the prompt that it was started with
    tools: list[str] | None = None  # patterns of its tools; absent: all tools
    permissions: dict[str, Any]  # `level`, `allow` (empty: everything; `["[]"]`: nothing) and `deny`
    parameters: dict[str, Any]  # model parameters, including those of its parents
    children: list[str]  # names of the agents below it


class AgentListResult(Wire, frozen=True):
    """The agents of a folder."""

    agents: list[AgentInfo]  # in the order of their start, so parents come first


class AgentDisposed(Wire, frozen=True):
    """The agents that ended."""

    disposed: list[str]  # their names, children before their parents


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


class AgentCallParams(FolderParams, frozen=True, kw_only=True):
    """A call of an agent tool, as a model made it."""

    session: str | None = None  # the conversation of the calling model; null: that of `agent`
    agent: str | None = None  # the calling agent; null: the owner of the conversation
    tool: str  # `spawn_agent`, `message_agent`, `list_agents` or `dispose_agent`
    arguments: dict[str, Any] | str | None = None  # the call's arguments, as an object or as JSON text


class AgentCallResult(Wire, frozen=True):
    """The result of the call."""

    text: str  # for the model: what was done, or what is wrong with the call and what to do about it
    is_error: bool = False  # true: nothing was done, and `text` says why


class AgentDidChange(Wire, frozen=True):
    """Sent to every client of a folder when one of its agents changes."""

    workspace_folder: str  # URI of the folder
    agent_id: str  # the agent
    # `spawned`, `disposed`, `changed` (its context or its `notice`) or `message` (a message waits for it)
    reason: Annotated[str, OneOf("spawned", "disposed", "changed", "message", open=True)]
