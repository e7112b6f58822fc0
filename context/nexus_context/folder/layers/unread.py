"""Finds existing instruction files that are not read: why, and the edits that would include them.

1. The directories from the folder up to the root of its repository are searched, and the ancestors that are
   read.
2. The names are those of other programs (`KNOWN`) and of `context.instruction_files`.
3. A file that is in the prompt under any path, by an import or a symbolic link, counts as read. Files that
   their layer lists or that are refused have a reason already.
4. The first MOST files are reported, and the number of the others.
5. No remedy imports a file that imports the importer, directly or through others: it would make a cycle.
6. A directory is searched again if something in it may have changed: a keystroke searches none.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from nexus_context.config import fixes
from nexus_context.disk.files import exists, list_directory
from nexus_context.errors import Edit, Span
from nexus_context.folder.layers.copilot import ALL_FOR_SOME, ALWAYS, instruction_files, is_source
from nexus_context.folder.layers.copilot import DIRECTORY as INSTRUCTIONS
from nexus_context.folder.layers.instructions import candidates, is_instruction_name
from nexus_context.folder.layers.layer_types import LOCAL, Layers, Presence, Remedy, Skipped
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.walk import ASSISTANT_DIRECTORIES, CONFIG_DIRECTORY, LayerPlace, within
from nexus_context.text.json import JsonDocument

MOST = 200
MOST_ENTRIES = 2_000
"""Names that are read of one directory."""

MOST_FOLLOWED = 50
"""Files that are read to find a cycle of imports."""

ImportsOf = Callable[[str, str], Iterable[str]]

COPILOT, CURSOR = "GitHub Copilot", "Cursor"

KNOWN = {
    "AGENTS.override.md": "Codex",
    "CLAUDE.local.md": "Claude Code",
    "GEMINI.md": "Gemini CLI",
    "QWEN.md": "Qwen Code",
    ALWAYS: COPILOT,
    ALL_FOR_SOME: COPILOT,
    ".cursorrules": CURSOR,
    ".cursor/rules/*.mdc": CURSOR,
    ".windsurfrules": "Windsurf",
    ".windsurf/rules/*.md": "Windsurf",
    ".clinerules": "Cline",
    ".junie/guidelines.md": "Junie",
}
"""Paths below a directory, in which `*` stands for any name, and the program that reads them."""

SHARED = ("NEXUS.md", "AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", ".agents/AGENTS.md")
"""Paths of names that Nexus reads by default."""


def unread_files(
    reading: Reading, layers: Layers, in_prompt: Collection[str], imports_of: ImportsOf
) -> tuple[Skipped, ...]:
    """Return the known instruction files that are not read, the nearest directory first.

    `imports_of` returns the absolute paths that a text imports, given its own path.
    """
    listed = {file.path for layer in layers.layers for file in layer.files if file.status != "missing"}
    listed.update(skipped.path for skipped in reading.skipped)
    read = {reading.real_path(path) for path in (*listed, *in_prompt)}
    listed_names = layers.effective.get("/context/instruction_files") or ()
    names = [*filter(is_instruction_name, listed_names)]
    unread = [
        (path, height, directory, name)
        for directory, height in layers.reach.directories
        for name, path in _present(reading, directory, names)
        if path not in listed and reading.real_path(path) not in read
    ]
    reported = [
        _without_cycle(
            Skipped(path, *_reason(reading, layers, height, directory, name=name, names=names)),
            lambda path, importer: _leads_to(reading, layers, path, importer, imports_of=imports_of),
        )
        for path, height, directory, name in unread[:MOST]
    ]
    if len(unread) > MOST:
        path, *_ = unread[MOST]
        more = len(unread) - MOST
        reported.append(Skipped(path, f"is the first of {more:,} more instruction files that are not read"))
    return tuple(reported)


def _without_cycle(skipped: Skipped, leads_to: Callable[[str, str], bool]) -> Skipped:
    """The same, without a remedy that would make a cycle (rule 5)."""
    importer = None if skipped.remedy is None else skipped.remedy.importer
    if importer is None or not leads_to(skipped.path, importer):
        return skipped
    name = os.path.basename(importer)
    cause = f"imports {name}, which must not import it in turn"
    reason = f"{cause}. Move text that is meant for all assistants to {name}"
    return Skipped(skipped.path, reason, cause=cause)


def _leads_to(reading: Reading, layers: Layers, path: str, target: str, *, imports_of: ImportsOf) -> bool:
    """Whether a file imports another, directly or through files of the repository, under whatever name."""
    real_target, waiting, visited = reading.real_path(target), [path], set[str]()
    root = reading.real_path(layers.reach.directories[-1][0])
    while waiting and len(visited) < MOST_FOLLOWED:
        path = waiting.pop()
        real = reading.real_path(path)
        if real == real_target:
            return True
        if real not in visited and within(real, root):
            visited.add(real)
            waiting += imports_of(path, reading.read(path).text or "")
    return bool(waiting)  # too many to tell


def _present(reading: Reading, directory: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names and paths of the known files that exist."""
    presence = reading.presence(directory, tuple(names), _look)
    yield from presence.present
    for path in reading.overlays:
        if path in presence.candidates and (presence.candidates[path], path) not in presence.present:
            yield presence.candidates[path], path
    for path in instruction_files(reading, os.path.join(directory, *INSTRUCTIONS.split("/"))):
        yield os.path.relpath(path, directory), path


