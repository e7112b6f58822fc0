"""Read the MCP servers of one file, in any of its three forms, and report what is wrong with them.

1. The form is `mcpServers` if that is not empty, else `servers`; in a file with both, the one that is not
   read gets a warning.
2. `command` may be a text or a list; `args` follow it. A missing `type` is derived from `command` or `url`.
3. A server without exactly one usable transport, or with a value of a wrong type, is reported and left out.
4. If two servers of a file have the same name, the first one counts, and the second is an error.
5. References such as `${VAR}` are checked but not resolved: that happens when the server is started.
"""

import functools
import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from nexus_context.config import fixes
from nexus_context.config.check import (
    JSONC,
    MCP_SCHEMA,
    Node,
    beside_syntax,
    conform,
    load_schema,
    nothing_in,
)
from nexus_context.config.fast_check import COMMENT_PREFIX
from nexus_context.config.mcp_checks import FileFacts, check_server
from nexus_context.config.package_runners import InstalledLookup, InstalledPackage
from nexus_context.errors import Problem, Related, Severity, Span
from nexus_context.text.json import JsonDocument, Pointer

Transport = Literal["stdio", "http", "sse"]
Form = Literal["list", "vscode", "claude"]

_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}
_ROOTS = ("mcpServers", "servers")  # the first that is not empty counts
MOST_SERVERS = 1_000  # of one file; those after that do not count
MOST_PROBLEMS = 1000  # of one file; the servers after that are not read
_NODES = {"list": "listServer", "vscode": "vscodeServer", "claude": "claudeServer"}


class McpServer(msgspec.Struct, frozen=True):
    """One MCP server as written: nothing resolved, nothing started.

    `origin` is the layer's name, `project` for `.mcp.json` or `vscode`. `span` is the server's object and
    `name_span` its name in the file, quotes included. `command` is empty for servers with a `url`. `env` and
    `headers` may contain secrets: print names only. `shadowed_by` is the origin of the server of the same
    name that counts instead; None if this one counts.
    """

    name: str
    origin: str
    path: str
    span: Span
    name_span: Span
    type: Transport
    command: tuple[str, ...] = ()
    url: str | None = None
    env: dict[str, str] = {}
    headers: dict[str, str] = {}
    cwd: str | None = None
    enabled: bool = True
    shadowed_by: str | None = None

    def __repr__(self) -> str:
        return f"McpServer({self.name!r}, {self.origin!r}, {self.path!r})"  # no value: it may be in a log


class _Entry(msgspec.Struct, frozen=True):
    """A server's place in the file, before the server is read."""

    name: str
    name_span: Span
    pointer: Pointer
    value: Any


def read_servers(
    document: JsonDocument,
    *,
    origin: str,
    folder: str,
    environ: Mapping[str, str],
    which: Callable[[str], str | None],
    installed: InstalledLookup = lambda _package, _directory: InstalledPackage(),
    is_foreign: bool = False,
) -> tuple[tuple[McpServer, ...], tuple[Problem, ...]]:
    """Return the servers of one file in order, and everything wrong with them in the order of the text.

    `folder` is the absolute directory at which relative paths start. `environ` contains the variables that
    are set. `which` finds a program by name or absolute path; `installed` tells what this machine has of a
    package. If `is_foreign`, the file belongs to another tool, and an unknown key is only a warning. An empty
    file has no servers.
    """
    if nothing_in(document):
        return (), ()
    unknown = Severity.WARNING if is_foreign else Severity.ERROR
    problems = _root_problems(document, unknown)
    if not isinstance(document.value, dict):
        return (), tuple(problems)
    form, more_problems = _form(document)
    problems += more_problems
    entries, more_problems = _entries(document, form)
    problems += more_problems
    if len(entries) > MOST_SERVERS:
        problems.append(_too_many(document, entries[MOST_SERVERS].name_span))
        del entries[MOST_SERVERS:]
    file_facts = FileFacts(
        folder=folder,
        environ=environ,
        which=which,
        installed=installed,
        inputs=_inputs(document.value),
        form=form,
        is_foreign=is_foreign,
    )
    node = load_schema(MCP_SCHEMA)["definitions"][_NODES[form]]
    servers = []
    for entry in entries:
        if len(problems) > MOST_PROBLEMS:
            break
        entry_problems = conform(document, entry.pointer, node, family="mcp", unknown=unknown)
        server = None
        if isinstance(entry.value, dict):
            server, more_problems = _server(document, entry, origin, file_facts)
            entry_problems += more_problems
        problems += entry_problems
        codes = {problem.code for problem in entry_problems}
        if server is not None and codes.isdisjoint({"mcp.type", "mcp.required"}):
            servers.append(server)
    problems = beside_syntax(document, problems)
    return tuple(servers), tuple(sorted(problems, key=lambda problem: problem.span))


