"""Writes a verified copy of a ledger in use, as it is at one moment, to a single file that only its user can
read.

1. SQLite's backup copies, page by page, the database as a reader sees it at one moment. Writers continue
   meanwhile.
2. The copy is not in write-ahead mode, so that it is a single file.
3. It is verified and synced before it gets its name, and never replaces an existing file.
"""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress

import apsw

from nexus_context.disk import cancellation
from nexus_context.ledger import chain, witness
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.sqlite_errors import failure

_PAGES = 4_000
"""Pages per step: other threads run between two steps."""


def write(
    connection: apsw.Connection, path: str, prepare: Callable[[apsw.Connection], object] = lambda _: None
) -> int:
    """Copy the ledger that the connection reads, as `Upkeep.backup` describes. Return the number of sessions.

    `prepare` may change the copy before it is verified.
    """
    if os.path.lexists(path):
        raise FileExistsError(path)
    fresh = f"{path}.{os.getpid()}-{secrets.token_hex(4)}.new"
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        sessions = _copy(connection, fresh, path, prepare)
        with open(fresh, "r+b") as file:
            os.fsync(file.fileno())
        witness.link(fresh, path)
        return sessions
    except apsw.Error as error:
        raise failure(error, path, "no backup was written") or error from error
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(fresh + end)


def _copy(
    connection: apsw.Connection, fresh: str, path: str, prepare: Callable[[apsw.Connection], object]
) -> int:
    """Copy and verify; returns the number of sessions."""
    copy = apsw.Connection(fresh)
    try:
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                cancellation.check()
                backup.step(_PAGES)
        copy.pragma("journal_mode", "delete")
        prepare(copy)
        with cancellation.interrupting(copy):
            result = chain.verify_ledger(copy)
    finally:
        copy.close()
    if result.sound:
        return len(result.sessions)
    broken = next((session for session in result.sessions if session.broken is not None), None)
    where = (
        result.damage[0] if broken is None else f"{broken.session!r} at turn {broken.broken}: {broken.reason}"
    )
    raise LedgerError(
        f"No backup was written to {path}: the ledger is damaged ({where}). nexus sessions verify shows "
        "the damage; nexus sessions export saves an intact session.",
        code="ledger-corrupt",
    )
