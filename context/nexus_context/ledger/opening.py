"""Opens a ledger: finds its path, checks its permissions, and repairs or replaces it if necessary.

1. The path is that of `location`.
2. A ledger of a newer version, or another program's database, is refused and left unchanged.
3. A damaged ledger is set aside with all its files, and a new one is created. The same is done with a ledger
   that lacks acknowledged writes: it was emptied, is older than its witness says, or is another ledger.
4. A file that another program changed while it was closed is verified for at most LOOK seconds.
5. If nothing can be written, the ledger is in memory, with a copy of what can be read.
"""

import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote

import apsw

from nexus_context.disk.user_state import NoStateDirectoryError
from nexus_context.ledger import (
    chain,
    forks,
    integrity,
    migrations,
    part_index,
    read_history,
    sessions,
    turn_writer,
    witness,
)
from nexus_context.ledger.connections import Connections, File, Patience, configure, connect, identity, leave
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.integrity import check_kind
from nexus_context.ledger.lineage import Segment, segments, turn_ranges
from nexus_context.ledger.location import place
from nexus_context.ledger.records import Counted, NewTurn, Turn
from nexus_context.ledger.rows import value
from nexus_context.ledger.sqlite import SqliteLedger
from nexus_context.ledger.sqlite_errors import failure, is_corrupt, refused
from nexus_context.ledger.store import Ledger

LOOK = 2.0
"""Most seconds for verifying a file that another program changed; `verify` takes longer."""

INDEX = 0.2
"""Seconds spent on indexing messages of an earlier version at each opening."""

_STEPS = 10_000  # of SQLite's virtual machine between two checks of the clock
_CANNOT_WRITE = ("ledger-read-only", "ledger-full")

_URI = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

COPIED = 256 << 20
"""Largest ledger, in bytes, that is copied."""


