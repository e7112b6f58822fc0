"""Computes what Gemini CLI sends of a folder's files, by its own requests.

1. ~/.gemini/GEMINI.md is part of the system prompt. The GEMINI.md of each directory from the root of the
   project (`.git`) down to the folder are part of the first user message, sorted by path. The setting
   `context.fileName` adds names; the files of all names are read. A file that was read already by another
   path is left out. Directories of `context.includeDirectories` are read like the folder, and files of
   extensions come before all these.
2. `@path` imports a file in its place, between two comments. This is done at most DEEPEST deep, outside of
   backticks, and only beneath the project's root. If it fails, a comment says so.
3. A file below the folder is sent when a tool first uses its directory.
4. `.geminiignore` and `.gitignore` hide files from tools and from `@` in a message, but none of these
   instructions and imports.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from nexus_context.assistants.gemini.lists import gemini_agents, gemini_skills
from nexus_context.assistants.gemini.permission_checks import check_permissions
from nexus_context.assistants.gemini.settings import home_directory, read_extensions
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.markdown import WHITE_SPACE, trim
from nexus_context.assistants.reading.profile_types import (
    Assistant,
    AssistantSettings,
    IgnoredFile,
    InstructionReader,
    LaterFile,
    Rule,
    Scope,
    Sent,
    SentBlock,
    SentPart,
    Surroundings,
)
from nexus_context.assistants.reading.settings import texts_of
from nexus_context.assistants.reading.working_tree import find_working_tree, is_within, parents
from nexus_context.errors import Problem, Severity, Span

VERSION = "0.61.0"
PROGRAM = f"Gemini CLI {VERSION}"
PAGE = "https://geminicli.com/docs/cli/gemini-md"
IMPORT_PAGE = "https://geminicli.com/docs/reference/memport"
FEW_SKILLS = 10
OWN_SWITCHES = (("skills", "enabled"), ("experimental", "enableAgents"))
"""Settings that, switched off, take something from the program's own prompt."""
NAME = "GEMINI.md"
MARKERS: tuple[str, ...] = (".git",)
DEEPEST = 5
_IMPORT = re.compile(r"(?<![^ \t\n\r])@([./A-Za-z][^ \t\n\r]*)")
_RUN = re.compile(r"`+")
_ADDRESS = re.compile(r"(?:file|https?)://")
_BLANK_START = re.compile(rf"\A[{WHITE_SPACE}]*")
_BLANK_END = re.compile(rf"[{WHITE_SPACE}]*\Z")

ASSISTANT = Assistant(
    name="gemini",
    title="Gemini CLI",
    version=VERSION,
    verified="run",
    model="gemini-2.5-pro",
    own_tokens=12_400,
    names=(NAME,),
    reads="GEMINI.md",
    rules=(
        Rule("~/.gemini/GEMINI.md, in the system prompt", PAGE),
        Rule("GEMINI.md from the root of the project (.git) down to the folder, if that is trusted", PAGE),
        Rule("files of the project are in the first user message, sorted by path", PROGRAM),
        Rule("names besides by `context.fileName` in .gemini/settings.json", PAGE),
        Rule("the same of each directory of `context.includeDirectories`", PROGRAM),
        Rule("`contextFileName` of extensions, else their GEMINI.md, before files of the project", PROGRAM),
        Rule("imports `@path` in their place, at most 5 deep", IMPORT_PAGE),
        Rule("imports from outside of the project fail", PROGRAM),
        Rule(
            "skills of .gemini and .agents, of the user and the folder: name, description and path", PROGRAM
        ),
        Rule("agents of ~/.gemini/agents: name and description", PROGRAM),
        Rule("a nested GEMINI.md follows the first use of its directory", PAGE),
        Rule("`.geminiignore` and `.gitignore` hide no GEMINI.md and no import", PROGRAM),
    ),
)


class _Piece(NamedTuple):
    """A stretch of a file, or of the comments of Gemini CLI (`path` None)."""

    text: str
    path: str | None
    importer: str | None


class _Walk(NamedTuple):
    """What one file's imports share."""

    disk: Disk
    root: str
    problems: list[Problem]


