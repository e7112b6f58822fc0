"""Computes the line that Claude Code sends of each skill and command.

1. A skill is a directory with a SKILL.md in a directory of skills. A command is a Markdown file in or below a
   directory of commands; its name begins with the directories before it (`git:sync`). If a directory has a
   SKILL.md, that is its only command, named after the directory. Skills are sorted by name in each directory;
   all commands follow them, then what plugins bring.
2. A line has the name and the description. Without a description, the first line of the text is taken. A
   `name` that is another one than the skill's follows in parentheses. `disable-model-invocation` and
   `skillOverrides` leave out the line or its description. A skill with `paths` is sent after the first read
   of a file that matches, and a skill of a directory below the folder after the first read there. Without the
   tool `Skill` there is no list.
3. All lines, those of Claude Code's own skills among them, may take `skillListingBudgetFraction` (1 %) of the
   model's window. A token counts as four columns for earlier models, and as three for the others. If the
   lines need more, the descriptions are added one by one, the most used first, as long as they fit; the other
   skills are sent by name alone. Claude Code's own descriptions stay.
"""

import functools
import os
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category, combining, east_asian_width

import msgspec

from nexus_context.assistants.claude_code.directories import (
    DefinitionDirectory,
    DefinitionFile,
    definition_directories,
    markdown_files,
    not_heeded,
    plugin_files,
    read_definition,
)
from nexus_context.assistants.claude_code.front_matter import is_true, path_patterns, text_of
from nexus_context.assistants.claude_code.plugins import Plugin, enabled_plugins
from nexus_context.assistants.claude_code.settings import is_set, read_state
from nexus_context.assistants.reading.alphabetical import alphabetical
from nexus_context.assistants.reading.definitions import Preference, choose
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantSettings,
    IgnoredFile,
    LaterFile,
    Scope,
    SentBlock,
    SentPart,
)
from nexus_context.assistants.reading.working_tree import directories_below
from nexus_context.config.check import schema_text
from nexus_context.errors import Problem, Severity, Span
from nexus_context.tokens.models import candidates

OWN_LISTS = str(Path(__file__).with_name("own_lists.json"))
SKILL = "SKILL.md"
MODEL = "claude-sonnet-5"
LONGEST_LINE = 100  # characters of a line that stands for a description
LONGEST_DESCRIPTION = 1_536
FRACTION = 0.01
_OFF = ("off", "user-invocable-only")
_TITLE = re.compile(r"[\w:.-]+")
_HEADING = re.compile(r"#+\s+(?=\S)")
_RESERVED = ("synced",)
_GUARDED_FIELDS = ("allowed-tools", "disallowed-tools", "hooks")
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_JOINERS = "\u200d\ufe0f"
NO_BUNDLED_SKILLS = "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS"
_WEEK_MS = 7 * 86_400_000
_PREFERENCE = Preference(
    "Claude Code", "skill", "Of one name the user's skill comes first, then the nearest; then commands so."
)


class _Skill(NamedTuple):
    """A skill or command; `kind` says which. `plugin` is the prefix of its plugin's names, or empty."""

    name: str
    kind: str
    file: DefinitionFile
    plugin: str = ""

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def scope(self) -> Scope:
        return self.file.scope


class _Line(NamedTuple):
    """A line of the list: as a whole, and with the name alone."""

    skill: _Skill
    whole: str
    bare: str


class _Size(NamedTuple):
    """The columns of a line, whole and with the name alone, and how much the skill was used."""

    whole: int
    bare: int
    uses: float


