"""Choose the folder of an MCP server: that of `--folder`, else the client's roots, else the working
directory.

1. Roots are `file:` URIs of directories that exist; others are left out. The workspace is the root that
   contains the working directory, else the first root. A call may name the other roots by `path`.
2. Until the client has answered with its roots, a call waits at most ROOTS_S. Without an answer, the working
   directory is used.
"""

import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ROOTS_S = 2.0
MOST_ROOTS = 50


class WorkspaceFolders:
    """The folders of a server, the workspace first. Any thread may read them."""

    def __init__(self, folders: tuple[str, ...], working_directory: str) -> None:
        self._folders = folders
        self._directory = working_directory
        self._roots: tuple[str, ...] = ()
        self._answered = threading.Event()
        self._answered.set()

    @property
    def takes_roots(self) -> bool:
        """Whether the client's roots are used, since the command line names no folder."""
        return not self._folders

    def expect_roots(self) -> None:
        """Make calls wait for the roots, since the client was asked for them."""
        self._answered.clear()

    def set_roots(self, result: "Any") -> None:
        """Use the roots in the client's answer. An answer without a list of roots counts as no roots."""
        roots = result.get("roots") if isinstance(result, dict) else None
        self._roots = _directories(roots if isinstance(roots, list) else [], self._directory)
        self._answered.set()

    def current(self) -> tuple[str, ...]:
        """Return the folders, at least one.

        Blocks until the client has answered with its roots, at most ROOTS_S.
        """
        if not self._answered.wait(ROOTS_S):
            self._answered.set()  # the next call does not wait again
        return self._folders or self._roots or (self._directory,)


def _directories(roots: "Sequence[Any]", working_directory: str) -> tuple[str, ...]:
    """The directories of roots, the one around the working directory first."""
    paths = (path_of(root.get("uri")) for root in roots[:MOST_ROOTS] if isinstance(root, dict))
    directories = dict.fromkeys(path for path in paths if path is not None and _is_directory(path))
    here = os.path.realpath(working_directory)
    return tuple(sorted(directories, key=lambda path: not is_beneath(here, os.path.realpath(path))))


def path_of(uri: object) -> str | None:
    """Return the absolute path of a `file:` URI of this machine. None for anything else."""
    if not isinstance(uri, str) or not uri.lower().startswith("file:"):
        return None
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        parts = urlsplit(uri)
        path = url2pathname(parts.path)
    except ValueError:
        return None
    return path if parts.netloc in ("", "localhost") and os.path.isabs(path) and "\0" not in path else None


def is_beneath(path: str, directory: str) -> bool:
    """Whether a path is the directory itself or lies beneath it."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _is_directory(path: str) -> bool:
    try:
        return os.path.isdir(path)
    except ValueError:
        return False
