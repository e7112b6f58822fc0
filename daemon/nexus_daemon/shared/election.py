"""Take the lock that elects a daemon, and listen at its socket.

The socket of a dead daemon may still exist. The next daemon, which has the lock, replaces it in one step.
"""

import contextlib
import os
import socket
import time

from nexus_daemon.shared import client
from nexus_daemon.shared.identity import Place

ELECTION_S = 0.3  # for which a held lock may be that of a client who looks whether a daemon runs
QUEUE = 512  # connections that wait to be accepted


def take_lock(place: Place) -> int | None:
    """Take the lock that the daemon of this place holds. None if another process has it."""
    descriptor = os.open(place.lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    deadline = time.monotonic() + ELECTION_S
    while True:
        if not client.try_lock(descriptor, is_exclusive=True):
            if time.monotonic() > deadline:
                os.close(descriptor)
                return None
            time.sleep(0.01)
            continue
        os.lseek(descriptor, 0, os.SEEK_SET)
        if _is_at(descriptor, place.lock):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())  # for people, and for `nexus stop --force`
            return descriptor
        os.close(descriptor)  # somebody removed the file meanwhile: another daemon could lock its successor
        return take_lock(place)


def holds_lock(place: Place, lock: int) -> bool:
    """Whether the locked file is still the one at the path of the lock."""
    return _is_at(lock, place.lock)


def listen(place: Place) -> socket.socket:
    """Listen at the address of a place, and replace a socket that a dead daemon may have left."""
    return listen_at(place.socket) if place.has_socket else listen_on_loopback(place.token)


def listen_at(path: str) -> socket.socket:
    """Listen at a Unix socket that only the user can open, in place of whatever is at the path."""
    listener = socket.socket(socket.AF_UNIX)
    temporary = f"{path}.{os.getpid()}"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        listener.bind(temporary)
        os.chmod(temporary, 0o600)
        listener.listen(QUEUE)
        os.replace(temporary, path)
        listener.setblocking(False)
    except OSError:
        listener.close()
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return listener


def listen_on_loopback(path: str, port: int = 0) -> socket.socket:
    """Listen on a port of the loopback interface, by default any free one.

    The port and a new token are written to the file at `path`.
    """
    listener = socket.socket()
    temporary = f"{path}.{os.getpid()}"
    try:
        if os.name != "nt":  # there it would let others share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((client.LOOPBACK, port))
        listener.listen(QUEUE)
        listener.setblocking(False)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(temporary, flags, 0o600), "w", encoding="ascii") as file:
            file.write(f"{listener.getsockname()[1]} {os.urandom(32).hex()}\n")
        os.replace(temporary, path)
    except OSError:
        listener.close()
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return listener


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False
