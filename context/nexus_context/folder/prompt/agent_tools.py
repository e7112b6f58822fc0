"""Defines agents as tools for a model: `spawn_agent`, `message_agent`, `list_agents`, `dispose_agent`.

1. Definitions are in the neutral form, with a JSON Schema of their arguments. Only `list_agents` is marked as
   read-only, so a sandbox offers no other.
2. A worker is offered a message to the agent that it reports to, and to no other. It starts only workers.
3. An agent that is as deep as agents may be starts none, so it has none to end.
4. They depend on the agent alone, not on which others are live: a provider's cache stays valid.
"""

from collections.abc import Mapping
from typing import Any

from nexus_context.folder.layers.agent_definitions import MAIN, MAX_DEPTH
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.blocks import MANAGER, UNIFIED, WORKER, AgentGrant

NAMES = ("dispose_agent", "list_agents", "message_agent", "spawn_agent")
LONGEST_TEXT = 16_000
"""Characters of a task or a message."""

_REQUIRED = {
    "dispose_agent": ("agent_id",),
    "list_agents": (),
    "message_agent": ("target", "content"),
    "spawn_agent": ("agent_id", "task"),
}
_OPTIONAL = {"message_agent": ("priority",), "spawn_agent": ("cwd", "role", "tools")}


def definitions(grant: AgentGrant | None) -> list[dict[str, Any]]:
    """Return the definitions of an agent's tools, sorted by name.

    Without a grant they are those of the workspace folder's own agent.
    """
    descriptions = texts.table("agent_tools")
    deepest = grant is not None and grant.depth >= MAX_DEPTH
    return [
        _definition(name, descriptions, grant)
        for name in NAMES
        if not (deepest and name in ("dispose_agent", "spawn_agent"))
    ]


def _definition(name: str, descriptions: Mapping[str, str], grant: AgentGrant | None) -> dict[str, Any]:
    role = UNIFIED if grant is None else grant.role
    schemas = _schemas(role, MAIN if grant is None else grant.reports_to or MAIN)
    names = (*_REQUIRED[name], *_OPTIONAL.get(name, ()))
    properties = {
        parameter: schemas[parameter]
        | {"description": descriptions.get(f"{parameter} of {name}") or descriptions[parameter]}
        for parameter in names
    }
    return {
        "name": name,
        "description": descriptions.get(f"{name} of {role}") or descriptions[name],
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": list(_REQUIRED[name]),
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": name == "list_agents"},
    }


def _schemas(role: str, manager: str) -> dict[str, dict[str, Any]]:
    """The schema of each argument, for an agent of this role that reports to this manager."""
    is_worker = role == WORKER
    return {
        "agent_id": {"type": "string"},
        "content": {"type": "string", "maxLength": LONGEST_TEXT},
        "cwd": {"type": "string"},
        "priority": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        "role": {"type": "string", "enum": [WORKER] if is_worker else [MANAGER, UNIFIED, WORKER]},
        "target": {"type": "string"} | ({"enum": [manager]} if is_worker else {}),
        "task": {"type": "string", "maxLength": LONGEST_TEXT},
        "tools": {"type": "array", "items": {"type": "string"}},
    }
