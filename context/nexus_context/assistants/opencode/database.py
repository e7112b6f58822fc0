"""Follows a session of opencode as it grows: its database has rows that change."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import apsw

from nexus_context.assistants.opencode import session_files as opencode
from nexus_context.assistants.opencode.steps import KINDS, MessageParts, steps_of
from nexus_context.assistants.reading.record_values import decode_object
from nexus_context.assistants.sessions.fold import SessionFold, Sum
from nexus_context.assistants.sessions.record import count_kinds
from nexus_context.assistants.sessions.report import SubAgent
from nexus_context.assistants.sessions.session_types import AssistantSession
from nexus_context.assistants.sessions.steps import StatedTotals
from nexus_context.disk import files

MOST_ROWS = 20_000  # messages of a session, the last ones


class FollowedDatabase:
    """A session in opencode's database. It is read again whenever it has changed."""

    agents: Sequence[SubAgent] | None = None
    agents_since: Callable[[float], Sum] | None = None
    skipped_bytes = damaged = long_lines = 0

    def __init__(self, path: str, name: str) -> None:
        self.fold = SessionFold()
        self.unknown: Counter[str] = Counter()
        self._session: AssistantSession | None = None
        self._path = path
        self._name = name
        self._stamp: tuple[Any, ...] = ()
        self._updated: Any = None

    @property
    def paths(self) -> tuple[str, ...]:
        return (self._path, f"{self._path}-wal")

    def complete(self, session: AssistantSession) -> AssistantSession:
        return self._session or session

    def advance(self) -> bool:
        """Read the session again if it has changed; return whether it has. Raise apsw.Error if the database
        cannot be read.
        """
        stamp = files.file_stamp(self._path), files.file_stamp(f"{self._path}-wal")
        if stamp == self._stamp:
            return False
        connection = opencode.connect(self._path)
        try:
            connection.execute("BEGIN")
            updated, session = opencode.read_session(connection, self._path, self._name)
            self._stamp = stamp
            if updated == self._updated:
                return False
            rows = [] if session is None else _rows(connection, session)
        finally:
            connection.close()
        self._updated, self._session = updated, session
        fold = SessionFold()
        self.unknown = Counter()
        count_kinds(self.unknown, (f"part/{kind}" for row in rows for kind in row.kinds if kind not in KINDS))
        for step in steps_of(rows):
            fold.take(step)
        if session is not None:
            unpriced_count = sum(opencode.is_unpriced(row.data) for row in rows if not row.is_copy)
            fold.take(
                StatedTotals(
                    session.total,
                    session.cost_usd,
                    lacks={opencode.UNPRICED: unpriced_count} if unpriced_count else {},
                )
            )
        self.fold = fold
        return True


def _rows(connection: apsw.Connection, session: AssistantSession) -> list[MessageParts]:
    messages: list[tuple[Any, ...]] = connection.execute(
        f"SELECT id, data, {opencode.IS_COPY} FROM message WHERE session_id = ?1"  # noqa: S608 - a constant
        " ORDER BY time_created DESC, id DESC LIMIT ?3",
        (session.id, session.fork_of, MOST_ROWS),
    ).fetchall()
    parts: dict[Any, list[dict[str, Any]]] = {}
    for message, data in connection.execute(
        "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id", (session.id,)
    ):
        parts.setdefault(message, []).append(decode_object(data))
    return [
        MessageParts(str(message_id), decode_object(data), parts.get(message_id, ()), is_copy=bool(is_copy))
        for message_id, data, is_copy in reversed(messages)
    ]
