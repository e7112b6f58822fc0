"""`nexus/workspace/*` and `nexus/status`."""

from typing import Any

from nexus_daemon.protocol.shapes import FolderParams, Freshness, Params, Wire


class InitParams(FolderParams, frozen=True):
    """A folder that gets a `.nexus3`."""

    adopt: bool = False  # take over the MCP servers of `.mcp.json` and `.vscode/mcp.json` into a new mcp.json
    preview: bool = False  # write nothing: the result is what would be written


class AdoptedServer(Wire, frozen=True):
    """An MCP server that a new mcp.json takes over."""

    name: str  # its name
    uri: str  # the file that it is taken from, which stays as it is
    variables: list[str]  # environment variables to set: their values are secrets, which stay in that file


class LeftServer(Wire, frozen=True):
    """An MCP server that is not taken over."""

    name: str  # its name; empty: the whole file
    uri: str  # the file that has it
    reason: str  # why it is not taken over


class InitResult(Wire, frozen=True):
    """The files of a new `.nexus3`."""

    created: list[str]  # URIs of the files that were written, or with `preview` would be
    existing: list[str]  # URIs of existing files, which were not changed
    adopted: list[AdoptedServer] = []  # MCP servers that the new mcp.json has; only with `adopt`
    left: list[LeftServer] = []  # MCP servers that it has not; only with `adopt`


class NoParams(Params, frozen=True):
    """No parameters."""


class ClientStatus(Wire, frozen=True):
    """One client of the daemon: a window of an editor, or a command."""

    name: str  # what it calls itself; a second client of that name has a number behind it
    folders: list[str]  # URIs of its folders
    running: int  # number of its requests that are under way
    unread_bytes: int  # size of what waits until it reads


class FolderStatus(Wire, frozen=True):
    """One folder of a client."""

    uri: str  # the folder
    name: str  # its name in the editor
    revision: int  # revision of its snapshot; 0 before the first one
    layers: int  # number of its layers
    errors: int  # number of errors in its files
    warnings: int  # number of warnings
    sessions: list[str]  # names of its conversations; empty while `ledger` is null
    freshness: Freshness  # how changes of its files on disk are noticed
    client: str  # name of the client, as in `clients`


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
    pid: int  # number of the daemon's process
    clients: list[ClientStatus]  # in the order in which they came
    folders: list[FolderStatus]  # the folders of all clients; one of several clients is there several times
    sessions: int  # number of conversations in all folders, those of several clients once
    agents: int  # number of live agents that are loaded
    connections: int  # number of clients
    caches: dict[str, Any]  # what is in memory, by kind
    memory: int  # resident size, in bytes
    rss_bytes: int  # the same
    uptime: float  # seconds since the start
    uptime_seconds: float  # the same
    ledger: LedgerStatus | None  # null until the first request for a conversation
