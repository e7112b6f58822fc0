"""What a file inside a workspace may not set: such a file comes with the code, so it may only tighten.

1. `provider.base_url`, `.headers`, `.api_key_env` and everything in `ledger`: global file only.
2. A `permissions.level` wider than the global one, of the folder or of an agent.
3. `permissions.allow`, of the folder or of an agent, where the global file has such a list and this one
   allows more. Where it has none everything is allowed, so that any list narrows. A list is kept or dropped
   as a whole: what of it is allowed globally counts anyway. `deny` is always kept, and lists only grow, so
   that nothing takes a refusal back.
4. Of an agent that the global file names, what gives it more than it has there: a wider level; more in
   `allow` than its own list, if it has one; more in `tools` than its list, and a list without items has
   nothing; another `role` than its own but `worker`, another `parent` than the agent that it is below.
   `null` takes a limit away, so that it is more, too. Where the global file gives it no `role` it is a
   worker. Where it gives no `tools` the agent has its parent's and no MCP server: a list narrows the tools,
   and must name no server.
5. `context.ancestor_depth` everywhere but in the opened folder: it must be known before ancestors are read.

Ignored values are dropped from their layer with a warning that says which file may set them. Only of the
depth in a file inside the opened folder, which is read for an agent there, nothing is said: who opens that
directory by itself needs the value, so a warning would be noise. `effective` shows it as ignored.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from nexus_context.config import fixes
from nexus_context.config.check import describe
from nexus_context.config.fast_check import COMMENT_PREFIX
from nexus_context.config.merge import ConfigLayer, deep_merge
from nexus_context.config.patterns import Patterns, servers_named
from nexus_context.errors import Problem, Severity
from nexus_context.jsontext import JsonDocument, Pointer

LEVELS = ("worker", "sandboxed", "trusted", "yolo")  # narrowest first

_WORKER = "worker"  # what an agent is that has no role

_GLOBAL_ONLY = ("base_url", "headers", "api_key_env")

_DEPTH = ("context", "ancestor_depth")

_VALUES = ("level", "role", "parent")  # shown with their value, others by their key


class _Given(msgspec.Struct, frozen=True):
    """What the global file gives: to the folder, and to the agents that it names."""

    level: str
    allow: tuple[str, ...]
    agents: dict[str, Any]
    patterns: Callable[[tuple[str, ...]], Patterns]  # of one list, made once


_Found = Iterator[tuple[Pointer, Any, str]]
"""Places, with the value there and why it is ignored."""


def restrict(
    layers: Sequence[ConfigLayer], *, global_path: str
) -> tuple[tuple[ConfigLayer, ...], tuple[Problem, ...]]:
    """The layers with what they may not set dropped, and a warning for each such value.

    `global_path` is the absolute path of the global config.json, which need not exist.
    """
    given = _Given(
        _global_level(layers), _globally_allowed(layers), _global_agents(layers), functools.cache(Patterns)
    )
    kept: list[ConfigLayer] = []
    problems: list[Problem] = []
    for layer in layers:
        found: list[tuple[Pointer, str]] = []
        if in_workspace(layer.name):
            found += _global_settings(layer.document.value, global_path)
            found += _wider(layer.document.value, given, global_path)
        dropped = layer.dropped | {pointer for pointer, _ in found}
        if in_workspace(layer.name) and layer.depth != "sets" and _has_depth(layer.document.value):
            dropped |= {_DEPTH}
            if layer.depth == "above":
                found.append((_DEPTH, _no_depth(global_path)))
        kept.append(msgspec.structs.replace(layer, dropped=dropped) if dropped else layer)
        problems += [_problem(layer.document, pointer, message) for pointer, message in found]
    return tuple(kept), tuple(problems)


def in_workspace(layer: str) -> bool:
    """Whether a layer of this name comes with a workspace."""
    return layer == "local" or layer.startswith("ancestor:")


def _global_level(layers: Sequence[ConfigLayer]) -> str:
    level = (describe(("permissions", "level")) or {})["default"]
    for layer in layers:
        found = _object(layer.document.value, "permissions").get("level")
        if not in_workspace(layer.name) and found in LEVELS:
            level = found
    return str(level)


def _globally_allowed(layers: Sequence[ConfigLayer]) -> tuple[str, ...]:
    return tuple(
        pattern
        for layer in layers
        if not in_workspace(layer.name)
        for pattern in _texts(_object(layer.document.value, "permissions").get("allow"))
    )


def _global_agents(layers: Sequence[ConfigLayer]) -> dict[str, Any]:
    named = [_object(layer.document.value, "agents") for layer in layers if not in_workspace(layer.name)]
    return functools.reduce(deep_merge, named, {})


def _global_settings(value: Any, global_path: str) -> list[tuple[Pointer, str]]:
    provider = _object(value, "provider")
    pointers: list[tuple[str, str]] = [("provider", key) for key in _GLOBAL_ONLY if key in provider]
    pointers += [("ledger", key) for key in _object(value, "ledger") if not key.startswith(COMMENT_PREFIX)]
    reason = "a file inside a workspace must not decide where your requests, keys and sessions go"
    return [
        (pointer, f'"{pointer[1]}" is ignored here: {reason}. Set it in {global_path}.')
        for pointer in pointers
    ]


def _wider(value: Any, given: _Given, global_path: str) -> list[tuple[Pointer, str]]:
    """What is wider than the global file has it, and why it is ignored."""
    permissions = _object(value, "permissions")
    found = [*_wider_level(("permissions",), permissions, given.level, f'the global "{given.level}"')]
    found += _more_allowed(("permissions",), permissions, given.allow, "the global file does not", given)
    for name, agent in _object(value, "agents").items():
        named = isinstance(agent, dict) and ("permissions" in agent or name in given.agents)
        if named and not name.startswith(COMMENT_PREFIX):
            found += _wider_agent(name, agent, given)
    return [
        (place, f"{_shown(place, one)} is ignored here: {why}. Set it in {global_path}.")
        for place, one, why in found
    ]


def _wider_agent(name: str, agent: dict[str, Any], given: _Given) -> _Found:
    own, whose = _object(given.agents, name), f"the global agent {fixes.quoted(name)}"
    place = ("agents", name, "permissions")
    permissions, granted = _object(agent, "permissions"), _object(own, "permissions")
    level, said = granted.get("level"), f'the global "{given.level}"'
    if level in LEVELS and LEVELS.index(level) <= LEVELS.index(given.level):
        said = f'the "{level}" of {whose}'
        if "level" in permissions and permissions["level"] is None:
            yield (*place, "level"), None, f"it takes away {said}"
    else:
        level = given.level
    yield from _wider_level(place, permissions, level, said)
    more = [*_more_allowed(place, permissions, given.allow, "the global file does not", given)]
    yield from more or _more_allowed(
        place, permissions, _texts(granted.get("allow")), f"{whose} is not allowed", given
    )
    if name in given.agents:
        yield from _more_tools(("agents", name, "tools"), agent, own, whose)
        yield from _other_place(("agents", name), agent, own, whose)


def _wider_level(place: Pointer, permissions: dict[str, Any], limit: str, said: str) -> _Found:
    level = permissions.get("level")
    if level in LEVELS and LEVELS.index(level) > LEVELS.index(limit):
        yield (*place, "level"), level, f"it is wider than {said}"


def _more_allowed(
    place: Pointer, permissions: dict[str, Any], allowed: Sequence[str], without: str, given: _Given
) -> _Found:
    patterns = _texts(permissions.get("allow")) if allowed else []
    wide = given.patterns(tuple(allowed))
    more = next((pattern for pattern in patterns if not wide.cover(pattern)), None)
    if more is not None:
        yield (*place, "allow"), patterns, f"it allows {fixes.quoted(more)}, which {without}"


def _more_tools(place: Pointer, agent: dict[str, Any], own: dict[str, Any], whose: str) -> _Found:
    """More tools than the global agent has; a server has to be named there, too, to be granted."""
    tools, listed = agent.get("tools"), isinstance(own.get("tools"), list)
    named = _texts(own.get("tools")) if listed else ["*"]
    servers = Patterns(server for tool in named for server in servers_named(tool) if listed)
    wide = Patterns(named)
    if listed and "tools" in agent and tools is None:
        yield place, None, f"null takes away the list of {whose}"
    for tool in _texts(tools):
        if not wide.cover(tool) or not all(map(servers.cover, servers_named(tool))):
            server = f"{fixes.quoted(tool)} can name an MCP server, and {whose} names none"
            missing = f"it names {fixes.quoted(tool)}, which {whose} does not have"
            yield place, tools, missing if listed else server
            return


def _other_place(place: Pointer, agent: dict[str, Any], own: dict[str, Any], whose: str) -> _Found:
    """Another role, or another parent, than the global file gives; without a role the agent is a worker."""
    role, parent = own.get("role") or _WORKER, own.get("parent")
    other = agent.get("role")
    if isinstance(other, str) and other not in (role, _WORKER):
        manager = f'{whose} is a "{role}", and here it can only be made a "worker"'
        yield (*place, "role"), other, f'it is more than {whose}, a "worker"' if role == _WORKER else manager
    if isinstance(parent, str) and parent != "main" and agent.get("parent", parent) != parent:
        why = f"{whose} is below {fixes.quoted(parent)}, and never has more than that"
        yield (*place, "parent"), agent["parent"], why


def _shown(place: Pointer, value: Any) -> str:
    """A single value as it is, a list by its key."""
    return fixes.as_json(value if place[-1] in _VALUES else place[-1])


def _has_depth(value: Any) -> bool:
    return _DEPTH[1] in _object(value, _DEPTH[0])


def _no_depth(global_path: str) -> str:
    return (
        '"ancestor_depth" is ignored here: it must be known before this directory is looked at. '
        f"Set it in the folder's own config.json or in {global_path}."
    )


def _object(value: Any, key: str) -> dict[str, Any]:
    child = value.get(key) if isinstance(value, dict) else None
    return child if isinstance(child, dict) else {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _problem(document: JsonDocument, pointer: Pointer, message: str) -> Problem:
    key = document.key_span(pointer)
    span = document.span(pointer) if key is None or pointer[-1] in _VALUES else key
    fix = fixes.remove(document, pointer)
    return Problem(document.path, span, "config.scope", Severity.WARNING, message, fix)
