"""Turns what is wrong with a program's settings into problems whose severity is the effect on that program.

stops            the program does not start
void             the program ignores the whole file
no-effect        the program ignores a key or value
not-modelled     the program heeds a key or value, but Nexus does not
missing-file     the program starts or reads a file that does not exist
shadowed         another rule decides before this one
repeated         another rule says the same
reads-otherwise  a rule says more than it seems to, or something else
unknown-name     no file defines what is named
secret           the file has a secret as plain text
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol

from nexus_context.config import fixes
from nexus_context.config.check import Finding, Node, Pointer
from nexus_context.errors import Edit, Fix, Problem, Related, Severity, Span
from nexus_context.text.redact import is_secret_place

Effect = Literal[
    "stops",
    "void",
    "no-effect",
    "not-modelled",
    "missing-file",
    "shadowed",
    "repeated",
    "reads-otherwise",
    "unknown-name",
    "secret",
]
SEVERITIES = {
    "stops": Severity.ERROR,
    "void": Severity.ERROR,
    "no-effect": Severity.WARNING,
    "not-modelled": Severity.INFORMATION,
    "missing-file": Severity.WARNING,
    "shadowed": Severity.WARNING,
    "repeated": Severity.INFORMATION,
    "reads-otherwise": Severity.WARNING,
    "unknown-name": Severity.WARNING,
    "secret": Severity.WARNING,
}


class SettingsDocument(Protocol):
    """A settings file in any format."""

    path: str
    text: str

    def span(self, pointer: Pointer) -> Span:
        """Return the place of the value at a pointer."""
        ...

    def key_span(self, pointer: Pointer) -> Span | None:
        """Return the place of the key at a pointer, None if it has none."""
        ...


def settings_problem(
    document: SettingsDocument,
    effect: Effect,
    pointer: Pointer | Span,
    message: str,
    *,
    fix: Fix | None = None,
) -> Problem:
    """Make a problem at the key or value that a pointer leads to, or at a span."""
    span = pointer if isinstance(pointer, Span) else _key_or_value(document, pointer)
    return Problem(document.path, span, f"assistant.{effect}", SEVERITIES[effect], message=message, fix=fix)


def _key_or_value(document: SettingsDocument, pointer: Pointer) -> Span:
    return document.key_span(pointer) or document.span(pointer)


def mismatch_problem(document: SettingsDocument, finding: Finding, effect: Effect, opening: str) -> Problem:
    """Make a problem of a value of the wrong kind. `opening` says what follows from it, and begins the
    message.
    """
    span, fix = document.span(finding.pointer), None
    if finding.fixed is not None and not is_secret_place(finding.pointer):
        text = fixes.as_json(finding.fixed[0])
        fix = Fix(f"Write {text}" if len(text) < 40 else "Correct the value", (Edit(span, text),))
    return settings_problem(document, effect, span, f"{opening}{finding.message}", fix=fix)


def unknown_key_problem(
    document: SettingsDocument,
    finding: Finding,
    title: str,
    schema: Node,
    *,
    value: Any,
    moved: Mapping[str, str] = MappingProxyType({}),
) -> Problem:
    """Make a problem of a key that a program does not know. Its message says which key is meant, or where the
    key belongs.

    `value` is the value of the key in the file. `moved` maps old names of keys to the present ones.
    """
    *table, name = map(str, finding.pointer)
    table_text = f" in `{'.'.join(table)}`" if table else ""
    homes = sorted(_homes(schema, name))
    strays = [key for key in value if key in schema["properties"]] if isinstance(value, dict) else []
    fix, span = None, document.key_span(finding.pointer)
    ending = ", before the first table." if document.path.endswith(".toml") else "."
    if not table and name in moved:
        remedy = f"It is `{moved[name]}` now."
    elif strays and not table:
        remedy = f"{fixes.listed([f'`{key}`' for key in strays])} belongs at the top of the file{ending}"
    elif "" in homes:
        remedy = f"It belongs at the top of the file{ending}"
    elif finding.meant is not None:
        remedy = f"Did you mean `{finding.meant}`?"
        if span is not None:
            is_quoted = document.text[span.start] in ("'", '"')
            name = fixes.quoted(finding.meant) if is_quoted else finding.meant
            fix = Fix(f"Change it to {name}", (Edit(span, name),))
    elif len(homes) == 1 and not table:
        remedy = f"It belongs in `{homes[0]}`."
    else:
        remedy = "Correct or remove it."
    message = f"{title} ignores `{finding.pointer[-1]}`: it knows no such key{table_text}. {remedy}"
    return settings_problem(document, "no-effect", finding.pointer, message, fix=fix)


def _homes(schema: Node, name: str, table: str = "") -> Iterator[str]:
    """The tables of a schema, at most two deep, that have a key of a name."""
    properties = schema.get("properties", {})
    if name in properties:
        yield table
    for key, node in properties.items() if table.count(".") < 1 else ():
        yield from _homes(node, name, f"{table}.{key}".lstrip("."))


def name_problem(
    path: str, span: Span, message: str, close: str | None, *, effect: Effect = "unknown-name", text: str = ""
) -> Problem:
    """Make a problem of an unknown name. `close` is the name that is probably meant, `text` what the fix
    writes for it.
    """
    fix = Fix(f"Write `{close}`", (Edit(span, text),)) if close and text else None
    message += f" Did you mean `{close}`?" if close else ""
    return Problem(path, span, f"assistant.{effect}", SEVERITIES[effect], message=message, fix=fix)


def shadow_problem(
    path: str, span: Span, by: str, why: str, *, is_same: bool, by_place: tuple[str, Span] | None = None
) -> Problem:
    """Make a problem of a rule that never decides because the rule `by` covers it. `is_same` is true if both
    decide the same; `by_place` is the file and the span of `by`, if they are known.
    """
    effect: Effect = "repeated" if is_same else "shadowed"
    message = f"This rule never decides: {by} covers it, and {why}."
    if is_same:
        message = f"This rule says nothing new: {by} covers it. Remove one of them."
    related = () if by_place is None else (Related(*by_place, by),)
    return Problem(path, span, f"assistant.{effect}", SEVERITIES[effect], message=message, related=related)


def first_stop(problems: Sequence[Problem]) -> Problem | None:
    """Return the first problem for which a program does not start, else None."""
    return next((problem for problem in problems if problem.code == "assistant.stops"), None)


def value_at(value: Any, keys: Sequence[str | int]) -> Any:
    """Return the value that keys and indices lead to; None if a key is missing or a list is too short."""
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int):
            value = value[key] if 0 <= key < len(value) else None
        else:
            return None
    return value
