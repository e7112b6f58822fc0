"""What a file inside a workspace may not set: such a file comes with the code, so it may only tighten.

1. `provider.base_url`, `.headers`, `.api_key_env` and everything in `ledger`: global file only.
2. A `permissions.level` wider than the global one, of the folder or of an agent.
3. `context.ancestor_depth` in an ancestor: it must be known before ancestors are read.

Ignored values are dropped from their layer with a warning that says which file may set them.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from nexus_context.config import mend
from nexus_context.config.accept import COMMENT_PREFIX
from nexus_context.config.check import describe
from nexus_context.config.merge import ConfigLayer, Pointer
from nexus_context.errors import Problem, Severity
from nexus_context.jsontext import JsonDocument

LEVELS = ("worker", "sandboxed", "trusted", "yolo")  # narrowest first

_GLOBAL_ONLY = ("base_url", "headers", "api_key_env")


def restrict(
    layers: Sequence[ConfigLayer], *, global_path: str
) -> tuple[tuple[ConfigLayer, ...], tuple[Problem, ...]]:
    """The layers with what they may not set dropped, and a warning for each such value.

    `global_path` is the absolute path of the global config.json, which need not exist.
    """
    level = _global_level(layers)
    kept: list[ConfigLayer] = []
    problems: list[Problem] = []
    for layer in layers:
        found: list[tuple[Pointer, str]] = []
        if in_workspace(layer.name):
            found += _global_settings(layer.document.value, global_path)
            found += _wider_levels(layer.document.value, level, global_path)
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


def _global_settings(value: Any, global_path: str) -> list[tuple[Pointer, str]]:
    provider = _object(value, "provider")
    pointers: list[tuple[str, str]] = [("provider", key) for key in _GLOBAL_ONLY if key in provider]
    pointers += [("ledger", key) for key in _object(value, "ledger") if not key.startswith(COMMENT_PREFIX)]
    reason = "a file inside a workspace must not decide where your requests, keys and sessions go"
    return [
        (pointer, f'"{pointer[1]}" is ignored here: {reason}. Set it in {global_path}.')
        for pointer in pointers
    ]


def _wider_levels(value: Any, level: str, global_path: str) -> list[tuple[Pointer, str]]:
    places: list[tuple[Pointer, Any]] = [
        (("permissions", "level"), _object(value, "permissions").get("level")),
        *(
            (("agents", name, "permissions", "level"), _object(agent, "permissions").get("level"))
            for name, agent in _object(value, "agents").items()
            if isinstance(agent, dict) and "permissions" in agent and not name.startswith(COMMENT_PREFIX)
        ),
    ]
    return [
        (
            pointer,
            f'"{found}" is ignored here: it is wider than the global "{level}". Set it in {global_path}.',
        )
        for pointer, found in places
        if found in LEVELS and LEVELS.index(found) > LEVELS.index(level)
    ]


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


def _problem(document: JsonDocument, pointer: Pointer, message: str) -> Problem:
    key = document.key_span(pointer)
    span = document.span(pointer) if key is None or pointer[-1] == "level" else key
    fix = mend.remove(document, pointer)
    return Problem(document.path, span, "config.scope", Severity.WARNING, message, fix)
