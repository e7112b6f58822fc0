"""Checks and copies what a Python program passes as messages, content, results and tool calls.

1. Lists and objects that a program passes are copied, so that later changes to them do not change a message.
   A `Message` whose values are all JSON is taken as it is.
2. A value that cannot be sent is refused at once, with the name of the argument, because later its origin
   would be unknown.
3. Objects of a provider's SDK (with `model_dump`) become JSON with the names of its API, bytes base64.
4. Tool calls may also have OpenAI's format. Arguments that are the text of a JSON object become that object.
5. Roles of other APIs are converted: developer to system, model to assistant.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec
from msgspec import UNSET

from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.half_pairs import whole_message
from nexus_context.conversation.message import Message, Role, ToolCall
from nexus_context.errors import RequestError

MOST_LEVELS = 200
"""Levels of JSON that are taken as they are: a request has no more (`repair`)."""
FORM = '{"id": "…", "name": "…", "arguments": {…}}'
"""A tool call, as error messages show it."""

ROLES: Mapping[Any, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""Roles as programs and providers name them."""
_NO_LISTS = (Message, Mapping, str, bytes)
_OWN_ROLES = frozenset(ROLES.values())


def messages_from(messages: Any) -> tuple[Message, ...]:
    """Return the messages of a batch, after all of them were checked. Raise RequestError that names what is
    wrong.
    """
    is_list = messages.__class__ in (list, tuple)  # nearly always: the checks below take longer than the rest
    if not is_list and (isinstance(messages, _NO_LISTS) or not isinstance(messages, Iterable)):
        raise bad(f'messages is {kind_of(messages)}; it must be a list: [Message("user", "…"), …].')
    batch: tuple[Message, ...] = tuple(messages)
    for message in batch:
        if not _is_plain(message):
            break
    else:
        return tuple(map(whole_message, batch))
    messages = (message_from(message, f"messages[{index}]") for index, message in enumerate(batch))
    return tuple(map(whole_message, messages))


def message_from(message: Any, value_path: str) -> Message:
    """Return a message whose values are all JSON, which is the same object if they already are. Raise
    RequestError that names a value that cannot be JSON.
    """
    if _is_plain(message):
        return message  # type: ignore[no-any-return]
    if not isinstance(message, Message):
        raise bad(f'{value_path} is {kind_of(message)}; it must be a Message: Message("user", "…").')
    role: Any = message.role
    if not isinstance(role, str) or role not in ROLES:
        raise bad(f"{value_path}.role is {role!r}; it must be one of {', '.join(ROLES)}.")
    content = message.content
    if content is not None and content is not UNSET:
        content = content_from(content, f"{value_path}.content")
    for field in ("tool_call_id", "name"):
        if getattr(message, field) is not None:
            text_from(getattr(message, field), f"{value_path}.{field}")
    calls: Any = message.tool_calls
    if not isinstance(calls, list | tuple):
        raise bad(
            f"{value_path}.tool_calls is {kind_of(calls)}; it must be a list of "
            "ToolCall(id, name, arguments)."
        )
    for index, call in enumerate(calls):
        if not isinstance(call, ToolCall) and not _is_sdk_object(call):
            problem = f"{value_path}.tool_calls[{index}] is {kind_of(call)}"
            raise bad(
                f"{problem}; it must be ToolCall(id, name, arguments). add_assistant_message takes {FORM}."
            )
    tool_calls = tuple(
        _tool_call(call, f"{value_path}.tool_calls[{index}]") for index, call in enumerate(calls)
    )
    return msgspec.structs.replace(message, role=ROLES[role], content=content, tool_calls=tool_calls)


def content_from(content: Any, value_path: str = "content") -> str | list[Any]:
    """Return a text, or a copy of a list of parts. Raise RequestError for any other value."""
    if isinstance(content, str):
        return str.__str__(content)
    if isinstance(content, Mapping):
        raise bad(f"{value_path} is a single part; put it in a list: [{{…}}].")
    if not isinstance(content, Sequence) or isinstance(content, bytes | bytearray | memoryview):
        raise bad(f"{value_path} is {kind_of(content)}; it must be text or a list of parts.")
    for index, part in enumerate(content):
        if not isinstance(part, str | dict) and not _is_sdk_object(part):
            raise bad(
                f"{value_path}[{index}] is {kind_of(part)}; a part is an object such as "
                '{"type": "text", …}.'
            )
    parts: list[Any] = copied(list(content), value_path)
    return parts


def result_from(result: Any) -> str | list[Any]:
    """Return a text unchanged, a copy of parts, or any other value as JSON text. Raise RequestError if JSON
    cannot hold the value.
    """
    value = copied(result, "result")
    if isinstance(value, list) and all(isinstance(part, dict) and "type" in part for part in value):
        parts: list[Any] = value
        return parts
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a surrogate pair: JSON has an escape for it
        return json.dumps(value)


def text_from(text: Any, argument: str) -> str:
    """Return the text of an argument. Raise RequestError if it is not a text."""
    if not isinstance(text, str):
        raise bad(f"{argument} is {kind_of(text)}; it must be text.")
    return text


