"""What opencode sends of a folder's files, by its own requests.

1. The user's file: the first that exists of AGENTS.md in the configuration directory and ~/.claude/CLAUDE.md.
2. The project's files: of the names AGENTS.md, CLAUDE.md, CONTEXT.md the first that any directory from the
   folder up to the working tree's root has, in all these directories, the nearest first. Without a repository
   that root is the file system's.
3. The files that `instructions` of its settings name: globs, looked for in the same directories. Addresses
   are
   fetched; Nexus does not fetch them.
4. Each file once; `OPENCODE_DISABLE_CLAUDE_CODE_PROMPT` leaves out the names of Claude Code.
"""

import os
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from nexus_context.assistants.opencode.skills import opencode_skills
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import (
    Assistant,
    AssistantSettings,
    IgnoredFile,
    InstructionReader,
    Rule,
    Scope,
    Sent,
    SentBlock,
    SentPart,
    Surroundings,
)
from nexus_context.assistants.reading.settings import read_document
from nexus_context.assistants.reading.working_tree import find_working_tree, parents
from nexus_context.config.globs import Globs, GlobsError
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text import json as jsontext
from nexus_context.text.json import JsonDocument

VERSION = "1.18.33"
PROGRAM = f"opencode {VERSION}"
PAGE = "https://opencode.ai/docs/rules"
NAMES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
CLAUDE = "CLAUDE.md"
ADDRESSES = ("http://", "https://")
MOST_FILES = 500  # of one pattern
MOST_VISITS = 20_000  # directory entries that all patterns look at
DEEPEST = 8  # directories that `**` stands for
CONTENT = "OPENCODE_CONFIG_CONTENT"
SETTINGS = ("opencode.jsonc", "opencode.json")
MAGIC = frozenset("*?[{")

ASSISTANT = Assistant(
    name="opencode",
    title="opencode",
    version=VERSION,
    verified="run",
    model="claude-sonnet-5",
    names=NAMES,
    reads="AGENTS.md or CLAUDE.md",
    rules=(
        Rule("~/.config/opencode/AGENTS.md, else ~/.claude/CLAUDE.md", PAGE),
        Rule("AGENTS.md, else CLAUDE.md, else CONTEXT.md, from the folder up to the repository's root", PAGE),
        Rule("the nearest file comes first", PROGRAM),
        Rule("without a repository, every directory above the folder", PROGRAM),
        Rule("`instructions` of opencode.json: paths, globs and addresses", PAGE),
        Rule("`@path` is sent as it stands", PAGE),
        Rule("a nested file follows the first read of a file beside or below it", PROGRAM),
    ),
)


class _Entry(NamedTuple):
    """Where an entry of `instructions` stands."""

    path: str
    span: Span


def config_home(surroundings: Surroundings) -> str:
    """The user's directory of opencode."""
    base = surroundings.environ.get("XDG_CONFIG_HOME") or os.path.join(surroundings.user_home, ".config")
    return os.path.join(base, "opencode")


def read_opencode(disk: Disk, settings: AssistantSettings) -> Sent:
    """What opencode sends of a folder's files."""
    surroundings = settings.where
    ignored: list[IgnoredFile] = []
    files: dict[str, Scope] = {}
    for path in _user_files(disk, surroundings, ignored):
        files.setdefault(path, "user")
    directories = _directories(disk, surroundings)
    for path in _project_files(disk, surroundings, directories, ignored):
        files.setdefault(path, "project" if os.path.dirname(path) == surroundings.folder else "parent")
    problems: list[Problem] = []
    visits = _Visits()
    for text, entry in _entries(disk, surroundings, directories).items():
        if text.startswith(ADDRESSES):
            ignored.append(IgnoredFile(text, "opencode fetches it with every request; Nexus does not."))
            continue
        paths = list(_instruction_files(disk, surroundings, directories, text, visits=visits))
        files.update((path, "settings") for path in paths if path not in files)
        if not paths and entry.path != CONTENT:
            message = f"No file matches {text}: opencode reads nothing for it. Correct the path."
            if visits.ended:
                message = f"{text} is looked for in more than {MOST_VISITS:,} files, where Nexus stops."
            problems.append(
                Problem(entry.path, entry.span, "assistant.instructions", Severity.WARNING, message=message)
            )
    parts: list[SentPart] = []
    for path, scope in files.items():
        text = (disk.text(path) or "").removeprefix("\ufeff")
        if not text:
            ignored.append(IgnoredFile(path, "It is empty, or no file."))
            continue
        separator = "\n" if parts else ""
        label = f"{separator}Instructions from: {path}\n"
        content = Span(len(label), len(label) + len(text))
        parts.append(SentPart(label + text, scope, path, content=content))
    blocks = [SentBlock("instructions", "system", tuple(parts))] if parts else []
    blocks.extend(opencode_skills(disk, surroundings, config_home(surroundings), directories))
    return Sent(tuple(blocks), ignored=tuple(ignored), problems=tuple(problems), nested_names=NAMES)


def _is_on(surroundings: Surroundings, *names: str) -> bool:
    return any(surroundings.environ.get(name, "").lower() in ("1", "true") for name in names)


def _reads_claude_files(surroundings: Surroundings) -> bool:
    return not _is_on(surroundings, "OPENCODE_DISABLE_CLAUDE_CODE", "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT")


def _directories(disk: Disk, surroundings: Surroundings) -> list[str]:
    """From the folder up to the root of the working tree, or of the file system."""
    repository = find_working_tree(disk, surroundings.folder)
    chain = parents(surroundings.folder)
    return chain if repository is None else chain[: chain.index(repository.root) + 1]


