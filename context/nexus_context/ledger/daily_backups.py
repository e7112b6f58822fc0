"""Makes verified copies of a ledger, one a day (UTC), in the directory `<ledger>.backups`, which only its
user can read.

1. A backup is made by `backup.write` if the ledger has changed since the newest backup. It is verified and
   synced before it gets its name, which is the day. If several processes make the same backup, the first to
   finish wins.
2. Then old backups are removed. KEPT backups of the ledger in use stay, and the newest backup of other
   ledgers: if a ledger is begun anew after damage, its backups do not push out the last backup of the damaged
   one.
3. No backup is made if the ledger is larger than LARGEST bytes or damaged, or if the disk has less room than
   twice the ledger's size and RESERVE bytes more.
4. A backup that holds a deleted session is removed, and another one is made soon. The backup is not edited,
   because the edited file would not be verified, and its journal would hold the deleted text once more.
5. Such backups are removed before the session and again after it. If the process ends in between, the session
   is still there and can be deleted again. A backup that was being made meanwhile is removed, too (`settle`).
"""

import os
import re
import shutil
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from nexus_context.ledger import backup

KEPT = 3
LARGEST = 1 << 30
"""Bytes of the largest ledger of which backups are made."""

RESERVE = 256 << 20
"""Bytes that a backup leaves free."""

_END = ".db"
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.db")
_UNFINISHED = ".new"
_ABANDONED_S = 3600.0
"""Age of an unfinished copy whose process has ended."""

_STATE = (
    "SELECT ledger.id, ifnull(max(mark.number), 0), mark.token FROM ledger LEFT JOIN mark GROUP BY ledger.id"
)
_KEYS = "SELECT key FROM thread"
_SESSION_KEYS = """
SELECT key FROM thread JOIN session ON session.id = thread.session
WHERE session.workspace = ? AND session.name = ?
"""


class DailyBackup(NamedTuple):
    """A backup: its day, such as `2026-11-28`, and its path."""

    day: str
    path: str


def directory_of(ledger: str) -> str:
    return f"{ledger}.backups"


def list_backups(ledger: str) -> list[DailyBackup]:
    """Return the backups of the ledger at a path, the newest first."""
    directory = directory_of(ledger)
    names = [name for name in _names(directory) if _DAY.fullmatch(name)]  # a user may put others there
    return [
        DailyBackup(name.removesuffix(_END), os.path.join(directory, name))
        for name in sorted(names, reverse=True)
    ]


def open_backup(path: str) -> apsw.Connection:
    """Open a file that nobody changes, for reading only. No other file is created beside it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"{Path(path).absolute().as_uri()}?immutable=1", flags=flags)


def is_due(connection: apsw.Connection, ledger: str) -> bool:
    """Whether to make a backup now of the ledger that the connection reads."""
    size = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
    if size > LARGEST or shutil.disk_usage(os.path.dirname(ledger)).free < 2 * size + RESERVE:
        return False
    if not connection.execute("SELECT EXISTS (SELECT 1 FROM session)").get:
        return False
    backups = list_backups(ledger)
    is_being_made = any(_age(path) < _ABANDONED_S for path in _unfinished(directory_of(ledger)))
    if is_being_made or any(daily_backup.day == _today() for daily_backup in backups):
        return False
    return not backups or _read(backups[0].path, _STATE) != connection.execute(_STATE).fetchall()


def write(connection: apsw.Connection, ledger: str) -> str | None:
    """Write today's backup of the ledger that the connection reads. Return its path, or None if another
    process has made it or a session was deleted meanwhile.

    It raises the same errors as `backup.write`. Call `settle` afterwards.
    """
    directory = directory_of(ledger)
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    path = os.path.join(directory, f"{_today()}{_END}")
    try:
        backup.write(connection, path)
    except (
        FileExistsError,
        FileNotFoundError,
    ):  # another process made it, or a session was deleted meanwhile
        return None
    return path


def settle(connection: apsw.Connection, ledger: str, path: str) -> None:
    """Remove the new backup if it has a session that was deleted meanwhile. Otherwise remove the backups that
    are too old.

    `connection` must read the ledger as it is after the backup was made.
    """
    identity = connection.execute(_STATE).fetchall()[0][:1]
    keys = set(connection.execute(_KEYS).fetchall())
    if _identity(path) == identity and not keys.issuperset(_read(path, _KEYS)):
        _remove(path)
        return
    own_count, other_count = 0, 0
    for daily_backup in list_backups(ledger):
        is_own = _identity(daily_backup.path) == identity
        own_count, other_count = own_count + is_own, other_count + (not is_own)
        if own_count > KEPT if is_own else other_count > 1:
            _remove(daily_backup.path)
    for abandoned in _unfinished(directory_of(ledger)):
        if _age(abandoned) > _ABANDONED_S:
            _remove(abandoned)


def threads_of_session(connection: apsw.Connection, workspace: str, session: str) -> set[str]:
    """Return the public ids of a session's threads. No other session ever has the same ids."""
    return {key for (key,) in connection.execute(_SESSION_KEYS, (workspace, session))}


def forget(ledger: str, threads: set[str]) -> None:
    """Remove the backups that hold one of these threads or cannot be read. Also remove copies that are still
    being made.
    """
    for path in _unfinished(directory_of(ledger)):
        _remove(path)
    for daily_backup in list_backups(ledger):  # after those: one may have got its name meanwhile
        keys = _read(daily_backup.path, _KEYS)
        if keys is None or not threads.isdisjoint(key for (key,) in keys):
            _remove(daily_backup.path)


def _read(path: str, statement: str) -> Any:
    """The rows of a backup; None if it cannot be read."""
    try:
        with closing(open_backup(path)) as connection:
            return connection.execute(statement).fetchall()
    except apsw.Error:
        return None


def _identity(path: str) -> Any:
    rows = _read(path, _STATE)
    return rows[0][:1] if rows else None


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _unfinished(directory: str) -> list[str]:
    return [os.path.join(directory, name) for name in _names(directory) if _UNFINISHED in name]


def _age(path: str) -> float:
    try:
        return time.time() - os.path.getmtime(path)
    except OSError:
        return 0.0


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
