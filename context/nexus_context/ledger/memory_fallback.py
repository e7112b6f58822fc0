"""What can be read of a ledger that cannot be written, copied into memory."""

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
    """Copy the ledger at `path` into an empty database; what the user should know of that.

    LedgerError for one that must not be touched: newer, or another program's.
    """
    claim = witness.claim(path)  # before the ledger: others may write in between
    if witness.emptied(path):
        return "What it held cannot be read: its file is empty or gone."
    size = _size(path)
    if not size:
        return None
    if size > COPIED:
        return (
            f"What it holds ({size >> 20:,} MB) is not shown: at most {COPIED >> 20} MB are read into memory."
        )
    try:
        _copy(path, into)
    except (apsw.Error, OSError) as error:
        return f"What it holds cannot be read ({error})."
    try:
        reason = witness.lost(into, migrations.version_of(into), claim)
    except apsw.Error as error:  # it is damaged: memory begins empty
        _replace(apsw.Connection(":memory:"), into)
        return f"What it holds cannot be read ({error})."
    if reason is not None:
        return f"It lacks what was acknowledged ({reason}); the rest can be read."
    return "What it holds can be read."


def _copy(path: str, into: apsw.Connection) -> None:
    try:
        source = apsw.Connection(f"file:{quote(path)}?mode=ro", flags=_URI)
        _backup(path, source, into)
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        # beside a file in write-ahead mode something must be written, if only to read it
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
