"""The ledger behind all sessions: opened when one is first needed, written by one thread.

1. Nothing of it is imported or opened before somebody asks for a session.
2. Whatever is written is written in one thread, one thing after the other. Readers wait for nobody. Where
   another program keeps the ledger locked, all who wait are told at once, not one after the other.
3. What was written is told in the order in which it was, also where the request for it was cancelled. What
   other processes wrote is looked for while somebody listens, and told as theirs.
4. What conversations are used with (`session_options`) is known without reading the disk.
5. Whether messages wait for `main` is looked for after each turn is written, so that the next need not look
   where no other process has written since.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from nexus_context.errors import RequestError
from nexus_context.files import exists
from nexus_context.layers.agent_definitions import MAIN
from nexus_daemon.sessions.session_options import OptionsCache

if TYPE_CHECKING:  # the first diagnostics need not wait for it
    from nexus_context.ledger.records import (
        Appended,
        DirectMessage,
        Head,
        NewAgent,
        NewCompaction,
        NewTurn,
        Session,
        SessionOptions,
    )
    from nexus_context.ledger.store import Ledger
    from nexus_context.memory.levels import Levels

logger = logging.getLogger(__name__)

Reason = Literal["created", "appended", "compacted", "undone", "cleared", "renamed", "deleted", "forked"]
T = TypeVar("T")

_KINDS: dict[str, Reason] = {"query": "appended", "compaction": "compacted", "undo": "undone"}


LOCKED_S = 1.0  # for which a ledger that was found locked counts as locked for those who waited meanwhile


class Change(msgspec.Struct, frozen=True):
    """What became of a session. `by` is who asked for it; None: another process wrote it."""

    workspace: str
    session: str
    reason: Reason
    turn: str | None = None
    former: str | None = None  # of a renamed one: its name before
    by: object = None


class LedgerWriter:
    """The ledger of one daemon. `told` is called in the writer's thread; so is `messaged`, with the workspace
    and the agent that a direct message was written for, and `optioned`, with a workspace of which a
    conversation is used with other options.

    `_heads` are the sessions as they were told last, by workspace and name. Only the writer's thread changes
    them: so what this process writes is never taken for somebody else's.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        told: Callable[[Change], None],
        messaged: Callable[[str, str], None] = lambda *_: None,
        optioned: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.store: Ledger | None = None
        self.options = OptionsCache(optioned)
        self.messaged = messaged
        self._levels: Levels | None = None
        self._environ = environ
        self._told = told
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nexus-ledger")
        self._heads: dict[str, dict[str, Head]] = {}
        self._version: int | None = None
        self._quiet: dict[tuple[str, str], int] = {}
        self._making = threading.Lock()
        self._locked: tuple[float, RequestError] | None = None  # when the ledger was last found locked

    def submit(self, job: Callable[[], T], *, since: float | None = None) -> "Future[T]":
        """Have the writer's thread do a job, unless another one found the ledger locked since this was asked.

        `since` is when that was, by the monotonic clock; now if it is not given.
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

        return self._submit(run)

    def _submit(self, job: Callable[[], T]) -> "Future[T]":
        try:
            return self._thread.submit(job)
        except RuntimeError:
            raise _ended() from None

    def write(self, job: Callable[[], T], *, since: float | None = None) -> T:
        """Have the writer's thread do a job, and wait for it: in another thread that may block."""
        try:
            return self.submit(job, since=since).result()
        except CancelledError:
            raise _ended() from None

    def open(self, folder: str | None, *, path: str | None, url: str | None) -> "FolderLedger":
        """The ledger of a folder, opened if it is not open yet. In the writer's thread only."""
        from nexus_context.ledger import open_ledger
        from nexus_context.ledger.errors import LedgerError
        from nexus_context.ledger.opening import workspace_of

        if url is not None:
            raise LedgerError(
                "A ledger on a server (ledger.url) is not possible yet. Remove it from the global "
                "config.json, or name a file there (ledger.path).",
                code="ledger-url",
            )
        if self.store is None:
            self.store = open_ledger(path, environ=self._environ)
        workspace = "" if folder is None else workspace_of(folder)
        if folder is not None and workspace not in self._heads:
            self._heads[workspace] = {one.name: one.head for one in self.store.sessions(workspace)}
            self.options.read(self.store, workspace)
        return FolderLedger(self, self.store, workspace)

    def find(self, folder: str | None, *, path: str | None, url: str | None) -> "FolderLedger | None":
        """As `open`; None where there is no ledger yet."""
        from nexus_context.ledger.opening import place

        if self.store is None and url is None and not exists(place(path, self._environ)):
            return None
        return self.open(folder, path=path, url=url)

    def levels(self, ledger: "Ledger") -> "Levels":
        """What is remembered of the ledger's sessions: one for all who ask. In a thread that may block."""
        with self._making:
            if self._levels is None:
                from nexus_context.memory.levels import Levels

                self._levels = Levels(ledger)
            return self._levels

    def names(self, workspace: str) -> list[str]:
        """The sessions of a workspace, as far as they are known: no disk is read."""
        return sorted(self._heads.get(workspace, ()))

    def waits(self, ledger: "Ledger", workspace: str, agent: str) -> bool:
        """Whether a direct message waits for an agent; the ledger is asked only if it was written since."""
        version = ledger.version()  # what is written while we look has another
        if self._quiet.get((workspace, agent)) == version and ledger.persists:
            return False
        if ledger.inbox(workspace, agent, now=time.time(), limit=1):
            return True
        self._quiet[workspace, agent] = version
        return False

    def look(self) -> None:
        """Tell what other processes wrote since the last look. In the writer's thread only.

        What could not be told, as the ledger could not be read, is told at the next look.
        """
        ledger = self.store
        if ledger is None:
            return
        self.options.save_again(ledger)
        if (version := ledger.version()) == self._version:
            return
        from nexus_context.ledger.errors import LedgerError

        failed: LedgerError | None = None
        for workspace, known in list(self._heads.items()):
            self.options.read(ledger, workspace)
            now = {one.name: one for one in ledger.sessions(workspace)}
            for change in differences(workspace, known, now):
                try:
                    self._tell(ledger, change)
                except LedgerError as error:  # a damaged session holds up no other
                    failed = error
                    if change.reason == "created":  # that it was begun is told, not how it went on
                        begun = now[change.session].head
                        known[change.session] = msgspec.structs.replace(begun, turn=None, seq=0)
                    continue
                known.pop(change.former or change.session, None)
                if change.session in now:
                    known[change.session] = now[change.session].head
        if failed is not None:
            raise failed
        self._version = version

    def wrote(self, change: Change, head: "Head | None", *, before: "Head | None" = None) -> None:
        """Note and tell what this process wrote. `before`: the head that it was written behind."""
        known = self._heads.setdefault(change.workspace, {})
        seen = known.get(change.session)
        if change.former is not None:
            known.pop(change.former, None)
        if before is not None and before.seq and not _is_at(seen, before):
            reason: Reason = "created" if seen is None else "appended"
            former = Change(change.workspace, change.session, reason, before.turn)
            if self.store is not None:
                self._tell(self.store, former)
        if head is None:
            known.pop(change.session, None)
        else:
            known[change.session] = head
        self._told(change)

    def close(self) -> "Future[None] | None":
        """Close the ledger after what is being written; nothing is begun any more. None: it is closed."""
        ledger, self.store = self.store, None
        ended = None if ledger is None else self._submit(ledger.close)
        self._thread.shutdown(wait=False)
        return ended

    def _tell(self, ledger: "Ledger", change: Change) -> None:
        """Tell what another process wrote; of a new session that it was begun, then how it went on."""
        if change.reason == "created":
            self._told(msgspec.structs.replace(change, turn=None))
            if change.turn is None:
                return
            change = msgspec.structs.replace(change, reason="appended")
        self._told(change if change.reason != "appended" else _exactly(ledger, change))


