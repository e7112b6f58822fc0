"""Answer `nexus/debug/*`: record what the daemon does."""

import asyncio
from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_daemon import protocol
from nexus_daemon.process import tracing
from nexus_daemon.process.logs.log_line import shorten_home
from nexus_daemon.process.tracing.chrome import chrome_trace

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

LONGEST_S = 600.0


async def trace(client: "Connection", params: protocol.TraceParams) -> protocol.TraceResult:
    """Record what all requests, reloads and threads of this process do for `seconds`, as a trace."""
    if not 0 < params.seconds <= LONGEST_S:
        raise RequestError(f"A trace takes up to {LONGEST_S:g} seconds.", code="bad-option")
    try:
        with tracing.recording() as recorder:
            await asyncio.sleep(params.seconds)
    except tracing.AlreadyRecordingError:
        raise RequestError(
            "Another trace is being recorded. Try again later.", code="trace-under-way"
        ) from None
    return protocol.TraceResult(await client.work(chrome_trace, recorder, shorten_home))
