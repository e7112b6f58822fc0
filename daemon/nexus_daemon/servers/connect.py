"""Connect a client of the SDK to the server of a launch: by a process, streamable HTTP or SSE.

Both eras of the protocol work. Log records of the SDK quote addresses, headers and answers, which may be
secret, so only their place is logged.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from nexus_context.servers.launch import Launch
from nexus_daemon.process.logs.place_log import log_places
from nexus_daemon.process.version import __version__
from nexus_daemon.servers.http_client import ANSWER_S, http_client
from nexus_daemon.servers.process_guard import ProcessGuard
from nexus_daemon.servers.server_log import ServerLog
from nexus_daemon.servers.sign_in import SavedTokens
from nexus_daemon.servers.stdio_transport import stdio_transport

for _package in ("mcp", "httpx2", "httpcore2"):
    log_places(_package)


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
    """Yield a client that has shaken hands with the server.

    `ended` is set when a process ends by itself. `refused` is set when a server answers 401, with or without
    tokens of the user. OSError, httpx2.HTTPError, MCPError or LaunchError if connecting fails.
    """
    async with AsyncExitStack() as stack:
        if launch.transport == "stdio":
            transport: Any = stdio_transport(launch, environ, log=log, guard=guard, ended=ended)
        elif launch.transport == "sse":
            headers = launch.sent_headers(environ)
            auth = SavedTokens(launch, environ, log=log, refused=refused)
            transport = sse_client(launch.url, headers, auth=auth, httpx_client_factory=http_client)
        else:
            auth = SavedTokens(launch, environ, log=log, refused=refused)
            client = await stack.enter_async_context(http_client(launch.sent_headers(environ), auth=auth))
            transport = streamable_http_client(launch.url, http_client=client)
        session = Client(
            transport,
            read_timeout_seconds=ANSWER_S,
            message_handler=on_message,
            client_info=Implementation(name="nexus", version=__version__),
        )
        yield await stack.enter_async_context(session)
