"""Tells which assistants a project is set up for: those for which it has files of their own."""

import os
from collections.abc import Sequence

import msgspec

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.reading.working_tree import find_working_tree, is_within, parents


class Project(msgspec.Struct, frozen=True):
    """The directories that hold a project. The user's home is not part of it."""

    roots: tuple[str, ...]
    user_home: str

    def contains(self, path: str) -> bool:
        """Whether a path belongs to the project, rather than to the user or the machine."""
        roots = [root for root in self.roots if is_within(path, root)]
        is_at_home = is_within(path, self.user_home)
        return any(is_within(root, self.user_home) or not is_at_home for root in roots)


def project_of(surroundings: Surroundings, disk: Disk) -> Project:
    """Return the project that a folder belongs to. In a worktree, the main working tree belongs to it,
    too.
    """
    folder, home = surroundings.folder, disk.real(surroundings.user_home)
    repository = find_working_tree(disk, folder)
    if repository is not None and not is_within(home, repository.root):
        return Project(tuple(dict.fromkeys(repository)), home)
    base = home if is_within(folder, home) else os.sep
    if folder == base:
        return Project((folder,), home)
    return Project((os.path.join(base, os.path.relpath(folder, base).split(os.sep)[0]),), home)


def is_set_up(name: str, folder: str, disk: Disk, project: Project) -> bool:
    """Whether the project of a folder has a file or directory of an assistant that counts in the folder."""
    program = PROGRAMS[name]
    return find_mark(program.marks, folder, disk, project, inherited=program.inherited) is not None


def find_mark(
    marks: Sequence[str],
    folder: str,
    disk: Disk,
    project: Project,
    *,
    inherited: Sequence[str] | None = None,
) -> str | None:
    """Find the nearest mark in a folder, or above it in its project. Return its path relative to the
    folder, else None.

    Above the folder only the marks in `inherited` count, or all if that is None. What is in a program's
    directory in the user's home is the user's, and no mark of a project there.
    """
    for directory in parents(folder):
        is_home = directory == project.user_home
        counting_marks = marks if directory == folder or inherited is None else inherited
        for mark in counting_marks if project.contains(directory) else ():
            first_step, *_ = parts = mark.split("/")
            is_users = (
                is_home
                and first_step.startswith(".")
                and disk.is_directory(os.path.join(directory, first_step))
            )
            path = os.path.join(directory, *parts)
            if not is_users and disk.exists(path):
                return os.path.relpath(path, folder)
    return None
