"""Implements the ledger in SQLite: each method of `store.Ledger` is one transaction.

The work of a method is a function of a connection, in `sessions`, `turn_writer`, `read_history`,
`usage_reports`, `mirrors`, `excerpt`, `search`, `direct_messages` or `agents`.
"""

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from nexus_context.disk import cancellation
from nexus_context.ledger import (
    compacted_turn,
    daily_backups,
    forks,
    read_history,
    sessions,
    sqlite_tables,
    turn_writer,
    usage_reports,
)
from nexus_context.ledger.connections import Connections, Database
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import Segment, segments
from nexus_context.ledger.records import (
    Appended,
    Head,
    NewCompaction,
    NewTurn,
    Session,
    StoredHistory,
    StoredMessage,
    StoredState,
    Turn,
)
from nexus_context.ledger.rows import DamagedError

_MOVED = {
    **dict.fromkeys(("search", "excerpt", "receipt"), "pages"),
    **dict.fromkeys(("send", "inbox", "delivered"), "messages"),
    **dict.fromkeys(("verify", "backup"), "upkeep"),
}
"""The parts of a ledger that have what was a method of it in earlier versions."""


class SqliteLedger:
    """A `store.Ledger` in SQLite. `read_notice` returns the current notice for the user.

    A ledger in memory has a function `store`, which each append calls. It writes the ledger into its file and
    returns the connections to that file, or None if the file still cannot be written.
    """

    def __init__(
        self,
        connections: Connections,
        *,
        location: str,
        read_notice: Callable[[], str | None],
        store: Callable[[Connections], Connections | None] | None = None,
    ) -> None:
        self._database = Database(connections)
        self.options = sqlite_tables.OptionsTable(self._database)
        self.usage = sqlite_tables.UsageTable(self._database)
        self.pages = sqlite_tables.Pages(self._database)
        self.mirrors = sqlite_tables.MirrorTables(self._database)
        self.upkeep = sqlite_tables.FileUpkeep(self._database)
        self.messages = sqlite_tables.MessageTable(self._database)
        self.agents = sqlite_tables.AgentTable(self._database)
        self._location = location
        self._read_notice = read_notice
        self._store = store
        self._storing = threading.Lock()

    @property
    def persists(self) -> bool:
        return self._database.connections.path is not None

    @property
    def notice(self) -> str | None:
        return self._read_notice()

    @property
    def location(self) -> str:
        return self._location

    def version(self) -> int:
        return self._database.connections.version()

    def close(self) -> None:
        self._database.connections.close()

    def _leave_memory(self) -> None:
        """Write what is in memory to the disk, once that is possible."""
        if self.persists or not self._storing.acquire(blocking=False):
            return
        try:
            stored = None if self._store is None else self._store(self._database.connections)
            if stored is not None:
                memory_connections, self._database.connections, self._store = (
                    self._database.connections,
                    stored,
                    None,
                )
                memory_connections.close()
        finally:
            self._storing.release()

    # ------------------------------------------------------------ sessions

    def sessions(self, workspace: str | None = None) -> list[Session]:
        with self._database.reading() as connection:
            return sessions.list_sessions(connection, workspace)

    def find(self, workspace: str, session: str) -> Session | None:
        with self._database.reading() as connection:
            return sessions.read_session(connection, workspace, session)

    def create(
        self,
        workspace: str,
        session: str,
        *,
        agent: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Session:
        with self._database.writing() as connection:
            sessions.begin(connection, workspace, session, agent=agent, parameters=parameters)
            return sessions.read_existing(connection, workspace, session)

    def set_parameters(self, workspace: str, session: str, parameters: Mapping[str, Any]) -> Session:
        with self._database.writing() as connection:
            sessions.set_parameters(connection, workspace, session, parameters)
            return sessions.read_existing(connection, workspace, session)

    def rename(self, workspace: str, session: str, to: str) -> Session:
        with self._database.writing() as connection:
            sessions.rename(connection, workspace, session, to)
            return sessions.read_existing(connection, workspace, to)

    def delete(self, workspace: str, session: str) -> None:
        path = self._database.connections.path
        with self._database.reading() as connection:
            threads = daily_backups.threads_of_session(connection, workspace, session)
        if path is not None:
            try:
                daily_backups.forget(path, threads)
            except OSError as error:
                raise LedgerError(
                    f"Nothing was deleted: a backup that holds {session!r} cannot be removed from "
                    f"{daily_backups.directory_of(path)} ({error.strerror or error}).",
                    code="ledger-read-only",
                ) from error
        with self._database.writing() as connection:
            sessions.delete(connection, workspace, session)
        if path is not None:
            with suppress(OSError):  # one may have been made meanwhile; `settle` looks at it, too
                daily_backups.forget(path, threads)
        is_first_step = has_more = True
        while has_more:  # each step is a transaction: other writers run in between
            with self._database.writing() as connection:
                has_more = sessions.purge(connection, first=is_first_step)
            is_first_step = False
        self._database.connections.checkpoint()

    def clear(self, workspace: str, session: str) -> Session:
        with self._database.writing() as connection:
            sessions.clear(connection, workspace, session)
            return sessions.read_existing(connection, workspace, session)

    def fork(self, workspace: str, session: str, to: str, *, turn: str | None = None) -> Session:
        with self._database.writing() as connection:
            forks.fork(connection, workspace, session, to=to, turn=turn)
            return sessions.read_existing(connection, workspace, to)

    # ------------------------------------------------------------ turns

    def append(self, workspace: str, session: str, turn: NewTurn) -> Appended:
        self._leave_memory()
        reads = None if turn.compaction is None else session
        with self._database.writing(reads=reads) as connection:
            return compacted_turn.append(connection, workspace, session, turn)

    def import_turns(
        self,
        workspace: str,
        session: str,
        turns: Iterable[NewTurn | Turn],
        *,
        parameters: Mapping[str, Any] | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> Session:
        with self._database.writing() as connection:
            turn_writer.import_turns(
                connection, workspace, session, turns, parameters=parameters, on_progress=on_progress
            )
            return sessions.read_existing(connection, workspace, session)

    def compact(self, workspace: str, session: str, compaction: NewCompaction) -> Appended:
        with self._database.writing() as connection:
            return turn_writer.compact(connection, workspace, session, compaction)

    def undo(self, workspace: str, session: str, compaction: str | None = None) -> Appended:
        with self._database.writing() as connection:
            return turn_writer.undo(connection, workspace, session, compaction)

    def head(self, workspace: str, session: str) -> Head | None:
        with self._database.reading() as connection:
            position = sessions.find(connection, workspace, session)
            return None if position is None else position.head

    def state(self, workspace: str, session: str) -> StoredState | None:
        with self._database.reading(session) as connection:
            position = sessions.find(connection, workspace, session)
            if position is None:
                return None
            return StoredState(
                position.head,
                sessions.read_parameters(connection, workspace, session),
                frozen=read_history.frozen(connection, workspace, session),
                anchor=usage_reports.anchor(connection, workspace, session),
            )

    def history(self, workspace: str, session: str, *, tokens: int | None = None) -> StoredHistory | None:
        with self._database.reading(session) as connection:
            return read_history.history(connection, workspace, session, tokens)

    def render_anew(self, workspace: str, session: str) -> None:
        with self._database.writing() as connection:
            turn_writer.render_anew(connection, workspace, session)

    def since(self, workspace: str, session: str, head: Head) -> tuple[StoredMessage, ...] | None:
        with self._database.reading(session) as connection:
            return read_history.since(connection, workspace, session, head)

    def turns(self, workspace: str, session: str, *, last: int | None = None) -> Iterator[Turn]:
        with self._database.reading(session) as connection:
            position = sessions.require(connection, workspace, session)
            lineage = read_history.current_lineage(connection, position)
        start = 0 if last is None else max(0, position.seq - last)
        return self._turns(lineage, session, start, position.seq)

    # ------------------------------------------------------------ inside

    def __getattr__(self, name: str) -> Any:
        """A method that programs call by its former place, with a warning."""
        table = _MOVED.get(name)
        if table is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warnings.warn(f"ledger.{name} is ledger.{table}.{name}", DeprecationWarning, stacklevel=2)
        return getattr(getattr(self, table), name)

    def _turns(self, lineage: list[Segment], session: str, start: int, end: int) -> Iterator[Turn]:
        """Read turns in batches, each in its own transaction: the turns of a thread do not change."""
        for after in range(start, end, read_history.BATCH):
            cancellation.check()
            until = min(end, after + read_history.BATCH)
            with self._database.reading(session) as connection:
                turns = read_history.turns(connection, lineage, after, until)
                if len(turns) < until - after:
                    if segments(connection, lineage[-1].thread)[-1:] >= lineage[-1:]:
                        raise DamagedError(f"{until - after - len(turns)} turns are missing")
                    raise LedgerError(
                        f"The session {session!r} was deleted while it was read.", code="unknown-session"
                    )
            yield from turns