def claude_skills(
    disk: Disk,
    settings: AssistantSettings,
    *,
    later: list[LaterFile],
    ignored: list[IgnoredFile],
    problems: list[Problem],
) -> Iterator[SentBlock]:
    """Yield the list of skills and commands that is sent, if there are any. Claude Code's own are not in it,
    but take their share of its size.
    """
    denied_rules = (rule for value in settings.each("permissions", "deny") for rule in value)
    if "Skill" in denied_rules:
        return
    later.extend(_nested_skills(disk, settings.where.folder))
    skills = _all_skills(disk, settings, problems)
    skills = choose(skills, _PREFERENCE, settings.where, disk=disk, ignored=ignored, problems=problems)
    overrides = {
        name: override for value in settings.each("skillOverrides") for name, override in value.items()
    }
    longest = settings.value("skillListingMaxDescChars")
    longest = longest if isinstance(longest, int) and longest > 0 else LONGEST_DESCRIPTION
    lines = []
    listed_skills = _listed(skills, overrides, later=later, ignored=ignored)
    for skill, label, is_bare in _labelled(listed_skills, {skill.name for skill in skills}, overrides):
        problems.extend(_field_problems(skill))
        description = "" if is_bare else f": {_description(skill, problems, longest)}"
        lines.append(_Line(skill, f"- {label}{description}", f"- {label}"))
    budget = _budget(settings)
    uses = _uses(read_state(disk, settings.where)[1])
    sizes = [_Size(_columns(line.whole), _columns(line.bare), uses.get(line.skill.name, 0)) for line in lines]
    own_sizes = _own_sizes(settings, {skill.name for skill in skills}, overrides, longest=longest)
    fitting = _fitting([*sizes, *own_sizes], budget)
    cut_lines = [
        line for line, fits in zip(lines, fitting, strict=False) if not fits and line.whole != line.bare
    ]
    if cut_lines:
        problems.append(_cut_problem(cut_lines, budget))
    parts = (
        SentPart(f"{text}\n", "skill", line.skill.path, content=Span(0, len(text)))
        for line, fits in zip(lines, fitting, strict=False)
        for text in (line.whole if fits else line.bare,)
    )
    if lines:
        yield SentBlock("skills", "system", tuple(parts), complete=False)


def _listed(
    skills: list[_Skill], overrides: dict[str, str], *, later: list[LaterFile], ignored: list[IgnoredFile]
) -> Iterator[_Skill]:
    """The skills that have a line from the start."""
    for skill in skills:
        fields = skill.file.fields
        globs = path_patterns(fields.get("paths")) if skill.kind == "skill" and not skill.plugin else ()
        override = None if skill.plugin else overrides.get(skill.name)
        if override == "off":
            continue
        if override == "user-invocable-only" or is_true(fields.get("disable-model-invocation")):
            later.append(LaterFile(skill.path, "skill", "when the user calls it"))
        elif skill.plugin and not any(text_of(fields.get(key)) for key in ("description", "when_to_use")):
            ignored.append(IgnoredFile(skill.path, "Of a plugin only skills with a description are listed."))
        elif globs:
            when = f"after a file that matches {', '.join(globs)} is read"
            later.append(LaterFile(skill.path, "skill", when))
        else:
            yield skill


def _labelled(
    listed: Iterator[_Skill], names: set[str], overrides: dict[str, str]
) -> Iterator[tuple[_Skill, str, bool]]:
    """Yield each skill with its label, and whether its line has nothing but the label."""
    taken_names = {*names, *_own_lists()["skills"], *_own_lists()["late_skills"], *_own_lists()["commands"]}
    for skill in listed:
        title = _title(skill.file.fields.get("name")) if skill.kind == "skill" else None
        title = title and f"{skill.plugin}{title}"
        is_bare = not skill.plugin and overrides.get(skill.name) == "name-only"
        has_title = title is not None and title not in taken_names and not is_bare
        taken_names.add(title or skill.name)
        yield skill, f"{skill.name} ({title})" if has_title else skill.name, is_bare


def find_guarded_skills(disk: Disk, settings: AssistantSettings) -> frozenset[str]:
    """Find the names of the skills and commands that Claude Code asks about if no rule allows them: those
    that change what may run.
    """
    return frozenset(
        skill.name
        for skill in _all_skills(disk, settings, [])
        if any(skill.file.fields.get(field) for field in _GUARDED_FIELDS)
    )


def _all_skills(disk: Disk, settings: AssistantSettings, problems: list[Problem]) -> list[_Skill]:
    plugins = list(enabled_plugins(disk, settings))
    return [
        *_skills(disk, settings, problems),
        *_commands(disk, settings, problems),
        *(command for plugin in plugins for command in _plugin_commands(disk, plugin, problems)),
        *(skill for plugin in plugins for skill in _plugin_skills(disk, plugin, problems)),
    ]


def _skills(disk: Disk, settings: AssistantSettings, problems: list[Problem]) -> Iterator[_Skill]:
    """The skills, each file once."""
    visited: set[str] = set()
    for directory in definition_directories(disk, settings.where, "skills"):
        for name in sorted((name for name, _ in disk.entries(directory.path)), key=alphabetical):
            path = os.path.join(directory.path, name, SKILL)
            real = disk.real(path)
            if disk.is_file(path) and real not in visited and name not in _RESERVED and ":" not in name:
                visited.add(real)
                yield _Skill(name, "skill", read_definition(disk, path, directory, problems))


def _nested_skills(disk: Disk, folder: str) -> Iterator[LaterFile]:
    """The skills of directories below the folder."""
    for directory in directories_below(disk, folder)[0][1:]:
        if any(name == ".claude" for name, _ in disk.entries(directory)):
            skills = os.path.join(directory, ".claude", "skills")
            for name, _ in disk.entries(skills):
                path = os.path.join(skills, name, SKILL)
                if disk.is_file(path):
                    when = "after a file in or below its directory is read, by name and description"
                    yield LaterFile(path, "nested", when)


