"""Check JSON files against the generated schemas, every error at the exact key or value.

The schemas keep to a closed subset of draft-07, so that this small interpreter can stand in for pydantic,
whose import costs more than everything else together:

1. `type` (one or several), `enum` (objects and lists are not compared), `minimum`, `maximum`, `minLength`,
   `maxLength`, `pattern`, `items`.
2. `properties`, `additionalProperties` (false or a schema), `required`; `_comment*` keys are skipped.
3. `oneOf` only as "exactly one of these keys is set and not null".
4. Integers are Python ints: 2.0 is not a whole number, true is not a number (pydantic's strict mode).

A test says that this checker and the pydantic models accept and reject the same documents.
"""

import functools
import json
import re
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from nexus_context.config import fixes, lints
from nexus_context.config.fast_check import ANYTHING, COMMENT_PREFIX, acceptor, pattern
from nexus_context.disk.files import JSON_LIMIT, read_text
from nexus_context.errors import Edit, Fix, NexusError, Problem, Severity, Span
from nexus_context.text.json import JsonDocument, parse_pointer
from nexus_context.text.redact import is_secret_place

Node = dict[str, Any]
Pointer = tuple[str | int, ...]

MOST_FINDINGS = 200  # of one file or MCP server; what is past that is not looked for
JSONC = frozenset({"json.comment", "json.trailing-comma"})  # what some editors allow; no value is in doubt
CONFIG_SCHEMA = str(Path(__file__).with_name("config.schema.json"))
MCP_SCHEMA = str(Path(__file__).with_name("mcp.schema.json"))

_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
_FORMS = {
    r"^[!-~]+$": "is not a valid name or pattern: use visible ASCII characters without spaces.",
    r"^([^/\\]+|\.github/copilot-instructions\.md|\.github/instructions/[^/\\]*\.instructions\.md)$": (
        "is not a valid file name: use a name without `/` and backslashes, or Copilot's "
        "`.github/copilot-instructions.md` and `.github/instructions/*.instructions.md`."
    ),
    r"^[A-Za-z_][A-Za-z0-9_]*$": (
        "is not a valid name of an environment variable: use letters, digits and `_`, and begin with no "
        "digit. Put the key itself into that variable, not here."
    ),
    r"^https?://[^/?#\s]+[^\s]*$": (
        "is not a valid address: write http:// or https://, then a host, without spaces."
    ),
    "^(ask|allow|deny)$": "is not a valid permission: write ask, allow or deny.",
    "^notify$": "is not a valid text here: write true, false or notify.",
    "^(#[0-9a-fA-F]{6}|primary|secondary|accent|success|warning|error|info)$": (
        "is not a valid color: write one such as #FF5733, or a name such as primary."
    ),
}
"""The message for a text that does not match a pattern of the schemas."""
_LARGE = 10**15
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,15})?\Z")


class Finding(NamedTuple):
    """What is wrong with the value at `pointer`. `detail` is the second half of its code."""

    detail: str
    pointer: Pointer
    message: str
    meant: str | None = None
    fixed: tuple[Any] | None = None


def check_config(document: JsonDocument) -> tuple[Problem, ...]:
    """Return everything that is wrong with one config.json, in the order of the text. An empty file is valid.

    If the text has syntax errors the recovered rest is checked, and no place is reported twice.
    """
    if nothing_in(document):
        return ()
    problems = conform(document, (), load_schema(CONFIG_SCHEMA))
    if isinstance(document.value, dict):
        problems += lints.advise(document, load_schema(CONFIG_SCHEMA))
    return tuple(sorted(beside_syntax(document, problems), key=lambda problem: problem.span))


def check_value(pointer: str, value: Any) -> str | None:
    """Return why a value does not fit the setting at a JSON pointer. None if it fits.

    This is for values that are not in a file, such as those of a request.
    """
    path = parse_pointer(pointer)
    node = describe(path)
    if node is None:
        return f"There is no setting {'.'.join(map(str, path))}"
    findings = find_mismatches(value, node, path)
    return findings[0].message if findings else None


