"""Use Google's Gemini, streamed: `POST /v1beta/models/MODEL:streamGenerateContent`.

1. The SDK makes its own types of a body and of the answer's chunks. The parts become JSON again.
2. Pieces of one text are joined, but never with a signed part: a signature belongs to its own part.
3. A blocked prompt has no candidate: the reason for the block becomes the stop reason.

Source: the types of google-genai 3.4; "Thought signatures" in the documentation of the Gemini API.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from google import genai
from google.genai import errors, types

from nexus_context.conversation.coercion import copied
from nexus_daemon.providers.answer import (
    AnswerItem,
    ModelAnswer,
    message_of,
    text_delta,
    thinking_delta,
    usage_of,
)
from nexus_daemon.providers.provider_error import ProviderError
from nexus_daemon.providers.sdk import tls_settings
from nexus_daemon.providers.target import Target

ERRORS: tuple[type[Exception], ...] = (errors.APIError, errors.ContinuationInterruptedError)
_URL = "https://generativelanguage.googleapis.com"
_NO_KEY = "none"  # a header stands in its place
_UNSIGNED = {"text", "thought"}


def connect(target: Target, http: Any) -> genai.Client:
    """Build the SDK's client. It takes no key, address or header from the environment."""
    options = types.HttpOptions(
        base_url=target.url or _URL,
        api_version="v1beta",
        headers=dict(target.headers),
        httpx_async_client=http,
        # for its other clients, which are never used: else it reads all certificates for each of them
        client_args={"verify": tls_settings()},
        async_client_args={"ssl": tls_settings()},
    )
    key = (target.key or "").strip() or _NO_KEY
    return genai.Client(vertexai=False, api_key=key, http_options=options)


async def send(client: genai.Client, body: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Send a body and return the chunks, once the first one has arrived.

    The SDK sends the request only when the first chunk is requested.
    """
    fields = {
        key: value for key, value in body.items() if key not in ("model", "contents", "generationConfig")
    }
    try:
        config = types.GenerateContentConfig(
            **fields,
            **body.get("generationConfig", {}),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
    except ValueError:
        raise ProviderError(
            "The package google-genai does not take these parameters. Change `parameters`, or update it.",
            kind="refused",
        ) from None
    chunks = await client.aio.models.generate_content_stream(
        model=body["model"], contents=body.get("contents", []), config=config
    )
    first_chunk = await anext(chunks, None)
    return _with_first(first_chunk, chunks)


async def _with_first(first_chunk: Any, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
    if first_chunk is not None:
        yield first_chunk
        async for chunk in chunks:
            yield chunk


async def read(events: AsyncIterator[Any]) -> AsyncIterator[AnswerItem]:
    """Turn the chunks of an answer into deltas and, at last, the whole answer."""
    parts: list[dict[str, Any]] = []
    usage: Any = None
    stop_reason: str | None = None
    async for chunk in events:
        usage = chunk.usage_metadata or usage
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
            stop_reason = _word(chunk.prompt_feedback.block_reason)
        for candidate in (chunk.candidates or ())[:1]:
            if candidate.finish_reason is not None:
                stop_reason = _word(candidate.finish_reason)
            for sdk_part in (candidate.content and candidate.content.parts) or ():
                part = copied(sdk_part, "part")
                if text := part.get("text"):
                    yield thinking_delta(text) if part.get("thought") else text_delta(text)
                _add_part(parts, part)
    if stop_reason is not None:
        yield ModelAnswer(message_of(parts), _usage(usage), stop_reason)


def _add_part(parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
    """Add a part, or its text to the part before it (rule 2)."""
    last_part = parts[-1] if parts else {}
    is_piece = "text" in last_part and "text" in part and not (last_part.keys() | part.keys()) - _UNSIGNED
    if is_piece and last_part.get("thought") == part.get("thought"):
        last_part["text"] += part["text"]
    else:
        parts.append(part)


def _word(reason: Any) -> str:
    """A reason of the SDK's enumeration as the API has it."""
    return str(getattr(reason, "value", reason))


def _usage(usage: Any) -> Any:
    if usage is None:
        return None
    prompt = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
    answer = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    return usage_of(prompt, answer, read=usage.cached_content_token_count)
