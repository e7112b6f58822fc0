"""Writes `.nexus3/` from templates: never follows a link out of the folder, never loses an existing file."""

import contextlib
import os

import msgspec

from nexus_context.errors import RequestError
from nexus_context.init import InitPlan


class Scaffolded(msgspec.Struct, frozen=True):
    """Absolute paths of files that were created, and of existing ones that were left alone."""

    created: tuple[str, ...]
    existing: tuple[str, ...]


def scaffold(plan: InitPlan, *, overwrite: bool = False) -> Scaffolded:
    """Write the files of the plan into its directory, which is created if need be.

    Raises RequestError when the directory is a link, or cannot be created or written.
    """
    directory = plan.directory
    created: list[str] = []
    existing = list(plan.existing)
    try:
        if os.path.islink(directory):
            raise RequestError(f"{directory} is a symbolic link; nothing was written.", code="init-link")
        os.makedirs(directory, exist_ok=True)
        for path, text in plan.create:
            is_new = _write(path, text, overwrite=overwrite)
            (created if is_new else existing).append(path)
    except OSError as error:
        raise RequestError(
            f"Cannot write {error.filename or directory}: {error.strerror}. Is the folder writable?",
            code="init-failed",
        ) from error
    return Scaffolded(tuple(created), tuple(existing))


def _write(path: str, text: str, *, overwrite: bool) -> bool:
    """Create the file; with `overwrite` it replaces the old one once it is complete. False: it existed."""
    if not overwrite or not os.path.lexists(path):
        return _create(path, text, 0o644)
    if os.path.islink(path):
        raise RequestError(f"{path} is a symbolic link; it was not replaced.", code="init-link")
    mode = os.stat(path).st_mode & 0o777
    fresh = f"{path}.{os.getpid()}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh)  # of a run that was killed
    _create(fresh, text, mode)
    try:
        os.replace(fresh, path)
    except OSError:
        os.unlink(fresh)
        raise
    return True


def _create(path: str, text: str, mode: int) -> bool:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(path, flags, mode)
    except FileExistsError:
        return False
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
    except OSError:
        os.unlink(path)  # a full disk must not leave half a template behind
        raise
    return True
