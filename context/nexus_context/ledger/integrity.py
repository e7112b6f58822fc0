"""Whether a file is a ledger of ours, and what becomes of one that is damaged or lacks what was acknowledged.

1. What a file is, is read from its header, through SQLite's own files: nothing is made beside it, and no lock
   that this process holds on it is lost.
2. A damaged index is made anew. Any other damage: the ledger is set aside, and stays as it was.
3. What lies beside a database is moved before it, so that it never comes to lie beside another one. The
   witness is moved last: if the process ends in between, the next one still knows that a ledger was there.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import apsw

from nexus_context.ledger import part_index, witness
from nexus_context.ledger.connections import File, connect, identity, leave
from nexus_context.ledger.migrations import APPLICATION, VERSION, migrate, version_of
from nexus_context.ledger.sqlite_errors import foreign, is_corrupt, newer

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


def repair(path: str, damaged: File | None) -> str | None:
    """Look through the ledger that seemed damaged, mend or set it aside; what the user should know of that.

    `damaged` is which file it was: nothing is done to one that came in its place.
    """
    with _alone(path):
        if identity(path) != damaged:
            return None
        claim = witness.claim(path)  # before the ledger: others may write in between
        try:
            connection = connect(path)
            try:
                reason = _reason(connection, claim)
                if reason is not None:
                    return _set_aside(path, reason)
                if _sound(connection):
                    return None
                _index_anew(connection)
                if _sound(connection):
                    connection.execute("COMMIT")
                    return f"An index of the ledger {path} was damaged and was made anew; nothing is lost."
            finally:
                leave(connection)  # undoes what did not help
        except witness.LostError as error:
            return _set_aside(path, str(error))
        except apsw.Error as error:
            if not is_corrupt(error) and not isinstance(error, apsw.ConstraintError):
                raise
        return _set_aside(path)


def set_aside(path: str, damaged: File | None, reason: str | None = None) -> str | None:
    """Move a damaged ledger away, if it is that file still; what the user should know of that.

    `reason`: why it is not all that was acknowledged, which is looked at once more.
    """
    with _alone(path):
        if identity(path) != damaged or (reason is not None and not _lost(path)):
            return None
        return _set_aside(path, reason)


def set_aside_remains(path: str) -> str | None:
    """Move away what is left beside a ledger that was emptied or removed."""
    with _alone(path):
        return _set_aside(path, "its file is empty or gone") if witness.emptied(path) else None


def damage_of(path: str) -> str | None:
    """What is wrong with a database that has no log beside it, such as a backup; None where nothing is."""
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
    """Take the ledger at `path` as it is for all that was acknowledged, or put `replacement` in its place.

    Returns where the ledger that was there has been moved to. OSError where that is not possible: then it
    stays in its place.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    aside = None
    with _alone(path):
        if replacement is not None:
            fresh = _free(path, "accepted")  # beside the ledger first: only then it makes room
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
    if reason is None:
        return (
            f"The ledger {path} was damaged: it was set aside as {target}, and a new one begun. "
            f"Bring back what can be read: nexus sessions salvage {target}"
        )
    return (
        f"The ledger {path} lacks what was acknowledged ({reason}): it was set aside as {target}, and a new "
        f"one begun. Bring back what can be read: nexus sessions salvage {target}. If you put it there "
        f"yourself, for example from a backup: nexus sessions verify --accept {target}"
    )


def _free(path: str, state: str) -> str:
    """A name beside the ledger that nothing has."""
    stamp = f"{path}.{state}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    target, number = stamp, 1
    while any(os.path.lexists(target + end) for end in ("", *BESIDE, witness.END)):
        number += 1
        target = f"{stamp}-{number}"
    return target


def _rename(path: str, target: str) -> None:
    """Move a database with what lies beside it."""
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
    """Why the ledger lacks what was acknowledged, as it is now."""
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
    """As `witness.lost`, at one moment: others may write meanwhile."""
    connection.execute("BEGIN")
    try:
        return witness.lost(connection, version_of(connection), claim)
    finally:
        connection.execute("COMMIT")


def _index_anew(connection: apsw.Connection) -> None:
    """Make all indexes anew, in a transaction that goes on."""
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
