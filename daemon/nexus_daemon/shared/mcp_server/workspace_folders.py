"""The folder of a server: that of `--folder`, else the roots of the client, else the working directory.

1. Roots are directories that exist, as `file:` URIs; others are left out. The workspace is the root around
   the working directory, else the first one; the other roots may be named by `path`.
2. Until the client has answered with its roots, a call waits ROOTS_S at most; without an answer the working
   directory counts.
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
        """Whether roots of the client count."""
        return not self._folders

    def expect_roots(self) -> None:
        """Let calls wait for the roots, which the client was asked for."""
        self._answered.clear()

    def set_roots(self, result: "Any") -> None:
        """Take the client's answer; anything else than a list of roots is none."""
        roots = result.get("roots") if isinstance(result, dict) else None
        self._roots = _directories(roots if isinstance(roots, list) else [], self._directory)
        self._answered.set()

    def current(self) -> tuple[str, ...]:
        """The folders now; at least one. Blocks until the client has answered, or for ROOTS_S."""
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
    """The absolute path of a `file:` URI of this machine."""
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
    """Whether a path is a directory or beneath it, by their components."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _is_directory(path: str) -> bool:
    try:
        return os.path.isdir(path)
    except ValueError:
        return False
