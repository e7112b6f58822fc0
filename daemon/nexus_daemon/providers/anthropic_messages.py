"""Use Anthropic's API: `POST /v1/messages`, streamed.

The SDK sends the request and splits the stream; its events stay JSON, so that unknown fields are kept.

Source: "Streaming messages" in the documentation of the Claude API.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import anthropic

from nexus_context.conversation.coercion import object_of
from nexus_daemon.providers.answer import (
    AnswerItem,
    ModelAnswer,
    message_of,
    text_delta,
    thinking_delta,
    usage_of,
)
from nexus_daemon.providers.target import Target

ERRORS: tuple[type[Exception], ...] = (anthropic.AnthropicError,)
_URL = "https://api.anthropic.com"
_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""The deltas that are pieces of a text → the field that has it."""


def connect(target: Target, http: Any) -> anthropic.AsyncAnthropic:
    """Build the SDK's client. It takes no key, address or header from the environment."""
    client = anthropic.AsyncAnthropic(
        api_key="",  # else that of the environment
        base_url=target.url or _URL,
        max_retries=0,
        http_client=http,
        open_telemetry=False,
    )
    client.api_key = (target.key or "").strip() or None
    client._custom_headers = dict(target.headers)  # noqa: SLF001 - else also those of ANTHROPIC_CUSTOM_HEADERS
    return client


async def send(client: anthropic.AsyncAnthropic, body: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Send a body and return the events of the answer."""
    events = await client.post(
        "/v1/messages",
        cast_to=object,
        body={**body, "stream": True},
        stream=True,
        stream_cls=anthropic.AsyncStream[object],
    )
    return cast("AsyncIterator[Any]", events)


async def read(events: AsyncIterator[Any]) -> AsyncIterator[AnswerItem]:
    """Turn the events of an answer into deltas and, at last, the whole answer."""
    blocks: dict[int, dict[str, Any]] = {}
    pieces: dict[tuple[int, str], list[str]] = {}
    usage: dict[str, Any] = {}
    stop_reason: str | None = None
    async for event in events:
        kind = event["type"]
        if kind == "content_block_delta":
            index, delta = event["index"], event["delta"]
            field = _TEXTS.get(delta["type"])
            if field is None:
                _change(blocks[index], delta)
                continue
            text = delta[field]
            pieces.setdefault((index, field), []).append(text)
            if field == "text":
                yield text_delta(text)
            elif field == "thinking":
                yield thinking_delta(text)
        elif kind == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif kind == "message_start":
            usage = dict(event["message"]["usage"])
        elif kind == "message_delta":
            stop_reason = event["delta"].get("stop_reason") or stop_reason
            usage |= {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
        elif kind == "message_stop":
            for (index, field), texts in pieces.items():
                _complete(blocks[index], field, "".join(texts))
            yield ModelAnswer(
                message_of([blocks[index] for index in sorted(blocks)]), _usage(usage), stop_reason
            )
            return


def _change(block: dict[str, Any], delta: dict[str, Any]) -> None:
    """Apply a delta that is not a piece of a text."""
    if delta["type"] == "signature_delta":
        block["signature"] = delta["signature"]
    elif delta["type"] == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
    elif delta["type"] == "compaction_delta":
        block |= {key: value for key, value in delta.items() if key != "type"}


def _complete(block: dict[str, Any], field: str, text: str) -> None:
    """Set what the pieces of a block amount to."""
    if field == "partial_json":
        block["input"] = object_of(text)
    else:
        block[field] = block.get(field, "") + text


def _usage(usage: Mapping[str, Any]) -> Any:
    return usage_of(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        read=usage.get("cache_read_input_tokens"),
        written=usage.get("cache_creation_input_tokens"),
        is_apart=True,
    )
