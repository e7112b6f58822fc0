"""One connection's side of the daemon: what it has open, what it was told, which folders it brought."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.errors import Problem
from nexus_daemon.lsp import convert, lsp_types
from nexus_daemon.workspace.lens_refresh import ANSWER_S, REFRESH, Lenses
from nexus_daemon.workspace.publish import Publisher

if TYPE_CHECKING:
    from nexus_context.prompt.render import Prompt
    from nexus_context.snapshot import Snapshot
    from nexus_daemon.lsp.server import NexusServer
    from nexus_daemon.state import Daemon
    from nexus_daemon.workspace.folders import Folder

NEXUS_DIRECTORY = ".nexus3"
REASONS = {"config.json": "config", "mcp.json": "mcp", ".mcp.json": "mcp"}


class _NoTexts:
    """A file that no folder has read: its positions all mean its start."""

    texts: Mapping[str, str] = MappingProxyType({})


class View(NamedTuple):
    """A file as a part of what a folder's conversation sees, or an agent.

    `folder` is a URI. `asked`: requests can be about it; they cannot about an agent that does not live.
    """

    snapshot: "Snapshot"
    path: str
    folder: str
    agent: str | None = None
    asked: bool = True


class Client:
    """The state of one connection. Lives on the event loop.

    The daemon behind it is started by whoever needs it first, after the reply to `initialize`: what it
    imports takes longer than that reply may.
    """

    def __init__(self, server: "NexusServer", start: "Callable[[], Daemon]") -> None:
        self.server = server
        self.publisher = Publisher(server.documents, convert.DEFAULT_ENCODING, server.notify)
        self._start = start
        self._daemon: Daemon | None = None
        self.lenses = Lenses(partial(server.request, REFRESH, timeout_s=ANSWER_S))
        self._ended = False
        self._prompts: dict[str, Prompt | None] = {}  # of each folder, as the lenses were told of
        self._first_folders: list[lsp_types.WorkspaceFolder] = []
        self._trusted: set[str] = set()  # paths of its folders that the user trusts, as it has said

    def start(self) -> "Daemon":
        """Start the daemon if need be, and bring it this client's folders."""
        if self._daemon is None:
            self._daemon = self._start()
            self._daemon.join(self)
            for folder in self._first_folders:
                self.add_folder(folder)
        return self._daemon

    @property
    def daemon(self) -> "Daemon":
        """The daemon, once it is started."""
        if self._daemon is None:
            raise RuntimeError("the daemon is not started yet")
        return self._daemon

    @property
    def position_encoding(self) -> str:
        return self.server.position_encoding

    def trusts(self, directory: str) -> bool:
        """Whether the client has said that the user trusts the folder of a directory: git may run there.

        `initializationOptions.trusted` says it of the folders that `initialize` lists. A folder that comes
        later is trusted only where its own `trusted` says so. Of nested folders the innermost one counts.
        """
        folder = self.daemon.folders.containing(directory)
        return folder is not None and folder.path in self._trusted

    @property
    def has_model(self) -> bool:
        """Whether the client has said that it answers `nexus/model/complete`."""
        params = self.server.client
        return params is not None and params.capability("experimental.nexus.modelComplete") is True

    @property
    def creates_files(self) -> bool:
        """Whether the client can create files as part of an edit."""
        params = self.server.client
        kinds = None if params is None else params.capability("workspace.workspaceEdit.resourceOperations")
        return isinstance(kinds, list | tuple) and "create" in kinds

    async def ask(self, method: str, params: Any, result_type: Any, *, timeout_s: float) -> Any:
        """Ask the client; see `NexusServer.request`."""
        return await self.server.request(method, params, result_type, timeout_s=timeout_s)

    def introduced(self, params: lsp_types.InitializeParams) -> None:
        """The client has said who it is: take its folders in, once it has its reply."""
        self.publisher = Publisher(self.server.documents, self.position_encoding, self.server.notify)
        self.lenses.wanted = params.capability("workspace.codeLens.refreshSupport") is True
        self._first_folders = _folders(params)
        options = params.initialization_options
        if isinstance(options, dict) and options.get("trusted") is True:
            for folder in self._first_folders:
                self._trust(lsp_types.WorkspaceFolder(folder.uri, trusted=True))
        asyncio.get_running_loop().call_soon(self._start_unless_ended)

    def _start_unless_ended(self) -> None:
        if not self._ended:
            self.start()

    def silence(self) -> None:
        """The client wants to hear nothing more."""
        self.lenses.end()
        if self._daemon is not None:
            self._daemon.clients.discard(self)

    def end(self) -> None:
        """The connection is over: what the client brought goes with it."""
        self._ended = True
        self.lenses.end()
        if self._daemon is not None:
            self._daemon.leave(self)

    def notify(self, method: str, params: Any) -> None:
        self.server.notify(method, params)

    def swap(self, folder: "Folder", snapshot: "Snapshot | None") -> None:
        self.publisher.swap(folder.uri, snapshot, folder.overlays)
        prompt = None if snapshot is None else snapshot.prompt
        if self._prompts.get(folder.uri) is not prompt:
            self.lenses.changed()
        self._prompts[folder.uri] = prompt
        if prompt is None:
            del self._prompts[folder.uri]

    def swap_agent(
        self, folder: "Folder", agent: str, snapshot: "Snapshot | None", overlays: Mapping[str, str]
    ) -> None:
        """As `swap`, for what an agent of the folder sees."""
        self.publisher.swap(f"{folder.uri}#{agent}", snapshot, overlays)

    def add_folder(self, folder: lsp_types.WorkspaceFolder) -> None:
        self._trust(folder)
        self.start().add_folder(folder.uri, name=folder.name, listed=True, owner=self)

    def _trust(self, folder: lsp_types.WorkspaceFolder) -> None:
        """Take what a client says of a folder's trust, where it says something."""
        path = convert.uri_to_path(folder.uri)
        if path is not None and folder.trusted is True:
            self._trusted.add(path)
        elif path is not None and folder.trusted is False:
            self._trusted.discard(path)

    def remove_folder(self, uri: str) -> None:
        """A folder has left the workspace; its documents that are still open are then lone files."""
        self._trust(lsp_types.WorkspaceFolder(uri, trusted=False))
        self.start().remove_folder(uri, owner=self)
        self.adopt()

    def adopt(self) -> None:
        """Look after the open documents that no folder reads any more, or not after all."""
        for document in self.server.documents:
            if document.path is not None:
                self._adopt(document.path)

    def document_changed(self, uri: str) -> None:
        """A document was opened or edited: its text wins over the disk."""
        document = self.server.documents.get(uri)
        if document is None or document.path is None:
            return
        daemon = self.start()
        self._adopt(document.path)
        daemon.folders.set_overlay(document.path, document.text, reason_of(document.path), owner=self)

    def document_closed(self, uri: str) -> None:
        """The disk counts again; the folder of a lone file goes with the last of its documents."""
        path = convert.uri_to_path(uri)
        if path is None:
            return
        daemon = self.start()
        daemon.folders.set_overlay(path, None, reason_of(path), owner=self)
        folder = daemon.folders.containing(path)
        if folder is not None and folder.owners.get(self) is False:
            others = [document.path for document in self.server.documents if document.path]
            open_paths = [other for other in others if other != path]
            if not any(daemon.folders.containing(other) is folder for other in open_paths):
                daemon.remove_folder(folder.uri, owner=self)

    def files_changed(self, uris: Iterable[str]) -> None:
        """The client's own file watcher saw changes; ours may not see them on every file system."""
        paths = [path for uri in uris if (path := convert.uri_to_path(uri)) is not None]
        self.start().folders.changed(paths)

    async def snapshot_of(self, uri: str) -> "tuple[Snapshot | None, str | None]":
        """The snapshot that reads a file, and the file's path; None where no folder reads it."""
        view = await self.view_of(uri)
        return (None, convert.uri_to_path(uri)) if view is None else (view.snapshot, view.path)

    async def view_of(self, uri: str) -> "View | None":
        """What a file is part of; None where no folder reads it."""
        path = convert.uri_to_path(uri)
        if path is None:
            return None
        for folder in self.start().folders.reading(path):
            snapshot = await folder.current()
            if folder.agents is not None and path not in snapshot.layers.texts:
                await folder.agents.current()
                seen = folder.agents.reading(path)
                if seen is not None:
                    agent = folder.agents.name_of(seen)
                    return View(seen, path, folder.uri, agent, asked=agent is not None)
            return View(snapshot, path, folder.uri)
        return None

    def describe_problem(self, problem: Problem) -> Any:
        """A problem in the data of a failed request, in this client's positions."""
        from nexus_daemon import results

        for folder in self.daemon.folders.reading(problem.path):
            if folder.snapshot is not None:
                locate = convert.Locator(folder.snapshot.layers, self.position_encoding)
                return results.problems(locate, [problem])[0]
        return results.problems(convert.Locator(_NoTexts(), self.position_encoding), [problem])[0]

    def _adopt(self, path: str) -> None:
        """Check a configuration file that is in no workspace folder as one of its own folder.

        One that only an agent would read is checked for that, too, by the folder that has the agent.
        """
        folders = self.daemon.folders
        directory = os.path.dirname(path)
        if os.path.basename(directory) == NEXUS_DIRECTORY and not any(one.may_read(path) for one in folders):
            above = convert.path_to_uri(os.path.dirname(directory))
            self.daemon.add_folder(above, name="", listed=False, owner=self)
        drafting = folders.drafting(path)
        if drafting is not None:
            drafting.check_draft(self.daemon, path)


def reason_of(path: str) -> str:
    """What kind of change an edit of this file is, for `nexus/context/didChange`."""
    return REASONS.get(os.path.basename(path), "instructions")


def _folders(params: lsp_types.InitializeParams) -> list[lsp_types.WorkspaceFolder]:
    """The folders that a client starts with: its list, else its one root."""
    if params.workspace_folders is not None:
        return list(params.workspace_folders)
    root = params.root_uri or (convert.path_to_uri(params.root_path) if params.root_path else "")
    return [lsp_types.WorkspaceFolder(root)] if root else []
