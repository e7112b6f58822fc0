"""Verifying a whole ledger: SQLite's own check of the file, then the chain of every thread."""

import apsw

from nexus_context.ledger import chain
from nexus_context.ledger.records import Verification, Verified

MOST = 20
"""Lines of SQLite's check that are told."""

_KEPT = ("session", "thread", "turn", "message", "compaction")


def verify(connection: apsw.Connection) -> Verification:
    """All of it, in a transaction of the caller's. apsw.Error for a file that cannot be read."""
    said = damage(connection, entire=True)
    sessions = tuple(chain.verify(connection))
    return Verification(sessions, chain.unchained(connection), tuple(said.splitlines()) if said else ())


def damage(connection: apsw.Connection, *, entire: bool) -> str | None:
    """What SQLite finds wrong with the file, in lines; not `entire`: with what cannot be made anew."""
    checked = (str(MOST),) if entire else _KEPT
    found = [connection.execute(f"PRAGMA integrity_check({each})").fetchall() for each in checked]
    lines = [str(line) for rows in found for (line,) in rows if line != "ok"]
    return "\n".join(lines[:MOST]) or None


def broken(connection: apsw.Connection) -> Verified | None:
    """A session that is not what was written."""
    return next((each for each in chain.verify(connection) if each.broken is not None), None)
