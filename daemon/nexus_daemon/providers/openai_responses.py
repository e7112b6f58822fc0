"""Use OpenAI's responses, streamed: `POST /responses`.

1. The last event has the whole response. If its output is empty, the items of earlier events are used.
2. The stop reason is why the response is incomplete (`max_output_tokens`, `content_filter`), else its status.
3. A response that failed, and an event `error`, are errors.

Source: "Responses, streaming events" in OpenAI's API reference.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import openai

from nexus_daemon.providers import openai_chat
from nexus_daemon.providers.answer import (
    AnswerItem,
    ModelAnswer,
    message_of,
    text_delta,
    thinking_delta,
    usage_of,
)
from nexus_daemon.providers.provider_error import StatedError

ERRORS = openai_chat.ERRORS
connect = openai_chat.connect
_TEXTS = ("response.output_text.delta", "response.refusal.delta")
_THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS = ("response.completed", "response.incomplete")


async def send(client: openai.AsyncOpenAI, body: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Send a body and return the events of the answer."""
    return await openai_chat.post(client, "/responses", {**body, "stream": True})


async def read(events: AsyncIterator[Any]) -> AsyncIterator[AnswerItem]:
    """Turn the events of an answer into deltas and, at last, the whole answer."""
    items: list[dict[str, Any]] = []
    async for event in events:
        kind = event["type"]
        if kind in _TEXTS:
            yield text_delta(event["delta"])
        elif kind in _THOUGHTS:
            yield thinking_delta(event["delta"])
        elif kind == "response.reasoning_summary_part.added" and event.get("summary_index"):
            yield thinking_delta("\n\n")
        elif kind == "response.output_item.done":
            items.append(event["item"])
        elif kind in _ENDS:
            response = event["response"]
            reason = (response.get("incomplete_details") or {}).get("reason") or response.get("status")
            message = message_of(response.get("output") or items)
            yield ModelAnswer(message, _usage(response.get("usage") or {}), reason)
            return
        elif kind == "error":
            raise StatedError(event.get("error") or event)
        elif kind == "response.failed":
            raise StatedError(event["response"].get("error"))


def _usage(usage: Mapping[str, Any]) -> Any:
    details = usage.get("input_tokens_details") or {}
    return usage_of(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        read=details.get("cached_tokens"),
        written=details.get("cache_write_tokens"),
    )
