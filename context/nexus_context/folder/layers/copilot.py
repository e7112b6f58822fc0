"""Finds GitHub Copilot's instruction files that `context.instruction_files` lists, and when each applies.

1. `.github/copilot-instructions.md` applies to every turn.
2. `.github/instructions/*.instructions.md`, up to DEEPEST directories deep, name their files in their front
   matter: `applyTo`, a comma-separated list of globs. As in VS Code, `**`, `**/*` and `*` apply to every
   turn, other globs to turns about a matching file. A file without `applyTo` is sent only if the user
   attaches it.
3. A name without `*` means that one file.
4. The front matter is not sent. Its value may begin with an unquoted `*`, which Copilot allows and YAML does
   not.
5. At most MOST_FILES files of one directory are read, the first by name.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from nexus_context.config import fixes
from nexus_context.config.globs import Globs, GlobsError
from nexus_context.disk.files import RealFiles
from nexus_context.errors import Edit, Fix, Problem, Severity, Span
from nexus_context.folder.layers.layer_types import LayerFile, Listing, Skipped
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.walk import LayerPlace, RealPath
from nexus_context.folder.skills.front_matter import Node, front_matter

ALWAYS = ".github/copilot-instructions.md"
DIRECTORY = ".github/instructions"
SUFFIX = ".instructions.md"
ALL_FOR_SOME = f"{DIRECTORY}/*{SUFFIX}"

DEEPEST = 5
MOST_FILES = 200
MOST_ENTRIES = 2_000
"""Names that are read of one directory."""
CODE = "layer.front-matter"
FIELD = "applyTo"

NO_FIELD = (
    "has no `applyTo`: an editor sends it only where somebody attaches it. Write `applyTo: '**'` between two "
    "lines `---` at its top to send it with every request"
)

# Patterns are strings: re compiles and keeps them on first use, not at import.
_LEADING_STAR = r"(?m)^([\w-]+:[ \t]+)\*"
_STAR = "\ue000"
"""Stands for a `*` that YAML would take for an alias."""
_FIELDS = r"---[ \t]*(?:\r\n|\r|\n)(?:[\w-]+:[^\r\n]*(?:\r\n|\r|\n|\Z))+"
_UNQUOTED = rf"(?m)^{FIELD}:[ \t]+([^'\"\s][^\r\n]*?)[ \t]*$"
_CLOSED = r"(?m)^---[ \t]*$"


class Header(msgspec.Struct, frozen=True):
    """The front matter of a file. `applies_to` is None if it has no such field; `body` is what is sent.

    `valid` is false if the front matter cannot be read.
    """

    applies_to: str | None
    body: Span
    problems: tuple[Problem, ...] = ()
    valid: bool = True


class _Directory(Listing, frozen=True):
    """Names of the instruction files in a directory; `directories` are its subdirectories that are
    searched.
    """

    directories: tuple[str, ...] = ()


def is_source(name: str) -> bool:
    """Whether an entry of `context.instruction_files` names files of Copilot."""
    return name == ALWAYS or (name.startswith(f"{DIRECTORY}/") and name.endswith(SUFFIX))


def find_sources(reading: Reading, place: LayerPlace, sources: Sequence[str]) -> list[LayerFile]:
    """Return the files of Copilot in a place that the settings list in `sources`."""
    if not place.in_workspace or not sources:
        return []
    files: list[LayerFile] = []
    path = os.path.join(place.directory, *ALWAYS.split("/"))
    if ALWAYS in sources and reading.is_there(place, path):
        read = reading.prompt_file(path)
        files.append(LayerFile("instructions", path, read.status, read.text))
    if any(source != ALWAYS for source in sources):
        files.extend(_for_some(reading, place, sources))
    return files


def read_header(path: str, text: str) -> Header:
    """Read the front matter of one of Copilot's files."""
    if not text.startswith("---"):
        return Header(None, Span(0, len(text)))
    matter = front_matter(path, re.sub(_LEADING_STAR, rf"\1{_STAR}", text))
    problems = [msgspec.structs.replace(problem, code=CODE) for problem in matter.problems]
    if matter.fields is None:
        fix = _ending(text) or _quoting(text, matter.span)
        if fix is not None:
            problems = [msgspec.structs.replace(problem, fix=problem.fix or fix) for problem in problems]
        return Header(None, matter.body, tuple(problems), valid=False)
    member = matter.fields.get(FIELD)
    if member is None:
        near = next(
            (candidate for name, candidate in matter.fields.items() if _bare(name) == _bare(FIELD)), None
        )
        if near is not None:
            message = f"`{near.name}` is not read. Write `{FIELD}`."
            rename = Fix(f"Rename to `{FIELD}`", (Edit(near.span, FIELD),))
            problems.append(Problem(path, near.span, CODE, Severity.WARNING, message=message, fix=rename))
        return Header(None, matter.body, tuple(problems))
    globs = (member.value.text or "").replace(_STAR, "*").strip()
    problem = _wrong_globs(path, member.value, globs)
    if problem is not None:
        return Header(None, matter.body, (*problems, problem), valid=False)
    return Header(globs or None, matter.body, tuple(problems))


