"""The settings of the agents that `config.json` names."""

from pydantic import Field

from nexus_context.config.kinds import Level, Pattern, Role, Section, Text


class AgentPermissions(Section):
    """What one agent may do; never more than its parent."""

    level: Level | None = Field(
        default=None, description="What the agent may do; unset, what its parent may."
    )
    allow: list[Pattern] = Field(
        default=[],
        description=(
            "Actions that are allowed, as patterns; ignored in a workspace file that allows more than the "
            "global `permissions.allow`, or than the global file allows an agent of this name."
        ),
    )
    deny: list[Pattern] = Field(default=[], description="Actions that are refused, as patterns.")


class Agent(Section):
    """A named subagent."""

    cwd: Text | None = Field(
        default=None,
        description=(
            "The agent's directory; its context is loaded from there. Relative to the layer's directory, in "
            "the global file to the folder."
        ),
    )
    role: Role | None = Field(
        default=None, description="What the agent is: `manager`, `worker` or `unified`."
    )
    parent: Text | None = Field(
        default=None, description="The agent that starts it, by name; unset, the folder's own, `main`."
    )
    task: Text | None = Field(default=None, description="What the agent is to do.")
    model: Text | None = Field(default=None, description="The agent's model; unset, the parent's.")
    tools: list[Pattern] | None = Field(
        default=None,
        description="The tools it is offered, by name or pattern; unset, the parent's, but no MCP server.",
    )
    permissions: AgentPermissions = Field(
        default_factory=AgentPermissions, description="What the agent may do; never more than its parent."
    )
