"""Write a settings file of another program, and the records that undo it.

1. A file is replaced as a whole, by a new file of the same directory, with the old one's permissions and
   owner. A link stays: the file that it leads to is replaced.
2. If the file has changed since the preview, it is not overwritten.
3. The records are in `setup.json` in the state directory. A record is stored before its file is written, and
   is removed after the file was written without the entries of Nexus. So a crash between the two steps can be
   undone.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from nexus_context.assistants.setup.plan import LARGEST, SettingsChange
from nexus_context.assistants.setup.setup_types import FileRecord, SettingsError
from nexus_context.disk import files
from nexus_context.disk.user_state import state_directory
from nexus_context.text.decoding import decode_as
from nexus_daemon.process.state_files import write_file

NAME = "setup.json"
_MOST_RECORDS = 1_000


# ---------------------------------------------------------------- settings files


def read_settings(path: str) -> tuple[str, bytes | None]:
    """Return a settings file's real path and its bytes, or None without a file.

    SettingsError if it is unreadable.
    """
    real = files.real_path(path)
    file_read = files.read_bytes(real, limit=LARGEST)
    if file_read.status == "missing":
        return real, None
    if file_read.data is None:
        reason = file_read.problems[0].message if file_read.problems else file_read.status
        raise SettingsError(f"{path}: {reason} Nothing was written.")
    return real, file_read.data


def missing_directories(real: str) -> tuple[str, ...]:
    """Return the directories above a file that do not exist, the innermost first."""
    directories = []
    directory = os.path.dirname(real)
    while directory != os.path.dirname(directory) and not os.path.lexists(directory):
        directories.append(directory)
        directory = os.path.dirname(directory)
    return tuple(directories)


def write_change(change: SettingsChange) -> None:
    """Write a change. SettingsError if the file has changed since the preview, or cannot be written."""
    try:
        if change.after is None:
            _check_unchanged(change)
            _remove(change)
        else:
            os.makedirs(os.path.dirname(change.real), exist_ok=True)
            _replace(change, change.after)
    except OSError as error:
        raise SettingsError(f"{change.path} cannot be written: {error.strerror}.") from error


def _check_unchanged(change: SettingsChange) -> None:
    if read_settings(change.path) != (change.real, change.before):
        raise SettingsError(f"{change.path} was changed meanwhile, and stays as it is. Run this again.")


def _replace(change: SettingsChange, data: bytes) -> None:
    descriptor, draft = tempfile.mkstemp(prefix=".nexus-", dir=os.path.dirname(change.real))
    with _removed_unless_moved(draft):
        _fill(descriptor, data)
        _copy_permissions(change.real, draft)
        _check_unchanged(change)
        os.replace(draft, change.real)


def _fill(descriptor: int, data: bytes) -> None:
    """Write all bytes through to the disk, and close the file."""
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _removed_unless_moved(draft: str) -> Iterator[None]:
    """Remove a draft if what is done with it fails."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def _copy_permissions(real: str, draft: str) -> None:
    try:
        info = os.stat(real)
    except FileNotFoundError:  # a new file, with the permissions that other programs give
        umask = os.umask(0o077)
        os.umask(umask)
        os.chmod(draft, 0o666 & ~umask)
        return
    if hasattr(os, "chown") and (info.st_uid, info.st_gid) != (os.getuid(), os.getgid()):
        os.chown(draft, info.st_uid, info.st_gid)
    os.chmod(draft, info.st_mode & 0o7777)


def _remove(change: SettingsChange) -> None:
    """Remove a file that setup created, and then its empty directories."""
    if change.before is not None:
        os.unlink(change.path if os.path.islink(change.path) else change.real)
    for directory in () if change.record is None else change.record.directories:
        with contextlib.suppress(OSError):  # something else is in it
            os.rmdir(directory)


# ---------------------------------------------------------------- records


class SetupRecords:
    """The records of all settings files that setup has written, by the files' real paths."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.path = os.path.join(state_directory(environ), NAME)

    def read(self) -> dict[str, FileRecord]:
        """Read all records. SettingsError if the file of records is not in the form that setup writes."""
        file_read = files.read_bytes(self.path, limit=LARGEST)
        if file_read.status == "missing":
            return {}
        try:
            return decode_as(file_read.data or b"", dict[str, FileRecord])
        except msgspec.MsgspecError as error:
            raise SettingsError(
                f"{self.path} cannot be read ({error}): it says how to undo a setup. Restore it, "
                "or remove it; then undo removes what runs Nexus by its command."
            ) from error

    def put(self, records: Sequence[tuple[str, FileRecord | None]]) -> None:
        """Store records, given as (real path, record). A record of None removes the stored one."""
        stored_records = self.read()
        for real, record in records:
            stored_records.pop(real, None)
            if record is not None:
                stored_records[real] = record
        data = msgspec.json.format(
            msgspec.json.encode(dict(list(stored_records.items())[-_MOST_RECORDS:])), indent=1
        )
        try:
            write_file(self.path, data + b"\n")
        except OSError as error:
            raise SettingsError(
                f"{self.path} cannot be written: {error.strerror}. Nothing was written."
            ) from error
