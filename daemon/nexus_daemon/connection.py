"""One connection's side of the daemon: its open documents, its folders, and what is published to it."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from nexus_context.errors import Problem
from nexus_context.layers.walk import CONFIG_DIRECTORY, within
from nexus_daemon.lsp import convert, lsp_types
from nexus_daemon.lsp.documents import Document
from nexus_daemon.lsp.initialize import is_ours
from nexus_daemon.workspace.checked_files import directory_of, misplaced
from nexus_daemon.workspace.lens_refresh import REFRESH, REPLY_S, LensRefresh
from nexus_daemon.workspace.publish import Publisher

if TYPE_CHECKING:  # the reply to `initialize` must not wait for the daemon
    from nexus_context.prompt.render import Prompt
    from nexus_context.snapshot import LoadInputs, Snapshot
    from nexus_daemon.client_process import ClientProcess
    from nexus_daemon.features.code_actions import Editing
    from nexus_daemon.live_folder import LiveFolder
    from nexus_daemon.lsp.dispatch import NexusServer
    from nexus_daemon.lsp.progress import WorkProgress
    from nexus_daemon.state import Daemon
    from nexus_daemon.workspace.folders import Folder, FolderTable
    from nexus_daemon.workspace.reload import Swap

T = TypeVar("T")

REASONS = {"config.json": "config", "mcp.json": "mcp", ".mcp.json": "mcp"}


class View(NamedTuple):
    """A file as a part of the context of a folder, or of an agent.

    `folder` is a URI. `is_live`: requests can name it; they cannot name an agent that is not running.
    """

    snapshot: "Snapshot"
    path: str
    folder: str
    agent: str | None = None
    is_live: bool = True


class Connection:
    """The state of one connection. Lives on the event loop.

    The first connection that needs the daemon starts it, after the reply to `initialize`: its imports take
    longer than that reply may. `process` describes the client's process; None: it is the daemon's own.
    """

    def __init__(
        self, server: "NexusServer", start: "Callable[[], Daemon]", process: "ClientProcess | None" = None
    ) -> None:
        self.server = server
        self.process = process
        self.publisher = Publisher(server.documents, lsp_types.DEFAULT_ENCODING, server.notify)
        self._start = start
        self._daemon: Daemon | None = None
        self._folders: FolderTable[LiveFolder] | None = None
        self.lenses = LensRefresh(partial(server.request, REFRESH, timeout_s=REPLY_S))
        self._ended = False
        self._is_silent = False
        self._zone: tzinfo | None = None  # None: the daemon's
        self._prompts: dict[str, Prompt | None] = {}  # of each folder, which the client's lenses show
        self._explained: set[str] = set()  # paths of unchecked documents whose reason was logged
        self._first_folders: list[lsp_types.WorkspaceFolder] = []

    def start(self) -> "Daemon":
        """Start the daemon unless it is started, with this client's folders."""
        if self._daemon is None:
            self._daemon = self._start()
            self._folders = self._daemon.join(self, self._take_process())
            for folder in self._first_folders:
                self.add_folder(folder)
        return self._daemon

    def _take_process(self) -> "LoadInputs | None":
        """Use the time zone of the client's process; returns what its folders are loaded with."""
        if self.process is None:
            return None
        from nexus_daemon.client_process import zone  # the reply to `initialize` need not wait for these
        from nexus_daemon.workspace.inputs import load_inputs

        self._zone = zone(self.process.environ)
        return load_inputs(self.process.environ)

    @property
    def daemon(self) -> "Daemon":
        """The daemon, once it is started."""
        if self._daemon is None:
            raise RuntimeError("the daemon is not started yet")
        return self._daemon

    @property
    def folders(self) -> "FolderTable[LiveFolder]":
        """The client's folders and unsaved texts, once the daemon is started."""
        if self._folders is None:
            raise RuntimeError("the daemon is not started yet")
        return self._folders

    @property
    def name(self) -> str:
        """What the client calls itself."""
        params = self.server.client
        return "editor" if params is None or params.client_info is None else params.client_info.name

    @property
    def running(self) -> int:
        return self.server.protocol.in_flight

    @property
    def unread(self) -> int:
        return self.server.protocol.unread

    @property
    def listens(self) -> bool:
        return not self._is_silent

    @property
    def position_encoding(self) -> str:
        return self.server.position_encoding

    def trusts(self, directory: str) -> bool:
        """Whether the user trusts the folder of a directory, as the client or else `nexus trust` says.

        `initializationOptions.trusted` applies to the folders that `initialize` lists; a folder that is added
        later has a `trusted` of its own. Of nested folders the innermost one counts.
        """
        folder = self.folders.containing(directory)
        snapshot = None if folder is None else folder.snapshot
        return snapshot is not None and snapshot.contents.trusted is True

    @property
    def umask(self) -> int | None:
        """The umask of the client's process; None: the daemon's."""
        return None if self.process is None else self.process.umask

    def now(self) -> datetime:
        """The client's local time, with its zone."""
        return datetime.now().astimezone() if self._zone is None else datetime.now(self._zone)

    @property
    def has_model(self) -> bool:
        """Whether the client answers `nexus/model/complete`."""
        params = self.server.client
        return params is not None and params.capability("experimental.nexus.modelComplete") is True

    @property
    def wants_assistant_sessions(self) -> bool:
        """Whether the client takes `nexus/assistant/didChange`."""
        params = self.server.client
        return params is not None and params.capability("experimental.nexus.assistantSessions") is True

    @property
    def is_ours(self) -> bool:
        """Whether the client knows Nexus: it shows what our commands answer."""
        params = self.server.client
        return params is not None and is_ours(params)

    @property
    def can_show_documents(self) -> bool:
        """Whether the client opens a document for us."""
        params = self.server.client
        return params is not None and params.capability("window.showDocument.support") is True

    def only_folder(self) -> str | None:
        """The URI of the client's folder, if it has one alone; without any, that of its only lone file."""
        folders = [] if self._folders is None else list(self._folders)
        listed = [folder for folder in folders if folder.is_listed] or folders
        return listed[0].uri if len(listed) == 1 else None

    @property
    def creates_files(self) -> bool:
        """Whether the client can create files as part of an edit."""
        params = self.server.client
        kinds = None if params is None else params.capability("workspace.workspaceEdit.resourceOperations")
        return isinstance(kinds, list | tuple) and "create" in kinds

    def editing(self) -> "Editing":
        """How the client takes edits now; of a file that is open several times, in what was edited last."""
        from nexus_daemon.features.code_actions import Editing  # imported by the first request for a fix

        params, opened = self.server.client, sorted(self.server.documents, key=lambda one: one.edited)
        takes_versions = (
            params is not None and params.capability("workspace.workspaceEdit.documentChanges") is True
        )
        pairs = [(path, document) for document in opened for path in (document.real, document.path) if path]
        return Editing(
            creates=self.creates_files,
            is_versioned=takes_versions,
            uris={path: document.uri for path, document in pairs},
            versions={path: document.version for path, document in pairs},
        )

    async def work(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run a job in a worker thread; see `Workers.run`."""
        return await self.daemon.workers.run(job, *args, **kwargs)

    async def read(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run a job that changes nothing in a worker thread; see `Workers.read`."""
        return await self.daemon.workers.read(job, *args, **kwargs)

    async def ask(self, method: str, params: Any, result_type: Any, *, timeout_s: float) -> Any:
        """Send the client a request; see `NexusServer.request`."""
        return await self.server.request(method, params, result_type, timeout_s=timeout_s)

    def initialize(self, params: lsp_types.InitializeParams) -> None:
        """Take in the parameters of `initialize`; its folders are added once it has its reply."""
        self.publisher = Publisher(self.server.documents, self.position_encoding, self.server.notify)
        self.lenses.is_supported = params.capability("workspace.codeLens.refreshSupport") is True
        self._first_folders = _folders(params)
        options = params.initialization_options
        if isinstance(options, dict):
            self._first_folders = [_trusted_as(options, folder) for folder in self._first_folders]
        asyncio.get_running_loop().call_soon(self._start_unless_ended)

    def _start_unless_ended(self) -> None:
        if not self._ended:
            self.start()

    def silence(self) -> None:
        """Publish nothing more: the client is shutting down."""
        self._is_silent = True
        self.lenses.end()
        if self._daemon is not None:
            self._daemon.silence(self)

    def end(self) -> None:
        """Remove what the client brought: the connection is over."""
        self._ended = self._is_silent = True
        self.lenses.end()
        if self._daemon is not None:
            self._daemon.leave(self)

    def show_work(self, title: str) -> "WorkProgress":
        """Show work that begins now, if it takes long, until `end` of the result is called."""
        return self.server.protocol.work_progress.begin(title)

    def notify(self, method: str, params: Any) -> None:
        if not self._is_silent:
            self.server.notify(method, params)

    def swap(self, folder: "Folder", snapshot: "Snapshot | None") -> None:
        if self._is_silent:
            return
        self.publisher.swap(folder.uri, snapshot, folder.overlays)
        prompt = None if snapshot is None else snapshot.prompt
        if self._prompts.get(folder.uri) is not prompt:
            self.lenses.lenses_changed()
        self._prompts[folder.uri] = prompt
        if prompt is None:
            del self._prompts[folder.uri]

    def swapped(self, folder: "Folder", swap: "Swap") -> None:
        """Publish a folder's new snapshot, and look again for documents that no folder reads."""
        self.swap(folder, folder.snapshot)
        if swap.moves_files:
            self.adopt()

    def swap_agent(
        self, folder: "Folder", agent: str, snapshot: "Snapshot | None", overlays: Mapping[str, str]
    ) -> None:
        """As `swap`, for the snapshot of an agent of the folder."""
        if self._is_silent:
            return
        self.publisher.swap(f"{folder.uri}#{agent}", snapshot, overlays)

    def change_folders(self, event: lsp_types.FoldersEvent) -> None:
        """Take in a change of the list. A folder that is in both parts, as a renamed one is, stays."""
        added = {_place(folder) for folder in event.added}
        for folder in event.removed:
            if _place(folder) not in added:
                self.remove_folder(folder.uri)
        for folder in event.added:
            self.add_folder(folder)

    def add_folder(self, folder: lsp_types.WorkspaceFolder) -> None:
        trusted = folder.trusted if isinstance(folder.trusted, bool) else None
        self.start().add_folder(self, folder.uri, name=folder.name, listed=True, trusted=trusted)

    def remove_folder(self, uri: str) -> None:
        """Remove a folder; its documents that are still open are lone files from then on."""
        self.start().remove_folder(self, uri)
        self.adopt()

    def adopt(self) -> None:
        """Check open documents that no folder reads any more, or stop checking them."""
        for document in self.server.documents:
            if document.path is not None:
                self._adopt(document.path)

    def document_changed(self, uri: str) -> None:
        """Take in a document that was opened or edited: its text wins over the disk, under every path."""
        document = self.server.documents.get(uri)
        if document is None or document.path is None or not document.is_known:
            return
        self.start()
        self._set_overlays(self.server.documents.of_file(document.path), document.text)
        if document.edited == document.opening:  # an edit changes nothing about who reads the file
            self._adopt(document.path)

    def document_closed(self, uri: str) -> None:
        """Use the disk again, unless the file is open under another path.

        The folder of a lone file is removed with the last of its documents.
        """
        document = self.server.documents.get(uri)
        if document is None or document.path is None:
            return
        path, daemon = document.path, self.start()
        others = [other for other in self.server.documents.of_file(path) if other.uri != uri]
        self._set_overlays([document], None)
        if others:
            self._set_overlays(others, others[0].text)
        folder = self.folders.containing(path)
        if folder is not None and not folder.is_listed:
            paths = [other.path for other in self.server.documents if other.path and other.uri != uri]
            if not any(self.folders.containing(other) is folder for other in paths):
                daemon.remove_folder(self, folder.uri)

    def _set_overlays(self, documents: Iterable[Document], text: str | None) -> None:
        """Set or drop the unsaved text of a file, under each path by which it is open or may be read."""
        for path in {path: None for one in documents for path in (one.path, one.real) if path is not None}:
            self.folders.set_overlay(path, text, reason_of(path))

    def files_changed(self, uris: Iterable[str]) -> None:
        """Take in what the client's file watcher saw; ours does not see changes on every file system."""
        paths = [path for uri in uris if (path := convert.uri_to_path(uri)) is not None]
        self.start()
        self.folders.changed(paths)

    async def snapshot_of(self, uri: str) -> "tuple[Snapshot | None, str | None]":
        """The snapshot that reads a file, and the file's path; None where no folder reads it."""
        view = await self.view_of(uri)
        return (None, convert.uri_to_path(uri)) if view is None else (view.snapshot, view.path)

    async def view_of(self, uri: str) -> "View | None":
        """The context that a file is part of; None where no folder reads it."""
        spelled = convert.uri_to_path(uri)
        if spelled is None:
            return None
        self.start()
        document = self.server.documents.get(uri)
        spellings = dict.fromkeys((spelled, spelled if document is None else document.real or spelled))
        unread: View | None = None
        for path, folder in ((one, folder) for one in spellings for folder in self.folders.reading(one)):
            snapshot = await folder.current()
            if path in snapshot.layers.texts:
                return View(snapshot, path, folder.uri)
            if folder.agents is not None:
                await folder.agents.current()
                view = folder.agents.view_reading(path)
                if view is not None:
                    agent = folder.agents.name_of(view)
                    return View(view, path, folder.uri, agent, is_live=agent is not None)
            unread = unread or View(snapshot, snapshot.layers.links.get(path, path), folder.uri)
        return unread

    async def lens_view(self, uri: str) -> "View | None":
        """The context whose lenses a file has: of a file below a folder of the list, that folder's."""
        view = await self.view_of(uri)
        folder = None if view is None else self.folders.get(view.folder)
        is_lone = folder is not None and not folder.is_listed
        return (self._view_below(uri) or view) if view is None or is_lone else view

    def _view_below(self, uri: str) -> "View | None":
        """A file in the innermost folder of the list that contains it; None before that has a snapshot."""
        path = convert.uri_to_path(uri) or ""
        folders = [one for one in self.folders if one.is_listed and within(path, one.path)]
        folder = max(folders, key=lambda one: len(one.path), default=None)
        if folder is None or folder.snapshot is None:
            return None
        return View(folder.snapshot, path, folder.uri)

    def describe_problem(self, problem: Problem) -> Any:
        """A problem in the data of a failed request, in this client's positions."""
        for folder in self.folders.reading(problem.path):
            if folder.snapshot is not None:
                texts: convert.HasTexts = folder.snapshot.layers
                break
        else:
            texts = convert.Texts()  # no folder has read the file
        from nexus_daemon import results  # most requests succeed

        return results.problems(convert.Locator(texts, self.position_encoding), [problem])[0]

    def _adopt(self, path: str) -> None:
        """Check a file that no folder reads, such as the nested one of a package, in its own directory.

        A document that only an agent would read is previewed, too, by the folder that has the agent.
        """
        folders = self.folders
        directory, previewer = directory_of(path), folders.previewer(path)
        is_setting = os.path.basename(os.path.dirname(path)) == CONFIG_DIRECTORY
        if directory is not None and (is_setting or previewer is None) and not folders.may_read(path):
            self.daemon.add_folder(self, convert.path_to_uri(directory), name="", listed=False)
        if previewer is not None:
            self.daemon.agents.preview(previewer, path)
        elif directory is None and path not in self._explained:
            self._explain(path)

    def _explain(self, path: str) -> None:
        """Log once why a document is not checked, if its name suggests that it is."""
        reason = self.folders.unread_reason(path)
        if reason is None and not self.folders.may_read(path) and (place := misplaced(path)) is not None:
            reason = f"is not checked: {place}"
        if reason is not None:
            self._explained.add(path)
            text = f"Nexus: {path} {reason}."
            self.notify("window/logMessage", lsp_types.ShowMessageParams(lsp_types.INFORMATION, text))


def reason_of(path: str) -> str:
    """The reason that an edit of this file has in `nexus/context/didChange`."""
    return REASONS.get(os.path.basename(path), "instructions")


def _folders(params: lsp_types.InitializeParams) -> list[lsp_types.WorkspaceFolder]:
    """The folders that a client starts with: its list, else its one root. Kate sends both, the list empty."""
    if params.workspace_folders:
        return list(params.workspace_folders)
    root = params.root_uri or (convert.path_to_uri(params.root_path) if params.root_path else "")
    return [lsp_types.WorkspaceFolder(root)] if root else []


def _place(folder: lsp_types.WorkspaceFolder) -> str:
    """The path of a folder, however its URI is spelled."""
    return convert.uri_to_path(folder.uri) or folder.uri


def _trusted_as(options: dict[str, Any], folder: lsp_types.WorkspaceFolder) -> lsp_types.WorkspaceFolder:
    """The folder with the trust that the options state, unless it states its own."""
    trusted = options.get("trusted") if folder.trusted is None else folder.trusted
    return lsp_types.WorkspaceFolder(folder.uri, folder.name, trusted)
