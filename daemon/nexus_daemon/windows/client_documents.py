"""Manage the documents of one client: unsaved text wins over the disk, and some folder reads each
document.
"""

import asyncio
import contextlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from nexus_context.errors import RequestError
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY, within
from nexus_context.folder.snapshot import Snapshot
from nexus_daemon import features
from nexus_daemon.lsp import convert, lsp_types
from nexus_daemon.lsp.documents import Document, OpenDocuments
from nexus_daemon.windows.daemon import Daemon
from nexus_daemon.windows.live_folder import LiveFolder
from nexus_daemon.workspace.checked_files import directory_of, misplaced
from nexus_daemon.workspace.folders import FolderTable
from nexus_daemon.workspace.publish import Client

if TYPE_CHECKING:
    from nexus_context.assistants.views.problems import AssistantCheck
    from nexus_daemon.features.edits import Editing

SETTLE_S = 5.0
REASONS = {"config.json": "config", "mcp.json": "mcp", ".mcp.json": "mcp"}


class View(NamedTuple):
    """A file as a part of the context of a folder, or of an agent.

    `folder` is a URI. `is_live` says that requests can name the agent; they cannot name one that is not
    running.
    """

    snapshot: Snapshot
    path: str
    folder: str
    agent: str | None = None
    is_live: bool = True


async def _settled(folder: LiveFolder) -> None:
    with contextlib.suppress(RequestError):  # a folder that cannot be read finds nothing
        await folder.current()
        if folder.agents is not None:
            await folder.agents.current()
        await folder.programs.settled()


