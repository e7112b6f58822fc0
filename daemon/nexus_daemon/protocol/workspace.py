"""`nexus/workspace/*` and `nexus/status`."""

from typing import Any

from nexus_daemon.protocol.shapes import Freshness, Wire


class InitResult(Wire, frozen=True):
    """What was written, and what was there before."""

    created: list[str]  # URIs of the files that were written
    existing: list[str]  # URIs of the files that were there and were left alone


class NoParams(Wire, frozen=True):
    """A request that needs nothing."""


class FolderStatus(Wire, frozen=True):
    """One folder of the daemon."""

    uri: str  # the folder
    name: str  # its name in the editor
    revision: int  # revision of its snapshot; 0 before the first
    layers: int  # number of its layers
    errors: int  # number of errors in its files
    warnings: int  # number of warnings
    sessions: list[str]  # names of its conversations; none while `ledger` is null
    freshness: Freshness  # how changes of its files on disk are noticed


class LedgerStatus(Wire, frozen=True):
    """Where conversations are kept."""

    path: str  # the file
    persists: bool  # false: in memory only; `notice` says why
    notice: str | None  # what the user should know of it
    sessions: int  # number of conversations of the folders that are served


class Status(Wire, frozen=True):
    """What the daemon holds."""

    version: str  # version of Nexus
    protocol: int  # number of the protocol, see [Versions](#versions)
    folders: list[FolderStatus]  # every folder that is served
    sessions: int  # number of conversations in all folders
    connections: int  # number of clients
    caches: dict[str, Any]  # what is kept in memory, by kind
    memory: int  # resident size, in bytes
    uptime: float  # seconds since the start
    ledger: LedgerStatus | None  # null until a conversation is asked for
