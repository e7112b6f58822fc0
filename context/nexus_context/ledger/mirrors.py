"""Keeps copies of the sessions of other assistants in the ledger, and adds their new turns.

1. A session of another assistant is identified by the assistant and the id that its program gave it. So it is
   copied once, even if its file is renamed.
2. If another program has written to such a copy, its turns stay there, and what the assistant writes
   afterwards goes to a fork.
3. If the user deletes such a copy, the session is not copied again.
4. A large amount of text is indexed without merging it with the existing index. Later writes merge it step by
   step.
5. A writer passes what it read before. If the ledger has changed since, nothing is written, and the writer
   must read again.
"""

from collections.abc import Iterable, Sequence

import apsw
import msgspec

from nexus_context.ledger import forks, sessions, turn_writer, usage_reports
from nexus_context.ledger.errors import HeadMovedError
from nexus_context.ledger.records import MirroredFile, MirroredSession, MirrorTurns, SessionOrigin
from nexus_context.ledger.rows import row, value_of
from nexus_context.text.decoding import decode_as

MUCH = 100_000
"""Tokens from which on rule 4 holds: it makes the index a third faster."""

_MERGE = "INSERT INTO found (found, rank) VALUES ('automerge', ?)"
_AT_ONCE = 4  # SQLite's default: so many parts of the index are merged into one
_MIRRORED = """
SELECT ifnull(session.workspace, ''), session.name, mirror.turn, mirror.reported, origin.path, origin.parent
FROM mirror LEFT JOIN session ON session.id = mirror.session
LEFT JOIN origin ON origin.session = session.id
WHERE mirror.assistant = ? AND mirror.id = ?
"""
_IMPORTED = """
SELECT session.workspace, session.name, turn.event FROM session
JOIN turn ON turn.id = (session.thread << 32) + 1
WHERE turn.event LIKE '{"type":"import"%' AND session.id NOT IN (SELECT session FROM origin)
"""
_PUT = "INSERT OR REPLACE INTO mirror (assistant, id, session, turn, reported) VALUES (?, ?, ?, ?, ?)"
_PUT_ORIGIN = "INSERT OR REPLACE INTO origin (session, assistant, id, path, parent) VALUES (?, ?, ?, ?, ?)"
_PUT_FILE = "INSERT OR REPLACE INTO mirror_file (path, stamp, progress) VALUES (?, ?, ?)"


def list_files(connection: apsw.Connection) -> dict[str, MirroredFile]:
    """Return how far each file was read: path → stamp and progress."""
    rows = connection.execute("SELECT path, stamp, progress FROM mirror_file")
    return {
        path: MirroredFile(path, tuple(decode_as(stamp, list[int])), progress)
        for path, stamp, progress in rows
    }


def find(connection: apsw.Connection, assistant: str, program_id: str) -> MirroredSession | None:
    """Return the ledger's copy of a session of another assistant. Return None if the session was never
    copied.
    """
    columns = row(connection, _MIRRORED, assistant, program_id)
    if columns is None:
        return None
    workspace, name, turn, is_reported, path, parent = columns
    position = None if name is None else sessions.find(connection, workspace, name)
    return MirroredSession(
        SessionOrigin(assistant, program_id, path or "", parent),
        workspace,
        session=name,
        turn=turn,
        head=None if position is None else position.head,
        is_reported=bool(is_reported),
    )


def list_imported(connection: apsw.Connection) -> dict[str, tuple[str, str]]:
    """Return the sessions that were imported from files and are not copies of this kind: the program's id →
    workspace and name.
    """
    imported: dict[str, tuple[str, str]] = {}
    for workspace, name, text in connection.execute(_IMPORTED):
        program_id = value_of(text).get("id")
        if isinstance(program_id, str):
            imported[program_id] = (workspace, name)
    return imported


def write(connection: apsw.Connection, changes: Sequence[MirrorTurns], files: Iterable[MirroredFile]) -> None:
    """Write new turns, and how far files were read. Raise HeadMovedError if another program has written to
    one of the sessions meanwhile.
    """
    messages = (message for change in changes for turn in change.turns for message in turn.messages)
    is_much = sum(message.tokens for message in messages) > MUCH
    if is_much:
        connection.execute(_MERGE, (0,))
    for change in changes:
        _write_one(connection, change)
    if is_much:
        connection.execute(_MERGE, (_AT_ONCE,))
    for file in files:
        stamp = msgspec.json.encode(file.stamp).decode()
        connection.execute(_PUT_FILE, (file.path, stamp, file.progress))


def _write_one(connection: apsw.Connection, change: MirrorTurns) -> None:
    origin = change.origin
    if find(connection, origin.assistant, origin.id) != change.existing:
        raise HeadMovedError(change.name)
    end = _position(connection, change)
    moment = sessions.now()
    for turn in change.turns:
        end = turn_writer.put_query(connection, end, turn, moment)
        if turn.report is not None and end.turn is not None:
            usage_reports.write(connection, end.turn, turn.report)
    if change.turns:
        turn_writer.advance(connection, end, change.changed or moment)
    values = (origin.assistant, origin.id, end.session, end.head.turn, int(change.is_reported))
    connection.execute(_PUT, values)
    about = (origin.assistant, origin.id, origin.path, origin.parent)
    connection.execute(_PUT_ORIGIN, (end.session, *about))


def _position(connection: apsw.Connection, change: MirrorTurns) -> sessions.SessionPosition:
    """Where the turns go: to a new session, a fork, or behind what the writer saw."""
    after = change.after
    if after is None or after.session is None:
        name = forks.free_name(connection, change.workspace, sessions.fitting(change.name))
        position = sessions.begin(connection, change.workspace, name)
        if change.turns and change.turns[0].created:
            values = (change.turns[0].created, position.session)
            connection.execute("UPDATE session SET created = ? WHERE id = ?", values)
        return position
    position = sessions.require(connection, after.workspace, after.session)
    if change.base is not None:
        base = forks.base_of(connection, position, change.base)
        name = forks.free_name(connection, after.workspace, position.name, is_taken=True)
        return sessions.begin(connection, after.workspace, name, origin=position.session, base=base)
    if position.head != after.head:
        raise HeadMovedError(change.name)
    return position
