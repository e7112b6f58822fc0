"""Hold what the connections of one daemon share: ledger, conversations, watchers, threads, vocabularies.

1. Each client has folders of its own, with snapshots of its unsaved texts and its environment, and with its
   agents. Clients never see each other's unsaved files.
2. The windows of a folder are the folders of all clients with its path. They share the conversations in
   memory and the ledger. When one window changes these, the others are notified at once.
3. This module composes the layers below. They call it only through callbacks that it passes to them.
"""

import asyncio
import logging
import os
import time
from collections.abc import Coroutine, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nexus_context.config.conversations import reads_conversations
from nexus_context.config.picked_model import leaves_model_to_editor
from nexus_context.errors import Problem
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_daemon import protocol
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.lsp_types import warning
from nexus_daemon.sessions.conversations import Conversations
from nexus_daemon.windows.folder_agents import FolderAgents
from nexus_daemon.windows.folder_ledgers import FolderLedgers
from nexus_daemon.windows.live_folder import LiveFolder
from nexus_daemon.windows.open_windows import Windows
from nexus_daemon.workspace.assistant_watch import AssistantWatch, SessionChange, WatchedFolder
from nexus_daemon.workspace.folders import FolderEvents, FolderTable
from nexus_daemon.workspace.git_state import WorkingTrees
from nexus_daemon.workspace.publish import Client
from nexus_daemon.workspace.reload import Swap
from nexus_daemon.workspace.vocabulary_loader import VocabularyLoader
from nexus_daemon.workspace.watch_limits import Failure
from nexus_daemon.workspace.watcher import Freshness, Subscriber, Watcher
from nexus_daemon.workspace.workers import Workers

if TYPE_CHECKING:  # most folders have no agents
    from nexus_context.assistants.tracking.followers import SessionFollowers
    from nexus_daemon.servers.folder_servers import FolderServers

logger = logging.getLogger(__name__)

CLOSE_S = 1.0  # how long `close` waits for pending writes
POLLED = "Until there is room, files are polled, and their changes are noticed a second or more later."

T = TypeVar("T")


