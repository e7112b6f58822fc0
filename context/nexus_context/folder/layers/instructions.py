"""Finds the file of a layer that holds its instructions.

1. For each name in order, the first file that exists: in `.nexus3/`, in the directory, in the directory that
   the name's own tool uses (`.claude/`, `.agents/`). The global layer has one directory only.
2. `AGENTS.override.md` precedes the `AGENTS.md` of the same directory.
3. GitHub Copilot's files that the settings list are read, too (`copilot`).
4. README.md follows with `include_readme`. With `readme_as_fallback` it replaces a missing instruction file.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
from collections.abc import Iterator

from nexus_context.config.merge import Effective
from nexus_context.errors import Problem, Severity
from nexus_context.folder.layers.copilot import find_sources, is_source
from nexus_context.folder.layers.layer_types import Kind, LayerFile
from nexus_context.folder.layers.template import filled_part
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.walk import LayerPlace

TOOL_DIRECTORIES = {"CLAUDE.md": ".claude", "AGENTS.md": ".agents"}


def instruction_names(reading: Reading, effective: Effective) -> list[str]:
    """Return the file names to look for, in order. A name that leads elsewhere is reported and dropped."""
    names = []
    for index, name in enumerate(effective.get("/context/instruction_files")):
        if is_instruction_name(name) or is_source(name):
            names.append(name)
            continue
        message = f"{name!r} is not a valid instruction file. Name a file in the layer's directory."
        if name.startswith(".") and name not in (".", ".."):
            message = (
                f"{name!r} is not read: files that begin with a dot often hold secrets. Name another file."
            )
        for origin in effective.provenance.get(f"/context/instruction_files/{index}", ()):
            if reading.is_present(origin):
                problem = Problem(
                    origin.path, origin.span, "config.instruction-file", Severity.ERROR, message=message
                )
                reading.problems.append(problem)
    return names


def is_instruction_name(name: str) -> bool:
    """Whether an instruction file may have this name."""
    return not name.startswith(".") and not any(character in name for character in "/\\\0")


def find_instructions(
    reading: Reading, place: LayerPlace, names: list[str], effective: Effective
) -> list[LayerFile]:
    """Return the instruction file and the README of a place.

    If the place is a layer only by an instruction file (`optional`), and has none, the list is empty.
    """
    plain_names = [name for name in names if not is_source(name)]
    chosen = next((path for path in candidates(place, plain_names) if reading.is_there(place, path)), None)
    sources = find_sources(reading, place, [name for name in names if is_source(name)])
    files = []
    if chosen is not None:
        files.append(_file(reading, "instructions", chosen))
    elif place.optional and not sources:
        return []
    elif place.config_directory is not None and plain_names and not place.optional:
        path = os.path.join(place.config_directory, plain_names[0])
        files.append(LayerFile("instructions", path, "missing"))
    files.extend(sources)
    fallback = chosen is None and not sources and effective.get("/context/readme_as_fallback")
    if place.in_workspace and (fallback or effective.get("/context/include_readme")):
        path = os.path.join(place.directory, "README.md")
        if path != chosen and reading.is_there(place, path):
            files.append(_file(reading, "readme", path))
    return files


def candidates(place: LayerPlace, names: list[str]) -> Iterator[str]:
    """Yield the paths where a place's instruction file can be, the most important first."""
    for name in names:
        directories = [place.config_directory] if place.config_directory is not None else []
        if place.in_workspace:
            directories.append(place.directory)
            if name in TOOL_DIRECTORIES:
                directories.append(os.path.join(place.directory, TOOL_DIRECTORIES[name]))
        for directory in directories:
            if name == "AGENTS.md":
                yield os.path.join(directory, "AGENTS.override.md")
            yield os.path.join(directory, name)


def _file(reading: Reading, kind: Kind, path: str) -> LayerFile:
    read = reading.prompt_file(path)
    return LayerFile(kind, path, read.status, read.text, body=filled_part(read.text or ""))
