"""Resolves a new agent's parent and default options.

1. Its parent is the requested one, else the one that the workspace folder's settings name, else `main`.
2. Other options that were not requested come from the settings of its parent's directory, which include the
   folder's. Where those do not define the agent, as in another workspace folder, the folder's apply.
3. A parent that only the settings define must be started first. A preview needs no started parent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.agents.agent import Agent, AgentSpec
from nexus_context.agents.spawn import complete_spec
from nexus_context.config import fixes
from nexus_context.errors import RequestError
from nexus_context.folder.layers.agent_definitions import MAIN, MAX_DEPTH, configured_directory
from nexus_context.folder.layers.bootstrap import agent_file
from nexus_context.folder.layers.layer_types import Layers
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.json import pointer_text


def configured_agents(layers: Layers) -> Mapping[str, Any]:
    """Return the agents that the settings define: name → options."""
    return layers.effective.get("/agents") or {}


def with_parent(spec: AgentSpec, folder: Snapshot) -> AgentSpec:
    """Return the spec with a parent. If it has none, the parent is the one that the settings name for this
    agent.

    Raise RequestError, code agent-id, if the agent's name is invalid.
    """
    if agent_file(spec.id) is None:
        raise RequestError(
            f"{spec.id!r} is not a valid agent name. Use 1 to 64 letters, digits, `_`, `.` or `-`; it must "
            "not start with `.` or `-`.",
            code="agent-id",
        )
    if spec.parent is not None:
        return spec
    return msgspec.structs.replace(spec, parent=_parent(configured_agents(folder.layers), spec.id))


def unstarted_parents(spec: AgentSpec, folder: Snapshot, live: Mapping[str, Agent]) -> tuple[AgentSpec, ...]:
    """Return the agents above this one that the settings define but that are not running, the topmost first.

    Raise RequestError, code agent-cycle, if an agent would be its own ancestor. Raise it with code
    agent-depth if there are too many agents above one another.
    """
    if spec.parent == spec.id:
        raise _cycle(spec, [spec.id], folder)
    agents = configured_agents(folder.layers)
    chain: dict[str, AgentSpec] = {spec.id: spec}
    parent = spec.parent or MAIN
    while parent != MAIN and parent in agents and parent not in live:
        if parent in chain:
            names = list(chain)
            raise _cycle(spec, names[names.index(parent) :], folder)
        chain[parent] = AgentSpec(parent, parent=_parent(agents, parent))
        parent = chain[parent].parent or MAIN
    top = live.get(parent)
    _, *unstarted = chain.values()
    if unstarted and len(chain) + (top.depth if top else 0) > MAX_DEPTH:
        raise _too_deep(spec, [*reversed(chain)], top)
    return tuple(reversed(unstarted))


def unknown_agent(agent: str, folder: Snapshot, live: Mapping[str, Agent]) -> RequestError:
    """Make the error for a name that no live agent has."""
    agents = configured_agents(folder.layers)
    meant = fixes.meant(agent, (*live, *agents))
    hint = f". Did you mean {meant!r}?" if meant else "."
    if agent in agents:
        hint = f": {defining_file(folder.layers, agent)} defines it, but it is not started."
    names = ", ".join((MAIN, *live))
    return RequestError(
        f"There is no agent {agent!r} in {folder.folder}{hint} Agents: {names}.", code="unknown-agent"
    )


def parents_not_started(spec: AgentSpec, unstarted: Sequence[AgentSpec], folder: Snapshot) -> RequestError:
    """Make the error for an agent whose parents must be started first. `unstarted` is the result of
    `unstarted_parents`.
    """
    parent = unstarted[-1].id
    first_name, *other_names = (repr(parent_spec.id) for parent_spec in unstarted)
    order = (
        f"Start {', then '.join((f'{first_name} first', *other_names))}."
        if other_names
        else "Start it first."
    )
    return RequestError(
        f"The parent of agent {spec.id!r} is {parent!r}, which is defined in "
        f"{defining_file(folder.layers, parent)} and is not started. {order}",
        code="unknown-agent",
    )


def resolve_spec(spec: AgentSpec, folder: Snapshot, parent: Agent) -> tuple[AgentSpec, str]:
    """Return the complete spec of a new agent below `parent`, and its directory.

    The directory is absolute or relative to the workspace folder. Raise RequestError for an unknown role.
    """
    parent_layers = parent.snapshot.layers
    layers = parent_layers if spec.id in configured_agents(parent_layers) else folder.layers
    completed_spec = complete_spec(spec, configured_agents(layers).get(spec.id))
    if completed_spec.folder is not None:
        return completed_spec, completed_spec.folder
    # paths of the global file are relative to the workspace folder
    placed = msgspec.structs.replace(layers, folder=folder.folder)
    return completed_spec, configured_directory(placed, spec.id) or parent.folder


def defining_file(layers: Layers, agent: str) -> str:
    """Return the last settings file that defines an option of an agent, or `config.json` if none does."""
    within = pointer_text(("agents", agent)) + "/"
    chains = (chain for pointer, chain in layers.effective.provenance.items() if pointer.startswith(within))
    files = [entry.path for chain in chains for entry in chain if entry.wins and entry.document is not None]
    return files[-1] if files else "config.json"


def _parent(agents: Mapping[str, Any], agent: str) -> str | None:
    return (agents.get(agent) or {}).get("parent")


def _cycle(spec: AgentSpec, names: list[str], folder: Snapshot) -> RequestError:
    is_self = names[0] == spec.id
    why = "would be below itself" if is_self else "cannot be started: these agents form a circle of parents"
    remedy = f"Correct `parent` in {defining_file(folder.layers, names[0])}."
    if is_self and spec.parent != _parent(configured_agents(folder.layers), spec.id):
        remedy = "Give another parent, or none."
    path = " → ".join((*names, names[0]))
    return RequestError(f"Agent {spec.id!r} {why}: {path}. {remedy}", code="agent-cycle")


def _too_deep(spec: AgentSpec, names: list[str], top: Agent | None) -> RequestError:
    """`names`: the agent and those above it that are not running, topmost first; `top` is above them."""
    depth = len(names) + (top.depth if top else 0)
    path = [*([top.id] if top else []), *names]
    more = "… → " if len(path) > MAX_DEPTH + 1 else ""
    return RequestError(
        f"Agent {spec.id!r} would be {depth} deep, and agents are at most {MAX_DEPTH}: {more}"
        f"{' → '.join(path[-MAX_DEPTH - 1 :])}. Start it from an agent further up.",
        code="agent-depth",
    )
