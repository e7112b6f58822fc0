"""Defines messages: immutable values in the form that clients send and models receive.

JSON values have no cycles, so the garbage collector need not track messages (`gc=False`): with long histories
it scanned all of them again and again.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]

GAP = "\n\n"
"""Separates the parts of a message that is sent with a preamble."""


class ToolCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One tool call of an assistant. `arguments` is any JSON value, and is kept unchanged."""

    id: str  # the id that the result refers to
    name: str  # the tool
    arguments: Any = msgspec.field(default_factory=dict)  # any JSON value, unchanged


class Preamble(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The text before a user message's content. Whenever the message is sent again, the preamble is sent
    again byte for byte.

    `items` are the hashes of the memory items in `memory` that were sent whole. `changes` is sent only while
    the conversation is in the state with the number `frozen` (`frozen.Frozen`).
    """

    event: str = ""  # the time, the facts of the event, the state of git
    memory: str = ""  # messages of agents, levels of memory, events, passages of files
    items: tuple[str, ...] = ()  # hashes of what `memory` has whole
    changes: str = ""  # what changed in the system prompt and the tools since they were sent
    frozen: int = 0  # number of the system prompt and tools that `changes` is about

    @property
    def text(self) -> str:
        """The whole text before the content."""
        return GAP.join(part for part in (self.event, self.memory, self.changes) if part)


class Message(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """One message of a conversation.

    `content` is a text, a list of parts (JSON objects such as `{"type": "text", "text": …}`), or null beside
    tool calls. It is what its author wrote; models receive `sent_content`. Content, arguments and meta come
    back exactly as they went in. `timestamp` is in the client's own format. `tokens` is set by the program
    that counted them.
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
    preamble: Preamble | None = None  # of a user message: what it was sent with
    answers: str | None = None  # the fingerprint of what was sent before an answer with reasoning


def content_of(message: Message) -> str | list[Any]:
    """Return the text or parts of a message. Return "" if it has no content."""
    return (
        "" if message.content is None or isinstance(message.content, msgspec.UnsetType) else message.content
    )


def text_of(message: Message) -> str:
    """Return the text of a message: its content, or its text parts joined by newlines."""
    content = content_of(message)
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def is_error(message: Message) -> bool:
    """Whether a result says that its tool failed: `meta.is_error`, or MCP's `isError`."""
    meta = message.meta
    return isinstance(meta, dict) and (meta.get("is_error") is True or meta.get("isError") is True)


def sent_content(message: Message) -> str | list[Any]:
    """Return the content as it is sent: the preamble, then the content. Return "" if there is neither.

    The message of an event has no content, and is sent as its preamble alone.
    """
    front = "" if message.preamble is None else message.preamble.text
    if not front:
        return content_of(message)
    content = message.content
    if isinstance(content, str):
        return f"{front}{GAP}{content}"
    return (
        front if content is None or isinstance(content, msgspec.UnsetType) else [text_part(front), *content]
    )


def type_of(part: Any) -> str:
    """Return the type of a part. Return "" if the part is not an object or its type is not a text."""
    kind = part.get("type") if part.__class__ is dict else None
    return kind if isinstance(kind, str) else ""


def text_part(text: str) -> dict[str, str]:
    """Return a content part with this text."""
    return {"type": "text", "text": text}


def sent_message(message: Message) -> Message:
    """Return the message as a model receives it. It is the same object if it has no preamble."""
    if message.preamble is None:
        return message
    return msgspec.structs.replace(message, content=sent_content(message), preamble=None)


def written_message(message: Message) -> Message:
    """Return the message as its author wrote it. The message of an event, which has no content, gets the
    event's text as its content.
    """
    if message.preamble is None and message.answers is None:
        return message
    content, preamble = message.content, message.preamble
    if preamble is not None and isinstance(content, msgspec.UnsetType):
        content = preamble.event
    return msgspec.structs.replace(message, content=content, preamble=None, answers=None)


def without_preamble(message: Message) -> Message:
    """Return the message as its author wrote it. It is the same object if it has no preamble.

    If the message has no content, the event in its preamble stays, since the message has nothing else.
    """
    preamble = message.preamble
    if preamble is None:
        return message
    kept_preamble = (
        Preamble(preamble.event)
        if isinstance(message.content, msgspec.UnsetType) and preamble.event
        else None
    )
    return msgspec.structs.replace(message, preamble=kept_preamble)


def without_changes(message: Message) -> Message:
    """Return the message without the note on changed prompt and tools. It is the same object if it has no
    such note.
    """
    preamble = message.preamble
    if preamble is None or not preamble.changes:
        return message
    kept_preamble = msgspec.structs.replace(preamble, changes="", frozen=0)
    return msgspec.structs.replace(message, preamble=kept_preamble if kept_preamble.text else None)


def changes_apart(message: Message) -> tuple[Message, Message] | None:
    """Split off the note on changed prompt and tools. Return it as a system message, and the rest as it is
    sent.

    Return None if the message has no such note.
    """
    bare_message = without_changes(message)
    if bare_message is message or message.preamble is None:
        return None
    return Message("system", message.preamble.changes), sent_message(bare_message)


def without_old_preambles(messages: Iterable[Message]) -> list[Message]:
    """Remove the preambles of all turns but the last from messages that a compaction keeps.

    Notes on changed prompt and tools are removed everywhere, because prompt and tools are rendered anew after
    a compaction.
    """
    kept_messages = list(messages)
    users = [at for at, message in enumerate(kept_messages) if message.role == "user"]
    last_turn_start = users[-1] if users else 0
    while last_turn_start - 1 in users:  # several user messages begin one turn
        last_turn_start -= 1
    return [
        (without_preamble if at < last_turn_start else without_changes)(message)
        for at, message in enumerate(kept_messages)
    ]