def _user_files(disk: Disk, surroundings: Surroundings, ignored: list[IgnoredFile]) -> Iterator[str]:
    paths = [os.path.join(config_home(surroundings), "AGENTS.md")]
    if _reads_claude_files(surroundings):
        paths.append(os.path.join(surroundings.user_home, ".claude", CLAUDE))
    existing = [path for path in paths if disk.exists(path)]
    yield from existing[:1]
    ignored.extend(IgnoredFile(path, f"{existing[0]} is read instead.") for path in existing[1:])


def _project_files(
    disk: Disk, surroundings: Surroundings, directories: list[str], ignored: list[IgnoredFile]
) -> Iterator[str]:
    if _is_on(surroundings, "OPENCODE_DISABLE_PROJECT_CONFIG"):
        return
    names = [name for name in NAMES if name != CLAUDE or _reads_claude_files(surroundings)]
    chosen = None
    for name in names:
        paths = [os.path.join(each, name) for each in directories]
        existing = [path for path in paths if disk.exists(path)]
        if chosen is None and existing:
            chosen = name
            yield from existing
        elif existing:
            reason = f"opencode reads {chosen} in these directories, and then no {name}."
            ignored.extend(IgnoredFile(path, reason) for path in existing)


def settings_documents(disk: Disk, surroundings: Surroundings) -> Iterator[JsonDocument]:
    """The settings of opencode in a folder, the least important first."""
    return _settings(disk, surroundings, _directories(disk, surroundings))


def _entries(disk: Disk, surroundings: Surroundings, directories: list[str]) -> dict[str, _Entry]:
    """The entries of `instructions` in all settings, each once, in their order."""
    entries: dict[str, _Entry] = {}
    for document in _settings(disk, surroundings, directories):
        value = document.value.get("instructions") if isinstance(document.value, dict) else None
        for index, text in enumerate(value if isinstance(value, list) else ()):
            if isinstance(text, str):
                span = document.span(("instructions", index))
                entries.setdefault(text, _Entry(document.path, span))
    return entries


def _settings(disk: Disk, surroundings: Surroundings, directories: list[str]) -> Iterator[JsonDocument]:
    environ = surroundings.environ
    for path in _settings_paths(surroundings, directories):
        document = read_document(disk, path)
        if document is not None:
            yield document
    content = environ.get(CONTENT)
    if content:
        yield jsontext.parse(CONTENT, content)


def _settings_paths(surroundings: Surroundings, directories: list[str]) -> Iterator[str]:
    """The settings files, the least important first."""
    environ = surroundings.environ
    home = config_home(surroundings)
    yield from (os.path.join(home, name) for name in ("config.json", *SETTINGS[::-1]))
    if environ.get("OPENCODE_CONFIG"):
        yield os.path.join(surroundings.folder, environ["OPENCODE_CONFIG"])
    in_project = [] if _is_on(surroundings, "OPENCODE_DISABLE_PROJECT_CONFIG") else directories
    yield from (os.path.join(directory, name) for directory in reversed(in_project) for name in SETTINGS)
    dot = [os.path.join(each, ".opencode") for each in in_project]
    dot.append(os.path.join(surroundings.user_home, ".opencode"))
    if environ.get("OPENCODE_CONFIG_DIR"):
        dot.append(environ["OPENCODE_CONFIG_DIR"])
    yield from (os.path.join(directory, name) for directory in dict.fromkeys(dot) for name in SETTINGS)


def _instruction_files(
    disk: Disk, surroundings: Surroundings, directories: list[str], entry: str, *, visits: "_Visits"
) -> Iterator[str]:
    """The files of one entry."""
    if entry.startswith("~/"):
        entry = os.path.join(surroundings.user_home, entry[2:])
    if os.path.isabs(entry):
        yield from _glob(disk, os.path.dirname(entry), os.path.basename(entry), visits)
        return
    if _is_on(surroundings, "OPENCODE_DISABLE_PROJECT_CONFIG"):
        directories = [config_home(surroundings)]
    for directory in directories:
        yield from _glob(disk, directory, entry, visits)


def _glob(disk: Disk, directory: str, pattern: str, visits: "_Visits") -> list[str]:
    """The files below a directory that match a pattern."""
    path = os.path.normpath(os.path.join(directory, pattern))
    steps = pattern.split("/")
    first = next((index for index, step in enumerate(steps) if MAGIC.intersection(step)), None)
    if first is None:
        return [path] if disk.is_file(path) else []
    try:
        globs = Globs(path.replace(os.sep, "/"))
    except GlobsError:
        return []
    levels = DEEPEST if "**" in pattern else min(len(steps) - first, DEEPEST)
    names = visits.below(disk, os.path.join(directory, *steps[:first]), levels)
    matching = (each for each in names if globs.matches(each.replace(os.sep, "/")) and disk.is_file(each))
    return list(islice(matching, MOST_FILES))


class _Visits:
    """Directory entries that the globs of one profile may look at; `ended` once there were more."""

    def __init__(self) -> None:
        self.remaining = MOST_VISITS
        self.ended = False

    def below(self, disk: Disk, directory: str, levels: int) -> Iterator[str]:
        """Paths of what is no directory, in the order of their names."""
        for name, entry in sorted(disk.entries(directory)):
            if self.remaining == 0:
                self.ended = True
                return
            self.remaining -= 1
            path = os.path.join(directory, name)
            if entry in ("file", "link"):
                yield path
            elif entry == "directory" and levels > 1 and name not in (".git", "node_modules"):
                yield from self.below(disk, path, levels - 1)


INSTRUCTIONS = InstructionReader(
    assistant=ASSISTANT,
    read=read_opencode,
    own_place="/opencode/",
    own_files="files of opencode",
    list_user_files=lambda where: (os.path.join(config_home(where), "AGENTS.md"),),
    list_settings=lambda where: (os.path.join(config_home(where), name) for name in reversed(SETTINGS)),
)
