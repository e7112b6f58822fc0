"""Converts chat messages in OpenAI's, Anthropic's or our own format to neutral messages.

1. Roles: developer is system, function is tool, human is user, model is assistant.
2. Arguments that are the text of a JSON object become that object; other text stays text.
3. Anthropic: each result in a user message becomes a message of the role tool; the rest of the user message
   follows separately. Calls leave the content; all other blocks stay unchanged.
4. OpenAI's calls from before 2023 (`function_call`) have no ids: they and their results get one.
5. A message is reported, rather than read as empty, if nothing in it is read but there is text under another
   key: the chats of other programs look alike. A part of an unknown kind is reported, too, and stays as it
   is.
6. Each record is read or reported on its own, and never keeps the others from being read.
"""

from collections.abc import Iterable
from typing import Any, TypeGuard

import msgspec

from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.conversation.coercion import ROLES, object_of
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.parts import UnknownPart, read_part
from nexus_context.conversation.repair import call_mark, drop_last_marks

_ANTHROPIC_BLOCKS = {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"}
_ABOUT_LIST = (
    "role type id uuid name model provider object status state timestamp version content_type $type date "
    "created created_at createdAt updated_at updatedAt finish_reason stop_reason stop_sequence usage "
    "logprobs session_id sessionId parentUuid meta metadata _meta mimeType mediaType media_type"
)
_ABOUT = frozenset(_ABOUT_LIST.split())
"""Keys of what is said about a message, or a part of it, rather than in it."""
_OPENAI_KEYS = {"tool_calls", "tool_call_id", "function_call", "refusal", "audio"}
_NEUTRAL_KEYS = {"toolCalls", "toolCallId", "meta", "tokens", "timestamp"}


class MalformedError(Exception):
    """A record is not a message; the text says why."""


def convert(records: Iterable[Record], report: Report) -> list[Message]:
    """Convert records to messages, in order. A record that is not a message is reported and left out."""
    messages: list[Message] = []
    unnamed: dict[str, str] = {}  # function → id of its last call that came without one
    for record in records:
        converted = contained(record, record.value, report)
        if converted is None:
            continue
        _report_unknown_parts(record, converted, report)
        value = record.value
        if isinstance(value.get("function_call"), dict):
            identified = msgspec.structs.replace(
                converted[0].tool_calls[-1], id=f"function-{len(messages) + 1}"
            )
            unnamed[identified.name] = identified.id
            calls = (*converted[0].tool_calls[:-1], identified)
            converted = [msgspec.structs.replace(converted[0], tool_calls=calls)]
        elif value.get("role") == "function" and converted[0].tool_call_id is None:
            converted = [
                msgspec.structs.replace(converted[0], tool_call_id=unnamed.pop(str(converted[0].name), None))
            ]
        messages += converted
    return messages


def contained(record: Record, value: Any, report: Report) -> list[Message] | None:
    """Convert `value`, a message in `record`, to neutral messages. Return None, and report why, if it is not
    a message or the caller refuses it.
    """
    try:
        messages = neutral(value)
    except MalformedError as error:
        report.add(record.span, "transcript.message", f"{record.place} is not a valid message: {error}")
        return None
    except Exception as error:  # noqa: BLE001 - one record must not keep the others from being read
        report.add_internal(record.span, record.place, error)
        return None
    text_path = None if any(map(_holds_something, messages)) else _place_of_text(record.value)
    if text_path is not None:
        text = (
            f"{record.place} has its text under {text_path!r}, where no known format has it; it is left out."
        )
        report.add(record.span, "transcript.text", text)
        return None
    reason = next(filter(None, map(report.refusal, messages)), None)
    if reason is not None:
        report.add(record.span, "transcript.message", f"{record.place} cannot be kept: {reason}")
        return None
    return messages


def _holds_something(message: Message) -> bool:
    """Whether a message has a text, a call, or a part that is read."""
    content: Any = message.content
    if message.tool_calls or message.role == "tool" or isinstance(content, str):
        return bool(message.tool_calls or message.role == "tool" or content)
    return isinstance(content, list) and any(not isinstance(read_part(part), UnknownPart) for part in content)


def _report_unknown_parts(record: Record, messages: Iterable[Message], report: Report) -> None:
    for message in messages:
        for part in message.content if isinstance(message.content, list) else ():
            kind = read_part(part)
            if isinstance(kind, UnknownPart) and _path_to_text(part, kind.type) is not None:
                text = f"{record.place} has a part of the type {kind.type!r}, which is not read; it is kept."
                report.add(record.span, "transcript.text", text)


def _place_of_text(value: Any) -> str | None:
    """The path of the keys to the text of a record that no format reads; None without a text."""
    inner = value.get("message") if isinstance(value, dict) and "role" not in value else value
    if not isinstance(inner, dict):
        return None
    has_content = "content" in inner
    for key, item in inner.items():
        if key in _ABOUT or (has_content and not isinstance(item, dict | list)):
            continue
        path = _path_to_text(item, key)
        if path is not None:
            return path if inner is value else f"message.{path}"
    return None


def _path_to_text(value: Any, path: str, levels: int = 8) -> str | None:
    """The path of the first text in a value, except names of kinds and ids."""
    if isinstance(value, str):
        return path if value.strip() else None
    if not levels or not isinstance(value, dict | list):
        return None
    items = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    paths = (
        _path_to_text(item, path if key is None else f"{path}.{key}", levels - 1)
        for key, item in items
        if key not in _ABOUT
    )
    return next(filter(None, paths), None)


def form_of(value: Any) -> str | None:
    """Return the format of a message: "anthropic", "openai" or "neutral". None if it would be the same in all
    three.
    """
    if not isinstance(value, dict):
        return None
    content = value.get("content")
    parts = content if isinstance(content, list) else []
    types = (part.get("type") for part in parts if isinstance(part, dict))
    kinds = {kind for kind in types if isinstance(kind, str)}
    if not kinds.isdisjoint(_ANTHROPIC_BLOCKS):
        return "anthropic"
    if not _OPENAI_KEYS.isdisjoint(value) or "image_url" in kinds:
        return "openai"
    if value.get("role") in ("developer", "function"):
        return "openai"
    return None if _NEUTRAL_KEYS.isdisjoint(value) else "neutral"


def neutral(value: Any) -> list[Message]:
    """Convert one message to neutral messages. Raise MalformedError for anything else."""
    if not isinstance(value, dict):
        raise MalformedError(f"expected an object with a role, got {_kind(value)}")
    name = value.get("role")
    role = ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        text = "it has no role" if name is None else f"its role is {_short(name)}"
        raise MalformedError(f"{text}; use one of {', '.join(ROLES)}")
    content: Any = value.get("content", msgspec.UNSET)
    if isinstance(content, dict):
        content = [content]
    if not (content is None or content is msgspec.UNSET or isinstance(content, str | list)):
        raise MalformedError(f"its content is {_kind(content)}, not text or a list of parts")
    if content is None or content is msgspec.UNSET:
        content = value["refusal"] if isinstance(value.get("refusal"), str) else content
    if role == "user" and _has_block(content, "tool_result"):
        return _results(value, content)
    calls = _calls(value)
    reasoning = value.get("reasoning_content")
    if role == "assistant" and isinstance(reasoning, str) and reasoning:
        texts = (
            []
            if not content
            else [{"type": "text", "text": content}]
            if isinstance(content, str)
            else content
        )
        content = [{"type": "reasoning_content", "text": reasoning}, *texts]
    if role == "assistant" and _has_block(content, "tool_use"):
        calls += [
            _named_call(block.get("id"), block.get("name"), block.get("input", {}))
            for block in content
            if _is_block(block, "tool_use")
        ]
        content = _with_marks(content)
    call_id = value.get("tool_call_id", value.get("toolCallId"))
    return [
        Message(
            role,
            content,
            tuple(calls),
            tool_call_id=call_id if isinstance(call_id, str) else None,
            name=value["name"] if isinstance(value.get("name"), str) else None,
            **_extra_fields(value),
        )
    ]


def _with_marks(content: list[Any]) -> list[Any] | None:
    """The blocks, with a mark in place of each call."""
    marked = [
        call_mark(block, str(block.get("id") or "")) if _is_block(block, "tool_use") else block
        for block in content
    ]
    drop_last_marks(marked)
    return marked or None


def _extra_fields(value: dict[str, Any]) -> dict[str, Any]:
    """The fields that only our own format has."""
    fields: dict[str, Any] = {"meta": value["meta"]} if "meta" in value else {}
    if isinstance(value.get("timestamp"), str | int | float) and not isinstance(value["timestamp"], bool):
        fields["timestamp"] = value["timestamp"]
    if type(value.get("tokens")) is int:
        fields["tokens"] = value["tokens"]
    return fields


def _results(value: dict[str, Any], content: list[Any]) -> list[Message]:
    extra = _extra_fields(value)
    messages: list[Message] = []
    for block in content:
        if not _is_block(block, "tool_result"):
            continue
        call_id, inner = block.get("tool_use_id"), block.get("content", msgspec.UNSET)
        if isinstance(inner, dict):
            inner = [inner]
        if not (inner is None or inner is msgspec.UNSET or isinstance(inner, str | list)):
            raise MalformedError(f"a result's content is {_kind(inner)}, not text or a list of blocks")
        fields = dict(extra)
        if block.get("is_error") is True:
            fields["meta"] = {"is_error": True}
        messages.append(
            Message(
                "tool", inner, tool_call_id=call_id if isinstance(call_id, str) else None, **extra, **fields
            )
        )
    other_blocks = [block for block in content if not _is_block(block, "tool_result")]
    return [*messages, Message("user", other_blocks, **extra)] if other_blocks else messages


def _calls(value: dict[str, Any]) -> list[ToolCall]:
    items = value.get("tool_calls", value.get("toolCalls"))
    if items is not None and not isinstance(items, list):
        raise MalformedError(f"its tool calls are {_kind(items)}, not a list")
    calls = [_call(call) for call in items or ()]
    if isinstance(value.get("function_call"), dict):
        calls.append(_call({"function": value["function_call"]}))
    return calls


def _call(call: Any) -> ToolCall:
    """A call in OpenAI's format, where the name is inside `function` or `custom`, or in our own."""
    if not isinstance(call, dict):
        raise MalformedError(f"a tool call is {_kind(call)}, not an object")
    inner = call.get("function", call.get("custom"))
    source = inner if isinstance(inner, dict) else call
    arguments = source.get("arguments", source.get("input", {}))
    if inner is not None and isinstance(arguments, str):
        arguments = object_of(arguments)
    return _named_call(call.get("id"), source.get("name"), arguments)


def _named_call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    if not isinstance(name, str):
        raise MalformedError("a tool call has no name")
    return ToolCall(call_id if isinstance(call_id, str) else "", name, arguments)


def _is_block(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


def _has_block(content: Any, kind: str) -> TypeGuard[list[Any]]:
    return isinstance(content, list) and any(_is_block(block, kind) for block in content)


def _kind(value: Any) -> str:
    """The type of a JSON value, in words."""
    if isinstance(value, bool):
        return str(value).lower()
    names = {dict: "an object", list: "a list", str: "text", type(None): "null"}
    return names.get(type(value), "a number")


def _short(value: Any) -> str:
    return repr(value) if len(repr(value)) <= 40 else repr(value)[:40] + "…"
