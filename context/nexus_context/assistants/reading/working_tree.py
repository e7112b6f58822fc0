"""Finds where the git repository around a folder begins, as other programs do: from files, without running
git.
"""

import functools
import os
from typing import NamedTuple

from nexus_context.assistants.reading.disk import Disk

GIT = ".git"
LEFT_OUT = frozenset(("node_modules", "venv", "dist", "build", "target", "__pycache__", "vendor"))
MOST_DIRECTORIES = 2_000
DEEPEST = 8
_POINTER = "gitdir:"


class WorkingTree(NamedTuple):
    """The working tree around a folder. `root` is its directory, `main` the main working tree of the same
    repository.

    `store` is `main`, or the directory of a bare repository, which has no working tree of its own; `main` is
    `root` then.
    """

    root: str
    main: str
    store: str


@functools.lru_cache(maxsize=256)
def parents(folder: str) -> tuple[str, ...]:
    """List a folder and all directories above it, the nearest first."""
    result = [folder]
    while (parent := os.path.dirname(result[-1])) != result[-1]:
        result.append(parent)
    return tuple(result)


def directories_below(disk: Disk, folder: str) -> tuple[list[str], bool]:
    """List a folder and the directories below it, the nearest first. The second value says whether the list
    is complete.

    Hidden directories, dependencies and build results are left out. The list ends at MOST_DIRECTORIES
    directories and DEEPEST levels.
    """
    directories: list[str] = []
    level = [folder]
    for _ in range(DEEPEST):
        directories.extend(level)
        if len(directories) > MOST_DIRECTORIES:
            return directories[:MOST_DIRECTORIES], False
        level = [
            os.path.join(directory, name)
            for directory in level
            for name, entry in sorted(disk.entries(directory))
            if entry == "directory" and not name.startswith(".") and name not in LEFT_OUT
        ]
    return directories, not level


def find_working_tree(disk: Disk, folder: str) -> WorkingTree | None:
    """Find the nearest working tree around a folder whose git directory is complete, None if there is
    none.
    """
    for directory in parents(folder):
        path = os.path.join(directory, GIT)
        if _is_complete(disk, path):
            return WorkingTree(directory, directory, directory)
        git_directory = _linked(disk, path)
        if git_directory is not None:
            shared = _shared_directory(disk, git_directory)
            if shared is None:
                return WorkingTree(directory, directory, directory)
            is_bare = os.path.basename(shared) != GIT
            main = directory if is_bare else os.path.dirname(shared)
            return WorkingTree(directory, main, shared if is_bare else main)
    return None


def _is_complete(disk: Disk, path: str) -> bool:
    """Whether git takes a directory for a repository."""
    return disk.is_file(os.path.join(path, "HEAD")) and all(
        disk.is_directory(os.path.join(path, name)) for name in ("objects", "refs")
    )


def _linked(disk: Disk, path: str) -> str | None:
    """The git directory that a file `.git` of a worktree or submodule names."""
    text = disk.text(path) if disk.is_file(path) else None
    if text is None or not text.startswith(_POINTER):
        return None
    target = os.path.normpath(os.path.join(os.path.dirname(path), text.removeprefix(_POINTER).strip()))
    return target if disk.is_file(os.path.join(target, "HEAD")) else None


def _shared_directory(disk: Disk, git_directory: str) -> str | None:
    """The git directory of the repository that a worktree's belongs to; None for a submodule's."""
    common = disk.text(os.path.join(git_directory, "commondir"))
    if common is None:
        return None
    return os.path.normpath(os.path.join(git_directory, common.strip()))


def is_within(path: str, directory: str) -> bool:
    """Whether a path is a directory itself or beneath it."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)
