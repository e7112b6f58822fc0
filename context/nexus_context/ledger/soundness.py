"""Whether a file is a ledger of ours, and what becomes of one that is damaged.

1. What a file is, is read from its header, through SQLite's own files: nothing is made beside it, and no lock
   that this process holds on it is lost.
2. A damaged index is made anew. Any other damage: the ledger is set aside, and stays as it was.
3. What lies beside a database is moved before it, so that it never comes to lie beside another one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import apsw

from nexus_context.ledger.connections import File, connect, identity, leave
from nexus_context.ledger.failures import foreign, is_corrupt, newer
from nexus_context.ledger.migrations import APPLICATION, VERSION, migrate, version_of

BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite puts beside a database."""

_MAGIC = b"SQLite format 3\0"
_HEADER = 100  # bytes
_LOOK = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY


def check_header(path: str) -> None:
    """LedgerError for a newer ledger and for another program's; apsw.NotADBError for what is no database."""
    data = _header(path)
    if not data:
        return
    if len(data) < _HEADER or not data.startswith(_MAGIC):
        raise apsw.NotADBError("it is no SQLite database")
    check_kind(path, int.from_bytes(data[68:72], "big"), int.from_bytes(data[60:64], "big"))


def check_kind(path: str, application: int, version: int, *, tables: int = 0) -> None:
    """LedgerError for the numbers of another program's database, and for those of a newer ledger."""
    if application not in (0, APPLICATION) or (not application and (version or tables)):
        raise foreign(path)
    if version > VERSION:
        raise newer(path, version)


def mend(path: str, damaged: File | None) -> str | None:
    """Look through the ledger that seemed damaged, mend or set it aside; what the user should know of that.

    `damaged` is which file it was: nothing is done to one that came in its place.
    """
    with _alone(path):
        if identity(path) != damaged:
            return None
        try:
            connection = connect(path)
            try:
                if _sound(connection):
                    return None
                connection.execute("BEGIN IMMEDIATE; REINDEX; INSERT INTO found (found) VALUES ('rebuild')")
                if _sound(connection):
                    connection.execute("COMMIT")
                    return f"An index of the ledger {path} was damaged and was made anew; nothing is lost."
            finally:
                leave(connection)  # undoes what did not help
        except apsw.Error as error:
            if not is_corrupt(error) and not isinstance(error, apsw.ConstraintError):
                raise
        return _set_aside(path)


def set_aside(path: str, damaged: File | None) -> str | None:
    """Move a damaged ledger away, if it is that file still; what the user should know of that."""
    with _alone(path):
        return _set_aside(path) if identity(path) == damaged else None


def _set_aside(path: str) -> str:
    stamp = f"{path}.broken-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    target, number = stamp, 1
    while any(os.path.lexists(target + end) for end in ("", *BESIDE)):
        number += 1
        target = f"{stamp}-{number}"
    for end in (*BESIDE, ""):
        with suppress(FileNotFoundError):
            os.rename(path + end, target + end)
    return (
        f"The ledger {path} was damaged: it was set aside as {target}, and a new one begun. "
        f"Bring back what can be read: nexus sessions salvage {target}"
    )


def _sound(connection: apsw.Connection) -> bool:
    if connection.execute("PRAGMA integrity_check(1)").get != "ok":
        return False
    if version_of(connection) < VERSION:
        return True
    fresh = apsw.Connection(":memory:")
    try:
        migrate(fresh)
        return _schema(fresh) == _schema(connection)
    except UnicodeDecodeError:
        return False
    finally:
        fresh.close()


def _schema(connection: apsw.Connection) -> list[tuple[object, ...]]:
    """What our statements rely on: columns of tables, texts of triggers."""
    columns = connection.execute(
        "SELECT t.name, c.name, c.type FROM sqlite_schema AS t, pragma_table_info(t.name) AS c"
        " WHERE t.type = 'table' ORDER BY 1, 2"
    ).fetchall()
    triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY 1")
    return [*columns, *triggers]


def _header(path: str) -> bytes:
    file = apsw.VFSFile("", path, [_LOOK, 0])
    try:
        return file.xRead(min(file.xFileSize(), _HEADER), 0)
    finally:
        file.xClose()


@contextmanager
def _alone(path: str) -> Iterator[None]:
    """Only one process at a time decides about a damaged ledger."""
    try:
        import fcntl
    except ImportError:  # Windows, where an open file cannot be moved anyway
        yield
        return
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
