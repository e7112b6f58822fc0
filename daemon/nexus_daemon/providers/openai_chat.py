"""Use OpenAI's chat completions, streamed, as OpenAI-compatible servers have them: `POST /chat/completions`.

1. The SDK sends the request and splits the stream; its chunks stay JSON, so that fields of other servers are
   kept: reasoning is in `reasoning_content` (DeepSeek, vLLM, llama.cpp) or `reasoning` (Ollama, OpenRouter).
2. A call comes in pieces that name its index. Some servers number every call 0, and give each its own id.
3. If there is no key, the SDK gets a placeholder, since servers on this machine need no key.

Source: "Chat completions, streaming" in OpenAI's API reference.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import openai

from nexus_context.conversation.coercion import tool_calls_from
from nexus_context.conversation.half_pairs import whole_message
from nexus_context.conversation.message import Message, text_part
from nexus_context.conversation.parts import json_text
from nexus_daemon.providers.answer import AnswerItem, ModelAnswer, text_delta, thinking_delta, usage_of
from nexus_daemon.providers.provider_error import StatedError
from nexus_daemon.providers.target import Target

ERRORS: tuple[type[Exception], ...] = (openai.OpenAIError, StatedError)
_URL = "https://api.openai.com/v1"
_NO_KEY = "none"


def connect(target: Target, http: Any) -> openai.AsyncOpenAI:
    """Build the SDK's client. It takes no key, address or header from the environment."""
    client = openai.AsyncOpenAI(
        api_key=(target.key or "").strip() or _NO_KEY,
        admin_api_key="",
        base_url=target.url or _URL,
        max_retries=0,
        http_client=http,
    )
    client.organization = client.project = None  # else those of OPENAI_ORG_ID and OPENAI_PROJECT_ID
    client._custom_headers = dict(target.headers)  # noqa: SLF001 - else also those of OPENAI_CUSTOM_HEADERS
    return client


async def post(client: openai.AsyncOpenAI, path: str, body: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Send a body to a path of the API and return the events as JSON."""
    events = await client.post(
        path, cast_to=object, body=body, stream=True, stream_cls=openai.AsyncStream[object]
    )
    return cast("AsyncIterator[Any]", events)


async def send(client: openai.AsyncOpenAI, body: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Send a body and return the chunks. The last chunk has the usage."""
    options = {"stream": True, "stream_options": {"include_usage": True}}
    return await post(client, "/chat/completions", {**body, **options})


async def read(events: AsyncIterator[Any]) -> AsyncIterator[AnswerItem]:
    """Turn the chunks of an answer into deltas and, at last, the whole answer."""
    texts: list[str] = []
    thoughts: list[str] = []
    refusals: list[str] = []
    calls: list[dict[str, Any]] = []
    usage: Any = None
    stop_reason: str | None = None
    async for chunk in events:
        if chunk.get("error"):
            raise StatedError(chunk["error"])
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue
            stop_reason = choice.get("finish_reason") or stop_reason
            delta = choice.get("delta") or {}
            if thought := delta.get("reasoning_content") or delta.get("reasoning"):
                thoughts.append(thought)
                yield thinking_delta(thought)
            for field, pieces in (("content", texts), ("refusal", refusals)):
                if piece := delta.get(field):
                    pieces.append(piece)
                    yield text_delta(piece)
            for piece in delta.get("tool_calls") or ():
                _add_piece(calls, piece)
    if stop_reason is None:
        return
    message = _message("".join(texts), "".join(thoughts), "".join(refusals), calls)
    yield ModelAnswer(message, _usage(usage), stop_reason)


def _add_piece(calls: list[dict[str, Any]], piece: Mapping[str, Any]) -> None:
    """Add a piece to the call that it belongs to (rule 2)."""
    index, call_id, function = piece.get("index"), piece.get("id"), piece.get("function") or {}
    call = next(
        (candidate for candidate in reversed(calls) if index is None or candidate["index"] == index), None
    )
    if call is None or (call_id and call["id"] and call_id != call["id"]):
        call = {"index": index, "id": "", "name": "", "pieces": []}
        calls.append(call)
    call["id"] = call["id"] or call_id or ""
    call["name"] = call["name"] or function.get("name") or ""
    arguments = function.get("arguments")
    if arguments is not None:
        call["pieces"].append(json_text(arguments))


def _message(text: str, thought: str, refusal: str, calls: list[dict[str, Any]]) -> Message:
    content: str | list[Any] = text
    if thought or refusal:
        content = [{"type": "reasoning_content", "text": thought}] if thought else []
        content += [text_part(text)] if text else []
        content += [{"type": "refusal", "refusal": refusal}] if refusal else []
    functions = [{"name": call["name"], "arguments": "".join(call["pieces"])} for call in calls]
    pairs = zip(calls, functions, strict=True)
    tool_calls = tool_calls_from([{"id": call["id"], "function": function} for call, function in pairs])
    return whole_message(Message("assistant", content or (None if tool_calls else ""), tool_calls))


def _usage(usage: Any) -> Any:
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details") or {}
    return usage_of(
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        read=details.get("cached_tokens"),
        written=details.get("cache_write_tokens"),
    )
