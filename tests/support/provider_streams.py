"""What each provider streams, as its documentation shows it, and what comes of that.

Every answer has reasoning that is signed, a text with letters of several bytes, and two calls of tools.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.message import ToolCall
from support.streaming_provider import data_lines, events

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
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [],
    }
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage | {"output_tokens": 1}}
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


def _openai_chat() -> ProviderStream:
    chunk = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": "deepseek-reasoner"}

    def delta(value: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return chunk | {"choices": [{"index": 0, "delta": value, "finish_reason": reason}], "usage": None}

    chunks = [delta({"role": "assistant", "content": None})]
    chunks += [delta({"content": None, "reasoning_content": each}) for each in _pieces(THOUGHT)]
    chunks += [delta({"content": each}) for each in _pieces(TEXT)]
    for index, (call_id, arguments) in enumerate(CALLS):
        function = {"name": TOOL, "arguments": ""}
        call = {"index": index, "id": call_id, "type": "function", "function": function}
        chunks.append(delta({"tool_calls": [call]}))
        for each in _pieces(_compact(arguments)):
            chunks.append(delta({"tool_calls": [{"index": index, "function": {"arguments": each}}]}))
    usage = {"prompt_tokens": 32, "completion_tokens": 90, "total_tokens": 122}
    usage_chunk = chunk | {"choices": [], "usage": usage | {"prompt_tokens_details": {"cached_tokens": 5}}}
    calls = [
        {"id": call_id, "type": "function", "function": {"name": TOOL, "arguments": _compact(arguments)}}
        for call_id, arguments in CALLS
    ]
    message = {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}
    return ProviderStream(
        "openai-compatible",
        "deepseek-reasoner",
        "messages",
        "/chat/completions",
        data_lines(*chunks, delta({}, "tool_calls"), usage_chunk) + b"data: [DONE]\n\n",
        ProviderUsage(27, 90, 5),
        "tool_calls",
        [message | {"reasoning_content": THOUGHT, "tool_calls": calls}],
    )


def _openai_responses() -> ProviderStream:
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": THOUGHT}],
        "encrypted_content": "c2lnbmVk",
    }
    text = {"type": "output_text", "text": TEXT, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    calls = [
        {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": TOOL,
            "status": "completed",
        }
        | {"arguments": _compact(arguments)}
        for call_id, arguments in CALLS
    ]
    output: list[dict[str, Any]] = [reasoning, item, *calls]
    usage = {"input_tokens": 32, "output_tokens": 90, "total_tokens": 122}
    usage |= {"input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 7}}  # type: ignore[dict-item]
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5.1", "error": None}
    begun = response | {"status": "in_progress", "output": [], "usage": None}
    whole = response | {"status": "completed", "output": output, "usage": usage, "incomplete_details": None}
    thought_place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    text_place = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    added = {"type": "response.output_item.added", "output_index": 0, "item": reasoning | {"summary": []}}
    part = {"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}}
    parts: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        added,
        part | thought_place,
        *_deltas("response.reasoning_summary_text.delta", thought_place, THOUGHT),
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        *_deltas("response.output_text.delta", text_place, TEXT),
        {"type": "response.output_item.done", "output_index": 1, "item": item},
    ]
    for index, call in enumerate(calls, 2):
        place = {"item_id": call["id"], "output_index": index}
        parts += _deltas("response.function_call_arguments.delta", place, call["arguments"])
        parts.append({"type": "response.output_item.done", "output_index": index, "item": call})
    parts.append({"type": "response.completed", "response": whole})
    return ProviderStream(
        "openai",
        "gpt-5.1",
        "input",
        "/responses",
        events(*parts),
        ProviderUsage(20, 90, 5, 7),
        "completed",
        [
            reasoning,
            {"type": "message", "role": "assistant", "content": TEXT},
            *({key: value for key, value in call.items() if key not in ("id", "status")} for call in calls),
        ],
    )


def _deltas(kind: str, place: dict[str, Any], text: str) -> list[dict[str, Any]]:
    return [{"type": kind, **place, "delta": each} for each in _pieces(text)]


def _gemini() -> ProviderStream:
    usage = {"promptTokenCount": 32, "cachedContentTokenCount": 5, "candidatesTokenCount": 60}
    usage |= {"thoughtsTokenCount": 30, "totalTokenCount": 122}

    def chunk(*parts: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        candidate |= {"finishReason": reason} if reason else {}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3-pro-preview"}

    calls = [{"functionCall": {"name": TOOL, "args": arguments}} for _, arguments in CALLS]
    calls[0] |= {"thoughtSignature": "c2lnbmVk"}  # type: ignore[dict-item]
    chunks = [chunk({"text": each, "thought": True}) for each in _pieces(THOUGHT)]
    chunks += [chunk({"text": each}) for each in _pieces(TEXT)]
    chunks += [chunk(calls[0]), chunk(calls[1]), chunk({"text": ""}, reason="STOP")]
    parts = [{"text": THOUGHT, "thought": True}, {"text": TEXT}, *calls]
    return ProviderStream(
        "google",
        "gemini-3-pro-preview",
        "contents",
        "/v1beta/models/gemini-3-pro-preview:streamGenerateContent",
        data_lines(*chunks),
        ProviderUsage(27, 90, 5),
        "STOP",
        [{"role": "model", "parts": parts}],
        [ToolCall("", TOOL, arguments) for _, arguments in CALLS],
    )


def _pieces(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


STREAMS = {
    stream.provider: stream for stream in (_anthropic(), _openai_chat(), _openai_responses(), _gemini())
}
