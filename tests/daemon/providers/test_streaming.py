"""Answers of all providers through their real SDKs, from a provider on loopback that streams byte by byte."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from nexus_context import ContextManager, Message, Options, Request, assemble
from nexus_daemon.providers import FORMATS, Answer, ProviderError, Target, TextDelta, ThinkingDelta, stream
from nexus_daemon.providers import streaming as retries
from support.provider_streams import STREAMS, TEXT, THOUGHT, TOOL
from support.streaming_provider import Reply, streaming_provider

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEY = "key-of-the-user"
PROVIDERS = sorted(STREAMS)


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_DELAY_S", 0.001)


class Result(NamedTuple):
    """What came of a request: the deltas, the answer or the error, and what the provider was sent."""

    text: str
    thinking: str
    answer: Answer | None
    error: ProviderError | None
    requests: Sequence[Any]

    @property
    def failure(self) -> tuple[str, str]:
        assert self.error is not None, self.answer
        return self.error.kind, str(self.error)


def ask(
    provider: str,
    *replies: Reply,
    body: Mapping[str, Any] | None = None,
    key: str | None = KEY,
    headers: Mapping[str, str] | None = None,
) -> Result:
    """Send a request to a provider with these replies."""

    async def run() -> Result:
        async with streaming_provider(*replies) as server:
            target = Target(provider, server.url, key, headers or {})
            text, thinking, answer, error = "", "", None, None
            try:
                async for item in stream(target, body or body_for(provider)):
                    assert answer is None
                    if isinstance(item, TextDelta):
                        text += item.text
                    elif isinstance(item, ThinkingDelta):
                        thinking += item.text
                    else:
                        answer = item
            except ProviderError as raised:
                error = raised
            return Result(text, thinking, answer, error, server.requests)

    return asyncio.run(run())


def body_for(provider: str) -> dict[str, Any]:
    """The least body that an SDK takes."""
    contents = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    return {"model": STREAMS[provider].model} | (contents if provider == "google" else {})


def json_reply(value: Any, status: int, **headers: str) -> Reply:
    return Reply([json.dumps(value).encode()], status, headers, "application/json")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_answer_with_thinking_text_and_calls(provider: str) -> None:
    expected = STREAMS[provider]
    result = ask(provider, Reply([expected.data]))
    assert result.error is None
    assert result.answer is not None
    assert (result.text, result.thinking) == (TEXT, THOUGHT)
    assert result.answer.message.tool_calls == tuple(expected.calls)
    assert (result.answer.usage, result.answer.stop_reason) == (expected.usage, expected.stop_reason)
    (request,) = result.requests
    assert request.path.partition("?")[0] == expected.path


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_next_request_returns_what_the_provider_gave(provider: str) -> None:
    expected = STREAMS[provider]
    chat = ContextManager(model=expected.model)
    chat.set_tool_definitions([{"name": TOOL, "description": "d", "inputSchema": {"type": "object"}}])
    options = Options(parameters={"max_tokens": 4_000})

    def assembled(message: Message | None) -> tuple[dict[str, Any], Message | None]:
        request = Request(message, format=FORMATS[provider], options=options)
        turn = assemble(None, chat, request, now=NOW)
        assert turn.request is not None
        return turn.request | {"model": expected.model}, turn.turn_message

    body, message = assembled(Message("user", "When is the tide low?"))
    result = ask(provider, Reply([expected.data]), body=body)
    assert result.answer is not None, result.error
    assert message is not None
    chat.add([message, result.answer.message])
    for call in result.answer.message.tool_calls:
        chat.add_tool_result(call.id, call.name, "12:40")
    body, _ = assembled(None)
    history = body[expected.history]
    start = len(history) - len(expected.returned)
    at = next(index for index in range(start + 1) if history[index] == expected.returned[0])
    assert history[at : at + len(expected.returned)] == list(expected.returned)
    assert ask(provider, Reply([expected.data]), body=body).error is None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_chunks_are_cut_anywhere(provider: str) -> None:
    """In one session all answers in two chunks, each cut at another byte, and one in single bytes."""
    data = STREAMS[provider].data
    whole = ask(provider, Reply([data])).answer
    first = data.index(b"\n\n")  # within what every answer has
    cuts = [*range(first - 40, first + 40), *_cuts_in_letters(data)]
    single_bytes = [data[at : at + 1] for at in range(len(data))]
    replies = [Reply([data[:cut], data[cut:]]) for cut in cuts]

    async def run() -> None:
        async with streaming_provider(*replies, Reply(single_bytes)) as server:
            for reply in (*replies, Reply(single_bytes)):
                target = Target(provider, server.url, KEY)
                items = [item async for item in stream(target, body_for(provider))]
                assert items[-1] == whole, reply

    asyncio.run(run())


def _cuts_in_letters(data: bytes) -> list[int]:
    """The places within letters of several bytes."""
    return [at for at in range(1, len(data)) if data[at] & 0xC0 == 0x80]
