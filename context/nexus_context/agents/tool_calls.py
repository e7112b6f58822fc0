"""Checks the arguments of a model's calls of the agent tools (`prompt.agent_tools`), and renders the results.

A mistake raises a RequestError that names the argument and says what to give, so that the model can correct
its call.
"""

from collections.abc import Mapping
from typing import Any

from nexus_context.config import fixes
from nexus_context.errors import RequestError
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.agent_tools import NAMES
from nexus_context.folder.snapshot import Snapshot
from nexus_context.memory.queries import arguments_of
from nexus_context.turn.offered_tools import offered_agent_tools
from nexus_context.turn.request import Options


def checked_arguments(
    tool_name: str,
    arguments: Mapping[str, Any] | str | None,
    *,
    snapshot: Snapshot,
    options: Options = Options(),  # noqa: B008 (frozen)
) -> dict[str, Any]:
    """Return the checked arguments of a call that the snapshot's agent makes. `arguments` is an object, or
    its JSON text.

    Raise RequestError with one of these codes: `unknown-tool`; `tool-not-offered` if role, permissions or
    settings exclude the tool; `bad-argument`.
    """
    if tool_name not in NAMES:
        raise RequestError(
            f"There is no agent tool {tool_name!r:.60}. Known: {', '.join(NAMES)}.", code="unknown-tool"
        )
    offered, left_out = offered_agent_tools(snapshot, options)
    definition = next((tool for tool in offered if tool["name"] == tool_name), None)
    if definition is None:
        reason = left_out.get(tool_name, "this agent is as deep as agents may be")
        raise RequestError(f"{tool_name} is not offered to this agent: {reason}.", code="tool-not-offered")
    schema = definition["inputSchema"]
    values = arguments_of(tool_name, arguments, tuple(schema["properties"]))
    for name in schema["required"]:
        if values.get(name) is None:
            raise _bad(f"{tool_name}: {name} is missing. Give it.")
    return {
        name: _checked(tool_name, name, value, schema["properties"][name])
        for name, value in values.items()
        if value is not None
    }


def result(name: str, **values: object) -> str:
    """Return the line `name` of `texts/agent_results.md`, filled in with these values."""
    return texts.table("agent_results")[name].format(**values)


def _checked(tool: str, name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    """The value, as its schema wants it."""
    match schema["type"]:
        case "string":
            return _text(tool, name, value, schema)
        case "number":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not schema["minimum"] <= value <= schema["maximum"]:
                raise _bad(
                    f"{tool}: {name} is {value!r:.60}; it must be a number from {schema['minimum']} to "
                    f"{schema['maximum']}."
                )
            return value
        case _:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise _bad(f"{tool}: {name} must be a list of strings.")
            return value


def _text(tool: str, name: str, value: Any, schema: Mapping[str, Any]) -> str:
    if not isinstance(value, str):
        raise _bad(f"{tool}: {name} is of type {type(value).__name__}; it must be a string.")
    if not value.strip():
        raise _bad(f"{tool}: {name} is empty. Give a text, or leave it out where it is optional.")
    max_length = schema.get("maxLength")
    if max_length is not None and len(value) > max_length:
        raise _bad(
            f"{tool}: {name} has {len(value):,} characters; it may have {max_length:,}. Put the rest "
            "into a file and name the file."
        )
    values = schema.get("enum")
    if values is not None and value not in values:
        choices = ", ".join(fixes.quoted(choice) for choice in values)
        raise _bad(f"{tool}: {name} is {fixes.quoted(value[:60])}; you may give only {choices}.")
    return value


def _bad(message: str) -> RequestError:
    return RequestError(message, code="bad-argument")
