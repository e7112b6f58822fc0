"""The ledger in SQLite: each method of `store.Ledger` is one transaction.

The work of a method is a function of a connection, in `sessions`, `turn_writer`, `read_history`,
`usage_reports`, `mirrors`, `excerpt`, `search`, `direct_messages` or `agents`.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from nexus_context import cancellation
from nexus_context.ledger import (
    agents,
    backup,
    chain,
    compacted_turn,
    direct_messages,
    forks,
    mirrors,
    part_index,
    read_history,
    sessions,
    turn_writer,
    usage_reports,
)
from nexus_context.ledger.connections import Connections
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.lineage import Segment, segments
from nexus_context.ledger.records import (
    Appended,
    DirectMessage,
    Excerpt,
    Head,
    Hit,
    LiveAgent,
    MirroredFile,
    MirroredSession,
    MirrorTurns,
    NewAgent,
    NewCompaction,
    NewTurn,
    Session,
    SessionOptions,
    StoredHistory,
    StoredMessage,
    StoredReceipt,
    Turn,
    Verification,
)
from nexus_context.ledger.rows import DamagedError
from nexus_context.tokens.accuracy import DatedReport
from nexus_context.tokens.correction import Correction, UsageReport

INDEX = 0.5
"""Seconds spent on indexing messages of an earlier version before a search."""


class SqliteLedger:
    """A `store.Ledger`. `read_notice` returns the current notice for the user.

    `store`, of a ledger in memory, writes it into its file and returns the connections to that; None while
    the file cannot be written. An append tries it.
    """

    def __init__(
        self,
        connections: Connections,
        *,
        location: str,
        read_notice: Callable[[], str | None],
        store: Callable[[Connections], Connections | None] | None = None,
    ) -> None:
        self._connections = connections
        self._location = location
        self._read_notice = read_notice
        self._store = store
        self._storing = threading.Lock()

    @property
    def persists(self) -> bool:
        return self._connections.path is not None

    @property
    def notice(self) -> str | None:
        return self._read_notice()

    @property
    def location(self) -> str:
        return self._location

    def version(self) -> int:
        return self._connections.version()

    def close(self) -> None:
        self._connections.close()

    def _leave_memory(self) -> None:
        """Write what is in memory to the disk, once that is possible."""
        if self.persists or not self._storing.acquire(blocking=False):
            return
        try:
            stored = None if self._store is None else self._store(self._connections)
            if stored is not None:
                before, self._connections, self._store = self._connections, stored, None
                before.close()
        finally:
            self._storing.release()

    # ------------------------------------------------------------ sessions

    def sessions(self, workspace: str | None = None) -> list[Session]:
        with self._connections.reading() as connection:
            return sessions.list_sessions(connection, workspace)

    def find(self, workspace: str, session: str) -> Session | None:
        with self._connections.reading() as connection:
            return sessions.read_session(connection, workspace, session)

    def create(
        self,
        workspace: str,
        session: str,
        *,
        agent: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Session:
        with self._connections.writing() as connection:
            sessions.begin(connection, workspace, session, agent=agent, parameters=parameters)
            return sessions.read_existing(connection, workspace, session)

    def parameters(self, workspace: str, session: str) -> Mapping[str, Any]:
        with self._connections.reading(session) as connection:
            return sessions.read_parameters(connection, workspace, session)

    def set_parameters(self, workspace: str, session: str, parameters: Mapping[str, Any]) -> Session:
        with self._connections.writing() as connection:
            sessions.set_parameters(connection, workspace, session, parameters)
            return sessions.read_existing(connection, workspace, session)

    def rename(self, workspace: str, session: str, to: str) -> Session:
        with self._connections.writing() as connection:
            sessions.rename(connection, workspace, session, to)
            return sessions.read_existing(connection, workspace, to)

    def delete(self, workspace: str, session: str) -> None:
        with self._connections.writing() as connection:
            sessions.delete(connection, workspace, session)
        first = more = True
        while more:  # each step is a transaction: other writers run in between
            with self._connections.writing() as connection:
                more = sessions.purge(connection, first=first)
            first = False
        self._connections.checkpoint()

    def clear(self, workspace: str, session: str) -> Session:
        with self._connections.writing() as connection:
            sessions.clear(connection, workspace, session)
            return sessions.read_existing(connection, workspace, session)

    def fork(self, workspace: str, session: str, to: str, *, turn: str | None = None) -> Session:
        with self._connections.writing() as connection:
            forks.fork(connection, workspace, session, to=to, turn=turn)
            return sessions.read_existing(connection, workspace, to)

    # ------------------------------------------------------------ options

    def options(self, workspace: str) -> dict[str | None, SessionOptions]:
        with self._connections.reading() as connection:
            return sessions.list_options(connection, workspace)

    def keep_options(self, workspace: str, session: str, options: SessionOptions) -> None:
        with self._connections.writing() as connection:
            sessions.keep_options(connection, workspace, session, options)

    # ------------------------------------------------------------ turns

    def append(self, workspace: str, session: str, turn: NewTurn) -> Appended:
        self._leave_memory()
        reads = None if turn.compaction is None else session
        with self._connections.writing(reads=reads) as connection:
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
        with self._connections.writing() as connection:
            turn_writer.import_turns(
                connection, workspace, session, turns, parameters=parameters, on_progress=on_progress
            )
            return sessions.read_existing(connection, workspace, session)

    def compact(self, workspace: str, session: str, compaction: NewCompaction) -> Appended:
        with self._connections.writing() as connection:
            return turn_writer.compact(connection, workspace, session, compaction)

    def undo(self, workspace: str, session: str, compaction: str | None = None) -> Appended:
        with self._connections.writing() as connection:
            return turn_writer.undo(connection, workspace, session, compaction)

    def head(self, workspace: str, session: str) -> Head | None:
        with self._connections.reading() as connection:
            position = sessions.find(connection, workspace, session)
            return None if position is None else position.head

    def history(self, workspace: str, session: str, *, tokens: int | None = None) -> StoredHistory | None:
        with self._connections.reading(session) as connection:
            return read_history.history(connection, workspace, session, tokens)

    def frozen(self, workspace: str, session: str) -> str | None:
        with self._connections.reading(session) as connection:
            return read_history.frozen(connection, workspace, session)

    def anchor(self, workspace: str, session: str) -> UsageReport | None:
        with self._connections.reading() as connection:
            return usage_reports.anchor(connection, workspace, session)

    def correction(self, family: str) -> Correction:
        with self._connections.reading() as connection:
            return usage_reports.correction(connection, family)

    def usage_reports(self) -> list[DatedReport]:
        with self._connections.reading() as connection:
            return usage_reports.list_reports(connection)

    def render_anew(self, workspace: str, session: str) -> None:
        with self._connections.writing() as connection:
            turn_writer.render_anew(connection, workspace, session)

    def since(self, workspace: str, session: str, head: Head) -> tuple[StoredMessage, ...] | None:
        with self._connections.reading(session) as connection:
            return read_history.since(connection, workspace, session, head)

    def turns(self, workspace: str, session: str, *, last: int | None = None) -> Iterator[Turn]:
        with self._connections.reading(session) as connection:
            position = sessions.require(connection, workspace, session)
            parts = read_history.whole(connection, position)
        first = 0 if last is None else max(0, position.seq - last)
        return self._turns(parts, session, first, position.seq)

    def excerpt(
        self,
        workspace: str,
        session: str,
        *,
        thread: str | None = None,
        first: int | None = None,
        before: int | None = None,
        limit: int,
    ) -> Excerpt | None:
        from nexus_context.ledger.excerpt import excerpt

        with self._connections.reading(session) as connection:
            return excerpt(
                connection, workspace, session, thread=thread, first=first, before=before, limit=limit
            )

    def receipt(self, workspace: str, session: str, compaction: str | None = None) -> StoredReceipt:
        with self._connections.reading(session) as connection:
            return read_history.receipt(connection, workspace, session, compaction)

    def search(
        self, query: str, *, workspace: str | None = None, session: str | None = None, limit: int = 20
    ) -> list[Hit]:
        from nexus_context.ledger.search import search

        self._fill_index()
        with self._connections.reading() as connection:
            return search(connection, query, workspace=workspace, session=session, limit=limit)

    # ------------------------------------------------------------ sessions of other assistants

    def mirrored_files(self) -> dict[str, MirroredFile]:
        with self._connections.reading() as connection:
            return mirrors.list_files(connection)

    def mirrored_session(self, assistant: str, program_id: str) -> MirroredSession | None:
        with self._connections.reading() as connection:
            return mirrors.find(connection, assistant, program_id)

    def imported_sessions(self) -> dict[str, tuple[str, str]]:
        with self._connections.reading() as connection:
            return mirrors.list_imported(connection)

    def mirror(self, changes: Sequence[MirrorTurns], files: Iterable[MirroredFile] = ()) -> None:
        with self._connections.writing() as connection:
            mirrors.write(connection, changes, files)

    # ------------------------------------------------------------ the whole ledger

    def verify(self) -> Verification:
        with self._connections.reading(fresh=True) as connection:
            return chain.verify_ledger(connection)

    def backup(self, path: str) -> int:
        with self._connections.reading() as connection:
            return backup.write(connection, path)

    # ------------------------------------------------------------ direct messages

    def send(self, message: DirectMessage) -> None:
        with self._connections.writing() as connection:
            direct_messages.send(connection, message)

    def inbox(
        self, workspace: str, agent: str, *, now: float, node: str | None = None, limit: int = 20
    ) -> list[DirectMessage]:
        with self._connections.reading() as connection:
            return direct_messages.inbox(connection, workspace, agent, now=now, node=node, limit=limit)

    def delivered(self, ids: Iterable[str]) -> None:
        with self._connections.writing() as connection:
            direct_messages.delivered(connection, ids)

    def newest_message(self) -> int:
        with self._connections.reading() as connection:
            return direct_messages.newest(connection)

    def messages_since(self, number: int, *, limit: int) -> list[DirectMessage]:
        with self._connections.reading() as connection:
            return direct_messages.since(connection, number, limit=limit)

    # ------------------------------------------------------------ agents

    def agents(self, workspace: str) -> list[LiveAgent]:
        with self._connections.reading() as connection:
            return agents.list_agents(connection, workspace)

    def agent_names(self, workspace: str, name: str) -> dict[str, bool]:
        with self._connections.reading() as connection:
            return agents.names(connection, workspace, name)

    def start_agent(self, workspace: str, agent: NewAgent) -> int:
        with self._connections.writing() as connection:
            return agents.start(connection, workspace, agent)

    def end_agent(self, workspace: str, name: str) -> list[str]:
        with self._connections.writing() as connection:
            return agents.end(connection, workspace, name)

    # ------------------------------------------------------------ inside

    def _fill_index(self) -> None:
        """Continue to index messages of an earlier version; the search works without them."""
        with self._connections.reading() as connection:
            if part_index.is_whole(connection):
                return

        def step() -> bool:
            with self._connections.writing() as connection:
                return part_index.fill(connection)

        with suppress(LedgerError):
            part_index.fill_for(INDEX, step)

    def _turns(self, parts: list[Segment], session: str, first: int, last: int) -> Iterator[Turn]:
        """Read turns in batches, each in its own transaction: the turns of a thread do not change."""
        for after in range(first, last, read_history.BATCH):
            cancellation.check()
            until = min(last, after + read_history.BATCH)
            with self._connections.reading(session) as connection:
                turns = read_history.turns(connection, parts, after, until)
                if len(turns) < until - after:
                    if segments(connection, parts[-1].thread)[-1:] >= parts[-1:]:
                        raise DamagedError(f"{until - after - len(turns)} turns are missing")
                    raise LedgerError(
                        f"The session {session!r} was deleted while it was read.", code="unknown-session"
                    )
            yield from turns
