"""Finds the instruction files of all assistants that are around a folder, whoever reads them.

1. The user's files are those that each assistant's room lists.
2. The project's files lie in the folder and the directories above it, up to the root of the repository, else
   up to the home.
3. Files below the folder are looked for in `directories_below`.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.reading.working_tree import (
    directories_below,
    find_working_tree,
    is_within,
    parents,
)

OTHER_NAMES = (".claude/AGENTS.md", ".windsurfrules", ".clinerules")
"""Beside those that the rules of an assistant name."""
RULES_DEEPEST = 5


class InstructionFiles(NamedTuple):
    """The paths of instruction files. `around` are those of the user, in the folder and above it, `nested`
    those below the folder.

    `complete` is false if the search below the folder ended early.
    """

    around: tuple[str, ...]
    nested: tuple[str, ...]
    complete: bool


def find_instruction_files(disk: Disk, surroundings: Surroundings) -> InstructionFiles:
    """Find the instruction files around a folder."""
    around = dict.fromkeys((*_user_files(disk, surroundings), *_project_files(disk, surroundings)))
    nested, complete = _nested_files(disk, surroundings.folder)
    return InstructionFiles(tuple(around), tuple(nested), complete)


def settings_files(disk: Disk, surroundings: Surroundings, name: str) -> list[str]:
    """List those of the user's settings files for an assistant that exist."""
    paths = PROGRAMS[name].instructions.list_settings(surroundings)
    return [path for path in paths if disk.is_file(path)]


def _user_files(disk: Disk, surroundings: Surroundings) -> Iterator[str]:
    for program in PROGRAMS.values():
        for path in program.instructions.list_user_files(surroundings):
            if path.endswith(os.sep):
                yield from _files_in(disk, path.rstrip(os.sep), ".md", 0)
            elif disk.is_file(path):
                yield path


def _project_files(disk: Disk, surroundings: Surroundings) -> Iterator[str]:
    repository = find_working_tree(disk, surroundings.folder)
    top = repository.root if repository is not None else surroundings.user_home
    names, directories = _project_names()
    for directory in reversed(parents(surroundings.folder)):
        if directory != surroundings.folder and not is_within(directory, top):
            continue
        for name in names:
            path = os.path.join(directory, *name.split("/"))
            if disk.is_file(path):
                yield path
        for name, suffix in directories:
            yield from _files_in(disk, os.path.join(directory, *name.split("/")), suffix, 0)


def _project_names() -> tuple[list[str], list[tuple[str, str]]]:
    """The names of files in a project, and the directories of rules with what their files end with."""
    names = dict.fromkeys(
        name for program in PROGRAMS.values() for name in program.instructions.assistant.names
    )
    patterns = sorted(name.split("/*") for name in names if "*" in name)
    files = [*(name for name in names if "*" not in name), *OTHER_NAMES]
    files.sort(key=lambda name: (name.startswith("."), name))
    return files, [(directory, suffix) for directory, suffix in patterns]


def _files_in(disk: Disk, directory: str, suffix: str, depth: int) -> Iterator[str]:
    for name, entry in sorted(disk.entries(directory)):
        path = os.path.join(directory, name)
        if entry == "directory" and depth < RULES_DEEPEST:
            yield from _files_in(disk, path, suffix, depth + 1)
        elif entry in ("file", "link") and name.endswith(suffix) and disk.is_file(path):
            yield path


def _nested_files(disk: Disk, folder: str) -> tuple[list[str], bool]:
    """Files below a folder, the nearest first; whether the walk saw everything."""
    directories, complete = directories_below(disk, folder)
    nested_names = {name for name in _project_names()[0] if "/" not in name and not name.startswith(".")}
    files = [
        os.path.join(directory, name)
        for directory in directories
        if directory != folder
        for name, _ in sorted(disk.entries(directory))
        if name in nested_names and disk.is_file(os.path.join(directory, name))
    ]
    return files, complete
