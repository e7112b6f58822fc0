"""Finds the skills of a folder: SKILL.md in the directories of the layers' skill directories.

1. A layer's skill directories are `skills` in its `.nexus3/`, `.agents/skills` and `.claude/skills` (of the
   global layer, those in the home directory), then those of `skills.paths`, relative to the layer that names
   them. A directory that a workspace names must be beneath that layer's directory.
2. If skills share a name, the nearest layer's counts, and within a layer the first by rule 1. An unusable
   skill counts, too, and is reported. The others are listed as shadowed, with a hint.
3. `skills.include` and `skills.exclude` select by name; excluded skills are listed without a problem.
4. In a skill directory, the SKILL.md of each subdirectory is read, of the first MAX_SKILLS by name. Names
   that begin with a dot are ignored. A directory that has a SKILL.md is never listed. The choice must not
   depend on chance: a directory with more than MAX_ENTRIES names, too many to list, has no skills.
5. A real directory is searched once, for the nearest layer that has it.
6. A misplaced SKILL.md is reported where it lies, unless it is read from elsewhere: misspelt, directly in the
   skill directory, or one level too deep. So is a Markdown file directly in it that begins like a skill, with
   a name and a description. Uncertain cases are not reported: a directory without SKILL.md is examined if it
   is among the first MAX_EXAMINED of them and has at most MAX_INSIDE names; symbolic links are not followed.
7. A missing configured directory is reported, and so is a pattern in the folder's own settings that matches
   no skill; patterns of other layers may be meant for other folders.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, cast

from nexus_context.config import fixes
from nexus_context.config.merge import Effective, Provenance
from nexus_context.config.patterns import Patterns
from nexus_context.disk.files import Entry, RealFiles, exists, is_dir
from nexus_context.errors import Problem, Related, Severity, Span
from nexus_context.folder.layers.layer_types import (
    DEFAULTS,
    GLOBAL,
    LOCAL,
    LayerFile,
    LayerSkill,
    Listing,
    Skipped,
)
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.walk import LayerPlace, RealPath, within
from nexus_context.folder.skills import PROGRAMS, SKILL_FILE, ReadSkill, Skill
from nexus_context.folder.skills.front_matter import front_matter

DIRECTORY = "skills"
SWITCHES = ("tools.disabled", "permissions.deny")
"""Settings with patterns of tools that no skill can use."""
MOST_UNMATCHED = 100  # patterns that are reported

Configured = Mapping[str, Sequence[tuple[str, Provenance]]]
"""Skill directories, each with the setting that names it, by layer."""


MAX_SKILLS = 500
MAX_ENTRIES = 20_000  # listed and sorted in 40 ms
MAX_EXAMINED = 50
MAX_INSIDE = 200

MAX_FLAT = 20
"""The number of Markdown files directly in a skill directory that are examined."""
FLAT_LIMIT = 65_536  # bytes

_NOTHING: Configured = {}


class SkillDirectory(Listing, frozen=True):
    """What a skill directory contains. `names` are the subdirectories that are read.

    `total` counts all subdirectories. `links` are the names that are symbolic links. `flat` are files
    directly in it that look like skills.
    """

    total: int = 0
    links: frozenset[str] = frozenset()
    flat: tuple[str, ...] = ()
    kind: Literal["directory", "unreadable", "other", "missing"] = "directory"


class MisplacedSkills(NamedTuple):
    """Files that look like skills and are not read. `reason` continues a sentence that begins with “it”."""

    paths: tuple[str, ...]
    severity: Severity
    reason: str
    advice: str


class _Search:
    """The state of the search, which begins with the nearest layer."""

    def __init__(self, reading: Reading, effective: Effective) -> None:
        self.reading = reading
        self.include: Sequence[str] = effective.get("/skills/include") or ()
        self.exclude: Sequence[str] = effective.get("/skills/exclude") or ()
        self._included, self._excluded = Patterns(self.include), Patterns(self.exclude)
        self.switched_off = {
            setting: Patterns(effective.get(f"/{setting.replace('.', '/')}") or ()) for setting in SWITCHES
        }
        self.seen: set[str] = set()  # real directories
        self.taken: dict[str, tuple[str, Span]] = {}  # path and place of the name, by name
        self.skills: list[LayerSkill] = []
        self.names: set[str] = set()  # of all skills, including those that do not count
        self.all_seen = True
        self.astray: list[MisplacedSkills] = []
        self.unsaved: dict[str, list[str]] = {}
        for path in reading.overlays:
            if path.endswith(os.sep + SKILL_FILE):
                directory, name = os.path.split(os.path.dirname(path))
                self.unsaved.setdefault(directory, []).append(name)

    def excluded(self, name: str) -> bool:
        """Whether the settings leave a skill out."""
        left_out = bool(self.include) and not self._included.matches(name)
        return left_out or self._excluded.matches(name)


def find_skills(
    reading: Reading, places: Sequence[LayerPlace | None], effective: Effective, user_home: str
) -> tuple[list[list[LayerFile]], tuple[LayerSkill, ...]]:
    """Return the SKILL.md files of each place, including ineffective ones, and the skills in force.

    The skills are in the order of the prompt: a higher priority first, then by name. A place is None if it is
    not a layer.
    """
    files: list[list[LayerFile]] = [[] for _ in places]
    if not effective.get("/skills/enabled"):
        return files, ()
    search = _Search(reading, effective)
    nearest = next((place.directory for place in reversed(places) if place is not None), user_home)
    contain = functools.partial(reading.contain, nearest)
    configured = contain(lambda: _configured(reading, places, effective, user_home), _NOTHING)
    for index in range(len(places) - 1, -1, -1):
        place = places[index]
        if place is None or place.name == DEFAULTS:
            continue
        usual = ((directory, None) for directory in _usual(place, user_home))
        for directory, origin in (*usual, *configured.get(place.name, ())):
            look = functools.partial(_directory, search, place, directory, origin=origin)
            files[index].extend(reading.contain(directory, look, []))
    contain(lambda: _say_what_is_astray(search), None)
    nothing: tuple[Problem, ...] = ()
    unmatched = contain(lambda: tuple(islice(_unmatched(search, effective), MOST_UNMATCHED)), nothing)
    reading.problems.extend(unmatched)
    search.skills.sort(key=lambda layer_skill: (-layer_skill.skill.priority, layer_skill.skill.name))
    return files, tuple(search.skills)


def _usual(place: LayerPlace, user_home: str) -> Iterator[str]:
    if place.config_directory is not None:
        yield os.path.join(place.config_directory, DIRECTORY)
    base_directory = user_home if place.name == GLOBAL else place.directory
    for tool in PROGRAMS:
        yield os.path.join(base_directory, tool, DIRECTORY)


def _configured(
    reading: Reading, places: Sequence[LayerPlace | None], effective: Effective, user_home: str
) -> Configured:
    """The directories of `skills.paths` by the name of their layer; others are reported."""
    by_name = {place.name: place for place in places if place is not None}
    directories: dict[str, list[tuple[str, Provenance]]] = {}
    for index, value in enumerate(effective.get("/skills/paths") or ()):
        for origin in effective.provenance.get(f"/skills/paths/{index}", ()):
            place = by_name.get(origin.layer)
            if place is None or origin.document is None or origin.ignored:
                continue
            path = _path(reading, place, value, user_home)
            if path is None and reading.is_present(origin):
                reading.problems.append(_outside(place, value, origin))
            elif path is not None:
                directories.setdefault(place.name, []).append((path, origin))
    return directories


def _path(reading: Reading, place: LayerPlace, value: str, user_home: str) -> str | None:
    """Absolute path of a configured directory; None if the layer must not name it."""
    if "\0" in value:
        return None
    if not place.in_workspace:
        expanded = os.path.join(user_home, value[2:]) if value.startswith("~/") else value
        return os.path.normpath(os.path.join(place.config_directory or place.directory, expanded))
    path = os.path.normpath(os.path.join(place.directory, value))
    inside = within(reading.real_path(path), reading.real_path(place.tree))
    return None if os.path.isabs(value) or value.startswith("~") or not inside else path


def _outside(place: LayerPlace, value: str, origin: Provenance) -> Problem:
    message = (
        f"{fixes.quoted(value)} is not read: it is not beneath {place.tree}. Name a directory in there, "
        "or set it in the global config.json."
    )
    return Problem(origin.path, origin.span, "skill.path", Severity.WARNING, message=message)


def _listing(reading: Reading, place: LayerPlace, directory: str) -> SkillDirectory:
    def may_read() -> bool:
        return not place.in_workspace or _is_inside(reading, place, directory)

    def look(path: str) -> SkillDirectory:
        return list_skill_directory(path, reading.real_path, reading.real_files, may_read)

    return cast("SkillDirectory", reading.listing(directory, look))


def _is_inside(reading: Reading, place: LayerPlace, path: str) -> bool:
    return within(reading.real_path(path), reading.real_path(place.tree))


def _directory(
    search: _Search, place: LayerPlace, directory: str, origin: Provenance | None
) -> list[LayerFile]:
    """The skills of one skill directory; `origin` is the setting that names it."""
    reading = search.reading
    listing = _listing(reading, place, directory)
    names: Sequence[str] = listing.names
    if listing.kind == "unreadable" and (not place.in_workspace or _is_inside(reading, place, directory)):
        reading.problems.append(_unreadable(directory))
    if directory in search.unsaved:
        names = sorted({*names, *search.unsaved[directory]})
    elif listing.kind in ("other", "missing") and origin is not None and reading.is_present(origin):
        reading.problems.append(_absent(place, directory, origin, listing))
    if not names and not listing.more and not listing.flat:
        return []
    real = reading.real_path(directory)
    if real in search.seen:
        return []
    search.seen.add(real)
    if place.in_workspace and not _is_inside(reading, place, directory):
        reason = f"is a symbolic link that leads out of {place.tree}"
        reading.skipped.append(Skipped(directory, reason))
        return []
    if listing.more:
        search.all_seen = False
        reading.problems.append(_too_many(directory, listing))
    search.astray.extend(astray_in(directory, listing.flat))
    files, examined = [], 0
    for name in names:
        path = os.path.join(directory, name, SKILL_FILE)
        look = functools.partial(_file, search, place, path)
        unusable: LayerFile | None = LayerFile("skill", path, "invalid")
        file = reading.contain(path, look, unusable)
        if file is not None:
            files.append(file)
        elif (
            examined < MAX_EXAMINED and name not in listing.links and reading.reads[path].status == "missing"
        ):
            examined += 1
            search.astray.extend(_astray_below(reading, place, directory, name))
    return files


def _astray_below(
    reading: Reading, place: LayerPlace, directory: str, name: str
) -> Iterator[MisplacedSkills]:
    path = os.path.join(directory, name)
    # this key never equals that of a skill directory
    names = reading.listing(
        path + os.sep, lambda at: examine_inside(at, reading.real_path(path), reading.real_files)
    ).names
    if names:
        setting = os.path.relpath(path, place.directory) if place.in_workspace else path
        yield astray_below(directory, name, names, setting)


def _say_what_is_astray(search: _Search) -> None:
    if not search.astray:
        return
    reading = search.reading
    read_paths = {
        reading.real_path(path) for path, file_read in reading.reads.items() if file_read.status != "missing"
    }
    for astray in search.astray:
        reading.watch.update(astray.paths)
        paths = [path for path in astray.paths if reading.real_path(path) not in read_paths]
        if not paths:
            continue
        reading.skipped.extend(Skipped(path, astray.reason) for path in paths)
        others_note = f" ({len(paths) - 1:,} more beside it)" if len(paths) > 1 else ""
        message = f"This skill is not read: it {astray.reason}{others_note}. {astray.advice}."
        reading.problems.append(
            Problem(paths[0], Span(0, 0), "skill.misplaced", astray.severity, message=message)
        )


def _absent(place: LayerPlace, directory: str, origin: Provenance, listing: SkillDirectory) -> Problem:
    severity = Severity.WARNING
    why = "is not a directory. Name the one that the directories of skills are in"
    if listing.kind == "missing":
        why = "does not exist. Create it, or correct the path"
        if not place.in_workspace:  # users copy these settings between machines
            severity = Severity.HINT
    return Problem(origin.path, origin.span, "skill.path", severity, message=f"{directory} {why}.")


def _unreadable(directory: str) -> Problem:
    message = (
        "No skill in here is read: the directory cannot be listed. Give this user permission to read it "
        "(chmod u+rx), or remove it."
    )
    return Problem(directory, Span(0, 0), "skill.unreadable", Severity.WARNING, message=message)


def _unmatched(search: _Search, effective: Effective) -> Iterator[Problem]:
    """The patterns in the folder's own settings that match no skill."""
    if not search.all_seen:
        return
    for setting, patterns in (("include", search.include), ("exclude", search.exclude)):
        fitting = Patterns(patterns).fitting(search.names)
        lost = setting == "include" and not fitting
        for index, pattern in enumerate(patterns):
            if pattern in fitting:
                continue
            for origin in effective.provenance.get(f"/skills/{setting}/{index}", ()):
                if origin.layer == LOCAL and not origin.ignored and search.reading.is_present(origin):
                    severity = Severity.WARNING if lost and search.names else Severity.HINT
                    yield _fits_nothing(search, pattern, origin, severity)