def describe(pointer: Pointer) -> Node | None:
    """Return the schema of the setting at a pointer. None if there is no such setting."""
    node = _node(pointer)
    return None if node is None else dict(node)


def _node(pointer: Pointer) -> Node | None:
    node: Any = load_schema(CONFIG_SCHEMA)
    for step in pointer:
        name = str(step)
        node = node.get("items") or node.get("properties", {}).get(name) or node.get("additionalProperties")
        if not isinstance(node, dict):
            return None
    setting: Node = node
    return setting


@functools.cache
def load_schema(path: str) -> Node:
    """Return a schema of this package, which is read once."""
    schema: Node = msgspec.json.decode(schema_text(path))
    return schema


def schema_text(path: str) -> str:
    """Return the text of a schema of this package. Raises NexusError if it is missing."""
    text = read_text(path, limit=JSON_LIMIT).text
    if text is None:
        raise NexusError(f"The installation is incomplete: {path} cannot be read. Install nexusd again.")
    return text


def conform(
    document: JsonDocument,
    pointer: Pointer,
    node: Node,
    *,
    family: str = "config",
    unknown: Severity = Severity.ERROR,
) -> list[Problem]:
    """Return the problems of the value at `pointer`, checked against a schema node without `$ref`s.

    `family` is the first half of the codes, `unknown` the severity of an unknown key.
    """
    value: Any = document.value
    for step in pointer:
        value = value[step]
    findings = find_mismatches(value, node, pointer)
    return [_problem(document, finding, family, unknown) for finding in findings]


def find_mismatches(value: Any, node: Node, pointer: Pointer = ()) -> list[Finding]:
    """Find the parts of a value that do not fit a schema node without `$ref`s."""
    findings: list[Finding] = []
    _walk(value, node, pointer, findings)
    return findings


def _walk(value: Any, node: Node, pointer: Pointer, findings: list[Finding]) -> None:
    if not node:
        return
    kind = _kind(value)
    expected = node.get("type")
    if expected is not None and not _is_kind(kind, expected):
        findings.append(_wrong_type(value, kind, expected, node, pointer=pointer))
    elif "enum" in node and kind not in ("object", "array") and value not in node["enum"]:
        findings.append(_wrong_choice(value, node["enum"], pointer))
    elif kind == "object":
        _walk_object(value, node, pointer, findings)
    elif kind == "array":
        items = node.get("items", ANYTHING)
        fits = acceptor(items)
        for index, item in enumerate(value) if items else ():
            if len(findings) >= MOST_FINDINGS:
                break
            if not fits(item):
                _walk(item, items, (*pointer, index), findings)
    elif kind == "string":
        _walk_text(value, node, pointer, findings)
    elif kind in {"integer", "number"}:
        _walk_number(value, node, pointer, findings)


def _kind(value: Any) -> str:
    return _KINDS.get(type(value)) or ("object" if isinstance(value, dict) else "array")


def _walk_object(value: dict[str, Any], node: Node, pointer: Pointer, findings: list[Finding]) -> None:
    properties = node.get("properties", {})
    additional = node.get("additionalProperties", ANYTHING)
    for key, child in value.items():
        if len(findings) >= MOST_FINDINGS:
            return
        child_node = properties.get(key)
        if child_node is not None:
            if not acceptor(child_node)(child):
                _walk(child, child_node, (*pointer, key), findings)
        elif key.startswith(COMMENT_PREFIX):
            continue
        elif additional is False:
            findings.append(_unknown_key(key, value, properties, pointer))
        elif not acceptor(additional)(child):
            _walk(child, additional, (*pointer, key), findings)
    findings += [
        Finding("required", pointer, f"{_name(pointer)} needs {fixes.quoted(key)}.")
        for key in node.get("required", ())
        if key not in value
    ]
    if "oneOf" in node:
        keys = [choice["required"][0] for choice in node["oneOf"]]
        if sum(value.get(key) is not None for key in keys) != 1:
            message = (
                f"{_name(pointer)} needs exactly one of {fixes.listed([fixes.quoted(key) for key in keys])}."
            )
            findings.append(Finding("required", pointer, message))


