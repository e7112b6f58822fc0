"""Finds the files of the layers that define the agent: bootstrap files.

1. They are looked up in `.nexus3/` of each layer. For each file name, the nearest layer that has the file
   wins. An unusable file wins, too, and is reported. An empty file does not win; this is reported if another
   file counts in its place.
2. A named agent has its own definition, `AGENT.<agent>.md` of the nearest layer that has one. `AGENT.md` is
   its definition only if no layer has one.
3. A file that does not win is listed as shadowed, without a problem. It is not in the prompt.
4. `IDENTITY.md` of the global layer describes the user; in a workspace it describes the agent.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import functools
import os
import re
from collections.abc import Mapping, Sequence
from typing import get_args

from nexus_context.errors import Problem, Related, Severity, Span
from nexus_context.folder.layers.layer_types import DEFAULTS, Bootstrap, Kind, LayerFile
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.walk import LayerPlace

AGENT_FILE = "AGENT.md"
BOOTSTRAP_FILES: dict[str, Bootstrap] = {
    AGENT_FILE: "agent",
    "SOUL.md": "soul",
    "IDENTITY.md": "identity",
    "CONTEXT.md": "context",
}
"""Kind by file name, in the order of the prompt."""

BOOTSTRAP_KINDS: tuple[Bootstrap, ...] = get_args(Bootstrap)

_AGENT_NAME = re.compile(r"\w[\w.-]{0,63}\Z")


def agent_file(agent: str | None) -> str | None:
    """Return the name of an agent's own definition file.

    None if the agent's name is not valid in a file name.
    """
    return f"AGENT.{agent}.md" if agent is not None and _AGENT_NAME.match(agent) else None


def variant_of(file_name: str) -> tuple[str, str] | None:
    """Return the bootstrap file that `file_name` is a variant of, and the variant's agent.

    None for other names. Only variants of AGENT_FILE are read.
    """
    kind, _, extension = file_name.partition(".")
    agent = extension.removesuffix(".md")
    is_variant = f"{kind}.md" in BOOTSTRAP_FILES and agent != extension and agent_file(agent) is not None
    return (f"{kind}.md", agent) if is_variant else None


def find_bootstrap(
    reading: Reading, places: Sequence[LayerPlace], agent: str | None
) -> list[list[LayerFile]]:
    """Return the bootstrap files that exist in each place, including shadowed ones."""
    agent_name = agent_file(agent)
    names: dict[str, Bootstrap] = (
        BOOTSTRAP_FILES
        if agent_name is None
        else {agent_name: BOOTSTRAP_FILES[AGENT_FILE], **BOOTSTRAP_FILES}
    )
    files: list[list[LayerFile]] = [[] for _ in places]
    taken: dict[Kind, str] = {}
    blank: list[LayerFile] = []
    for name, kind in names.items():
        for index in range(len(places) - 1, -1, -1):
            place = places[index]
            path = os.path.join(place.config_directory or place.directory, name)
            look = functools.partial(_file, reading, place, name, kind=kind, taken=taken)
            file = reading.contain(path, look, None)
            if file is None:
                continue
            files[index].append(file)
            if file.status == "loaded" and is_blank(file):
                blank.append(file)
            elif file.status != "shadowed":
                taken[file.kind] = file.path
    reading.problems.extend(_empty(file, taken[file.kind]) for file in blank if file.kind in taken)
    return files


def is_blank(file: LayerFile) -> bool:
    """Whether a file has no text except white space."""
    return not (file.text or "").strip()


def _file(
    reading: Reading, place: LayerPlace, name: str, kind: Bootstrap, taken: Mapping[Kind, str]
) -> LayerFile | None:
    """A place's file of a name; shadowed if its kind is taken, None if no such file may be read."""
    if place.config_directory is None or place.name == DEFAULTS:
        return None
    path = os.path.join(place.config_directory, name)
    if place.optional:  # it has no `.nexus3` yet
        reading.watch.add(path)
        return None
    if not reading.is_there(place, path):
        return None
    if kind == "identity" and not place.in_workspace:
        kind = "user-identity"
    if kind in taken:
        return LayerFile(kind, path, "shadowed", reading.read(path).text)
    read = reading.prompt_file(path)
    return LayerFile(kind, path, read.status, read.text)


def _empty(file: LayerFile, other_path: str) -> Problem:
    message = (
        f"The file is empty: {other_path} counts instead. Write a text that replaces it, or remove this file."
    )
    related = (Related(other_path, Span(0, 0), "This one counts."),)
    return Problem(
        file.path, Span(0, 0), "layer.empty", Severity.INFORMATION, message=message, fix=None, related=related
    )
