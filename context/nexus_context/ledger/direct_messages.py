"""Direct messages between agents: kept, waiting, delivered.

Of a message that was delivered, or expired, its id and who wrote to whom stay, so that one that is sent
again does not arrive twice; what it said is gone.
"""

from collections.abc import Iterable

import apsw

from nexus_context.ledger.records import DirectMessage
from nexus_context.ledger.rows import optional_json, optional_value

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
    """Keep a message that is not there already; what expired before it for the same agent is emptied."""
    connection.execute(
        f"{_EMPTY} WHERE workspace = ? AND target = ? AND delivered = 0 AND expires <= ?",
        (message.workspace, message.target, message.created),
    )
    connection.execute(
        _INSERT,
        (
            message.id,
            message.workspace,
            message.source,
            message.target,
            message.content,
            message.created,
            message.node,
            message.priority,
            message.ttl,
            message.task,
            optional_json(message.metadata),
            message.session,
            None if message.ttl is None else message.created + message.ttl,
        ),
    )


def inbox(
    connection: apsw.Connection, workspace: str, agent: str, *, now: float, node: str | None, limit: int
) -> list[DirectMessage]:
    """Highest priority first, then in the order in which they came. Without a node: those for every node."""
    rows = connection.execute(_WAITING, (workspace, agent, now, node, limit))
    return [_message(*row) for row in rows]


def delivered(connection: apsw.Connection, ids: Iterable[str]) -> None:
    """Empty messages that reached their agent."""
    connection.executemany(f"{_EMPTY} WHERE id = ?", ((each,) for each in ids))


def forget(connection: apsw.Connection, workspace: str, session: str) -> None:
    """Remove all messages of a session."""
    connection.execute("DELETE FROM direct WHERE workspace = ? AND session = ?", (workspace, session))


def _message(
    id: str,  # noqa: A002  # the record's name
    workspace: str,
    source: str,
    target: str,
    content: str,
    created: float,
    node: str | None,
    priority: float,
    ttl: float | None,
    task: str | None,
    metadata: str | None,
    session: str | None,
) -> DirectMessage:
    return DirectMessage(
        id=id,
        workspace=workspace,
        source=source,
        target=target,
        content=content,
        created=created,
        node=node,
        priority=priority,
        ttl=ttl,
        task=task,
        metadata=optional_value(metadata),
        session=session,
    )
