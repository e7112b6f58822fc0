"""Covers secrets in messages before a summary is made of them. The ledger keeps the messages unchanged."""

from typing import Any

import msgspec

from nexus_context.conversation.identifiers import arguments_of
from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.text.redact import redact_arguments, redact_message


def without_secrets(message: Message) -> Message:
    """Return the message with every secret in its text and its calls covered. It is the same object if it has
    none.
    """
    content = content_of(message)
    covered = (
        redact_message(content) if isinstance(content, str) else [_redacted_part(part) for part in content]
    )
    calls = tuple(map(_call, message.tool_calls))
    if covered == content and calls == message.tool_calls:
        return message
    return msgspec.structs.replace(
        message, content=message.content if covered == content else covered, tool_calls=calls
    )


def _call(call: ToolCall) -> ToolCall:
    arguments = arguments_of(call.arguments)
    covered = redact_arguments(arguments)
    return call if covered == arguments else ToolCall(call.id, call.name, covered)


def _redacted_part(part: Any) -> Any:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return part | {"text": redact_message(part["text"])}
    return part
