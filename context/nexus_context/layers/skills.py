"""Which skills a folder has: SKILL.md in the directories of the layers' skill directories.

1. A layer's skill directories are `skills` in its `.nexus3/`, `.agents/skills` and `.claude/skills` (of the
   global layer those in the home directory), then those of `skills.paths`, relative to the layer that names
   them; one that a workspace names must be beneath that layer's directory.
2. Of skills of one name the nearest layer's counts, in one layer the first by rule 1. One that is there and
   cannot be used counts, too, and says why. The others are listed as shadowed, with a hint.
3. `skills.include` and `skills.exclude` decide by name; what they leave out is listed, no more.
4. Of a skill directory the names are read, of each directory in it the SKILL.md: nothing else is ever listed.
   Names that begin with a dot are left out, and at most MAX_SKILLS are looked at, of MAX_ENTRIES names.
5. One real directory is looked at once, for the nearest layer that has it.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from nexus_context.config import mend
from nexus_context.config.merge import Effective, Provenance
from nexus_context.errors import Problem, Related, Severity, Span
from nexus_context.files import list_directory
from nexus_context.layers.model import DEFAULTS, GLOBAL, LayerFile, LayerSkill, Listing, Skipped
from nexus_context.layers.reading import Reading
from nexus_context.layers.walk import Place, within
from nexus_context.skills import SKILL_FILE, ReadSkill, Skill

MAX_SKILLS = 500
MAX_ENTRIES = 5_000

DIRECTORY = "skills"
SWITCHES = ("tools.disabled", "permissions.deny")
"""Settings with patterns of tools that no skill can use."""
TOOLS = (".agents", ".claude")


class _Search:
    """What has been found so far, the nearest layer first."""

    def __init__(self, reading: Reading, effective: Effective) -> None:
        self.reading = reading
        self.include: Sequence[str] = effective.get("/skills/include") or ()
        self.exclude: Sequence[str] = effective.get("/skills/exclude") or ()
        self.switched_off: dict[str, Sequence[str]] = {
            setting: effective.get(f"/{setting.replace('.', '/')}") or () for setting in SWITCHES
        }
        self.seen: set[str] = set()  # real directories
        self.taken: dict[str, tuple[str, Span]] = {}  # file and place of the name, by name
        self.skills: list[LayerSkill] = []
        self.unsaved: dict[str, list[str]] = {}
        for path in reading.overlays:
            if path.endswith(os.sep + SKILL_FILE):
                directory, name = os.path.split(os.path.dirname(path))
                self.unsaved.setdefault(directory, []).append(name)

    def excluded(self, name: str) -> bool:
        """Whether the settings leave a skill out."""
        return (bool(self.include) and not matches(name, self.include)) or matches(name, self.exclude)


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a skill's name is one of these, or fits a pattern such as `git-*`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def find_skills(
    reading: Reading, places: Sequence[Place | None], effective: Effective, user_home: str
) -> tuple[list[list[LayerFile]], tuple[LayerSkill, ...]]:
    """The SKILL.md files of each place, those of no effect too, and the skills that count.

    The skills are in the order of the prompt: a higher priority first, then by name. None for a place that is
    no layer.
    """
    found: list[list[LayerFile]] = [[] for _ in places]
    if not effective.get("/skills/enabled"):
        return found, ()
    search = _Search(reading, effective)
    configured = _configured(reading, places, effective, user_home)
    for index in range(len(places) - 1, -1, -1):
        place = places[index]
        if place is None or place.name == DEFAULTS:
            continue
        for directory in (*_usual(place, user_home), *configured.get(place.name, ())):
            found[index].extend(_directory(search, place, directory))
    search.skills.sort(key=lambda one: (-one.skill.priority, one.skill.name))
    return found, tuple(search.skills)


def _usual(place: Place, user_home: str) -> Iterator[str]:
    if place.config_directory is not None:
        yield os.path.join(place.config_directory, DIRECTORY)
    above = user_home if place.name == GLOBAL else place.directory
    for tool in TOOLS:
        yield os.path.join(above, tool, DIRECTORY)


def _configured(
    reading: Reading, places: Sequence[Place | None], effective: Effective, user_home: str
) -> dict[str, list[str]]:
    """The directories of `skills.paths` by the name of their layer; others are reported."""
    by_name = {place.name: place for place in places if place is not None}
    found: dict[str, list[str]] = {}
    for index, value in enumerate(effective.get("/skills/paths") or ()):
        for origin in effective.provenance.get(f"/skills/paths/{index}", ()):
            place = by_name.get(origin.layer)
            if place is None or origin.document is None or origin.ignored:
                continue
            path = _path(reading, place, value, user_home)
            if path is None:
                reading.problems.append(_outside(place, value, origin))
            else:
                found.setdefault(place.name, []).append(path)
    return found


def _path(reading: Reading, place: Place, value: str, user_home: str) -> str | None:
    """Absolute path of a configured directory; None where the layer must not name it."""
    if "\0" in value:
        return None
    if not place.in_workspace:
        given = os.path.join(user_home, value[2:]) if value.startswith("~/") else value
        return os.path.normpath(os.path.join(place.config_directory or place.directory, given))
    path = os.path.normpath(os.path.join(place.directory, value))
    inside = within(reading.real_path(path), reading.real_path(place.directory))
    return None if os.path.isabs(value) or value.startswith("~") or not inside else path


def _outside(place: Place, value: str, origin: Provenance) -> Problem:
    message = (
        f"{mend.quoted(value)} is not read: it is not beneath {place.directory}. Name a directory in there, "
        "or set it in the global config.json."
    )
    return Problem(origin.path, origin.span, "skill.path", Severity.WARNING, message)


def _look(directory: str) -> Listing:
    entries = list_directory(directory, MAX_ENTRIES + 1)
    if len(entries) > MAX_ENTRIES:  # which ones came first is chance
        return Listing((), more=True)
    names = [name for name, kind in entries if kind in ("directory", "link") and not name.startswith(".")]
    return Listing(tuple(names[:MAX_SKILLS]), len(names) > MAX_SKILLS)


def _directory(search: _Search, place: Place, directory: str) -> Iterator[LayerFile]:
    """The skills of one skill directory."""
    reading = search.reading
    listing = reading.listing(directory, _look)
    names: Sequence[str] = listing.names
    if directory in search.unsaved:
        names = sorted({*names, *search.unsaved[directory]})
    if not names and not listing.more:
        return
    real = reading.real_path(directory)
    if real in search.seen:
        return
    search.seen.add(real)
    if place.in_workspace and not within(real, reading.real_path(place.directory)):
        reason = f"is a symbolic link that leads out of {place.directory}"
        reading.skipped.append(Skipped(directory, reason))
        return
    if listing.more:
        reading.problems.append(_too_many(directory))
    for name in names:
        file = _file(search, place, os.path.join(directory, name, SKILL_FILE))
        if file is not None:
            yield file


def _too_many(directory: str) -> Problem:
    message = (
        f"Not all skills in here are read: at most {MAX_SKILLS} directories, and none where there are "
        f"more than {MAX_ENTRIES:,} names. Move some elsewhere."
    )
    return Problem(directory, Span(0, 0), "skill.too-many", Severity.WARNING, message)


def _file(search: _Search, place: Place, path: str) -> LayerFile | None:
    """One SKILL.md, its name noted as taken; None where there is none to be read."""
    reading = search.reading
    if not reading.is_there(place, path):
        return None
    read = reading.read(path)
    usable = read.status == "loaded" and read.text is not None
    parsed = reading.skill(path, read.text) if usable and read.text is not None else None
    name = parsed.name if parsed is not None else os.path.basename(os.path.dirname(path))
    if search.excluded(name):
        return LayerFile("skill", path, "excluded", read.text)
    reading.problems.extend(read.problems)
    if parsed is not None:
        reading.problems.extend(parsed.problems)
    first = search.taken.get(name)
    if first is not None:
        if parsed is not None and reading.real_path(path) != reading.real_path(first[0]):
            reading.problems.append(_shadowed(path, parsed, *first))
        return LayerFile("skill", path, "shadowed", read.text)
    search.taken[name] = (path, parsed.name_span if parsed is not None else Span(0, 0))
    if parsed is None:
        return LayerFile("skill", path, read.status, read.text)
    if parsed.skill is None:
        return LayerFile("skill", path, "invalid", read.text)
    search.skills.append(LayerSkill(place.name, parsed.skill))
    if parsed.skill.allowed_tools:
        reading.problems.extend(_switched_off(search, parsed.skill))
    return LayerFile("skill", path, "loaded", read.text)


def _switched_off(search: _Search, skill: Skill) -> Iterator[Problem]:
    """The tools of a skill that the settings switch off."""
    for setting, patterns in search.switched_off.items():
        for tool in skill.allowed_tools:
            if not matches(tool.partition("(")[0], patterns):
                continue
            message = (
                f"`{setting}` switches {mend.quoted(tool)} off: the skill has to do without. Remove it here, "
                "or the pattern there."
            )
            yield Problem(skill.path, skill.tools_span, "skill.allowed-tools", Severity.WARNING, message)


def _shadowed(path: str, parsed: ReadSkill, other: str, span: Span) -> Problem:
    message = (
        f"Another skill {mend.quoted(parsed.name)} comes first, and this one is not used. Rename one of them."
    )
    related = (Related(other, span, "This one is used."),)
    return Problem(path, parsed.name_span, "skill.shadowed", Severity.HINT, message, None, related)
