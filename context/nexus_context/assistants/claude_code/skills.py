"""Skills and agents of Claude Code: the line that is sent of each.

1. A skill is a directory with a SKILL.md in `skills` of the user's directory, of the folder's `.claude` or of
   that of a directory above, up to the repository. Its line is its name and description; without a
   description
   the first line of its text stands for it. `disable-model-invocation` leaves it out.
2. An agent is a Markdown file in `agents`; it needs a name and a description.
"""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.front_fields import field_list, field_text
from nexus_context.assistants.reading.model import SentBlock, SentPart
from nexus_context.assistants.reading.working_tree import find_working_tree, parents
from nexus_context.errors import Span

SKILL = "SKILL.md"
ALL_TOOLS = "All tools"


def claude_skills(disk: Disk, folder: str, config: str) -> Iterator[SentBlock]:
    """The block of skills, if there are any; Claude Code lists its own besides."""
    parts = [
        SentPart(line, "skill", path, content=Span(0, len(line) - 1))
        for directory in _directories(disk, folder, config, "skills")
        for name, _ in disk.entries(directory)
        for path, line in _skill_line(disk, name, os.path.join(directory, name, SKILL))
    ]
    if parts:
        yield SentBlock("skills", "system", tuple(parts), complete=False)


def claude_agents(disk: Disk, folder: str, config: str) -> Iterator[SentBlock]:
    """The block of agents, if there are any; Claude Code lists its own besides."""
    lines = sorted(
        line
        for directory in _directories(disk, folder, config, "agents")
        for name, _ in disk.entries(directory)
        if name.endswith(".md")
        for line in _agent_line(disk, os.path.join(directory, name))
    )
    parts = [SentPart(line, "agent", path, content=Span(0, len(line) - 1)) for line, path in lines]
    if parts:
        yield SentBlock("agents", "system", tuple(parts), complete=False)


def _directories(disk: Disk, folder: str, config: str, name: str) -> list[str]:
    repository = find_working_tree(disk, folder)
    chain = parents(folder)
    if repository is not None:
        chain = chain[: chain.index(repository.root) + 1]
    elif folder in chain:
        chain = [folder]
    projects = [os.path.join(directory, ".claude", name) for directory in chain]
    user = os.path.join(config, name)
    return [user, *(directory for directory in projects if directory != user)]


def _skill_line(disk: Disk, name: str, path: str) -> Iterator[tuple[str, str]]:
    text = disk.text(path)
    if text is None:
        return
    matter, body = markdown.split_front_matter(text)
    if (field_text(matter, "disable-model-invocation") or "").lower() == "true":
        return
    description = field_text(matter, "description")
    if description is None:
        lines = [line.strip() for line in body.splitlines()]
        description = next((line.lstrip("# ") for line in lines if line), "")
    yield path, f"- {name}: {description}\n"


def _agent_line(disk: Disk, path: str) -> Iterator[tuple[str, str]]:
    matter, _ = markdown.split_front_matter(disk.text(path) or "")
    name, description = field_text(matter, "name"), field_text(matter, "description")
    if name and description:
        tools = ", ".join(field_list(matter, "tools")) or ALL_TOOLS
        yield f"- {name}: {description} (Tools: {tools})\n", path
