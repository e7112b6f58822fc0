"""Restricts files inside a workspace. They come with the code, so they may only tighten the settings.

A workspace file may not set:

1. `provider.base_url`, `.headers`, `.api_key_env`, everything in `ledger`, `daemon` and `chat`,
   and `memory.knowledge.embeddings.model`: global file only.
2. A `permissions.level` wider than the global one, of the folder or of an agent.
3. `permissions.allow`, of the folder or of an agent, if the global file has such a list and this one allows
   more. If the global file has none everything is allowed, so any list narrows. A list counts or is dropped
   as a whole: its globally allowed items count anyway. `deny` always counts, and lists only grow, so that
   nothing revokes a refusal.
4. Of an agent that the global file names, what gives it more than there: a wider level; more in `allow` than
   its global list, if it has one; more in `tools` than its global list, of which an empty one has nothing;
   another `role` than its global one or `worker`; another `parent` than its global one. `null` removes a
   limit, so it counts as more. Without a global `role` the agent is a worker. Without global `tools` the
   agent has its parent's and no MCP server: a list narrows the tools, and must not name a server.
5. `views.conversations` other than `false`, if it is `false` in the global file.
6. `context.ancestor_depth`, except in the opened folder: it must be known before ancestors are read.

Ignored values are dropped from their layer with a warning that names the file that may set them. One case
has no warning: the depth in a file inside the opened folder, which is read for an agent there. A user who
opens that directory itself needs the value. `effective` marks it as ignored.
"""

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from nexus_context.config import fixes
from nexus_context.config.check import describe
from nexus_context.config.fast_check import COMMENT_PREFIX
from nexus_context.config.merge import ConfigLayer, deep_merge
from nexus_context.config.patterns import Patterns, servers_named
from nexus_context.errors import Problem, Severity
from nexus_context.text.json import JsonDocument, Pointer

LEVELS = ("worker", "sandboxed", "trusted", "yolo")  # narrowest first

_WORKER = "worker"  # the role of an agent without one

_GLOBAL_ONLY = ("base_url", "headers", "api_key_env")

_GLOBAL_SECTIONS = {
    "daemon": "a file inside a workspace must not decide about the daemon of all windows",
    "chat": "a file inside a workspace must not decide what your turns may cost",
}

_EMBEDDING_MODEL = ("memory", "knowledge", "embeddings", "model")

_DEPTH = ("context", "ancestor_depth")

_VALUES = ("level", "role", "parent")  # quoted by value in messages, others by key


class _GlobalGrants(msgspec.Struct, frozen=True):
    """The grants of the global file to the folder and to the agents that it names."""

    level: str
    allow: tuple[str, ...]
    agents: dict[str, Any]
    conversations: bool
    patterns: Callable[[tuple[str, ...]], Patterns]  # of one list, compiled once


_Excesses = Iterator[tuple[Pointer, Any, str]]
"""Places, with the value there and why it is ignored."""


def restrict(
    layers: Sequence[ConfigLayer], *, global_path: str
) -> tuple[tuple[ConfigLayer, ...], tuple[Problem, ...]]:
    """Drop the values that layers may not set, and return the warnings about them.

    `global_path` is the absolute path of the global config.json, which need not exist.
    """
    grants = _GlobalGrants(
        _global_level(layers),
        _globally_allowed(layers),
        _global_agents(layers),
        conversations=_reads_conversations(layers),
        patterns=functools.cache(Patterns),
    )
    restricted: list[ConfigLayer] = []
    problems: list[Problem] = []
    for layer in layers:
        ignored: list[tuple[Pointer, str]] = []
        if in_workspace(layer.name):
            ignored += _global_settings(layer.document.value, global_path)
            ignored += _wider(layer.document.value, grants, global_path)
        dropped = layer.dropped | {pointer for pointer, _ in ignored}
        if in_workspace(layer.name) and layer.depth != "sets" and _has_depth(layer.document.value):
            dropped |= {_DEPTH}
            if layer.depth == "above":
                problems.append(_ignored_depth(layer, global_path))
        restricted.append(msgspec.structs.replace(layer, dropped=dropped) if dropped else layer)
        problems += [_problem(layer.document, pointer, message) for pointer, message in ignored]
    return tuple(restricted), tuple(problems)


