"""Finds the directory for the user's state: the ledger, the log, what was set up.

It is $NEXUS_STATE, else `nexus` in the system's directory for user state, which is in the home directory.
"""

import os
from collections.abc import Mapping

from nexus_context.errors import NexusError


class NoStateDirectoryError(NexusError, OSError):
    """Raised if there is no home directory, and $NEXUS_STATE is not set."""

    def __init__(self) -> None:
        super().__init__(
            "Nexus does not know where to keep your state: there is no home directory (HOME is unset, empty "
            "or relative, and the system has no entry for this user). Set NEXUS_STATE to the absolute path "
            "of a directory, or HOME to that of your home directory."
        )


def has_home_directory() -> bool:
    """Whether this user has a home directory, as far as the environment and the system say."""
    home = os.environ.get("HOME") if os.name != "nt" else None
    return os.path.isabs(os.path.expanduser("~") if home is None else home)


def state_directory(environ: Mapping[str, str]) -> str:
    """Return the absolute path of the user's state directory.

    NoStateDirectoryError if nothing says where it is.
    """
    if state := environ.get("NEXUS_STATE"):
        return os.path.abspath(state)
    import platformdirs  # slow, and needed by processes that store something

    try:
        path = str(platformdirs.user_state_path("nexus", appauthor=False))
    except RuntimeError:
        raise NoStateDirectoryError from None
    if not os.path.isabs(path):
        raise NoStateDirectoryError
    return path