def _for_some(reading: Reading, place: LayerPlace, sources: Sequence[str]) -> Iterator[LayerFile]:
    directory = os.path.join(place.directory, *DIRECTORY.split("/"))
    for path in instruction_files(reading, directory):
        name = os.path.relpath(path, place.directory).replace(os.sep, "/")
        if (ALL_FOR_SOME not in sources and name not in sources) or not reading.is_there(place, path):
            continue
        read = reading.prompt_file(path)
        if read.status != "loaded" or read.text is None:
            yield LayerFile("instructions", path, read.status, read.text)
            continue
        header = reading.header(path, read.text, read_header)
        reading.problems.extend(header.problems)
        if not header.valid:
            yield LayerFile("instructions", path, "invalid", read.text)
        elif header.applies_to is None:
            reading.skipped.append(Skipped(path, NO_FIELD))
        elif Globs(header.applies_to).everything:
            yield LayerFile("instructions", path, "loaded", read.text, body=header.body)
        else:
            yield LayerFile(
                "instructions", path, "conditional", read.text, applies_to=header.applies_to, body=header.body
            )


def instruction_files(reading: Reading, directory: str) -> list[str]:
    """Return the paths of the instruction files below a directory, in a stable order."""
    unsaved = {
        path
        for path in reading.overlays
        if path.startswith(directory + os.sep)
        and path.endswith(SUFFIX)
        and path.count(os.sep) <= directory.count(os.sep) + DEEPEST + 1
    }
    paths = dict.fromkeys((*_files_below(reading, directory, 0), *sorted(unsaved)))
    return list(paths)[:MOST_FILES]


def _files_below(reading: Reading, directory: str, depth: int) -> Iterator[str]:
    def look(path: str) -> Listing:
        return _listed(path, reading.real_path, reading.real_files)

    listing = reading.listing(directory, look)
    yield from (os.path.join(directory, name) for name in listing.names)
    if isinstance(listing, _Directory) and depth < DEEPEST:
        for name in listing.directories:
            yield from _files_below(reading, os.path.join(directory, name), depth + 1)


def _listed(directory: str, real_path: RealPath, files: RealFiles) -> _Directory:
    entries = files.list_directory(real_path(directory), MOST_ENTRIES) or ()
    names = [name for name, kind in entries if kind in ("file", "link") and name.endswith(SUFFIX)]
    subdirectories = [name for name, kind in entries if kind == "directory" and not name.startswith(".")]
    return _Directory(tuple(names[:MOST_FILES]), len(names) > MOST_FILES, tuple(subdirectories[:MOST_FILES]))


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _wrong_globs(path: str, value: Node, globs: str) -> Problem | None:
    if value.text is None:
        items = [item.text.replace(_STAR, "*") for item in value.items or () if item.text]
        fix = None
        if items:
            fix = Fix("Write one text", (Edit(value.span, fixes.as_json(", ".join(items))),))
        message = f"`{FIELD}` must be one text with commas, as in `{FIELD}: '**/*.ts, **/*.tsx'`."
        return Problem(path, value.span, CODE, Severity.ERROR, message=message, fix=fix)
    try:
        Globs(globs)
    except GlobsError as error:
        return Problem(path, value.span, CODE, Severity.ERROR, message=f"`{FIELD}` {error}. Write fewer.")
    return None


def _quoting(text: str, inside: Span) -> Fix | None:
    """Puts the globs, a list or plain text, into quotes."""
    value = re.compile(_UNQUOTED).search(text, inside.start, inside.end)
    if value is None:
        return None
    globs = [glob.strip(" \t'\"") for glob in value[1].strip("[]").split(",")]
    return Fix("Put the value in quotes", (Edit(Span(*value.span(1)), f"'{', '.join(globs)}'"),))


def _ending(text: str) -> Fix | None:
    """Ends an unclosed front matter after its last field."""
    fields = re.match(_FIELDS, text)
    if fields is None or re.compile(_CLOSED).search(text, 3):
        return None
    line = "---\n" if fields[0].endswith(("\n", "\r")) else "\n---\n"
    return Fix("End the front matter", (Edit(Span(fields.end(), fields.end()), line),))
