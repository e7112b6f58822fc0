"""Finds the files that define skills, commands, agents and output styles of Claude Code, and reads them.

1. Each kind has a directory in the organization's place, in the user's directory, and in `.claude` of the
   folder and of each directory above it, up to the repository. Outside of a repository they go up to the
   home.
2. A worktree that has no directory of a kind uses that of the main working tree.
3. If links make several paths the same file, the first one counts.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from nexus_context.assistants.claude_code.front_matter import NO_FIELDS, read_matter
from nexus_context.assistants.claude_code.intentions import NO_EFFECT, check_matter
from nexus_context.assistants.claude_code.plugins import Plugin
from nexus_context.assistants.claude_code.settings import config_directory, managed_directory
from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Scope, Surroundings
from nexus_context.assistants.reading.working_tree import GIT, find_working_tree, parents
from nexus_context.errors import Problem, Severity, Span

_LARGEST = 1 << 20  # bytes of a file
_UNFINISHED = re.compile(r"---[ \t]*\r?\n(?:name|description)[ \t]*:")
"""The beginning of a file with fields whose end is missing."""
_UNREADABLE = "Claude Code cannot read this front matter: none of its fields counts."


class DefinitionDirectory(NamedTuple):
    """A directory that may hold definitions of one kind, and whose it is: the user's, the project's or
    another.
    """

    path: str
    scope: Scope


class DefinitionFile(NamedTuple):
    """A file that defines a skill, a command, an agent or a style, with its fields and its body.

    `directory` is the directory of definitions that has it, `matter` is its front matter as written, None if
    it has none.
    """

    path: str
    scope: Scope
    directory: str
    fields: dict[str, Any]
    body: str
    matter: str | None

    @property
    def steps(self) -> tuple[str, ...]:
        """The names in the path from `directory` to the file, the file's own name last."""
        return tuple(os.path.relpath(self.path, self.directory).split(os.sep))


def definition_directories(disk: Disk, surroundings: Surroundings, kind: str) -> list[DefinitionDirectory]:
    """List the directories that may hold a kind of definition, such as "skills". The organization's comes
    first, then the user's, then those from the folder upwards.
    """
    folder, home = surroundings.folder, disk.real(surroundings.user_home)
    repository = find_working_tree(disk, folder)
    projects: list[DefinitionDirectory] = []
    for directory in parents(folder):
        if directory == home:
            break
        scope: Scope = "project" if directory == folder else "parent"
        projects.append(DefinitionDirectory(os.path.join(directory, ".claude", kind), scope))
        if disk.exists(os.path.join(directory, GIT)):
            break
    has_some = any(disk.is_directory(project.path) for project in projects)
    if repository is not None and repository.main != repository.root and not has_some:
        projects.append(DefinitionDirectory(os.path.join(repository.main, ".claude", kind), "parent"))
    return [
        DefinitionDirectory(os.path.join(managed_directory(), ".claude", kind), "managed"),
        DefinitionDirectory(os.path.join(config_directory(surroundings), kind), "user"),
        *projects,
    ]


def markdown_files(
    disk: Disk, directories: list[DefinitionDirectory], problems: list[Problem]
) -> Iterator[DefinitionFile]:
    """Yield the Markdown files in and below directories, those of each directory sorted by path. A file or
    directory that several links lead to comes once.
    """
    visited: set[str] = set()
    for directory in directories:
        for path in sorted(_markdown_below(disk, directory.path, visited)):
            real = disk.real(path)
            if real not in visited:
                visited.add(real)
                yield read_definition(disk, path, directory, problems)


def plugin_files(disk: Disk, plugin: Plugin, kind: str, problems: list[Problem]) -> Iterator[DefinitionFile]:
    """Yield the Markdown files in which a plugin defines a kind, such as "agents"."""
    for path in plugin.places(kind):
        if disk.is_file(path):
            directory = DefinitionDirectory(os.path.dirname(path), "user")
            yield read_definition(disk, path, directory, problems)
        else:
            yield from markdown_files(disk, [DefinitionDirectory(path, "user")], problems)


def read_definition(
    disk: Disk, path: str, directory: DefinitionDirectory, problems: list[Problem]
) -> DefinitionFile:
    """Read a definition file. What is wrong with its front matter is added to `problems`."""
    text = disk.text(path) or ""
    matter, body = markdown.split_front_matter(text)
    read = read_matter(matter)
    if matter is not None:
        problems.extend(check_matter(path, text, _UNREADABLE))
    elif _UNFINISHED.match(text):
        problems.append(
            not_heeded(path, "This front matter does not end. Write a line `---` after its last field.")
        )
    elif text[:1].isspace() and markdown.split_front_matter(text.lstrip())[0] is not None:
        problems.append(
            not_heeded(path, "Front matter counts only from the first line. Remove what is above.")
        )
    fields = (NO_FIELDS if read is None else read).values
    return DefinitionFile(path, directory.scope, directory.path, fields=fields, body=body, matter=matter)


def not_heeded(path: str, message: str) -> Problem:
    """Make a problem that says why a file's front matter does not count."""
    return Problem(path, Span(0, 3), NO_EFFECT, Severity.WARNING, message=message)


def _markdown_below(disk: Disk, directory: str, visited: set[str]) -> Iterator[str]:
    real = disk.real(directory)
    if real in visited:
        return
    visited.add(real)
    for name, kind in disk.entries(directory):
        path = os.path.join(directory, name)
        if kind != "file" and disk.is_directory(path):
            yield from _markdown_below(disk, path, visited)
        elif name.endswith(".md") and disk.is_file(path) and len(disk.data(path) or b"") <= _LARGEST:
            yield path
