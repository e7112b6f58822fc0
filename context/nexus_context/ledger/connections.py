"""The connections to one database: one that writes, some that read beside it.

1. A transaction that writes is BEGIN IMMEDIATE, and is all there or not at all. Writers take turns.
2. A reader sees one moment, whatever is written meanwhile.
3. Whoever finds the database held by another process waits in short random steps: HELD seconds while nothing
   is written, for then it hangs or was left locked, and WAIT seconds at most while others take their turns.
4. A file that was moved away or removed while it was open is not written any more: the one at its place is.
5. After each commit the witness hears of it, before anybody else does.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import apsw
import msgspec

from nexus_context.ledger import witness
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.migrations import VERSION, version_of
from nexus_context.ledger.sqlite_errors import damaged, failure, is_corrupt, newer

File = tuple[int, int]
"""Which file it is, whatever its name: device and inode."""

HELD = 2.0
"""Seconds for which the database may be held while nothing is written to it: people wait for an answer."""

WAIT = 30.0
"""Seconds that a writer waits for other processes at most."""

_STEP = 0.005  # seconds, the longest of the waits between two tries
_SOON = 1.0  # seconds to wait for readers to let the file beside the database be emptied
_IDLE = 4  # readers that are kept for the next one

_SETTINGS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA synchronous = FULL",
)


class Patience:
    """A busy handler by rule 3: short random sleeps, so that many writers do not try in step."""

    def __init__(self, path: str, *, held: float | None = None) -> None:
        self._log = f"{path}-wal"
        self._held = HELD if held is None else held
        self._until = self._end = 0.0
        self._before: tuple[int, int] | None = None
        self._begin()

    def __call__(self, tried: int) -> bool:
        """Whether to try again, after a sleep; `tried` counts the times, from 0."""
        if tried == 0:
            self._begin()
        now = time.monotonic()
        if now >= self._until:
            written = self._written()
            if written == self._before or now >= self._end:
                return False
            self._before, self._until = written, min(now + self._held, self._end)
        time.sleep(random.uniform(0.0005, _STEP))  # noqa: S311  # no secret
        return True

    def _begin(self) -> None:
        now = time.monotonic()
        self._until, self._end = now + self._held, now + WAIT
        self._before = self._written()

    def _written(self) -> tuple[int, int] | None:
        """Another value after somebody wrote."""
        try:
            log = os.stat(self._log)
        except OSError:
            return None
        return log.st_mtime_ns, log.st_size


def connect(path: str, *, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """A connection to the database of that path, with the settings of all.

    LostError for an empty file beside a log: SQLite would remove the log.
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
    """Close a connection and change nothing by that."""
    with suppress(apsw.Error):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def configure(connection: apsw.Connection) -> None:
    """The settings of all connections."""
    for setting in _SETTINGS:
        connection.execute(setting)


