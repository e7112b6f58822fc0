"""Reads sessions from opencode's database in the form of `opencode export`, which `opencode.messages` reads.

A session has changed if its own time, or that of one of its messages or parts, has changed. All sessions are
read at one moment.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apsw

from nexus_context.assistants.opencode import messages as opencode_format
from nexus_context.assistants.opencode import session_files as opencode
from nexus_context.assistants.reading.record_values import decode_object
from nexus_context.assistants.sessions.session_types import Folders, is_within
from nexus_context.assistants.transcripts.conversation import Conversation
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.errors import Span
from nexus_context.ledger.rows import unwritable

_SESSIONS = """
SELECT id, directory, max(time_updated,
    ifnull((SELECT max(time_updated) FROM message WHERE session_id = session.id), 0),
    ifnull((SELECT max(time_updated) FROM part WHERE session_id = session.id), 0))
FROM session ORDER BY time_created
"""
_SESSION = "SELECT id, parent_id, directory, title, version, revert, time_created FROM session WHERE id = ?"
_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_DATA = "SELECT CAST(data AS BLOB) FROM part WHERE session_id = ?"
_PARTS = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY message_id, id"


class ExportedSession(NamedTuple):
    """A session of the database. `changed` is when it was last written, in milliseconds since 1970; `size` is
    in bytes.

    `parent` and `fork_of` are the ids of the sessions that it was started by and forked from.
    """

    id: str
    folder: str
    parent: str | None
    fork_of: str | None
    title: str | None
    changed: int
    conversation: Conversation | None
    size: int
    problems: tuple[str, ...]


def read_changed(
    path: str,
    read: dict[str, int],
    folder: Folders,
    *,
    chooses: Callable[[str, bytes], bool] | None = None,
) -> Iterator[ExportedSession]:
    """Yield the sessions of some folders that have changed. `read` maps the id of a session to its `changed`
    when it was last read.

    `chooses` gets the id of a session and the JSON of its parts, and says whether to read it. Raise
    apsw.Error if the database cannot be read.
    """
    connection = opencode.connect(path)
    try:
        connection.execute("BEGIN")
        rows: list[Any] = connection.execute(_SESSIONS).fetchall()
        for name, directory, changed in rows:
            if not is_within(directory, folder) or read.get(name) == changed:
                continue
            if chooses is None or chooses(
                name, b"\n".join(part for (part,) in connection.execute(_DATA, (name,)))
            ):
                yield _read(connection, path, name, changed)
    finally:
        connection.close()


def read_session(path: str, name: str) -> ExportedSession | None:
    """Read the session with the id `name`, None if there is none. Raise apsw.Error if the database cannot be
    read.
    """
    connection = opencode.connect(path)
    try:
        connection.execute("BEGIN")
        is_there = connection.execute(_SESSION, (name,)).fetchone() is not None
        return _read(connection, path, name, 0) if is_there else None
    finally:
        connection.close()


def _read(connection: apsw.Connection, path: str, name: str, changed: int) -> ExportedSession:
    columns: Any = connection.execute(_SESSION, (name,)).fetchone()
    _, parent, directory, title, version, revert, created = columns
    size = 0
    parts: dict[str, list[dict[str, Any]]] = {}
    for message, part, data in connection.execute(_PARTS, (name,)):
        size += len(data)
        parts.setdefault(message, []).append({**decode_object(data), "id": part, "messageID": message})
    messages = []
    for message, data in connection.execute(_MESSAGES, (name,)):
        size += len(data)
        info = {**decode_object(data), "id": message, "sessionID": name}
        messages.append({"info": info, "parts": parts.get(message, [])})
    info = {"id": name, "title": title, "version": version, "time": {"created": created}}
    info |= {} if parent is None else {"parentID": parent}
    info |= {} if revert is None else {"revert": decode_object(revert)}
    report = Report(path, unwritable)
    record = Record({"info": info, "messages": messages}, Span(0, 0), "The session")
    conversations: list[Conversation] = []
    if messages:
        conversations = opencode_format.convert([record], report, True)
    problems = tuple(problem.message for problem in report.problems() if problem.severity.name == "ERROR")
    conversation = next((conversation for conversation in conversations if conversation.messages), None)
    return ExportedSession(
        name,
        directory,
        parent,
        fork_of=opencode.find_origin(connection, name, created),
        title=title,
        changed=changed,
        conversation=conversation,
        size=size,
        problems=problems,
    )
