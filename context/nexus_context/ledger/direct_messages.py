"""Direct messages between agents: stored, waiting, delivered.

After delivery or expiry the id, sender and receiver stay, so that a message sent twice does not arrive twice;
the content is removed.
"""

from collections.abc import Iterable

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
_EMPTY = "UPDATE direct SET delivered = 1, content = '', metadata = NULL"


def send(connection: apsw.Connection, message: DirectMessage) -> None:
    """Store a message unless its id exists; remove the content of expired ones for the same agent."""
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
    """Highest priority first, then in order of arrival. Without `node`: those for every node."""
    rows = connection.execute(_WAITING, (workspace, agent, now, node, limit))
    records = [dict(zip(DirectMessage.__struct_fields__, row, strict=True)) for row in rows]
    return [DirectMessage(**record | {"metadata": optional_value(record["metadata"])}) for record in records]


def delivered(connection: apsw.Connection, ids: Iterable[str]) -> None:
    """Remove the content of messages that reached their agent."""
    connection.executemany(f"{_EMPTY} WHERE id = ?", ((each,) for each in ids))


def forget(connection: apsw.Connection, workspace: str, session: str) -> None:
    """Remove all messages of a session."""
    connection.execute("DELETE FROM direct WHERE workspace = ? AND session = ?", (workspace, session))