def read_gemini(disk: Disk, settings: AssistantSettings) -> Sent:
    """Compute what Gemini CLI sends of a folder's files: with every request, later, and never."""
    surroundings = settings.where
    context = _context_settings(settings)
    value = context.get("fileName")
    configured_names = [value] if isinstance(value, str) else texts_of(value)
    names = list(
        dict.fromkeys((*(os.path.normpath(name.strip()) for name in configured_names if name.strip()), NAME))
    )
    marker_list = context.get("memoryBoundaryMarkers")
    markers = texts_of(marker_list) if isinstance(marker_list, list) else list(MARKERS)
    home = os.path.join(home_directory(surroundings), ".gemini")
    user = [path for path in (os.path.join(home, name) for name in names) if disk.exists(path)]
    ignored: list[IgnoredFile] = []
    paths = sorted(set(filter(disk.exists, _project_paths(disk, settings, markers, names, home=home))))
    project = _without_repetitions(disk, paths, user, ignored)
    extensions = sorted(
        {path for extension in read_extensions(disk, surroundings) for path in extension.context_files(disk)}
    )
    problems: list[Problem] = []
    texts = [
        list(_parts(disk, files, surroundings, markers, problems=problems))
        for files in (user, extensions, project)
    ]
    blocks = []
    if texts[0]:
        blocks.append(SentBlock("instructions", "system", tuple(_enclosed("loaded", texts[0]))))
    sections = [
        part
        for name, parts in (("extension", texts[1]), ("project", texts[2]))
        if parts
        for part in (*_enclosed(name, parts), SentPart("\n", "program"))
    ][:-1]
    if sections:
        blocks.append(SentBlock("instructions", "user", tuple(_enclosed("loaded", sections))))
    later: list[LaterFile] = []
    blocks.extend(gemini_agents(disk, settings, later=later, ignored=ignored, problems=problems))
    blocks.extend(gemini_skills(disk, settings, ignored=ignored, problems=problems))
    problems += check_permissions(disk, settings)
    skills = sum(len(block.parts) for block in blocks if block.kind == "skills")
    return Sent(
        tuple(blocks),
        tuple(later),
        tuple(ignored),
        tuple(problems),
        nested_names=(NAME,),
        changes_own=_changes_own(disk, settings, skills),
    )


def _changes_own(disk: Disk, settings: AssistantSettings, skills: int) -> bool:
    """Whether Gemini CLI's own prompt or tools are not the usual: by settings, many skills, or no git."""
    return (
        skills > FEW_SKILLS
        or find_working_tree(disk, settings.where.folder) is None
        or any(settings.value(*keys) is False for keys in OWN_SWITCHES)
        or any(settings.value("tools", key) for key in ("core", "exclude"))
        or settings.value("general", "defaultApprovalMode") not in (None, "default")
        or bool(settings.where.environ.get("GEMINI_SYSTEM_MD"))
    )


def _enclosed(name: str, parts: list[SentPart]) -> Iterator[SentPart]:
    yield SentPart(f"<{name}_context>\n", "program")
    yield from parts
    yield SentPart(f"\n</{name}_context>", "program")


def _project_paths(
    disk: Disk, settings: AssistantSettings, markers: list[str], names: list[str], *, home: str
) -> Iterator[str]:
    """Where the project's files may be: from the root of the folder and of each included directory down."""
    folder = settings.where.folder
    included = [name for value in settings.each("context", "includeDirectories") for name in texts_of(value)]
    for name in ("", *included):
        if name == "~" or name.startswith("~/"):
            name = settings.where.user_home + name[1:]
        start = os.path.normpath(os.path.join(folder, name))
        chain = parents(start)
        root = _root(disk, start, markers) or start
        for directory in chain[: chain.index(root) + 1]:
            if directory != home:
                yield from (os.path.join(directory, file_name) for file_name in names)


def _parts(
    disk: Disk, files: list[str], surroundings: Surroundings, markers: list[str], *, problems: list[Problem]
) -> Iterator[SentPart]:
    """The parts of all files of a block."""
    separator = ""
    for path in files:
        pieces = _file_pieces(disk, path, markers, problems)
        directory = os.path.dirname(path)
        scope: Scope = "project" if directory == surroundings.folder else "parent"
        scope = "user" if is_within(path, os.path.join(home_directory(surroundings), ".gemini")) else scope
        for index, piece in enumerate(pieces):
            start = f"{separator}--- Context from: {path} ---\n" if index == 0 else ""
            end = f"\n--- End of Context from: {path} ---" if index == len(pieces) - 1 else ""
            content = Span(len(start), len(start) + len(piece.text))
            owner = piece.path or (path if start or end else None)
            kind: Scope = "program" if owner is None else "import" if piece.importer else scope
            text = start + piece.text + end
            yield SentPart(text, kind, owner, content=content, importer=piece.importer)
            separator = "\n\n"


def _context_settings(settings: AssistantSettings) -> dict[str, Any]:
    """The settings `context` of the user and the folder; the folder's win."""
    merged: dict[str, Any] = {}
    for context in settings.each("context"):
        merged.update(context if isinstance(context, dict) else {})
    return merged


def _root(disk: Disk, folder: str, markers: list[str]) -> str | None:
    valid = [marker for marker in markers if not os.path.isabs(marker) and ".." not in marker]
    for directory in parents(folder):
        if any(disk.exists(os.path.join(directory, marker)) for marker in valid):
            return directory
    return None