def _too_many(document: JsonDocument, span: Span) -> Problem:
    message = (
        f"There are more than {MOST_SERVERS:,} servers in this file: this one and those after it do not "
        "count. Remove some."
    )
    return Problem(document.path, span, "mcp.too-many", Severity.WARNING, message=message)


def shadow(servers: Sequence[McpServer]) -> tuple[McpServer, ...]:
    """Return the servers in layer order, each marked if a later one of the same name replaces it.

    The mark is `shadowed_by`.
    """
    winners = {server.name: server for server in servers}
    return tuple(
        server
        if winners[server.name] is server
        else msgspec.structs.replace(server, shadowed_by=winners[server.name].origin)
        for server in servers
    )


def shadow_hints(
    servers: Sequence[McpServer], is_as_read: Callable[[str], bool] = lambda _: True
) -> tuple[Problem, ...]:
    """Return a hint for each server that `shadow` marked. Its related place is the server that counts.

    `is_as_read` tells whether the servers of a file are those of its current text. Those of a stale file may
    have been removed from it: they get no hint.
    """
    winners = {server.name: server for server in servers if server.shadowed_by is None}
    hints = []
    for server in servers:
        winner = winners.get(server.name)
        if server.shadowed_by is None or winner is None or not is_as_read(server.path):
            continue
        name = fixes.quoted(server.name)
        message = f"Nexus does not use {name} of this file: the server of {winner.origin} has the same name."
        winner_location = Related(winner.path, winner.name_span, "Nexus uses this one.")
        related = (winner_location,) if is_as_read(winner.path) else ()
        hints.append(
            Problem(
                server.path,
                server.name_span,
                "mcp.shadowed",
                Severity.HINT,
                message=message,
                fix=None,
                related=related,
            )
        )
    return tuple(hints)


def syntax_problems(document: JsonDocument, others: Sequence[Problem], *, jsonc: bool) -> tuple[Problem, ...]:
    """Return the syntax problems of an MCP file that count, given its other problems.

    Left out are duplicate keys that `others` reports as servers of one name and, with `jsonc`, comments and
    trailing commas, which VS Code allows in its files.
    """
    named = {problem.span for problem in others if problem.code == "mcp.duplicate-name"}
    return tuple(
        problem
        for problem in document.problems
        if not (problem.code == "json.duplicate-key" and problem.span in named)
        and not (jsonc and problem.code in JSONC)
    )


def _root_problems(document: JsonDocument, unknown: Severity) -> list[Problem]:
    problems = conform(document, (), _root_node(), family="mcp", unknown=unknown)
    value = document.value
    return [
        msgspec.structs.replace(problem, message='A server belongs in "mcpServers".', fix=None)
        if problem.code == "mcp.unknown-key" and _is_server(value.get(_key_at(document, problem.span)))
        else problem
        for problem in problems
    ]


def _key_at(document: JsonDocument, span: Span) -> str:
    return str(_string(document.text[span.start : span.end]))


def _is_server(value: Any) -> bool:
    return isinstance(value, dict) and ("command" in value or "url" in value)


