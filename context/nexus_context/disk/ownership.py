"""Decides whether a file or directory can be trusted: by its owner, by who may write to it, by its kind."""

import errno
import os
import stat

import msgspec

from nexus_context.disk.files import KINDS, FileRead, is_dir, is_link


class DirectoryFault(msgspec.Struct, frozen=True):
    """Why a directory cannot be entered. `reason` continues a sentence that begins with “it”.

    `advice` is a sentence.
    """

    code: str
    reason: str
    advice: str


def trusted_directory(path: str) -> str | None:
    """Return why a directory must not be entered, or None if it can be trusted.

    A trusted directory belongs to this process's user or to root, and is not writable for everyone unless it
    is sticky. A symbolic link must itself belong to one of the two. Where users have no numbers (Windows),
    every existing directory is trusted.
    """
    reason = _distrust(path, sticky_helps=True)
    if reason is None and not is_dir(path):
        return "is not a directory"
    return reason


def directory_fault(path: str) -> DirectoryFault | None:
    """Return why a path cannot be entered as a directory. None if it can, or if nothing is there.

    The owner of the directory does not matter.
    """
    try:
        info = os.stat(path)
        searchable = os.access(path, os.X_OK)
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and not is_link(path):  # it has been removed
            return None
        reason, advice = _NO_DIRECTORY.get(getattr(error, "errno", None) or 0, _UNKNOWN_FAULT)
        return DirectoryFault("layer.unreadable", reason, advice)
    if not stat.S_ISDIR(info.st_mode):
        kind = next((name for test, name in KINDS if test(info.st_mode)), "a file")
        advice = "Replace it by a directory or remove it."
        return DirectoryFault("layer.not-a-directory", f"is {kind}, not a directory", advice)
    return None if searchable else DirectoryFault("layer.unreadable", *_NO_DIRECTORY[errno.EACCES])


_NO_DIRECTORY = {
    errno.ELOOP: ("is a loop of symbolic links", "Point the link at a real directory or remove it."),
    errno.ENOENT: ("is a symbolic link to nothing", "Correct the link or remove it."),
    errno.ENOTDIR: ("is a symbolic link to nothing", "Correct the link or remove it."),
    errno.EACCES: (
        "cannot be entered: no permission",
        "Give this user permission to read it (chmod u+rx) or remove it.",
    ),
}
_UNKNOWN_FAULT = ("cannot be examined", "Check the disk, or replace it by a directory.")


def trusted_file(path: str) -> str | None:
    """Return why a file in a shared directory such as /tmp cannot be trusted, or None if it can."""
    return _distrust(path, sticky_helps=False)


def trusted_read(read: FileRead) -> str | None:
    """Return why the file that was read cannot be trusted, or None if it can. See `trusted_file`.

    This is about the opened file, whatever is at its path now. If there is no file, its text is unsaved text
    of the user, which is trusted.
    """
    if read.owner is None:
        reason = trusted_file(read.path)
        return None if reason == _MISSING else reason
    if not _has_users():
        return None
    try:
        link = os.lstat(read.path)
    except (OSError, ValueError):
        return "was replaced while it was read"
    if stat.S_ISLNK(link.st_mode) and (reason := _foreign(link.st_uid, "the symbolic link ")):
        return reason
    uid, mode = read.owner
    return _foreign(uid) or (_OPEN_TO_ALL if mode & stat.S_IWOTH else None)


def foreign(path: str) -> str | None:
    """Return a reason if the path belongs to another user than this one or root, else None.

    For a symbolic link, the owner of the link counts.
    """
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return None
    return _foreign(info.st_uid, "the symbolic link " if stat.S_ISLNK(info.st_mode) else "")


def shared_directory(path: str) -> bool:
    """Whether everyone may put files into a directory, and only their owners may remove them, as in /tmp."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return _has_users() and bool(mode & stat.S_IWOTH and mode & stat.S_ISVTX)


def owned_alike(path: str, other: str) -> bool:
    """Whether two directories have the same owner, and the first is not writable for everyone."""
    try:
        status, other_status = os.stat(path), os.stat(other)
    except (OSError, ValueError):
        return False
    return status.st_uid == other_status.st_uid and not status.st_mode & stat.S_IWOTH


def _distrust(path: str, *, sticky_helps: bool) -> str | None:
    try:
        link, info = os.lstat(path), os.stat(path)
    except FileNotFoundError:
        return _MISSING
    except (OSError, ValueError) as error:
        return f"cannot be examined ({getattr(error, 'strerror', None) or 'impossible path'})"
    if not _has_users():
        return None
    for status, subject in ((link, "the symbolic link "), (info, "")):
        if reason := _foreign(status.st_uid, subject if status.st_ino != info.st_ino else ""):
            return reason
    if info.st_mode & stat.S_IWOTH and not (sticky_helps and info.st_mode & stat.S_ISVTX):
        return _OPEN_TO_ALL + (" and not sticky" if sticky_helps else "")
    return None


def _foreign(uid: int, subject: str = "") -> str | None:
    if not _has_users():
        return None
    return None if uid in (os.geteuid(), 0) else f"{subject}belongs to another user (uid {uid})"


def _has_users() -> bool:
    """Whether users have numbers here; not on Windows."""
    return hasattr(os, "geteuid")


_MISSING = "does not exist"
_OPEN_TO_ALL = "is writable for everyone"
