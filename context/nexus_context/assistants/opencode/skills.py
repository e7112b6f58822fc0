"""Skills of opencode: the entry that is sent of each in its list of skills."""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.front_fields import field_text
from nexus_context.assistants.reading.model import SentBlock, SentPart, Surroundings
from nexus_context.errors import Span

SKILL = "SKILL.md"
DIRECTORIES = ((".claude", "skills"), (".agents", "skills"), (".opencode", "skill"), (".opencode", "skills"))


def opencode_skills(
    disk: Disk, surroundings: Surroundings, config: str, directories: list[str]
) -> Iterator[SentBlock]:
    """The block of skills, if there are any; opencode lists one of its own besides."""
    roots = [
        *(os.path.join(surroundings.user_home, *names) for names in DIRECTORIES[:2]),
        *(os.path.join(each, *names) for names in DIRECTORIES for each in directories),
        os.path.join(config, "skill"),
        os.path.join(config, "skills"),
    ]
    entries: dict[str, SentPart] = {}
    for root in dict.fromkeys(roots):
        for directory, _ in disk.entries(root):
            path = os.path.join(root, directory, SKILL)
            matter, _ = markdown.split_front_matter(disk.text(path) or "")
            name, description = field_text(matter, "name"), field_text(matter, "description")
            if name and description:
                line = (
                    f"  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n"
                    f"    <location>{path}</location>\n  </skill>\n"
                )
                entries[name] = SentPart(line, "skill", path, content=Span(0, len(line)))
    if entries:
        yield SentBlock("skills", "system", tuple(entries[name] for name in sorted(entries)), complete=False)
