"""Skills, agents and output styles of Claude Code: what is sent of each.

1. A skill is a directory with a SKILL.md in `skills` of the user's directory, of the folder's `.claude` or of
   that of a directory above, up to the repository; a command is a Markdown file in `commands`, below
   directories that its name begins with. Directories are read in the order of their names. Of each a line is
   sent, with its name and description; without a description the first line of its text stands for it, and a
   `name` that is another one follows in parentheses. `disable-model-invocation` and `skillOverrides` leave it
   out, or its description.
2. An agent is a Markdown file in `agents`; it needs a name and a description. Of two with one name the last
   counts, and that of the nearest directory.
3. The text of the style that the setting `outputStyle` names is sent with every request.
4. A worktree without a directory of a kind has that of the main working tree.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.claude_code.front_matter import (
    NO_FIELDS,
    is_true,
    read_matter,
    text_of,
    tool_names,
)
from nexus_context.assistants.claude_code.intentions import NO_EFFECT
from nexus_context.assistants.claude_code.settings import config_directory
from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.alphabetical import alphabetical
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import AssistantSettings, SentBlock, SentPart, Surroundings
from nexus_context.assistants.reading.working_tree import GIT, find_working_tree, parents
from nexus_context.errors import Problem, Severity, Span

SKILL = "SKILL.md"
ALL_TOOLS = "All tools"
DEEPEST = 8  # directories of commands
LONGEST_LINE = 100  # characters of a line that stands for a description
LONGEST_DESCRIPTION = 1_536
OWN_SKILLS = frozenset(
    {
        "claude-api",
        "code-review",
        "dataviz",
        "fewer-permission-prompts",
        "init",
        "keybindings-help",
        "loop",
        "plugin-authoring",
        "run",
        "security-review",
        "simplify",
        "update-config",
        "workflow-authoring",
    }
)
"""The skills that Claude Code lists besides: their names are theirs."""
_OFF = ("off", "user-invocable-only")
_TITLE = re.compile(r"[\w:.-]+")
_HEADING = re.compile(r"#+\s+(?=\S)")


def claude_skills(disk: Disk, settings: AssistantSettings, problems: list[Problem]) -> Iterator[SentBlock]:
    """The block of skills and commands, if there are any; Claude Code lists its own besides."""
    found: dict[str, str] = {}
    for directory in _directories(disk, settings.where, "skills"):
        for name in _names(disk, directory):
            path = os.path.join(directory, name, SKILL)
            if disk.is_file(path):
                found.setdefault(name, path)
    user, *projects = _directories(disk, settings.where, "commands")
    for directory in (*projects, user):
        for path, name in _command_files(disk, directory, ()):
            found.setdefault(name, path)
    overrides = {name: each for value in settings.each("skillOverrides") for name, each in value.items()}
    parts = []
    shown = {*found, *OWN_SKILLS}
    for name, path in found.items():
        fields, body = _read(disk, path, problems)
        override = overrides.get(name, "on")
        if override in _OFF or is_true(fields.get("disable-model-invocation")):
            continue
        wrong = next((each for each in fields if each.lower() == "description"), None)
        if wrong is not None and text_of(fields[wrong]) and wrong != "description":
            problems.append(_not_heeded(path, f"Claude Code does not heed `{wrong}`. Write `description`."))
        elif wrong == "description" and isinstance(fields[wrong], (list, dict)):
            message = "This `description` is no text: the first line of the file stands for it. Quote it."
            problems.append(_not_heeded(path, message))
        title = _title(fields.get("name")) if path.endswith(SKILL) else None
        label = name if title is None or title in shown else f"{name} ({title})"
        shown.add(title or name)
        line = f"- {name}\n" if override == "name-only" else f"- {label}: {_description(fields, body)}\n"
        parts.append(SentPart(line, "skill", path, content=Span(0, len(line) - 1)))
    if parts:
        yield SentBlock("skills", "system", tuple(parts), complete=False)


def claude_agents(disk: Disk, settings: AssistantSettings, problems: list[Problem]) -> Iterator[SentBlock]:
    """The block of agents, if there are any; Claude Code lists its own besides."""
    user, *projects = _directories(disk, settings.where, "agents")
    agents = {
        name: (line, path)
        for directory in (user, *reversed(projects))
        for file in _names(disk, directory)
        if file.endswith(".md")
        for path in (os.path.join(directory, file),)
        for name, line in _agent(disk, path, problems)
    }
    parts = [
        SentPart(line, "agent", path, content=Span(0, len(line) - 1))
        for line, path in sorted(agents.values())
    ]
    if parts:
        yield SentBlock("agents", "system", tuple(parts), complete=False)


def read_output_style(disk: Disk, settings: AssistantSettings) -> Iterator[SentBlock]:
    """The text of the chosen style, if a file has it: Claude Code's own styles are none of the user's."""
    wanted = settings.value("outputStyle")
    user, *projects = _directories(disk, settings.where, "output-styles")
    for path in (
        os.path.join(directory, name)
        for directory in (*projects, user)
        for name in _names(disk, directory)
        if name.endswith(".md")
    ):
        fields, body = _read(disk, path, [])
        name = text_of(fields.get("name")) or os.path.basename(path).removesuffix(".md")
        text = body.strip()
        if name == wanted and text:
            header = f"<system-reminder>\n# Output Style: {name}\n"
            style = SentPart(text, "settings", path, content=Span(0, len(text)))
            parts = (SentPart(header, "program"), style, SentPart("\n</system-reminder>", "program"))
            yield SentBlock("instructions", "system", parts)
            return


def _directories(disk: Disk, surroundings: Surroundings, name: str) -> list[str]:
    """The directories of a kind, the user's first, then the nearest."""
    folder = surroundings.folder
    repository = find_working_tree(disk, folder)
    ends = (directory for directory in parents(folder) if disk.exists(os.path.join(directory, GIT)))
    chain = parents(folder)
    chain = chain[: chain.index(next(ends, folder)) + 1]
    projects = [os.path.join(directory, ".claude", name) for directory in chain]
    has_some = any(disk.is_directory(directory) for directory in projects)
    if repository is not None and repository.main != repository.root and not has_some:
        projects.append(os.path.join(repository.main, ".claude", name))
    user = os.path.join(config_directory(surroundings), name)
    return [user, *(directory for directory in projects if directory != user)]


