"""Files in the directory for the user's state: for this user alone, and replaced as a whole."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LOCK_S = 5.0  # that another process may hold a file


def make_directory(directory: str) -> None:
    """Create the directory for this user alone, with what is above it."""
    parent = os.path.dirname(directory)
    if parent != directory and not os.path.isdir(parent):
        make_directory(parent)
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)


def write_file(path: str, data: bytes) -> None:
    """Replace a file, for this user alone, by one that is complete on the disk; OSError if that fails."""
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
    """Hold the lock file at a path, which is made; OSError if another process holds it for LOCK_S."""
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
    """Lock an open file until it is closed; False if somebody else has."""
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
