"""Translates errors of SQLite to errors that say what happened, where, and what to do."""

import errno
import shlex

import apsw

from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.migrations import VERSION

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_DISK = (apsw.IOError, apsw.CantOpenError)


def is_corrupt(error: apsw.Error) -> bool:
    """Whether the error shows that the file is damaged or not a database.

    SQLError counts, too, because our statements fit the schema of every undamaged ledger.
    """
    return isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.SQLError)


def refused(error: OSError, path: str) -> LedgerError:
    """Make the error for a file or folder that the system refuses to open or move."""
    if error.errno in _NO_ROOM:
        return _no_room(path, "it was not opened")
    if error.errno == errno.EIO:
        return LedgerError(
            f"The disk failed with the ledger {path}; it was not opened. Check the disk and try again.",
            code="ledger-io",
        )
    return _read_only(path, error.strerror or str(error), "it was not opened")


def failure(error: apsw.Error, path: str, outcome: str, *, number: int = 0) -> LedgerError | None:
    """Translate an error of SQLite. Return None if it must come from a bug of ours.

    `outcome` says what was not done because of it. `number` is the error number of the operating system.
    """
    detail = str(error)
    if isinstance(error, apsw.FullError) or (isinstance(error, _DISK) and number in _NO_ROOM):
        return _no_room(path, outcome)
    if isinstance(error, apsw.BusyError | apsw.LockedError | apsw.ProtocolError):
        return LedgerError(
            f"Another program keeps the ledger {path} locked; {outcome}. Try again in a moment. If it stays "
            "locked, close what else has the file open (an SQLite browser, a backup, a nexus that hangs).",
            code="ledger-busy",
        )
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError | apsw.CantOpenError):
        return _read_only(path, detail, outcome)
    if isinstance(error, apsw.IOError):
        return LedgerError(
            f"The disk failed with the ledger {path} ({detail}); {outcome}. Check the disk and try again.",
            code="ledger-io",
        )
    if isinstance(error, apsw.ConstraintError):  # our writes violate constraints only if the file is damaged
        return damaged(path, None, error)
    if is_corrupt(error):
        return LedgerError(
            f"The ledger {path} was damaged ({detail}); {outcome}. Try again: what could not be repaired was "
            "set aside beside it, and nexus sessions salvage recovers what can be read.",
            code="ledger-corrupt",
        )
    return None


def damaged(path: str, session: str | None, error: Exception) -> LedgerError:
    """Make the error for data that differs from what was written."""
    where = f" in the session {session!r}" if session else ""
    name = f" {shlex.quote(session)}" if session else " NAME"
    if session and session.startswith("-"):  # it would be parsed as an option
        name = f"={name[1:]}"
    return LedgerError(
        f"The ledger {path} is damaged{where} ({error}). Other sessions are not affected. In the folder of "
        f"the damaged one, nexus sessions salvage {shlex.quote(path)} --session{name} copies what can "
        "be read of it to a new session.",
        code="ledger-corrupt",
    )


def newer(path: str, version: int) -> LedgerError:
    """Make the error for a ledger that a newer version wrote."""
    return LedgerError(
        f"The ledger {path} was written by a newer version of Nexus (its format is {version}, this version "
        f"supports {VERSION}) and is left unchanged. Install the newer version, or set NEXUS_STATE to "
        "another folder.",
        code="ledger-newer",
    )


def foreign(path: str) -> LedgerError:
    """Make the error for another program's database."""
    return LedgerError(
        f"{path} is the database of another program and is left unchanged. Choose another file.",
        code="ledger-foreign",
    )


def _no_room(path: str, outcome: str) -> LedgerError:
    return LedgerError(
        f"No space is left for the ledger {path}; {outcome}. Free some space there and try again.",
        code="ledger-full",
    )


def _read_only(path: str, detail: str, outcome: str) -> LedgerError:
    return LedgerError(
        f"The ledger {path} cannot be written ({detail}); {outcome}. Give this user permission to write "
        "the file and its folder, or set NEXUS_STATE to another folder.",
        code="ledger-read-only",
    )
