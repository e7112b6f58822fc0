"""Open the ledger of a daemon's folders when it is first needed, follow it, and tell windows what changes.

Changes are announced in the order in which they were written, to every window of their folder.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_context.config.picked_model import ModelChoice
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_daemon import protocol
from nexus_daemon.lsp.lsp_types import warning
from nexus_daemon.sessions.ledger_writer import FolderLedger, LedgerWriter
from nexus_daemon.sessions.session_changes import Change
from nexus_daemon.windows.live_folder import LiveFolder
from nexus_daemon.windows.open_windows import Windows
from nexus_daemon.workspace.workers import Workers

if TYPE_CHECKING:
    from nexus_context.memory.events import Event

logger = logging.getLogger(__name__)

POLL_S = 1.0  # between two polls of the ledger for writes of other processes
BACKUP_AFTER_S = 300.0  # from the first use of the ledger to the first look whether a backup is due
BACKUP_EVERY_S = 3_600.0

L = TypeVar("L", FolderLedger, FolderLedger | None)


class FolderLedgers:
    """The one ledger behind all folders of a daemon. Use it on the event loop; `writer` has a thread.

    `notice` is the text about the ledger that users were shown, or None.
    """

    def __init__(
        self, load_inputs: LoadInputs, windows: Windows, workers: Workers, *, creates: bool = True
    ) -> None:
        self.notice: str | None = None
        self.writer = LedgerWriter(
            load_inputs.environ,
            partial(self._call_in_loop, self._session_changed),
            on_message=partial(self._call_in_loop, self._message_sent),
            on_options=partial(self._call_in_loop, self._options_changed),
            on_event=self._event_published,
            creates=creates,
        )
        self._windows = windows
        self._workers = workers
        self._newest_events: dict[str, str] = {}  # ids to announce, by workspace
        self._announcing_events = threading.Lock()
        self._polling: asyncio.Task[None] | None = None
        self._next_backup = 0.0  # by the monotonic clock
        self._backup: asyncio.Task[str | None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def stop(self) -> None:
        """Stop the tasks that look for changes and make backups."""
        for task in (self._polling, self._backup):
            if task is not None:
                task.cancel()

    async def of(
        self, snapshot: Snapshot, folder: LiveFolder | None = None, *, since: float | None = None
    ) -> FolderLedger:
        """Return the ledger of one folder, or without a folder the whole ledger. The first call opens it.

        `since` is the arrival of the request, by default now (`LedgerWriter.submit`). The settings at the
        first call choose the ledger; another choice takes effect when the daemon restarts.
        """
        if folder is not None and folder.ledger is not None:
            return folder.ledger
        if folder is None and self.writer.store is not None:
            return FolderLedger(self.writer, self.writer.store, "")
        ledger = await self._open_ledger(self.writer.open, snapshot, folder, since=since)
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
        return await self._workers.result_of(self.writer.submit(job, since=since))

    def _use_ledger(self, ledger: FolderLedger, folder: LiveFolder | None) -> None:
        """Use the ledger for a folder from now on, in all its windows."""
        windows = (
            [] if folder is None else [window for window in self._windows.of(folder) if window.ledger is None]
        )
        for window in windows:
            window.ledger = ledger
            self.follow_choice(window)
        if self._polling is None:
            self._next_backup = time.monotonic() + BACKUP_AFTER_S
            self._polling = asyncio.get_running_loop().create_task(self._poll_ledger())
            self._show_notice()
        if windows and "main" in self.writer.names(ledger.workspace):
            for window in windows:
                window.announce("session", "main")  # its cost was announced without its messages

    async def apart(self, folder: LiveFolder, snapshot: Snapshot) -> tuple[FolderLedger, ModelChoice | None]:
        """Return a ledger in memory, which is never stored, and the model last picked in the folder."""
        await self.find_choice(folder, snapshot)
        ledger = folder.ledger
        last_options = None if ledger is None else ledger.session_options(None)
        return self.writer.apart(folder.path), None if last_options is None else last_options.choice

    def follow_choice(self, folder: LiveFolder) -> None:
        """Load the folder for the model of the conversation that the user is viewing."""
        options = None if folder.ledger is None else folder.ledger.options(folder.focus)
        choice = None if options is None else options.choice
        if choice != folder.choice:
            folder.choice = choice
            folder.reload.request("model")

    async def find_choice(self, folder: LiveFolder, snapshot: Snapshot) -> None:
        """Read which model was picked for a folder, without creating a ledger."""
        if snapshot.effective.get("/ledger/url") is not None:
            return  # requests for a conversation report it
        try:
            ledger = await self._open_ledger(self.writer.find, snapshot, folder)
        except RequestError as error:  # requests for a conversation report it
            logger.info("%s", error)
        else:
            if ledger is not None and folder.ledger is None:
                self._use_ledger(ledger, folder)

    def _show_notice(self) -> None:
        """Show every user the ledger's notice, once."""
        store = self.writer.store
        notice = None if store is None else store.notice
        if notice is not None and notice != self.notice:
            self._windows.show(warning(notice))
        self.notice = notice

    async def _poll_ledger(self) -> None:
        """Poll the ledger for writes of other processes while there are clients."""
        logged: set[str] = set()  # so that a session that stays broken is logged once
        while True:
            await asyncio.sleep(POLL_S)
            if self._windows.clients:
                polls = [
                    folder.agents.catch_up for folder in self._windows.folders if folder.agents is not None
                ]
                if time.monotonic() >= self._next_backup and (self._backup is None or self._backup.done()):
                    self._next_backup = time.monotonic() + BACKUP_EVERY_S
                    self._backup = asyncio.create_task(self._poll_safely(self._back_up, logged))
                failures = [await self._poll_safely(poll, logged) for poll in (self._poll_sessions, *polls)]
                logged = {failure for failure in failures if failure is not None}
                self._show_notice()  # a damaged file may have been set aside since

    async def _poll_sessions(self) -> None:
        await self._workers.result_of(self.writer.submit(self.writer.look))

    async def _back_up(self) -> None:
        """Make today's backup if it is due, in a thread that only reads the ledger."""
        if self.writer.store is not None:
            await self._workers.read(self.writer.store.upkeep.back_up_daily)

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

    def _session_changed(self, change: Change) -> None:
        """Notify every window of the folder of a change to a session, and announce what the context costs."""
        for folder in self._windows.in_workspace(change.workspace):
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
        for folder in self._windows.in_workspace(workspace):
            self.follow_choice(folder)
            folder.announce("model")

    def _message_sent(self, workspace: str, agent: str) -> None:
        """Notify every window of the folder that a message waits for an agent."""
        for folder in self._windows.in_workspace(workspace):
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
        for folder in self._windows.in_workspace(workspace):
            folder.client.notify("nexus/event/published", protocol.EventPublished(folder.uri, newest))
