"""`.nexus3/` written from templates: never overwrites, never follows a link out of the folder."""

import os

import msgspec

from nexus_context.errors import RequestError
from nexus_context.init import InitPlan


class Scaffolded(msgspec.Struct, frozen=True):
    """Absolute paths that were made, and those that were there already and left alone."""

    created: tuple[str, ...]
    existing: tuple[str, ...]


def scaffold(plan: InitPlan, *, overwrite: bool = False) -> Scaffolded:
    """Write what the plan says into its directory, made if need be.

    Raises RequestError when the directory is a link or cannot be made or written.
    """
    directory = plan.directory
    created: list[str] = []
    existing = list(plan.existing)
    try:
        if os.path.islink(directory):
            raise RequestError(f"{directory} is a symbolic link; nothing was written.", code="init-link")
        os.makedirs(directory, exist_ok=True)
        for path, text in plan.create:
            made = _write(path, text, overwrite=overwrite)
            (created if made else existing).append(path)
    except OSError as error:
        raise RequestError(
            f"Cannot write {error.filename or directory}: {error.strerror}. Is the folder writable?",
            code="init-failed",
        ) from error
    return Scaffolded(tuple(created), tuple(existing))


def _write(path: str, text: str, *, overwrite: bool) -> bool:
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    flags |= os.O_TRUNC if overwrite else os.O_EXCL
    try:
        handle = os.open(path, flags, 0o644)
    except FileExistsError:
        return False
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError:
        os.unlink(path)  # a full disk must not leave half a template behind
        raise
    return True
