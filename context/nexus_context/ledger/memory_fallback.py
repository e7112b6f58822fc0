"""Copies the readable part of a ledger that cannot be written into memory."""

import os
import shutil
import tempfile
from contextlib import suppress
from urllib.parse import quote

import apsw

from nexus_context.ledger import migrations, witness
from nexus_context.ledger.integrity import check_kind

_URI = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

COPIED = 256 << 20
"""Largest ledger, in bytes, that is copied."""


def copied(path: str, into: apsw.Connection) -> str | None:
    """Copy the ledger at `path` into an empty database; returns a notice for the user.

    LedgerError for a newer ledger or another program's database.
    """
    claim = witness.claim(path)  # before the ledger: others may write in between
    if witness.emptied(path):
        return "Its content cannot be read: the file is empty or gone."
    size = _size(path)
    if not size:
        return None
    if size > COPIED:
        return (
            f"Its content ({size >> 20:,} MB) is not shown: at most {COPIED >> 20} MB are read into memory."
        )
    try:
        _copy(path, into)
    except (apsw.Error, OSError) as error:
        return f"Its content cannot be read ({error})."
    try:
        reason = witness.lost(into, migrations.version_of(into), claim)
    except apsw.Error as error:  # damaged: start empty
        _replace(apsw.Connection(":memory:"), into)
        return f"Its content cannot be read ({error})."
    if reason is not None:
        return f"It lacks acknowledged writes ({reason}); the rest can be read."
    return "Its content can be read."


def _copy(path: str, into: apsw.Connection) -> None:
    try:
        source = apsw.Connection(f"file:{quote(path)}?mode=ro", flags=_URI)
        _backup(path, source, into)
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # reading in write-ahead mode needs files beside the database
        with tempfile.TemporaryDirectory(prefix="nexus-") as folder:
            copy = os.path.join(folder, "ledger.db")
            for end in ("", "-wal"):
                if os.path.exists(path + end):
                    shutil.copyfile(path + end, copy + end)
            _backup(path, apsw.Connection(copy), into)


def _backup(path: str, source: apsw.Connection, into: apsw.Connection) -> None:
    try:
        tables = source.execute("SELECT count(*) FROM sqlite_schema").get
        check_kind(path, source.pragma("application_id"), migrations.version_of(source), tables=tables)
    except BaseException:
        source.close()
        raise
    _replace(source, into)


def _replace(source: apsw.Connection, into: apsw.Connection) -> None:
    try:
        with into.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(1000)
    finally:
        source.close()


def _size(path: str) -> int:
    total = 0
    for end in ("", "-wal"):
        with suppress(OSError):
            total += os.path.getsize(path + end)
    return total
