"""Whom a new agent is below, and what the settings say of it that it was not asked to be.

1. Its parent is the one that was asked for, else the one that the workspace folder's settings name, else
   `main`.
2. What else was not asked is said of its name by the settings of its parent's directory, which hold the
   folder's, too; where they do not know the name, as in another workspace folder, by the folder's.
3. A parent that only the settings know is to be started first. A view is shown below it all the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.agents.agent import Agent, AgentSpec
from nexus_context.agents.spawn import completed
from nexus_context.config import fixes
from nexus_context.errors import RequestError
from nexus_context.jsontext import pointer_text
from nexus_context.layers.agent_definitions import MAIN, MAX_DEPTH, configured_directory
from nexus_context.layers.bootstrap import agent_file
from nexus_context.layers.model import Layers
from nexus_context.snapshot import Snapshot


def configured(layers: Layers) -> Mapping[str, Any]:
    """The agents of the settings, by name."""
    return layers.effective.get("/agents") or {}


def named(spec: AgentSpec, folder: Snapshot) -> AgentSpec:
    """What is asked, with the parent that the settings name where none is asked.

    Raises RequestError, code agent-id, for a name that no agent can have.
    """
    if agent_file(spec.id) is None:
        raise RequestError(
            f"{spec.id!r} is no name of an agent. Take 1 to 64 letters, digits, `_`, `.` or `-`, the "
            "first no `.` or `-`.",
            code="agent-id",
        )
    if spec.parent is not None:
        return spec
    return msgspec.structs.replace(spec, parent=_parent(configured(folder.layers), spec.id))


def unstarted(spec: AgentSpec, folder: Snapshot, live: Mapping[str, Agent]) -> tuple[AgentSpec, ...]:
    """The agents of the settings that a named one would be below and that do not live, the topmost first.

    Raises RequestError: agent-cycle where it would be below itself or one of those is, agent-depth where
    they are too many.
    """
    if spec.parent == spec.id:
        raise _cycle(spec, [spec.id], folder)
    agents = configured(folder.layers)
    chain: dict[str, AgentSpec] = {spec.id: spec}
    parent = spec.parent or MAIN
    while parent != MAIN and parent in agents and parent not in live:
        if parent in chain:
            names = list(chain)
            raise _cycle(spec, names[names.index(parent) :], folder)
        chain[parent] = AgentSpec(parent, parent=_parent(agents, parent))
        parent = chain[parent].parent or MAIN
    top = live.get(parent)
    _, *above = chain.values()
    if above and len(chain) + (top.depth if top else 0) > MAX_DEPTH:
        raise _too_deep(spec, [*reversed(chain)], top)
    return tuple(reversed(above))


def unknown(agent: str, folder: Snapshot, live: Mapping[str, Agent]) -> RequestError:
    """That no agent of a name lives."""
    agents = configured(folder.layers)
    meant = fixes.meant(agent, (*live, *agents))
    hint = f". Did you mean {meant!r}?" if meant else "."
    if agent in agents:
        hint = f": {defined_in(folder.layers, agent)} defines it, but it is not started."
    names = ", ".join((MAIN, *live))
    return RequestError(
        f"There is no agent {agent!r} in {folder.folder}{hint} Agents: {names}.", code="unknown-agent"
    )


def not_started(spec: AgentSpec, above: Sequence[AgentSpec], folder: Snapshot) -> RequestError:
    """That an agent cannot be started before these, the topmost first, as `unstarted` gives them."""
    parent = above[-1].id
    first, *rest = (repr(one.id) for one in above)
    order = f"Start {', then '.join((f'{first} first', *rest))}." if rest else "Start it first."
    return RequestError(
        f"Agent {spec.id!r} is to be below {parent!r}, which is defined in "
        f"{defined_in(folder.layers, parent)} and is not started. {order}",
        code="unknown-agent",
    )


def settled(spec: AgentSpec, folder: Snapshot, parent: Agent) -> tuple[AgentSpec, str]:
    """What an agent below this parent is asked to be, the settings included, and its directory.

    The directory is absolute or relative to the workspace folder. Raises RequestError for an unknown role.
    """
    parent_layers = parent.snapshot.layers
    layers = parent_layers if spec.id in configured(parent_layers) else folder.layers
    completed_spec = completed(spec, configured(layers).get(spec.id))
    if completed_spec.folder is not None:
        return completed_spec, completed_spec.folder
    placed = msgspec.structs.replace(layers, folder=folder.folder)  # that the global file's paths start from
    return completed_spec, configured_directory(placed, spec.id) or parent.folder


def defined_in(layers: Layers, agent: str) -> str:
    """The file that says something of an agent, the last of several; `config.json` where it says nothing."""
    within = pointer_text(("agents", agent)) + "/"
    chains = (chain for pointer, chain in layers.effective.provenance.items() if pointer.startswith(within))
    files = [one.path for chain in chains for one in chain if one.wins and one.document is not None]
    return files[-1] if files else "config.json"


def _parent(agents: Mapping[str, Any], agent: str) -> str | None:
    return (agents.get(agent) or {}).get("parent")


def _cycle(spec: AgentSpec, names: list[str], folder: Snapshot) -> RequestError:
    is_self = names[0] == spec.id
    why = "would be below itself" if is_self else "cannot be started: these agents are each other's parents"
    remedy = f"Correct `parent` in {defined_in(folder.layers, names[0])}."
    if is_self and spec.parent != _parent(configured(folder.layers), spec.id):
        remedy = "Give another parent, or none."
    path = " → ".join((*names, names[0]))
    return RequestError(f"Agent {spec.id!r} {why}: {path}. {remedy}", code="agent-cycle")


def _too_deep(spec: AgentSpec, names: list[str], top: Agent | None) -> RequestError:
    """`names` are the agent's and those above it that do not live, the topmost first; `top` is above them."""
    depth = len(names) + (top.depth if top else 0)
    path = [*([top.id] if top else []), *names]
    more = "… → " if len(path) > MAX_DEPTH + 1 else ""
    return RequestError(
        f"Agent {spec.id!r} would be {depth} deep, and agents are at most {MAX_DEPTH}: {more}"
        f"{' → '.join(path[-MAX_DEPTH - 1 :])}. Start it from an agent further up.",
        code="agent-depth",
    )