def _commands(disk: Disk, settings: AssistantSettings, problems: list[Problem]) -> list[_Skill]:
    """The commands in the order of their names."""
    files = list(markdown_files(disk, definition_directories(disk, settings.where, "commands"), problems))
    return sorted(_named_commands(files, ""), key=lambda command: alphabetical(command.name))


def _plugin_commands(disk: Disk, plugin: Plugin, problems: list[Problem]) -> Iterator[_Skill]:
    return _named_commands(list(plugin_files(disk, plugin, "commands", problems)), f"{plugin.name}:")


def _plugin_skills(disk: Disk, plugin: Plugin, problems: list[Problem]) -> Iterator[_Skill]:
    """The skills of a plugin: the directories with a SKILL.md, or the plugin itself if it has one."""
    root = DefinitionDirectory(plugin.root, "user")
    alone = os.path.join(plugin.root, SKILL)
    if (
        plugin.is_installed
        and disk.is_file(alone)
        and not disk.is_directory(os.path.join(plugin.root, "skills"))
    ):
        file = read_definition(disk, alone, root, problems)
        name = text_of(file.fields.get("name")) or os.path.basename(plugin.root)
        yield _Skill(f"{plugin.name}:{name}", "skill", file, f"{plugin.name}:")
    for skills_directory in plugin.places("skills"):
        names = sorted((name for name, _ in disk.entries(skills_directory)), key=alphabetical)
        paths = [
            os.path.join(skills_directory, SKILL),
            *(os.path.join(skills_directory, name, SKILL) for name in names),
        ]
        for path in filter(disk.is_file, paths):
            directory = DefinitionDirectory(skills_directory, "user")
            name = f"{plugin.name}:{os.path.basename(os.path.dirname(path))}"
            yield _Skill(name, "skill", read_definition(disk, path, directory, problems), f"{plugin.name}:")
            if path == paths[0]:
                break


def _named_commands(files: list[DefinitionFile], plugin: str) -> Iterator[_Skill]:
    """Name the commands. A SKILL.md is the only command of its directory."""
    packs = {os.path.dirname(file.path): file for file in reversed(files) if _is_skill_file(file.path)}
    for file in files:
        if packs.get(os.path.dirname(file.path), file) is file:
            *parent_steps, name = file.steps
            if _is_skill_file(file.path):
                name = parent_steps.pop() if parent_steps else os.path.basename(file.directory)
            steps = ":".join((*parent_steps, name.removesuffix(".md")))
            yield _Skill(f"{plugin}{steps}", "command", file, plugin)


def _is_skill_file(path: str) -> bool:
    return os.path.basename(path).lower() == SKILL.lower()


def _field_problems(skill: _Skill) -> Iterator[Problem]:
    """What is wrong with the description of a skill."""
    fields = skill.file.fields
    description_key = next((key for key in fields if key.lower() == "description"), None)
    if description_key is not None and text_of(fields[description_key]) and description_key != "description":
        message = f"Claude Code ignores `{description_key}`. Write `description`."
        yield not_heeded(skill.path, message)
    elif description_key == "description" and isinstance(fields[description_key], (list, dict)):
        message = "This `description` is not text: the first line of the file is shown instead. Quote it."
        yield not_heeded(skill.path, message)
    elif description_key == "description" and text_of(fields[description_key]) is None:
        message = (
            "This `description` is empty: the first line of the file is shown instead. Write when to use the "
            f"{skill.kind}."
        )
        yield not_heeded(skill.path, message)


def _title(value: Any) -> str | None:
    """The `name` of a skill if it can be shown."""
    text = ",".join(map(str, value)) if isinstance(value, list) else text_of(value)
    return text if text and _TITLE.fullmatch(text) else None


def _description(skill: _Skill, problems: list[Problem], longest: int) -> str:
    """The description in the line of a skill, cut at `longest` characters."""
    fields = skill.file.fields
    main_text = text_of(fields.get("description")) or _first_line(skill.file.body)
    texts = (
        main_text or ("Skill" if skill.kind == "skill" else "Custom command"),
        text_of(fields.get("when_to_use")),
    )
    text = " - ".join(_visible(text) for text in texts if text)
    if len(text) <= longest:
        return text
    message = (
        f"Claude Code sends the first {longest - 1:,} of the {len(text):,} characters of this description "
        "(`skillListingMaxDescChars`). Shorten it."
    )
    problems.append(Problem(skill.path, Span(0, 3), "assistant.cut", Severity.WARNING, message=message))
    return f"{text[: longest - 1]}\u2026"


