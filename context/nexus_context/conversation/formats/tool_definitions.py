"""Tool definitions and arguments, whoever's form they come in.

A definition has a name and a JSON Schema of an object: both providers refuse anything else, and refuse
choices (`oneOf` …) at the schema's top.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.formats.repair_log import Said
from nexus_context.conversation.message import ToolCall
from nexus_context.conversation.parts import is_blank
from nexus_context.conversation.repair.report import shown
from nexus_context.conversation.repair.values import clean, is_clean

_encode = msgspec.json.Encoder().encode
_CHOICES = ("oneOf", "anyOf", "allOf", "enum", "not")
_SCHEMAS = ("input_schema", "inputSchema", "parameters")


class Definition(NamedTuple):
    """A tool. `own` is a definition that only this provider knows, to be sent as it is."""

    name: str
    description: str
    schema: dict[str, Any]
    strict: bool | None = None
    own: dict[str, Any] | None = None


def definitions(tools: Iterable[Mapping[str, Any]], provider: str, said: Said) -> list[Definition]:
    """The tools that the provider takes; what it does not take is said."""
    made: dict[str, Definition] = {}
    for given in tools:
        tool = given if _encodable(given) else clean(dict(given))
        found = _definition(tool, provider, said)
        if found is None:
            continue
        if found.name in made:
            text = f"Two tools are called {shown(found.name)}; the later one is sent."
            said.add("tool-repeated", text, given=found.name)
        made[found.name] = found
    return list(made.values())


def arguments(call: ToolCall, said: Said) -> dict[str, Any]:
    """The arguments of a call as an object. Text is read as JSON; what is no object stands in one."""
    value: Any = call.arguments
    if value.__class__ is dict:
        return value  # clean, because the history is repaired
    return _object(value, call.id, said)


def arguments_text(call: ToolCall, said: Said) -> str:
    """The arguments of a call as the JSON text of an object: as it is, if it is that."""
    value = call.arguments
    if value.__class__ is not dict:
        made = _object(value, call.id, said)
        if isinstance(value, str) and made.keys() != {"arguments"} and not is_blank(value):
            return value
        value = made
    return _encode(value).decode()


def _object(given: Any, tool_call_id: str, said: Said) -> dict[str, Any]:
    value = given
    if isinstance(value, str):
        try:
            value = {} if is_blank(value) else msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            value = given
    if value is None:
        return {}
    if not is_clean(value):
        value = clean(value)
    if isinstance(value, dict):
        return value
    text = 'Arguments of calls that are no JSON object are sent inside one, as {"arguments": …}.'
    said.add("arguments-wrapped", text, tool_call_id=tool_call_id)
    return {"arguments": value}


def _definition(tool: Mapping[str, Any], provider: str, said: Said) -> Definition | None:
    function = tool.get("function")
    source = function if isinstance(function, dict) else tool
    name = source.get("name")
    kind = tool.get("type")
    own = isinstance(kind, str) and kind not in ("function", "custom")
    if kind == "custom" and isinstance(tool.get("custom"), dict):
        name, own = tool["custom"].get("name"), True
    if not isinstance(name, str) or not name:
        said.add("tool-left-out", "A tool without a name is left out.")
        return None
    if own:
        theirs = "openai" if kind == "custom" else "anthropic"
        if provider == theirs and not any(key in source for key in ("parameters", "inputSchema")):
            return Definition(name, "", {}, own=dict(tool))
        if not any(key in source for key in _SCHEMAS):
            text = (
                f"The tool {shown(name)} of the type {shown(kind)} is left out: the provider has none such."
            )
            said.add("tool-left-out", text, given=name)
            return None
    description = source.get("description")
    strict = source.get("strict")
    return Definition(
        name,
        description if isinstance(description, str) and not description.isspace() else "",
        _schema(source, name, said),
        strict if isinstance(strict, bool) else None,
    )


def _schema(source: Mapping[str, Any], name: str, said: Said) -> dict[str, Any]:
    """The schema of a tool's arguments: an object's, without choices at the top."""
    given: dict[str, Any] = next((source[key] for key in _SCHEMAS if isinstance(source.get(key), dict)), {})
    if given.get("type") == "object" and "properties" in given and given.keys().isdisjoint(_CHOICES):
        return given  # nearly always
    if given.get("type", "object") != "object":
        text = f"The arguments of the tool {shown(name)} are no object by its schema; any object is allowed."
        said.add("schema-changed", text, given=name)
        given = {}
    if not given.keys().isdisjoint(_CHOICES):
        text = (
            f"Choices at the top of the schema of the tool {shown(name)} are left out: providers refuse them."
        )
        said.add("schema-changed", text, given=name)
    kept = {key: value for key, value in given.items() if key not in _CHOICES}
    properties = kept.get("properties")
    return (
        {"type": "object", "properties": {}}
        | kept
        | ({} if isinstance(properties, dict) else {"properties": {}})
    )


def _encodable(tool: Mapping[str, Any]) -> bool:
    try:
        msgspec.json.encode(tool)
    except (UnicodeEncodeError, RecursionError, TypeError):
        return False
    return True
