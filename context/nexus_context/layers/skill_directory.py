"""The contents of a skill directory, and what in it looks like a skill but is not read.

1. Its subdirectories are its skills, the first MAX_SKILLS by name. The choice must not depend on chance: a
   directory with more than MAX_ENTRIES names, too many to list, has no skills.
2. A misplaced SKILL.md is reported: misspelt, directly in the skill directory, or one level too deep. So is a
   Markdown file directly in it that begins like a skill, with a name and a description.
3. Uncertain cases are not reported. A directory without SKILL.md is examined if it is among the first
   MAX_EXAMINED of them and has at most MAX_INSIDE names; symbolic links are not followed.
"""

import os
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from nexus_context.errors import Severity
from nexus_context.files import Entry, RealFiles, exists, is_dir
from nexus_context.layers.model import Listing
from nexus_context.layers.walk import RealPath
from nexus_context.skills import SKILL_FILE
from nexus_context.skills.front_matter import front_matter

MAX_SKILLS = 500
MAX_ENTRIES = 20_000  # listed and sorted in 40 ms
MAX_EXAMINED = 50
MAX_INSIDE = 200
MAX_FLAT = 20
"""The number of Markdown files directly in a skill directory that are examined."""
FLAT_LIMIT = 65_536  # bytes


class SkillDirectory(Listing, frozen=True):
    """A skill directory; `names` are the ones that are read.

    `total` counts all subdirectories. `links` are the names that are symbolic links. `flat` are files
    directly in it that look like skills.
    """

    total: int = 0
    links: frozenset[str] = frozenset()
    flat: tuple[str, ...] = ()
    kind: Literal["directory", "unreadable", "other", "missing"] = "directory"


class MisplacedSkills(NamedTuple):
    """Files that look like skills and are not read. `reason` continues the sentence "it …"."""

    paths: tuple[str, ...]
    severity: Severity
    reason: str
    advice: str


def look(
    directory: str, real_path: RealPath, files: RealFiles, may_read: Callable[[], bool]
) -> SkillDirectory:
    """The contents of a skill directory; files in it are opened only if they may be read."""
    if not is_dir(directory):
        return SkillDirectory(kind="other" if exists(directory) else "missing")
    real = real_path(directory)
    entries = files.list_directory(real, MAX_ENTRIES + 1)
    if entries is None:
        return SkillDirectory(kind="unreadable")
    if len(entries) > MAX_ENTRIES:
        return SkillDirectory(more=True)
    subdirectories = [each for each in entries if _counts(*each, ("directory", "link"))]
    markdown = [name for name, kind in entries if kind == "file" and name.lower().endswith(".md")]
    flat = [name for name in markdown[:MAX_FLAT] if may_read() and _begins_a_skill(files, real, name)]
    return SkillDirectory(
        names=tuple(name for name, _ in subdirectories[:MAX_SKILLS]),
        more=len(subdirectories) > MAX_SKILLS,
        total=len(subdirectories),
        links=frozenset(name for name, kind in subdirectories if kind == "link"),
        flat=tuple(flat),
    )


def inside(directory: str, real: str, files: RealFiles) -> Listing:
    """What looks like a skill in a directory without SKILL.md, as paths relative to it.

    `real` is its path with links resolved.
    """
    entries = files.list_directory(real, MAX_INSIDE + 1) or ()
    if len(entries) > MAX_INSIDE:
        return Listing()
    misspelt = [name for name, kind in entries if kind == "file" and _is_skill_file(name)]
    if misspelt:
        return Listing(tuple(misspelt[:1]))
    deeper = (os.path.join(name, SKILL_FILE) for name, kind in entries if _counts(name, kind, ("directory",)))
    return Listing(tuple(each for each in deeper if exists(os.path.join(directory, each))))


def astray_in(directory: str, flat: Sequence[str]) -> list[MisplacedSkills]:
    """The files directly in a skill directory that look like skills."""
    misplaced = []
    for name in flat:
        stem = "<name>" if _is_skill_file(name) else os.path.splitext(name)[0]
        advice = f"Move it to {os.path.join(directory, stem, SKILL_FILE)}"
        severity = Severity.HINT
        if _is_skill_file(name):
            severity = Severity.WARNING
            advice += ", or, if the directory is the skill's, name the one above in `skills.paths`"
        path = os.path.join(directory, name)
        misplaced.append(
            MisplacedSkills((path,), severity, f"has no directory of its own in {directory}", advice)
        )
    return misplaced


def astray_below(directory: str, name: str, names: Sequence[str], setting: str) -> MisplacedSkills:
    """Misplaced files in the directory `name`, which has no SKILL.md; `skills.paths` would call it
    `setting`.
    """
    paths = tuple(os.path.join(directory, name, each) for each in names)
    if os.path.dirname(names[0]):
        reason = f"is one level too deep in {directory}"
        advice = f"Move its directory there, or name {setting} in `skills.paths`"
        return MisplacedSkills(paths, Severity.HINT, reason, advice)
    return MisplacedSkills(
        paths, Severity.WARNING, f"is not named {SKILL_FILE}", f"Rename it to {SKILL_FILE}"
    )


def _counts(name: str, kind: Entry, kinds: Sequence[Entry]) -> bool:
    return kind in kinds and not name.startswith(".")


def _is_skill_file(name: str) -> bool:
    return name.lower() == SKILL_FILE.lower()


def _begins_a_skill(files: RealFiles, directory: str, name: str) -> bool:
    if _is_skill_file(name):
        return True
    path = os.path.join(directory, name)
    text = files.read(path, path, limit=FLAT_LIMIT).text
    fields = front_matter(path, text).fields if text else None
    return fields is not None and {"name", "description"} <= fields.keys()
