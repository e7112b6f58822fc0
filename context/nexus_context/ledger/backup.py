"""A copy of a ledger that is in use: of one moment, verified, in one file for its user only.

1. SQLite's backup copies page by page what a reader sees; writers go on.
2. The copy is not in write-ahead mode, so that the file alone is all of it.
3. It is verified and synced before it gets its name, and never takes a name that something has.
"""

import os
import secrets
from contextlib import suppress

import apsw

from nexus_context.ledger import verification, witness
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.sqlite_errors import failure

_PAGES = 4_000
"""Pages that are copied at once: between two steps other threads have their turn."""


def write(connection: apsw.Connection, path: str) -> int:
    """Copy what the connection reads; see `Ledger.backup`."""
    if os.path.lexists(path):
        raise FileExistsError(path)
    fresh = f"{path}.{os.getpid()}-{secrets.token_hex(4)}.new"
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        sessions = _copy(connection, fresh, path)
        _sync(fresh)
        witness.link(fresh, path)
        return sessions
    except apsw.Error as error:
        raise failure(error, path, "no backup was written") or error from error
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(fresh + end)


def _copy(connection: apsw.Connection, fresh: str, path: str) -> int:
    """The copy, with a check of it; the number of its sessions."""
    copy = apsw.Connection(fresh)
    try:
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(_PAGES)
        copy.pragma("journal_mode", "delete")
        result = verification.verify(copy)
    finally:
        copy.close()
    if result.sound:
        return len(result.sessions)
    broken = next((each for each in result.sessions if each.broken is not None), None)
    where = (
        result.damage[0] if broken is None else f"{broken.session!r} at turn {broken.broken}: {broken.reason}"
    )
    raise LedgerError(
        f"No backup was written to {path}: the ledger is not what was written ({where}). nexus sessions "
        "verify says what is wrong; nexus sessions export saves a session that is sound.",
        code="ledger-corrupt",
    )


def _sync(path: str) -> None:
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
