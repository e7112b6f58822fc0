"""What the connections of one daemon share: the ledger, conversations, watchers, threads, vocabularies.

1. Each client has folders of its own, with snapshots of its unsaved texts and its environment, and with its
   agents. A file of one client is nobody else's business.
2. The windows of a folder are the folders of all clients with its path. They share the conversations in
   memory and the ledger. What one of them changes there, the others are told at once.
3. This module composes the layers below. They call back only through callbacks that it passes to them.
"""

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_context.config.picked_model import leaves_model_to_editor
from nexus_context.errors import Problem, RequestError
from nexus_context.layers.walk import CONFIG_DIRECTORY
from nexus_context.snapshot import LoadInputs, Snapshot
from nexus_daemon import agents, protocol
from nexus_daemon.live_folder import LiveFolder
from nexus_daemon.lsp import lsp_types
from nexus_daemon.sessions.conversations import Conversations
from nexus_daemon.sessions.ledger_writer import FolderLedger, LedgerWriter
from nexus_daemon.sessions.session_changes import Change
from nexus_daemon.workspace.assistant_watch import AssistantWatch, SessionChange, WatchedFolder
from nexus_daemon.workspace.folders import Folder, FolderEvents, FolderTable
from nexus_daemon.workspace.git_state import WorkingTrees
from nexus_daemon.workspace.publish import Client
from nexus_daemon.workspace.reload import Swap
from nexus_daemon.workspace.vocabulary_loader import VocabularyLoader
from nexus_daemon.workspace.watch_limits import Failure
from nexus_daemon.workspace.watcher import Freshness, Subscriber, Watcher
from nexus_daemon.workspace.workers import Workers

if TYPE_CHECKING:  # most folders have no agents
    from nexus_context.assistant_sessions.followers import SessionFollowers
    from nexus_context.memory.events import Event
    from nexus_daemon.agents.registry import AgentNews, AgentRegistry

logger = logging.getLogger(__name__)

POLL_S = 1.0  # between two polls of the ledger for writes of other processes
CLOSE_S = 1.0  # how long `close` waits for pending writes
POLLED = "Until there is room, files are polled, and their changes are noticed a second or more later."

T = TypeVar("T")
L = TypeVar("L", FolderLedger, FolderLedger | None)


