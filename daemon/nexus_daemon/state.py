"""What all connections of one daemon share: folders, clients, the watcher, worker threads."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from nexus_context.config.picked_model import leaves_model_to_editor
from nexus_context.deadline import Turns
from nexus_context.errors import RequestError
from nexus_context.layers.walk import CONFIG_DIRECTORY
from nexus_context.snapshot import LoadInputs, Snapshot
from nexus_context.tokens import loaded_encodings
from nexus_daemon import protocol
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions.ledger_writer import Change, FolderLedger, LedgerWriter
from nexus_daemon.workspace.folders import Folder, FolderTable
from nexus_daemon.workspace.freshness import Freshness, least_certain
from nexus_daemon.workspace.git_state import WorkingTrees
from nexus_daemon.workspace.vocabulary_loader import Vocabularies
from nexus_daemon.workspace.watch_limits import Failure
from nexus_daemon.workspace.watcher import Watcher

if TYPE_CHECKING:
    from nexus_daemon.sessions.conversations import Conversation

logger = logging.getLogger(__name__)

WORKERS = 16  # that answer requests
MOST_LOADS = 64
"""Threads that read folders, their agents and knowledge bases: each of a folder's has one at most, so that
one that takes long keeps none from other folders, and none from requests."""
QUIET_S = 0.015  # of no news before a context's cost is told: several edits at once are told once
PATIENCE_S = 0.5  # after which it is told all the same
LOOK_S = 1.0  # between two looks at what other processes wrote into the ledger
CLOSE_S = 1.0  # that the end waits for what is being written
REASONS = (
    "folder",
    "layers",
    "config",
    "model",
    "mcp",
    "instructions",
    "disk",
    "compaction",
    "session",
    "tokens",
)
"""What can move a context; of several at once the first is told."""
POLLED = "Until there is room, files are polled, and their changes are noticed a second or more later."

T = TypeVar("T")
B = TypeVar("B", FolderLedger, FolderLedger | None)


class Client(Protocol):
    """What the daemon needs of a connection."""

    @property
    def position_encoding(self) -> str: ...

    def swap(self, folder: Folder, snapshot: Snapshot | None) -> None: ...

    def swap_agent(
        self, folder: Folder, agent: str, snapshot: Snapshot | None, overlays: Mapping[str, str]
    ) -> None: ...

    def adopt(self) -> None: ...

    def notify(self, method: str, params: Any) -> None: ...


class _News(msgspec.Struct):
    """What is to be told about a folder: why, since when (monotonic seconds), and what will tell it."""

    reason: str
    sessions: frozenset[str]  # those that moved
    since: float
    timer: asyncio.TimerHandle


class Daemon:
    """The state behind every connection. Lives on the event loop; slow work goes to its threads."""

    def __init__(self, load_inputs: LoadInputs) -> None:
        self.executor = ThreadPoolExecutor(WORKERS, thread_name_prefix="nexus")
        self.loads = ThreadPoolExecutor(MOST_LOADS, thread_name_prefix="nexus-load")
        self.turns = Turns()
        self.folders = FolderTable(
            load_inputs, self.loads, self.turns, self._swapped, self._knowledge_moved, self._overdue
        )
        self.watcher = Watcher(
            self._watched_paths,
            self.folders.changed,
            self.executor,
            reread=self.folders.reread,
            report=self._watching_changed,
        )
        self.knowledge_watcher = Watcher(
            self._knowledge_paths,
            self._knowledge_changed,
            self.executor,
            reread=self._knowledge_changed,
            report=self._watching_changed,
        )
        self.git = WorkingTrees(self.executor, load_inputs.environ)
        self.clients: set[Client] = set()
        self.ledger_writer = LedgerWriter(
            load_inputs.environ,
            partial(self._in_loop, self._session_changed),
            partial(self._in_loop, self._messaged),
            partial(self._in_loop, self._options_changed),
        )
        self.started = time.monotonic()
        self._news: dict[Folder, _News] = {}
        self._telling: dict[Folder, asyncio.Task[None]] = {}
        self._jobs: set[asyncio.Future[Any]] = set()
        self.vocabularies = Vocabularies(self.work)
        self._closing: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._noticed: str | None = None  # of the ledger, as it was told
        self._reached: Failure | None = None  # the limit of the system because of which files are polled
        self._warned: set[str | None] = set()  # names of the limits that users were told of
        self._loop: asyncio.AbstractEventLoop | None = None

    async def work(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run `job` in a worker thread; when cancelled, end when the thread has ended.

        So a lock that is held around it is not free while the thread is still at work.
        """
        with self.counting():
            return await self._result(self.executor.submit(partial(job, *args, **kwargs)))

    async def load(self, job: Callable[[], T]) -> T:
        """As `work`, for a job that reads folders, of which one at a time runs for a folder."""
        with self.counting():
            return await self._result(self.loads.submit(job))

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Where what is done meanwhile was the first to count, estimates become exact: tell so."""
        known = loaded_encodings()
        try:
            yield
        finally:
            if loaded_encodings() != known:
                for folder in self.folders:
                    self.announce(folder, "tokens")

    async def _result(self, pending: Future[T]) -> T:
        """What comes of a job of a thread; when cancelled, end when the thread has ended."""
        future = asyncio.wrap_future(pending)
        self._jobs.add(future)
        future.add_done_callback(self._jobs.discard)
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                cancelled = error
                pending.cancel()  # what waits for a free thread need not begin
        if cancelled is not None:
            if not future.cancelled():
                future.exception()  # looked at, else asyncio complains
            raise cancelled
        return future.result()

    async def folder_ledger(
        self, snapshot: Snapshot, folder: Folder | None = None, *, since: float | None = None
    ) -> FolderLedger:
        """The sessions of a folder, or the ledger as a whole; the first who asks has it opened.

        `since`: when the request came, if that is not now (`LedgerWriter.submit`). The settings in force then
        say which ledger; another takes effect when the daemon starts anew.
        """
        if folder is not None and folder.ledger is not None:
            return folder.ledger
        if folder is None and self.ledger_writer.store is not None:
            return FolderLedger(self.ledger_writer, self.ledger_writer.store, "")
        ledger = await self._opened(self.ledger_writer.open, snapshot, folder, since)
        return self._taken(ledger, folder)

    async def _opened(
        self,
        open_ledger: Callable[..., B],
        snapshot: Snapshot,
        folder: Folder | None,
        since: float | None = None,
    ) -> B:
        self._loop = asyncio.get_running_loop()
        get = snapshot.effective.get
        path = None if folder is None else folder.path
        job = partial(open_ledger, path, path=get("/ledger/path"), url=get("/ledger/url"))
        return await self._result(self.ledger_writer.submit(job, since=since))

    def _taken(self, ledger: FolderLedger, folder: Folder | None) -> FolderLedger:
        """The ledger, as that of its folder from now on."""
        if folder is not None:
            folder.ledger = ledger
            self.follow_choice(folder)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())
            self._tell_notice()
        if folder is not None and "main" in self.ledger_writer.names(ledger.workspace):
            self.announce(folder, "session", "main")  # what it costs was told without its messages
        return ledger

    def follow_choice(self, folder: Folder) -> None:
        """Count the folder for the model of the conversation that the user looks at, where that is another
        one.
        """
        options = None if folder.ledger is None else folder.ledger.options(folder.focus)
        choice = None if options is None else options.choice
        if choice != folder.choice:
            folder.choice = choice
            folder.reload.request("model")

    def announce(self, folder: Folder, reason: str, session: str | None = None) -> None:
        """Tell every client what the folder's context costs now, once it is quiet.

        Several reasons in a row are told once, as the first of them by `REASONS`. `session` is the one that
        moved.
        """
        if folder.snapshot is None or folder.reload.cancelled:
            return
        now = time.monotonic()
        news = self._news.get(folder)
        since = now
        sessions = frozenset(() if session is None else (session,))
        if news is not None:
            news.timer.cancel()
            sessions |= news.sessions
            reason, since = min(reason, news.reason, key=REASONS.index), news.since
        wait = max(min(QUIET_S, since + PATIENCE_S - now), 0.0)
        timer = asyncio.get_running_loop().call_later(wait, self._begin_to_tell, folder)
        self._news[folder] = _News(reason, sessions, since, timer)

    def show(self, message: lsp_types.ShowMessageParams) -> None:
        """Show every user a message."""
        for client in self.clients:
            client.notify("window/showMessage", message)

    def join(self, client: Client) -> None:
        """A client has come."""
        self.clients.add(client)
        if self._noticed is not None:
            client.notify("window/showMessage", _notice(self._noticed))
        if self._reached is not None:
            client.notify("window/showMessage", _polled_notice(self._reached))

    def freshness(self, folder: Folder) -> Freshness:
        """How changes of the files that a folder depends on are noticed now."""
        known = self.knowledge_watcher.freshness(folder.knowledge.watched())
        return least_certain((self.watcher.freshness(_watched_by(folder)), known))

    def add_folder(self, uri: str, *, name: str, listed: bool, owner: Client) -> None:
        """Take a client's folder in; its first snapshot is read at once, and one that there is is shown."""
        folder = self.folders.add(uri, name=name, listed=listed, owner=owner)
        if folder is not None and folder.snapshot is not None:
            owner.swap(folder, folder.snapshot)
            if folder.agents is not None:
                folder.agents.show_to(owner)

    def remove_folder(self, uri: str, *, owner: Client) -> None:
        folder = self.folders.remove(uri, owner=owner)
        if folder is not None:
            for client in self.clients:
                client.swap(folder, None)
            if folder.agents is not None:
                folder.agents.hide()
            self.watcher.refresh()
            closing = asyncio.get_running_loop().create_task(folder.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self.knowledge_watcher.refresh()

    def leave(self, client: Client) -> None:
        """A client has gone, and takes its folders and unsaved texts along."""
        self.clients.discard(client)
        for folder in [folder for folder in self.folders if client in folder.owners]:
            self.remove_folder(folder.uri, owner=client)
        self.folders.drop_overlays(client)

    async def close(self) -> None:
        """End the watcher and the threads; a thread that hangs on a file system is not waited for."""
        self.git.close()
        for folder in self.folders:
            folder.reload.cancel()
        for news in self._news.values():
            news.timer.cancel()
        self._news.clear()
        looking = () if self._looking is None else (self._looking,)
        self.vocabularies.end()
        for task in (*self._telling.values(), *self._jobs, *looking):
            task.cancel()
        await self.watcher.close()
        await self.knowledge_watcher.close()
        loop = asyncio.get_running_loop()
        self._closing |= {loop.create_task(folder.close()) for folder in self.folders}
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_S)
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.loads.shutdown(wait=False, cancel_futures=True)
        ended = self.ledger_writer.close()
        if ended is not None:
            await asyncio.wait([asyncio.wrap_future(ended)], timeout=CLOSE_S)

    def _swapped(self, folder: Folder, old: Snapshot | None, new: Snapshot, reasons: frozenset[str]) -> None:
        folder.knowledge.configure(new.layers)
        for client in self.clients:
            client.swap(folder, folder.snapshot)
        if old is None or old.layers.watch != new.layers.watch:
            for client in self.clients:
                client.adopt()
            self.watcher.refresh()
        if old is None or old.revision != new.revision:
            self.announce(folder, min(reasons, key=REASONS.index))
        self.vocabularies.wanted(folder, new.contents.waits_for)
        if folder.agents is not None:
            folder.agents.noticed(folder.changed)
        self.watcher.start()
        if old is None and leaves_model_to_editor(new.effective):
            self._look_for_choice(folder, new)

    def _look_for_choice(self, folder: Folder, snapshot: Snapshot) -> None:
        """Read which model was picked for a folder, once its first diagnostics are out. No ledger is
        begun.
        """

        async def look() -> None:
            try:
                ledger = await self._opened(self.ledger_writer.find, snapshot, folder)
            except RequestError as error:  # whoever asks for a conversation is told
                logger.warning("%s", error)
            else:
                if ledger is not None and folder.ledger is None:
                    self._taken(ledger, folder)

        if folder.ledger is None:
            opening = asyncio.get_running_loop().create_task(look())
            self._closing.add(opening)
            opening.add_done_callback(self._closing.discard)

    def _overdue(self, folder: Folder) -> None:
        """Say that a folder could not be loaded in time; what is shown of it otherwise stays."""
        stopped, snapshot = folder.reload.stopped, folder.snapshot
        if stopped is None:
            return
        logger.warning("%s was not loaded within %g s: %s", folder.path, stopped.seconds, stopped.path)
        for client in self.clients:
            if snapshot is not None:
                client.swap(folder, snapshot)
        self.announce(folder, "disk")
        if snapshot is None:
            text = (
                f"the folder {folder.path} could not be loaded within {stopped.seconds:g} s: nothing is "
                f"known of it. It came as far as {stopped.path}. Make its files fewer or smaller."
            )
            self.show(_notice(text))

    def _begin_to_tell(self, folder: Folder) -> None:
        if folder not in self._telling:
            task = asyncio.get_running_loop().create_task(self._tell(folder))
            self._telling[folder] = task
            task.add_done_callback(lambda _: self._told(folder))

    def _told(self, folder: Folder) -> None:
        del self._telling[folder]
        if folder in self._news:  # more came meanwhile
            self.announce(folder, self._news[folder].reason)

    async def _tell(self, folder: Folder) -> None:
        news = self._news.pop(folder, None)
        if news is None:
            return
        news.timer.cancel()  # set between the timer that brought us here and now; all is told at once
        snapshot = folder.snapshot
        if snapshot is None or folder.reload.cancelled:
            return
        moved = news.sessions if news.reason in ("session", "compaction") else ()
        session = next(iter(moved)) if len(moved) == 1 else None
        for client in tuple(self.clients):
            locate = Locator(snapshot.layers, client.position_encoding)
            async with folder.conversations.using("main") as conversation:
                usage = await self.work(_usage_now, snapshot, conversation, folder.ledger, locate)
            if client in self.clients and not folder.reload.cancelled:
                params = protocol.ContextDidChange(folder.uri, snapshot.revision, news.reason, usage, session)
                client.notify("nexus/context/didChange", params)

    def _tell_notice(self) -> None:
        """Show every user once what there is to know of the ledger."""
        ledger = self.ledger_writer.store
        notice = None if ledger is None else ledger.notice
        if notice is not None and notice != self._noticed:
            self.show(_notice(notice))
        self._noticed = notice

    async def _look(self) -> None:
        """Look now and then at what other processes wrote, while somebody listens."""
        said: set[str] = set()  # a session that stays broken is told of once
        while True:
            await asyncio.sleep(LOOK_S)
            if self.clients:
                agents = [folder.agents.follow for folder in self.folders if folder.agents is not None]
                failures = [await self._looked(look, said) for look in (self._look_at_sessions, *agents)]
                said = {failure for failure in failures if failure is not None}
                self._tell_notice()  # a damaged file may have been set aside since

    async def _look_at_sessions(self) -> None:
        await self._result(self.ledger_writer.submit(self.ledger_writer.look))

    async def _looked(self, look: Callable[[], Awaitable[None]], said: set[str]) -> str | None:
        """Look, and log what fails unless it was said before; it ends no other look."""
        try:
            await look()
        except RequestError as error:
            if str(error) not in said:
                logger.warning("%s", error)
            return str(error)
        except Exception as error:  # a bug in one look must not end the others
            if repr(error) not in said:
                logger.exception("looking at what other processes wrote failed; it is tried again")
            return repr(error)
        return None

    def _in_loop(self, tell: Callable[..., None], *about: Any) -> None:
        """Call something on the loop, from the writer's thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(tell, *about)

    def _session_changed(self, change: Change) -> None:
        """Tell every client of the folder what became of a session, and what the context costs now."""
        for folder in self.folders:
            if folder.ledger is None or folder.ledger.workspace != change.workspace:
                continue
            for client in self.clients & folder.owners.keys():
                params = protocol.SessionDidChange(
                    workspace_folder=folder.uri,
                    session=change.session,
                    reason=change.reason,
                    by="self" if client is change.by else "other",
                    turn=change.turn,
                    former=change.former,
                )
                client.notify("nexus/session/didChange", params)
            compacted = change.reason in ("compacted", "undone")
            self.announce(folder, "compaction" if compacted else "session", change.session)

    def _options_changed(self, workspace: str) -> None:
        """Conversations of a workspace are used with other options: count and tell its folders anew."""
        for folder in self.folders:
            if folder.ledger is not None and folder.ledger.workspace == workspace:
                self.follow_choice(folder)
                self.announce(folder, "model")

    def _messaged(self, workspace: str, agent: str) -> None:
        """Tell every client of the folder that a message waits for an agent."""
        for folder in self.folders:
            if folder.ledger is not None and folder.ledger.workspace == workspace:
                params = protocol.AgentDidChange(folder.uri, agent, "message")
                for client in self.clients & folder.owners.keys():
                    client.notify("nexus/agent/didChange", params)

    def _watching_changed(self) -> None:
        """Warn every user once of a limit of the system that is reached, and log when that is over."""
        failures = (self.watcher.failure, self.knowledge_watcher.failure)
        before = self._reached
        self._reached = next((one for one in failures if one is not None and one.limit is not None), None)
        if self._reached is not None and self._reached.limit not in self._warned:
            self._warned.add(self._reached.limit)
            self.show(_polled_notice(self._reached))
        elif self._reached is None and before is not None:
            recovered = lsp_types.ShowMessageParams(type=3, message="Files are watched again.")
            for client in self.clients:
                client.notify("window/logMessage", recovered)

    def _knowledge_moved(self, folder: Folder) -> None:
        """A knowledge base has other directories or problems: watch those, and tell these.

        While another snapshot is on its way, that will tell them.
        """
        if any(folder.knowledge.watched()):
            self.knowledge_watcher.start()
        self.knowledge_watcher.refresh()
        if not folder.reload.under_way and not folder.reload.cancelled:
            for client in self.clients:
                client.swap(folder, folder.snapshot)

    def _knowledge_paths(self) -> Iterator[str]:
        for folder in self.folders:
            yield from folder.knowledge.watched()

    def _knowledge_changed(self, paths: set[str] | None) -> None:
        for folder in self.folders:
            folder.knowledge.changed(paths)

    def _watched_paths(self) -> Iterator[str]:
        for folder in self.folders:
            yield from _watched_by(folder)


def _watched_by(folder: Folder) -> Iterator[str]:
    yield os.path.join(folder.path, CONFIG_DIRECTORY)
    yield from folder.watched
    yield from folder.watched_by_agents


def _notice(text: str) -> lsp_types.ShowMessageParams:
    return lsp_types.ShowMessageParams(type=2, message=f"Nexus: {text}")


def _polled_notice(failure: Failure) -> lsp_types.ShowMessageParams:
    return _notice(f"{failure.reason}. {POLLED} {failure.advice}")


def _usage_now(
    snapshot: Snapshot, conversation: "Conversation", ledger: FolderLedger | None, locate: Locator
) -> protocol.TokenUsage:
    from nexus_daemon.sessions import usage  # the first diagnostics need not wait for it

    return usage.current_usage(snapshot, conversation, ledger, locate)