class FolderLedger:
    """The sessions of one folder in the ledger. Everything here may block: for worker threads.

    `by` is who asks for what is written, `since` when (`LedgerWriter.submit`). All that can go wrong is a
    LedgerError, and nothing is half-written.
    """

    def __init__(
        self,
        writer: LedgerWriter,
        store: "Ledger",
        workspace: str,
        *,
        by: object = None,
        since: float | None = None,
    ) -> None:
        self.store = store
        self.workspace = workspace
        self._writer = writer
        self._by = by
        self._since = since

    def asked_by(self, client: object, *, since: float | None = None) -> "FolderLedger":
        return FolderLedger(self._writer, self.store, self.workspace, by=client, since=since)

    @property
    def levels(self) -> "Levels":
        """What is remembered of all sessions."""
        return self._writer.levels(self.store)

    def options(self, session: str | None) -> "SessionOptions | None":
        """What a conversation is used with, or goes on with where it was not used yet. No disk is read."""
        return self._writer.options.get(self.workspace, session)

    def own_options(self, session: str | None) -> "SessionOptions | None":
        """The options of a conversation itself; under None those of the last one that was used."""
        return self._writer.options.own(self.workspace, session)

    def keep_options(self, session: str, options: "SessionOptions") -> "Future[None]":
        """Use a conversation with these options from now on. They hold at once; the result is that of
        writing.
        """
        exists = session in self._writer.names(self.workspace)
        self._writer.options.put(self.workspace, session, options, exists=exists)
        return self._writer.submit(lambda: self._writer.options.save(self.store, self.workspace, session))

    def append(self, session: str, turn: "NewTurn") -> "Appended":
        def job() -> "Appended":
            done = self.store.append(self.workspace, session, turn)
            if turn.options is not None or done.forked:
                self._writer.options.read(self.store, self.workspace)
            if done.forked and not done.repeated:
                self._wrote(done.session, "forked", done.head, turn=done.turn)
            elif not done.repeated:
                if not done.before.seq and done.session not in self._writer.names(self.workspace):
                    self._wrote(done.session, "created", done.before)
                self._wrote(done.session, "appended", done.head, before=done.before, turn=done.turn)
            self._look_for_messages()
            return done

        return self._writer.write(job, since=self._since)

    def compact(self, session: str, compaction: "NewCompaction") -> "Appended":
        def job() -> "Appended":
            done = self.store.compact(self.workspace, session, compaction)
            self._wrote(session, "compacted", done.head, before=done.before, turn=done.turn)
            return done

        return self._writer.write(job, since=self._since)

    def undo(self, session: str, compaction: str | None) -> "Appended":
        def job() -> "Appended":
            done = self.store.undo(self.workspace, session, compaction)
            self._wrote(session, "undone", done.head, before=done.before, turn=done.turn)
            return done

        return self._writer.write(job, since=self._since)

    def create(self, session: str, agent: str | None) -> "Session":
        return self._made(lambda: self.store.create(self.workspace, session, agent=agent), "created")

    def clear(self, session: str) -> "Session":
        return self._made(lambda: self.store.clear(self.workspace, session), "cleared")

    def fork(self, session: str, to: str, turn: str | None) -> "Session":
        return self._made(lambda: self.store.fork(self.workspace, session, to, turn=turn), "forked")

    def rename(self, session: str, to: str) -> "Session":
        return self._made(lambda: self.store.rename(self.workspace, session, to), "renamed", former=session)

    def delete(self, session: str) -> None:
        def job() -> None:
            self.store.delete(self.workspace, session)
            self._writer.options.read(self.store, self.workspace)
            self._wrote(session, "deleted", None)

        self._writer.write(job, since=self._since)

    def send(self, message: "DirectMessage") -> None:
        """Keep a direct message for its agent."""

        def job() -> None:
            self.store.send(message)
            self._writer.messaged(message.workspace, message.target)

        self._writer.write(job, since=self._since)

    def start_agent(self, agent: "NewAgent") -> int:
        """Keep a live agent; its number."""
        return self._writer.write(lambda: self.store.start_agent(self.workspace, agent), since=self._since)

    def end_agent(self, name: str) -> None:
        """An agent, and all below it, live no more; their conversations stay."""
        self._writer.write(lambda: self.store.end_agent(self.workspace, name), since=self._since)

    def delivered(self, ids: Iterable[str]) -> None:
        """These direct messages wait no more."""

        def job() -> None:
            self.store.delivered(ids)
            self._look_for_messages()

        self._writer.write(job, since=self._since)

    def waits(self, agent: str) -> bool:
        """Whether a direct message waits for an agent."""
        return self._writer.waits(self.store, self.workspace, agent)

    def _look_for_messages(self) -> None:
        """Look whether messages wait for `main`, while nobody waits for a turn."""
        try:
            self.waits(MAIN)
        except RequestError:  # what was written is written; the next turn looks
            pass
        except Exception:  # as above
            logger.exception("looking for messages failed; the next turn looks")

    def _made(self, make: "Callable[[], Session]", reason: Reason, *, former: str | None = None) -> "Session":
        def job() -> "Session":
            made = make()
            self._writer.options.read(self.store, self.workspace)
            self._wrote(made.name, reason, made.head, former=former)
            return made

        return self._writer.write(job, since=self._since)

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
        change = Change(self.workspace, session, reason, turn, former, self._by)
        self._writer.wrote(change, head, before=before)


