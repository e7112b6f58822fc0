"""Skills of Codex: what is sent of each is its name, its description and the path of its file.

Codex lists its own skills besides, and shortens the paths by a table of directories; both are not part of
what is counted here.
"""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.front_fields import field_text
from nexus_context.assistants.reading.model import SentBlock, SentPart, Surroundings
from nexus_context.errors import Span

SKILL = "SKILL.md"
DEEPEST = 6
SYSTEM = ".system"


def codex_skills(
    disk: Disk, surroundings: Surroundings, home: str, directories: list[str]
) -> Iterator[SentBlock]:
    """The block of skills, if there are any. `directories` lead from the project's root to the folder."""
    roots = [
        *(
            os.path.join(each, name, "skills")
            for each in reversed(directories)
            for name in (".codex", ".agents")
        ),
        os.path.join(home, "skills"),
        os.path.join(surroundings.user_home, ".agents", "skills"),
    ]
    visited: set[str] = set()
    parts = [part for root in dict.fromkeys(roots) for part in _skills(disk, root, 0, visited)]
    if parts:
        yield SentBlock("skills", "developer", tuple(parts), complete=False)


def _skills(disk: Disk, directory: str, depth: int, visited: set[str]) -> Iterator[SentPart]:
    real = disk.real(directory)
    if real in visited:
        return
    visited.add(real)
    path = os.path.join(directory, SKILL)
    matter, _ = markdown.split_front_matter(disk.text(path) or "")
    description = field_text(matter, "description")
    if description is not None:
        name = field_text(matter, "name") or os.path.basename(directory)
        line = f"- {name}: {description}"
        yield SentPart(f"{line} (file: {path})\n", "skill", path, content=Span(0, len(line)))
        return
    for name, entry in sorted(disk.entries(directory)) if depth < DEEPEST else ():
        if entry in ("directory", "link") and name != SYSTEM:
            yield from _skills(disk, os.path.join(directory, name), depth + 1, visited)