def _without_repetitions(
    disk: Disk, paths: list[str], earlier_paths: list[str], ignored: list[IgnoredFile]
) -> list[str]:
    """The paths whose files no earlier path leads to; the others are added to `ignored`."""
    path_by_real = {disk.real(path): path for path in earlier_paths}
    result = []
    for path in paths:
        real = disk.real(path)
        if real in path_by_real:
            ignored.append(IgnoredFile(path, f"It is the same file as {path_by_real[real]}."))
        else:
            path_by_real[real] = path
            result.append(path)
    return result


def _file_pieces(disk: Disk, path: str, markers: list[str], problems: list[Problem]) -> list[_Piece]:
    """A file with its imports, without white space at its ends; empty if it has no text."""
    text = disk.text(path)
    if text is None:
        return []
    directory = os.path.dirname(path)
    walk = _Walk(disk, _root(disk, directory, markers) or directory, problems)
    return _trimmed(list(_pieces(walk, path, text, importer=None, processed=frozenset(), depth=0)))


def _pieces(
    walk: _Walk, path: str, text: str, *, importer: str | None, processed: frozenset[str], depth: int
) -> Iterator[_Piece]:
    """A file with its imports in place."""
    if depth >= DEEPEST:
        yield _Piece(text, path, importer)
        return
    regions = _code_regions(text)
    position = 0
    for match in _IMPORT.finditer(text):
        if any(start <= match.start() < end for start, end in regions):
            continue
        yield _Piece(text[position : match.start()], path, importer)
        position = match.end()
        name = match[1]
        target = os.path.normpath(os.path.join(os.path.dirname(path), name))
        failure = _failure(walk, name, target, processed)
        if failure is not None:
            yield _Piece(f"<!-- {failure} -->", None, importer)
            problem = _problem(path, Span(*match.span()), target, failure, depth=depth)
            walk.problems.append(problem)
            continue
        imported = walk.disk.text(target) or ""
        yield _Piece(f"<!-- Imported from: {name} -->\n", None, importer)
        yield from _pieces(
            walk, target, imported, importer=path, processed=processed | {target}, depth=depth + 1
        )
        yield _Piece(f"\n<!-- End of import from: {name} -->", None, importer)
    yield _Piece(text[position:], path, importer)


def _failure(walk: _Walk, name: str, target: str, processed: frozenset[str]) -> str | None:
    """What Gemini CLI writes instead of an import that it does not follow."""
    if _ADDRESS.match(name) or not is_within(walk.disk.real(target), walk.disk.real(walk.root)):
        return f"Import failed: {name} - Path traversal attempt"
    if target in processed:
        return f"File already processed: {name}"
    if walk.disk.is_directory(target):
        return f"Import failed: {name} - EISDIR: illegal operation on a directory, read"
    if walk.disk.text(target) is None:
        return f"Import failed: {name} - ENOENT: no such file or directory, access '{target}'"
    return None


def _problem(path: str, span: Span, target: str, failure: str, *, depth: int) -> Problem:
    code = "assistant.import"
    if "already processed" in failure:
        message = f"{target} imports this file, so Gemini CLI leaves it out. Remove one of the imports."
    elif "traversal" in failure:
        code, message = (
            "assistant.import-outside",
            f"{target} is outside of the project, and is not imported.",
        )
    else:
        message = (
            f"{target} is not a file: Gemini CLI sends a comment about it instead. Correct the path, or put "
            "the word between backticks if it is none."
        )
    severity = Severity.WARNING if depth or "/" in target else Severity.INFORMATION
    return Problem(path, span, code, severity, message=message)


def _code_regions(text: str) -> list[tuple[int, int]]:
    """From a run of backticks to the next of the same length, else of a shorter one."""
    regions = []
    position = 0
    missing: set[int] = set()  # lengths that do not occur any more
    while (run := _RUN.search(text, position)) is not None:
        start, length = run.start(), run.end() - run.start()
        position = run.end()
        for size in range(length, 0, -1):
            end = -1 if size in missing else text.find("`" * size, start + size)
            if end >= 0:
                regions.append((start, end + size))
                position = end + size
                break
            missing.add(size)
    return regions


def _trimmed(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces without white space at both ends of the whole, and without empty ones."""
    while pieces and not trim(pieces[0].text):
        pieces = pieces[1:]
    while pieces and not trim(pieces[-1].text):
        pieces = pieces[:-1]
    if not pieces:
        return []
    pieces[0] = pieces[0]._replace(text=_BLANK_START.sub("", pieces[0].text))
    pieces[-1] = pieces[-1]._replace(text=_BLANK_END.sub("", pieces[-1].text))
    return [piece for piece in pieces if piece.text]


INSTRUCTIONS = InstructionReader(
    assistant=ASSISTANT,
    read=read_gemini,
    own_place="/.gemini/",
    own_files="files of Gemini CLI",
    list_user_files=lambda where: (os.path.join(home_directory(where), ".gemini", NAME),),
    list_settings=lambda where: (os.path.join(home_directory(where), ".gemini", "settings.json"),),
)
