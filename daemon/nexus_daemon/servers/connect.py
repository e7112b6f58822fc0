"""A client of the SDK for a launch: a process, streamable HTTP or SSE; either era of the protocol."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from nexus_context.servers.launch import Launch
from nexus_daemon.process.version import __version__
from nexus_daemon.servers.process_guard import ProcessGuard
from nexus_daemon.servers.server_log import ServerLog
from nexus_daemon.servers.stdio_transport import stdio_transport

ANSWER_S = 60.0  # that a server may take for one answer, unless the caller says otherwise
CONNECT_S = 15.0
LARGEST_ANSWER = 64 << 20  # bytes of one answer over HTTP


class AnswerTooLargeError(httpx2.TransportError):
    """An answer has more than LARGEST_ANSWER bytes."""


@asynccontextmanager
async def connect(
    launch: Launch,
    environ: Mapping[str, str],
    *,
    log: ServerLog,
    guard: ProcessGuard,
    ended: asyncio.Event,
    refused: asyncio.Event,
    on_message: Any,
) -> AsyncIterator[Client]:
    """A client that has shaken hands with the server. `ended` is set when a process ends by itself,
    `refused` when a server answers 401.

    OSError, httpx2.HTTPError, MCPError or LaunchError if that fails.
    """
    async with AsyncExitStack() as stack:
        if launch.transport == "stdio":
            transport: Any = stdio_transport(launch, environ, log=log, guard=guard, ended=ended)
        elif launch.transport == "sse":
            headers = launch.sent_headers(environ)
            make = partial(_http_client, refused=refused)
            transport = sse_client(launch.url, headers, httpx_client_factory=make)
        else:
            client = await stack.enter_async_context(
                _http_client(launch.sent_headers(environ), refused=refused)
            )
            transport = streamable_http_client(launch.url, http_client=client)
        session = Client(
            transport,
            read_timeout_seconds=ANSWER_S,
            message_handler=on_message,
            client_info=Implementation(name="nexus", version=__version__),
        )
        yield await stack.enter_async_context(session)


def _http_client(
    headers: dict[str, Any] | None = None,
    timeout: Any = None,
    auth: httpx2.Auth | None = None,
    *,
    refused: asyncio.Event,
) -> httpx2.AsyncClient:
    """A client whose answers are bounded, and that keeps no cookie of another server."""

    async def check(response: httpx2.Response) -> None:
        if response.status_code == 401:
            refused.set()
        _bound(response)

    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=timeout or httpx2.Timeout(CONNECT_S, read=ANSWER_S * 5),
        event_hooks={"response": [check]},
    )


def _bound(response: httpx2.Response) -> None:
    """Bound a response that is no stream of events; those are bounded by the SDK, event by event."""
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return
    stream = response.stream
    if isinstance(stream, httpx2.AsyncByteStream):
        response.stream = _BoundedStream(stream)


class _BoundedStream(httpx2.AsyncByteStream):
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