def _look(directory: str, names: Sequence[str]) -> Presence:
    """Which of the known files are in a directory on the disk."""
    plain = [*SHARED, *names, *(os.path.join(CONFIG_DIRECTORY, name) for name in names)]
    candidates: dict[str, str] = {}
    watch: list[str] = []
    present: list[tuple[str, str]] = []
    for pattern in dict.fromkeys([*plain, *KNOWN]):
        path = os.path.join(directory, *pattern.split("/"))
        parent, name = os.path.split(path)
        if pattern == ALL_FOR_SOME:
            continue
        if pattern not in KNOWN or "*" not in name:
            candidates[path] = pattern
            watch.append(path)
            if exists(path):
                present.append((pattern, path))
            continue
        watch += (parent, parent + os.sep)
        present += (
            (os.path.join(os.path.dirname(pattern), entry), os.path.join(parent, entry))
            for entry, _ in list_directory(parent, MOST_ENTRIES) or ()
            if entry.endswith(name.removeprefix("*"))
        )
    return Presence(tuple(names), candidates, tuple(present), tuple(watch))


def _reason(
    reading: Reading, layers: Layers, height: int, directory: str, name: str, names: Sequence[str]
) -> tuple[str, Remedy | None, str]:
    """Why a file is not read, what would change that, and the cause alone."""
    depth, stop, program = layers.reach.depth, layers.reach.stop, _program(name)
    if stop is not None and stop.path == directory:
        return f"is in a directory that is not read: it {stop.reason}", None, ""
    if stop is not None and within(stop.path, directory):
        return f"is above {stop.path}, which is not read: that {stop.reason}", None, ""
    chosen = _chosen(layers, directory)
    if height > depth and not _is_to_move(name):
        there = LayerPlace("", directory, os.path.join(directory, CONFIG_DIRECTORY))
        chosen = next(filter(reading.is_anywhere, candidates(there, list(names))), None)
        remedy: Remedy | None
        more, remedy = " to read it", Remedy(depth=height)
        if chosen != os.path.join(directory, name):
            advice, besides = _remedy(directory, name, chosen)
            more = f", and {advice[0].lower()}{advice[1:]}"
            remedy = msgspec.structs.replace(besides or Remedy(), depth=height)
        cause = f'is out of reach: "ancestor_depth" in "context" is {depth}'
        return f"{cause}. Set it to {height}{more}", remedy, cause
    rule = ""
    if program is not None and name not in names:
        cause = f"is an instruction file of {program}"
    elif chosen is not None:
        cause = f"has no effect beside {os.path.relpath(chosen, directory)}"
        rule = f": of {', '.join(names)} the first that exists is read"
    else:
        cause = 'is not among "instruction_files" in "context"'
    advice, remedy = _remedy(directory, name, chosen)
    return f"{cause}{rule}. {advice}", remedy, cause


def _remedy(directory: str, name: str, chosen: str | None) -> tuple[str, Remedy | None]:
    if _program(name) == COPILOT:
        entry = name if name == ALWAYS else ALL_FOR_SOME
        return f'Add "{entry}" to "instruction_files" in "context" to read it, too', Remedy(entry)
    if _is_to_move(name):
        return "Move its text to a file that is read, such as AGENTS.md", None
    if chosen is None:
        if "/" in name:
            return f"Write @{name} in an AGENTS.md in {directory} to read it", None
        return f'Add "{name}" to "instruction_files" in "context" to read it', Remedy(name)
    path = os.path.relpath(os.path.join(directory, name), os.path.dirname(chosen))
    advice = f"Write @{path} in {os.path.relpath(chosen, directory)} to read it, too"
    return advice, Remedy(importer=chosen, name=path)


def _is_to_move(name: str) -> bool:
    """Whether no setting and no import can bring a file into the prompt."""
    first_name, _, path_below = name.partition("/")
    return first_name.startswith(".") and (not path_below or first_name not in ASSISTANT_DIRECTORIES)


def _chosen(layers: Layers, directory: str) -> str | None:
    """The instruction file of a directory's layer."""
    return next(
        (
            file.path
            for layer in layers.layers
            if layer.directory == directory
            for file in layer.files
            if file.kind == "instructions"
            and file.status != "missing"
            and not is_source(os.path.relpath(file.path, directory))
        ),
        None,
    )


