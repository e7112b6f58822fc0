"""Checks the MCP servers in a JSON file whose program starts a server by its `command` or `url`.

1. A file that is not valid JSON is ignored as a whole. Comments and trailing commas may be allowed.
2. A server that has neither `command` nor `url`, or a value of a wrong type, is not started.
3. References that the program does not replace, and variables that are not set, are reported. Their values
   are never shown.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from nexus_context.config.check import JSONC, Node, conform
from nexus_context.config.fast_check import acceptor
from nexus_context.errors import Edit, Fix, Problem, Severity, Span
from nexus_context.text.json import JsonDocument

_REFERENCE = re.compile(r"\$\{([^{}]{1,200})\}")
_TEXTS: Node = {"type": "array", "items": {"type": "string"}}
_MAP: Node = {"type": "object"}
SERVER: Node = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "command": {"type": "string"},
        "args": _TEXTS,
        "env": _MAP,
        "url": {"type": "string"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
"""What the programs that are known by documentation say of a server; other fields are not checked."""

Judgement = tuple[Severity, str]
_MEANT = {
    **dict.fromkeys(("url", "uri", "href", "endpoint", "serverurl", "httpurl"), "url"),
    **dict.fromkeys(("command", "cmd", "exec", "executable"), "command"),
}
"""What the keys of a server are meant to be, by their letters."""


class MisnamedKey(NamedTuple):
    """A key of a server with the wrong name: `remedy` is a sentence that says what to write."""

    key: str
    span: Span
    remedy: str
    fix: Fix


class ServerFile(msgspec.Struct, frozen=True):
    """Says how a program reads a file of servers. `title` is the program, `key` the key that the servers are
    below.

    `keys_of_others` are the keys that other programs use instead. `judge_reference` gets the name in a `${…}`
    and returns what is wrong with it, else None.
    """

    title: str
    key: str
    keys_of_others: tuple[str, ...]
    judge_reference: Callable[[str], Judgement | None]


def refusal(server: Any, title: str) -> str | None:
    """Return a sentence that says why a program does not start a server, None if it does."""
    if not isinstance(server, dict) or not acceptor(SERVER)(server):
        return f"{title} does not start it: a value has a wrong type."
    if not server.get("command") and not server.get("url"):
        return f"{title} does not start it: it has neither `command` nor `url`."
    return None


def misnamed_key(
    document: JsonDocument, pointer: tuple[str, ...], server: Mapping[str, Any], *, before_url: str = ""
) -> MisnamedKey | None:
    """Find a key that is meant to be `command` or `url`, of a server at a pointer that has neither.

    `before_url` is JSON that the fix writes before `url`.
    """
    for key in server:
        meant = _MEANT.get(re.sub(r"[_-]", "", key.lower()))
        span = document.key_span((*pointer, key))
        if meant not in (None, key) and span is not None:
            text = f'"{meant}"' if meant == "command" else f'{before_url}"{meant}"'
            fix = Fix(f"Write `{meant}`", (Edit(span, text),))
            return MisnamedKey(key, span, f"Write `{meant}` in place of `{key}`.", fix)
    return None


def check_server_file(document: JsonDocument, form: ServerFile) -> Iterator[Problem]:
    """Report what is wrong with a file of servers."""
    title, value = form.title, document.value
    error = next(
        (
            problem
            for problem in document.problems
            if problem.severity is Severity.ERROR and problem.code not in JSONC
        ),
        None,
    )
    if error is not None or not isinstance(value, dict):
        why = "it must be an object." if error is None else f"it is not valid JSON. {error.message}"
        span = Span(0, 0) if error is None else error.span
        message = f"{title} starts no server of this file: {why}"
        if not document.empty:
            yield Problem(document.path, span, "assistant.void", Severity.ERROR, message=message)
        return

    def no_effect(span: Span, message: str) -> Problem:
        return Problem(document.path, span, "assistant.no-effect", Severity.WARNING, message=message)

    for key in form.keys_of_others:
        if isinstance(value.get(key), dict) and value[key]:
            message = f"{title} ignores `{key}` and starts none of its servers. Write `{form.key}`."
            yield no_effect(document.key_span((key,)) or Span(0, 0), message)
    servers = value.get(form.key)
    for name, server in servers.items() if isinstance(servers, dict) else ():
        server_pointer = (form.key, name)
        server_problems = conform(document, server_pointer, SERVER)
        for problem in server_problems:
            yield no_effect(problem.span, f"{title} does not start this server: {problem.message}")
        if not server_problems and refusal(server, title) is not None:
            message = f"{title} does not start this server: it has neither `command` nor `url`."
            misnamed = misnamed_key(document, server_pointer, server)
            if misnamed is None:
                yield no_effect(document.key_span(server_pointer) or Span(0, 0), f"{message} Add one.")
            else:
                problem = no_effect(misnamed.span, f"{message} {misnamed.remedy}")
                yield replace(problem, fix=misnamed.fix)
        for pointer, name_of_reference in _references(server, server_pointer):
            judgement = form.judge_reference(name_of_reference)
            if judgement is not None:
                yield replace(no_effect(document.span(pointer), judgement[1]), severity=judgement[0])


def judge_variable(
    title: str, name: str, environ: Mapping[str, str], own_names: frozenset[str]
) -> Judgement | None:
    """Return what is wrong with a reference `${name}`, else None, for a program that replaces `${env:NAME}`
    and `own_names`.

    A variable that is not set is information only, since it may be set elsewhere. It is not reported if
    `environ` is empty.
    """
    kind, colon, variable = name.partition(":")
    if kind == "env" and colon and environ and variable not in environ:
        message = f"{variable} is not set here: {title} replaces `${{{name}}}` by nothing. Set it."
        return Severity.INFORMATION, message
    if name in own_names or colon:
        return None
    unset = "" if name in environ else f", and set {name}"
    message = f"{title} leaves `${{{name}}}` as it is. Write `${{env:{name}}}`{unset}."
    return Severity.WARNING, message


def _references(value: Any, pointer: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield from ((pointer, match[1]) for match in _REFERENCE.finditer(value))
    elif isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in members:
            yield from _references(member, (*pointer, key))
