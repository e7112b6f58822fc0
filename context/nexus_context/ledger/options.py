"""The options of sessions: the picked model, and what is sent besides the conversation.

1. A workspace has the options that one of its sessions used last: they apply to sessions without options,
   including new ones.
2. A fork inherits the options of its session. A session that is cleared or renamed keeps its own.
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
    """The options of the sessions of a workspace by name; under None those of the workspace."""
    rows = [row for sql in (_OF_WORKSPACE, _OF_SESSIONS) for row in connection.execute(sql, (workspace,))]
    return {name: _options(*columns) for name, *columns in rows}


def keep(connection: apsw.Connection, workspace: str, session: str, options: SessionOptions) -> None:
    """Store the options of a session, if it exists, and of its workspace."""
    place = sessions.find(connection, workspace, session)
    if place is not None:
        keep_of(connection, place.session, options)
    connection.execute(
        "INSERT OR REPLACE INTO workspace_options VALUES (?, ?, ?, ?)", (workspace, *_columns(options))
    )


def keep_of(connection: apsw.Connection, session: int, options: SessionOptions) -> None:
    """Store the options of the session with this number."""
    connection.execute(
        "INSERT OR REPLACE INTO session_options VALUES (?, ?, ?, ?)", (session, *_columns(options))
    )


def _columns(options: SessionOptions) -> tuple[Any, ...]:
    return options.choice.model, options.choice.max_tokens, optional_json(options.besides)


def _options(model: str | None, max_tokens: int | None, besides: str | None) -> SessionOptions:
    return SessionOptions(ModelChoice(model, max_tokens), optional_value(besides))
