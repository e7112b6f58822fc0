"""`nexus/agent/*`: the agents of a folder, from their start to their end."""

from typing import Annotated, Any

from nexus_daemon.protocol.shapes import FolderParams, OneOf, Sparse, TokenUsage, Wire

Role = Annotated[str, OneOf("manager", "worker", "unified")]


class SpawnParams(FolderParams, frozen=True, kw_only=True):
    """An agent to start. What is absent or null comes from `agents` of config.json, then from its parent."""

    agent_id: str  # its name, which no other live agent of the folder has
    # the directory it works in: a path, absolute or from the workspace folder on, or the URI of one
    cwd: str | None = None
    role: Role | None = None  # `manager`, `worker` (default) or `unified`
    task: str | None = None  # what it is to do
    parent: str | None = None  # the agent that it is below; none: the folder's own, `main`
    system_prompt: str | None = None  # in place of what its directory and its parents say
    model: str | None = None  # the model of its requests
    tools: list[str] | None = None  # names or patterns such as `fs.*`, within those of its parent
    # `level`, `allow` and `deny`, or only the patterns that are allowed: never more than its parent has
    permissions: dict[str, Any] | list[str] | None = None
    parameters: dict[str, Any] | None = None  # model parameters by name


class ViewAs(Wire, frozen=True, kw_only=True):
    """An agent that is not started: the parameters of `nexus/agent/spawn`, all of them optional."""

    cwd: str | None = None  # the directory it would work in, as a path or a URI
    role: Role | None = None  # `manager`, `worker` (default) or `unified`
    task: str | None = None  # what it would do
    # the agent that it would be below, a live one or one of the settings; none: as for a spawn
    parent: str | None = None
    agent_id: str | None = None  # its name, which may be a live agent's; none: `agent`
    system_prompt: str | None = None  # in place of what its directory and its parents say
    model: str | None = None  # the model of its requests
    tools: list[str] | None = None  # names or patterns
    permissions: dict[str, Any] | list[str] | None = None  # as for a spawn
    parameters: dict[str, Any] | None = None  # model parameters by name


class AgentParams(FolderParams, frozen=True):
    """A folder and one of its agents."""

    agent_id: str  # a live agent, or `main`


class AgentInfo(Sparse, frozen=True, kw_only=True):
    """A live agent."""

    agent_id: str  # its name
    parent: str | None = None  # the agent above it; absent: the folder's own
    cwd: str  # path of the directory that it works in
    role: Role  # `manager`, `worker` or `unified`
    task: str | None = None  # what it is to do
    depth: int  # how many agents are above it, the folder's own among them
    session: str  # its conversation
    usage: TokenUsage  # what its next request costs, before its own message and tools
    # what is wrong since it was started: its directory is gone, its parent has less than it was given
    notice: str | None = None


class AgentDetails(AgentInfo, frozen=True, kw_only=True):
    """A live agent, and what it was granted.

    `permissions.allow` are patterns that names of tools and permissions are compared with. An empty list
    stands for everything. Where nothing is left, as the agent's directory or who started it allows nothing
    of what its parent does, the list is `["[]"]`: the pattern `[]` fits no name.
    """

    model: str | None = None  # the model of its requests
    system_prompt: str | None = None  # the one that it was started with
    tools: list[str] | None = None  # the patterns that name its tools; absent: any
    permissions: dict[str, Any]  # `level`, `allow` (empty: everything; `["[]"]`: nothing) and `deny`
    parameters: dict[str, Any]  # model parameters, its parents' among them
    children: list[str]  # the agents below it


class AgentListResult(Wire, frozen=True):
    """The agents of a folder."""

    agents: list[AgentInfo]  # in the order in which they were started: parents come first


class AgentDisposed(Wire, frozen=True):
    """The agents that have ended."""

    disposed: list[str]  # their names, children before their parents


class AgentDidChange(Wire, frozen=True):
    """Sent to every client of a folder when something is new about one of its agents."""

    workspace_folder: str  # URI of the folder
    agent_id: str  # the agent
    # `spawned`, `disposed`, `changed` (it sees something else, or its `notice` is another) or `message` (one
    # waits for it)
    reason: Annotated[str, OneOf("spawned", "disposed", "changed", "message", open=True)]
