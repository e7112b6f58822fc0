"""Determines what a format changes in the messages of a history, and how many tokens that adds.

1. A note on changed prompts and tools is a message of its own if the format has such messages, else a part of
   its message. A note about another prompt than the one that is sent is left out.
2. Reasoning is sent only to the provider that made it. A compaction that another provider's server made is
   sent as a text.
3. An empty result is sent to OpenAI as a text, and to Anthropic and Gemini without one.
4. The name of a speaker is a field in OpenAI's chat format if that format accepts it. Otherwise the name
   stands in the text.

A history counts its messages as they are. Tokens that a body adds or leaves out are added to these counts.
"""

import re
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation import parts
from nexus_context.conversation.message import (
    Message,
    changes_apart,
    content_of,
    sent_content,
    sent_message,
    text_part,
)
from nexus_context.conversation.summary import compaction_text
from nexus_context.folder.prompt import texts
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.tokens.estimates import is_opaque

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")  # by the reference of OpenAI's API


class BodyShape(NamedTuple):
    """How a body has messages. If `format` is empty, messages are sent as they are.

    Only notes with this `number` are sent. `note` is a template with `{text}` for a note that is a message of
    its own; if it is empty, the note is a part of its message. `provider` is the provider whose reasoning and
    compactions the body can have. `empty_result` is sent in place of an empty result.
    """

    number: int = 0
    format: str = ""
    note: str = ""
    provider: parts.Provider | None = None
    empty_result: str = ""


AS_IT_IS = BodyShape()


def is_reshaped(message: Message) -> bool:
    """Whether a format can change the tokens of a message. Opaque parts are not considered."""
    if message.name is not None and message.role != "tool":
        return True
    if message.preamble is not None and message.preamble.changes:
        return True
    return message.role == "tool" and parts.is_blank(content_of(message))


def takes_name(form: str, name: str) -> bool:
    """Whether a format has a field for the name of a speaker, and accepts this name in it."""
    return form == "openai" and _NAME.fullmatch(name) is not None


def with_speaker(message: Message) -> Message:
    """Return the message with the speaker's name before its first text. An answer without a text is returned
    unchanged.
    """
    name, content = " ".join((message.name or "").split()), content_of(message)
    if not name or not content:
        return message
    form = texts.text("speaker")
    if isinstance(content, str):
        content = form.format(name=name, text=content)
        return msgspec.structs.replace(message, content=content, name=None)
    at = next((at for at, part in enumerate(content) if _has_plain_text(part)), None)
    if at is not None:
        part: Any = content[at]
        text = form.format(name=name, text=part["text"])
        content = [*content[:at], part | {"text": text}, *content[at + 1 :]]
    elif message.role == "assistant":
        return message
    else:
        content = [text_part(form.format(name=name, text="").strip()), *content]
    return msgspec.structs.replace(message, content=content, name=None)


def _has_plain_text(part: Any) -> bool:
    if not isinstance(part, dict) or parts.is_blank(part):
        return False
    return isinstance(parts.read_part(part), parts.TextPart) and isinstance(part.get("text"), str)


def added_tokens(message: Message, counter: TokenCounter, shape: BodyShape) -> int:
    """Return the tokens that a body of this shape adds to a message. The result is negative if the body
    leaves parts out.
    """
    if not shape.format:
        return 0
    added, body_message = 0, sent_message(message)
    if message.name is not None and message.role != "tool":
        if takes_name(shape.format, message.name):
            added = counter.count(message.name)
        else:
            body_message = with_speaker(body_message)
    apart = changes_apart(message) if shape.note else None
    if apart is not None:
        note, body_message = apart
        added += count_message(counter, shape.note.format(text=content_of(note)))
    content: Any = content_of(body_message)
    if body_message.role == "tool" and parts.is_blank(content):
        content = shape.empty_result
    elif isinstance(content, list):
        content, texts = _reshaped(content, shape)
        added += sum(count_message(counter, text) for text in texts)
        if texts and not content and not body_message.tool_calls:
            return added - count_message(counter, sent_content(message))
    added += count_message(counter, content, body_message.tool_calls, body_message.role)
    return added - count_message(counter, sent_content(message), message.tool_calls, message.role)


def _reshaped(content: list[Any], shape: BodyShape) -> tuple[list[Any], list[str]]:
    """The parts that stay in a message, and compactions of other providers as texts of their own."""
    kept_parts: list[Any] = []
    texts: list[str] = []
    for part in content:
        kind = parts.read_part(part) if isinstance(part, dict) and is_opaque(part) else None
        match kind:
            case parts.ThinkingPart(provider, signed):
                if signed is not None and provider == shape.provider:
                    kept_parts.append(part)
            case parts.CompactionPart(provider, own_part) if own_part is None or provider != shape.provider:
                texts += [] if own_part is None else [compaction_text(kind)]
            case parts.TextPart(text) if shape.provider != "gemini":
                kept_parts.append(text_part(text))
            case _:
                kept_parts.append(part)
    return kept_parts, texts
