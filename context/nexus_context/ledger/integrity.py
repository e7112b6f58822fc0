"""Checks whether a file is a ledger, and repairs or sets aside one that is damaged or lacks acknowledged
writes.

1. The kind of a file is read from its header through SQLite's own file layer, so that no file is created
   beside it, and this process loses no lock on it.
2. A damaged index is rebuilt. With any other damage the ledger is set aside unchanged.
3. Files beside a database are moved before it, so that they never lie beside another database. The witness is
   moved last: if the process ends in between, the next process still knows that a ledger existed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import apsw

from nexus_context.ledger import daily_backups, part_index, witness
from nexus_context.ledger.connections import File, connect, identity, leave
from nexus_context.ledger.migrations import APPLICATION, VERSION, migrate, version_of
from nexus_context.ledger.sqlite_errors import foreign, is_corrupt, newer

BESIDE = ("-wal", "-shm", "-journal")
"""Files that SQLite creates beside a database."""

_MAGIC = b"SQLite format 3\0"
_HEADER = 100  # bytes
_LOOK = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY


def check_header(path: str) -> None:
    """Check the header of a file. Raise LedgerError for a newer ledger or another program's database, and
    apsw.NotADBError for any other file that is not empty.
    """
    data = _header(path)
    if not data:
        return
    if len(data) < _HEADER or not data.startswith(_MAGIC):
        raise apsw.NotADBError("it is not an SQLite database")
    check_kind(path, int.from_bytes(data[68:72], "big"), int.from_bytes(data[60:64], "big"))


def check_kind(path: str, application: int, version: int, *, tables: int = 0) -> None:
    """Raise LedgerError if the values of a header are those of another program's database or of a newer
    ledger.
    """
    if application not in (0, APPLICATION) or (not application and (version or tables)):
        raise foreign(path)
    if version > VERSION:
        raise newer(path, version)


def repair(path: str, damaged: File | None) -> str | None:
    """Check a ledger that seems damaged, and repair it or set it aside. Return a notice for the user, or None
    if it is intact.

    `damaged` is the identity of the damaged file. If another file has taken its place, nothing is done.
    """
    with _alone(path):
        if identity(path) != damaged:
            return None
        claim = witness.claim(path)  # read before the ledger: others may write in between
        try:
            connection = connect(path)
            try:
                reason = _reason(connection, claim)
                if reason is not None:
                    return _set_aside(path, reason)
                if _sound(connection):
                    return None
                _rebuild_indexes(connection)
                if _sound(connection):
                    connection.execute("COMMIT")
                    return f"An index of the ledger {path} was damaged and has been rebuilt; nothing is lost."
            finally:
                leave(connection)  # rolls back what did not help
        except witness.LostError as error:
            return _set_aside(path, str(error))
        except apsw.Error as error:
            if not is_corrupt(error) and not isinstance(error, apsw.ConstraintError):
                raise
        return _set_aside(path)


def set_aside(path: str, damaged: File | None, reason: str | None = None) -> str | None:
    """Move a damaged ledger away and return a notice for the user. Return None if the file at the path is not
    the file `damaged` any more.

    `reason` says which acknowledged writes the ledger lacks. If it is not None, that is checked again before
    the move.
    """
    with _alone(path):
        if identity(path) != damaged or (reason is not None and not _lost(path)):
            return None
        return _set_aside(path, reason)


def set_aside_remains(path: str) -> str | None:
    """Move away the files beside a ledger that was emptied or removed. Return a notice for the user, or None
    if there is nothing to move.
    """
    with _alone(path):
        return _set_aside(path, "its file is empty or gone") if witness.emptied(path) else None


def wait_for_move(path: str) -> None:
    """Wait as long as another process has moved a ledger away and not yet put another in its place."""
    if os.path.lexists(f"{path}.lock") and not os.path.lexists(path):
        with _alone(path):
            pass


def damage_of(path: str) -> str | None:
    """Return a description of the damage of a database without a log, such as a backup. Return None if it is
    intact, or if it has a log.
    """
    if any(os.path.lexists(path + end) for end in BESIDE):
        return None
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"{Path(path).absolute().as_uri()}?immutable=1", flags=flags)
    try:
        outcome = connection.execute("PRAGMA integrity_check(1)").get
    except apsw.Error as error:
        outcome = error
    finally:
        connection.close()
    return None if outcome == "ok" else str(outcome).partition("\n")[0]


def accept(path: str, replacement: str | None = None) -> str | None:
    """Accept the ledger at `path` as complete, or put the file `replacement` in its place.

    Return where the previous ledger was moved to, or None if it was not moved. If OSError is raised, the
    previous ledger is still in its place.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    aside = None
    with _alone(path):
        if replacement is not None:
            fresh = _free(path, "accepted")  # first beside the ledger, then in its place
            _rename(replacement, fresh)
            if any(os.path.lexists(path + end) for end in ("", *BESIDE)):
                aside = _move(path, _free(path, "replaced"))
            _rename(fresh, path)
        for stale in (path, replacement or path):
            with suppress(FileNotFoundError):
                os.unlink(stale + witness.END)
    return aside


