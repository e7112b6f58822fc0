"""What a file inside a workspace may not set: such a file comes with the code, so it may only tighten.

1. `provider.base_url`, `.headers`, `.api_key_env` and everything in `ledger`: global file only.
2. A `permissions.level` wider than the global one, of the folder or of an agent.
3. `permissions.allow`, of the folder or of an agent, where the global file has such a list and this one
   allows more. Where it has none everything is allowed, so that any list narrows. A list is kept or dropped
   as a whole: what of it is allowed globally counts anyway. `deny` is always kept, and lists only grow, so
   that nothing takes a refusal back.
4. `context.ancestor_depth` in an ancestor: it must be known before ancestors are read.

Ignored values are dropped from their layer with a warning that says which file may set them.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from nexus_context.config import mend
from nexus_context.config.accept import COMMENT_PREFIX
from nexus_context.config.check import describe
from nexus_context.config.merge import ConfigLayer
from nexus_context.errors import Problem, Severity
from nexus_context.jsontext import JsonDocument, Pointer

LEVELS = ("worker", "sandboxed", "trusted", "yolo")  # narrowest first

_GLOBAL_ONLY = ("base_url", "headers", "api_key_env")

_Permissions = list[tuple[Pointer, dict[str, Any]]]


def restrict(
    layers: Sequence[ConfigLayer], *, global_path: str
) -> tuple[tuple[ConfigLayer, ...], tuple[Problem, ...]]:
    """The layers with what they may not set dropped, and a warning for each such value.

    `global_path` is the absolute path of the global config.json, which need not exist.
    """
    level, allowed = _global_level(layers), _globally_allowed(layers)
    kept: list[ConfigLayer] = []
    problems: list[Problem] = []
    for layer in layers:
        found: list[tuple[Pointer, str]] = []
        if in_workspace(layer.name):
            found += _global_settings(layer.document.value, global_path)
            places = _permissions(layer.document.value)
            found += _wider_levels(places, level, global_path)
            found += _more_allowed(places, allowed, global_path)
        if layer.name.startswith("ancestor:"):
            found += _depth(layer.document.value, global_path)
        dropped = layer.dropped | {pointer for pointer, _ in found}
        kept.append(msgspec.structs.replace(layer, dropped=dropped) if found else layer)
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


def _global_settings(value: Any, global_path: str) -> list[tuple[Pointer, str]]:
    provider = _object(value, "provider")
    pointers: list[tuple[str, str]] = [("provider", key) for key in _GLOBAL_ONLY if key in provider]
    pointers += [("ledger", key) for key in _object(value, "ledger") if not key.startswith(COMMENT_PREFIX)]
    reason = "a file inside a workspace must not decide where your requests, keys and sessions go"
    return [
        (pointer, f'"{pointer[1]}" is ignored here: {reason}. Set it in {global_path}.')
        for pointer in pointers
    ]


def _wider_levels(places: _Permissions, level: str, global_path: str) -> list[tuple[Pointer, str]]:
    return [
        (
            (*place, "level"),
            f'"{found}" is ignored here: it is wider than the global "{level}". Set it in {global_path}.',
        )
        for place, permissions in places
        if (found := permissions.get("level")) in LEVELS and LEVELS.index(found) > LEVELS.index(level)
    ]


def _more_allowed(
    places: _Permissions, allowed: Sequence[str], global_path: str
) -> list[tuple[Pointer, str]]:
    found: list[tuple[Pointer, str]] = []
    if not allowed:
        return found
    for place, permissions in places:
        patterns = _texts(permissions.get("allow"))
        more = next((pattern for pattern in patterns if not allowed_by(pattern, allowed)), None)
        if more is not None:
            message = (
                f'"allow" is ignored here: it allows {mend.quoted(more)}, which the global file does not. '
                f"Set it in {global_path}."
            )
            found.append(((*place, "allow"), message))
    return found


def allowed_by(pattern: str, allowed: Sequence[str]) -> bool:
    """Whether one of these patterns is the same, or ends in the only `*` and stands for all it can mean."""
    return any(
        pattern == wide or (wide.find("*") == len(wide) - 1 and pattern.startswith(wide[:-1]))
        for wide in allowed
    )


def _permissions(value: Any) -> _Permissions:
    """Every object `permissions`, the folder's and its agents', with its place."""
    places: _Permissions = [(("permissions",), _object(value, "permissions"))]
    places += [
        (("agents", name, "permissions"), _object(agent, "permissions"))
        for name, agent in _object(value, "agents").items()
        if isinstance(agent, dict) and "permissions" in agent and not name.startswith(COMMENT_PREFIX)
    ]
    return places


def _depth(value: Any, global_path: str) -> list[tuple[Pointer, str]]:
    if "ancestor_depth" not in _object(value, "context"):
        return []
    message = (
        '"ancestor_depth" is ignored here: it must be known before this directory is looked at. '
        f"Set it in the folder's own config.json or in {global_path}."
    )
    return [(("context", "ancestor_depth"), message)]


def _object(value: Any, key: str) -> dict[str, Any]:
    child = value.get(key) if isinstance(value, dict) else None
    return child if isinstance(child, dict) else {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _problem(document: JsonDocument, pointer: Pointer, message: str) -> Problem:
    key = document.key_span(pointer)
    span = document.span(pointer) if key is None or pointer[-1] == "level" else key
    fix = mend.remove(document, pointer)
    return Problem(document.path, span, "config.scope", Severity.WARNING, message, fix)
