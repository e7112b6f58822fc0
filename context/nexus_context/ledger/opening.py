"""Opening a ledger: its place, its rights, its state.

1. The place is the path that is given, with `~/` for the user's home directory, else $NEXUS_STATE/ledger.db,
   else nexus/ledger.db where the system keeps a user's state.
2. A ledger of a newer version, and another program's database, is refused and not touched.
3. A damaged one is set aside with all that belongs to it, and a new one begun.
4. Where nothing can be written the ledger is in memory, with what can still be read copied into it.
"""

import errno
import os
import stat
import time
from collections.abc import Mapping

import apsw

from nexus_context.ledger import migrations, soundness
from nexus_context.ledger.connections import WAIT, Connections, File, configure, connect, identity, leave
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.failures import failure, is_corrupt, refused
from nexus_context.ledger.sqlite import SqliteLedger
from nexus_context.ledger.store import Ledger
from nexus_context.ledger.volatile import copied

NAME = "ledger.db"

_CANNOT_WRITE = ("ledger-read-only", "ledger-full")


class _Opening:
    """How a file is opened, now and whenever it must be opened anew; `notice` is what came of that."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.notice: str | None = None

    def ready(self) -> apsw.Connection:
        """The connection for writing to a ledger that is there, sound and of our version."""
        for last in (False, True):
            try:
                _make(self.path)
                file = identity(self.path)
                soundness.check_header(self.path)
                return _connected(self.path)
            except OSError as error:
                raise refused(error, self.path) from error
            except apsw.Error as error:
                if last or not is_corrupt(error):
                    raise failure(error, self.path, "it was not opened") or error from error
                self._put_right(file, error)
        raise AssertionError

    def mend(self, file: File | None) -> None:
        """Mend the ledger that SQLite called damaged, or set it aside."""
        try:
            self.notice = soundness.mend(self.path, file) or self.notice
        except OSError as error:
            raise refused(error, self.path) from error
        except apsw.Error as error:
            raise failure(error, self.path, "it was not looked through") or error from error

    def _put_right(self, file: File | None, error: apsw.Error) -> None:
        """Set a ledger aside that cannot be opened."""
        if isinstance(error, apsw.SQLError):  # it may as well be us: look first
            self.mend(file)
            return
        try:
            self.notice = soundness.set_aside(self.path, file) or self.notice
        except OSError as refusal:
            raise refused(refusal, self.path) from refusal


def workspace_of(folder: str) -> str:
    """What the ledger calls a folder: its absolute real path, as text also where its bytes are none.

    Raises ValueError for a path that no folder can have.
    """
    return os.fsencode(os.path.realpath(folder)).decode("utf-8", "backslashreplace")


def place(path: str | None, environ: Mapping[str, str]) -> str:
    """Absolute path of the ledger."""
    if path is not None:
        return _given(path, environ)
    if state := environ.get("NEXUS_STATE"):
        return os.path.join(state, NAME)
    import platformdirs

    return str(platformdirs.user_state_path("nexus", appauthor=False) / NAME)


def _given(path: str, environ: Mapping[str, str]) -> str:
    if path.startswith("~/"):
        home = environ.get("HOME") or environ.get("USERPROFILE") or ""
        path = os.path.join(home if os.path.isabs(home) else os.path.expanduser("~"), path[2:].lstrip("/"))
    if not os.path.isabs(path):
        raise LedgerError(
            f"The ledger's path {path!r} (ledger.path) is no absolute path: where it is would depend on the "
            "working directory. Write it from the root on, or with ~/ for your home directory.",
            code="ledger-read-only",
        )
    return path


def opened(path: str | None, environ: Mapping[str, str] | None) -> Ledger:
    """As `nexus_context.ledger.open_ledger`."""
    where = place(path, os.environ if environ is None else environ)
    opening = _Opening(where)
    try:
        if not os.path.isabs(where):
            raise LedgerError(
                f"{where!r} is no absolute path: where it is would depend on the working directory. "
                "Write the path from the root on.",
                code="ledger-read-only",
            )
        connections = Connections(where, opening.ready, opening.mend)
    except LedgerError as error:
        if error.code not in _CANNOT_WRITE:
            raise
        return _volatile(where, str(error))
    return SqliteLedger(connections, location=where, noticed=lambda: opening.notice)


def _volatile(path: str, reason: str) -> Ledger:
    """A ledger in memory, and why."""

    def begin() -> apsw.Connection:
        connection = apsw.Connection(":memory:")
        found = copied(path, connection)
        configure(connection)
        migrations.migrate(connection)
        notices.append(found)
        return connection

    notices: list[str | None] = []
    connections = Connections(None, begin)
    said = f"Nothing that is said is kept when Nexus ends. {reason}"
    notice = " ".join(part for part in (said, *notices) if part)
    return SqliteLedger(connections, location=path, noticed=lambda: notice)


# ---------------------------------------------------------------- the file


def _make(path: str) -> None:
    """The file, for this user only, where there is none; its folder, too."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no ordinary file")
    if stat.S_IMODE(found.st_mode) & 0o077 and hasattr(os, "geteuid") and found.st_uid == os.geteuid():
        os.chmod(path, 0o600)


def _connected(path: str) -> apsw.Connection:
    """Open, tried again where SQLite does not wait by itself: two that begin a ledger at once."""
    until = time.monotonic() + WAIT
    while True:
        connection = connect(path)
        try:
            _begin(path, connection)
        except apsw.BusyError:
            leave(connection)
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        except BaseException:
            leave(connection)
            raise
        else:
            return connection


def _begin(path: str, connection: apsw.Connection) -> None:
    connection.execute("BEGIN")  # at one moment: another may be making it
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    application, version = connection.pragma("application_id"), migrations.version_of(connection)
    connection.execute("COMMIT")
    soundness.check_kind(path, application, version, tables=tables)
    if connection.readonly("main"):
        raise apsw.ReadOnlyError("its rights are for reading only")
    connection.pragma("journal_mode", "wal")
    connection.pragma("journal_size_limit", 16 << 20)  # bytes that stay beside it after a long import
    if migrations.migrate(connection):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)  # the header says the version now
