"""Computes the entry of each skill in the list that opencode sends.

`Skill.discovery` of opencode 1.18.33 searches `skills/**/SKILL.md` in `.claude` and `.agents` of the user and
of each directory from the folder up to the working tree's root; `skill` and `skills` in the directories of
its settings; and the directories that `skills.paths` names. A skill needs a `name`. It is not listed without
a `description`, or if `permission.skill` denies it.
"""

import os
from collections.abc import Iterator
from html import escape
from typing import Any

from nexus_context.assistants.opencode.agents import permission_of
from nexus_context.assistants.opencode.front_matter import read_markdown
from nexus_context.assistants.opencode.settings import config_directories, directories, is_on
from nexus_context.assistants.opencode.visits import Visits
from nexus_context.assistants.reading.alphabetical import alphabetical
from nexus_context.assistants.reading.definitions import ListEntry, Preference, choose
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    IgnoredFile,
    Scope,
    SentBlock,
    SentPart,
    Surroundings,
)
from nexus_context.errors import Problem, Severity, Span

SKILL = "SKILL.md"
OWN_DIRECTORIES = ("skill", "skills")
"""Where skills are in a directory of opencode, which are searched together."""


_PREFERENCE = Preference("opencode", "skill", why=None)
"""opencode parses all skills at once, and keeps the last of a name. Mostly it is in its own directories,
the nearest before others.
"""


def skill_blocks(
    disk: Disk,
    surroundings: Surroundings,
    values: dict[str, Any],
    ignored: list[IgnoredFile],
    *,
    problems: list[Problem],
) -> Iterator[SentBlock]:
    """Yield the list of skills that is sent, if there are any. opencode's own skill is not in it."""
    entries: list[ListEntry] = []
    visits = Visits()
    for root, scope in dict.fromkeys(_roots(disk, surroundings, values)):
        for path in _skill_files(disk, root, visits):
            text = disk.text(path)
            if text is None:
                continue
            fields, _, _ = read_markdown(text.removeprefix("\ufeff"))
            name, description = (fields or {}).get("name"), (fields or {}).get("description")
            reason = None
            if fields is None:
                reason = "Its front matter is not valid YAML. Put texts in quotes."
            elif not isinstance(name, str) or not isinstance(description, str):
                reason = "opencode lists skills with a `name` and a `description`."
            elif permission_of("skill", name, values) == "deny":
                reason = f"`permission.skill` denies {name}."
            if fields is None or not (isinstance(name, str) and isinstance(description, str)):
                message = f"opencode does not list this skill: {reason}"
                span = Span(0, min(3, len(text)))
                problems.append(Problem(path, span, "assistant.void", Severity.ERROR, message=message))
            if reason is not None:
                ignored.append(IgnoredFile(path, reason))
                continue
            text = (
                f"  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n"
                f"    <location>{escape(path)}</location>\n  </skill>\n"
            )
            entries.append(ListEntry(str(name), path, scope, text))
    skills = choose(
        reversed(entries), _PREFERENCE, surroundings, disk=disk, ignored=ignored, problems=problems
    )
    parts = [
        SentPart(skill.text, "skill", skill.path, content=Span(0, len(skill.text)))
        for skill in sorted(skills, key=lambda skill: alphabetical(skill.name))
    ]
    if parts:
        yield SentBlock("skills", "system", tuple(parts), complete=False)


def _roots(disk: Disk, surroundings: Surroundings, values: dict[str, Any]) -> Iterator[tuple[str, Scope]]:
    """The directories with skills, the least important first, each with its scope."""
    parent_directories = directories(disk, surroundings)
    if not is_on(surroundings, "OPENCODE_DISABLE_EXTERNAL_SKILLS"):
        without = is_on(surroundings, "OPENCODE_DISABLE_CLAUDE_CODE", "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS")
        for directory in (surroundings.user_home, *parent_directories):
            scope: Scope = "project" if directory in parent_directories else "user"
            for name in (".agents",) if without else (".claude", ".agents"):
                yield os.path.join(directory, name, "skills"), scope
    own_directories = config_directories(disk, surroundings)
    projects = [
        directory for directory in own_directories if os.path.dirname(directory) in parent_directories
    ]
    other_directories = [directory for directory in own_directories if directory not in projects]
    for directory in (*other_directories[:1], *reversed(projects), *other_directories[1:]):
        for name in OWN_DIRECTORIES:
            yield os.path.join(directory, name), "project" if directory in projects else "user"
    for path in values.get("skills", {}).get("paths", ()):
        home = os.path.join(surroundings.user_home, path[2:]) if path.startswith("~/") else path
        yield os.path.normpath(os.path.join(surroundings.folder, home)), "project"


def _skill_files(disk: Disk, root: str, visits: Visits) -> Iterator[str]:
    """The files of skills below a directory; links to directories are followed once."""
    is_external = os.path.basename(os.path.dirname(root)) in (".claude", ".agents")
    for path in reversed(list(visits.below(disk, root, skipped=(".git",) if is_external else (".",)))):
        if os.path.basename(path) == SKILL:
            yield path
        elif disk.is_file(os.path.join(path, SKILL)):
            yield os.path.join(path, SKILL)
