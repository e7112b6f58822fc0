"""Keep the ledger of all sessions: opened when it is first needed, written by one thread.

1. The ledger is not imported or opened before the first request for a session.
2. One thread does all writing, in order. Readers never wait. While another program keeps the ledger locked,
   all waiting writes fail at once, not one after the other.
3. Changes are reported in the order in which they were written, even if their request was cancelled. The
   ledger is checked for writes of other processes while a client listens, and those are reported as theirs.
4. The options of conversations, above all the picked model, are read without the disk (`OptionsCache`). They
   are read from the ledger when it is opened, after a write of this process, and when another process has
   written. A pick of the user applies in this process at once. A failed write is tried again at each check of
   the ledger; until it succeeds, the pick applies in this process alone.
5. Written turns, compactions and messages are published on the event bus, in memory. Those of other processes
   are published when they are noticed (`ledger_events`).
6. After each turn the thread checks whether messages wait for `main`. So the next turn need not check, unless
   another process has written since.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nexus_context import ledger as ledgers
from nexus_context.errors import RequestError
from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.location import is_there, workspace_of
from nexus_daemon.process import lazy, tracing
from nexus_daemon.sessions import ledger_events
from nexus_daemon.sessions.correction_cache import CorrectionCache
from nexus_daemon.sessions.ledger_events import Reason
from nexus_daemon.sessions.options_cache import OptionsCache
from nexus_daemon.sessions.session_changes import Change, differences, exactly

if TYPE_CHECKING:  # the first diagnostics need not wait for it
    from nexus_context.ledger.records import (
        Appended,
        DirectMessage,
        Head,
        MirroredFile,
        MirrorTurns,
        NewAgent,
        NewCompaction,
        NewTurn,
        Session,
        SessionOptions,
    )
    from nexus_context.ledger.store import Ledger
    from nexus_context.memory.bus import EventBus
    from nexus_context.memory.events import Event
    from nexus_context.memory.levels import Levels
    from nexus_context.tokens.correction import Correction

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOCKED_S = 1.0  # for which a locked ledger counts as locked for the writes that waited meanwhile


class LedgerWriter:
    """The ledger of one daemon.

    The callbacks run in the writer's thread. `on_change` is called for each change of a session, `on_message`
    with the workspace and the agent of a direct message. `on_options` is called with a workspace if the
    options of one of its conversations changed, or the beginning of its next request. `on_event` gets the
    workspace and each event of the bus, in the publisher's thread. Unless `creates` is true, a ledger that
    does not exist is kept in memory.

    `heads` are the sessions as last reported, by workspace and name. Only the writer's thread changes them,
    so that what this process writes is never taken for a write of another process.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        on_change: Callable[[Change], None],
        on_message: Callable[[str, str], None] = lambda *_: None,
        on_options: Callable[[str], None] = lambda _: None,
        on_event: "Callable[[str, Event], None]" = lambda *_: None,
        *,
        creates: bool = True,
    ) -> None:
        self.store: Ledger | None = None
        self.options = OptionsCache(on_options)
        self.on_options = on_options
        self.on_message = on_message
        self._levels: Levels | None = None
        self._bus: EventBus | None = None
        self._environ = environ
        self._creates = creates
        self._on_change = on_change
        self._on_event = on_event
        # number of the newest direct message that was published or there before; None: not read yet
        self._messages: int | None = None
        self._sent: set[str] = set()  # ids of direct messages of this process behind that one
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nexus-ledger")
        self.heads: dict[str, dict[str, Head]] = {}
        self._version: int | None = None
        self._idle: dict[tuple[str, str], int] = {}
        self.corrections = CorrectionCache()
        self._creating = threading.Lock()
        self._locked: tuple[float, RequestError] | None = None  # when the ledger was last found locked

    def submit(self, job: Callable[[], T], *, since: float | None = None) -> "Future[T]":
        """Run a job in the writer's thread.

        It fails at once if the ledger was locked since the job was requested.

        `since` is the time of the request by the monotonic clock; None means now.
        """
        submitted = time.monotonic() if since is None else since

        def run() -> T:
            if self._locked is not None and self._locked[0] >= max(submitted, time.monotonic() - LOCKED_S):
                error = self._locked[1]
                raise type(error)(str(error), code=error.code)
            try:
                return job()
            except RequestError as error:
                if error.code == "ledger-busy":
                    self._locked = time.monotonic(), error.with_traceback(None)
                raise

        return self._submit(tracing.carry(run, "ledger", about=job))

    def _submit(self, job: Callable[[], T]) -> "Future[T]":
        try:
            return self._thread.submit(job)
        except RuntimeError:
            raise _ended() from None

    def write(self, job: Callable[[], T], *, since: float | None = None) -> T:
        """Run a job in the writer's thread and wait for it. Call it in another thread that may block."""
        try:
            return self.submit(job, since=since).result()
        except CancelledError:
            raise _ended() from None

    def open(self, folder: str | None, *, path: str | None, url: str | None) -> "FolderLedger":
        """Return the ledger of a folder, and open it if needed. Call it in the writer's thread only."""
        refuse_url(url)
        if self.store is None:
            opening = lazy.opening
            is_stored = self._creates or is_there(path, self._environ)
            self.store = (
                ledgers.open_ledger(path, environ=self._environ) if is_stored else opening.in_memory()
            )
            with suppress(LedgerError):  # the conversations may be sound
                self._messages = self.store.messages.newest()
        workspace = "" if folder is None else workspace_of(folder)
        if folder is not None and workspace not in self.heads:
            self.heads[workspace] = {session.name: session.head for session in self.store.sessions(workspace)}
            self.options.read(self.store, workspace)
        return FolderLedger(self, self.store, workspace)

    def find(self, folder: str | None, *, path: str | None, url: str | None) -> "FolderLedger | None":
        """Return the ledger of a folder as `open` does, but None if the ledger's file does not exist yet."""
        if self.store is None and url is None and not is_there(path, self._environ):
            return None
        return self.open(folder, path=path, url=url)

    def apart(self, folder: str) -> "FolderLedger":
        """Return an empty ledger in memory, for a conversation of the folder that is not stored."""
        writer = LedgerWriter(self._environ, lambda _: None, creates=False)
        return FolderLedger(writer, lazy.opening.in_memory(), workspace_of(folder))

    def levels(self, ledger: "Ledger") -> "Levels":
        """Return the memory of the ledger's sessions, which all requests share.

        Call it in a thread that may block.
        """
        with self._creating:
            if self._levels is None:
                self._levels = lazy.levels.Levels(ledger)
            return self._levels

    @property
    def bus(self) -> "EventBus":
        """Return the event bus of all workspaces.

        Call it in a thread that may block, since the first use imports it.
        """
        with self._creating:
            if self._bus is None:
                self._bus = lazy.bus.EventBus()
                self._bus.listen(self._on_event)
            return self._bus

    def names(self, workspace: str) -> list[str]:
        """Return the names of a workspace's sessions as last reported, without reading the disk."""
        return sorted(self.heads.get(workspace, ()))

    def waits(self, ledger: "Ledger", workspace: str, agent: str) -> bool:
        """Whether a direct message waits for an agent.

        Reads the ledger only if it was written since the last call.
        """
        version = ledger.version()  # writes from here on have another
        if self._idle.get((workspace, agent)) == version and ledger.persists:
            return False
        if ledger.messages.inbox(workspace, agent, now=time.time(), limit=1):
            return True
        self._idle[workspace, agent] = version
        return False

    def look(self) -> None:
        """Report what other processes wrote since the last call. Call it in the writer's thread only.

        What cannot be read now is reported by the next call.
        """
        ledger = self.store
        if ledger is None:
            return
        self.options.save_again(ledger)
        newest = ledger.messages.newest() if self._sent else self._messages
        if (version := ledger.version()) == self._version:
            self._messages = newest  # all of them are of this process
            self._sent.clear()
            return
        failure: LedgerError | None = None
        for workspace, heads in list(self.heads.items()):
            self.options.read(ledger, workspace)
            sessions = {session.name: session for session in ledger.sessions(workspace)}
            for change in differences(workspace, heads, sessions):
                try:
                    self._report(ledger, change, heads.get(change.former or change.session))
                except LedgerError as error:  # a damaged session holds up no other
                    failure = error
                    if change.reason == "created":  # its beginning is reported, but not how it went on
                        head = sessions[change.session].head
                        heads[change.session] = msgspec.structs.replace(head, turn=None, seq=0, messages=0)
                    continue
                heads.pop(change.former or change.session, None)
                if change.session in sessions:
                    heads[change.session] = sessions[change.session].head
        self._report_messages(ledger)
        if failure is not None:
            raise failure
        self._version = version

    def wrote(self, change: Change, head: "Head | None", *, before: "Head | None" = None) -> None:
        """Record and report a change that this process wrote.

        `head` is the session's head after the write, `before` the head that it was written after.
        """
        heads = self.heads.setdefault(change.workspace, {})
        last_head = heads.get(change.session)
        if change.former is not None:
            heads.pop(change.former, None)
        if before is not None and before.seq and last_head != before:
            reason: Reason = "created" if last_head is None else "appended"
            foreign_change = Change(change.workspace, change.session, reason, before.turn)
            if self.store is not None:
                self._report(self.store, foreign_change, last_head, at=before)
        if head is None:
            heads.pop(change.session, None)
        else:
            heads[change.session] = head
        self._on_change(change)

    def close(self) -> "Future[None] | None":
        """Close the ledger once the pending jobs are done; no job begins after.

        None if the ledger is not open.
        """
        ledger, self.store = self.store, None
        ended = None if ledger is None else self._submit(ledger.close)
        self._thread.shutdown(wait=False)
        return ended

    def _report(
        self, ledger: "Ledger", change: Change, last_head: "Head | None", *, at: "Head | None" = None
    ) -> None:
        """Report and publish what another process wrote behind `last_head`, up to `at` or to the end.

        A new session is reported as created first, then as appended to.
        """
        if change.reason == "created":
            self._on_change(msgspec.structs.replace(change, turn=None))
            if change.turn is None:
                return
            change = msgspec.structs.replace(change, reason="appended")
        if change.reason != "appended":
            self._on_change(change)
            return
        self._on_change(exactly(ledger, change))
        self._publish_stored(ledger, change, last_head, at)

    def _publish_stored(
        self, ledger: "Ledger", change: Change, after: "Head | None", until: "Head | None"
    ) -> None:
        """Publish the turns behind the head `after`, up to `until` or to the end; never fails."""
        try:
            events = ledger_events.stored_events(
                ledger, change.workspace, change.session, after=after, until=until
            )
            self.bus.publish(change.workspace, events)
        except Exception:  # the change itself is reported
            logger.exception("an event was not published")

    def sent(self, message: "DirectMessage") -> None:
        """Record a direct message of this process, so that it is not reported as another process's."""
        self._sent.add(message.id)
        self.on_message(message.workspace, message.target)

    def _report_messages(self, ledger: "Ledger") -> None:
        """Report and publish the direct messages that other processes sent to open workspaces."""
        previous_newest, newest = self._messages, ledger.messages.newest()
        self._messages = newest
        if previous_newest is None:
            return
        messages = ledger.messages.since(previous_newest, limit=ledger_events.MOST_MESSAGES)
        for message in messages:
            if message.id not in self._sent and message.workspace in self.heads:
                self.on_message(message.workspace, message.target)
                event = msgspec.structs.replace(ledger_events.message_event(message), agent=MAIN)
                self.bus.publish(message.workspace, [event])
        self._sent.clear()


