"""Repairs of a single message: its role, its content and its calls."""

from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.repair.repair_log import Repair, place
from nexus_context.conversation.repair.values import MOST_DEPTH, clean, is_clean, is_clean_call


class Step(NamedTuple):
    """A message, and the index of the message that it comes from."""

    origin: int
    message: Message


def steps_of(index: int, original: Message, repairs: list[Repair]) -> list[Step]:
    """The repaired message; several if calls and results stood in the wrong place."""
    message = _encodable(index, original, repairs)
    if message.role not in ("system", "user", "assistant", "tool"):
        text = f"The role {message.role} of {place(index)} is unknown; it is sent as a user message."
        repairs.append(Repair("role-unknown", text, index))
        message = msgspec.structs.replace(message, role="user")
    content = message.content
    messages = _lifted(index, message, content, repairs) if isinstance(content, list) else [message]
    steps: list[Step] = []
    for one in messages:
        if one.tool_calls and one.role != "assistant":
            text = (
                f"Tool calls in {place(index)}, whose role is {one.role}, are sent in an assistant message."
            )
            repairs.append(Repair("call-misplaced", text, index, one.tool_calls[0].id))
            steps.append(Step(index, msgspec.structs.replace(one, tool_calls=())))
            one = Message("assistant", None, one.tool_calls)
        steps.append(Step(index, one))
    return steps


def _encodable(index: int, message: Message, repairs: list[Repair]) -> Message:
    """The message with text that UTF-8 can encode and JSON that is not too deep."""
    changes: dict[str, Any] = {}
    content: Any = message.content
    if not (content is None or content is msgspec.UNSET or isinstance(content, str | list)):
        changes["content"] = clean([content] if isinstance(content, dict) else str(content))
    elif content and not is_clean(content, -1):
        changes["content"] = clean(content, -1)
    for field in ("tool_call_id", "name"):
        value: str | None = getattr(message, field)
        if value is not None and not is_clean(value):
            changes[field] = clean(value)
    calls = message.tool_calls
    if calls and not all(map(is_clean_call, calls)):
        changes["tool_calls"] = tuple(
            ToolCall(clean(call.id), clean(call.name), clean(call.arguments)) for call in calls
        )
    if not changes:
        return message
    text = (
        f"What cannot be sent as JSON in {place(index)} is replaced: half a surrogate pair by U+FFFD, "
        f"values deeper than {MOST_DEPTH} levels by null, anything else by its text."
    )
    repairs.append(Repair("not-json", text, index))
    return msgspec.structs.replace(message, **changes)


def _lifted(index: int, message: Message, content: list[Any], repairs: list[Repair]) -> list[Message]:
    """The message without calls and results in its content; the results come before it."""
    kinds = [part.get("type") if isinstance(part, dict) else None for part in content]
    if "tool_use" not in kinds and "tool_result" not in kinds:
        return [message]
    text = f"Calls and results inside the content of {place(index)} are sent separately."
    repairs.append(Repair("block-lifted", text, index))
    pairs = list(zip(content, kinds, strict=True))
    messages = [_result(part) for part, kind in pairs if kind == "tool_result"]
    calls = (*message.tool_calls, *(_call(part) for part, kind in pairs if kind == "tool_use"))
    rest = [part for part, kind in pairs if kind not in ("tool_use", "tool_result")]
    if rest or calls or message.role == "tool":
        messages.append(msgspec.structs.replace(message, content=rest or None, tool_calls=calls))
    return messages


def _call(block: dict[str, Any]) -> ToolCall:
    call_id, name = block.get("id"), block.get("name")
    return ToolCall(
        call_id if isinstance(call_id, str) else "",
        name if isinstance(name, str) else "",
        block.get("input", {}),
    )


def _result(block: dict[str, Any]) -> Message:
    call_id, content = block.get("tool_use_id"), block.get("content")
    if not isinstance(content, str | list):
        content = None if content is None else [content]
    meta = {"is_error": True} if block.get("is_error") is True else msgspec.UNSET
    return Message("tool", content, tool_call_id=call_id if isinstance(call_id, str) else None, meta=meta)
