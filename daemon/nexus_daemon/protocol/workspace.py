"""`nexus/workspace/*` and `nexus/status`."""

from typing import Any

from nexus_daemon.protocol.shapes import Freshness, Params, Wire


class InitResult(Wire, frozen=True):
    """The files of a new `.nexus3`."""

    created: list[str]  # URIs of the files that were written
    existing: list[str]  # URIs of existing files, which were not changed


class NoParams(Params, frozen=True):
    """No parameters."""


class FolderStatus(Wire, frozen=True):
    """One folder of the daemon."""

    uri: str  # the folder
    name: str  # its name in the editor
    revision: int  # revision of its snapshot; 0 before the first one
    layers: int  # number of its layers
    errors: int  # number of errors in its files
    warnings: int  # number of warnings
    sessions: list[str]  # names of its conversations; empty while `ledger` is null
    freshness: Freshness  # how changes of its files on disk are noticed


class LedgerStatus(Wire, frozen=True):
    """The ledger, which stores conversations."""

    path: str  # the file
    persists: bool  # false: in memory only; `notice` says why
    notice: str | None  # what the user should know about it
    sessions: int  # number of conversations of the served folders


class Status(Wire, frozen=True):
    """The state of the daemon."""

    version: str  # version of Nexus
    protocol: int  # number of the protocol, see [Versions](#versions)
    folders: list[FolderStatus]  # the served folders
    sessions: int  # number of conversations in all folders
    connections: int  # number of clients
    caches: dict[str, Any]  # what is in memory, by kind
    memory: int  # resident size, in bytes
    uptime: float  # seconds since the start
    ledger: LedgerStatus | None  # null until the first request for a conversation