def tool_calls_from(calls: Iterable[ToolCall | Mapping[str, Any]] | None) -> tuple[ToolCall, ...]:
    """Return copies of tool calls, which may also have OpenAI's format."""
    if isinstance(calls, str | Mapping | ToolCall):
        raise bad(f"tool_calls is {kind_of(calls)}; put the call in a list.")
    if calls is not None and not isinstance(calls, Iterable):
        raise bad(f"tool_calls is {kind_of(calls)}; it must be a list of calls.")
    return tuple(_tool_call(call, f"tool_calls[{index}]") for index, call in enumerate(calls or ()))


def check_usage(usage: Any) -> None:
    """Raise RequestError if `usage` is neither None nor a valid ProviderUsage."""
    if usage is None:
        return
    if not isinstance(usage, ProviderUsage):
        raise bad(f"usage is {kind_of(usage)}; it must be a ProviderUsage.", "bad-usage")
    usage.check()


def copied(value: Any, value_path: str, code: str = "bad-message") -> Any:
    """Return a deep copy of a value as JSON. Raise RequestError if JSON cannot hold it."""
    if isinstance(value, str):
        return value
    try:
        return _in_lists(msgspec.to_builtins(value, str_keys=True, enc_hook=_dumped))
    except RecursionError:
        raise bad(f"{value_path} is nested too deeply.", code) from None
    except (TypeError, ValueError) as error:
        raise bad(f"{value_path} holds a value that is not JSON: {error}.", code) from None


def kind_of(value: Any) -> str:
    """Return the type of a value as a phrase for error messages."""
    return "None" if value is None else f"of the type {type(value).__name__}"


def bad(message: str, code: str = "bad-message") -> RequestError:
    """Make the error for a bad argument."""
    return RequestError(message, code=code)


def _is_plain(message: Any) -> bool:
    """Whether a message needs neither a conversion nor an error: nearly all do not."""
    if message.__class__ is not Message or message.role not in _OWN_ROLES:
        return False
    content, calls = message.content, message.tool_calls
    if content.__class__ is list:
        for part in content:
            if part.__class__ is not dict or not _is_json(part):
                return False
    elif content.__class__ is not str and content is not None and content is not UNSET:
        return False
    call_id, name = message.tool_call_id, message.name
    if (call_id is not None and call_id.__class__ is not str) or (
        name is not None and name.__class__ is not str
    ):
        return False
    if calls.__class__ is not tuple:
        return False
    for call in calls:
        if call.__class__ is not ToolCall or call.id.__class__ is not str or call.name.__class__ is not str:
            return False
        if not _is_json(call.arguments):
            return False
    return True


def _is_json(value: Any, depth: int = 0) -> bool:
    """Whether JSON can hold a value unchanged, apart from half surrogate pairs, which `repair` changes."""
    kind = value.__class__
    if kind is dict:
        if depth > MOST_LEVELS:
            return False
        for key, item in value.items():
            if key.__class__ is not str:
                return False
            kind = item.__class__
            if kind is not str and kind is not int and not _is_json(item, depth + 1):
                return False
        return True
    if kind is list:
        if depth > MOST_LEVELS:
            return False
        for item in value:  # noqa: SIM110 - half the time of all()
            if not _is_json(item, depth + 1):
                return False
        return True
    return kind is str or kind is int or kind is bool or value is None or (kind is float and isfinite(value))


def _is_sdk_object(value: Any) -> bool:
    """Whether a value is an object of a provider's SDK: these are all pydantic's."""
    return not isinstance(value, type) and callable(getattr(value, "model_dump", None))


def _dumped(value: Any) -> Any:
    """An object of an SDK with the names of its API, without what it leaves out."""
    if not _is_sdk_object(value):
        raise TypeError(f"an object of the type {type(value).__name__}")
    return value.model_dump(by_alias=True, exclude_none=True)


def _in_lists(value: Any) -> Any:
    """A value with lists in place of tuples. ValueError for a number that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _in_lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_in_lists(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"the number {value}")
    return value


def _tool_call(call: Any, value_path: str) -> ToolCall:
    if isinstance(call, ToolCall):
        for key, text in (("id", call.id), ("name", call.name)):
            text_from(text, f"{value_path}.{key}")
        return ToolCall(call.id, call.name, copied(call.arguments, f"{value_path}.arguments"))
    if _is_sdk_object(call):
        call = copied(call, value_path)
    if not isinstance(call, Mapping):
        raise bad(f"{value_path} is {kind_of(call)}; it must be {FORM}.")
    function = call.get("function")
    source = function if isinstance(function, Mapping) else call
    if source is call and (unknown := [str(key) for key in call if key not in ("id", "type", *_KEYS)]):
        raise bad(f"{value_path} has unknown keys: {', '.join(unknown)}; it must be {FORM}.")
    for key, value in (("id", call.get("id")), ("name", source.get("name"))):
        if not isinstance(value, str):
            raise bad(f"{key} of {value_path} is {kind_of(value)}, not text; a call is {FORM}.")
    arguments = source.get("arguments", {})
    if source is function and isinstance(arguments, str):
        arguments = object_of(arguments)
    return ToolCall(call["id"], source["name"], copied(arguments, f"{value_path}.arguments"))


def object_of(text: str) -> Any:
    """Return the JSON object in a text. Return the text itself if it does not contain one."""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


_KEYS = ("name", "arguments")