def _visible(text: str) -> str:
    """A text without markup, each run of characters that cannot be seen as a blank; emoji stay whole."""
    if not text.isprintable() or not text.isascii():
        pieces = (
            (" " if hidden else "".join(run))
            for hidden, run in groupby(
                text, lambda character: category(character) in _HIDDEN and character not in _JOINERS
            )
        )
        text = "".join(pieces)
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _first_line(body: str) -> str:
    """The first line with text, without the marks of a heading, shortened."""
    line = next((line.strip() for line in body.split("\n") if line.strip()), "")
    line = _HEADING.sub("", line)
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."


def _budget(settings: AssistantSettings) -> int:
    """The columns that all lines together may have."""
    variable = settings.where.environ.get("SLASH_COMMAND_TOOL_CHAR_BUDGET", "").strip()
    if variable.isdecimal() and int(variable):
        return int(variable)
    model = settings.where.environ.get("ANTHROPIC_MODEL") or settings.value("model") or MODEL
    is_early = not set(candidates(model)).isdisjoint(_own_lists()["early_models"])
    window = 200_000 if is_early and not model.endswith("[1m]") else 1_000_000
    fraction = settings.value("skillListingBudgetFraction")
    is_valid = isinstance(fraction, int | float) and not isinstance(fraction, bool) and 0 < fraction <= 1
    return max(1, int(window * (4 if is_early else 3) * (fraction if is_valid else FRACTION)))


def _own_sizes(
    settings: AssistantSettings, names: set[str], overrides: dict[str, str], *, longest: int
) -> Iterator[_Size]:
    """The sizes of Claude Code's own lines, which `names` replace."""
    if settings.value("disableBundledSkills") is True or is_set(settings.where, NO_BUNDLED_SKILLS):
        return
    for kind in ("skills", "late_skills"):
        for name, columns in _own_lists()[kind].items():
            override = overrides.get(name, "on")
            if name not in names and override not in _OFF:
                bare = len(f"- {name}")
                whole = bare if override == "name-only" else bare + len(": ") + min(columns, longest)
                yield _Size(whole, whole if kind == "skills" else bare, 0)


def _fitting(sizes: list[_Size], budget: int) -> list[bool]:
    """Whether each line is sent as a whole."""
    remaining = budget + 1 - sum(size.whole + 1 for size in sizes)
    if remaining >= 0:
        return [True] * len(sizes)
    remaining = budget + 1 - sum(size.bare + 1 for size in sizes)
    fitting = [False] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index].uses):
        cost = sizes[index].whole - sizes[index].bare
        if cost <= remaining:
            fitting[index], remaining = True, remaining - cost
    return fitting


def _columns(text: str) -> int:
    """The columns that a text has on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text
    )


def _uses(state: dict[str, Any]) -> dict[str, float]:
    """How often each skill was used. A week from its last use to the latest of any skill halves the count."""
    entries = state.get("skillUsage")
    counts = {
        name: (entry["usageCount"], entry["lastUsedAt"] / _WEEK_MS)
        for name, entry in (entries.items() if isinstance(entries, dict) else ())
        if isinstance(entry, dict)
        and all(isinstance(entry.get(key), int) for key in ("usageCount", "lastUsedAt"))
    }
    last_week = max((at for _, at in counts.values()), default=0.0)
    return {name: count * max(0.5 ** (last_week - at), 0.1) for name, (count, at) in counts.items()}


def _cut_problem(cut_lines: list[_Line], budget: int) -> Problem:
    """One problem for all descriptions that are left out."""
    names = ", ".join(f"`{line.skill.name}`" for line in cut_lines[:3])
    more = f" and {len(cut_lines) - 3} more" if len(cut_lines) > 3 else ""
    message = (
        f"Claude Code sends only the name of {names}{more}: its list of skills is full ({budget:,} "
        "characters). Shorten descriptions, or raise `skillListingBudgetFraction`."
    )
    return Problem(cut_lines[0].skill.path, Span(0, 0), "assistant.cut", Severity.WARNING, message=message)


def list_built_in_skills() -> list[str]:
    """List the names of the skills and commands that Claude Code itself brings."""
    return [*_own_lists()["skills"], *_own_lists()["late_skills"], *_own_lists()["commands"]]


@functools.cache
def _own_lists() -> dict[str, Any]:
    """Claude Code's own skills and commands."""
    own_lists: dict[str, Any] = msgspec.json.decode(schema_text(OWN_LISTS))
    return own_lists
