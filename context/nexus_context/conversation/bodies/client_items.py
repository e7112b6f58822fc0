"""Pairs the items of OpenAI's responses for tools that the client ran, which are sent back unchanged.

1. A call is answered in the next message that is not the assistant's. The server refuses a call without an
   output and an output without a call, so each of these becomes a text with its content.
2. The output of a call stands before the texts of its message.

Source: the input items of the package openai 3.54; errors "No tool output found for shell call".
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from nexus_context.conversation import parts
from nexus_context.conversation.message import Message, text_part, type_of
from nexus_context.conversation.repair import RepairLog
from nexus_context.folder.prompt import texts

_OUTPUTS = {output: call for call, output in parts.CLIENT_CALLS.items()}
_ITEMS = _OUTPUTS.keys() | parts.CLIENT_CALLS.keys()

_PartIndex = tuple[int, int]  # a message and a part of its content


def paired(messages: Sequence[Message], origins: Sequence[int], log: RepairLog) -> Sequence[Message]:
    """Return the messages with texts in place of calls without an output, and of outputs without a call."""
    halves = _halves(messages) if any(map(_has_item, messages)) else ()
    if not halves:
        return messages
    sent_messages = list(messages)
    for index, at in sorted(halves):
        content: Any = list(sent_messages[index].content)  # type: ignore[arg-type]
        kind = parts.read_part(content[at])
        item_text = kind.text if isinstance(kind, parts.ProviderPart) else ""
        content[at] = text_part(item_text or texts.text("part_omitted").format(kind=content[at]["type"]))
        sent_messages[index] = msgspec.structs.replace(sent_messages[index], content=content)
        text = "A call of a client's tool without its output, or an output without its call, is sent as text."
        log.add("item-as-text", text, origins[index])
    return sent_messages


def _has_item(message: Message) -> bool:
    content: Any = message.content
    return content.__class__ is list and any(type_of(part) in _ITEMS for part in content)


def _halves(messages: Sequence[Message]) -> set[_PartIndex]:
    halves: set[_PartIndex] = set()
    waiting: dict[tuple[str, str], _PartIndex] = {}
    for index, message in enumerate(messages):
        content: Any = message.content
        for at, part in enumerate(content if content.__class__ is list else ()):
            kind = type_of(part)
            if kind not in _ITEMS:
                continue
            if kind == "tool_search_call" and part.get("execution", "client") != "client":
                continue
            key = (_OUTPUTS.get(kind, kind), parts.item_key(part))
            is_output = kind in _OUTPUTS
            if (message.role == ("user" if is_output else "assistant")) and is_output == (key in waiting):
                if is_output:
                    del waiting[key]
                else:
                    waiting[key] = (index, at)
            else:
                halves.add((index, at))
        if message.role in ("user", "system"):
            halves.update(waiting.values())
            waiting = {}
    return halves | set(waiting.values())
