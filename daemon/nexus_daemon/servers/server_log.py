"""Log what servers print to their standard error: a file for each launch, of limited size, with secrets
covered.

1. A line is covered before it is written: everything that looks like a secret, and every value that the
   launch's file gives a variable or a header.
2. A file has at most MOST_BYTES; when it is full, its newer half is kept. It is removed after EXPIRES_S
   without a new line.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from urllib.parse import quote

from nexus_context.disk.user_state import state_directory
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible_line
from nexus_daemon.process.state_files import make_directory

MOST_BYTES = 1 << 20
LONGEST_LINE = 4_000  # characters
EXPIRES_S = 14 * 86_400.0
SHORTEST_SECRET = 6
_COVER = "[covered]"
_PARTS = re.compile(r"[\s:@/?&=#;,\"]+")  # of `Bearer …`, of an address with a password, of JSON


def log_directory(environ: Mapping[str, str]) -> str:
    """Return the absolute path of the log directory.

    NoStateDirectoryError if no variable says where it is.
    """
    return os.path.join(state_directory(environ), "servers")


def log_path(environ: Mapping[str, str], launch_hash: str) -> str:
    """Return the path of the log of a launch."""
    return os.path.join(log_directory(environ), f"{launch_hash[:16]}.log")


class ServerLog:
    """The log of one server, which writes each line at once. `secrets` are values that must not be in it."""

    def __init__(self, path: str, secrets: Iterable[str]) -> None:
        self.path = path
        self._secrets: list[str] = []
        self.last = ""
        self.add_secrets(secrets)

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Cover these values, too, from now on."""
        covered = {
            part
            for secret in secrets
            for part in (secret, *secret.splitlines(), *_PARTS.split(secret))
            if len(part) >= SHORTEST_SECRET
        }
        covered |= {quote(secret, safe="") for secret in covered}  # as in an address
        self._secrets = sorted(covered.union(self._secrets), key=len, reverse=True)

    def cover(self, text: str) -> str:
        """Replace the secrets of the server in a text."""
        for secret in self._secrets:
            text = text.replace(secret, _COVER)
        return redact(text)

    def write(self, text: str) -> None:
        """Add a line. The line is lost if it cannot be written."""
        line = visible_line(self.cover(text).rstrip())[:LONGEST_LINE]
        if not line:
            return
        self.last = line
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with suppress(OSError):
            make_directory(os.path.dirname(self.path))
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with open(descriptor, "a", encoding="utf-8") as file:
                file.write(f"{stamp} {line}\n")
            if os.path.getsize(self.path) > MOST_BYTES:
                _halve(self.path)


def remove_expired(environ: Mapping[str, str]) -> None:
    """Remove the logs that were not written to for EXPIRES_S."""
    directory = log_directory(environ)
    with suppress(OSError):
        for entry in os.scandir(directory):
            if time.time() - entry.stat().st_mtime > EXPIRES_S:
                os.unlink(entry.path)


def _halve(path: str) -> None:
    with open(path, "rb") as file:
        file.seek(-MOST_BYTES // 2, os.SEEK_END)
        newer_half = file.read().partition(b"\n")[2]
    draft = f"{path}.draft"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(newer_half)
    os.replace(draft, path)