@functools.cache
def _root_node() -> Node:
    """The schema of the root alone; servers are checked one by one by their form."""
    schema = load_schema(MCP_SCHEMA)
    properties = {
        key: {"type": child["type"]} if key in {"servers", "mcpServers"} else child
        for key, child in schema["properties"].items()
    }
    properties["inputs"] = properties["inputs"] | {"items": schema["definitions"]["input"]}
    return schema | {"properties": properties}


def _form(document: JsonDocument) -> tuple[Form, list[Problem]]:
    value = document.value
    fallback_form: Form = "vscode" if isinstance(value.get("servers"), dict) else "list"
    claude, servers = _names(value.get("mcpServers")), _names(value.get("servers"))
    form = "claude" if claude else fallback_form
    if not (claude or servers) or not all(isinstance(value.get(key), dict | list) for key in _ROOTS):
        return form, []
    read, unread = _ROOTS if claude else _ROOTS[::-1]
    fix = None
    if claude and servers:
        remedy = "Move its servers there."
    else:
        remedy = "It is empty: remove it."
        fix = None if value[unread] else fixes.remove(document, (unread,))  # it contains comments
    span = document.key_span((unread,)) or document.span((unread,))
    message = f'"{unread}" is not read: the file has "{read}", too. {remedy}'
    key = document.key_span((read,)) or document.span((read,))
    related = (Related(document.path, key, "These are read."),)
    return form, [
        Problem(
            document.path, span, "mcp.both-forms", Severity.WARNING, message=message, fix=fix, related=related
        )
    ]


def _names(value: Any) -> bool:
    if isinstance(value, dict):
        return any(not key.startswith(COMMENT_PREFIX) for key in value)
    return bool(value) and isinstance(value, list)


def _entries(document: JsonDocument, form: Form) -> tuple[list[_Entry], list[Problem]]:
    if form == "list":
        return _listed(document)
    root = "mcpServers" if form == "claude" else "servers"
    values = document.value.get(root)
    entries = []
    for name, value in values.items() if isinstance(values, dict) else ():
        if not name.startswith(COMMENT_PREFIX):
            pointer = (root, name)
            span = document.key_span(pointer) or document.span(pointer)
            entries.append(_Entry(name, span, pointer, value))
    return entries, _duplicate_keys(document, root, values)


def _listed(document: JsonDocument) -> tuple[list[_Entry], list[Problem]]:
    entries: dict[str, _Entry] = {}
    nameless: list[_Entry] = []
    problems = []
    values = document.value.get("servers")
    for index, value in enumerate(values) if isinstance(values, list) else ():
        pointer = ("servers", index)
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or not name:
            nameless.append(_Entry("", document.span(pointer), pointer, value))
            continue
        entry = _Entry(name, document.span((*pointer, "name")), pointer, value)
        if name in entries:
            problems.append(_duplicate(document, name, entry.name_span, entries[name].name_span))
        else:
            entries[name] = entry
    return sorted([*entries.values(), *nameless], key=lambda entry: entry.name_span), problems


def _duplicate_keys(document: JsonDocument, root: str, values: Any) -> list[Problem]:
    if not isinstance(values, dict):
        return []
    bodies = sorted(document.span((root, name)) for name in values)
    list_span = document.span((root,))
    problems = []
    for problem in document.problems:
        if problem.code != "json.duplicate-key" or not list_span.start < problem.span.start < list_span.end:
            continue
        name = _string(document.text[problem.span.start : problem.span.end])
        index = bisect_left(bodies, problem.span) - 1
        nested = index >= 0 and problem.span.start < bodies[index].end
        if name in values and not nested and problem.related:
            problems.append(_duplicate(document, str(name), problem.span, problem.related[0].span))
    return problems


def _duplicate(document: JsonDocument, name: str, span: Span, first_span: Span) -> Problem:
    message = f"There are two servers {fixes.quoted(name)} in this file: rename or remove one of them."
    related = (Related(document.path, first_span, "The first one is here."),)
    return Problem(
        document.path, span, "mcp.duplicate-name", Severity.ERROR, message=message, fix=None, related=related
    )


