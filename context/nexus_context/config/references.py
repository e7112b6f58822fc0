"""Finds references in MCP files.

These are `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${workspaceFolder}` and `${input:id}`.

They are checked here, and resolved only when a server is started. The editor's variables are those of VS Code
(its variables reference); `${VAR}` and `${VAR:-default}` come from Claude Code.
"""

import re
from itertools import islice
from typing import Literal, NamedTuple

from nexus_context.errors import Span

Kind = Literal["variable", "editor", "input", "foreign", "bad"]

_START = re.compile(r"\$\{([^}]*)(\}?)")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\Z", re.DOTALL)
_PREFIXED = re.compile(r"([A-Za-z]+):([^\s]*)\Z")

MOST = 1000  # references of one value

EDITOR = frozenset(
    {"workspaceFolder", "workspaceFolderBasename", "workspaceRoot", "userHome", "cwd", "pathSeparator", "/"}
)
FOREIGN = frozenset({"config", "command"})  # VS Code resolves these, Nexus cannot


class Reference(NamedTuple):
    """One `${...}` of a value, at `span` of its characters.

    `name` is the variable or the input's id, else everything between the braces.
    """

    kind: Kind
    name: str
    default: str | None
    span: Span


def references_in(value: str) -> tuple[Reference, ...]:
    """Return the references of a value in their order. Malformed ones are of kind `bad`."""
    if "${" not in value:
        return ()
    return tuple(_reference(match) for match in islice(_START.finditer(value), MOST))


def without_references(value: str, stand_in: str) -> str:
    """Return the value with each reference replaced by `stand_in`."""
    return _START.sub(lambda _: stand_in, value)


def _reference(match: re.Match[str]) -> Reference:
    inside, closed = match[1], match[2]
    span = Span(*match.span())
    if not closed:
        return Reference("bad", inside, None, span)
    if inside in EDITOR:
        return Reference("editor", inside, None, span)
    variable = _VARIABLE.match(inside)
    if variable:
        return Reference("variable", variable[1], variable[2], span)
    prefixed = _PREFIXED.match(inside)
    if not prefixed:
        return Reference("bad", inside, None, span)
    kind, name = prefixed[1], prefixed[2]
    if kind == "env":
        named = _VARIABLE.match(name)
        return (
            Reference("variable", named[1], named[2], span) if named else Reference("bad", inside, None, span)
        )
    if kind == "input" and name:
        return Reference("input", name, None, span)
    if kind in EDITOR:
        return Reference("editor", inside, None, span)
    return Reference("foreign" if kind in FOREIGN else "bad", inside, None, span)
