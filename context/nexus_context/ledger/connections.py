"""Manages the connections to one database: one that writes, and several that read.

1. A write transaction is BEGIN IMMEDIATE and atomic. Writers take turns.
2. A reader sees one moment, whatever is written meanwhile.
3. If another process holds the database, a connection waits in short random steps. It waits HELD seconds
   while nothing is written, because then the other process hangs or left the database locked. It waits at
   most WAIT seconds while other processes take turns.
4. If a file was moved or removed while it is open, it is no longer written; the file that took its place is.
   A write during the move fails, so that no caller takes it for stored.
5. After each commit the witness is updated before anything else.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import apsw
import msgspec

from nexus_context.disk import cancellation
from nexus_context.ledger import witness
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.migrations import VERSION, version_of
from nexus_context.ledger.sqlite_errors import damaged, failure, is_corrupt, newer

File = tuple[int, int]
"""Identity of a file: device and inode."""

HELD = 2.0
"""Seconds to wait while the database is held but nothing is written: people wait for an answer."""

WAIT = 30.0
"""Most seconds that a writer waits for other processes."""

_STEP = 0.005  # seconds, the longest wait between two attempts
_SOON = 1.0  # seconds to wait for readers before the log is emptied
_IDLE = 4  # readers that are pooled

_SETTINGS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA synchronous = FULL",
)


class Patience:
    """Waits by rule 3 while the database is locked: in short random steps, so that many writers do not try at
    the same time.
    """

    def __init__(self, path: str, *, held: float | None = None) -> None:
        self._log = f"{path}-wal"
        self._held = HELD if held is None else held
        self._until = self._end = 0.0
        self._before: tuple[int, int] | None = None
        self._begin()

    def __call__(self, tried: int) -> bool:
        """Whether to try again, after a sleep; `tried` counts from 0."""
        if tried == 0:
            self._begin()
        now = time.monotonic()
        if now >= self._until:
            written = self._written()
            if written == self._before or now >= self._end:
                return False
            self._before, self._until = written, min(now + self._held, self._end)
        time.sleep(random.uniform(0.0005, _STEP))  # noqa: S311  # not a secret
        return True

    def _begin(self) -> None:
        now = time.monotonic()
        self._until, self._end = now + self._held, now + WAIT
        self._before = self._written()

    def _written(self) -> tuple[int, int] | None:
        """A value that changes with every write."""
        try:
            log = os.stat(self._log)
        except OSError:
            return None
        return log.st_mtime_ns, log.st_size


def connect(path: str, *, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """Open a configured connection to the database at a path.

    Raise LostError if the file is empty and has a log beside it, because SQLite would remove the log.
    """
    if witness.emptied(path):
        raise witness.LostError("its file is empty or gone")
    connection = apsw.Connection(path, flags=flags)
    try:
        connection.set_busy_handler(Patience(path))
        configure(connection)
    except BaseException:
        leave(connection)
        raise
    return connection


def leave(connection: apsw.Connection) -> None:
    """Close a connection without changing the file."""
    with suppress(apsw.Error):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def configure(connection: apsw.Connection) -> None:
    """Apply the settings that all connections share."""
    for setting in _SETTINGS:
        connection.execute(setting)


def identity(path: str | None) -> File | None:
    """Return device and inode of the file at a path. Return None if `path` is None or there is no file."""
    if path is None:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class Connections:
    """The connections to the database at `path`. Any thread may use them.

    `open_writer` opens the connection that writes. `on_damage` is called with the identity of a damaged file;
    afterwards all connections are opened again. If `path` is None, the database is in memory, and one
    connection does everything.
    """

    def __init__(
        self,
        path: str | None,
        open_writer: Callable[[], apsw.Connection],
        on_damage: Callable[[File | None], None] = lambda _: None,
    ) -> None:
        self.path = path
        self._open_writer = open_writer
        self._on_damage = on_damage
        self._lock = threading.RLock()
        self._closed = False
        self._idle: list[apsw.Connection] = []
        self._age = 0  # grows with every reopening: older readers are not reused
        self._checked_age = -1  # the age at which the file was last checked
        self._watch: apsw.Connection | None = None
        self._watching = threading.Lock()
        self._witness = None if path is None else witness.Witness(path)
        self._writer: apsw.Connection | None = open_writer()
        self._file = identity(path)

    @contextmanager
    def writing(self, *, reads: str | None = None) -> Iterator[apsw.Connection]:
        """Return a context in which the writing connection has a transaction. It is committed at the end, and
        rolled back by any exception.

        `reads` is the name of a session whose history is read in order to write. It is named if its data
        turns out to be damaged.
        """
        damage_reporter = nullcontext() if reads is None else self._reporting_damage(reads)
        with self._lock, self._translated("nothing was written"), damage_reporter:
            self._reopen_if_replaced()
            connection = self._begun()
            try:
                if identity(self.path) != self._file:  # replaced while waiting
                    connection.execute("ROLLBACK")
                    self._open_anew()
                    connection = self._begun()
                self._check_version(connection)
                changes_before = connection.total_changes()
                yield connection
                ledger, mark = witness.mark(connection, changed=connection.total_changes() > changes_before)
                if self._witness is not None and mark.number < self._witness.number_of(ledger):
                    raise witness.LostError("it was replaced while it was open")
                connection.execute("COMMIT")
            except BaseException:
                self._undo(connection)
                raise
            if self._witness is not None:
                self._check_not_moved()
                self._witness.record(ledger, mark)

    @contextmanager
    def reading(self, session: str | None = None, *, fresh: bool = False) -> Iterator[apsw.Connection]:
        """Return a context with a connection that reads the database as it is at one moment. `session` is
        named in error messages.

        With `fresh`, the connection has read nothing before, because SQLite's check of an index would compare
        the index with the connection's cache.
        """
        with self._reporting_damage(session):
            if self.path is None:
                with self._lock, self._translated("it was not read"):
                    self._check_open()
                    yield self._writing_one()
                return
            with self._one_reader(fresh=fresh) as connection:
                yield connection

    def version(self) -> int:
        """Return a number that changes whenever another connection, of any process, has written."""
        if self.path is None:
            self._check_open()
            return 0
        with self._translated("it was not read"):
            self._reopen_if_replaced()
            with self._watching:
                if self._watch is None:
                    self._watch = self._connect()
                return int(self._watch.pragma("data_version")) + (self._age << 32)

    def checkpoint(self) -> None:
        """Move the log into the main file and empty it, if no other connection is reading."""
        with self._lock:
            if self.path is None or self._closed:
                return
            connection = self._writing_one()
            connection.set_busy_handler(Patience(self.path, held=_SOON))
            with suppress(apsw.Error):  # the writes are safe; the next checkpoint moves them
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            connection.set_busy_handler(Patience(self.path))
            self._touch()

    def close(self) -> None:
        """Close all connections. A connection that is being read closes when its reader is done."""
        with self._lock:
            self._closed = True
            self._shut()
            self._touch()
            if self._witness is not None:
                self._witness.close()

    # ------------------------------------------------------------ inside

    @contextmanager
    def _one_reader(self, *, fresh: bool) -> Iterator[apsw.Connection]:
        with self._translated("it was not read"):
            self._reopen_if_replaced()
            age, connection = self._age, self._connect() if fresh else self._reader()
            try:
                with cancellation.interrupting(connection):
                    connection.execute("BEGIN")
                    self._check_version(connection)
                    yield connection
            except apsw.InterruptError:
                cancellation.check()
                raise
            finally:
                if not _ended(connection) or self._closed or age != self._age or len(self._idle) >= _IDLE:
                    connection.close()
                else:
                    self._idle.append(connection)

    def _reopen_if_replaced(self) -> None:
        """Reopen if another file is at the path now."""
        self._check_open()
        if self.path is None or (self._writer is not None and identity(self.path) == self._file):
            return
        with self._lock:
            self._check_open()
            if self._writer is None or identity(self.path) != self._file:
                self._open_anew()

    def _check_not_moved(self) -> None:
        if identity(self.path) != self._file:
            raise LedgerError(
                f"The ledger {self.path} was moved or replaced while this was written: the one that was "
                "moved has it. Try again.",
                code="ledger-moved",
            )

    def _open_anew(self) -> None:
        self._shut()
        self._writer = self._open_writer()
        self._file = identity(self.path)

    def _shut(self) -> None:
        self._age += 1
        while self._idle:
            self._idle.pop().close()
        with self._watching:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _begun(self) -> apsw.Connection:
        connection = self._writing_one()
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def _undo(self, connection: apsw.Connection) -> None:
        # another one, or none, if the file was replaced meanwhile: this one is closed
        if connection is self._writer and not _ended(connection) and self.path is not None:
            connection.close()
            self._writer = None

    def _writing_one(self) -> apsw.Connection:
        if self._writer is None:
            self._writer = self._open_writer()
        return self._writer

    def _reader(self) -> apsw.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _connect(self) -> apsw.Connection:
        # used by one thread at a time: no lock for each value
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
        connection = connect(self.path or "", flags=flags)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerError("The ledger is closed; open it again.", code="ledger-closed")

    def _check_version(self, connection: apsw.Connection) -> None:
        """A newer program may have changed the format meanwhile."""
        version = version_of(connection)
        if version > VERSION:
            raise newer(self.path or "in memory", version)

    @contextmanager
    def _translated(self, outcome: str) -> Iterator[None]:
        """Translate errors of SQLite to LedgerError; a damaged database is repaired or set aside first."""
        try:
            yield
        except apsw.Error as error:
            translated = failure(error, self.path or "in memory", outcome, number=self._system_number())
            if translated is None or (is_corrupt(error) and not self._put_right(error)):
                raise
            raise translated from error
        except UnicodeEncodeError as error:
            raise LedgerError(
                f"A name holds a character that cannot be stored ({error}); {outcome}. Use another name.",
                code="bad-text",
            ) from error

    def _put_right(self, error: apsw.Error) -> bool:
        """Have the file repaired or set aside; False if one of our statements is wrong instead."""
        if self.path is None:
            return False
        with self._lock:
            damaged = self._file
            self._on_damage(damaged)
            untouched = identity(self.path) == damaged
            self._open_anew()
            if self._witness is not None:
                self._witness.close()  # the error says that the file was replaced; the next write goes on
        return not (untouched and isinstance(error, apsw.SQLError))

    def _touch(self) -> None:
        """Tell the witness that SQLite may have moved the log into the file."""
        if self._witness is not None:
            self._witness.touch()

    def _system_number(self) -> int:
        """The error number of the system's last error."""
        with self._lock:
            return 0 if self._writer is None else self._writer.system_errno

    @contextmanager
    def _reporting_damage(self, session: str | None) -> Iterator[None]:
        """Report data that is not what was written; SQLite does not see all damage."""
        try:
            yield
        except UnicodeEncodeError:
            raise
        except (ValueError, LookupError, TypeError, msgspec.MsgspecError) as error:
            with self._lock:
                if self._checked_age != self._age and self.path is not None:
                    self._on_damage(self._file)
                    self._checked_age = self._age
            raise damaged(self.path or "in memory", session, error) from error


def _ended(connection: apsw.Connection) -> bool:
    """End a transaction. False if it continues.

    It continues if the disk failed, or if an exception that is still referenced holds a cursor: the cursor
    keeps the transaction open.
    """
    if connection.in_transaction:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")
    return bool(connection.txn_state() == apsw.SQLITE_TXN_NONE)


class Database:
    """Holds the connections of a ledger. They are replaced when the ledger moves from memory to the disk."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections

    def reading(
        self, session: str | None = None, *, fresh: bool = False
    ) -> AbstractContextManager[apsw.Connection]:
        """Return the context of `Connections.reading`."""
        return self.connections.reading(session, fresh=fresh)

    def writing(self, *, reads: str | None = None) -> AbstractContextManager[apsw.Connection]:
        """Return the context of `Connections.writing`."""
        return self.connections.writing(reads=reads)
