"""Converts the records of a program's session store to messages (SPEC §6).

1. A record is a `Message`, a mapping with a `role`, or one with a `type`: `user`, `assistant`, `system`,
   `tool_call`, `tool_result` or `compaction`. Keys may have camel or snake case.
2. Tool calls that follow each other, or an assistant's text, become one message with it, because providers
   want the results after all calls.
3. Any other record raises RequestError, code `bad-record`, with its number.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nexus_context.conversation import coercion
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.summary import MARKER, as_summary
from nexus_context.errors import RequestError
from nexus_context.text.decoding import convert_to

_ROLES = ("user", "assistant", "system", "developer", "model", "human", "tool", "function")
_CALL_ID = ("tool_call_id", "toolCallId", "call_id", "callId", "tool_use_id", "toolUseId", "id")
_CALLS = ("tool_calls", "toolCalls")
_TOOL = ("tool_name", "toolName", "name", "tool")
_ARGUMENTS = ("arguments", "input", "args", "parameters")
_RESULT = ("result", "output", "content", "error")
_SUMMARY = ("summary", "content", "text")


def messages_of(records: Iterable[Any]) -> list[Message]:
    """Convert the records of a session to messages, oldest first. Raise RequestError, code `bad-record`, for
    a damaged record.
    """
    messages: list[Message] = []
    for number, record in enumerate(records):
        try:
            message = _message(record)
        except (msgspec.ValidationError, RequestError) as error:
            raise RequestError(
                f"Record {number} of the session is damaged: {error}", code="bad-record"
            ) from None
        last_message = messages[-1] if messages else None
        is_call = isinstance(record, Mapping) and record.get("type") == "tool_call"
        if is_call and last_message is not None and last_message.role == "assistant":
            messages[-1] = msgspec.structs.replace(
                last_message, tool_calls=(*last_message.tool_calls, *message.tool_calls)
            )
        else:
            messages.append(message)
    return messages


def _message(record: Any) -> Message:
    if isinstance(record, Message):
        return record
    if not isinstance(record, Mapping):
        raise coercion.bad(f"it is {coercion.kind_of(record)}.")
    kinds = [kind for kind in (record.get("type"), record.get("role")) if isinstance(kind, str)]
    reader = next((_READERS[kind] for kind in kinds if kind in _READERS), None)
    if reader is not None:
        return reader(record)
    role = next((kind for kind in reversed(kinds) if kind in _ROLES), None)
    if role is None:
        known_types = ", ".join([*_ROLES[:3], *_READERS])
        raise coercion.bad(
            f"its type is {record.get('role', record.get('type'))!r:.60}; known are {known_types}."
        )
    calls = next((record[name] for name in _CALLS if record.get(name) is not None), None)
    return msgspec.structs.replace(
        convert_to(_fields(record) | {"role": role}, Message),
        tool_calls=coercion.tool_calls_from(calls),
    )


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a message, in camel case; what else a store has beside them is its own."""
    fields = {}
    for field in msgspec.structs.fields(Message):
        value = record.get(field.encode_name, record.get(field.name))
        if value is not None and field.name != "tool_calls":
            fields[field.encode_name] = value
    return fields


def _value(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    values = [record[name] for name in names if record.get(name) is not None]
    if not values:
        raise coercion.bad(f"it has none of {', '.join(names)}.")
    return values[0]


def _call(record: Mapping[str, Any]) -> Message:
    call_id, tool = _value(record, _CALL_ID), coercion.text_from(_value(record, _TOOL), "its tool")
    arguments: Any = next((record[name] for name in _ARGUMENTS if name in record), {})
    return Message("assistant", None, (ToolCall(coercion.text_from(call_id, "its id"), tool, arguments),))


def _result(record: Mapping[str, Any]) -> Message:
    call_id = coercion.text_from(_value(record, _CALL_ID), "its id")
    tool = next((record[name] for name in _TOOL if isinstance(record.get(name), str)), None)
    is_failed = record.get("is_error", record.get("isError", record.get("error"))) not in (None, False)
    content = coercion.result_from(_value(record, _RESULT))
    meta = {"is_error": True} if is_failed else msgspec.UNSET
    return Message("tool", content, tool_call_id=call_id, name=tool, meta=meta)


def _compaction(record: Mapping[str, Any]) -> Message:
    summary = coercion.text_from(_value(record, _SUMMARY), "its summary")
    return as_summary(Message("user", summary if summary.startswith(MARKER) else f"{MARKER}\n{summary}"))


_READERS = {"tool_call": _call, "tool_result": _result, "compaction": _compaction}