def _server(
    document: JsonDocument, entry: _Entry, origin: str, around: FileFacts
) -> tuple[McpServer | None, list[Problem]]:
    value = entry.value
    problems = list(_transport_problems(document, entry))
    problems += check_server(document, entry.pointer, value, entry.name or "MCP", around=around)
    if not entry.name or any(problem.code in _UNUSABLE for problem in problems):
        return None, problems
    command = value.get("command") or ()  # an empty text is not a program
    server = McpServer(
        name=entry.name,
        origin=origin,
        path=document.path,
        span=document.span(entry.pointer),
        name_span=entry.name_span,
        type=_TRANSPORTS.get(_declared(value), "stdio" if command else "http"),
        command=_texts([command] if isinstance(command, str) else command, value.get("args")),
        url=value["url"] if isinstance(value.get("url"), str) else None,
        env=_map(value.get("env")),
        headers=_map(value.get("headers")),
        cwd=value["cwd"] if isinstance(value.get("cwd"), str) else None,
        enabled=value.get("enabled", True) is not False and value.get("disabled") is not True,
    )
    return server, problems


_UNUSABLE = frozenset({"mcp.no-transport", "mcp.two-transports", "mcp.bad-url", "mcp.unsupported"})


def _transport_problems(document: JsonDocument, entry: _Entry) -> Iterator[Problem]:
    value, path = entry.value, document.path
    declared = _declared(value)
    command, url = value.get("command"), value.get("url")
    if declared in {"ws", "sdk"}:
        message = f'Nexus cannot start servers of type "{declared}": it knows stdio, http and sse.'
        span = document.span((*entry.pointer, "type"))
        yield Problem(path, span, "mcp.unsupported", Severity.WARNING, message=message)
    elif command and url:
        message = '"command" and "url" exclude each other: remove one of them.'
        key = document.key_span((*entry.pointer, "url")) or entry.name_span
        yield Problem(path, key, "mcp.two-transports", Severity.ERROR, message=message)
    elif not command and not url:
        message = f'{fixes.quoted(entry.name)} needs "command" to be started or "url" to be reached.'
        yield Problem(path, _start(entry), "mcp.no-transport", Severity.ERROR, message=message)
    elif declared in _TRANSPORTS and (_TRANSPORTS[declared] == "stdio") != bool(command):
        needed = "command" if command is None else "url"
        message = f'{fixes.quoted(entry.name)} is of type "{declared}", which needs "{needed}".'
        span = document.span((*entry.pointer, "type" if "type" in value else "transport"))
        yield Problem(path, span, "mcp.no-transport", Severity.ERROR, message=message)


def _declared(value: Mapping[str, Any]) -> str:
    declared = value.get("type", value.get("transport"))
    return declared if isinstance(declared, str) else ""


def _start(entry: _Entry) -> Span:
    """The name of a server, or the first character of a nameless one."""
    return entry.name_span if entry.name else Span(entry.name_span.start, entry.name_span.start + 1)


def _inputs(value: Mapping[str, Any]) -> frozenset[str]:
    inputs = value.get("inputs")
    names = (item.get("id") for item in inputs if isinstance(item, dict)) if isinstance(inputs, list) else ()
    return frozenset(name for name in names if isinstance(name, str))


def _texts(*values: Any) -> tuple[str, ...]:
    return tuple(
        item for value in values if isinstance(value, list) for item in value if isinstance(item, str)
    )


def _map(value: Any) -> dict[str, str]:
    """Names and values as texts; null, which unsets a variable in VS Code, is left out."""
    if not isinstance(value, dict):
        return {}
    return {
        key: item if isinstance(item, str) else json.dumps(item)
        for key, item in value.items()
        if not key.startswith(COMMENT_PREFIX) and isinstance(item, str | int | float)
    }


def _string(text: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
