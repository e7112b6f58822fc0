"""What each provider streams, as its documentation shows it, and what comes of that.

Every answer has reasoning that is signed, a text with letters of several bytes, and two calls of tools.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.message import ToolCall
from support.streaming_provider import events

THOUGHT, TEXT = "Brest, Bretagne: naïve 🌊?", "The tide – “la marée” – is low 🌊 at 12:40."
CALLS = (("call_1", {"place": "Brest"}), ("call_2", {"place": "Saint-Malo 🏰", "days": 2}))
TOOL = "tides_low"
TOOL_CALLS = tuple(ToolCall(call_id, TOOL, arguments) for call_id, arguments in CALLS)


class ProviderStream(NamedTuple):
    """A provider's answer as it streams. `returned` is what the next request has of it, in this order."""

    provider: str
    model: str
    history: str  # the field of a body that has the messages
    path: str
    data: bytes
    usage: ProviderUsage
    stop_reason: str
    returned: Sequence[Any]
    calls: Sequence[ToolCall] = TOOL_CALLS


def _anthropic() -> ProviderStream:
    usage = {"input_tokens": 20, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [],
    }
    message = message | {"stop_reason": None, "stop_sequence": None, "usage": usage | {"output_tokens": 1}}
    thinking = {"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVk"}
    redacted = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
    text = {"type": "text", "text": TEXT}
    uses = [{"type": "tool_use", "id": name, "name": TOOL, "input": each} for name, each in CALLS]
    parts: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "ping"},
        *_block(0, thinking | {"thinking": "", "signature": ""}, "thinking_delta", "thinking", THOUGHT),
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "c2lnbmVk"},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": redacted},
        {"type": "content_block_stop", "index": 1},
        *_block(2, text | {"text": ""}, "text_delta", "text", TEXT),
        {"type": "ping"},
        {"type": "content_block_stop", "index": 2},
    ]
    inputs = ('{"place": "Brest"}', '{"place": "Saint-Malo 🏰", "days": 2}')
    for index, (use, json_text) in enumerate(zip(uses, inputs, strict=True), 3):
        parts += _block(index, use | {"input": {}}, "input_json_delta", "partial_json", json_text)
        parts.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": "tool_use", "stop_sequence": None}
    parts += [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 90}},
        {"type": "message_stop"},
    ]
    return ProviderStream(
        "anthropic",
        "claude-opus-4-8",
        "messages",
        "/v1/messages",
        events(*parts),
        ProviderUsage(20, 90, 5, 7),
        "tool_use",
        [{"role": "assistant", "content": [thinking, redacted, text, *uses]}],
    )


def _block(index: int, block: dict[str, Any], kind: str, field: str, text: str) -> list[dict[str, Any]]:
    """A block begins, and its text comes in pieces of seven characters."""
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    deltas = [
        {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: each}}
        for each in pieces
    ]
    return [{"type": "content_block_start", "index": index, "content_block": block}, *deltas]


STREAMS = {stream.provider: stream for stream in (_anthropic(),)}
