"""Tool definitions and arguments, in whatever format they come.

A definition has a name and a JSON Schema of an object: both providers reject anything else, and reject
choices (`oneOf` …) at the top level of the schema.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.message import ToolCall
from nexus_context.conversation.parts import is_blank
from nexus_context.conversation.repair import RepairLog, clean, is_clean, quote_name

_encode = msgspec.json.Encoder().encode
_CHOICES = ("oneOf", "anyOf", "allOf", "enum", "not")
_SCHEMAS = ("input_schema", "inputSchema", "parameters")


class ToolDefinition(NamedTuple):
    """A tool. `provider_form` is a definition that only this provider knows."""

    name: str
    description: str
    schema: dict[str, Any]
    strict: bool | None = None
    provider_form: dict[str, Any] | None = None


def definitions(tools: Iterable[Mapping[str, Any]], provider: str, log: RepairLog) -> list[ToolDefinition]:
    """The tools that the provider accepts; the others are logged."""
    by_name: dict[str, ToolDefinition] = {}
    for original in tools:
        tool = original if _encodable(original) else clean(dict(original))
        definition = _definition(tool, provider, log)
        if definition is None:
            continue
        if definition.name in by_name:
            text = f"Two tools are called {quote_name(definition.name)}; the later one is sent."
            log.add("tool-repeated", text, given=definition.name)
        by_name[definition.name] = definition
    return list(by_name.values())


def arguments(call: ToolCall, log: RepairLog) -> dict[str, Any]:
    """The arguments of a call as an object. Text is parsed as JSON; what is not an object is wrapped."""
    value: Any = call.arguments
    if value.__class__ is dict:
        return value  # clean, because the history is repaired
    return _object(value, call.id, log)


def arguments_text(call: ToolCall, log: RepairLog) -> str:
    """The arguments of a call as the JSON text of an object; unchanged if they are one."""
    value = call.arguments
    if value.__class__ is not dict:
        wrapped = _object(value, call.id, log)
        if isinstance(value, str) and wrapped.keys() != {"arguments"} and not is_blank(value):
            return value
        value = wrapped
    return _encode(value).decode()


def _object(original: Any, tool_call_id: str, log: RepairLog) -> dict[str, Any]:
    value = original
    if isinstance(value, str):
        try:
            value = {} if is_blank(value) else msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            value = original
    if value is None:
        return {}
    if not is_clean(value):
        value = clean(value)
    if isinstance(value, dict):
        return value
    text = 'Call arguments that are not a JSON object are sent inside one: {"arguments": …}.'
    log.add("arguments-wrapped", text, tool_call_id=tool_call_id)
    return {"arguments": value}


def _definition(tool: Mapping[str, Any], provider: str, log: RepairLog) -> ToolDefinition | None:
    function = tool.get("function")
    source = function if isinstance(function, dict) else tool
    name = source.get("name")
    kind = tool.get("type")
    is_provider_tool = isinstance(kind, str) and kind not in ("function", "custom")
    if kind == "custom" and isinstance(tool.get("custom"), dict):
        name, is_provider_tool = tool["custom"].get("name"), True
    if not isinstance(name, str) or not name:
        log.add("tool-left-out", "A tool without a name is left out.")
        return None
    if is_provider_tool:
        owner = "openai" if kind == "custom" else "anthropic"
        if provider == owner and not any(key in source for key in ("parameters", "inputSchema")):
            return ToolDefinition(name, "", {}, provider_form=dict(tool))
        if not any(key in source for key in _SCHEMAS):
            tool_type = f"the type {quote_name(kind)}"
            text = f"The tool {quote_name(name)} of {tool_type} is left out: the provider has no such tool."
            log.add("tool-left-out", text, given=name)
            return None
    description = source.get("description")
    strict = source.get("strict")
    return ToolDefinition(
        name,
        description if isinstance(description, str) and not description.isspace() else "",
        _schema(source, name, log),
        strict if isinstance(strict, bool) else None,
    )


def _schema(source: Mapping[str, Any], name: str, log: RepairLog) -> dict[str, Any]:
    """The schema of a tool's arguments: of an object, without choices at the top."""
    schema: dict[str, Any] = next((source[key] for key in _SCHEMAS if isinstance(source.get(key), dict)), {})
    if schema.get("type") == "object" and "properties" in schema and schema.keys().isdisjoint(_CHOICES):
        return schema  # nearly always
    if schema.get("type", "object") != "object":
        text = f"The schema of the tool {quote_name(name)} is not that of an object; any object is accepted."
        log.add("schema-changed", text, given=name)
        schema = {}
    if not schema.keys().isdisjoint(_CHOICES):
        text = f"Choices at the top of the schema of {quote_name(name)} are left out: providers reject them."
        log.add("schema-changed", text, given=name)
    allowed = {key: value for key, value in schema.items() if key not in _CHOICES}
    if not isinstance(allowed.get("properties", {}), dict):
        allowed["properties"] = {}
    return {"type": "object", "properties": {}} | allowed


def _encodable(tool: Mapping[str, Any]) -> bool:
    try:
        msgspec.json.encode(tool)
    except (UnicodeEncodeError, RecursionError, TypeError):
        return False
    return True
