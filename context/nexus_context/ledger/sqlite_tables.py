"""Implements the stores of a ledger beside its sessions in SQLite: each method is one transaction.

The work of a method is a function of a connection, in the module of its subject.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from nexus_context.ledger import (
    agents,
    backup,
    chain,
    daily_backups,
    direct_messages,
    mirrors,
    part_index,
    read_history,
    sessions,
    usage_reports,
)
from nexus_context.ledger.connections import Database
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import (
    DirectMessage,
    Excerpt,
    Hit,
    LiveAgent,
    MirroredFile,
    MirroredSession,
    MirrorTurns,
    NewAgent,
    SessionOptions,
    StoredReceipt,
    Verification,
)
from nexus_context.tokens.accuracy import DatedReport
from nexus_context.tokens.correction import Correction

INDEX = 0.5
"""Seconds spent on indexing messages of an earlier version before a search."""


class _Tables:
    def __init__(self, database: Database) -> None:
        self._database = database


class OptionsTable(_Tables):
    """Stores the options of sessions: an `OptionsStore`."""

    def of(self, workspace: str) -> dict[str | None, SessionOptions]:
        with self._database.reading() as connection:
            return sessions.list_options(connection, workspace)

    def keep(self, workspace: str, session: str, options: SessionOptions) -> None:
        with self._database.writing() as connection:
            sessions.keep_options(connection, workspace, session, options)


class UsageTable(_Tables):
    """Reads what providers counted for requests: a `UsageStore`."""

    def correction(self, family: str) -> Correction:
        with self._database.reading() as connection:
            return usage_reports.correction(connection, family)

    def reports(self) -> list[DatedReport]:
        with self._database.reading() as connection:
            return usage_reports.list_reports(connection)


class Pages(_Tables):
    """Reads what people look at: a `SessionPages`."""

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

        with self._database.reading(session) as connection:
            return excerpt(
                connection, workspace, session, thread=thread, first=first, before=before, limit=limit
            )

    def receipt(self, workspace: str, session: str, compaction: str | None = None) -> StoredReceipt:
        with self._database.reading(session) as connection:
            return read_history.receipt(connection, workspace, session, compaction)

    def search(
        self,
        query: str,
        *,
        workspace: str | None = None,
        inside: bool = False,
        parents: Sequence[str] = (),
        session: str | None = None,
        limit: int = 20,
    ) -> list[Hit]:
        from nexus_context.ledger.search import search

        self._fill_index()
        with self._database.reading() as connection:
            return search(
                connection,
                query,
                workspace=workspace,
                inside=inside,
                parents=parents,
                session=session,
                limit=limit,
            )

    def last_call(self, workspace: str, prefix: str) -> str | None:
        from nexus_context.ledger.search import last_call

        with self._database.reading() as connection:
            return last_call(connection, workspace, prefix)

    def _fill_index(self) -> None:
        """Continue to index messages of an earlier version; the search works without them."""
        with self._database.reading() as connection:
            if part_index.is_whole(connection):
                return

        def step() -> bool:
            with self._database.writing() as connection:
                return part_index.fill(connection)

        with suppress(LedgerError):
            part_index.fill_for(INDEX, step)


class MirrorTables(_Tables):
    """Stores copies of the sessions of other assistants: a `MirrorStore`."""

    def files(self) -> dict[str, MirroredFile]:
        with self._database.reading() as connection:
            return mirrors.list_files(connection)

    def find(self, assistant: str, program_id: str) -> MirroredSession | None:
        with self._database.reading() as connection:
            return mirrors.find(connection, assistant, program_id)

    def imported(self) -> dict[str, tuple[str, str]]:
        with self._database.reading() as connection:
            return mirrors.list_imported(connection)

    def write(self, changes: Sequence[MirrorTurns], files: Iterable[MirroredFile] = ()) -> None:
        with self._database.writing() as connection:
            mirrors.write(connection, changes, files)


class FileUpkeep(_Tables):
    """Verifies and copies the ledger as a whole: an `Upkeep`."""

    def verify(self) -> Verification:
        with self._database.reading(fresh=True) as connection:
            return chain.verify_ledger(connection)

    def backup(self, path: str) -> int:
        with self._database.reading() as connection:
            return backup.write(connection, path)

    def back_up_daily(self) -> str | None:
        ledger = self._database.connections.path
        if ledger is None:
            return None
        with self._database.reading(fresh=True) as connection:
            written = (
                daily_backups.write(connection, ledger) if daily_backups.is_due(connection, ledger) else None
            )
        if written is not None:
            with self._database.reading() as connection:
                daily_backups.settle(connection, ledger, written)
        return written


class MessageTable(_Tables):
    """Stores direct messages: a `MessageStore`."""

    def send(self, message: DirectMessage) -> None:
        with self._database.writing() as connection:
            direct_messages.send(connection, message)

    def inbox(
        self, workspace: str, agent: str, *, now: float, node: str | None = None, limit: int = 20
    ) -> list[DirectMessage]:
        with self._database.reading() as connection:
            return direct_messages.inbox(connection, workspace, agent, now=now, node=node, limit=limit)

    def delivered(self, ids: Iterable[str]) -> None:
        with self._database.writing() as connection:
            direct_messages.delivered(connection, ids)

    def newest(self) -> int:
        with self._database.reading() as connection:
            return direct_messages.newest(connection)

    def since(self, number: int, *, limit: int) -> list[DirectMessage]:
        with self._database.reading() as connection:
            return direct_messages.since(connection, number, limit=limit)


class AgentTable(_Tables):
    """Stores the running agents: an `AgentStore`."""

    def running(self, workspace: str) -> list[LiveAgent]:
        with self._database.reading() as connection:
            return agents.list_agents(connection, workspace)

    def names(self, workspace: str, name: str) -> dict[str, bool]:
        with self._database.reading() as connection:
            return agents.names(connection, workspace, name)

    def start(self, workspace: str, agent: NewAgent) -> int:
        with self._database.writing() as connection:
            return agents.start(connection, workspace, agent)

    def end(self, workspace: str, name: str) -> list[str]:
        with self._database.writing() as connection:
            return agents.end(connection, workspace, name)