def in_workspace(layer: str) -> bool:
    """Whether a layer of this name comes with a workspace."""
    return layer == "local" or layer.startswith("ancestor:")


def _global_level(layers: Sequence[ConfigLayer]) -> str:
    level = (describe(("permissions", "level")) or {})["default"]
    for layer in layers:
        layer_level = _object(layer.document.value, "permissions").get("level")
        if not in_workspace(layer.name) and layer_level in LEVELS:
            level = layer_level
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


def _reads_conversations(layers: Sequence[ConfigLayer]) -> bool:
    reads = True
    for layer in layers:
        if not in_workspace(layer.name):
            reads = _object(layer.document.value, "views").get("conversations", reads) is not False
    return reads


def _global_settings(value: Any, global_path: str) -> list[tuple[Pointer, str]]:
    provider = _object(value, "provider")
    pointers: list[tuple[str, str]] = [("provider", key) for key in _GLOBAL_ONLY if key in provider]
    pointers += [("ledger", key) for key in _object(value, "ledger") if not key.startswith(COMMENT_PREFIX)]
    reason = "a file inside a workspace must not decide where your requests, keys and sessions go"
    ignored: list[tuple[Pointer, str]] = [
        (pointer, f'"{pointer[1]}" is ignored here: {reason}. Set it in {global_path}.')
        for pointer in pointers
    ]
    for section, reason in _GLOBAL_SECTIONS.items():
        for key in _object(value, section):
            if not key.startswith(COMMENT_PREFIX):
                text = f'"{key}" is ignored here: {reason}. Set it in {global_path}.'
                ignored.append(((section, key), text))
    if "model" in _object(_object(_object(value, "memory"), "knowledge"), "embeddings"):
        reason = "a file inside a workspace must not decide which model is loaded"
        ignored.append((_EMBEDDING_MODEL, f'"model" is ignored here: {reason}. Set it in {global_path}.'))
    return ignored


def _wider(value: Any, grants: _GlobalGrants, global_path: str) -> list[tuple[Pointer, str]]:
    """The values that are wider than in the global file, each with the reason why it is ignored."""
    permissions = _object(value, "permissions")
    pointer = ("permissions",)
    excesses = [*_wider_level(pointer, permissions, grants.level, f'the global "{grants.level}"')]
    excesses += _more_allowed(pointer, permissions, grants, grants.allow, without="the global file does not")
    views = _object(value, "views")
    if not grants.conversations and views.get("conversations", False) is not False:
        excesses.append((("views", "conversations"), views["conversations"], "the global file turns it off"))
    for name, agent in _object(value, "agents").items():
        named = isinstance(agent, dict) and ("permissions" in agent or name in grants.agents)
        if named and not name.startswith(COMMENT_PREFIX):
            excesses += _wider_agent(name, agent, grants)
    return [
        (pointer, f"{_quoted(pointer, wider_value)} is ignored here: {why}. Set it in {global_path}.")
        for pointer, wider_value, why in excesses
    ]


def _wider_agent(name: str, agent: dict[str, Any], grants: _GlobalGrants) -> _Excesses:
    global_agent, owner = _object(grants.agents, name), f"the global agent {fixes.quoted(name)}"
    pointer = ("agents", name, "permissions")
    permissions, granted = _object(agent, "permissions"), _object(global_agent, "permissions")
    level, limit = granted.get("level"), f'the global "{grants.level}"'
    if level in LEVELS and LEVELS.index(level) <= LEVELS.index(grants.level):
        limit = f'the "{level}" of {owner}'
        if "level" in permissions and permissions["level"] is None:
            yield (*pointer, "level"), None, f"it removes {limit}"
    else:
        level = grants.level
    yield from _wider_level(pointer, permissions, level, limit)
    wider_permissions = [
        *_more_allowed(pointer, permissions, grants, grants.allow, without="the global file does not")
    ]
    yield from wider_permissions or _more_allowed(
        pointer, permissions, grants, _texts(granted.get("allow")), without=f"{owner} is not allowed"
    )
    if name in grants.agents:
        yield from _more_tools(("agents", name, "tools"), agent, global_agent, owner)
        yield from _other_role_or_parent(("agents", name), agent, global_agent, owner)


