"""The agents of the settings below each other: who has which parent, and what is left to whom.

An agent has at most what those above it leave; nobody is started further down than `MAX_DEPTH`.
"""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from nexus_context.config.scope import LEVELS

MAX_DEPTH = 5
"""How many agents deep the children of a workspace folder go."""
MAIN = "main"
"""The name of a workspace folder's own agent."""
UNIFIED, WORKER = "unified", "worker"


class AgentLimits(msgspec.Struct, frozen=True):
    """What an agent has as those above it leave it; `tools` are the lists of each of them that has one."""

    depth: int
    role: str
    level: str
    allow: tuple[str, ...]
    tools: tuple[tuple[str, tuple[str, ...]], ...] = ()


def granted(agents: Mapping[str, Any], level: str, allow: tuple[str, ...]) -> dict[str, AgentLimits]:
    """What the folder has, which is `level` and `allow`, and each agent below it, parents first."""
    below: dict[str, list[str]] = {}
    for name, agent in agents.items():
        if name != MAIN:
            below.setdefault(parent_of(agent), []).append(name)
    has = {MAIN: AgentLimits(0, UNIFIED, level, allow)}
    line = [MAIN]
    for above in line:  # which grows
        for name in below.get(above, ()):
            has[name] = _narrowed(has[above], name, agents[name])
            line.append(name)
    return has


def cycles(agents: Mapping[str, Any], below: Collection[str]) -> dict[str, list[str]]:
    """The agents that are each other's parents: for each one all of them, from child to parent.

    `below` are those that are known to be below the folder.
    """
    cycle_of: dict[str, list[str]] = {}
    visited = set(below)
    for first in agents:
        line: dict[str, int] = {}
        name = first
        while name in agents and name not in visited:
            visited.add(name)
            line[name] = len(line)
            name = parent_of(agents[name])
        if name in line:
            cycle = list(line)[line[name] :]
            cycle_of.update(dict.fromkeys(cycle, cycle))
    return cycle_of


def parent_of(agent: Any) -> str:
    """The name of the parent that the settings give an agent."""
    return str(agent.get("parent") or MAIN)


def listed_in(agent: Any, *steps: str) -> list[str]:
    """The texts of a list in an agent's settings; none where there is no such list."""
    value = agent
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _narrowed(above: AgentLimits, name: str, agent: Any) -> AgentLimits:
    """What an agent has below another."""
    permissions, tools = agent.get("permissions") or {}, agent.get("tools")
    level = permissions.get("level")
    lists = above.tools
    if isinstance(tools, list) and above.depth < MAX_DEPTH:  # further down nobody is started
        lists = (*lists, (name, tuple(listed_in(agent, "tools"))))
    return AgentLimits(
        above.depth + 1,
        agent.get("role") or WORKER,
        min(level or above.level, above.level, key=LEVELS.index),
        tuple(listed_in(agent, "permissions", "allow")) or above.allow,
        tools=lists,
    )
