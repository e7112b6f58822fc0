"""Computes what Cursor reads of a folder's files, by its documentation.

1. A rule `.cursor/rules/**/*.mdc` with `alwaysApply: true` is sent with every request, and one with `globs`
   with requests about a matching file. A rule that has only a `description` is sent where the model asks for
   it; until then its description is sent. Any other rule is sent only where somebody names it. Rules in a
   directory below count with files there.
2. AGENTS.md at the root is sent with every request, one in a directory below with files there. `.cursorrules`
   is old, and still read.
3. Of each skill the name and the description are listed.
4. Rules of the user and of a team are not files.

The texts around the files are not documented, so only the files' own are counted.
"""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.front_fields import UNREADABLE, field_list, field_text, is_readable
from nexus_context.assistants.reading.profile_types import (
    Assistant,
    AssistantSettings,
    IgnoredFile,
    InstructionReader,
    LaterFile,
    Rule,
    Sent,
    SentBlock,
    SentPart,
)
from nexus_context.assistants.reading.skill_entries import find_skills
from nexus_context.assistants.reading.working_tree import directories_below
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.skills.front_matter import unreadable_place

PAGE = "https://cursor.com/docs/rules"
COMMAND_LINE = "https://cursor.com/docs/cli/using"
SKILLS_PAGE = "https://cursor.com/docs/context/skills"
SKILL_DIRECTORIES = tuple(
    os.path.join(owner, "skills") for owner in (".cursor", ".agents", ".claude", ".codex")
)
"""In the folder, and in the user's home."""
DIRECTORY = os.path.join(".cursor", "rules")
SUFFIX = ".mdc"
DEEPEST = 6

ASSISTANT = Assistant(
    name="cursor",
    title="Cursor",
    version="2026-11",
    verified="documentation",
    model="claude-sonnet-5",
    names=("AGENTS.md", ".cursorrules", ".cursor/rules/*.mdc"),
    reads="AGENTS.md and its own rules",
    rules=(
        Rule(".cursor/rules/**/*.mdc by `alwaysApply`, `globs` and `description`", PAGE),
        Rule("a .md file in .cursor/rules is ignored, and .cursor/rules itself must be a directory", PAGE),
        Rule(".cursor/rules of a directory below with files there", PAGE),
        Rule("AGENTS.md at the root of the project", PAGE),
        Rule("a nested AGENTS.md with files in its directory", PAGE),
        Rule(".cursorrules (old)", PAGE),
        Rule("skills of .cursor, .agents, .claude and .codex: name and description", SKILLS_PAGE),
        Rule("CLAUDE.md at the root of the project, only on the command line", COMMAND_LINE),
    ),
)


def read_cursor(disk: Disk, settings: AssistantSettings) -> Sent:
    """Compute what Cursor sends of a folder's files: with every request, later, and never."""
    surroundings = settings.where
    parts: list[SentPart] = []
    later: list[LaterFile] = []
    ignored: list[IgnoredFile] = []
    offered: list[SentPart] = []
    for name in ("AGENTS.md", ".cursorrules"):
        path = os.path.join(surroundings.folder, name)
        text = (disk.text(path) or "").removeprefix("\ufeff") if disk.is_file(path) else ""
        if text.strip():
            parts.append(SentPart(text, "project", path, content=Span(0, len(text))))
    of_claude = os.path.join(surroundings.folder, "CLAUDE.md")
    if disk.is_file(of_claude):
        later.append(LaterFile(of_claude, "project", "on Cursor's command line, not in its editor"))
    problems: list[Problem] = []
    later.extend(_rules_below(disk, surroundings.folder, ignored=ignored, problems=problems))
    for path in _rule_files(disk, os.path.join(surroundings.folder, DIRECTORY), 0, ignored):
        text = (disk.text(path) or "").removeprefix("\ufeff")
        matter, body = markdown.split_front_matter(text)
        globs = ", ".join(field_list(matter, "globs"))
        description = field_text(matter, "description")
        if not is_readable(matter):
            problems.append(_unreadable_problem(path, text))
            ignored.append(IgnoredFile(path, "Its front matter is not valid YAML."))
        elif (field_text(matter, "alwaysApply") or "").lower() == "true":
            parts.append(SentPart(body, "rule", path, content=Span(0, len(body))))
        elif globs:
            later.append(LaterFile(path, "rule", f"with files that match {globs}"))
        elif description:
            offered.append(SentPart(f"{description}\n", "rule", path, content=Span(0, len(description))))
            later.append(LaterFile(path, "rule", "when the model asks for it, by its description"))
        else:
            reason = "It has no `alwaysApply: true`, `globs` or `description`: only @-mentioning it sends it."
            ignored.append(IgnoredFile(path, reason))
    blocks = [SentBlock("instructions", "system", tuple(parts), complete=False)] if parts else []
    roots = (surroundings.folder, surroundings.user_home)
    directories = [os.path.join(root, name) for root in roots for name in SKILL_DIRECTORIES]
    for skill in find_skills(disk, directories):
        offered.append(skill.entry)
        later.append(skill.file)
    if offered:
        blocks.append(SentBlock("skills", "system", tuple(offered), complete=False))
    return Sent(tuple(blocks), tuple(later), tuple(ignored), tuple(problems), nested_names=("AGENTS.md",))


def _unreadable_problem(path: str, text: str) -> Problem:
    span, why, fix = unreadable_place(text)
    remedy = "" if "quotes" in why else " Put values in quotes."
    message = (
        f"This front matter is not valid YAML: {why}.{remedy} What Cursor does with such a rule is not "
        "documented."
    )
    return Problem(path, span, UNREADABLE, Severity.WARNING, message=message, fix=fix)


def _rules_below(
    disk: Disk, folder: str, *, ignored: list[IgnoredFile], problems: list[Problem]
) -> Iterator[LaterFile]:
    """The rules of directories below the folder; also reports what is no directory of rules."""
    for directory in directories_below(disk, folder)[0]:
        rules = os.path.join(directory, DIRECTORY)
        if disk.is_file(rules):
            message = (
                "Cursor reads nothing of this file: `.cursor/rules` must be a directory. Move it into one."
            )
            problems.append(Problem(rules, Span(0, 0), "assistant.void", Severity.ERROR, message=message))
        elif directory != folder:
            when = f"with files in {os.path.relpath(directory, folder)}"
            yield from (LaterFile(path, "nested", when) for path in _rule_files(disk, rules, 0, ignored))


def _rule_files(disk: Disk, directory: str, depth: int, ignored: list[IgnoredFile]) -> Iterator[str]:
    for name, entry in sorted(disk.entries(directory)):
        path = os.path.join(directory, name)
        if entry == "directory" and depth < DEEPEST:
            yield from _rule_files(disk, path, depth + 1, ignored)
        elif entry in ("file", "link") and name.endswith(SUFFIX) and disk.is_file(path):
            yield path
        elif name.endswith(".md"):
            ignored.append(IgnoredFile(path, "Rules are files that end with `.mdc`."))


INSTRUCTIONS = InstructionReader(
    assistant=ASSISTANT,
    read=read_cursor,
    own_place="/.cursor/rules/",
    own_files="rules of Cursor",
    list_settings=lambda where: (os.path.join(where.user_home, ".cursor", "mcp.json"),),
)
