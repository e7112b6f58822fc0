"""Checks and copies what a Python program passes as content, results and tool calls.

1. Everything is copied: later changes to the program's lists do not change a message.
2. A value that cannot be sent is refused at once, with the name of the argument: later its origin is unknown.
3. Tool calls may also have OpenAI's format. Arguments that are the text of a JSON object become that object.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from nexus_context.conversation.message import ToolCall
from nexus_context.errors import RequestError
from nexus_context.tokens.estimates import json_text

FORM = '{"id": "…", "name": "…", "arguments": {…}}'
"""A tool call, as error messages show it."""


def content_from(content: Any) -> str | list[Any]:
    """Text, or a copy of a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        raise bad("content is a single part; put it in a list: [{…}].")
    if not isinstance(content, Sequence) or isinstance(content, bytes | bytearray | memoryview):
        raise bad(f"content is {kind_of(content)}; it must be text or a list of parts.")
    for index, part in enumerate(content):
        if not isinstance(part, str | dict):
            raise bad(
                f'content[{index}] is {kind_of(part)}; a part is an object such as {{"type": "text", …}}.'
            )
    parts: list[Any] = copied(list(content), "content")
    return parts


def result_from(result: Any) -> str | list[Any]:
    """Text unchanged, a copy of parts, any other value as JSON text."""
    if isinstance(result, list | tuple) and all(isinstance(part, dict) and "type" in part for part in result):
        parts: list[Any] = copied(list(result), "result")
        return parts
    return json_text(result)


def text_from(text: Any, argument: str) -> str:
    """The text of an argument; RequestError for anything else."""
    if not isinstance(text, str):
        raise bad(f"{argument} is {kind_of(text)}; it must be text.")
    return text


def tool_calls_from(calls: Iterable[ToolCall | Mapping[str, Any]] | None) -> tuple[ToolCall, ...]:
    """Copies of tool calls in either format."""
    if isinstance(calls, str | Mapping | ToolCall):
        raise bad(f"tool_calls is {kind_of(calls)}; put the call in a list.")
    if calls is not None and not isinstance(calls, Iterable):
        raise bad(f"tool_calls is {kind_of(calls)}; it must be a list of calls.")
    return tuple(_tool_call(call, f"tool_calls[{index}]") for index, call in enumerate(calls or ()))


def copied(value: Any, place: str, code: str = "bad-message") -> Any:
    """A deep copy; a value that cannot be copied is not JSON and is refused."""
    if isinstance(value, str):
        return value
    try:
        return deepcopy(value)
    except RecursionError:
        raise bad(f"{place} is nested too deeply.", code) from None
    except TypeError as error:
        raise bad(f"{place} holds a value that is not JSON: {error}.", code) from None


def kind_of(value: Any) -> str:
    """The type of a value, for error messages."""
    return "None" if value is None else f"of the type {type(value).__name__}"


def bad(message: str, code: str = "bad-message") -> RequestError:
    """The error for a bad argument."""
    return RequestError(message, code=code)


def _tool_call(call: Any, place: str) -> ToolCall:
    if isinstance(call, ToolCall):
        return ToolCall(call.id, call.name, copied(call.arguments, f"{place}.arguments"))
    if not isinstance(call, Mapping):
        raise bad(f"{place} is {kind_of(call)}; it must be {FORM}.")
    function = call.get("function")
    source = function if isinstance(function, Mapping) else call
    if source is call and (unknown := [str(key) for key in call if key not in ("id", "type", *_KEYS)]):
        raise bad(f"{place} has unknown keys: {', '.join(unknown)}; it must be {FORM}.")
    for key, value in (("id", call.get("id")), ("name", source.get("name"))):
        if not isinstance(value, str):
            raise bad(f"{key} of {place} is {kind_of(value)}, not text; a call is {FORM}.")
    arguments = source.get("arguments", {})
    if source is function and isinstance(arguments, str):
        arguments = object_of(arguments)
    return ToolCall(call["id"], source["name"], copied(arguments, f"{place}.arguments"))


def object_of(text: str) -> Any:
    """The JSON object in a text; the text itself if it holds none."""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


_KEYS = ("name", "arguments")
