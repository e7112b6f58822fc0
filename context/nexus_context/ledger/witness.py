"""The witness: which write was acknowledged last, in a small file beside the ledger.

1. Each transaction that writes takes the next number and a random token, which stand in the ledger (`mark`).
   After its commit, and before anybody is answered, they stand in the witness, too. So the witness may lag
   behind the ledger, and never claims a write that was not committed.
2. A record is one write of 64 bytes, which no sector's border divides and which has a check sum, into a ring
   of slots by its number: no lock is needed for several processes, and nothing is synced, as what a power cut
   takes from the witness only makes it lag.
3. A witness belongs to one ledger, which its header names, and goes where that goes when it is set aside.
4. Whoever compares reads the witness first and the ledger then: others may write in between.
5. What cannot be written is not: the ledger is worth more than its witness. The next write tries again.
"""

import os
import secrets
import struct
from contextlib import suppress
from typing import IO, Any, NamedTuple
from zlib import crc32

import apsw

from nexus_context.ledger.sql import row, value

END = ".witness"
"""What the ledger's path ends with in the witness's."""

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
    """A write: its number and token, and the last turn of the session that it changed, with that turn's sum.

    `size` and `modified` (nanoseconds) are of the ledger's file after it; 0 where nobody looked.
    """

    number: int
    token: int
    turn: int = 0
    sum: bytes = b""
    size: int = 0
    modified: int = 0


class Claim(NamedTuple):
    """What a witness says: which ledger it belongs to, and its newest mark."""

    ledger: bytes
    mark: Mark


class LostError(apsw.CorruptError):
    """The ledger lacks what was acknowledged; the message says what."""


class ChangedError(apsw.SQLError):
    """The file was changed by another program, and is damaged."""


# ---------------------------------------------------------------- in the ledger


def mark(connection: apsw.Connection, *, changed: bool) -> tuple[bytes, Mark]:
    """The id of a ledger and its newest mark, at the end of a transaction; with `changed` a new one."""
    if changed:
        connection.execute(_NEXT, (secrets.randbits(63),))
    ledger, number, token, turn, total = _row(connection, _NEWEST)
    return ledger, Mark(number, token, turn or 0, total or b"")


def lost(connection: apsw.Connection, version: int, claim: Claim | None) -> str | None:
    """Why a ledger is not the one, or not all of the one, that was acknowledged. `claim` was read before."""
    if claim is None or not claim.mark.number:
        return None
    number = claim.mark.number
    if version < 4:  # written before there were witnesses
        return "it is older than what was acknowledged"
    ledger, last = _row(connection, "SELECT id, (SELECT ifnull(max(number), 0) FROM mark) FROM ledger")
    if ledger != claim.ledger:
        return "another ledger lies in its place"
    if last < number:
        return f"it ends with write {last:,}, and write {number:,} was acknowledged"
    token = value(connection, "SELECT token FROM mark WHERE number = ?", number)
    if token not in (None, claim.mark.token):
        return f"it went on by itself from an older copy: its write {number:,} is another one"
    if last == number and claim.mark.turn:
        turn = row(connection, "SELECT ifnull(sum, x'') FROM turn WHERE id = ?", claim.mark.turn)
        if turn != (claim.mark.sum,):
            return "its newest turn is not what was written"
    return None


def _row(connection: apsw.Connection, statement: str) -> tuple[Any, ...]:
    found: tuple[Any, ...] | None = row(connection, statement)
    if found is None:
        raise apsw.CorruptError("the ledger has no id")
    return found


# ---------------------------------------------------------------- beside the ledger


def claim(path: str) -> Claim | None:
    """What the witness of the ledger at a path says; None where there is none that can be read."""
    try:
        with open(path + END, "rb") as file:
            return _claim(file.read(_SLOT * (SLOTS + 1)))
    except OSError:
        return None


def unchanged(path: str, mark: Mark) -> bool:
    """Whether the ledger's file is as it was at a mark, as far as its size and time tell."""
    return not mark.size or _stamp(path) == (mark.size, mark.modified)


def emptied(path: str) -> bool:
    """Whether the ledger's file is empty or gone, and a log or a witness says that it was not.

    The file is looked at last: another process may be beginning it.
    """
    written = claim(path)
    log = _stamp(f"{path}-wal")[0]
    return bool((log or (written and written.mark.number)) and not _stamp(path)[0])


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _claim(data: bytes) -> Claim | None:
    header = _unsealed(_HEADER, data[:_SLOT])
    if header is None or header[0] != _MAGIC:
        return None
    slots = (data[at : at + _SLOT] for at in range(_SLOT, len(data), _SLOT))
    records = [record for slot in slots if (record := _unsealed(_RECORD, slot)) is not None]
    newest = Mark(*max(records, default=(0, 0)))
    return Claim(header[1], newest._replace(sum=newest.sum if any(newest.sum) else b""))


def _sealed(form: struct.Struct, *values: object) -> bytes:
    data = form.pack(*values)
    return (data + _SUM.pack(crc32(data))).ljust(_SLOT, b"\0")


def _unsealed(form: struct.Struct, data: bytes) -> tuple[Any, ...] | None:
    """The values of a slot; None where it is empty or torn."""
    body, total = data[: form.size], data[form.size : form.size + _SUM.size]
    return (
        form.unpack(body)
        if len(total) == _SUM.size and any(body) and _SUM.pack(crc32(body)) == total
        else None
    )


class Witness:
    """The witness of the ledger at a path, for one that writes there. Not for several threads at once."""

    def __init__(self, path: str) -> None:
        self._ledger = path
        self._path = path + END
        self._file: IO[bytes] | None = None
        self._of: Claim | None = None

    def number_of(self, ledger: bytes) -> int:
        """Of the newest write to that ledger that was recorded here."""
        return 0 if self._of is None or self._of.ledger != ledger else self._of.mark.number

    def record(self, ledger: bytes, mark: Mark) -> None:
        """Record a write that was committed; one that is not newer is known already."""
        try:
            file = self._opened(ledger)
            if file is not None and mark.number > self.number_of(ledger):
                self._write(file, ledger, mark)
        except OSError:
            self.close()

    def touch(self) -> None:
        """Record that the ledger's file was changed by us, as SQLite brings its log into it."""
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
        """The file, begun where there is none; None where it belongs to another ledger."""
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
        if written is None:  # torn by a power cut when it was begun
            file.seek(0)
            file.write(_new(ledger))
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
        """Make the file whole, then put it in its place, unless another process was quicker."""
        fresh = f"{self._path}.{os.getpid()}-{secrets.token_hex(4)}"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(_new(ledger))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                link(fresh, self._path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(fresh)


def _new(ledger: bytes) -> bytes:
    """A witness that has seen no write."""
    return _sealed(_HEADER, _MAGIC, ledger).ljust(_SLOT * (SLOTS + 1), b"\0")


def link(fresh: str, path: str) -> None:
    """Give a file its name, if that is free; FileExistsError if not."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        raise
    except (OSError, AttributeError, NotImplementedError):  # a file system without links
        if os.path.exists(path):
            raise FileExistsError(path) from None
        os.rename(fresh, path)
