"""Define the items of an answer: deltas while it streams, then the whole answer."""

from collections.abc import Sequence
from typing import Any

import msgspec

from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.coercion import object_of
from nexus_context.conversation.half_pairs import whole_message, without_halves
from nexus_context.conversation.message import Message
from nexus_context.conversation.repair import steps_of


class TextDelta(msgspec.Struct, frozen=True):
    """The next piece of the answer's text, or of a refusal."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True):
    """The next piece of the model's reasoning, if its provider shows it."""

    text: str


class ModelAnswer(msgspec.Struct, frozen=True):
    """A whole answer, the last item of a stream.

    `message` is ready for the conversation: appended and assembled again in the same format, it returns the
    provider's text, calls, reasoning and signatures. Its `tool_calls` are the calls that the model wants to
    run. Their arguments are a JSON object, or text if the model did not write a JSON object, as in an answer
    that was cut off. A call of Gemini may have the id "". `stop_reason` is the provider's own word:
    `end_turn`, `tool_use`, `max_tokens`, `refusal` and `pause_turn` (Anthropic); `completed`,
    `max_output_tokens` (responses); `stop`, `length`, `tool_calls`, `content_filter` (chat completions);
    `STOP`, `MAX_TOKENS`, `SAFETY` (Gemini).
    """

    message: Message
    usage: ProviderUsage | None = None
    stop_reason: str | None = None


AnswerItem = TextDelta | ThinkingDelta | ModelAnswer


def text_delta(text: str) -> TextDelta:
    """Build a delta whose text can be sent: half a surrogate pair becomes U+FFFD.

    The whole answer keeps the pair.
    """
    return TextDelta(without_halves(text))


def thinking_delta(text: str) -> ThinkingDelta:
    """Build a delta of reasoning, in the same way as `text_delta`."""
    return ThinkingDelta(without_halves(text))


def message_of(parts: Sequence[dict[str, Any]]) -> Message:
    """Build the message of an answer from its parts, blocks or items.

    Calls are separate, with their places marked.
    """
    steps = steps_of(0, whole_message(Message("assistant", list(parts) or "")), [])
    messages = [step.message for step in steps if step.message.role == "assistant"]
    message = messages[0] if messages else Message("assistant", "")
    calls = [
        msgspec.structs.replace(call, arguments=object_of(call.arguments))
        if isinstance(call.arguments, str)
        else call
        for call in message.tool_calls
    ]
    return msgspec.structs.replace(message, tool_calls=tuple(calls))


def usage_of(
    total: Any, answer: Any, *, read: Any = None, written: Any = None, is_apart: bool = False
) -> ProviderUsage | None:
    """Build the usage from a provider's counts. None if one of the two totals is missing.

    `total` are the input tokens, `answer` the output tokens. `total` includes the tokens that were read from
    the cache (`read`) and written to it (`written`), unless `is_apart`.
    """
    if not (_is_count(total) and _is_count(answer)):
        return None
    cached, stored = (value if _is_count(value) else None for value in (read, written))
    fresh = total if is_apart else max(total - (cached or 0) - (stored or 0), 0)
    return ProviderUsage(fresh, answer, cached, stored)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