def _fits_nothing(search: _Search, pattern: str, origin: Provenance, severity: Severity) -> Problem:
    near = fixes.meant(pattern, sorted(search.names))
    meant = f"Did you mean {fixes.quoted(near)}? Otherwise correct" if near else "Correct"
    lost = ", and all skills are left out" if severity is Severity.WARNING else ""
    message = f"{fixes.quoted(pattern)} matches no skill of this folder{lost}. {meant} it or remove it."
    document = origin.document
    fix = fixes.replace(document, origin.pointer, fixes.quoted(near)) if document and near else None
    return Problem(origin.path, origin.span, "skill.pattern", severity, message=message, fix=fix)


def _too_many(directory: str, listing: SkillDirectory) -> Problem:
    if listing.names:
        message = (
            f"Not all skills in here are read: of {listing.total:,} directories the "
            f"first {len(listing.names)} by name, to {fixes.quoted(listing.names[-1])}. Move some elsewhere."
        )
    else:
        message = (
            f"No skill in here is read: there are more than {MAX_ENTRIES:,} names, too many "
            f"to find the first {MAX_SKILLS} by name. Move some elsewhere."
        )
    return Problem(directory, Span(0, 0), "skill.too-many", Severity.WARNING, message=message)


def _file(search: _Search, place: LayerPlace, path: str) -> LayerFile | None:
    """One SKILL.md, whose name is then taken; None if there is none that may be read."""
    reading = search.reading
    if not reading.is_there(place, path):
        return None
    read = reading.read(path)
    usable = read.status == "loaded" and read.text is not None
    parsed = reading.skill(path, read.text) if usable and read.text is not None else None
    name = parsed.name if parsed is not None else os.path.basename(os.path.dirname(path))
    search.names.add(name)
    if search.excluded(name):
        return LayerFile("skill", path, "excluded", read.text)
    reading.problems.extend(read.problems)
    if parsed is not None:
        reading.problems.extend(parsed.problems)
    first_skill = search.taken.get(name)
    if first_skill is not None:
        if parsed is not None and reading.real_path(path) != reading.real_path(first_skill[0]):
            reading.problems.append(_shadowed(path, parsed, *first_skill))
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
            if not patterns.matches(tool.partition("(")[0]):
                continue
            message = (
                f"`{setting}` switches {fixes.quoted(tool)} off, so the skill cannot use it. Remove it here, "
                "or remove the pattern there."
            )
            yield Problem(
                skill.path, skill.tools_span, "skill.allowed-tools", Severity.WARNING, message=message
            )


