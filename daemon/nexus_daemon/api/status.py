"""Answer `nexus/status`: the daemon's folders, sessions, clients and memory."""

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.errors import Problem, Severity
from nexus_context.tokens import loaded_encodings
from nexus_context.turn.cache import Statistics
from nexus_daemon import protocol
from nexus_daemon.process.version import PROTOCOL, __version__
from nexus_daemon.sessions import results
from nexus_daemon.windows.daemon import Daemon
from nexus_daemon.windows.live_folder import LiveFolder

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

resource: Any = None
with contextlib.suppress(ImportError):  # Windows has none
    import resource


async def status(connection: "Connection", _: protocol.NoParams) -> protocol.Status:
    """Return the daemon's folders, sessions, clients and memory."""
    return describe(connection.daemon)


def describe(daemon: Daemon) -> protocol.Status:
    """Build the status of a daemon. Call it on the event loop."""
    names = daemon.windows.names
    folders: list[protocol.FolderStatus] = []
    counted_problems: set[tuple[str, Problem]] = set()  # in one window a problem is counted once
    for folder in daemon.windows.folders:
        name = names[folder.client]
        pairs = {(name, problem): None for problem in daemon.problems_inside(folder)}
        folders.append(
            _folder(daemon, folder, name, [pair[1] for pair in pairs if pair not in counted_problems])
        )
        counted_problems.update(pairs)
    open_folders = daemon.windows.folders
    workspaces = {folder.ledger.workspace: folder for folder in open_folders if folder.ledger is not None}
    sessions = sum(len(daemon.ledgers.writer.names(workspace)) for workspace in workspaces)
    agents = {
        (folder.path, agent.id) for folder in open_folders if folder.agents for agent in folder.agents.list()
    }
    resident, uptime = _resident(), round(time.monotonic() - daemon.started, 3)
    return protocol.Status(
        version=__version__,
        protocol=PROTOCOL,
        pid=os.getpid(),
        clients=[
            protocol.ClientStatus(
                name,
                [folder.uri for folder in daemon.windows.folders if folder.client is client],
                running=client.running,
                unread_bytes=client.unread,
            )
            for client, name in names.items()
        ],
        folders=folders,
        sessions=sessions,
        agents=len(agents),
        connections=sum(client.listens for client in daemon.windows.clients),
        caches={
            "vocabularies": loaded_encodings(),
            "assemblies": _statistics(daemon),
        },
        memory=resident,
        rss_bytes=resident,
        uptime=uptime,
        uptime_seconds=uptime,
        ledger=_ledger(daemon, sessions),
    )


def _statistics(daemon: Daemon) -> dict[str, Any]:
    """Sum the hits and misses of the assembled contexts of all conversations."""
    conversations = {folder.path: folder.conversations for folder in daemon.windows.folders}.values()
    total = sum((folder_conversations.statistics() for folder_conversations in conversations), Statistics())
    return {**msgspec.to_builtins(total), "hitRate": round(total.hit_rate, 3)}


def _ledger(daemon: Daemon, sessions: int) -> protocol.LedgerStatus | None:
    ledger = daemon.ledgers.writer.store
    if ledger is None:
        return None
    return protocol.LedgerStatus(ledger.location, ledger.persists, ledger.notice, sessions)


def _folder(
    daemon: Daemon, folder: LiveFolder, client: str, problems: Sequence[Problem]
) -> protocol.FolderStatus:
    snapshot = folder.snapshot
    return protocol.FolderStatus(
        uri=folder.uri,
        name=folder.name,
        revision=snapshot.revision if snapshot is not None else 0,
        layers=len(snapshot.layers.layers) if snapshot is not None else 0,
        errors=sum(problem.severity == Severity.ERROR for problem in problems),
        warnings=sum(problem.severity == Severity.WARNING for problem in problems),
        sessions=[] if folder.ledger is None else daemon.ledgers.writer.names(folder.ledger.workspace),
        freshness=results.freshness(daemon.freshness(folder)),
        client=client,
    )


def _resident() -> int:
    """Resident memory in bytes: the current figure on Linux, else the peak; 0 if neither is available."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pass
    if resource is None:
        return 0
    peak: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
