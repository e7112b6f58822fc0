"""Check one MCP server of a file. No value of env or headers appears in a message."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from nexus_context.config.fast_check import COMMENT_PREFIX
from nexus_context.config.package_runners import (
    InstalledLookup,
    explain_unpinned,
    find_unpinned,
)
from nexus_context.config.references import Reference, references_in, without_references
from nexus_context.errors import Edit, Fix, Problem, Severity, Span
from nexus_context.text.json import JsonDocument, Pointer
from nexus_context.text.redact import secrets_in

MOST_REFERENCES = 20  # of one value that are reported
# Patterns are strings: re compiles and keeps them on first use, not at import.
_URL = r"(https?)://(?:[^/?#@\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^/?#:@\s\[\]]+)(?::([0-9]{1,5}))?(?:[/?#]\S*)?\Z"
_LOCAL_URL = r"(?:unix|pipe):///\S+\Z"  # VS Code connects to sockets and named pipes
_LOOPBACK = r"(?i)(?:localhost|.+\.localhost|127\.[0-9.]+|\[::1\]|0\.0\.0\.0)\.?\Z"
_ASSIGNMENT = r"(-{0,2}[A-Za-z_][A-Za-z0-9_.-]{0,79})="
_PROGRAM = r"(?:[A-Za-z]:)?[\w./\\~+@-]{1,200}"
_NAME_CHARACTER = r"[^A-Za-z0-9]+"


class FileFacts(msgspec.Struct, frozen=True):
    """What a file's servers are checked against. Relative paths start at `folder`, which is absolute."""

    folder: str
    environ: Mapping[str, str]
    which: Callable[[str], str | None]
    installed: InstalledLookup
    inputs: frozenset[str]
    form: str
    is_foreign: bool


class ServerText(msgspec.Struct, frozen=True):
    """One text of a server with its place. `name` is that of its variable, header or option, or empty."""

    pointer: Pointer
    text: str
    name: str


def check_server(
    document: JsonDocument, pointer: Pointer, entry: Mapping[str, Any], name: str, around: FileFacts
) -> list[Problem]:
    """Return everything beyond the schema that is wrong with the server called `name` at `pointer`."""
    problems: list[Problem] = []
    if isinstance(entry.get("url"), str):
        problems += _url_problems(document, (*pointer, "url"), entry["url"], entry, around=around)
    problems += _command_problems(document, pointer, entry, around)
    problems += _package_problems(document, pointer, entry, around)
    for value in server_texts(pointer, entry):
        problems += [
            problem
            for reference in references_in(value.text)[:MOST_REFERENCES]
            for problem in _reference_problems(document, value, reference, around, server=name)
        ]
        problems += _secret_problems(document, value, name, around)
    return problems


def server_texts(pointer: Pointer, entry: Mapping[str, Any]) -> Iterator[ServerText]:
    """Yield all texts of the server at `pointer` that may hold references or secrets."""
    for key in ("command", "url", "cwd"):
        if isinstance(entry.get(key), str):
            yield ServerText((*pointer, key), entry[key], "")
    for key in ("command", "args"):
        option = ""
        for index, item in enumerate(entry[key]) if isinstance(entry.get(key), list) else ():
            if isinstance(item, str):
                assigned = re.match(_ASSIGNMENT, item)  # `--token=…`, `TOKEN=…`
                yield ServerText((*pointer, key, index), item, assigned[1] if assigned else option)
                option = item if item.startswith("-") else ""
    for key in ("env", "headers"):
        values = entry.get(key)
        for name, item in values.items() if isinstance(values, dict) else ():
            if isinstance(item, str) and not name.startswith(COMMENT_PREFIX):
                yield ServerText((*pointer, key, name), item, name)


