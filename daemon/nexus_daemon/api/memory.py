"""`nexus/memory/*`: memory as tools, for clients that run a model's calls."""

from typing import TYPE_CHECKING

from nexus_daemon import protocol
from nexus_daemon.api.resolve import using
from nexus_daemon.sessions import turn_memory

if TYPE_CHECKING:
    from nexus_daemon.connection import Connection


async def query(client: "Connection", params: protocol.MemoryQueryParams) -> protocol.MemoryQueryResult:
    """Run a memory tool call, for a client that runs the model's calls (`options.memoryTools` offers them).

    Without a `session_id` argument, L2 and L3 search `session`, and L4 searches all other sessions. A session
    that does not exist has no results. An invalid argument is an error that names it.
    """
    async with using(client, params) as scope:
        text = await scope.work(turn_memory.call_tool, params.tool, params.arguments)
    return protocol.MemoryQueryResult(text)
