"""Skills, agents and output styles of Claude Code: what is sent of each.

1. A skill is a directory with a SKILL.md in `skills` of the user's directory, of the folder's `.claude` or of
   that of a directory above, up to the repository; a command is a Markdown file in `commands`, below
   directories that its name begins with. Of each a line is sent, with its name and description; without a
   description the first line of its text stands for it. `disable-model-invocation` and `skillOverrides` leave
   it out, or its description.
2. An agent is a Markdown file in `agents`; it needs a name and a description.
3. The text of the style that the setting `outputStyle` names is sent with every request.
4. A worktree without a directory of a kind has that of the main working tree.
"""

import os
import re
from collections.abc import Iterator

from nexus_context.assistants.claude_code.front_matter import fields_of, is_true, text_of, tool_names
from nexus_context.assistants.claude_code.settings import config_directory
from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import AssistantSettings, SentBlock, SentPart, Surroundings
from nexus_context.assistants.reading.working_tree import GIT, find_working_tree, parents
from nexus_context.errors import Span

SKILL = "SKILL.md"
ALL_TOOLS = "All tools"
DEEPEST = 8  # directories of commands
LONGEST_LINE = 100  # characters of a line that stands for a description
_HEADING = re.compile(r"#+\s+(?=\S)")


def claude_skills(disk: Disk, settings: AssistantSettings) -> Iterator[SentBlock]:
    """The block of skills and commands, if there are any; Claude Code lists its own besides."""
    found: dict[str, str] = {}
    for directory in _directories(disk, settings.where, "skills"):
        for name, _ in disk.entries(directory):
            path = os.path.join(directory, name, SKILL)
            if disk.is_file(path):
                found.setdefault(name, path)
    user, *projects = _directories(disk, settings.where, "commands")
    for directory in (*projects, user):
        for path, name in _command_files(disk, directory, ()):
            found.setdefault(name, path)
    overrides = {name: each for value in settings.each("skillOverrides") for name, each in value.items()}
    parts = [
        SentPart(line, "skill", path, content=Span(0, len(line) - 1))
        for name, path in found.items()
        for line in _skill_line(disk, name, path, overrides.get(name, "on"))
    ]
    if parts:
        yield SentBlock("skills", "system", tuple(parts), complete=False)


def claude_agents(disk: Disk, settings: AssistantSettings) -> Iterator[SentBlock]:
    """The block of agents, if there are any; Claude Code lists its own besides."""
    lines = sorted(
        line
        for directory in _directories(disk, settings.where, "agents")
        for name, _ in disk.entries(directory)
        if name.endswith(".md")
        for line in _agent_line(disk, os.path.join(directory, name))
    )
    parts = [SentPart(line, "agent", path, content=Span(0, len(line) - 1)) for line, path in lines]
    if parts:
        yield SentBlock("agents", "system", tuple(parts), complete=False)


def read_output_style(disk: Disk, settings: AssistantSettings) -> Iterator[SentBlock]:
    """The text of the chosen style, if a file has it: Claude Code's own styles are none of the user's."""
    wanted = settings.value("outputStyle")
    user, *projects = _directories(disk, settings.where, "output-styles")
    for path in (
        os.path.join(directory, name)
        for directory in (*projects, user)
        for name, _ in disk.entries(directory)
        if name.endswith(".md")
    ):
        matter, body = markdown.split_front_matter(disk.text(path) or "")
        name = text_of(fields_of(matter).get("name")) or os.path.basename(path).removesuffix(".md")
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
    for name, entry in disk.entries(directory):
        path = os.path.join(directory, name)
        if entry == "directory" and len(above) < DEEPEST:
            yield from _command_files(disk, path, (*above, name))
        elif name.endswith(".md"):
            yield path, ":".join((*above, name.removesuffix(".md")))


def _skill_line(disk: Disk, name: str, path: str, override: str) -> Iterator[str]:
    text = disk.text(path)
    if text is None or override in ("off", "user-invocable-only"):
        return
    matter, body = markdown.split_front_matter(text)
    fields = fields_of(matter)
    is_named = isinstance(fields.get("name"), str | None)
    if is_true(fields.get("disable-model-invocation")) or not is_named:
        return
    if override == "name-only":
        yield f"- {name}\n"
        return
    texts = (text_of(fields.get("description")) or _first_line(body), text_of(fields.get("when_to_use")))
    description = " ".join(" - ".join(filter(None, texts)).split())
    yield f"- {name}: {description.replace('<', '&lt;').replace('>', '&gt;')}\n"


def _first_line(body: str) -> str:
    """The first line with text, without the marks of a heading, shortened."""
    line = next((line.strip() for line in body.split("\n") if line.strip()), "")
    line = _HEADING.sub("", line)
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."


def _agent_line(disk: Disk, path: str) -> Iterator[tuple[str, str]]:
    matter, _ = markdown.split_front_matter(disk.text(path) or "")
    fields = fields_of(matter)
    name, description = fields.get("name"), fields.get("description")
    if isinstance(name, str) and name and isinstance(description, str) and description:
        tools = _tools(tool_names(fields.get("tools")), tool_names(fields.get("disallowedTools")))
        yield f"- {name}: {description} (Tools: {tools})\n", path


def _tools(allowed: list[str], denied: list[str]) -> str:
    """What the line of an agent says of its tools."""
    if not allowed:
        return f"{ALL_TOOLS} except {', '.join(denied)}" if denied else ALL_TOOLS
    return ", ".join(name for name in allowed if name not in denied) or "None"