def _url_problems(
    document: JsonDocument, pointer: Pointer, url: str, entry: Mapping[str, Any], around: FileFacts
) -> list[Problem]:
    if url.startswith("${") or entry.get("type") == "ws":
        return []
    # a digit is valid wherever a reference may be: in a host, a port or a path
    parsed = re.match(_URL, without_references(url, "1"))
    if parsed is None or int(parsed[3] or 0) > 65535:
        if around.form == "vscode" and re.match(_LOCAL_URL, url):
            return []
        message = '"url" is not a valid address: it must begin with http:// or https:// and a host.'
        return [_problem(document, pointer, "mcp.bad-url", Severity.ERROR, message=message)]
    host = url.partition("://")[2].rpartition("@")[2] or url.partition("://")[2]
    if parsed[1] == "https" or re.match(_LOOPBACK, parsed[2]) or host.startswith("${"):
        return []
    message = (
        '"url" uses http:// to another machine, where anyone on the way can read what is sent: use https://.'
    )
    start = document.span(pointer).start + 1
    fix = None
    if document.text.startswith("http://", start):
        fix = Fix("Use https://", (Edit(Span(start, start + len("http")), "https"),))
    return [_problem(document, pointer, "mcp.plain-http", Severity.WARNING, message=message, fix=fix)]


def _command_problems(
    document: JsonDocument, pointer: Pointer, entry: Mapping[str, Any], around: FileFacts
) -> list[Problem]:
    command, command_pointer = entry.get("command"), (*pointer, "command")
    if isinstance(command, list):
        command, command_pointer = (command[0] if command else None), (*command_pointer, 0)
    if not isinstance(command, str) or not command or "${" in command:
        return []
    if around.which(_search_name(command, entry.get("cwd"), around.folder)):
        return []
    program = command.split(" ", 1)[0]
    if program != command and around.which(program):
        message = f'There is no program of this name, but there is "{program}": move its arguments to "args".'
    # of a broken list the first item may be an argument
    elif document.ok and re.fullmatch(_PROGRAM, command):
        message = f'There is no program "{command}": install it, or give its full path.'
    else:  # the text may contain arguments, which may be secrets
        message = 'There is no such program: install it, or give its full path. Arguments belong in "args".'
    if secrets_in(message):
        message = "There is no such program: install it, or give its full path."
    return [_problem(document, command_pointer, "mcp.command-not-found", Severity.WARNING, message=message)]


def _package_problems(
    document: JsonDocument, pointer: Pointer, entry: Mapping[str, Any], around: FileFacts
) -> Iterator[Problem]:
    """A warning for each package of which another version may run tomorrow than was approved today."""
    command, places, words = entry.get("command"), list[Pointer](), list[str]()
    for key in ("command", "args"):
        value = entry.get(key)
        if isinstance(value, str) and key == "command":
            places.append((*pointer, key))
            words.append(value)
        for index, item in enumerate(value) if isinstance(value, list) else ():
            places.append((*pointer, key, index))
            words.append(item if isinstance(item, str) else "")
    if not command or not words:
        return
    directory = _working_directory(entry.get("cwd"), around.folder)
    for package in find_unpinned(words):
        installed = around.installed(package, directory)
        if installed.is_of_folder:
            continue
        value = ServerText(places[package.word], words[package.word], "")
        span = _inner_span(document, value, Span(package.start, len(value.text)))
        fix = None
        if installed.version is not None and _is_plain(document, value):
            edit = Edit(
                Span(span.start + package.version_start - package.start, span.end),
                f"{package.separator}{installed.version}",
            )
            fix = Fix(f"Pin version {installed.version}", (edit,))
        message = explain_unpinned(package, installed.version)
        yield Problem(document.path, span, "mcp.unpinned", Severity.WARNING, message=message, fix=fix)


def _working_directory(cwd: Any, folder: str) -> str:
    if isinstance(cwd, str) and cwd and "${" not in cwd:
        return cwd if cwd.startswith("/") else f"{folder}/{cwd}"
    return folder


