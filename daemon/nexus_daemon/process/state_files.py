"""Write files in the directory for the user's state: only this user can read them, and they are replaced
whole.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LOCK_S = 5.0  # that another process may hold a file


def make_directory(directory: str) -> None:
    """Create the directory and its missing parents. Only this user can read those that are created."""
    parent = os.path.dirname(directory)
    if parent != directory and not os.path.isdir(parent):
        make_directory(parent)
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)


def write_file(path: str, data: bytes) -> None:
    """Replace a file, which only this user can read, once the new one is complete on the disk.

    OSError if that fails.
    """
    import tempfile  # slow, and needed by processes that write

    make_directory(os.path.dirname(path))
    descriptor, draft = tempfile.mkstemp(prefix=".draft-", dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock file at a path during the block. The file is created if it does not exist.

    OSError if another process holds the lock for longer than LOCK_S.
    """
    make_directory(os.path.dirname(path))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        until = time.monotonic() + LOCK_S
        while not try_lock(descriptor):
            if time.monotonic() > until:
                raise TimeoutError(f"{path} is held by another process")
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed. Return False if it is locked already."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
