"""Converts what agents do to events, and events to messages.

1. Events become messages like this (SPEC §9): thinking → assistant; execute → user; tool call → one line of
   the assistant. A tool's result is left out, since it would repeat large outputs.
2. A turn of a ledger becomes events. A user's message is `execute`. An assistant's reasoning and then its
   text are `thinking`, and each of its calls is `tool_call`. A tool's answer is `tool_result`. Memory leaves
   reasoning out.
3. Clients publish events of other kinds. Such an event has `data` and is never a message.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.shortening import shorten_text
from nexus_context.conversation.summary import is_summary
from nexus_context.errors import RequestError
from nexus_context.folder.prompt import texts
from nexus_context.ledger.records import DirectMessage
from nexus_context.memory.item import line
from nexus_context.tokens.estimates import json_text

MESSAGE_ACTIONS = ("execute", "thinking", "tool_call", "tool_result")
"""Actions that are parts of a conversation."""
LONGEST_ARGUMENTS = 200
"""Characters of a call's arguments in a message."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened in a workspace: what an agent did in a session, or what a client reports.

    `text` is the thought, the request or the result. A tool call has `tool` and `arguments`, a message that
    the bus delivers has `direct`, and any other event has `data`. `turn` is the id of the ledger's turn that
    records the same event. `above` are the names of the agents above `agent`, which see its events. The bus
    sets `id`, `number` and `at`, in seconds since the epoch.
    """

    action: str
    text: str = ""
    tool: str | None = None
    arguments: Any = None
    data: Any = None
    direct: DirectMessage | None = None
    session: str | None = None
    agent: str | None = None
    above: tuple[str, ...] = ()
    turn: str | None = None
    id: str = ""
    number: int = 0
    at: float = 0.0


def events_of(
    messages: Iterable[Message],
    *,
    session: str | None = None,
    agent: str | None = None,
    with_reasoning: bool = True,
) -> Iterator[Event]:
    """Yield the events of a conversation's messages. System messages and summaries have none."""
    opening = texts.text("session_started").partition("{")[0]
    for message in messages:
        thoughts, text = _thoughts_and_text(message)
        if message.role == "system" or is_summary(message) or text.startswith(opening):
            continue
        if message.role == "tool":
            yield Event(action="tool_result", text=text, tool=message.name, session=session, agent=agent)
            continue
        for thought in thoughts if with_reasoning else ():
            yield Event(action="thinking", text=thought, session=session, agent=agent)
        if text:
            action = "execute" if message.role == "user" else "thinking"
            yield Event(action=action, text=text, session=session, agent=agent)
        for call in message.tool_calls:
            yield Event(
                action="tool_call", tool=call.name, arguments=call.arguments, session=session, agent=agent
            )


def _thoughts_and_text(message: Message) -> tuple[list[str], str]:
    """The reasoning of an answer, as far as it can be read, and what the message says."""
    content = message.content
    if message.role != "assistant" or not isinstance(content, list):
        return [], text_of(message).strip()
    thoughts = [(part, _reasoning_text(part).strip()) for part in content]
    spoken_parts = [part for part, thought in thoughts if not thought]
    spoken = text_of(msgspec.structs.replace(message, content=spoken_parts)).strip()
    return [thought for _, thought in thoughts if thought], spoken


def _reasoning_text(part: Any) -> str:
    """The readable text of a model's reasoning in a part, of any provider; "" for another part."""
    if not isinstance(part, dict):
        return ""
    summary = part.get("summary") if part.get("type") == "reasoning" else ()
    if isinstance(summary, list):
        return "\n".join(str(item["text"]) for item in summary if isinstance(item, dict) and "text" in item)
    is_clear = part.get("thought") is True or part.get("type") == "reasoning_content"
    text = part.get("text") if is_clear else part.get("thinking") if part.get("type") == "thinking" else None
    return text if isinstance(text, str) else ""


def message_of(event: Event) -> Message | None:
    """Return the event as a message. Return None for a direct message, and for every event that memory leaves
    out.
    """
    if event.action == "thinking":
        return Message("assistant", event.text)
    if event.action == "execute":
        return Message("user", event.text)
    if event.action == "tool_call":
        arguments = "" if event.arguments in (None, {}, "") else json_text(event.arguments)
        short_arguments = shorten_text(arguments, LONGEST_ARGUMENTS)
        return Message("assistant", line("call", tool=event.tool, arguments=short_arguments))
    return None


def data_of(event: Event) -> Any:
    """Return the `data` of an event as clients receive it."""
    if event.data is not None or event.action not in MESSAGE_ACTIONS:
        return event.data
    fields = {"content": event.text, "tool": event.tool, "arguments": event.arguments, "turn": event.turn}
    needed = ("tool",) if event.action == "tool_call" else ("content",)
    return {name: value for name, value in fields.items() if value or name in needed}


def from_data(action: str, data: Any, **fields: Any) -> Event:
    """Make the event that a client publishes. Raise RequestError, code `bad-event`, if `data` lacks a
    required text.

    The actions of MESSAGE_ACTIONS require `content`, but `tool_call` requires `tool` and may have
    `arguments`. The `data` of any other action is an arbitrary JSON value.
    """
    if action not in MESSAGE_ACTIONS:
        return Event(action=action, data=data, **fields)
    needed = "tool" if action == "tool_call" else "content"
    values = data if isinstance(data, Mapping) else {}
    if not isinstance(values.get(needed), str):
        raise RequestError(
            f"data of an event of the kind {action} must be an object with the text `{needed}`.",
            code="bad-event",
        )
    tool = values.get("tool")
    return Event(
        action=action,
        text=str(values.get("content", "")),
        tool=tool if isinstance(tool, str) else None,
        arguments=values.get("arguments"),
        data=data,
        **fields,
    )


def memory_messages(messages: Iterable[Message]) -> list[Message]:
    """Convert messages to the form that memory keeps. Messages that memory ignores are left out."""
    converted = (message_of(event) for event in events_of(messages, with_reasoning=False))
    return [message for message in converted if message is not None]
