"""Build HTTP clients for servers: answers are limited in size, and no redirect is followed."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2

ANSWER_S = 60.0  # that a server may take for one answer, unless the caller says otherwise
CONNECT_S = 15.0
LARGEST_ANSWER = 64 << 20  # bytes of one answer over HTTP


class AnswerTooLargeError(httpx2.TransportError):
    """An answer has more than LARGEST_ANSWER bytes."""


def http_client(
    headers: dict[str, Any] | None = None, timeout: Any = None, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """Build a client whose answers are limited in size, and that keeps no cookie of another server."""
    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=timeout or httpx2.Timeout(CONNECT_S, read=ANSWER_S * 5),
        event_hooks={"response": [_bound]},
    )


async def _bound(response: httpx2.Response) -> None:
    """Limit the size of a response. The SDK limits streams of events, event by event."""
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return
    stream = response.stream
    if isinstance(stream, httpx2.AsyncByteStream):
        response.stream = BoundedStream(stream)


class BoundedStream(httpx2.AsyncByteStream):
    """An answer of at most LARGEST_ANSWER bytes. Reading more raises AnswerTooLargeError."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for data in self._stream:
            size += len(data)
            if size > LARGEST_ANSWER:
                raise AnswerTooLargeError(f"an answer has more than {LARGEST_ANSWER >> 20} MiB")
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()
