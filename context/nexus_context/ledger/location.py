"""Where the ledger is, and how it names a folder; nothing is opened.

The path is the configured one, with `~/` for the user's home directory, else $NEXUS_STATE/ledger.db, else
nexus/ledger.db in the system's directory for user state.
"""

import os
from collections.abc import Mapping

from nexus_context.disk.user_state import NoStateDirectoryError, state_directory
from nexus_context.ledger.errors import LedgerError

NAME = "ledger.db"


def workspace_of(folder: str) -> str:
    """The ledger's name of a folder: its absolute real path, as valid text.

    Raises ValueError for a path that no folder can have.
    """
    return os.fsencode(os.path.realpath(folder)).decode("utf-8", "backslashreplace")


def place(path: str | None, environ: Mapping[str, str]) -> str:
    """Absolute path of the ledger. NoStateDirectoryError if nothing says where it is."""
    if path is not None:
        return _configured_path(path, environ)
    return os.path.join(environ.get("NEXUS_STATE") or state_directory(environ), NAME)


def is_there(path: str | None, environ: Mapping[str, str]) -> bool:
    """Whether there is a file at the ledger's place."""
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