def _wider_level(pointer: Pointer, permissions: dict[str, Any], level_limit: str, limit: str) -> _Excesses:
    level = permissions.get("level")
    if level in LEVELS and LEVELS.index(level) > LEVELS.index(level_limit):
        yield (*pointer, "level"), level, f"it is wider than {limit}"


def _more_allowed(
    pointer: Pointer,
    permissions: dict[str, Any],
    grants: _GlobalGrants,
    allowed: Sequence[str],
    *,
    without: str,
) -> _Excesses:
    patterns = _texts(permissions.get("allow")) if allowed else []
    wide = grants.patterns(tuple(allowed))
    wider_pattern = next((pattern for pattern in patterns if not wide.cover(pattern)), None)
    if wider_pattern is not None:
        yield (*pointer, "allow"), patterns, f"it allows {fixes.quoted(wider_pattern)}, which {without}"


def _more_tools(
    pointer: Pointer, agent: dict[str, Any], global_agent: dict[str, Any], owner: str
) -> _Excesses:
    """More tools than the global agent has; to be granted, a server must be named there, too."""
    tools, listed = agent.get("tools"), isinstance(global_agent.get("tools"), list)
    named = _texts(global_agent.get("tools")) if listed else ["*"]
    servers = Patterns(server for tool in named for server in servers_named(tool) if listed)
    wide = Patterns(named)
    if listed and "tools" in agent and tools is None:
        yield pointer, None, f"null removes the list of {owner}"
    for tool in _texts(tools):
        if not wide.cover(tool) or not all(map(servers.cover, servers_named(tool))):
            server = f"{fixes.quoted(tool)} can name an MCP server, and {owner} names none"
            missing = f"it names {fixes.quoted(tool)}, which {owner} does not have"
            yield pointer, tools, missing if listed else server
            return


def _other_role_or_parent(
    pointer: Pointer, agent: dict[str, Any], global_agent: dict[str, Any], owner: str
) -> _Excesses:
    """Another role or parent than in the global file; without a global role the agent is a worker."""
    role, parent = global_agent.get("role") or _WORKER, global_agent.get("parent")
    own_role = agent.get("role")
    if isinstance(own_role, str) and own_role not in (role, _WORKER):
        manager = f'{owner} is a "{role}", and here it can only be made a "worker"'
        yield (
            (*pointer, "role"),
            own_role,
            f'it is more than {owner}, a "worker"' if role == _WORKER else manager,
        )
    if isinstance(parent, str) and parent != "main" and agent.get("parent", parent) != parent:
        why = f"{owner} is below {fixes.quoted(parent)}, and never has more than that"
        yield (*pointer, "parent"), agent["parent"], why


def _quoted(pointer: Pointer, value: Any) -> str:
    """A single value itself, a list by its key."""
    return fixes.as_json(value if pointer[-1] in _VALUES else pointer[-1])


def _has_depth(value: Any) -> bool:
    return _DEPTH[1] in _object(value, _DEPTH[0])


def _ignored_depth(layer: ConfigLayer, global_path: str) -> Problem:
    """The problem of one folder alone: if the file's own folder is opened, the value counts there.

    So the message names the folder, and no fix takes the value out.
    """
    parent_directory = os.path.dirname(os.path.dirname(layer.document.path))
    name = (
        os.path.relpath(layer.folder, parent_directory).replace(os.sep, "/")
        if layer.folder
        else "the opened folder"
    )
    message = (
        f'"ancestor_depth" does not count for {name}: it must be known before this directory is read. '
        f"Set it in {name}'s own config.json or in {global_path}."
    )
    return msgspec.structs.replace(_problem(layer.document, _DEPTH, message), fix=None)


def _object(value: Any, key: str) -> dict[str, Any]:
    child = value.get(key) if isinstance(value, dict) else None
    return child if isinstance(child, dict) else {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _problem(document: JsonDocument, pointer: Pointer, message: str) -> Problem:
    key = document.key_span(pointer)
    span = document.span(pointer) if key is None or pointer[-1] in _VALUES else key
    fix = fixes.remove(document, pointer)
    return Problem(document.path, span, "config.scope", Severity.WARNING, message=message, fix=fix)