def _walk_text(value: str, node: Node, pointer: Pointer, findings: list[Finding]) -> None:
    # the text itself is never quoted: it may be a key pasted into the wrong place
    if len(value) < node.get("minLength", 0):
        findings.append(Finding("pattern", pointer, f"{_name(pointer)} must not be empty."))
    elif len(value) > node.get("maxLength", len(value)):
        message = f"{_name(pointer)} has {len(value):,} characters, and {node['maxLength']:,} are allowed."
        findings.append(Finding("too-long", pointer, f"{message} Shorten it."))
    elif "pattern" in node and not _pattern(node["pattern"]).search(value):
        message = f"{_name(pointer)} {_FORMS[node['pattern']]}"
        findings.append(Finding("pattern", pointer, message))


def _walk_number(value: float, node: Node, pointer: Pointer, findings: list[Finding]) -> None:
    low, high = node.get("minimum"), node.get("maximum")
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        bounds = f"at least {low}" if high is None else f"between {low} and {high}"
        findings.append(Finding("range", pointer, f"{_name(pointer)} must be {bounds}."))


def _unknown_key(key: str, value: dict[str, Any], properties: Node, pointer: Pointer) -> Finding:
    location = f"in {fixes.quoted(str(pointer[-1]))}" if pointer and isinstance(pointer[-1], str) else "here"
    message = f"Unknown key {fixes.quoted(key)} {location}"
    suggestion = fixes.meant(key, [name for name in properties if name not in value])
    return Finding("unknown-key", (*pointer, key), message, suggestion)


def _wrong_type(value: Any, kind: str, expected: str | list[str], node: Node, pointer: Pointer) -> Finding:
    kinds = [expected] if isinstance(expected, str) else expected
    words = node.get("enum") or [_WORDS[name] for name in kinds]
    choices = fixes.listed([word for word in words if word not in (None, _WORDS["null"])])
    message = f"{_name(pointer)} must be {choices}, not {_WORDS[kind]}."
    for name in kinds:
        converted = _converted(value, name)
        if converted is not None and _fits(converted[0], node):
            return Finding("type", pointer, message, fixed=converted)
    return Finding("type", pointer, message)


def _wrong_choice(value: Any, choices: list[Any], pointer: Pointer) -> Finding:
    names = [choice for choice in choices if choice is not None]
    suggestion = fixes.meant(str(value), names)
    hint = f" Did you mean {fixes.quoted(suggestion)}?" if suggestion else ""
    message = f"{_name(pointer)} must be {fixes.listed(names)}.{hint}"
    return Finding("enum", pointer, message, fixed=(suggestion,) if suggestion else None)


def _converted(value: Any, kind: str) -> tuple[Any] | None:
    """The value as another kind, in a 1-tuple, if there is only one possible conversion."""
    if kind == "boolean" and isinstance(value, str) and value.lower() in {"true", "false"}:
        return (value.lower() == "true",)
    if kind in {"integer", "number"} and isinstance(value, str) and _NUMBER.match(value):
        return (msgspec.json.decode(value),)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return (int(value),)
    if kind == "string" and isinstance(value, int | float) and abs(value) < _LARGE:
        return (json.dumps(value),)
    if kind == "array" and isinstance(value, str):
        return ([value],)
    return None


def _fits(value: Any, node: Node) -> bool:
    return not find_mismatches(value, node)