def _shadowed(path: str, parsed: ReadSkill, first_path: str, span: Span) -> Problem:
    name = fixes.quoted(parsed.name)
    message = f"Another skill {name} comes first, and this one is not used. Rename one of them."
    related = (Related(first_path, span, "This one is used."),)
    return Problem(
        path, parsed.name_span, "skill.shadowed", Severity.HINT, message=message, fix=None, related=related
    )


def list_skill_directory(
    directory: str, real_path: RealPath, files: RealFiles, may_read: Callable[[], bool]
) -> SkillDirectory:
    """List a skill directory. Files in it are opened only if `may_read` returns true."""
    if not is_dir(directory):
        return SkillDirectory(kind="other" if exists(directory) else "missing")
    real = real_path(directory)
    entries = files.list_directory(real, MAX_ENTRIES + 1)
    if entries is None:
        return SkillDirectory(kind="unreadable")
    if len(entries) > MAX_ENTRIES:
        return SkillDirectory(more=True)
    subdirectories = [entry for entry in entries if _counts(*entry, ("directory", "link"))]
    markdown = [name for name, kind in entries if kind == "file" and name.lower().endswith(".md")]
    flat = [name for name in markdown[:MAX_FLAT] if may_read() and _begins_a_skill(files, real, name)]
    return SkillDirectory(
        names=tuple(name for name, _ in subdirectories[:MAX_SKILLS]),
        more=len(subdirectories) > MAX_SKILLS,
        total=len(subdirectories),
        links=frozenset(name for name, kind in subdirectories if kind == "link"),
        flat=tuple(flat),
    )


def examine_inside(directory: str, real: str, files: RealFiles) -> Listing:
    """Find files that look like skills in a directory without SKILL.md. Their paths are relative to it.

    `real` is the path of the directory with links resolved.
    """
    entries = files.list_directory(real, MAX_INSIDE + 1) or ()
    if len(entries) > MAX_INSIDE:
        return Listing()
    misspelt = [name for name, kind in entries if kind == "file" and _is_skill_file(name)]
    if misspelt:
        return Listing(tuple(misspelt[:1]))
    deeper = (os.path.join(name, SKILL_FILE) for name, kind in entries if _counts(name, kind, ("directory",)))
    return Listing(
        tuple(relative_path for relative_path in deeper if exists(os.path.join(directory, relative_path)))
    )


def astray_in(directory: str, flat: Sequence[str]) -> list[MisplacedSkills]:
    """Describe the files directly in a skill directory that look like skills, which are called `flat`."""
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
    """Describe the misplaced files `names` in the directory `name`, which has no SKILL.md.

    `setting` is what `skills.paths` would call that directory.
    """
    paths = tuple(os.path.join(directory, name, relative_path) for relative_path in names)
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
