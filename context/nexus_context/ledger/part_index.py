"""The index of parts of words: filling it for messages that an earlier version wrote.

1. New messages are indexed with their turn. Older ones are indexed in steps, newest thread first. Each step
   is a transaction, so that other writers run in between.
2. Steps run briefly at each opening and before each search. Until the index is complete, older messages are
   found by whole words, as before.
"""

import time
from collections.abc import Callable

import apsw

from nexus_context.ledger.sql import value
from nexus_context.ledger.unspaced_text import from_bytes

STEP = 500
"""Most messages per transaction."""
LONGEST = 1 << 20
"""Characters per transaction after which it ends."""

_BELOW = "SELECT below FROM part_missing"
# a damaged page may hold a text that is NULL, whatever the column's constraint says
_OLD = """
SELECT id, ifnull(CAST(said AS BLOB), x'') FROM message
WHERE id < ? AND NOT EXISTS (SELECT 1 FROM part_docsize WHERE part_docsize.id = message.id)
ORDER BY id DESC LIMIT ?
"""


def is_whole(connection: apsw.Connection) -> bool:
    """Whether the index has all messages that belong into it."""
    return not value(connection, _BELOW)


def fill(connection: apsw.Connection) -> bool:
    """Take one step in the caller's transaction; returns whether there is more to do."""
    below = value(connection, _BELOW)
    if not below:
        return False
    parts: list[tuple[int, str]] = []
    count = size = last = 0
    rows = connection.execute(_OLD, (below, STEP))
    for last, text in rows:
        count += 1
        if (part := from_bytes(text)) is not None:
            parts.append((last, part))
            size += len(part)
            if size > LONGEST:
                rows.close()
                break
    connection.executemany("INSERT INTO part (rowid, said) VALUES (?, ?)", parts)
    below = last if count == STEP or size > LONGEST else 0
    connection.execute("UPDATE part_missing SET below = ?", (below,))
    return bool(below)


def fill_for(seconds: float, step: Callable[[], bool]) -> None:
    """Take steps until everything is done or the time is up."""
    until = time.monotonic() + seconds
    while step() and time.monotonic() < until:
        pass


def fill_anew(connection: apsw.Connection) -> None:
    """Rebuild the index in the caller's transaction."""
    connection.execute("INSERT INTO part (part) VALUES ('delete-all')")
    connection.execute("UPDATE part_missing SET below = (SELECT ifnull(max(id) + 1, 0) FROM message)")
    while fill(connection):
        pass