def _is_kind(kind: str, expected: str | list[str]) -> bool:
    if isinstance(expected, str):
        return kind == expected or (kind == "integer" and expected == "number")
    return kind in expected or (kind == "integer" and "number" in expected)


_pattern = functools.cache(pattern)


def _name(pointer: Pointer) -> str:
    if not pointer:
        return "The file"
    last_step = pointer[-1]
    if isinstance(last_step, str):
        return fixes.quoted(last_step)
    return f"Item {last_step + 1}" + (f" of {fixes.quoted(str(pointer[-2]))}" if len(pointer) > 1 else "")


def _problem(document: JsonDocument, finding: Finding, family: str, unknown: Severity) -> Problem:
    pointer = finding.pointer
    if finding.detail == "unknown-key":
        return _unknown_key_problem(document, finding, family, unknown)
    span = document.span(pointer)
    fix: Fix | None = None
    if finding.detail == "required":
        span = Span(span.start, min(span.start + 1, span.end))
    elif finding.fixed is not None:
        fix = _replacement(document, finding, finding.fixed[0])
    return Problem(
        document.path, span, f"{family}.{finding.detail}", Severity.ERROR, message=finding.message, fix=fix
    )


def _replacement(document: JsonDocument, finding: Finding, value: Any) -> Fix:
    """The fix that writes another value; it never contains a value from a secret place."""
    if finding.detail != "type" or not is_secret_place(finding.pointer):
        return fixes.replace(document, finding.pointer, fixes.as_json(value))
    span = document.span(finding.pointer)
    if isinstance(value, list):
        return fixes.enclose("Put it into a list", span, "[", "]")
    if isinstance(value, str):
        return fixes.enclose("Put it in quotes", span, '"', '"')
    quotes = (Span(span.start, span.start + 1), Span(span.end - 1, span.end))
    return Fix("Remove the quotes", tuple(Edit(quote, "") for quote in quotes))


def _unknown_key_problem(
    document: JsonDocument, finding: Finding, family: str, severity: Severity
) -> Problem:
    pointer = finding.pointer
    homes = _sections_with(str(pointer[-1])) if family == "config" else []
    fix: Fix | None = None
    if homes:
        remedy = f"it belongs in {fixes.listed(homes)}."
    elif finding.meant:
        remedy = f"did you mean {fixes.quoted(finding.meant)}?"
        fix = fixes.rename(document, pointer, finding.meant)
    else:
        remedy = "remove it."
        fix = fixes.remove(document, pointer)
    span = document.key_span(pointer) or document.span(pointer)
    message = f"{finding.message}: {remedy}"
    if not document.ok and not fixes.is_plain(str(pointer[-1])):
        message, fix = "Unknown key: close the string before it, or remove it.", None
    return Problem(document.path, span, f"{family}.unknown-key", severity, message=message, fix=fix)


def _sections_with(key: str) -> list[str]:
    """The sections of config.json that have this key; the user has to move it."""
    sections = load_schema(CONFIG_SCHEMA)["properties"]
    return [fixes.quoted(name) for name, node in sections.items() if key in node.get("properties", ())]


def nothing_in(document: JsonDocument) -> bool:
    """Whether there is no value to check: the file is empty, or too broken to recover one."""
    return document.empty or (document.value is None and not document.ok)


def beside_syntax(document: JsonDocument, problems: list[Problem]) -> list[Problem]:
    """Return the problems that do not touch a syntax error, where the value is only a guess."""
    broken = sorted(
        problem.span
        for problem in document.problems
        if problem.severity == Severity.ERROR and problem.code not in JSONC
    )
    if not broken:
        return problems
    starts = [span.start for span in broken]
    ends = list(accumulate((span.end for span in broken), max))  # the farthest so far

    def is_beside(span: Span) -> bool:
        preceding = bisect_right(starts, span.end)
        return preceding > 0 and ends[preceding - 1] >= span.start

    return [problem for problem in problems if not is_beside(problem.span)]