def differences(workspace: str, known: "Mapping[str, Head]", now: "Mapping[str, Session]") -> list[Change]:
    """What became of sessions since they were known. What a thread went on with is told as appended."""
    gone = {head.thread: name for name, head in known.items() if name not in now}
    changes = []
    for name, session in now.items():
        before, head = known.get(name), session.head
        if before is None:
            former = gone.pop(head.thread, None)
            reason: Reason = "forked" if session.forked_from is not None else "created"
            reason = "renamed" if former is not None else reason
            changes.append(Change(workspace, name, reason, head.turn, former))
        elif before.thread != head.thread:
            changes.append(Change(workspace, name, "cleared", head.turn))
        elif before.seq != head.seq:
            changes.append(Change(workspace, name, "appended", head.turn))
    return [*(Change(workspace, name, "deleted") for name in gone.values()), *changes]


def _exactly(ledger: "Ledger", change: Change) -> Change:
    """A thread that went on: by what the turn is; of what came behind it, this process wrote one turn."""
    for turn in ledger.turns(change.workspace, change.session, last=2):
        if turn.id == change.turn:
            return msgspec.structs.replace(change, reason=_KINDS[turn.type])
    return change


def _is_at(seen: "Head | None", head: "Head") -> bool:
    return seen is not None and (seen.thread, seen.seq) == (head.thread, head.seq)


def _ended() -> Exception:
    from nexus_context.ledger.errors import LedgerError

    return LedgerError("The daemon is ending; nothing was written.", code="ledger-closed")
