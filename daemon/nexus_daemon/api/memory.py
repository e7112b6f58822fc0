"""Answer `nexus/memory/*`: memory as tools, for clients that run a model's calls, and as lists for people."""

from typing import TYPE_CHECKING

import msgspec

from nexus_context.errors import RequestError
from nexus_context.memory.levels import settings_of
from nexus_context.memory.working import Entry
from nexus_daemon import protocol
from nexus_daemon.api.resolve import folder_ledger, using
from nexus_daemon.process import lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_context.folder.snapshot import Snapshot
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.windows.connection import Connection


async def query(client: "Connection", params: protocol.MemoryQueryParams) -> protocol.MemoryQueryResult:
    """Run a memory tool call, for a client that runs the model's calls (`options.memoryTools` offers them).

    Without a `session_id` argument, L2 and L3 search `session`, and L4 searches all other sessions. A session
    that does not exist has no results. An invalid argument is an error that names it.
    """
    if params.session is None:
        folder = client.folders.at(params.workspace_folder)
        snapshot = await folder.current()
        ledger = await client.daemon.ledgers.of(snapshot, folder)
        return protocol.MemoryQueryResult(await client.read(_run, ledger, snapshot, params))
    session_params = protocol.SessionParams(params.workspace_folder, params.session)
    async with using(client, session_params) as scope:
        return protocol.MemoryQueryResult(await client.work(_run, scope.ledger, scope.snapshot, params))


def _run(ledger: "FolderLedger", snapshot: "Snapshot", params: protocol.MemoryQueryParams) -> str:
    return lazy.memory_queries.run(
        params.tool,
        params.arguments,
        levels=ledger.levels,
        workspace=ledger.workspace,
        session=params.session,
        settings=settings_of(snapshot.effective.get("/memory") or {}),
    )


async def list_entries(client: "Connection", params: protocol.MemoryListParams) -> protocol.MemoryListResult:
    """List what the conversations of a folder remember: the exchanges that matter, and the summaries."""
    if params.limit < 1:
        raise RequestError(f"`limit` is {params.limit}: it must be at least 1.", code="bad-option")
    ledger = await folder_ledger(client, params.workspace_folder)
    return await client.read(_entries, ledger, params.session, params.limit)


def _entries(ledger: "FolderLedger", session: str | None, limit: int) -> protocol.MemoryListResult:
    levels, workspace = ledger.levels, ledger.workspace
    return protocol.MemoryListResult(
        _described(levels.important(workspace, session, limit=limit)),
        _described(levels.summaries(workspace, session, limit=limit)),
    )


def _described(entries: "Sequence[Entry]") -> list[protocol.MemoryEntry]:
    return [protocol.MemoryEntry(**msgspec.structs.asdict(entry)) for entry in entries]
