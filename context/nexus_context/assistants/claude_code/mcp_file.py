"""Reads `.mcp.json` as Claude Code does: which of its servers are started, and why the others are not.

1. The file must be strict JSON with the key `mcpServers`. Otherwise it has no servers.
2. A server whose entry has a value of a wrong type is skipped silently; the others are started. A server with
   an address needs `type`. Keys that Claude Code does not know, such as `disabled`, have no effect.
3. Some names are reserved for Claude Code's own servers.

Source: Claude Code 2.1.330, by its requests with servers of each kind.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.server_checks import misnamed_key
from nexus_context.assistants.reading.settings import read_document
from nexus_context.config.check import Node, conform
from nexus_context.errors import Edit, Fix, Problem, Severity, Span
from nexus_context.text.json import JsonDocument

NAME = ".mcp.json"
UNREAD_NAMES = (os.path.join(".claude", "mcp.json"), "mcp.json")
"""What people write, and no program reads."""
RESERVED = frozenset({"", "ide", "workspace", "computer-use", "claude-in-chrome", "claude-preview"})
_TEXTS: Node = {"type": "object", "additionalProperties": {"type": "string"}}
_STDIO: Node = {
    "type": "object",
    "required": ["command"],
    "properties": {
        "command": {"type": "string", "minLength": 1},
        "args": {"type": "array", "items": {"type": "string"}},
        "env": _TEXTS,
        "timeout": {"type": "number"},
    },
}
_REMOTE: Node = {
    "type": "object",
    "required": ["url"],
    "properties": {"url": {"type": "string"}, "headers": _TEXTS, "timeout": {"type": "number"}},
}
_TYPES: Mapping[str, Node] = {
    "stdio": _STDIO,
    **dict.fromkeys(("http", "streamable-http", "sse", "ws"), _REMOTE),
}
_MEANINGLESS = ("disabled", "enabled")


class McpFile(msgspec.Struct, frozen=True):
    """The servers of a file. `servers` maps each name to its entry, `skipped` the names that are not started
    to a sentence that says why.
    """

    servers: Mapping[str, Any] = {}
    skipped: Mapping[str, str] = {}
    problems: tuple[Problem, ...] = ()


def read_mcp_file(disk: Disk, path: str) -> McpFile:
    """Read a `.mcp.json`, or the `managed-mcp.json` of an organization. A missing or empty file has no
    servers.
    """
    document = read_document(disk, path)
    if document is None or not document.text.strip():
        return McpFile()
    if problem := _refused(document):
        return McpFile(problems=(problem,))
    servers: dict[str, Any] = document.value["mcpServers"]
    skipped: dict[str, str] = {}
    problems: list[Problem] = []
    for name, entry in servers.items():
        problem = _entry_problem(document, name, entry) or _sentence_problem(document, name, entry)
        if problem is not None:
            skipped[name] = problem.message
            problems.append(problem)
        else:
            problems += _meaningless_keys(document, name, entry)
    return McpFile(servers, skipped, tuple(problems))


def check_unread_files(disk: Disk, folder: str) -> Iterator[Problem]:
    """Report files of the folder that list MCP servers although no program reads them."""
    for name in UNREAD_NAMES:
        path = os.path.join(folder, name)
        document = read_document(disk, path) if disk.is_file(path) else None
        if document is not None and isinstance(document.value, dict) and "mcpServers" in document.value:
            message = f"No program reads {name}. Claude Code reads the servers of a project in {NAME}."
            span = document.key_span(("mcpServers",)) or Span(0, 0)
            yield Problem(path, span, "assistant.no-effect", Severity.WARNING, message=message)


def _refused(document: JsonDocument) -> Problem | None:
    """Explain why Claude Code reads no server of a file."""
    syntax = [problem for problem in document.problems if problem.severity is Severity.ERROR]
    first_problem = min(syntax, key=lambda problem: problem.span) if syntax else None
    span, message, fix = Span(0, 0), "It needs `mcpServers`, an object.", None
    value = document.value if isinstance(document.value, dict) else {}
    if first_problem is not None:
        span, message, fix = first_problem.span, first_problem.message, first_problem.fix
    elif isinstance(value.get("mcpServers"), dict):
        return None
    elif isinstance(value.get("servers"), dict):
        span = document.key_span(("servers",)) or span
        message = "`servers` is a key of VS Code; Claude Code reads `mcpServers`."
        fix = Fix("Write `mcpServers`", (Edit(span, '"mcpServers"'),))
    elif "mcpServers" in value:
        span = document.span(("mcpServers",))
    message = f"Claude Code reads no server of this file. {message}"
    return Problem(document.path, span, "assistant.void", Severity.ERROR, message=message, fix=fix)


def _entry_problem(document: JsonDocument, name: str, entry: Any) -> Problem | None:
    """Explain why Claude Code skips a server."""
    span = document.key_span(("mcpServers", name)) or Span(0, 0)
    fix = None
    kind = entry.get("type", "stdio") if isinstance(entry, dict) else "stdio"
    if name in RESERVED:
        message = f"`{name}` is a name of its own. Rename the server." if name else "It has no name."
    elif isinstance(entry, dict) and "type" not in entry and "url" in entry and "command" not in entry:
        message = "A server with `url` needs `type`: `http` or `sse`."
        start = document.span(("mcpServers", name)).start + 1
        fix = Fix('Add `"type": "http"`', (Edit(Span(start, start), '"type": "http", '),))
    elif not isinstance(kind, str) or kind not in _TYPES:
        message = "`type` must be stdio, http, streamable-http, sse or ws."
        span = document.span(("mcpServers", name, "type"))
    else:
        problems = conform(document, ("mcpServers", name), _TYPES[kind], family="assistant")
        if not problems:
            return None
        first_problem = min(problems, key=lambda problem: problem.span)
        span, message, fix = first_problem.span, first_problem.message, first_problem.fix
        if isinstance(entry, dict) and not {"command", "url"}.intersection(entry):
            before_url = "" if "type" in entry else '"type": "http", '
            misnamed = misnamed_key(document, ("mcpServers", name), entry, before_url=before_url)
            if misnamed is not None:
                span, message, fix = misnamed.span, misnamed.remedy, misnamed.fix
    message = f"Claude Code skips the server {name!r}. {message}"
    return Problem(document.path, span, "assistant.no-effect", Severity.WARNING, message=message, fix=fix)


def _sentence_problem(document: JsonDocument, name: str, entry: dict[str, Any]) -> Problem | None:
    """Report a command with its arguments in one text. A path may have blanks in it, a name has none."""
    command = entry["command"] if entry.get("type", "stdio") == "stdio" else ""
    program, *arguments = command.split() or [""]
    if not arguments or any(mark in program for mark in "/\\$"):
        return None
    span = document.span(("mcpServers", name, "command"))
    message = f"Claude Code cannot start {name!r}: `command` is one program. Put the rest into `args`."
    return Problem(document.path, span, "assistant.no-effect", Severity.WARNING, message=message)


def _meaningless_keys(document: JsonDocument, name: str, entry: dict[str, Any]) -> Iterator[Problem]:
    for key in _MEANINGLESS:
        if entry.get(key) is (key == "disabled"):
            message = (
                f"Claude Code ignores `{key}`: the server {name!r} starts. To turn it off, add its name to "
                "`disabledMcpjsonServers` in settings."
            )
            span = document.key_span(("mcpServers", name, key)) or Span(0, 0)
            yield Problem(document.path, span, "assistant.no-effect", Severity.WARNING, message=message)
