"""Computes what opencode sends of a folder's files, by its own requests.

1. The user's file is the first that exists of AGENTS.md in OPENCODE_CONFIG_DIR, else in the configuration
   directory, and ~/.claude/CLAUDE.md.
2. The project's files have one name: the first of AGENTS.md, CLAUDE.md and CONTEXT.md that any directory has,
   from the folder up to the root of the working tree. The files of this name in all these directories are
   sent, the nearest first. Without a repository, the search goes up to the root of the file system.
3. The setting `instructions` names further files by globs, which are looked for in the same directories.
   opencode also fetches addresses; Nexus does not.
4. Each file is sent once. `OPENCODE_DISABLE_CLAUDE_CODE_PROMPT` leaves out the files with Claude Code's
   names.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import islice

from nexus_context.assistants.opencode.agents import agent_blocks, prompt_blocks
from nexus_context.assistants.opencode.permission_checks import check_permissions
from nexus_context.assistants.opencode.permission_rules import settings_rules
from nexus_context.assistants.opencode.settings import (
    CONTENT,
    FILES,
    config_home,
    instruction_entries,
    is_on,
)
from nexus_context.assistants.opencode.settings import (
    directories as find_directories,
)
from nexus_context.assistants.opencode.skills import skill_blocks
from nexus_context.assistants.opencode.visits import DEEPEST, MOST_VISITS, Visits
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.path_globs import PathGlob
from nexus_context.assistants.reading.profile_types import (
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
from nexus_context.errors import Problem, Severity, Span

VERSION = "1.18.33"
PROGRAM = f"opencode {VERSION}"
PAGE = "https://opencode.ai/docs/rules"
NAMES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
CLAUDE = "CLAUDE.md"
ADDRESSES = ("http://", "https://")
MOST_FILES = 500  # of one pattern
MAGIC = frozenset("*?[{(")

ASSISTANT = Assistant(
    name="opencode",
    title="opencode",
    version=VERSION,
    verified="run",
    model="claude-sonnet-5",
    own_tokens=10_400,
    names=NAMES,
    reads="AGENTS.md or CLAUDE.md",
    rules=(
        Rule("~/.config/opencode/AGENTS.md, else ~/.claude/CLAUDE.md", PAGE),
        Rule("AGENTS.md, else CLAUDE.md, else CONTEXT.md, from the folder up to the repository's root", PAGE),
        Rule("the nearest file comes first", PROGRAM),
        Rule("without a repository, every directory above the folder", PROGRAM),
        Rule("`instructions` of opencode.json: paths, globs and addresses", PAGE),
        Rule("`@path` is sent as it is", PAGE),
        Rule("a nested file follows the first read of a file beside or below it", PROGRAM),
        Rule("OPENCODE_CONFIG_DIR has AGENTS.md instead of ~/.config/opencode", PROGRAM),
        Rule("`{env:NAME}` and `{file:PATH}` in its settings, of which a wrong type stops it", PROGRAM),
        Rule("the prompt of the agent that runs, instead of its own; the other agents in a list", PROGRAM),
        Rule("`permission.skill` and `permission.task` leave out skills and agents", PROGRAM),
    ),
)


def read_opencode(disk: Disk, settings: AssistantSettings) -> Sent:
    """Compute what opencode sends of a folder's files: with every request, later, and never."""
    surroundings = settings.where
    ignored: list[IgnoredFile] = []
    files: dict[str, Scope] = {}
    for path in _user_files(disk, surroundings, ignored):
        files.setdefault(path, "user")
    directories = find_directories(disk, surroundings)
    for path in _project_files(disk, surroundings, directories, ignored):
        files.setdefault(path, "project" if os.path.dirname(path) == surroundings.folder else "parent")
    problems: list[Problem] = []
    visits = Visits()
    for text, file, span in instruction_entries(settings):
        if text.startswith(ADDRESSES):
            ignored.append(IgnoredFile(text, "opencode fetches it with every request; Nexus does not."))
            continue
        paths = list(_instruction_files(disk, surroundings, directories, text, visits=visits))
        files.update((path, "settings") for path in paths if path not in files)
        if not paths and file.path != CONTENT:
            message = f"No file matches {text}: opencode reads nothing for it. Correct the path."
            if visits.ended:
                message = f"{text} is looked for in more than {MOST_VISITS:,} files, where Nexus stops."
            problems.append(
                Problem(file.path, span, "assistant.instructions", Severity.WARNING, message=message)
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
    values = settings.merged()
    blocks = [
        *prompt_blocks(values, settings.files),
        *blocks,
        *skill_blocks(disk, surroundings, values, ignored, problems=problems),
        *agent_blocks(values, settings.files),
    ]
    problems += check_permissions(disk, settings)
    return Sent(
        tuple(blocks),
        ignored=tuple(ignored),
        problems=tuple(problems),
        nested_names=NAMES,
        changes_own=_changes_own(settings),
    )


def _changes_own(settings: AssistantSettings) -> bool:
    """Whether settings change opencode's own agent, run another one, or deny it a tool."""
    keys = (("default_agent",), ("agent", "build"), ("mode", "build"))
    rules = settings_rules(settings, ())
    return any(settings.value(*pointer) is not None for pointer in keys) or any(
        (rule.pattern, rule.action) == ("*", "deny") for rule in rules
    )


def _reads_claude_files(surroundings: Surroundings) -> bool:
    return not is_on(surroundings, "OPENCODE_DISABLE_CLAUDE_CODE", "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT")


def _user_files(disk: Disk, surroundings: Surroundings, ignored: list[IgnoredFile]) -> Iterator[str]:
    config_directory = surroundings.environ.get("OPENCODE_CONFIG_DIR") or config_home(surroundings)
    paths = [os.path.join(surroundings.folder, config_directory, "AGENTS.md")]
    if _reads_claude_files(surroundings):
        paths.append(os.path.join(surroundings.user_home, ".claude", CLAUDE))
    existing = [path for path in paths if disk.exists(path)]
    yield from existing[:1]
    ignored.extend(IgnoredFile(path, f"{existing[0]} is read instead.") for path in existing[1:])


def _project_files(
    disk: Disk, surroundings: Surroundings, directories: Sequence[str], ignored: list[IgnoredFile]
) -> Iterator[str]:
    if is_on(surroundings, "OPENCODE_DISABLE_PROJECT_CONFIG"):
        return
    names = [name for name in NAMES if name != CLAUDE or _reads_claude_files(surroundings)]
    chosen_name = None
    for name in names:
        paths = [os.path.join(directory, name) for directory in directories]
        existing = [path for path in paths if disk.exists(path)]
        if chosen_name is None and existing:
            chosen_name = name
            yield from existing
        elif existing:
            reason = f"opencode reads {chosen_name} in these directories, and then no {name}."
            ignored.extend(IgnoredFile(path, reason) for path in existing)


def _instruction_files(
    disk: Disk, surroundings: Surroundings, directories: Sequence[str], entry: str, *, visits: "Visits"
) -> Iterator[str]:
    """The files of one entry."""
    if entry.startswith("~/"):
        entry = os.path.join(surroundings.user_home, entry[2:])
    if os.path.isabs(entry):
        name = os.path.basename(entry)
        paths = _glob(disk, os.path.dirname(entry), name, visits)
        yield from (
            path for path in paths if name.startswith(".") or not os.path.basename(path).startswith(".")
        )
        return
    if is_on(surroundings, "OPENCODE_DISABLE_PROJECT_CONFIG"):
        directories = [surroundings.environ.get("OPENCODE_CONFIG_DIR") or config_home(surroundings)]
    for directory in directories:
        yield from _glob(disk, directory, entry, visits)


def _glob(disk: Disk, directory: str, pattern: str, visits: "Visits") -> list[str]:
    """The files below a directory that match a pattern."""
    path = os.path.normpath(os.path.join(directory, pattern))
    steps = pattern.split("/")
    first_magic = next((index for index, step in enumerate(steps) if MAGIC.intersection(step)), None)
    if first_magic is None:
        return [path] if disk.is_file(path) else []
    glob = PathGlob(path.replace(os.sep, "/"), is_minimatch=True)
    levels = DEEPEST if "**" in pattern else min(len(steps) - first_magic, DEEPEST)
    names = visits.below(disk, os.path.join(directory, *steps[:first_magic]), levels)
    matching_paths = (
        file_path
        for file_path in names
        if glob.matches(file_path.replace(os.sep, "/")) and disk.is_file(file_path)
    )
    return list(islice(matching_paths, MOST_FILES))


INSTRUCTIONS = InstructionReader(
    assistant=ASSISTANT,
    read=read_opencode,
    own_place="/opencode/",
    own_files="files of opencode",
    list_user_files=lambda where: (os.path.join(config_home(where), "AGENTS.md"),),
    list_settings=lambda where: (os.path.join(config_home(where), name) for name in FILES),
)
