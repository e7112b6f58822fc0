"""The instruction files of all assistants that are around a folder, whoever reads them.

1. The user's: one list for each assistant's home.
2. Those of the folder and the directories above it, up to the root of the repository, else of the home.
3. Those below the folder: a walk of at most MOST_DIRECTORIES and DEEPEST levels, without hidden directories,
   dependencies and build results.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.assistants.claude_code.rules import config_directory
from nexus_context.assistants.codex.rules import codex_home
from nexus_context.assistants.opencode.rules import config_home
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import Surroundings
from nexus_context.assistants.reading.working_tree import find_working_tree, is_within, parents

NESTED_NAMES = ("AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "CLAUDE.local.md", "CONTEXT.md", "GEMINI.md")
NAMES = (
    *NESTED_NAMES,
    ".claude/CLAUDE.md",
    ".claude/AGENTS.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
    ".windsurfrules",
    ".clinerules",
)
DIRECTORIES = (
    (".claude/rules", ".md"),
    (".cursor/rules", ".mdc"),
    (".github/instructions", ".instructions.md"),
)
LEFT_OUT = frozenset(("node_modules", "venv", "dist", "build", "target", "__pycache__", "vendor"))
MOST_DIRECTORIES = 2_000
DEEPEST = 8
RULES_DEEPEST = 5


class InstructionFiles(NamedTuple):
    """Paths: `around` those of the user, the folder and above, `nested` those below.

    `complete` is false if the walk below ended early.
    """

    around: tuple[str, ...]
    nested: tuple[str, ...]
    complete: bool


def find_instruction_files(disk: Disk, surroundings: Surroundings) -> InstructionFiles:
    """The instruction files around a folder."""
    around = dict.fromkeys((*_user_files(disk, surroundings), *_project_files(disk, surroundings)))
    nested, complete = _nested_files(disk, surroundings.folder)
    return InstructionFiles(tuple(around), tuple(nested), complete)


def settings_files(disk: Disk, surroundings: Surroundings, name: str) -> list[str]:
    """The user's settings files of an assistant that exist."""
    home = surroundings.user_home
    paths = {
        "claude-code": [os.path.join(config_directory(surroundings), "settings.json")],
        "codex": [os.path.join(codex_home(surroundings), "config.toml")],
        "opencode": [os.path.join(config_home(surroundings), f"opencode.{end}") for end in ("json", "jsonc")],
        "gemini": [os.path.join(home, ".gemini", "settings.json")],
    }
    return [path for path in paths.get(name, ()) if disk.is_file(path)]


def _user_files(disk: Disk, surroundings: Surroundings) -> Iterator[str]:
    paths = (
        os.path.join(config_directory(surroundings), "CLAUDE.md"),
        os.path.join(codex_home(surroundings), "AGENTS.override.md"),
        os.path.join(codex_home(surroundings), "AGENTS.md"),
        os.path.join(config_home(surroundings), "AGENTS.md"),
        os.path.join(surroundings.user_home, ".gemini", "GEMINI.md"),
    )
    yield from (path for path in paths if disk.is_file(path))
    yield from _files_in(disk, os.path.join(config_directory(surroundings), "rules"), ".md", 0)


def _project_files(disk: Disk, surroundings: Surroundings) -> Iterator[str]:
    repository = find_working_tree(disk, surroundings.folder)
    top = repository.root if repository is not None else surroundings.user_home
    for directory in reversed(parents(surroundings.folder)):
        if directory != surroundings.folder and not is_within(directory, top):
            continue
        for name in NAMES:
            path = os.path.join(directory, *name.split("/"))
            if disk.is_file(path):
                yield path
        for name, suffix in DIRECTORIES:
            yield from _files_in(disk, os.path.join(directory, *name.split("/")), suffix, 0)


def _files_in(disk: Disk, directory: str, suffix: str, depth: int) -> Iterator[str]:
    for name, entry in sorted(disk.entries(directory)):
        path = os.path.join(directory, name)
        if entry == "directory" and depth < RULES_DEEPEST:
            yield from _files_in(disk, path, suffix, depth + 1)
        elif entry in ("file", "link") and name.endswith(suffix) and disk.is_file(path):
            yield path


def _nested_files(disk: Disk, folder: str) -> tuple[list[str], bool]:
    """Files below a folder, the nearest first; whether the walk saw everything."""
    files: list[str] = []
    level, seen = [folder], 0
    for _ in range(DEEPEST):
        below: list[str] = []
        for directory in level:
            seen += 1
            if seen > MOST_DIRECTORIES:
                return files, False
            for name, entry in sorted(disk.entries(directory)):
                path = os.path.join(directory, name)
                if entry == "directory" and not name.startswith(".") and name not in LEFT_OUT:
                    below.append(path)
                elif name in NESTED_NAMES and directory != folder and disk.is_file(path):
                    files.append(path)
        level = below
    return files, not level
