"""The directory that an agent works in: it exists and lies beneath a workspace folder."""

import os
from collections.abc import Sequence

from nexus_context.errors import RequestError
from nexus_context.files import exists, is_dir, read_text, real_path
from nexus_context.layers.walk import within


def directory(agent: str, cwd: str, *, base: str, roots: Sequence[str]) -> str:
    """The absolute path of an agent's directory; `cwd` is relative to `base`.

    `roots` are the workspace folders. Raises RequestError, code agent-cwd, that says what to do.
    """
    path = os.path.normpath(os.path.join(base, cwd))
    if "\0" in path:
        raise _error(agent, path, "is not a valid path. Remove its NUL characters")
    if not is_dir(path):
        raise _error(agent, path, _why(path))
    real = real_path(path)
    if not any(within(real, real_path(root)) for root in roots):
        folders = ", ".join(roots)
        where = f" (it leads to {real})" if real != path else ""
        why = f"is outside every workspace folder{where}. Open it as one, or choose one in {folders}"
        raise _error(agent, path, why)
    return path


def _why(path: str) -> str:
    read = read_text(path, limit=1)
    if read.status == "missing":
        dangling = exists(path)
        return "is a broken symbolic link. Correct it" if dangling else "does not exist. Create it"
    cause = read.problems[0].message if read.problems else ""
    if cause.startswith(_UNREADABLE):
        return "cannot be opened: " + cause.removeprefix(_UNREADABLE).rstrip(".")
    return "is not a directory. Name the directory that the agent works in"


_UNREADABLE = "Cannot read the file: "


def _error(agent: str, path: str, why: str) -> RequestError:
    return RequestError(f"The cwd of agent {agent!r}, {path}, {why}.", code="agent-cwd")
