"""Records the last acknowledged write of a ledger in a small file beside it, the witness.

1. Each write transaction takes the next number and a random token and stores them in the ledger (`mark`).
   After the commit, and before the caller is answered, the witness stores them too. So the witness may lag
   behind the ledger, but never claims a write that was not committed.
2. A record is written in one write of 64 bytes that does not cross a sector border. It has a checksum, and
   its number determines its slot in a ring of slots. So several processes need no lock. Nothing is synced: a
   power cut only makes the witness lag.
3. A witness belongs to the ledger named in its header and moves with it when that is set aside.
4. A comparison reads the witness first and then the ledger: others may write in between.
5. If the witness cannot be written, the ledger goes on without it. The next write tries again.
"""

import os
import secrets
import struct
from contextlib import suppress
from typing import IO, Any, NamedTuple
from zlib import crc32

import apsw

from nexus_context.ledger.rows import row, value

END = ".witness"
"""The witness has the path of the ledger with this suffix."""

SLOTS = 63

_SLOT = 64  # bytes
_MAGIC = b"NXWITN01"
_HEADER = struct.Struct("<8s16s")
_RECORD = struct.Struct("<QqQ16sQQ")
_SUM = struct.Struct("<I")

_NEXT = """
INSERT INTO mark (slot, number, token)
SELECT number % 63, number, ? FROM (SELECT ifnull(max(number), 0) + 1 AS number FROM mark) WHERE true
ON CONFLICT (slot) DO UPDATE SET number = excluded.number, token = excluded.token
"""
_NEWEST = """
SELECT ledger.id, ifnull(last.number, 0), ifnull(last.token, 0), turn.id, turn.sum
FROM ledger
LEFT JOIN (SELECT max(number) AS number, token FROM mark) AS last
LEFT JOIN session ON session.id = (SELECT id FROM session ORDER BY changed DESC LIMIT 1)
LEFT JOIN thread ON thread.id = session.thread
LEFT JOIN turn ON turn.id = (iif(thread.seq > thread.base_seq, thread.id, thread.parent) << 32) + thread.seq
"""


class Mark(NamedTuple):
    """An acknowledged write: its number, its token, and the last turn of the session that changed.

    `sum` is the sum of that turn. `size` and `modified` (in nanoseconds) are those of the ledger's file after
    the write, or 0 if they are unknown.
    """

    number: int
    token: int
    turn: int = 0
    sum: bytes = b""
    size: int = 0
    modified: int = 0


class Claim(NamedTuple):
    """The content of a witness: the id of its ledger, and the newest mark that it records."""

    ledger: bytes
    mark: Mark


class LostError(apsw.CorruptError):
    """The ledger lacks acknowledged writes. The message says which."""


class ChangedError(apsw.SQLError):
    """Another program changed the file, and it is damaged."""


# ---------------------------------------------------------------- in the ledger


def mark(connection: apsw.Connection, *, changed: bool) -> tuple[bytes, Mark]:
    """Return the id of a ledger and its newest mark. If `changed` is true, first store a new mark for the
    present transaction.
    """
    if changed:
        connection.execute(_NEXT, (secrets.randbits(63),))
    ledger, number, token, turn, total = _row(connection, _NEWEST)
    turn, total = turn or 0, total or b""
    are_bytes = isinstance(ledger, bytes) and isinstance(total, bytes)
    if not are_bytes or not all(isinstance(column, int) for column in (number, token, turn)):
        raise apsw.CorruptError("the ledger's id or its newest mark is something else")
    return ledger, Mark(number, token, turn, total)


def lost(connection: apsw.Connection, version: int, claim: Claim | None) -> str | None:
    """Return why a ledger lacks acknowledged writes. Return None if it has all that `claim` records; `claim`
    must be read before the ledger.
    """
    if claim is None or not claim.mark.number:
        return None
    number = claim.mark.number
    if version < 4:  # from before witnesses existed
        return "it is older than the acknowledged writes"
    ledger, last_number = _row(connection, "SELECT id, (SELECT ifnull(max(number), 0) FROM mark) FROM ledger")
    if ledger != claim.ledger:
        return "another ledger lies in its place"
    if last_number < number:
        return f"it ends with write {last_number:,}, but write {number:,} was acknowledged"
    token = value(connection, "SELECT token FROM mark WHERE number = ?", number)
    if token not in (None, claim.mark.token):
        return f"it continued from an older copy: its write {number:,} is a different one"
    if last_number == number and claim.mark.turn:
        turn = row(connection, "SELECT ifnull(sum, x'') FROM turn WHERE id = ?", claim.mark.turn)
        if turn != (claim.mark.sum,):
            return "its newest turn is not what was written"
    return None


def _row(connection: apsw.Connection, statement: str) -> tuple[Any, ...]:
    columns: tuple[Any, ...] | None = row(connection, statement)
    if columns is None:
        raise apsw.CorruptError("the ledger has no id")
    return columns


# ---------------------------------------------------------------- beside the ledger


def claim(path: str) -> Claim | None:
    """Return the content of the witness of the ledger at a path. Return None if it cannot be read."""
    try:
        with open(path + END, "rb") as file:
            return _claim(file.read(_SLOT * (SLOTS + 1)))
    except OSError:
        return None


