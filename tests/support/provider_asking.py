"""One request to a provider on loopback through `nexus_daemon.providers`, and all that comes of it."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nexus_daemon.providers import Answer, Provider, ProviderError, Target, TextDelta, ThinkingDelta
from support.provider_streams import STREAMS
from support.streaming_provider import Reply, streaming_provider

KEY = "key-of-the-user"


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
                async with Provider(target) as connection:
                    async for item in connection.stream(body or body_for(provider)):
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