def _program(name: str) -> str | None:
    if name in KNOWN:
        return KNOWN[name]
    pattern = next((pattern for pattern in KNOWN if "*" in pattern and _matches(name, pattern)), None)
    return None if pattern is None else KNOWN[pattern]


def _matches(name: str, pattern: str) -> bool:
    prefix, _, suffix = pattern.partition("*")
    return name.startswith(prefix) and name.endswith(suffix)


FILES, DEPTH = "instruction_files", "ancestor_depth"


class FileEdits(NamedTuple):
    """Edits of one file. `creates` is true if it does not exist yet."""

    path: str
    edits: tuple[Edit, ...]
    creates: bool = False


def edits_of(layers: Layers, remedy: Remedy) -> tuple[FileEdits, ...]:
    """Return the edits that make Nexus read a file. Empty if they cannot be determined.

    1. An entry of `context.instruction_files` is added to the list of the folder's own `config.json`. If no
       file sets the list, its default is written with it, since a set list replaces the default.
    2. `context.ancestor_depth` is set there, too.
    3. An import `@path` is appended to the instruction file that is read.
    4. Broken settings are left alone. A missing file is created.
    """
    file_edits: list[FileEdits] = []
    settings: dict[str, Any] = {}
    if remedy.depth is not None:
        settings[DEPTH] = remedy.depth
    if remedy.entry is not None:
        settings[FILES] = [*_list_to_extend(layers), remedy.entry]
    if settings:
        edits = _settings_edits(layers, settings, remedy.entry)
        if edits is None:
            return ()
        file_edits.append(edits)
    if remedy.importer is not None:
        text = layers.texts.get(remedy.importer)
        if text is None:
            return ()
        gap = "" if not text or text.endswith(("\n", "\r")) else "\n"
        end = Span(len(text), len(text))
        file_edits.append(FileEdits(remedy.importer, (Edit(end, f"{gap}\n@{remedy.name}\n"),)))
    return tuple(file_edits)


def title_of(remedy: Remedy) -> str:
    """Return a title for people that says what the edits do."""
    parts = []
    if remedy.depth is not None:
        parts.append(f'set "{DEPTH}" to {remedy.depth}')
    if remedy.entry is not None:
        parts.append(f'add "{remedy.entry}" to "{FILES}"')
    if remedy.importer is not None:
        parts.append(f"import it in {os.path.basename(remedy.importer)}")
    return f"Read this file: {' and '.join(parts)}"


def _list_to_extend(layers: Layers) -> list[str]:
    """The list to write before a new entry, if the folder's own settings have none."""
    names = layers.effective.get(f"/context/{FILES}") or ()
    chains = [layers.effective.provenance.get(f"/context/{FILES}/{index}", ()) for index in range(len(names))]
    is_set = any(origin.document is not None for chain in chains for origin in chain)
    return [] if is_set else list(names)


def _settings_edits(layers: Layers, settings: dict[str, Any], entry: str | None) -> FileEdits | None:
    local = next((layer for layer in layers.layers if layer.name == LOCAL), None)
    if local is None:
        return None
    path = os.path.join(local.config_directory, "config.json")
    text, document = layers.texts.get(path), layers.documents.get(path)
    new_text = json.dumps({"context": settings}, indent=2) + "\n"
    if text is None:
        missing = any(file.path == path and file.status == "missing" for file in local.files)
        return FileEdits(path, (Edit(Span(0, 0), new_text),), creates=True) if missing else None
    if not text.strip():
        return FileEdits(path, (Edit(Span(0, len(text)), new_text),))
    if document is None or layers.good.get(path) is not document or not isinstance(document.value, dict):
        return None
    edits = [edit for name, value in settings.items() for edit in _member_edits(document, name, value, entry)]
    if document.value.get("context") is None:
        edits = [_inserted(document, (), "context", settings)]
    return FileEdits(path, tuple(edits))


def _member_edits(document: JsonDocument, name: str, value: Any, entry: str | None) -> list[Edit]:
    """The edits that set a member of `context`; an entry is added to an existing list."""
    context = document.value.get("context")
    if not isinstance(context, dict) or name not in context:
        return [_inserted(document, ("context",), name, value)] if isinstance(context, dict) else []
    if name == FILES and isinstance(context[name], list):
        last_index = len(context[name]) - 1
        if last_index >= 0:
            end = document.span(("context", name, last_index)).end
            return [Edit(Span(end, end), f", {fixes.as_json(entry)}")]
        value = [entry]
    return [Edit(document.span(("context", name)), fixes.as_json(value))]


def _inserted(document: JsonDocument, pointer: tuple[str, ...], name: str, value: Any) -> Edit:
    """A new first member of an object."""
    start = document.span(pointer).start + 1
    target = document.value[pointer[0]] if pointer else document.value
    indent = "  " * (len(pointer) + 1)
    comma = "," if target else f"\n{indent[2:]}"
    return Edit(Span(start, start), f"\n{indent}{fixes.as_json(name)}: {fixes.as_json(value)}{comma}")
