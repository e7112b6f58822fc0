"""Write the files of the log: several processes append whole lines to one file, which is rotated by its size.

1. A batch of lines is one `write` to a file that was opened to append, so lines of different processes never
   mix. No process keeps the file open, so it may be deleted or rotated at any time.
2. A file that would exceed `SIZE` is renamed to `nexus.log.1`, that one to `nexus.log.2` and so on. Files
   beyond `KEPT` are removed. One process at a time rotates, under a lock. A process that cannot get the lock
   appends without rotating: another process rotates at that moment, and lines that reach the renamed file are
   kept in it.
3. The file is a regular file of this user, with the permissions 0600. A link or a pipe in its place is
   refused.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from nexus_daemon.process.logs.location import NAME
from nexus_daemon.process.state_files import make_directory, try_lock

SIZE = 2 * 1024 * 1024
"""Bytes of a file at which the next one begins."""
KEPT = 4
"""The number of rotated files that are kept."""

_LOCK = NAME + ".lock"
_APPEND = (
    os.O_RDWR
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class LogFile:
    """The log in a directory. Its methods block and raise OSError, so call them in a thread."""

    def __init__(self, directory: str, *, size: int = SIZE, kept: int = KEPT) -> None:
        self.directory = directory
        self.path = os.path.join(directory, NAME)
        self._size = size
        self._kept = kept

    def append(self, data: bytes) -> None:
        """Append whole lines."""
        descriptor = self._open()
        try:
            size = os.fstat(descriptor).st_size
            if size and size + len(data) > self._size and self._rotate(len(data)):
                os.close(descriptor)
                descriptor = self._open()
                size = 0
            if size and not _ends_line(descriptor):  # the disk was full in the middle of a line
                data = b"\n" + data
            if os.write(descriptor, data) < len(data):
                raise OSError(errno.ENOSPC, "the disk is full", self.path)
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        try:
            descriptor = os.open(self.path, _APPEND, 0o600)
        except FileNotFoundError:
            make_directory(self.directory)
            descriptor = os.open(self.path, _APPEND, 0o600)
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or (hasattr(os, "geteuid") and info.st_uid != os.geteuid()):
            os.close(descriptor)
            raise OSError(errno.EPERM, "not a file of this user", self.path)
        return descriptor

    def _rotate(self, length: int) -> bool:
        """Begin a new file unless this one has room for a length; False if another process is about to."""
        with _locked(os.path.join(self.directory, _LOCK)) as is_mine:
            if not is_mine:
                return False
            try:
                size = os.path.getsize(self.path)
            except FileNotFoundError:
                size = 0
            if not size or size + length <= self._size:
                return True  # another process was quicker
            for number in range(self._kept - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.replace(rotated(self.path, number), rotated(self.path, number + 1))
            with suppress(PermissionError):  # Windows: another process appends just now
                os.replace(self.path, rotated(self.path, 1))
        return True


def rotated(path: str, number: int) -> str:
    """Return the path of a rotated file: 1 is the newest, 0 the file that is being written."""
    return f"{path}.{number}" if number else path


def _ends_line(descriptor: int) -> bool:
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) == b"\n"


@contextmanager
def _locked(path: str) -> Iterator[bool]:
    """Whether this process has the lock during the block; it does not wait for it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        yield try_lock(descriptor)
    finally:
        os.close(descriptor)