class _Opening:
    """Opens a file, now and whenever it must be reopened; `notice` is for the user."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.notice: str | None = None

    def ready(self) -> apsw.Connection:
        """A writer for an intact ledger of our version, created or repaired if needed."""
        for is_last_attempt in (False, True):
            file = identity(self.path)
            try:
                integrity.wait_for_move(self.path)
                if witness.emptied(self.path):
                    self.notice = integrity.set_aside_remains(self.path) or self.notice
                _make(self.path)
                file = identity(self.path)
                claim = witness.claim(self.path)  # read before the ledger: others may write in between
                integrity.check_header(self.path)
                return self._prepared(claim, file)
            except OSError as error:
                raise refused(error, self.path) from error
            except apsw.Error as error:
                if is_last_attempt or not is_corrupt(error):
                    raise failure(error, self.path, "it was not opened") or error from error
                self._put_right(file, error)
        raise AssertionError

    def _prepared(self, claim: witness.Claim | None, file: File | None) -> apsw.Connection:
        """A writer for a ledger that has all that its witness claims."""
        changed = claim is not None and not witness.unchanged(self.path, claim.mark)
        connection = _connected(self.path, claim)
        try:
            if changed:
                self._look_through(connection)
            if identity(self.path) == file:  # not replaced meanwhile
                _catch_up(self.path, connection, claim, changed=changed)
            if not part_index.is_whole(connection):
                part_index.fill_for(INDEX, lambda: _fill(connection))
        except BaseException:
            leave(connection)
            raise
        return connection

    def repair(self, file: File | None) -> None:
        """Repair the ledger that SQLite reports as damaged, or set it aside."""
        try:
            self.notice = integrity.repair(self.path, file) or self.notice
        except OSError as error:
            raise refused(error, self.path) from error
        except apsw.Error as error:
            raise failure(error, self.path, "it was not checked") or error from error

    def _put_right(self, file: File | None, error: apsw.Error) -> None:
        """Set aside a ledger that cannot be opened."""
        if isinstance(error, apsw.SQLError):  # it may be a bug of ours: check first
            self.repair(file)
            return
        reason = str(error) if isinstance(error, witness.LostError) else None
        try:
            self.notice = integrity.set_aside(self.path, file, reason) or self.notice
        except OSError as refusal:
            raise refused(refusal, self.path) from refusal

    def _look_through(self, connection: apsw.Connection) -> None:
        """Verify what another program changed, for at most LOOK seconds; ChangedError for damage."""
        until = time.monotonic() + LOOK
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        try:
            connection.execute("BEGIN")  # one moment: others may write meanwhile
            broken = chain.find_damage(connection, entire=False) or chain.find_broken_session(connection)
        except apsw.InterruptError:
            return  # `nexus sessions verify` takes its time
        finally:
            connection.set_progress_handler(None)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if isinstance(broken, str):
            raise witness.ChangedError(broken)
        if broken is not None:
            self.notice = (
                f"The ledger {self.path} was changed by another program: the session {broken.session!r} of "
                f"{broken.workspace} is not what was written from turn {broken.broken} on. nexus sessions "
                "verify checks all sessions."
            )


RETRY_S = 5.0
"""Between two attempts to write a ledger in memory to its file."""


def opened(path: str | None, environ: Mapping[str, str] | None) -> Ledger:
    """Do the same as `nexus_context.ledger.open_ledger`."""
    try:
        where = place(path, os.environ if environ is None else environ)
    except NoStateDirectoryError as error:
        return _volatile("", str(error))
    opening = _Opening(where)
    try:
        if not os.path.isabs(where):
            raise LedgerError(
                f"{where!r} is not an absolute path: its meaning would depend on the working directory. "
                "Write the path from the root.",
                code="ledger-read-only",
            )
        connections = Connections(where, opening.ready, opening.repair)
    except LedgerError as error:
        if error.code not in _CANNOT_WRITE:
            raise
        return _volatile(where, str(error))
    return SqliteLedger(connections, location=where, read_notice=lambda: opening.notice)


def accept(
    path: str | None, environ: Mapping[str, str], replacement: str | None = None
) -> tuple[str, str | None]:
    """Accept the ledger in its place as complete, or put the file `replacement` there.

    Return the path of the ledger, and where the previous one was moved to, or None if it was not moved. Raise
    LedgerError if that fails.
    """
    where = place(path, environ)
    if replacement is not None and os.path.realpath(replacement) == os.path.realpath(where):
        replacement = None
    source = where if replacement is None else replacement
    try:
        if not os.path.getsize(source):
            raise LedgerError(f"{source} is empty: it is not a ledger.", code="ledger-foreign")
        integrity.check_header(source)
        if replacement is not None and (damage := integrity.damage_of(replacement)) is not None:
            raise LedgerError(
                f"{source} is damaged ({damage}); nothing was changed. Recover what can be read: nexus "
                f"sessions salvage {source}",
                code="ledger-corrupt",
            )
        return where, integrity.accept(where, replacement)
    except FileNotFoundError:
        raise LedgerError(f"{source} does not exist.", code="ledger-foreign") from None
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise LedgerError(
                f"{source} cannot be moved to {where}: it is on another file system; nothing was changed. "
                f"Copy it to {os.path.dirname(where)} first, and accept the copy.",
                code="ledger-io",
            ) from error
        raise refused(error, source) from error
    except apsw.Error as error:
        raise LedgerError(f"{source} is not a ledger ({error}).", code="ledger-foreign") from error


def in_memory() -> Ledger:
    """Create an empty ledger in memory, which is gone when it is closed."""
    return _volatile("", "Nothing is stored.")


def _volatile(path: str, reason: str) -> Ledger:
    """A ledger in memory, and why."""

    def begin() -> apsw.Connection:
        connection = apsw.Connection(":memory:")
        notice = copy_to_memory(path, connection) if path else None
        configure(connection)
        migrations.migrate(connection)
        notices.append(notice)
        return connection

    notices: list[str | None] = []
    connections = Connections(None, begin)
    warning = f"Conversations are lost when Nexus ends. {reason}"
    notice_history = [" ".join(sentence for sentence in (warning, *notices) if sentence)]
    store = _Returning(path, notice_history) if path else None
    return SqliteLedger(connections, location=path, read_notice=lambda: notice_history[-1], store=store)


class _Returning:
    """Writes a ledger in memory to its file, at most every RETRY_S; then appends to `notice_history`."""

    def __init__(self, path: str, notice_history: list[str]) -> None:
        self._path = path
        self._notice_history = notice_history
        self._next = time.monotonic() + RETRY_S

    def __call__(self, memory: Connections) -> Connections | None:
        if time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + RETRY_S
        opening = _Opening(self._path)
        try:
            with memory.reading() as connection:
                is_new = not os.path.lexists(self._path) and write_file(connection, self._path)
            stored = Connections(self._path, opening.ready, opening.repair)
        except (LedgerError, OSError, apsw.Error):
            return None
        try:
            names = [] if is_new else self._merge(memory, stored)
        except (LedgerError, OSError, apsw.Error, ValueError, LookupError):
            stored.close()
            return None
        renamed = f" These are others there: {', '.join(names)}." if names else ""
        self._notice_history.append(
            f"{self._path} can be written again: conversations are stored there.{renamed}"
        )
        return stored

    def _merge(self, memory: Connections, stored: Connections) -> list[str]:
        """Write turns that the file's sessions lack, in one transaction; returns the renamed sessions."""
        renamed = []
        with memory.reading() as source, stored.writing() as target:
            for session in sessions.list_sessions(source, None):
                position = sessions.require(source, session.workspace, session.name)
                target_position = sessions.find(target, session.workspace, session.name)
                missing, is_same = _missing(source, position, target, target_position)
                if not missing:
                    continue
                name = session.name
                if target_position is not None and not is_same:
                    name = forks.free_name(target, session.workspace, name)
                    renamed.append(f"{session.name} is {name}")
                turn_writer.import_turns(
                    target,
                    session.workspace,
                    name,
                    missing,
                    parameters=session.parameters,
                    on_progress=lambda _: None,
                    continues=is_same,
                )
        return renamed


