"""Tells which keys a settings file may have, with what is known of each: documentation, default, values.

Keys are those of Nexus, of one program, or of a file that only names MCP servers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.views.mcp_servers import SERVER_KEYS
from nexus_context.assistants.views.setting_docs import setting_doc
from nexus_context.config.check import CONFIG_SCHEMA, MCP_SCHEMA, Node, load_schema

MCP_SERVERS = "mcp"
"""The name of the keys of a file that only names MCP servers."""
_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "object",
}


class SettingKey(NamedTuple):
    """A settings key: its name, its JSON Schema, and its documentation, empty where there is none.

    `default` is None where it is not known.
    """

    name: str
    schema: Node
    text: str
    default: Any

    @property
    def kind(self) -> str:
        """The type of the key's value, in words."""
        kinds = self.schema.get("type", ())
        names = [kinds] if isinstance(kinds, str) else kinds
        return " or ".join(_WORDS[name] for name in names if name in _WORDS)

    @property
    def values(self) -> list[Any]:
        """The values that the key may have, if they are few, else an empty list."""
        items = self.schema.get("items")
        choices = self.schema.get("enum") or (items.get("enum") if isinstance(items, Mapping) else None)
        if choices is not None:
            return list(choices)
        return [True, False] if self.schema.get("type") == "boolean" else []


def key_at(name: str, keys: Sequence[str | int]) -> SettingKey | None:
    """Return the key at a path in the settings of `name`, which is a view or MCP_SERVERS. None if it is not
    described.
    """
    node = _node(_schema(name), tuple(keys))
    return _key(name, tuple(keys), node) if keys and node is not None else None


def keys_below(name: str, keys: Sequence[str | int]) -> Iterator[SettingKey]:
    """Yield the keys that the object at a path may have."""
    root = _schema(name)
    node = _node(root, tuple(keys))
    for key, child in (node or {}).get("properties", {}).items():
        if not key.startswith(("$", "_comment")):
            yield _key(name, (*keys, key), _resolve(root, child))


def _schema(name: str) -> Node:
    if name == MCP_SERVERS:
        return load_schema(MCP_SCHEMA)
    return PROGRAMS[name].keys_schema if name in PROGRAMS else load_schema(CONFIG_SCHEMA)


def _key(name: str, keys: Sequence[str | int], node: Node) -> SettingKey:
    doc = setting_doc(name, [str(key) for key in keys]) if name in PROGRAMS else None
    if doc is not None:
        return SettingKey(str(keys[-1]), node, doc.text, doc.default)
    return SettingKey(str(keys[-1]), node, node.get("description", ""), node.get("default"))


def _node(root: Node, keys: Sequence[str | int]) -> Node | None:
    node = root
    for key in keys:
        child = node.get("properties", {}).get(str(key)) if isinstance(key, str) else node.get("items")
        if child is None and isinstance(key, str):
            child = _by_pattern(node, key) or node.get("additionalProperties")
        if not isinstance(child, Mapping):
            return None
        node = _resolve(root, child)
    return node


def _by_pattern(node: Node, key: str) -> Any:
    patterns: Mapping[str, Any] = node.get("patternProperties", {})
    return next((child for pattern, child in patterns.items() if re.search(pattern, key)), None)


def _resolve(root: Node, node: Any) -> Node:
    """A schema itself, or the definition that it refers to."""
    name = node.get("$ref", "") if isinstance(node, Mapping) else ""
    resolved = root.get("definitions", {}).get(name.rpartition("/")[2], {}) if name else node
    return dict(resolved) if isinstance(resolved, Mapping) else {}


def is_server(keys: Sequence[str | int]) -> bool:
    """Whether a path of keys leads to the entry of an MCP server."""
    return len(keys) > 1 and keys[-2] in SERVER_KEYS and isinstance(keys[-1], str)