class FolderLedger:
    """The sessions of one folder in the ledger. Everything here may block, so call it in worker threads.

    `by` is the client that requests the writes, `since` the time of its request (`LedgerWriter.submit`).
    `agents` are the agent that the writes are for and the agents above it. Every failure is a LedgerError,
    and nothing is written in part.
    """

    def __init__(
        self,
        writer: LedgerWriter,
        store: "Ledger",
        workspace: str,
        *,
        by: object = None,
        since: float | None = None,
        agents: tuple[str, ...] = (MAIN,),
    ) -> None:
        self.agents = agents
        self.store = store
        self.workspace = workspace
        self._writer = writer
        self._by = by
        self._since = since

    def for_client(self, client: object, *, since: float | None = None) -> "FolderLedger":
        """Return the same ledger, for the writes of one request of a client."""
        return FolderLedger(self._writer, self.store, self.workspace, by=client, since=since)

    def for_agents(self, agents: tuple[str, ...]) -> "FolderLedger":
        """Return the same ledger, for writes in the name of an agent: the first of `agents`.

        The other names are the agents above it.
        """
        return FolderLedger(
            self._writer, self.store, self.workspace, by=self._by, since=self._since, agents=agents
        )

    @property
    def bus(self) -> "EventBus":
        """The event bus of all workspaces."""
        return self._writer.bus

    def publish(self, events: "Iterable[Event]") -> "list[Event]":
        """Publish events in the name of the agent that this ledger is for (`agents`)."""
        agent, *ancestors = self.agents
        agent_events = [
            msgspec.structs.replace(event, agent=agent, above=tuple(ancestors)) for event in events
        ]
        return self.bus.publish(self.workspace, agent_events)

    @property
    def levels(self) -> "Levels":
        """The memory of all sessions."""
        return self._writer.levels(self.store)

    def options(self, session: str | None) -> "SessionOptions | None":
        """Return the options of a conversation, or before its first turn those of the workspace.

        No disk is read.
        """
        return self._writer.options.get(self.workspace, session)

    def session_options(self, session: str | None) -> "SessionOptions | None":
        """Return a conversation's own options. For the name None, return the options of the workspace."""
        return self._writer.options.get_exact(self.workspace, session)

    def correction(self, family: str) -> "Correction":
        """Return the learned correction of a family of models."""
        return self._writer.corrections.get(self.store, family)

    def put_options(self, session: str, options: "SessionOptions") -> "Future[None]":
        """Use these options for a conversation from now on. The future is done when they are written."""
        exists = session in self._writer.names(self.workspace)
        self._writer.options.put(self.workspace, session, options, exists=exists)
        return self._writer.submit(lambda: self._writer.options.save(self.store, self.workspace, session))

    def append(self, session: str, turn: "NewTurn") -> "Appended":
        def job() -> "Appended":
            appended = self.store.append(self.workspace, session, turn)
            if turn.report is not None:
                self._writer.corrections.wrote()
            end = _end_of_turn(turn, appended)
            if turn.options is not None or appended.forked:
                self._writer.options.read(self.store, self.workspace)
            if appended.forked and not appended.repeated:
                self._wrote(appended.session, "forked", end, turn=appended.turn)
                self._publish_turn(turn, appended)
            elif not appended.repeated:
                if not appended.before.seq and appended.session not in self._writer.names(self.workspace):
                    self._wrote(appended.session, "created", appended.before)
                self._wrote(appended.session, "appended", end, before=appended.before, turn=appended.turn)
                self._publish_turn(turn, appended)
            if end != appended.head:
                self._report_compaction(appended.session, "compacted", appended.head)
            self._look_for_messages()
            return appended

        return self._write(job)

    def _publish_turn(self, turn: "NewTurn", appended: "Appended") -> None:
        """Publish what happened in a turn, then that the ledger has it."""
        messages = (counted.message for counted in turn.messages)
        self._publish_written(
            lambda: ledger_events.turn_events(messages, session=appended.session, turn=appended.turn)
        )

    def _publish_written(self, events: "Callable[[], Iterable[Event]]") -> None:
        """Publish what was written. The write has succeeded, whatever becomes of this."""
        try:
            self.publish(events())
        except Exception:  # a bug must not fail a turn that is on the disk
            logger.exception("an event was not published")

    def mirror(self, changes: "Sequence[MirrorTurns]", files: "Iterable[MirroredFile]" = ()) -> None:
        """Write mirrored turns as `MirrorStore.write` does.

        They are reported like writes of another process.
        """

        def job() -> None:
            self.store.mirrors.write(changes, files)
            with suppress(LedgerError):  # what cannot be read now is reported by a later look
                self._writer.look()

        self._write(job)

    def compact(self, session: str, compaction: "NewCompaction") -> "Appended":
        return self._mark(
            session, "compacted", lambda: self.store.compact(self.workspace, session, compaction)
        )

    def undo(self, session: str, compaction: str | None) -> "Appended":
        return self._mark(session, "undone", lambda: self.store.undo(self.workspace, session, compaction))

    def render_anew(self, session: str) -> None:
        """Make a conversation's next request begin with the current system prompt and tools."""
        self._write(lambda: self.store.render_anew(self.workspace, session))
        self._writer.on_options(self.workspace)  # usages are others now

    def create(self, session: str, agent: str | None, parameters: "Mapping[str, Any]") -> "Session":
        return self._change(
            lambda: self.store.create(self.workspace, session, agent=agent, parameters=parameters), "created"
        )

    def set_parameters(self, session: str, parameters: "Mapping[str, Any]") -> "Session":
        return self._change(
            lambda: self.store.set_parameters(self.workspace, session, parameters), "parameters"
        )

    def parameters(self, session: str) -> "Mapping[str, Any]":
        """Return the model parameters of a conversation."""
        state = self.store.state(self.workspace, session)
        return {} if state is None else state.parameters

    def clear(self, session: str) -> "Session":
        return self._change(lambda: self.store.clear(self.workspace, session), "cleared")

    def fork(self, session: str, to: str, turn: str | None) -> "Session":
        return self._change(lambda: self.store.fork(self.workspace, session, to, turn=turn), "forked")

    def rename(self, session: str, to: str) -> "Session":
        return self._change(lambda: self.store.rename(self.workspace, session, to), "renamed", former=session)

    def delete(self, session: str) -> None:
        def job() -> None:
            self.store.delete(self.workspace, session)
            self._writer.options.read(self.store, self.workspace)
            self._wrote(session, "deleted", None)

        self._write(job)

    def send(self, message: "DirectMessage") -> None:
        """Write a direct message for an agent, and publish it."""

        def job() -> None:
            self.store.messages.send(message)
            self._writer.sent(message)
            self._publish_written(lambda: [ledger_events.message_event(message)])

        self._write(job)

    def start_agent(self, agent: "NewAgent") -> int:
        """Write a live agent and return its number."""
        return self._write(lambda: self.store.agents.start(self.workspace, agent))

    def end_agent(self, name: str) -> None:
        """End an agent and all agents below it. Their conversations stay."""
        self._write(lambda: self.store.agents.end(self.workspace, name))

    def delivered(self, ids: Iterable[str]) -> None:
        """Mark direct messages as delivered."""

        def job() -> None:
            self.store.messages.delivered(ids)
            self._look_for_messages()

        self._write(job)

    def waits(self, agent: str) -> bool:
        """Whether a direct message waits for an agent."""
        return self._writer.waits(self.store, self.workspace, agent)

    def _look_for_messages(self) -> None:
        """Look whether messages wait for `main`, while no turn waits for that."""
        try:
            self.waits(MAIN)
        except RequestError:  # the write itself succeeded; the next turn looks
            pass
        except Exception:  # as above
            logger.exception("looking for messages failed; the next turn looks")

    def _write(self, job: Callable[[], T]) -> T:
        return self._writer.write(job, since=self._since)

    def _mark(self, session: str, reason: Reason, write: "Callable[[], Appended]") -> "Appended":
        """Write a compaction or its undoing."""

        def job() -> "Appended":
            appended = write()
            self._report_compaction(session, reason, appended.head, before=appended.before)
            return appended

        return self._write(job)

    def _report_compaction(
        self, session: str, reason: Reason, head: "Head", *, before: "Head | None" = None
    ) -> None:
        """Report a compaction or its undoing, whose turn is the last one, and publish it."""
        turn = head.turn or ""
        self._wrote(session, reason, head, before=before, turn=turn)
        self._publish_written(lambda: [ledger_events.compaction_event(session, turn, reason)])

    def _change(
        self, write: "Callable[[], Session]", reason: Reason, *, former: str | None = None
    ) -> "Session":
        def job() -> "Session":
            session = write()
            self._writer.options.read(self.store, self.workspace)
            self._wrote(session.name, reason, session.head, former=former)
            return session

        return self._write(job)

    def _wrote(
        self,
        session: str,
        reason: Reason,
        head: "Head | None",
        *,
        before: "Head | None" = None,
        turn: str | None = None,
        former: str | None = None,
    ) -> None:
        change = Change(self.workspace, session, reason, turn=turn, former=former, by=self._by)
        self._writer.wrote(change, head, before=before)


def refuse_url(url: str | None) -> None:
    """Raise LedgerError if the settings name a ledger on a server."""
    if url is not None:
        raise LedgerError(
            "Ledgers on a server (ledger.url) are not supported yet. Remove ledger.url from the global "
            "config.json, or name a file there (ledger.path).",
            code="ledger-url",
        )


def _end_of_turn(turn: "NewTurn", appended: "Appended") -> "Head":
    """The head behind an appended turn, before the compaction that came with it."""
    if turn.compaction is None or appended.repeated:
        return appended.head
    head = appended.head  # the compaction is one turn with one message
    tokens = head.tokens - turn.compaction.summary.tokens
    return msgspec.structs.replace(
        head, turn=appended.turn, seq=head.seq - 1, messages=head.messages - 1, tokens=tokens
    )


def _ended() -> Exception:
    return LedgerError("The daemon is ending; nothing was written.", code="ledger-closed")
