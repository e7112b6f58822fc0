"""Stores direct messages between agents until they are delivered.

After delivery or expiry only the id, sender and receiver of a message stay, so that a message that is sent
twice does not arrive twice.
"""

from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

from nexus_context.ledger.records import DirectMessage
from nexus_context.ledger.rows import optional_json, optional_value

# columns in the order of the fields of DirectMessage
_INSERT = """
INSERT OR IGNORE INTO direct (id, workspace, source, target, content, created, node, priority, ttl, task,
    metadata, session, expires)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_WAITING = """
SELECT id, workspace, source, target, content, created, node, priority, ttl, task, metadata, session
FROM direct
WHERE workspace = ?1 AND target = ?2 AND delivered = 0
    AND (expires IS NULL OR expires > ?3) AND (?4 IS NULL OR node IS NULL OR node = ?4)
ORDER BY priority DESC, number LIMIT ?5
"""
_SINCE = """
SELECT id, workspace, source, target, content, created, node, priority, ttl, task, metadata, session
FROM direct WHERE number > ?1 AND delivered = 0 ORDER BY number LIMIT ?2
"""
_EMPTY = "UPDATE direct SET delivered = 1, content = '', metadata = NULL"


def send(connection: apsw.Connection, message: DirectMessage) -> None:
    """Store a message, unless one with its id exists. Also remove the content of expired messages for the
    same agent.
    """
    connection.execute(
        f"{_EMPTY} WHERE workspace = ? AND target = ? AND delivered = 0 AND expires <= ?",
        (message.workspace, message.target, message.created),
    )
    record = msgspec.structs.asdict(message) | {"metadata": optional_json(message.metadata)}
    expires = None if message.ttl is None else message.created + message.ttl
    connection.execute(_INSERT, (*record.values(), expires))


def inbox(
    connection: apsw.Connection, workspace: str, agent: str, *, now: float, node: str | None, limit: int
) -> list[DirectMessage]:
    """Return the waiting messages of an agent: the highest priority first, then in order of arrival. If
    `node` is None, messages for every node are returned.
    """
    return _messages(connection.execute(_WAITING, (workspace, agent, now, node, limit)))


def since(connection: apsw.Connection, number: int, *, limit: int) -> list[DirectMessage]:
    """Return the first `limit` waiting messages of all workspaces whose number is greater than `number`, in
    order of arrival.
    """
    return _messages(connection.execute(_SINCE, (number, limit)))


def newest(connection: apsw.Connection) -> int:
    """Return the number of the newest message, or 0 if there is none."""
    ((number,),) = connection.execute("SELECT coalesce(max(number), 0) FROM direct")
    return int(number)


def delivered(connection: apsw.Connection, ids: Iterable[str]) -> None:
    """Mark the messages with these ids as delivered, and remove their content."""
    connection.executemany(f"{_EMPTY} WHERE id = ?", ((message_id,) for message_id in ids))


def forget(connection: apsw.Connection, workspace: str, session: str) -> None:
    """Remove all messages of a session."""
    connection.execute("DELETE FROM direct WHERE workspace = ? AND session = ?", (workspace, session))


def _messages(rows: Iterable[tuple[Any, ...]]) -> list[DirectMessage]:
    records = [dict(zip(DirectMessage.__struct_fields__, row, strict=True)) for row in rows]
    return [DirectMessage(**record | {"metadata": optional_value(record["metadata"])}) for record in records]