class ClientDocuments:
    """The documents of a client as its folders read them. Use it on the event loop."""

    def __init__(
        self, client: Client, documents: OpenDocuments, folders: FolderTable[LiveFolder], daemon: Daemon
    ) -> None:
        self._client = client
        self._documents = documents
        self._folders = folders
        self._daemon = daemon
        self._explained: set[str] = set()  # paths of unchecked documents whose reason was logged

    def changed(self, uri: str) -> None:
        """Use the text of a document that was opened or edited.

        It wins over the disk, under every path of the file.
        """
        document = self._documents.get(uri)
        if document is None or document.path is None or not document.is_known:
            return
        self._set_overlays(self._documents.of_file(document.path), document.text)
        if document.edited == document.opening:  # an edit changes nothing about who reads the file
            self._adopt(document.path)

    def closed(self, uri: str) -> None:
        """Use the text on the disk again, unless the file is open under another path.

        The folder of a lone file is removed with the last of its documents.
        """
        document = self._documents.get(uri)
        if document is None or document.path is None:
            return
        path = document.path
        other_documents = [
            other_document for other_document in self._documents.of_file(path) if other_document.uri != uri
        ]
        self._set_overlays([document], None)
        if other_documents:
            self._set_overlays(other_documents, other_documents[0].text)
        folder = self._folders.containing(path)
        if folder is not None and not folder.is_listed:
            paths = [
                other_document.path
                for other_document in self._documents
                if other_document.path and other_document.uri != uri
            ]
            if not any(self._folders.containing(other_path) is folder for other_path in paths):
                self._daemon.remove_folder(self._client, folder.uri)

    def adopt(self) -> None:
        """Start to check the open documents that no folder reads."""
        for document in self._documents:
            if document.path is not None:
                self._adopt(document.path)

    def editing(self) -> "Editing":
        """Return how the client takes edits now.

        If a file has several documents, the last edited one counts.
        """
        documents = sorted(self._documents, key=lambda document: document.edited)
        pairs = [
            (path, document) for document in documents for path in (document.real, document.path) if path
        ]
        return features.edits.Editing(  # imported by the first request for a fix
            creates=self._client.capabilities.creates_files,
            renames=self._client.capabilities.renames_files,
            is_versioned=self._client.capabilities.takes_versions,
            asks=self._client.capabilities.asks_about_edits,
            uris={path: document.uri for path, document in pairs},
            versions={path: document.version for path, document in pairs},
        )

    async def view_of(self, uri: str) -> View | None:
        """Return the context that a file is part of. None if no folder reads the file."""
        spelled = convert.uri_to_path(uri)
        if spelled is None:
            return None
        document = self._documents.get(uri)
        spellings = dict.fromkeys((spelled, spelled if document is None else document.real or spelled))
        unread: View | None = None
        for path, folder in (
            (spelling, folder) for spelling in spellings for folder in self._folders.reading(spelling)
        ):
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

    async def program_check(self, uri: str) -> "tuple[str, AssistantCheck] | None":
        """Return the path of a file, and the check of the innermost folder whose programs have problems in
        the file.

        None if there is no such check.
        """
        path = convert.uri_to_path(uri)
        for folder in sorted(self._folders, key=lambda folder: len(folder.path), reverse=True):
            check = None if path is None else await folder.programs.check_of(path)
            if path is not None and check is not None:
                return path, check
        return None

    async def lens_view(self, uri: str) -> View | None:
        """Return the context that a file's lenses describe: that of `view_of`, if a listed folder reads the
        file.

        Otherwise it is that of the innermost listed folder that contains the file, if there is one.
        """
        view = await self.view_of(uri)
        folder = None if view is None else self._folders.get(view.folder)
        is_lone = folder is not None and not folder.is_listed
        return (self._view_below(uri) or view) if view is None or is_lone else view

    async def settled(self, uri: str | None = None) -> None:
        """Wait until the folders that may read a document have read and checked each edit.

        Without a document, wait for all folders, at most SETTLE_S. A slow folder does not delay the others.
        """
        path = None if uri is None else convert.uri_to_path(uri)
        if uri is not None and path is None:
            return
        folders = [folder for folder in self._folders if path is None or self._may_read(folder, path)]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_S if path is None else None):
                await asyncio.gather(*map(_settled, folders))

    def _may_read(self, folder: LiveFolder, path: str) -> bool:
        """Whether a folder contains a path, or reads it from elsewhere."""
        is_read = folder.programs.reads(path) or folder in self._folders.reading(path)
        return is_read or within(path, folder.path)

    def _set_overlays(self, documents: Iterable[Document], text: str | None) -> None:
        """Set or drop the unsaved text of a file, under each path by which it is open or may be read."""
        for path in {
            path: None
            for document in documents
            for path in (document.path, document.real)
            if path is not None
        }:
            self._folders.set_overlay(path, text, REASONS.get(os.path.basename(path), "instructions"))

    def _adopt(self, path: str) -> None:
        """Check a file that no folder reads, such as the nested one of a package, in its own directory.

        A document that only an agent would read is previewed, too, by the folder that has the agent.
        """
        folders = self._folders
        directory, previewer = directory_of(path), folders.previewer(path)
        is_setting = os.path.basename(os.path.dirname(path)) == CONFIG_DIRECTORY
        if directory is not None and (is_setting or previewer is None) and not folders.may_read(path):
            self._daemon.add_folder(self._client, convert.path_to_uri(directory), name="", listed=False)
        if previewer is not None:
            self._daemon.agents.preview(previewer, path)
        elif directory is None and path not in self._explained:
            self._explain(path)

    def _explain(self, path: str) -> None:
        """Log once why a document is not checked, if its name suggests that it is."""
        reason = self._folders.unread_reason(path)
        if (
            reason is None
            and not self._folders.may_read(path)
            and (misplacement := misplaced(path)) is not None
        ):
            reason = f"is not checked: {misplacement}"
        if reason is not None:
            self._explained.add(path)
            text = f"Nexus: {path} {reason}."
            self._client.notify("window/logMessage", lsp_types.ShowMessageParams(lsp_types.INFORMATION, text))

    def _view_below(self, uri: str) -> View | None:
        """View a file in the innermost listed folder that contains it. None until that has a snapshot."""
        path = convert.uri_to_path(uri) or ""
        folders = [
            listed_folder
            for listed_folder in self._folders
            if listed_folder.is_listed and within(path, listed_folder.path)
        ]
        folder = max(folders, key=lambda listed_folder: len(listed_folder.path), default=None)
        if folder is None or folder.snapshot is None:
            return None
        return View(folder.snapshot, path, folder.uri)
