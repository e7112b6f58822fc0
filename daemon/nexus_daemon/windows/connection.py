"""Manage one connection's side of the daemon: its life, its folders, and the messages to its client."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from nexus_context.errors import NexusError
from nexus_daemon.lsp import convert, lsp_types
from nexus_daemon.lsp.client_capabilities import ClientCapabilities, capabilities_of
from nexus_daemon.lsp.initialize import SCHEME
from nexus_daemon.workspace.client_refresh import REFRESH_LENSES, REPLY_S, ClientRefresh
from nexus_daemon.workspace.context_documents import CONTENT_METHOD, REFRESH_CONTENT, ContextDocuments
from nexus_daemon.workspace.diagnostic_reports import REFRESH_DIAGNOSTICS, DiagnosticReports
from nexus_daemon.workspace.publish import Publisher, without_programs

if TYPE_CHECKING:  # the reply to `initialize` must not wait for the daemon
    from nexus_context.folder.prompt.render import Prompt
    from nexus_context.folder.snapshot import LoadInputs, Snapshot
    from nexus_daemon.lsp.dispatch import NexusServer
    from nexus_daemon.lsp.progress import WorkProgress
    from nexus_daemon.process.client_process import ClientProcess
    from nexus_daemon.providers import Target
    from nexus_daemon.windows.client_documents import ClientDocuments
    from nexus_daemon.windows.daemon import Daemon
    from nexus_daemon.windows.live_folder import LiveFolder
    from nexus_daemon.workspace.folders import Folder, FolderTable

T = TypeVar("T")


class _Joined(NamedTuple):
    """What a connection has of the daemon once it is started."""

    daemon: "Daemon"
    folders: "FolderTable[LiveFolder]"
    documents: "ClientDocuments"


class Connection:
    """The state of one connection. Use it on the event loop.

    The first connection that needs the daemon starts it after the reply to `initialize`, since importing the
    daemon takes longer than that reply may. `process` describes the client's process; None means the daemon's
    own.
    """

    def __init__(
        self, server: "NexusServer", start: "Callable[[], Daemon]", process: "ClientProcess | None" = None
    ) -> None:
        self.name = "editor"  # what the client calls itself
        self.capabilities = ClientCapabilities()
        self.lenses = ClientRefresh(partial(server.request, REFRESH_LENSES, timeout_s=REPLY_S))
        self.contexts = ContextDocuments(self._refresh_content)
        self.provider: Target | None = None  # that the user chose instead of that of the settings
        self.remembered_tools: set[tuple[object, ...]] = set()  # calls that the user need not be asked for
        self._server = server
        self._start = start
        self._process = process
        self._joined: _Joined | None = None
        self._set_publisher()
        self._ended = False
        self._is_silent = False
        self._zone: tzinfo | None = None  # None: the daemon's
        self._prompts: dict[str, Prompt | None] = {}  # of each folder, which the client's lenses show
        self._first_folders: list[lsp_types.WorkspaceFolder] = []

    def start(self) -> "Daemon":
        """Start the daemon unless it is started, and add this client's folders to it."""
        if self._joined is None:
            daemon = self._start()
            from nexus_daemon.windows.client_documents import ClientDocuments  # it needs the daemon's modules

            folders = daemon.join(self, self._take_process())
            documents = ClientDocuments(self, self._server.documents, folders, daemon)
            self._joined = _Joined(daemon, folders, documents)
            for folder in self._first_folders:
                self._add_folder(folder)
        return self._joined.daemon

    def _take_process(self) -> "LoadInputs | None":
        """Use the time zone of the client's process; returns what its folders are loaded with."""
        if self._process is None:
            return None
        from nexus_daemon.process.client_process import (
            zone,  # the reply to `initialize` need not wait for these
        )
        from nexus_daemon.workspace.inputs import load_inputs

        self._zone = zone(self._process.environ)
        return load_inputs(self._process.environ)

    @property
    def daemon(self) -> "Daemon":
        """The daemon. It must have been started."""
        return self._started.daemon

    @property
    def folders(self) -> "FolderTable[LiveFolder]":
        """The client's folders and unsaved texts. The daemon must have been started."""
        return self._started.folders

    @property
    def documents(self) -> "ClientDocuments":
        """The client's documents. The first use starts the daemon."""
        self.start()
        return self._started.documents

    @property
    def _started(self) -> _Joined:
        if self._joined is None:
            raise RuntimeError("the daemon is not started yet")
        return self._joined

    @property
    def running(self) -> int:
        return self._server.protocol.in_flight

    @property
    def unread(self) -> int:
        return self._server.protocol.unread

    @property
    def listens(self) -> bool:
        return not self._is_silent

    @property
    def umask(self) -> int | None:
        """The umask of the client's process. None means the daemon's."""
        return None if self._process is None else self._process.umask

    def now(self) -> datetime:
        """Return the client's local time, with its zone."""
        return datetime.now().astimezone() if self._zone is None else datetime.now(self._zone)

    async def work(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run a job in a worker thread, as `Workers.run` describes."""
        return await self.daemon.workers.run(job, *args, **kwargs)

    async def read(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run a job that changes nothing in a worker thread, as `Workers.read` describes."""
        return await self.daemon.workers.read(job, *args, **kwargs)

    async def ask(self, method: str, params: Any, result_type: Any, *, timeout_s: float) -> Any:
        """Send the client a request and return its result, as `NexusServer.request` describes."""
        return await self._server.request(method, params, result_type, timeout_s=timeout_s)

    def initialize(self, params: lsp_types.InitializeParams) -> None:
        """Store the parameters of `initialize`. Its folders are added after the reply."""
        if params.client_info is not None:
            self.name = params.client_info.name
        self.capabilities = capabilities_of(params)
        self.lenses.is_supported = self.capabilities.refreshes_lenses
        self.contexts.is_supported = self.capabilities.reads_contents
        self._set_publisher()
        self._first_folders = _folders(params)
        options = params.initialization_options
        if isinstance(options, dict):
            self._first_folders = [_trusted_as(options, folder) for folder in self._first_folders]
        asyncio.get_running_loop().call_soon(self._start_unless_ended)

    def _set_publisher(self) -> None:
        """Publish as the client wants its diagnostics: it pulls them, or they are pushed."""
        documents, encoding = self._server.documents, self.capabilities.position_encoding
        send = partial(self._server.request, REFRESH_DIAGNOSTICS, timeout_s=REPLY_S)
        self.reports = DiagnosticReports(documents, send)
        self.reports.refresh.is_supported = self.capabilities.refreshes_diagnostics
        self.reports.refresh.requested()  # it has those of the daemon before, if there was one
        notify = self.reports.publish if self.capabilities.pulls_diagnostics else self._server.notify
        self._publisher = Publisher(documents, encoding, notify)

    def _start_unless_ended(self) -> None:
        if not self._ended:
            self.start()

    def silence(self) -> None:
        """Publish nothing more, since the client is shutting down."""
        self._is_silent = True
        self._end_refreshes()
        if self._joined is not None:
            self.daemon.silence(self)

    def end(self) -> None:
        """Remove everything of the client from the daemon, since the connection is over."""
        self._ended = self._is_silent = True
        self._end_refreshes()
        if self._joined is not None:
            self.daemon.leave(self)

    def _end_refreshes(self) -> None:
        self.lenses.end()
        self.contexts.end()
        self.reports.refresh.end()

    def show_work(self, title: str) -> "WorkProgress":
        """Show the client work that begins now, if it takes long, until `end` of the result is called."""
        return self._server.protocol.work_progress.begin(title)

    def notify(self, method: str, params: Any) -> None:
        if not self._is_silent:
            self._server.notify(method, params)

    def refresh_lenses(self) -> None:
        self.lenses.changed()

    def refresh_contexts(self, folder: str) -> None:
        self.contexts.folder_changed(folder)

    async def register_contents(self) -> None:
        """Make the client request the content of virtual documents, by registering their scheme."""
        registration = {"id": SCHEME, "method": CONTENT_METHOD, "registerOptions": {"schemes": [SCHEME]}}
        params = {"registrations": [registration]}
        with contextlib.suppress(NexusError, TimeoutError):  # it has no virtual documents then
            await self.ask("client/registerCapability", params, Any, timeout_s=REPLY_S)

    async def _refresh_content(self, uri: str) -> None:
        await self.ask(REFRESH_CONTENT, {"uri": uri}, Any, timeout_s=REPLY_S)

    def swap(self, folder: "Folder", snapshot: "Snapshot | None") -> None:
        if self._is_silent:
            return
        findings = None if snapshot is None else folder.programs.findings(snapshot, folder.overlays)
        if snapshot is None or findings is not None:
            self._publisher.swap(folder.uri, findings)
        self.contexts.folder_changed(folder.uri)
        prompt = None if snapshot is None else snapshot.prompt
        if self._prompts.get(folder.uri) is not prompt:
            self.lenses.changed()
        self._prompts[folder.uri] = prompt
        if prompt is None:
            del self._prompts[folder.uri]

    def swap_agent(
        self, folder: "Folder", agent: str, snapshot: "Snapshot | None", overlays: Mapping[str, str]
    ) -> None:
        """Publish the diagnostics of an agent's new snapshot.

        None means that the agent or its folder is gone.
        """
        if self._is_silent:
            return
        findings = None if snapshot is None else without_programs(snapshot, overlays)
        self._publisher.swap(f"{folder.uri}#{agent}", findings)

    def change_folders(self, event: lsp_types.FoldersEvent) -> None:
        """Apply a change of the folder list.

        A folder that is both added and removed, such as a renamed one, stays.
        """
        added = {_folder_path(folder) for folder in event.added}
        for folder in event.removed:
            if _folder_path(folder) not in added:
                self.start().remove_folder(self, folder.uri)
                self.documents.adopt()  # those that are still open are lone files from then on
        for folder in event.added:
            self._add_folder(folder)

    def _add_folder(self, folder: lsp_types.WorkspaceFolder) -> None:
        trusted = folder.trusted if isinstance(folder.trusted, bool) else None
        self.start().add_folder(self, folder.uri, name=folder.name, listed=True, trusted=trusted)


def _folders(params: lsp_types.InitializeParams) -> list[lsp_types.WorkspaceFolder]:
    """The folders that a client starts with: its list, else its one root. Kate sends both, the list empty."""
    if params.workspace_folders:
        return list(params.workspace_folders)
    root = params.root_uri or (convert.path_to_uri(params.root_path) if params.root_path else "")
    return [lsp_types.WorkspaceFolder(root)] if root else []


def _folder_path(folder: lsp_types.WorkspaceFolder) -> str:
    """The path of a folder, however its URI is spelled."""
    return convert.uri_to_path(folder.uri) or folder.uri


def _trusted_as(options: dict[str, Any], folder: lsp_types.WorkspaceFolder) -> lsp_types.WorkspaceFolder:
    """The folder with the trust that the options state, unless it states its own."""
    trusted = options.get("trusted") if folder.trusted is None else folder.trusted
    return lsp_types.WorkspaceFolder(folder.uri, folder.name, trusted)
