"""What sessions are used with: the picked model, and what is sent besides the conversation.

1. A workspace has what one of its sessions was used with last: that is what a session without options of its
   own goes on with, a new one too.
2. A fork has those of the session that it goes on from. A session that is cleared or renamed keeps its own.
"""

from typing import Any

import apsw

from nexus_context.config.picked_model import ModelChoice
from nexus_context.ledger import sessions
from nexus_context.ledger.records import SessionOptions
from nexus_context.ledger.rows import optional_json, optional_value

_OF_SESSIONS = """
SELECT session.name, model, max_tokens, besides FROM session_options
JOIN session ON session.id = session_options.session WHERE session.workspace = ?
"""
_OF_WORKSPACE = "SELECT NULL, model, max_tokens, besides FROM workspace_options WHERE workspace = ?"


def list_options(connection: apsw.Connection, workspace: str) -> dict[str | None, SessionOptions]:
    """The options of a workspace's sessions by name, and under None the workspace's."""
    rows = [row for sql in (_OF_WORKSPACE, _OF_SESSIONS) for row in connection.execute(sql, (workspace,))]
    return {name: _options(*columns) for name, *columns in rows}


def keep(connection: apsw.Connection, workspace: str, session: str, options: SessionOptions) -> None:
    """Keep the options of a session, if there is one, and as those of its workspace."""
    place = sessions.find(connection, workspace, session)
    if place is not None:
        keep_of(connection, place.session, options)
    connection.execute(
        "INSERT OR REPLACE INTO workspace_options VALUES (?, ?, ?, ?)", (workspace, *_columns(options))
    )


def keep_of(connection: apsw.Connection, session: int, options: SessionOptions) -> None:
    """Keep the options of the session with this number."""
    connection.execute(
        "INSERT OR REPLACE INTO session_options VALUES (?, ?, ?, ?)", (session, *_columns(options))
    )


def _columns(options: SessionOptions) -> tuple[Any, ...]:
    return options.choice.model, options.choice.max_tokens, optional_json(options.besides)


def _options(model: str | None, max_tokens: int | None, besides: str | None) -> SessionOptions:
    return SessionOptions(ModelChoice(model, max_tokens), optional_value(besides))