class Daemon:
    """The state behind every connection. Use it on the event loop; slow work goes to its threads.

    `load_inputs` are those of its own process. The ledger is opened with them, and clients without inputs of
    their own use them. Unless `creates_ledger`, a ledger that does not exist is kept in memory. Unless
    `watches`, files stay as they were when a folder was loaded.
    """

    def __init__(self, load_inputs: LoadInputs, *, creates_ledger: bool = True, watches: bool = True) -> None:
        self.load_inputs = load_inputs
        self._watches = watches
        self.workers = Workers(self._vocabulary_loaded)
        self.windows = Windows()
        self._conversations: dict[str, Conversations] = {}  # of each path that some window has
        self._events = FolderEvents(
            self._swapped,
            knowledge_moved=self._knowledge_moved,
            programs_checked=self._programs_checked,
            overdue=self._overdue,
            agent_files_changed=lambda folder, paths: self.agents.files_changed(folder, paths),
            show_work=lambda folder, title: folder.client.show_work(title),
        )
        self.assistant_watch = AssistantWatch(
            self._assistant_folders,
            self.workers.read,
            self._session_of_assistant_changed,
            lambda: self.watcher.refresh(),
        )
        self.watcher = Watcher(
            Subscriber(self._watched_paths, self._files_changed, self._files_reread),
            Subscriber(self._knowledge_paths, self._knowledge_changed),
            Subscriber(self.assistant_watch.paths, self.assistant_watch.changed),
            Subscriber(self._approval_files, self._approvals_changed, self._approvals_changed),
            executor=self.workers.executor,
            report=self._watching_changed,
        )
        self.git = WorkingTrees(self.workers.requests)
        self.ledgers = FolderLedgers(load_inputs, self.windows, self.workers, creates=creates_ledger)
        self.started = time.monotonic()
        self.vocabularies = VocabularyLoader(self.workers.run, self.windows.show_work)
        self.agents = FolderAgents(
            self.windows,
            self.ledgers,
            self.workers,
            vocabularies=self.vocabularies,
            refresh_watches=self.watcher.refresh,
        )
        self.running_chats: dict[tuple[str, str], asyncio.Task[Any]] = {}  # by folder and session
        self._servers: FolderServers | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._limit: Failure | None = None  # the limit of the system because of which files are polled
        self._warned: set[str | None] = set()  # names of the limits that users were warned of

    # ------------------------------------------------------------ clients and folders

    @property
    def servers(self) -> "FolderServers":
        """The MCP servers of the folders."""
        if self._servers is None:
            self._servers = self._make_servers()
        return self._servers

    def _make_servers(self) -> "FolderServers":
        from nexus_daemon.servers.folder_servers import FolderServers  # most folders have none

        self.watcher.refresh()
        return FolderServers(
            self.workers,
            inputs_of=self._server_inputs,
            changed=self._server_changed,
        )

    def _server_inputs(self, folder: LiveFolder) -> LoadInputs:
        """Return the inputs to load a folder with. A folder whose client has left is not trusted."""
        table = self.windows.tables.get(folder.client)
        if table is None:
            return msgspec.structs.replace(self.load_inputs, trusted=False)
        return table.inputs_of(folder, {})

    @cached_property
    def followers(self) -> "SessionFollowers":
        """The sessions of other assistants that are followed."""
        from nexus_context.assistants.tracking.followers import SessionFollowers  # most clients want none

        return SessionFollowers()

    def join(self, client: Client, load_inputs: LoadInputs | None = None) -> FolderTable[LiveFolder]:
        """Add a client, and return the table of its folders. The folders are loaded with `load_inputs`."""
        table = self.windows.tables[client] = FolderTable(
            partial(self._create_folder, client),
            load_inputs or self.load_inputs,
            self.workers.loads,
            turns=self.workers.turns,
            events=self._events,
            windows=self.windows.of,
        )
        self.windows.clients.add(client)
        if self.ledgers.notice is not None:
            client.notify("window/showMessage", warning(self.ledgers.notice))
        if self._limit is not None:
            client.notify("window/showMessage", _polled_warning(self._limit))
        return table

    def silence(self, client: Client) -> None:
        """Announce nothing more to a client that is about to leave."""
        self.windows.clients.discard(client)
        for folder in self.windows.tables.get(client, ()):
            folder.stop_announcing()

    def leave(self, client: Client) -> None:
        """Remove a client with its folders and unsaved texts."""
        self.windows.clients.discard(client)
        folders = tuple(self.windows.tables.pop(client, ()))
        for folder in folders:
            folder.reload.cancel()
            self._close_folder(folder)
        if folders:
            self.watcher.refresh()
        if client.capabilities.wants_assistant_sessions:
            self.assistant_watch.look()

    def add_folder(
        self, client: Client, uri: str, *, name: str, listed: bool, trusted: bool | None = None
    ) -> None:
        """Add a folder to a client that has joined, and start to load it, as `FolderTable.add` describes."""
        folder = self.windows.tables[client].add(uri, name=name, listed=listed, trusted=trusted)
        if folder is None:
            return
        other_windows = [window for window in self.windows.of(folder) if window is not folder]
        ledger = next((window.ledger for window in other_windows if window.ledger is not None), None)
        if ledger is not None and folder.ledger is None:
            folder.ledger = ledger
            self.ledgers.follow_choice(folder)
        if any(window.agents is not None for window in other_windows):
            self.agents.open_later(folder)
        if client.capabilities.wants_assistant_sessions:
            self.assistant_watch.look()

    def remove_folder(self, client: Client, uri: str) -> None:
        folder = self.windows.tables[client].remove(uri)
        if folder is not None:
            client.swap(folder, None)
            if folder.agents is not None:
                folder.agents.unpublish()
            self.watcher.refresh()
            self._close_folder(folder)

    def problems_inside(self, folder: LiveFolder) -> list[Problem]:
        """Return the problems of a folder, as `FolderTable.problems_inside` describes."""
        return self.windows.tables[folder.client].problems_inside(folder)

    def _create_folder(self, client: Client, uri: str, path: str, name: str) -> LiveFolder:
        conversations = self._conversations.setdefault(path, Conversations())
        return LiveFolder(uri, path, name, client=client, conversations=conversations, workers=self.workers)

    def _close_folder(self, folder: LiveFolder) -> None:
        """End the work of a folder that has left its table."""
        folder.conversations.drop_turns(folder.client)
        if self._servers is not None:
            self._close_later(self.servers.release(folder))
        if not self.windows.of(folder):
            self._conversations.pop(folder.path, None)
        self._close_later(folder.close())

    def freshness(self, folder: LiveFolder) -> Freshness:
        """Return how changes to the files of a folder are noticed now."""
        config_directory = os.path.join(folder.path, CONFIG_DIRECTORY)
        of_agents, of_knowledge = folder.watched_by_agents, folder.knowledge.watched()
        return self.watcher.freshness((config_directory, *folder.watched, *of_agents, *of_knowledge))

    async def close(self) -> None:
        """Stop the watchers and the threads, without waiting for a thread that hangs on a file system."""
        self.git.close()
        for folder in self.windows.folders:
            folder.reload.cancel()
            folder.stop_announcing()
        self.vocabularies.end()
        self.workers.cancel_jobs()
        self.ledgers.stop()
        await self.watcher.close()
        await self.assistant_watch.close()
        if self._servers is not None:
            await self.servers.close()
        for folder in self.windows.folders:
            self._close_later(folder.close())
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_S)
        self.workers.close()
        ended = self.ledgers.writer.close()
        if ended is not None:
            await asyncio.wait([asyncio.wrap_future(ended)], timeout=CLOSE_S)

    def _close_later(self, closing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _vocabulary_loaded(self) -> None:
        for folder in self.windows.folders:
            folder.announce("tokens")

    # ------------------------------------------------------------ events of folders and watchers

    def _swapped(self, folder: LiveFolder, swap: Swap) -> None:
        if folder.client.listens:
            folder.programs.configure(swap.new)
        folder.client.swap(folder, folder.snapshot)
        if swap.moves_files:
            folder.client.documents.adopt()
        self.vocabularies.swapped(folder, swap)
        if swap.moves_files:
            self.watcher.refresh()
        if self._watches:
            self.watcher.start()
        if swap.old is None or swap.old.effective.get("/views") != swap.new.effective.get("/views"):
            folder.client.refresh_lenses()  # they speak of the assistants in use
            if folder.client.capabilities.wants_assistant_sessions:
                self.assistant_watch.look()  # whose sessions may be read now, or not any more
        if self._servers is not None:
            self._close_later(self.servers.follow(folder, swap.new))
        if swap.old is None and folder.ledger is None and leaves_model_to_editor(swap.new.effective):
            self._close_later(self.ledgers.find_choice(folder, swap.new))

    def _server_changed(self, launch_hash: str) -> None:
        """Tell the windows whose folders have a server that it has another state."""
        for folder in self.windows.folders:
            if folder.client.listens and folder.snapshot is not None:
                self._close_later(self._tell_of_server(folder, folder.snapshot, launch_hash))

    async def _tell_of_server(self, folder: LiveFolder, snapshot: Snapshot, launch_hash: str) -> None:
        if folder.client not in self.windows.tables:
            return
        for view in await self.servers.views(folder, snapshot):
            if view.launch is not None and view.launch.hash == launch_hash:
                params = protocol.McpDidChange(folder.uri, view.server.name, view.state)
                folder.client.notify("nexus/mcp/didChange", params)
                folder.client.refresh_lenses()

    def _approval_files(self) -> set[str]:
        """The files with approvals of MCP servers, beside the lists of trusted folders."""
        if self._servers is None:
            return set()
        from nexus_context.servers.approvals import approvals_file  # as above

        inputs = (table.load_inputs for table in self.windows.tables.values())
        return {
            approvals_file(window_inputs.environ)
            for window_inputs in inputs
            if window_inputs.trust_file is not None
        }

    def _approvals_changed(self, paths: set[str] | None) -> None:
        directories = {os.path.dirname(path) for path in self._approval_files()}  # tokens are there, too
        if paths is None or not directories.isdisjoint(map(os.path.dirname, paths)):
            for folder in self.windows.folders:
                if self._servers is not None and folder.snapshot is not None:
                    self._close_later(self._servers.approvals_changed(folder, folder.snapshot))

    def _overdue(self, folder: LiveFolder) -> None:
        """Report that a folder could not be loaded in time; its last snapshot stays."""
        stopped, snapshot = folder.reload.stopped, folder.snapshot
        if stopped is None:
            return
        logger.warning("%s was not loaded within %g s: %s", folder.path, stopped.seconds, stopped.path)
        if snapshot is not None:
            folder.client.swap(folder, snapshot)
        folder.announce("disk")
        if snapshot is None:
            text = (
                f"the folder {folder.path} could not be loaded within {stopped.seconds:g} s; it has no "
                f"context yet. Loading stopped at {stopped.path}. Make its files fewer or smaller."
            )
            folder.client.notify("window/showMessage", warning(text))

    def _watching_changed(self) -> None:
        """Warn every user once when a system limit is reached, and log when it no longer is."""
        failure, previous_limit = self.watcher.failure, self._limit
        self._limit = None if failure is None or failure.limit is None else failure
        if self._limit is not None and self._limit.limit not in self._warned:
            self._warned.add(self._limit.limit)
            self.windows.show(_polled_warning(self._limit))
        elif self._limit is None and previous_limit is not None:
            recovered = lsp_types.ShowMessageParams(lsp_types.INFORMATION, "Files are watched again.")
            for client in self.windows.clients:
                client.notify("window/logMessage", recovered)

    def _knowledge_moved(self, folder: LiveFolder) -> None:
        """Watch the directories of a knowledge base that changed, and publish its problems.

        If a rebuild is under way, its snapshot publishes them.
        """
        self.watcher.refresh()
        if not folder.reload.under_way and not folder.reload.cancelled:
            folder.client.swap(folder, folder.snapshot)

    def _programs_checked(self, folder: LiveFolder, moves: bool) -> None:
        """Publish what assistants make of their files, and watch these."""
        if moves:
            self.watcher.refresh()
        if not folder.reload.under_way and not folder.reload.cancelled:
            folder.client.swap(folder, folder.snapshot)

    def _knowledge_paths(self) -> Iterator[str]:
        for folder in self.windows.folders:
            yield from folder.knowledge.watched()

    def _knowledge_changed(self, paths: set[str] | None) -> None:
        for folder in self.windows.folders:
            folder.knowledge.changed(paths)

    def _assistant_folders(self) -> Iterator[WatchedFolder]:
        """The folders of clients that want to know of sessions of other assistants."""
        for client, table in self.windows.tables.items():
            if client.capabilities.wants_assistant_sessions:
                inputs = table.load_inputs
                for folder in table:
                    reads = folder.snapshot is not None and reads_conversations(folder.snapshot.effective)
                    yield WatchedFolder.of(folder.uri, folder.path, inputs, reads_conversations=reads)

    def _session_of_assistant_changed(self, change: SessionChange) -> None:
        for folder in self.windows.folders:
            if folder.uri == change.folder.uri and folder.client.capabilities.wants_assistant_sessions:
                folder.client.notify(
                    "nexus/assistant/didChange",
                    protocol.AssistantDidChange(folder.uri, change.assistant, change.id, change.reason),
                )
                if change.changes_views:
                    folder.programs.request()  # another program may be in use
                    folder.client.refresh_lenses()  # they speak of those in use, and of their windows

    def _files_changed(self, paths: set[str] | None) -> None:
        for table in self.windows.tables.values():
            table.changed(paths)

    def _files_reread(self, paths: set[str]) -> None:
        for table in self.windows.tables.values():
            table.reread(paths)

    def _watched_paths(self) -> frozenset[str]:
        folders = self.windows.folders
        configs = (os.path.join(folder.path, CONFIG_DIRECTORY) for folder in folders)
        agents = (folder.watched_by_agents for folder in folders)
        programs = (folder.programs.watched for folder in folders)
        return frozenset(configs).union(*(folder.watched for folder in folders), *agents, *programs)


def _polled_warning(failure: Failure) -> lsp_types.ShowMessageParams:
    return warning(f"{failure.reason}. {POLLED} {failure.advice}")
