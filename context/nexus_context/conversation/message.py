"""Messages: immutable values in the shape that clients send and models are sent.

What JSON can say has no cycles, so the garbage collector need not look at messages (`gc=False`): long
histories made it go through all of them again and again.
"""

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """One call that an assistant asks for. `arguments` is any JSON value, kept as it came."""

    id: str  # the id that the result refers to
    name: str  # the tool
    arguments: Any = msgspec.field(default_factory=dict)  # any JSON value, kept as it came


class Message(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One message of a conversation.

    `content` is text, a list of parts (JSON objects such as `{"type": "text", "text": …}`) or null
    beside tool calls. What is inside content, arguments and meta comes back exactly as it went in.
    `timestamp` is whatever the client counts time in; `tokens` is filled in by whoever counted.
    """

    role: Role  # who speaks
    # text, a list of parts, or null or nothing beside tool calls
    content: str | list[Any] | msgspec.UnsetType | None = msgspec.UNSET
    tool_calls: tuple[ToolCall, ...] = ()  # calls that an assistant asks for
    tool_call_id: str | None = None  # the call that a tool's message answers
    name: str | None = None  # name of the speaker or of the tool
    meta: Any = msgspec.UNSET  # anything that the client wants to find again
    timestamp: str | float | int | None = None  # whatever the client counts time in
    tokens: int | None = None  # filled in by whoever counted


def content_of(message: Message) -> str | list[Any]:
    """Text or parts; empty text where there is no content."""
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
