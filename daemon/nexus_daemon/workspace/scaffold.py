"""Write `.nexus3/` from templates: never follow a link out of the folder, never lose an existing file.

New files and directories get the permissions that the user's own programs give, by the client's umask.
"""

import contextlib
import os

import msgspec

from nexus_context.errors import RequestError
from nexus_context.folder.init import InitPlan


class Scaffolded(msgspec.Struct, frozen=True):
    """The absolute paths of files that were created, and of existing files that were left alone."""

    created: tuple[str, ...]
    existing: tuple[str, ...]


def scaffold(plan: InitPlan, *, overwrite: bool = False, umask: int | None = None) -> Scaffolded:
    """Write the files of the plan into its directory, which is created if needed.

    `umask` is that of the client; None means that of this process. Raise RequestError if the directory is a
    link, or cannot be created or written.
    """
    directory = plan.directory
    created: list[str] = []
    existing = list(plan.existing)
    try:
        if os.path.islink(directory):
            raise RequestError(f"{directory} is a symbolic link; nothing was written.", code="init-link")
        _make_directory(directory, umask)
        for path, text in plan.create:
            is_new = _write(path, text, overwrite=overwrite or path in plan.replaced, umask=umask)
            (created if is_new else existing).append(path)
    except OSError as error:
        raise RequestError(
            f"Cannot write {error.filename or directory}: {error.strerror}. Is the folder writable?",
            code="init-failed",
        ) from error
    return Scaffolded(tuple(created), tuple(existing))


def _make_directory(directory: str, umask: int | None) -> None:
    """Create a directory and those above it that are missing."""
    if umask is None or os.name == "nt":
        os.makedirs(directory, exist_ok=True)
        return
    missing_directories = []
    while not os.path.isdir(directory):
        missing_directories.append(directory)
        directory = os.path.dirname(directory)
    for path in reversed(missing_directories):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
            os.chmod(path, 0o777 & ~umask)


def _write(path: str, text: str, *, overwrite: bool, umask: int | None) -> bool:
    """Create the file; with `overwrite` it replaces the old one once it is complete. False: it existed."""
    if not overwrite or not os.path.lexists(path):
        return _create(path, text, 0o644, umask=umask)
    if os.path.islink(path):
        raise RequestError(f"{path} is a symbolic link; it was not replaced.", code="init-link")
    mode = os.stat(path).st_mode & 0o777
    new_path = f"{path}.{os.getpid()}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new_path)  # of a run that was killed
    _create(new_path, text, mode)
    try:
        os.replace(new_path, path)
    except OSError:
        os.unlink(new_path)
        raise
    return True


def _create(path: str, text: str, mode: int, *, umask: int | None = None) -> bool:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(path, flags, mode)
    except FileExistsError:
        return False
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            if umask is not None and os.name != "nt":
                os.fchmod(handle, mode & ~umask)
            file.write(text)
            file.flush()
            os.fsync(handle)
    except OSError:
        os.unlink(path)  # a full disk must not leave half a template behind
        raise
    return True
