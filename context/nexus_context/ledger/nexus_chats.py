"""Finds when a user last talked with Nexus itself in a folder, without opening the ledger for writing."""

from collections.abc import Mapping
from contextlib import closing
from os import sep

import apsw

from nexus_context.disk.files import file_stamp
from nexus_context.disk.read_only_database import connect
from nexus_context.disk.user_state import NoStateDirectoryError
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.location import place, workspace_of

_PATIENCE_MS = 50
_LAST = """
SELECT max(turn.created) FROM session
JOIN thread ON thread.id = session.thread
JOIN turn ON turn.id = (thread.id << 32) + thread.seq
WHERE (session.workspace = ?1 OR (session.workspace > ?2 AND session.workspace < ?3))
AND ifnull(turn.event, '') NOT LIKE '{"type":"import"%'
"""
"""Only the last turn of each session is looked at: the time does not grow with their histories."""


def last_nexus_turn(path: str | None, environ: Mapping[str, str], folder: str) -> str | None:
    """Return the time (ISO 8601, UTC) of the last turn of a chat with Nexus in a folder, or in a folder
    inside it. Return None if there was no chat, or if the ledger is missing or cannot be read now.

    Conversations of other programs count only if they were continued in Nexus. `path` is the setting
    `ledger.path`.
    """
    try:
        location, workspace = place(path, environ), workspace_of(folder)
    except (NoStateDirectoryError, LedgerError, ValueError):
        return None
    if file_stamp(location) is None:
        return None
    folder_prefix = workspace.rstrip(sep) + sep
    try:
        with closing(
            connect(location, owner="Nexus", patience_ms=_PATIENCE_MS, is_written_here=True)
        ) as connection:
            row = connection.execute(
                _LAST, (workspace, folder_prefix, f"{folder_prefix[:-1]}{chr(ord(sep) + 1)}")
            ).fetchone()
    except (apsw.Error, OSError):
        return None
    return None if row is None or row[0] is None else str(row[0])