def _search_name(command: str, cwd: Any, folder: str) -> str:
    """The program to search: a bare name as it is, a relative path from the server's working directory."""
    if "/" not in command or command.startswith("/"):
        return command
    return f"{_working_directory(cwd, folder).rstrip('/')}/{command}"


def _reference_problems(
    document: JsonDocument, value: ServerText, reference: Reference, around: FileFacts, *, server: str
) -> Iterator[Problem]:
    span = _inner_span(document, value, reference.span)
    if reference.kind == "variable" and reference.default is None and reference.name not in around.environ:
        # our own fix and `nexus init --adopt` write that; what is not ready is said elsewhere
        if re.fullmatch(rf"(?:MCP_\w+_)?{variable_name(value, server)}(?:_\d+)?", reference.name):
            return
        message = (
            f"The environment variable {reference.name} is not set where Nexus runs: set it for the program "
            f"that starts the server, or write ${{{reference.name}:-default}}."
        )
        yield Problem(document.path, span, "mcp.unset-variable", Severity.INFORMATION, message=message)
    elif reference.kind == "input" and reference.name not in around.inputs:
        message = f'There is no input "{reference.name}": add one with this "id" to "inputs".'
        yield Problem(document.path, span, "mcp.bad-reference", Severity.WARNING, message=message)
    elif reference.kind == "bad" or (reference.kind == "foreign" and not around.is_foreign):
        message = (
            "This reference is not understood: use ${VAR}, ${VAR:-default}, ${env:VAR}, "
            "${workspaceFolder} or ${input:id}."
        )
        yield Problem(document.path, span, "mcp.bad-reference", Severity.WARNING, message=message)


def _secret_problems(
    document: JsonDocument, value: ServerText, server: str, around: FileFacts
) -> Iterator[Problem]:
    prefix = len(value.name) + 1 if value.text.startswith(value.name + "=") else 0
    spans = [
        Span(span.start + prefix, span.end + prefix)
        for span in secrets_in(value.text[prefix:], value.name.strip("-"))
    ]
    if not spans:
        return
    name = variable_name(value, server)
    reference = f"${{env:{name}}}" if around.form == "vscode" else f"${{{name}}}"
    fix = None
    if len(spans) == 1:
        edit = Edit(_inner_span(document, value, spans[0]), reference)
        whole_edit = Edit(document.span(value.pointer), f'"{reference}"')
        fix = Fix(f"Replace by {reference}", (edit if _is_plain(document, value) else whole_edit,))
    message = (
        f"This looks like a secret: set it as the environment variable {name} and write {reference} here."
    )
    yield _problem(document, value.pointer, "mcp.secret", Severity.WARNING, message=message, fix=fix)


def variable_name(value: ServerText, server: str) -> str:
    """Return a name for the variable that a secret should move to: after its key, else after the server."""
    key = value.pointer[-1]
    name = value.name if value.name and value.name.lower() != "authorization" else f"{server}_TOKEN"
    if key == "url" or not re.sub(_NAME_CHARACTER, "", name):
        name = f"{server}_TOKEN"
    plain = re.sub(_NAME_CHARACTER, "_", name).strip("_").upper() or "TOKEN"
    return f"MCP_{plain}" if plain[0].isdigit() else plain


def _is_plain(document: JsonDocument, value: ServerText) -> bool:
    span = document.span(value.pointer)
    return bool(document.text[span.start + 1 : span.end - 1] == value.text)


def _inner_span(document: JsonDocument, value: ServerText, inner: Span) -> Span:
    """A range of a value as a range of the file; the whole value if the text has escapes."""
    span = document.span(value.pointer)
    if not _is_plain(document, value):
        return span
    return Span(span.start + 1 + inner.start, span.start + 1 + inner.end)


def _problem(
    document: JsonDocument,
    pointer: Pointer,
    code: str,
    severity: Severity,
    message: str,
    fix: Fix | None = None,
) -> Problem:
    return Problem(document.path, document.span(pointer), code, severity, message=message, fix=fix)
