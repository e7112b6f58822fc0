"""Messages: immutable values in the shape that clients send and models receive.

JSON values have no cycles, so the garbage collector need not track messages (`gc=False`): with long histories
it scanned all of them again and again.
"""

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One tool call of an assistant. `arguments` is any JSON value, unchanged."""

    id: str  # the id that the result refers to
    name: str  # the tool
    arguments: Any = msgspec.field(default_factory=dict)  # any JSON value, unchanged


class Message(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """One message of a conversation.

    `content` is text, a list of parts (JSON objects such as `{"type": "text", "text": …}`) or null
    beside tool calls. Content, arguments and meta come back exactly as they went in. `timestamp` is in the
    client's own format; `tokens` is set by whoever counted.
    """

    role: Role  # who speaks
    # text, a list of parts, or null or absent beside tool calls
    content: str | list[Any] | msgspec.UnsetType | None = msgspec.UNSET
    tool_calls: tuple[ToolCall, ...] = ()  # calls of an assistant
    tool_call_id: str | None = None  # the call that a tool message answers
    name: str | None = None  # of the speaker or the tool
    meta: Any = msgspec.UNSET  # anything that the client wants back
    timestamp: str | float | int | None = None  # in the client's own format
    tokens: int | None = None  # set by whoever counted


def content_of(message: Message) -> str | list[Any]:
    """Text or parts; empty text without content."""
    return (
        "" if message.content is None or isinstance(message.content, msgspec.UnsetType) else message.content
    )


def text_of(message: Message) -> str:
    """The text of a message: its content, or its text parts joined by newlines."""
    content = content_of(message)
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))