def _command_files(disk: Disk, directory: str, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The paths and names of commands: `a/b.md` is `a:b`."""
    for name in _names(disk, directory):
        path = os.path.join(directory, name)
        if disk.is_directory(path) and len(above) < DEEPEST:
            yield from _command_files(disk, path, (*above, name))
        elif name.endswith(".md"):
            yield path, ":".join((*above, name.removesuffix(".md")))


def _names(disk: Disk, directory: str) -> list[str]:
    return sorted((name for name, _ in disk.entries(directory)), key=alphabetical)


def _read(disk: Disk, path: str, problems: list[Problem]) -> tuple[dict[str, Any], str]:
    """The fields of a file, and its text behind them."""
    matter, body = markdown.split_front_matter(disk.text(path) or "")
    read = read_matter(matter)
    if read is None:
        message = "Claude Code cannot read this front matter: none of its fields counts. Quote values."
        problems.append(_not_heeded(path, message))
    return (NO_FIELDS if read is None else read).values, body


def _not_heeded(path: str, message: str) -> Problem:
    return Problem(path, Span(0, 3), NO_EFFECT, Severity.WARNING, message=message)


def _title(value: Any) -> str | None:
    """The `name` of a skill if it can be shown."""
    text = ",".join(map(str, value)) if isinstance(value, list) else text_of(value)
    return text if text and _TITLE.fullmatch(text) else None


def _description(fields: dict[str, Any], body: str) -> str:
    """What the line of a skill says of it."""
    texts = (text_of(fields.get("description")) or _first_line(body), text_of(fields.get("when_to_use")))
    text = " - ".join(filter(None, texts))
    text = text if len(text) <= LONGEST_DESCRIPTION else f"{text[: LONGEST_DESCRIPTION - 1]}\u2026"
    return " ".join(text.split()).replace("<", "&lt;").replace(">", "&gt;")


def _first_line(body: str) -> str:
    """The first line with text, without the marks of a heading, shortened."""
    line = next((line.strip() for line in body.split("\n") if line.strip()), "")
    line = _HEADING.sub("", line)
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."


def _agent(disk: Disk, path: str, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    """The name and the line of an agent, if the file is one."""
    fields, _ = _read(disk, path, problems)
    name, description = fields.get("name"), fields.get("description")
    if isinstance(name, str) and name and isinstance(description, str) and description:
        tools = _tools(tool_names(fields.get("tools")), tool_names(fields.get("disallowedTools")))
        yield name, f"- {name}: {description} (Tools: {tools})\n"
    elif fields:
        message = "Claude Code has no such agent: it needs a `name` and a `description`, both texts."
        problems.append(_not_heeded(path, message))


def _tools(allowed: list[str], denied: list[str]) -> str:
    """What the line of an agent says of its tools."""
    if not allowed:
        return f"{ALL_TOOLS} except {', '.join(denied)}" if denied else ALL_TOOLS
    return ", ".join(name for name in allowed if name not in denied) or "None"