class Daemon:
    """The state behind every connection. Lives on the event loop; slow work goes to its threads.

    `load_inputs` are those of its own process: the ledger is opened with them, and clients without inputs of
    their own have them.
    """

    def __init__(self, load_inputs: LoadInputs) -> None:
        self.load_inputs = load_inputs
        self.workers = Workers(self._vocabulary_loaded)
        self._tables: dict[Client, FolderTable[LiveFolder]] = {}
        self._conversations: dict[str, Conversations] = {}  # of each path that some window has
        self._events = FolderEvents(
            self._swapped,
            self._knowledge_moved,
            self._overdue,
            self._agent_files_changed,
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
            executor=self.workers.executor,
            report=self._watching_changed,
        )
        self.git = WorkingTrees(self.workers.requests)
        self.clients: set[Client] = set()
        self.ledger_writer = LedgerWriter(
            load_inputs.environ,
            partial(self._call_in_loop, self._session_changed),
            on_message=partial(self._call_in_loop, self._message_sent),
            on_options=partial(self._call_in_loop, self._options_changed),
            on_event=self._event_published,
        )
        self._newest_events: dict[str, str] = {}  # ids to announce, by workspace
        self._announcing_events = threading.Lock()
        self.started = time.monotonic()
        self.vocabularies = VocabularyLoader(self.workers.run, self._show_work)
        self._closing: set[asyncio.Task[None]] = set()
        self._polling: asyncio.Task[None] | None = None
        self._ledger_notice: str | None = None  # that users were shown
        self._limit: Failure | None = None  # the limit of the system because of which files are polled
        self._warned: set[str | None] = set()  # names of the limits that users were warned of
        self._loop: asyncio.AbstractEventLoop | None = None

    # ------------------------------------------------------------ clients and folders

    @property
    def names(self) -> dict[Client, str]:
        """The names of the clients in the order of joining; a second one of a name has a number behind it."""
        names: dict[Client, str] = {}
        for client in self._tables:
            same = sum(other.name == client.name for other in names)
            names[client] = f"{client.name} ({same + 1})" if same else client.name
        return names

    @cached_property
    def followers(self) -> "SessionFollowers":
        """The sessions of other assistants that are followed."""
        from nexus_context.assistant_sessions.followers import SessionFollowers  # most clients want none

        return SessionFollowers()

    @property
    def folders(self) -> tuple[LiveFolder, ...]:
        """The folders of all clients."""
        return tuple(folder for table in self._tables.values() for folder in table)

    def windows(self, folder: LiveFolder) -> list[LiveFolder]:
        """The folders of all clients with the path of this one, itself included, in the order of joining."""
        folders = (table.at_path(folder.path) for table in self._tables.values())
        return [window for window in folders if window is not None]

    def join(self, client: Client, load_inputs: LoadInputs | None = None) -> FolderTable[LiveFolder]:
        """Add a client; returns the table of its folders, which are loaded with these inputs."""
        table = self._tables[client] = FolderTable(
            partial(self._create_folder, client),
            load_inputs or self.load_inputs,
            self.workers.loads,
            turns=self.workers.turns,
            events=self._events,
            windows=self.windows,
        )
        self.clients.add(client)
        if self._ledger_notice is not None:
            client.notify("window/showMessage", _warning(self._ledger_notice))
        if self._limit is not None:
            client.notify("window/showMessage", _polled_warning(self._limit))
        return table

    def silence(self, client: Client) -> None:
        """Announce nothing more to a client that is about to leave."""
        self.clients.discard(client)
        for folder in self._tables.get(client, ()):
            folder.stop_announcing()

    def leave(self, client: Client) -> None:
        """Remove a client with its folders and unsaved texts."""
        self.clients.discard(client)
        folders = tuple(self._tables.pop(client, ()))
        for folder in folders:
            folder.reload.cancel()
            self._close_folder(folder)
        if folders:
            self.watcher.refresh()
        if client.wants_assistant_sessions:
            self.assistant_watch.look()

    @contextlib.contextmanager
    def _show_work(self, title: str) -> Iterator[None]:
        """Let every client show work that takes long."""
        with contextlib.ExitStack() as stack:
            for client in self.clients:
                stack.enter_context(client.show_work(title))
            yield

    def show(self, message: lsp_types.ShowMessageParams, folder: LiveFolder | None = None) -> None:
        """Show a message to every user, or in every window of a folder."""
        clients = self.clients if folder is None else [window.client for window in self.windows(folder)]
        for client in clients:
            client.notify("window/showMessage", message)

    def add_folder(
        self, client: Client, uri: str, *, name: str, listed: bool, trusted: bool | None = None
    ) -> None:
        """Add a folder to a client that has joined, and start to load it; see `FolderTable.add`."""
        folder = self._tables[client].add(uri, name=name, listed=listed, trusted=trusted)
        if folder is None:
            return
        others = [window for window in self.windows(folder) if window is not folder]
        ledger = next((window.ledger for window in others if window.ledger is not None), None)
        if ledger is not None and folder.ledger is None:
            folder.ledger = ledger
            self.follow_choice(folder)
        if any(window.agents is not None for window in others):
            self._open_agents_later(folder)
        if client.wants_assistant_sessions:
            self.assistant_watch.look()

    def remove_folder(self, client: Client, uri: str) -> None:
        folder = self._tables[client].remove(uri)
        if folder is not None:
            client.swap(folder, None)
            if folder.agents is not None:
                folder.agents.unpublish()
            self.watcher.refresh()
            self._close_folder(folder)

    def problems_inside(self, folder: LiveFolder) -> list[Problem]:
        """See `FolderTable.problems_inside`."""
        return self._tables[folder.client].problems_inside(folder)

    def _create_folder(self, client: Client, uri: str, path: str, name: str) -> LiveFolder:
        conversations = self._conversations.setdefault(path, Conversations())
        return LiveFolder(uri, path, name, client=client, conversations=conversations, workers=self.workers)

    def _close_folder(self, folder: LiveFolder) -> None:
        """End the work of a folder that has left its table."""
        folder.conversations.drop_turns(folder.client)
        if not self.windows(folder):
            self._conversations.pop(folder.path, None)
        self._close_later(folder.close())

    def freshness(self, folder: LiveFolder) -> Freshness:
        """How changes to the files of a folder are noticed now."""
        return self.watcher.freshness((*_watched_by(folder), *folder.knowledge.watched()))

    async def close(self) -> None:
        """Stop the watchers and the threads, without waiting for a thread that hangs on a file system."""
        self.git.close()
        for folder in self.folders:
            folder.reload.cancel()
            folder.stop_announcing()
        self.vocabularies.end()
        self.workers.cancel_jobs()
        if self._polling is not None:
            self._polling.cancel()
        await self.watcher.close()
        await self.assistant_watch.close()
        for folder in self.folders:
            self._close_later(folder.close())
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_S)
        self.workers.close()
        ended = self.ledger_writer.close()
        if ended is not None:
            await asyncio.wait([asyncio.wrap_future(ended)], timeout=CLOSE_S)

    def _close_later(self, closing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    # ------------------------------------------------------------ agents

    async def agents_of(self, folder: LiveFolder) -> "AgentRegistry":
        """The agents of a folder, for callers that catch up with files and ledger themselves."""
        if folder.agents is None:
            registry = await self.workers.run(lambda: agents.registry)  # the import takes a while
            snapshot = await folder.current()
            ledger = await self.folder_ledger(snapshot, folder)
            await folder.reload.settled()  # RequestError if the client has left meanwhile
            services = registry.AgentServices(
                folders=self._tables[folder.client],
                workers=self.workers,
                client=folder.client,
                vocabularies=self.vocabularies,
                refresh_watches=self.watcher.refresh,
                report=partial(self._agents_changed, folder),
            )
            if folder.agents is None:
                folder.agents = registry.AgentRegistry(folder, ledger, services)
        return folder.agents

    async def live_agents(self, folder: LiveFolder) -> "AgentRegistry":
        """The agents of a folder, up to date with files and ledger."""
        registry = await self.agents_of(folder)
        await registry.current()
        return registry

    def preview_document(self, folder: LiveFolder, path: str) -> None:
        """Check an open document that only an agent of the folder would read.

        If the registry of its agents cannot be opened, the next document does not try again.
        """
        if folder.agents is not None:
            folder.agents.preview(path)
        else:
            self._open_agents_later(folder)

    def _open_agents_later(self, folder: LiveFolder) -> None:
        if folder.agents is None and folder.opening_agents is None:
            folder.opening_agents = asyncio.get_running_loop().create_task(self._open_agents(folder))

    async def _open_agents(self, folder: LiveFolder) -> None:
        try:
            (await self.agents_of(folder)).follow()
        except RequestError as error:
            if not folder.reload.cancelled:
                logger.warning("cannot check the agents' documents of %s: %s", folder.path, error)

    def _agent_files_changed(self, folder: LiveFolder, paths: frozenset[str]) -> None:
        if folder.agents is not None:
            folder.agents.files_changed(paths)

    def _agents_changed(self, folder: LiveFolder, news: "Sequence[AgentNews]") -> None:
        """Notify every window of a folder of agents that started and ended, once, and let it follow."""
        workspace = None if folder.ledger is None else folder.ledger.workspace
        for window in [] if workspace is None else self._of_workspace(workspace):
            for each in news:
                if window.take_agent_news(each.reason, each.number):
                    params = protocol.AgentDidChange(window.uri, each.agent, each.reason)
                    window.client.notify("nexus/agent/didChange", params)
            if window is not folder and window.agents is not None:
                window.agents.follow()
            elif window is not folder:
                self._open_agents_later(window)

    # ------------------------------------------------------------ the ledger

    async def folder_ledger(
        self, snapshot: Snapshot, folder: LiveFolder | None = None, *, since: float | None = None
    ) -> FolderLedger:
        """The ledger of one folder, or the whole ledger; the first call opens it.

        `since` is the arrival of the request, by default now (`LedgerWriter.submit`). The settings at the
        first call choose the ledger; another choice takes effect when the daemon restarts.
        """
        if folder is not None and folder.ledger is not None:
            return folder.ledger
        if folder is None and self.ledger_writer.store is not None:
            return FolderLedger(self.ledger_writer, self.ledger_writer.store, "")
        ledger = await self._open_ledger(self.ledger_writer.open, snapshot, folder, since=since)
        self._use_ledger(ledger, folder)
        return ledger

    async def _open_ledger(
        self,
        open_ledger: Callable[..., L],
        snapshot: Snapshot,
        folder: LiveFolder | None,
        *,
        since: float | None = None,
    ) -> L:
        self._loop = asyncio.get_running_loop()
        get = snapshot.effective.get
        path = None if folder is None else folder.path
        job = partial(open_ledger, path, path=get("/ledger/path"), url=get("/ledger/url"))
        return await self.workers.result_of(self.ledger_writer.submit(job, since=since))

    def _use_ledger(self, ledger: FolderLedger, folder: LiveFolder | None) -> None:
        """Use the ledger for a folder from now on, in all its windows."""
        windows = [] if folder is None else [one for one in self.windows(folder) if one.ledger is None]
        for window in windows:
            window.ledger = ledger
            self.follow_choice(window)
        if self._polling is None:
            self._polling = asyncio.get_running_loop().create_task(self._poll_ledger())
            self._show_ledger_notice()
        if windows and "main" in self.ledger_writer.names(ledger.workspace):
            for window in windows:
                window.announce("session", "main")  # its cost was announced without its messages

    def follow_choice(self, folder: LiveFolder) -> None:
        """Load the folder for the model of the conversation that the user is viewing."""
        options = None if folder.ledger is None else folder.ledger.options(folder.focus)
        choice = None if options is None else options.choice
        if choice != folder.choice:
            folder.choice = choice
            folder.reload.request("model")

    async def _find_choice(self, folder: LiveFolder, snapshot: Snapshot) -> None:
        """Read which model was picked for a folder, without creating a ledger."""
        try:
            ledger = await self._open_ledger(self.ledger_writer.find, snapshot, folder)
        except RequestError as error:  # requests for a conversation report it
            logger.warning("%s", error)
        else:
            if ledger is not None and folder.ledger is None:
                self._use_ledger(ledger, folder)

    def _show_ledger_notice(self) -> None:
        """Show every user the ledger's notice, once."""
        store = self.ledger_writer.store
        notice = None if store is None else store.notice
        if notice is not None and notice != self._ledger_notice:
            self.show(_warning(notice))
        self._ledger_notice = notice

    async def _poll_ledger(self) -> None:
        """Poll the ledger for writes of other processes while there are clients."""
        logged: set[str] = set()  # so that a session that stays broken is logged once
        while True:
            await asyncio.sleep(POLL_S)
            if self.clients:
                polls = [folder.agents.catch_up for folder in self.folders if folder.agents is not None]
                failures = [await self._poll_safely(poll, logged) for poll in (self._poll_sessions, *polls)]
                logged = {failure for failure in failures if failure is not None}
                self._show_ledger_notice()  # a damaged file may have been set aside since

    async def _poll_sessions(self) -> None:
        await self.workers.result_of(self.ledger_writer.submit(self.ledger_writer.look))

    async def _poll_safely(self, poll: Callable[[], Awaitable[None]], logged: set[str]) -> str | None:
        """Poll, and log a failure unless it was logged before; it does not end other polls."""
        try:
            await poll()
        except RequestError as error:
            if str(error) not in logged:
                logger.warning("%s", error)
            return str(error)
        except Exception as error:  # a bug in one poll must not end the others
            if repr(error) not in logged:
                logger.exception("polling for writes of other processes failed; trying again")
            return repr(error)
        return None

    def _call_in_loop(self, callback: Callable[..., None], *args: Any) -> None:
        """Call something on the loop, from the writer's thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(callback, *args)

    def _of_workspace(self, workspace: str) -> Iterator[LiveFolder]:
        for folder in self.folders:
            if folder.ledger is not None and folder.ledger.workspace == workspace:
                yield folder

    def _session_changed(self, change: Change) -> None:
        """Notify every window of the folder of a change to a session, and announce what the context costs."""
        for folder in self._of_workspace(change.workspace):
            params = protocol.SessionDidChange(
                workspace_folder=folder.uri,
                session=change.session,
                reason=change.reason,
                by="self" if folder.client is change.by else "other",
                turn=change.turn,
                former=change.former,
            )
            folder.client.notify("nexus/session/didChange", params)
            is_compaction = change.reason in ("compacted", "undone")
            folder.announce("compaction" if is_compaction else "session", change.session)

    def _options_changed(self, workspace: str) -> None:
        """Count and announce a workspace's folders again after the options of a conversation changed."""
        for folder in self._of_workspace(workspace):
            self.follow_choice(folder)
            folder.announce("model")

    def _message_sent(self, workspace: str, agent: str) -> None:
        """Notify every window of the folder that a message waits for an agent."""
        for folder in self._of_workspace(workspace):
            params = protocol.AgentDidChange(folder.uri, agent, "message")
            folder.client.notify("nexus/agent/didChange", params)

    def _event_published(self, workspace: str, event: "Event") -> None:
        """Announce an event, in the thread that publishes: all that come before the loop's turn as one."""
        with self._announcing_events:
            is_pending = workspace in self._newest_events
            self._newest_events[workspace] = event.id
        if not is_pending:
            self._call_in_loop(self._announce_events, workspace)

    def _announce_events(self, workspace: str) -> None:
        with self._announcing_events:
            newest = self._newest_events.pop(workspace)
        for folder in self._of_workspace(workspace):
            folder.client.notify("nexus/event/published", protocol.EventPublished(folder.uri, newest))

    def _vocabulary_loaded(self) -> None:
        for folder in self.folders:
            folder.announce("tokens")

    # ------------------------------------------------------------ events of folders and watchers

    def _swapped(self, folder: LiveFolder, swap: Swap) -> None:
        folder.client.swapped(folder, swap)
        self.vocabularies.swapped(folder, swap)
        if swap.moves_files:
            self.watcher.refresh()
        self.watcher.start()
        if swap.old is None and folder.ledger is None and leaves_model_to_editor(swap.new.effective):
            self._close_later(self._find_choice(folder, swap.new))

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
            folder.client.notify("window/showMessage", _warning(text))

    def _watching_changed(self) -> None:
        """Warn every user once when a system limit is reached, and log when it no longer is."""
        failure, before = self.watcher.failure, self._limit
        self._limit = None if failure is None or failure.limit is None else failure
        if self._limit is not None and self._limit.limit not in self._warned:
            self._warned.add(self._limit.limit)
            self.show(_polled_warning(self._limit))
        elif self._limit is None and before is not None:
            recovered = lsp_types.ShowMessageParams(lsp_types.INFORMATION, "Files are watched again.")
            for client in self.clients:
                client.notify("window/logMessage", recovered)

    def _knowledge_moved(self, folder: LiveFolder) -> None:
        """Watch the directories of a knowledge base that changed, and publish its problems.

        If a rebuild is under way, its snapshot publishes them.
        """
        self.watcher.refresh()
        if not folder.reload.under_way and not folder.reload.cancelled:
            folder.client.swap(folder, folder.snapshot)

    def _knowledge_paths(self) -> Iterator[str]:
        for folder in self.folders:
            yield from folder.knowledge.watched()

    def _knowledge_changed(self, paths: set[str] | None) -> None:
        for folder in self.folders:
            folder.knowledge.changed(paths)

    def _assistant_folders(self) -> Iterator[WatchedFolder]:
        """The folders of clients that want to know of sessions of other assistants."""
        for client, table in self._tables.items():
            if client.wants_assistant_sessions:
                inputs = table.load_inputs
                yield from (WatchedFolder.of(folder.uri, folder.path, inputs) for folder in table)

    def _session_of_assistant_changed(self, change: SessionChange) -> None:
        for folder in self.folders:
            if folder.uri == change.folder.uri and folder.client.wants_assistant_sessions:
                folder.client.notify(
                    "nexus/assistant/didChange",
                    protocol.AssistantDidChange(folder.uri, change.assistant, change.id, change.reason),
                )

    def _files_changed(self, paths: set[str] | None) -> None:
        for table in self._tables.values():
            table.changed(paths)

    def _files_reread(self, paths: set[str]) -> None:
        for table in self._tables.values():
            table.reread(paths)

    def _watched_paths(self) -> frozenset[str]:
        folders = self.folders
        configs = (os.path.join(folder.path, CONFIG_DIRECTORY) for folder in folders)
        agents = (folder.watched_by_agents for folder in folders)
        return frozenset(configs).union(*(folder.watched for folder in folders), *agents)


def _watched_by(folder: Folder) -> Iterable[str]:
    yield os.path.join(folder.path, CONFIG_DIRECTORY)
    yield from folder.watched
    yield from folder.watched_by_agents


def _warning(text: str) -> lsp_types.ShowMessageParams:
    return lsp_types.ShowMessageParams(lsp_types.WARNING, f"Nexus: {text}")


def _polled_warning(failure: Failure) -> lsp_types.ShowMessageParams:
    return _warning(f"{failure.reason}. {POLLED} {failure.advice}")