def _missing(
    source: apsw.Connection,
    position: sessions.SessionPosition,
    target: apsw.Connection,
    target_position: sessions.SessionPosition | None,
) -> tuple[list[NewTurn | Turn], bool]:
    """The turns that a session of `target` lacks, and whether they continue it.

    They do not if the two sessions differ: then all turns of `source` are returned.
    """
    source_lineage = segments(source, position.thread)
    all_turns: list[NewTurn | Turn] = [*read_history.turns(source, source_lineage, 0, position.seq)]
    if target_position is None:
        return all_turns, False
    common = min(target_position.seq, position.seq)
    if _sum(source, source_lineage, common) == _sum(
        target, (target_lineage := segments(target, target_position.thread)), common
    ):
        return all_turns[common:], True  # a sum covers all turns before it
    (source_turn,) = read_history.turns(source, source_lineage, common - 1, common)
    (target_turn,) = read_history.turns(target, target_lineage, common - 1, common)
    count = len(target_turn.messages)
    was_extended = common == target_position.seq and source_turn.messages[:count] == target_turn.messages
    if not was_extended or _sum(source, source_lineage, common - 1) != _sum(
        target, target_lineage, common - 1
    ):
        return all_turns, False
    added = tuple(map(Counted, source_turn.messages, source_turn.counts))[count:]
    return [NewTurn(messages=added, counter=source_turn.counter), *all_turns[common:]], True


def _sum(connection: apsw.Connection, lineage: list[Segment], seq: int) -> bytes | None:
    """The sum of a turn; None for 0."""
    for ids in turn_ranges(lineage, seq - 1, seq) if seq else ():
        stored_sum: bytes | None = value(connection, "SELECT sum FROM turn WHERE id = ?", ids.first)
        return stored_sum
    return None


# ---------------------------------------------------------------- the file


def _make(path: str) -> None:
    """Create the file and its folder, for this user only, if missing."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if stat.S_IMODE(status.st_mode) & 0o077 and hasattr(os, "geteuid") and status.st_uid == os.geteuid():
        os.chmod(path, 0o600)


def _connected(path: str, claim: witness.Claim | None) -> apsw.Connection:
    """Open; retry where SQLite does not wait itself: two processes that create a ledger at once."""
    patience = Patience(path)
    while True:
        connection = connect(path)
        try:
            _begin(path, connection, claim)
        except apsw.BusyError:
            leave(connection)
            if not patience(1):
                raise
        except BaseException:
            leave(connection)
            raise
        else:
            return connection


def _begin(path: str, connection: apsw.Connection, claim: witness.Claim | None) -> None:
    connection.execute("BEGIN")  # one moment: another process may be creating it
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    application, version = connection.pragma("application_id"), migrations.version_of(connection)
    reason = witness.lost(connection, version, claim) if version <= migrations.VERSION else None
    connection.execute("COMMIT")
    integrity.check_kind(path, application, version, tables=tables)
    if reason is not None:
        raise witness.LostError(reason)
    if connection.readonly("main"):
        raise apsw.ReadOnlyError("its permissions allow only reading")
    connection.pragma("journal_mode", "wal")
    connection.pragma("journal_size_limit", 16 << 20)  # bytes that the log keeps after a long import
    if migrations.migrate(connection):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)  # so that the header has the version


def _catch_up(path: str, connection: apsw.Connection, claim: witness.Claim | None, *, changed: bool) -> None:
    """Bring the witness up to date: the last writer may have ended before it did."""
    ledger, mark = witness.mark(connection, changed=False)
    behind = mark.number > (claim.mark.number if claim is not None else 0)
    if behind or changed:
        record = witness.Witness(path)
        record.record(ledger, mark)
        record.touch()
        record.close()


def _fill(connection: apsw.Connection) -> bool:
    connection.execute("BEGIN IMMEDIATE")
    try:
        more = part_index.fill(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return more


# ---------------------------------------------------------------- in memory


def write_file(connection: apsw.Connection, path: str) -> bool:
    """Write a database to a path at which there is no file. Return False if another process wrote a file
    there first.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fresh = f"{path}.{os.getpid()}"
    os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        into = apsw.Connection(fresh)
        try:
            with into.backup("main", connection, "main") as backup:
                while not backup.done:
                    backup.step(1000)
        finally:
            into.close()
        witness.link(fresh, path)
    except FileExistsError:
        return False
    finally:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
    return True


def copy_to_memory(path: str, into: apsw.Connection) -> str | None:
    """Copy what can be read of a ledger into an empty database. Return a notice for the user, or None if the
    ledger is empty or missing.

    Raise LedgerError for a newer ledger or another program's database.
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
        copy_database(path, into)
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


def copy_database(path: str, into: apsw.Connection) -> None:
    """Copy a ledger with its log into an empty database. Raise LedgerError for a newer ledger or another
    program's database.
    """
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
