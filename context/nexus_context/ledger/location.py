"""Determines the path of the ledger and the ledger's name of a folder, without opening a file.

The path is the configured one, with `~/` for the user's home directory, else $NEXUS_STATE/ledger.db, else
nexus/ledger.db in the system's directory for user state.
"""

import os
from collections.abc import Mapping

from nexus_context.disk.user_state import NoStateDirectoryError, state_directory
from nexus_context.ledger.errors import LedgerError

NAME = "ledger.db"


def workspace_of(folder: str) -> str:
    """Return the ledger's name of a folder: its absolute real path, as valid text.

    Raise ValueError for a path that no folder can have.
    """
    return os.fsencode(os.path.realpath(folder)).decode("utf-8", "backslashreplace")


def place(path: str | None, environ: Mapping[str, str]) -> str:
    """Return the absolute path of the ledger. Raise NoStateDirectoryError if neither a setting nor the
    environment says where it is.
    """
    if path is not None:
        return _configured_path(path, environ)
    return os.path.join(environ.get("NEXUS_STATE") or state_directory(environ), NAME)


def is_there(path: str | None, environ: Mapping[str, str]) -> bool:
    """Whether there is a file at the ledger's path."""
    try:
        return os.path.lexists(place(path, environ))
    except NoStateDirectoryError:
        return False


def _configured_path(path: str, environ: Mapping[str, str]) -> str:
    if path.startswith("~/"):
        home = environ.get("HOME") or environ.get("USERPROFILE") or ""
        path = os.path.join(home if os.path.isabs(home) else os.path.expanduser("~"), path[2:].lstrip("/"))
    if not os.path.isabs(path):
        raise LedgerError(
            f"The ledger's path {path!r} (ledger.path) is not an absolute path: its meaning would depend on "
            "the working directory. Write it from the root, or with ~/ for your home directory.",
            code="ledger-read-only",
        )
    return path
