"""Converts the servers of other programs' MCP files into a `mcp.json` of Nexus.

1. A name is taken once: the file that counts today (`.mcp.json` before `.vscode/mcp.json`) gives it.
2. No secret is copied. A literal secret, and a literal value whose name says that it is one, stays in its
   file; the copy refers to an environment variable, which the user has to set.
3. A server that cannot be taken whole (it has errors, or a key that would be lost) is left where it is.
4. `inputs` that the servers refer to come along.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.config.fast_check import COMMENT_PREFIX
from nexus_context.config.mcp import McpServer, read_servers
from nexus_context.config.mcp_checks import ServerText, server_texts, variable_name
from nexus_context.config.references import references_in
from nexus_context.errors import Span
from nexus_context.text.json import JsonDocument
from nexus_context.text.redact import says_secret, secrets_in

_KEYS = frozenset(
    {"name", "type", "command", "args", "url", "env", "headers", "cwd", "enabled", "disabled", "description"}
)
_REMOTE = ("authorization", "cookie", "proxy-authorization")
_SCHEME = ("bearer ", "basic ", "token ")


class AdoptedServer(msgspec.Struct, frozen=True):
    """A server whose settings were copied from the file at `path`.

    `variables` names the environment variables that the user has to set: their values are not copied.
    """

    name: str
    path: str
    variables: tuple[str, ...] = ()


class LeftServer(msgspec.Struct, frozen=True):
    """A server that is not taken over, and why. If `name` is empty, it is a whole file."""

    name: str
    path: str
    reason: str


class Adoption(msgspec.Struct, frozen=True):
    """The text of the new file, the servers that it takes over, and those that it leaves."""

    text: str
    adopted: tuple[AdoptedServer, ...]
    left: tuple[LeftServer, ...]


def adopt_servers(documents: Sequence[JsonDocument], folder: str) -> Adoption:
    """Take over the servers of these files into the text of a `mcp.json` for an absolute folder.

    The most important of the `documents` comes first.
    """
    entries: list[dict[str, Any]] = []
    adopted: dict[str, AdoptedServer] = {}
    left_servers: list[LeftServer] = []
    inputs: dict[str, Any] = {}
    variables: dict[str, str] = {}  # name and value, so that two values never share a name
    for document in documents:
        servers, _ = read_servers(
            document,
            origin="local",
            folder=folder,
            environ={},
            which=lambda command: command,
            is_foreign=True,
        )
        raw = _raw_entries(document.value)
        valid = {server.name: server for server in servers}
        left_servers += [
            LeftServer(name, document.path, "It has errors: see nexus check.")
            for name in raw
            if name not in valid
        ]
        for name, server in valid.items():
            reason = _obstacle(raw.get(name, {}), adopted.get(name))
            if reason is not None:
                left_servers.append(LeftServer(name, document.path, reason))
                continue
            entry = _entry(server)
            names = _refer(entry, name, variables)
            entries.append(entry)
            adopted[name] = AdoptedServer(name, document.path, tuple(names))
            inputs |= _inputs(entry, document.value)
    value: dict[str, Any] = {"servers": entries}
    if inputs:
        value["inputs"] = list(inputs.values())
    return Adoption(
        json.dumps(value, indent=2, ensure_ascii=False) + "\n", tuple(adopted.values()), tuple(left_servers)
    )


def _raw_entries(value: Any) -> dict[str, Mapping[str, Any]]:
    """The servers by name, as they are written."""
    if not isinstance(value, dict):
        return {}
    servers = value.get("mcpServers") or value.get("servers") or {}
    if isinstance(servers, list):
        return {
            entry["name"]: entry
            for entry in servers
            if isinstance(entry, dict) and isinstance(entry.get("name"), str)
        }
    items = servers.items() if isinstance(servers, dict) else ()
    return {
        name: entry
        for name, entry in items
        if isinstance(entry, dict) and not name.startswith(COMMENT_PREFIX)
    }


def _obstacle(raw: Mapping[str, Any], taken: AdoptedServer | None) -> str | None:
    """Why a server is left where it is; None: it is not."""
    if taken is not None:
        return f"{taken.path} has a server of this name, which counts."
    lost = sorted(key for key in raw if key not in _KEYS and not key.startswith(COMMENT_PREFIX))
    return f"This would be lost: {', '.join(lost)}." if lost else None


def _entry(server: McpServer) -> dict[str, Any]:
    """The server in the form of a list."""
    entry: dict[str, Any] = {"name": server.name}
    if server.url is None:
        entry["command"] = list(server.command)
    else:
        entry |= {"type": server.type, "url": server.url}
    values = msgspec.structs.asdict(server)
    entry |= {key: values[key] for key in ("env", "headers", "cwd") if values[key]}
    return entry if server.enabled else entry | {"enabled": False}


def _refer(entry: dict[str, Any], server: str, variables: dict[str, str]) -> list[str]:
    """Replace every literal secret by a reference, in place; returns the variables' names, sorted."""
    names: list[str] = []
    for value in list(server_texts((), entry)):
        text = value.text
        for span in reversed(_secrets(value)):
            name = _free_name(variable_name(value, server), server, text[span.start : span.end], variables)
            names.append(name)
            text = f"{text[: span.start]}${{{name}}}{text[span.end :]}"
        container: Any = entry
        for step in value.pointer[:-1]:
            container = container[step]
        container[value.pointer[-1]] = text
    return sorted(set(names))


def _secrets(value: ServerText) -> tuple[Span, ...]:
    """The ranges of a text that must not be copied (rule 2)."""
    text, name = value.text, value.name.strip("-")
    start = len(value.name) + 1 if value.name and text.startswith(f"{value.name}=") else 0
    spans = tuple(Span(span.start + start, span.end + start) for span in secrets_in(text[start:], name))
    if spans:
        return spans
    is_named = says_secret(name) or name.lower() in _REMOTE
    # a reference is no secret, but its default may be one
    literal = text[start:]
    references = references_in(literal)
    if not is_named or not literal or (references and all(not reference.default for reference in references)):
        return ()
    scheme = next((len(prefix) for prefix in _SCHEME if literal.lower().startswith(prefix)), 0)
    return (Span(start + scheme, len(text)),)


def _free_name(name: str, server: str, secret: str, variables: dict[str, str]) -> str:
    prefix = "".join(char if char.isascii() and char.isalnum() else "_" for char in server).upper()
    candidates = [
        name,
        f"MCP_{prefix}_{name}",
        *(f"MCP_{prefix}_{name}_{number}" for number in range(2, 1_000)),
    ]
    free = next(candidate for candidate in candidates if variables.get(candidate, secret) == secret)
    variables[free] = secret
    return free


def _inputs(entry: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """The inputs that an entry refers to, by id."""
    inputs = value.get("inputs") if isinstance(value, dict) else None
    ids = {
        reference.name
        for text in server_texts((), entry)
        for reference in references_in(text.text)
        if reference.kind == "input"
    }
    rows = [row for row in inputs if isinstance(row, dict)] if isinstance(inputs, list) else []
    return {row["id"]: row for row in rows if isinstance(row.get("id"), str) and row["id"] in ids}