def identity(path: str | None) -> File | None:
    """Which file is at a path; None where there is none."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Connections:
    """The connections to the database at `path`, which `opened` opens for writing; safe for several threads.

    `mended` is told which file turned out to be damaged; afterwards all is opened anew. With no `path` the
    database is in memory: one connection does everything.
    """

    def __init__(
        self,
        path: str | None,
        opened: Callable[[], apsw.Connection],
        mended: Callable[[File | None], None] = lambda _: None,
    ) -> None:
        self.path = path
        self._opened = opened
        self._mended = mended
        self._lock = threading.RLock()
        self._closed = False
        self._idle: list[apsw.Connection] = []
        self._age = 0  # grows when all is opened anew: readers of before are not used again
        self._looked = -1  # the age at which the file was looked through
        self._watch: apsw.Connection | None = None
        self._watching = threading.Lock()
        self._witness = None if path is None else witness.Witness(path)
        self._writer: apsw.Connection | None = opened()
        self._file = identity(path)

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """The connection that writes, in a transaction: committed at the end, undone by any exception."""
        with self._lock, self._told("nothing was written"):
            self._follow()
            connection = self._begun()
            try:
                if identity(self.path) != self._file:  # while we waited for our turn
                    connection.execute("ROLLBACK")
                    self._open_anew()
                    connection = self._begun()
                self._check_version(connection)
                before = connection.total_changes()
                yield connection
                ledger, mark = witness.mark(connection, changed=connection.total_changes() > before)
                self._check_mark(ledger, mark)
                connection.execute("COMMIT")
            except BaseException:
                self._undo(connection)
                raise
            if self._witness is not None:
                self._witness.record(ledger, mark)

    @contextmanager
    def reading(self, session: str | None = None, *, fresh: bool = False) -> Iterator[apsw.Connection]:
        """A connection that reads, at one moment; `session`: what is read, for the message of an error.

        `fresh`: one that has read nothing: SQLite's check of an index compares it with what it remembers.
        """
        with self._whole(session):
            if self.path is None:
                with self._lock:
                    self._check_open()
                    yield self._writing_one()
                return
            with self._one_reader(fresh=fresh) as connection:
                yield connection

    def version(self) -> int:
        """Another number after any process wrote."""
        if self.path is None:
            self._check_open()
            return 0
        with self._told("it was not read"):
            self._follow()
            with self._watching:
                if self._watch is None:
                    self._watch = self._connect()
                return int(self._watch.pragma("data_version")) + (self._age << 32)

    def checkpoint(self) -> None:
        """Bring what was written into the main file and empty the file beside it, if nobody reads."""
        with self._lock:
            if self.path is None or self._closed:
                return
            connection = self._writing_one()
            connection.set_busy_handler(Patience(self.path, held=_SOON))
            with suppress(apsw.Error):  # what was written is safe; the next checkpoint does it
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            connection.set_busy_handler(Patience(self.path))
            self._touch()

    def close(self) -> None:
        """Close all; whoever is reading closes his own when he is done."""
        with self._lock:
            self._closed = True
            self._shut()
            self._touch()
            if self._witness is not None:
                self._witness.close()

    # ------------------------------------------------------------ inside

    @contextmanager
    def _one_reader(self, *, fresh: bool) -> Iterator[apsw.Connection]:
        with self._told("it was not read"):
            self._follow()
            age, connection = self._age, self._connect() if fresh else self._reader()
            try:
                connection.execute("BEGIN")
                self._check_version(connection)
                yield connection
            finally:
                self._give_back(connection, age)

    def _follow(self) -> None:
        """Go on with the file that is at the path now, should it be another one."""
        self._check_open()
        if self.path is None or (self._writer is not None and identity(self.path) == self._file):
            return
        with self._lock:
            self._check_open()
            if self._writer is None or identity(self.path) != self._file:
                self._open_anew()

    def _open_anew(self) -> None:
        self._shut()
        self._writer = self._opened()
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
        if not _ended(connection) and self.path is not None:
            connection.close()
            self._writer = None

    def _writing_one(self) -> apsw.Connection:
        if self._writer is None:
            self._writer = self._opened()
        return self._writer

    def _reader(self) -> apsw.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _connect(self) -> apsw.Connection:
        # one thread at a time has it: no lock is taken for each value that is read
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
        connection = connect(self.path or "", flags=flags)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _give_back(self, connection: apsw.Connection, age: int) -> None:
        if not _ended(connection) or self._closed or age != self._age or len(self._idle) >= _IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerError("The ledger is closed; open it again.", code="ledger-closed")

    def _check_version(self, connection: apsw.Connection) -> None:
        """A newer program may have been started meanwhile, and have changed the format."""
        version = version_of(connection)
        if version > VERSION:
            raise newer(self.path or "in memory", version)

    @contextmanager
    def _told(self, outcome: str) -> Iterator[None]:
        """What SQLite reports, as LedgerError; a damaged database is mended or set aside first."""
        try:
            yield
        except apsw.Error as error:
            told = failure(error, self.path or "in memory", outcome, number=self._system_number())
            if told is None or (is_corrupt(error) and not self._put_right(error)):
                raise
            raise told from error
        except UnicodeEncodeError as error:
            raise LedgerError(
                f"A name holds a character that cannot be kept ({error}); {outcome}. Use another name.",
                code="bad-text",
            ) from error

    def _put_right(self, error: apsw.Error) -> bool:
        """Have the file mended or set aside; False where a statement of ours is wrong instead."""
        if self.path is None:
            return False
        with self._lock:
            damaged = self._file
            self._mended(damaged)
            untouched = identity(self.path) == damaged
            self._open_anew()
        return not (untouched and isinstance(error, apsw.SQLError))

    def _check_mark(self, ledger: bytes, mark: witness.Mark) -> None:
        """What this process has recorded is still there, whatever became of the file meanwhile."""
        if self._witness is not None and mark.number < self._witness.number_of(ledger):
            raise witness.LostError("it was replaced while it was open")

    def _touch(self) -> None:
        """SQLite may have brought the log into the file."""
        if self._witness is not None:
            self._witness.touch()

    def _system_number(self) -> int:
        """What the system called its last error."""
        with self._lock:
            return 0 if self._writer is None else self._writer.system_errno

    @contextmanager
    def _whole(self, session: str | None) -> Iterator[None]:
        """What is read is what was written; SQLite does not see all damage."""
        try:
            yield
        except UnicodeEncodeError:
            raise
        except (ValueError, LookupError, TypeError, msgspec.MsgspecError) as error:
            with self._lock:
                if self._looked != self._age and self.path is not None:
                    self._mended(self._file)
                    self._looked = self._age
            raise damaged(self.path or "in memory", session, error) from error


def _ended(connection: apsw.Connection) -> bool:
    """End a transaction. False where it goes on: the disk failed, or somebody who still holds an exception
    holds a cursor by it, and with that the moment that was read.
    """
    if connection.in_transaction:
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")
    return bool(connection.txn_state() == apsw.SQLITE_TXN_NONE)
