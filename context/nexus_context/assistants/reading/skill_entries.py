"""Reads the skills that a program lists by its documentation: each is a SKILL.md with a description, in a
directory of its own.

How such a program writes the list is not documented, so an entry is counted as its name and its description.
"""

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nexus_context.assistants.reading import markdown
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.front_fields import field_text
from nexus_context.assistants.reading.profile_types import LaterFile, SentPart
from nexus_context.errors import Span

SKILL = "SKILL.md"
_WHEN = "when the model reads it, by its description"


class ListedSkill(NamedTuple):
    """A skill's entry in the list, and its file, which the model may read."""

    entry: SentPart
    file: LaterFile


def find_skills(disk: Disk, directories: Iterable[str]) -> Iterator[ListedSkill]:
    """Find the skills in directories.

    Of one name the skill of the first directory counts.
    """
    names: set[str] = set()
    for directory in directories:
        for entry_name, kind in sorted(disk.entries(directory)):
            path = os.path.join(directory, entry_name, SKILL)
            if kind not in ("directory", "link") or not disk.is_file(path):
                continue
            matter, _ = markdown.split_front_matter((disk.text(path) or "").removeprefix("\ufeff"))
            name, description = field_text(matter, "name") or entry_name, field_text(matter, "description")
            if description and name not in names:
                names.add(name)
                text = f"{name}: {description}\n"
                part = SentPart(text, "skill", path, content=Span(0, len(text) - 1))
                yield ListedSkill(part, LaterFile(path, "skill", _WHEN))
