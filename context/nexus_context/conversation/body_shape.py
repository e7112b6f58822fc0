"""What a format of a body changes in the messages of a history, and what that costs.

1. A note on changed prompts and tools is a message of its own, where the format has such, else a part of its
   message. Notes of other numbers than the sent prompt's are not sent.
2. Reasoning goes to its own provider only; a compaction by another provider's server is sent as a text.
3. OpenAI gets a text in place of an empty result, Anthropic and Gemini nothing.

Counts of a history are those of the messages as they are; what a body adds or leaves out is added to them.
"""

from typing import Any, NamedTuple

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
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.tokens.estimates import is_opaque


class BodyShape(NamedTuple):
    """How a body has messages. Without a `format`, they are sent as they are.

    Notes of the `number` are sent; `note` is the text of one as a message of its own, with `{text}`; "": it
    is a part of its message. `provider` is the one whose reasoning and compactions the body can have.
    """

    number: int = 0
    format: str = ""
    note: str = ""
    provider: parts.Provider | None = None
    empty_result: str = ""


AS_IT_IS = BodyShape()


def is_reshaped(message: Message) -> bool:
    """Whether a format may change what a message costs."""
    if message.preamble is not None and message.preamble.changes:
        return True
    content = message.content
    if isinstance(content, list):
        return any(isinstance(part, dict) and is_opaque(part) for part in content)
    return message.role == "tool" and parts.is_blank(content_of(message))


def added_tokens(message: Message, counter: TokenCounter, shape: BodyShape) -> int:
    """What a body of this shape adds to the tokens of a message; below 0 if it leaves something out."""
    if not shape.format:
        return 0
    added, rest = 0, sent_message(message)
    apart = changes_apart(message) if shape.note else None
    if apart is not None:
        note, rest = apart
        added = count_message(counter, shape.note.format(text=content_of(note)))
    content: Any = content_of(rest)
    if rest.role == "tool" and parts.is_blank(content):
        content = shape.empty_result
    elif isinstance(content, list):
        content, texts = _reshaped(content, shape)
        added += sum(count_message(counter, text) for text in texts)
        if texts and not content and not rest.tool_calls:
            return added - count_message(counter, sent_content(message))
    added += count_message(counter, content, rest.tool_calls)
    return added - count_message(counter, sent_content(message), message.tool_calls)


def _reshaped(content: list[Any], shape: BodyShape) -> tuple[list[Any], list[str]]:
    """The parts that stay in a message, and compactions of other providers as texts of their own."""
    kept: list[Any] = []
    texts: list[str] = []
    for part in content:
        kind = parts.read_part(part) if isinstance(part, dict) and is_opaque(part) else None
        match kind:
            case parts.ThinkingPart(provider, signed):
                if signed is not None and provider == shape.provider:
                    kept.append(part)
            case parts.CompactionPart(provider, own) if own is None or provider != shape.provider:
                texts += [] if own is None else [compaction_text(kind)]
            case parts.TextPart(text) if shape.provider != "gemini":
                kept.append(text_part(text))
            case _:
                kept.append(part)
    return kept, texts
