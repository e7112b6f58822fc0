"""Computes what a new agent is granted, from the request, the settings for its name, its parent and its
folder.

1. The request overrides `agents.<name>` of the settings, and these override what the parent has.
2. Its model is the requested one, else the one requested for the nearest agent above it, else that of its own
   folder's settings, else its parent's.
3. Permissions and tools only narrow (`permissions`). If its directory cannot be read and never could, its
   settings are unknown: the agent may do nothing.
4. Its MCP servers are those of its parent that a pattern of its `tools` names: `github.*`, `mcp__github__*`
   or `*`. Its own folder's servers are not started for it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.agents import permissions
from nexus_context.agents.agent import ROLES, Agent, AgentSpec
from nexus_context.agents.permissions import AgentPermissions
from nexus_context.config import fixes
from nexus_context.config import parameters as model_parameters
from nexus_context.config.check import check_value
from nexus_context.config.mcp import McpServer
from nexus_context.config.merge import Effective
from nexus_context.config.patterns import NOTHING, Patterns, servers_named
from nexus_context.config.picked_model import MAX_TOKENS, without_choice
from nexus_context.errors import RequestError
from nexus_context.folder.layers.agent_definitions import MAX_DEPTH
from nexus_context.folder.prompt.blocks import WORKER, AgentGrant, Generation, blocks_of, paths_of
from nexus_context.folder.prompt.gather import PromptContents
from nexus_context.folder.snapshot import Snapshot


def complete_spec(spec: AgentSpec, configured: Mapping[str, Any] | None) -> AgentSpec:
    """Return the spec, completed by the options that the settings define for this agent.

    Raise RequestError for an unknown role.
    """
    defaults = configured or {}
    tools = defaults.get("tools") if spec.tools is None else spec.tools
    permissions = {key: value for key, value in (defaults.get("permissions") or {}).items() if value}
    completed_spec = msgspec.structs.replace(
        spec,
        role=spec.role or defaults.get("role") or WORKER,
        task=spec.task if spec.task is not None else defaults.get("task"),
        parent=spec.parent or defaults.get("parent"),
        model=spec.model or defaults.get("model"),
        tools=None if tools is None else tuple(tools),
        permissions=permissions if spec.permissions is None else spec.permissions,
    )
    if completed_spec.role not in ROLES:
        raise RequestError(
            f"Agent {spec.id!r}: unknown role {completed_spec.role!r}. Roles: {', '.join(ROLES)}.",
            code="agent-role",
        )
    return completed_spec


def check_child(spec: AgentSpec, parent: Agent) -> None:
    """Raise RequestError if `parent` may not have this child: it is too deep, or the parent is a worker and
    the child is not.
    """
    if parent.depth >= MAX_DEPTH:
        raise RequestError(
            f"Agent {spec.id!r} would be {parent.depth + 1} deep, and agents are at most {MAX_DEPTH}. "
            "Start it from an agent further up.",
            code="agent-depth",
        )
    if parent.role == WORKER and spec.role != WORKER:
        raise RequestError(
            f"Worker {parent.id!r} may start only workers. Start {spec.id!r} as a worker, or from "
            "its manager.",
            code="agent-role",
        )


def grant_of(agent: Agent, base: Snapshot) -> AgentGrant:
    """Collect what an agent inherits from its parents and its folder. Also set the agent's permissions, tools
    and parameters.

    Raise RequestError if the agent requested something that its parent cannot grant.
    """
    spec, parent = agent.spec, agent.parent
    if parent is None:
        raise ValueError("the workspace folder's own agent is granted nothing")
    narrow = permissions.requested_permissions(agent.id, parent.permissions, spec.permissions or {})
    tools, parameters = _tools(spec, parent), _parameters(spec)
    return _grant(agent, parent, base, narrow, tools=tools, parameters={**parent.parameters, **parameters})


def remaining_grant(agent: Agent, base: Snapshot) -> AgentGrant:
    """Do the same as `grant_of` for an agent whose parent can now grant less than the agent requested. It
    grants what the parent still can.
    """
    spec, parent = agent.spec, agent.parent
    if parent is None:
        raise ValueError("the workspace folder's own agent is granted nothing")
    narrow = permissions.left(parent.permissions, spec.permissions or {})
    tools = parent.tools if spec.tools is None else (*parent.tools, spec.tools)
    parameters = {**parent.parameters, **_parameters(spec, insist=False)}
    return _grant(agent, parent, base, narrow, tools=tools, parameters=parameters)


def _grant(
    agent: Agent,
    parent: Agent,
    base: Snapshot,
    narrow: AgentPermissions,
    tools: tuple[tuple[str, ...], ...],
    parameters: dict[str, Any],
) -> AgentGrant:
    spec = agent.spec
    folder_permissions = (
        permissions.directory_permissions(base.layers) if agent.folder == base.folder else permissions.NONE
    )
    agent.permissions = permissions.narrow(narrow, folder_permissions)
    agent.tools = tools
    agent.parameters = parameters
    above = () if spec.system_prompt is not None else prompt_generations(parent.snapshot.contents)
    sections = () if spec.system_prompt is not None else parent.snapshot.contents.sections
    texts = parent.snapshot.layers.texts
    paths = {*paths_of(blocks_of(above)), *paths_of(sections)}
    return AgentGrant(
        agent=agent.id,
        role=agent.role,
        depth=agent.depth,
        task=spec.task,
        reports_to=parent.id,
        text=spec.system_prompt,
        above=above,
        sections=sections,
        texts={path: texts[path] for path in paths if path in texts},
        tools=agent.tools,
        servers=_servers(spec, parent.snapshot.layers.servers),
        settings=_settings(agent, parent, base),
        strict=_is_strict(agent),
    )


def prompt_generations(contents: PromptContents) -> tuple[Generation, ...]:
    """Return what a child inherits of a prompt: its files, grouped by the agent that brought them, the
    nearest agent first.
    """
    grant = contents.grant
    if grant is None:
        return (Generation(None, contents.bootstrap, contents.blocks),)
    if grant.text is not None:
        return (Generation(grant.agent, text=grant.text),)
    return (Generation(grant.agent, contents.bootstrap, contents.blocks), *contents.above)


def requested_model(agent: Agent) -> str | None:
    """Return the model that was requested for the agent, else for the nearest agent above it. Return None if
    none was requested.
    """
    ancestor: Agent | None = agent
    while ancestor is not None:
        if ancestor.spec.model:
            return ancestor.spec.model
        ancestor = ancestor.parent
    return None


def _is_strict(agent: Agent) -> bool:
    """Whether a request set the permissions of the agent or one above it, or nothing is allowed."""
    ancestor: Agent | None = agent
    while ancestor is not None:
        if (ancestor.spec.permissions or {}).get("allow"):
            return True
        ancestor = ancestor.parent
    return agent.permissions.allow == NOTHING


def _settings(agent: Agent, parent: Agent, base: Snapshot) -> dict[str, Any]:
    may = agent.permissions
    settings: dict[str, Any] = {
        "/permissions/level": may.level,
        "/permissions/allow": list(may.allow),
        "/permissions/deny": list(may.deny),
        "/tools/disabled": _joined(parent.snapshot.effective, base.effective, "/tools/disabled"),
    }
    model_name = requested_model(agent)
    # a model that was picked for the folder is not this agent's; neither is its window
    if model_name is not None:
        limit = without_choice(base.effective).get(MAX_TOKENS)
        return {**settings, MAX_TOKENS: limit, "/provider/model": model_name}
    model = base.effective.get("/provider/model") or parent.model
    return settings if model is None else {**settings, "/provider/model": model}


def _joined(parent_settings: Effective, base_settings: Effective, pointer: str) -> list[str]:
    """The items of two lists of the settings, each once."""
    return list(dict.fromkeys((*(base_settings.get(pointer) or ()), *(parent_settings.get(pointer) or ()))))


def _tools(spec: AgentSpec, parent: Agent) -> tuple[tuple[str, ...], ...]:
    if spec.tools is None:
        return parent.tools
    wrong = check_value(f"/agents/{spec.id}/tools", list(spec.tools))
    if wrong:
        raise RequestError(f"Agent {spec.id!r}: {wrong}", code="agent-tools")
    lists = [Patterns(tools) for tools in parent.tools]
    for pattern in spec.tools:
        if not all(tools.meet(pattern) for tools in lists):
            parent_tools = parent.tools[-1]
            has = fixes.listed([fixes.quoted(tool) for tool in parent_tools]) if parent_tools else "none"
            raise RequestError(
                f"Agent {spec.id!r} cannot be given the tool {fixes.quoted(pattern)}: its parent "
                f"{parent.id!r} has {has}. Choose among those.",
                code="agent-tools",
            )
    return (*parent.tools, spec.tools)


def _parameters(spec: AgentSpec, *, insist: bool = True) -> dict[str, Any]:
    """The requested model parameters. An invalid one raises RequestError, or is dropped if not `insist`."""
    parameters: dict[str, Any] = {}
    for name, value in (spec.parameters or {}).items():
        try:
            if value is not None:
                model_parameters.check(name, value, f"agent {spec.id!r}")
                parameters[name] = value
        except RequestError:
            if insist:
                raise
    return parameters


def _servers(spec: AgentSpec, parents: Sequence[McpServer]) -> tuple[McpServer, ...]:
    """The parent's servers that the agent was granted."""
    if not spec.tools:
        return ()
    named = Patterns(pattern for tool in spec.tools for pattern in servers_named(tool))
    return tuple(server for server in parents if server.shadowed_by is None and named.matches(server.name))