def _set_aside(path: str, reason: str | None = None) -> str:
    target = _move(path, _free(path, "broken"))
    backups = daily_backups.list_backups(path)
    recover = f"Recover what can be read: nexus sessions salvage {target}"
    if backups:
        recover = f"Restore the backup of {backups[0].day}: nexus sessions restore. {recover}"
    if reason is None:
        return (
            f"The ledger {path} was damaged: it was set aside as {target}; a new one was started. {recover}"
        )
    return (
        f"The ledger {path} lacks acknowledged writes ({reason}): it was set aside as {target}, and a new "
        f"one begun. {recover}. If you put it there yourself, for example from a backup: nexus sessions "
        f"verify --accept {target}"
    )


def _free(path: str, state: str) -> str:
    """A free name beside the ledger."""
    stamp = f"{path}.{state}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    target, number = stamp, 1
    while any(os.path.lexists(target + end) for end in ("", *BESIDE, witness.END)):
        number += 1
        target = f"{stamp}-{number}"
    return target


def _rename(path: str, target: str) -> None:
    """Move a database with the files beside it."""
    for end in (*BESIDE, ""):
        with suppress(FileNotFoundError):
            os.rename(path + end, target + end)


def _move(path: str, target: str) -> str:
    _rename(path, target)
    if not os.path.lexists(target):  # salvage reads the log beside it
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with suppress(FileNotFoundError):
        os.rename(path + witness.END, target + witness.END)
    return target


def _lost(path: str) -> str | None:
    """Which acknowledged writes the ledger lacks now."""
    claim = witness.claim(path)
    try:
        connection = connect(path)
    except witness.LostError as error:
        return str(error)
    try:
        return _reason(connection, claim)
    finally:
        leave(connection)


def _reason(connection: apsw.Connection, claim: witness.Claim | None) -> str | None:
    """`witness.lost` at one moment: others may write meanwhile."""
    connection.execute("BEGIN")
    try:
        return witness.lost(connection, version_of(connection), claim)
    finally:
        connection.execute("COMMIT")


def _rebuild_indexes(connection: apsw.Connection) -> None:
    """Rebuild all indexes in a transaction that stays open."""
    connection.execute("BEGIN IMMEDIATE; REINDEX; INSERT INTO found (found) VALUES ('rebuild')")
    if version_of(connection) >= 4:
        part_index.fill_anew(connection)


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
    """The parts of the schema that our statements rely on: columns of tables, definitions of triggers."""
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
    """Let only one process at a time decide about a damaged ledger."""
    try:
        import fcntl
    except ImportError:  # Windows: an open file cannot be moved anyway
        yield
        return
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