def unchanged(path: str, mark: Mark) -> bool:
    """Whether the size and time of the ledger's file are the same as at a mark. True if the mark does not
    record them.
    """
    return not mark.size or _stamp(path) == (mark.size, mark.modified)


def emptied(path: str) -> bool:
    """Whether the ledger's file is empty or gone, although a log or a witness shows that it existed.

    The file is checked last, because another process may be creating it.
    """
    written = claim(path)
    log = _stamp(f"{path}-wal")[0]
    return bool((log or (written and written.mark.number)) and not _stamp(path)[0])


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _claim(data: bytes) -> Claim | None:
    header = _unsealed(_HEADER, data[:_SLOT])
    if header is None or header[0] != _MAGIC:
        return None
    slots = (data[at : at + _SLOT] for at in range(_SLOT, len(data), _SLOT))
    records = [record for slot in slots if (record := _unsealed(_RECORD, slot)) is not None]
    newest = Mark(*max(records)) if records else Mark(0, 0)
    return Claim(header[1], newest._replace(sum=newest.sum if any(newest.sum) else b""))


def _sealed(form: struct.Struct, *values: object) -> bytes:
    data = form.pack(*values)
    return (data + _SUM.pack(crc32(data))).ljust(_SLOT, b"\0")


def _unsealed(form: struct.Struct, data: bytes) -> tuple[Any, ...] | None:
    """The values of a slot; None if it is empty or torn."""
    body, total = data[: form.size], data[form.size : form.size + _SUM.size]
    return (
        form.unpack(body)
        if len(total) == _SUM.size and any(body) and _SUM.pack(crc32(body)) == total
        else None
    )


class Witness:
    """Writes the witness of the ledger at a path. Only one thread may use it at a time."""

    def __init__(self, path: str) -> None:
        self._ledger = path
        self._path = path + END
        self._file: IO[bytes] | None = None
        self._of: Claim | None = None

    def number_of(self, ledger: bytes) -> int:
        """Return the number of the newest write to a ledger that this object recorded. Return 0 if it
        recorded none.
        """
        return 0 if self._of is None or self._of.ledger != ledger else self._of.mark.number

    def record(self, ledger: bytes, mark: Mark) -> None:
        """Record a committed write, unless a newer one is recorded. If the file cannot be written, do
        nothing.
        """
        try:
            file = self._opened(ledger)
            if file is not None and mark.number > self.number_of(ledger):
                self._write(file, ledger, mark)
        except OSError:
            self.close()

    def touch(self) -> None:
        """Record the new size and time of the file after SQLite moved its log into it."""
        written = claim(self._ledger)
        if written is None or not written.mark.number or unchanged(self._ledger, written.mark):
            return
        try:
            file = self._opened(written.ledger)
            if file is not None:
                self._write(file, written.ledger, written.mark)
        except OSError:
            self.close()

    def close(self) -> None:
        file, self._file, self._of = self._file, None, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def __del__(self) -> None:
        self.close()

    # ------------------------------------------------------------ inside

    def _write(self, file: IO[bytes], ledger: bytes, mark: Mark) -> None:
        size, modified = _stamp(self._ledger)
        mark = mark._replace(size=size, modified=modified)
        file.seek(_SLOT * (1 + mark.number % SLOTS))
        file.write(_sealed(_RECORD, *mark))
        self._of = Claim(ledger, mark)

    def _opened(self, ledger: bytes) -> IO[bytes] | None:
        """The file, created if missing; None if it belongs to another ledger."""
        if (
            self._file is not None
            and self._of is not None
            and self._of.ledger == ledger
            and self._is_there(self._file)
        ):
            return self._file
        self.close()
        try:
            file = open(self._path, "r+b", buffering=0)  # noqa: SIM115  # closed by `close`
        except FileNotFoundError:
            self._begin(ledger)
            file = open(self._path, "r+b", buffering=0)  # noqa: SIM115
        written = _claim(file.read(_SLOT * (SLOTS + 1)))
        if written is None:  # torn by a power cut at its creation
            file.seek(0)
            file.write(_new_witness(ledger))
            written = Claim(ledger, Mark(0, 0))
        if written.ledger != ledger:
            file.close()
            return None
        self._file, self._of = file, written
        return file

    def _is_there(self, file: IO[bytes]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), os.stat(self._path))
        except OSError:
            return False

    def _begin(self, ledger: bytes) -> None:
        """Write a complete file, then put it in place unless another process was faster."""
        fresh = f"{self._path}.{os.getpid()}-{secrets.token_hex(4)}"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(_new_witness(ledger))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                link(fresh, self._path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(fresh)


def _new_witness(ledger: bytes) -> bytes:
    """The content of a new witness."""
    return _sealed(_HEADER, _MAGIC, ledger).ljust(_SLOT * (SLOTS + 1), b"\0")


def link(fresh: str, path: str) -> None:
    """Give the finished file `fresh` the name `path`. Raise FileExistsError if that name is taken."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        raise
    except (OSError, AttributeError, NotImplementedError):  # a file system without links
        if os.path.exists(path):
            raise FileExistsError(path) from None
        os.rename(fresh, path)
