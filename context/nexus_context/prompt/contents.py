"""What the files of the layers put into the prompt: instruction files with their imports, READMEs, sections.

1. A file is in the prompt once, by real path: what a nearer layer names again is left out.
2. The file of a custom section is relative to its layer's directory (to the global directory in the global
   file) and, for a file of a workspace, may be what an import may be.
3. A literal secret in what is in the prompt is reported, and not shown again. Hidden text is reported, too.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import functools
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from nexus_context.config.merge import Effective, Provenance
from nexus_context.errors import Problem, Severity, Span
from nexus_context.files import FileRead
from nexus_context.layers.model import DEFAULTS, GLOBAL, Layer, LayerFile, Layers
from nexus_context.layers.reading import Reading
from nexus_context.layers.walk import within
from nexus_context.prompt.hidden import hidden_text
from nexus_context.prompt.imports import Imports, Refusal, expand, take
from nexus_context.prompt.texts import Piece, unix_lines
from nexus_context.redact import secrets_in_text

DEFAULT_PRIORITY = 300
MAX_SECRETS = 20  # of one file that are reported


class Block(msgspec.Struct, frozen=True):
    """One file of a layer as it stands in the prompt; `pieces` are not empty."""

    layer: Layer
    path: str
    pieces: tuple[Piece, ...]


class Section(msgspec.Struct, frozen=True):
    """A custom section of `context.sections`. `path` and `span` are where it is defined."""

    name: str
    priority: int
    layer: str
    path: str
    span: Span
    pieces: tuple[Piece, ...]


class Contents(msgspec.Struct, frozen=True):
    """The files' part of the prompt, in layer order, and what is wrong with it."""

    blocks: tuple[Block, ...]
    sections: tuple[Section, ...]
    problems: tuple[Problem, ...]


def gather(layers: Layers, reading: Reading, user_home: str) -> Contents:
    """Read what the layers' instruction files import and the files of custom sections."""
    imports = Imports(reading.read, user_home, reading.real_path)
    before = set(reading.reads)
    blocks = []
    files = [(layer, file) for layer in layers.layers for file in layer.files if _is_prompt_text(file)]
    first: dict[str, str] = {}  # real path → path of the file that stands for it
    for _, file in files:
        first.setdefault(reading.real_path(file.path), file.path)
    imports.included.update(first)
    for layer, file in files:
        if first[reading.real_path(file.path)] != file.path:
            continue
        pieces = expand(imports, layer, file.path, file.text or "")
        if pieces:
            blocks.append(Block(layer, file.path, tuple(pieces)))
    sections = _sections(layers, imports)
    for path in imports.dropped.difference(imports.texts, before):
        reading.reads.pop(path, None)  # a text that is of no use is not kept in memory
    reading.watch.update(imports.refused)
    packaged = {file.path for layer, file in files if layer.name == DEFAULTS}
    texts = [(path, text) for path, text in imports.texts.items() if path not in packaged]
    secrets = [problem for path, text in texts for problem in _secret_problems(path, text)]
    hidden = [problem for path, text in texts for problem in hidden_text(path, text)]
    return Contents(tuple(blocks), sections, (*imports.problems, *secrets, *hidden))


def _secret_problems(path: str, text: str) -> Iterator[Problem]:
    for span in _secrets(text)[:MAX_SECRETS]:
        yield Problem(path, span, "prompt.secret", Severity.WARNING, _LITERAL)


_LITERAL = (
    "This looks like a secret, and it is sent to the model with the prompt. Remove it, replace it where it "
    "is in use, and write the name of an environment variable here instead."
)


@functools.lru_cache(maxsize=64)
def _secrets(text: str) -> tuple[Span, ...]:
    """Remembered: all files but the one that is edited are the same on every keystroke."""
    return secrets_in_text(text)


def _is_prompt_text(file: LayerFile) -> bool:
    return file.kind in ("instructions", "readme") and file.status == "loaded" and file.text is not None


def _sections(layers: Layers, imports: Imports) -> tuple[Section, ...]:
    found = []
    for index, value in enumerate(layers.effective.get("/context/sections") or ()):
        origin = _origin(layers.effective, f"/context/sections/{index}")
        if origin is None:
            continue
        pieces = _section_pieces(layers, imports, value, origin)
        if pieces:
            priority = value.get("priority", DEFAULT_PRIORITY)
            found.append(
                Section(value["name"], priority, origin.layer, origin.path, origin.span, tuple(pieces))
            )
    return tuple(found)


def _origin(effective: Effective, pointer: str) -> Provenance | None:
    chain = effective.provenance.get(pointer, ())
    return next((entry for entry in chain if entry.wins and entry.document is not None), None)


def _section_pieces(
    layers: Layers, imports: Imports, value: dict[str, Any], origin: Provenance
) -> list[Piece]:
    document = origin.document
    if document is None:
        return []
    content = value.get("content")
    if isinstance(content, str):
        text = unix_lines(content).strip()
        if _secrets(text):
            span = document.span((*origin.pointer, "content"))
            imports.problems.append(Problem(origin.path, span, "prompt.secret", Severity.WARNING, _LITERAL))
        return [Piece(text, origin.path, document.span((*origin.pointer, "content")))] if text else []
    span = document.span((*origin.pointer, "file"))
    layer = next(layer for layer in layers.layers if _has_file(layer, origin.path))
    path, refusal = _section_path(layer, imports, str(value.get("file")))
    if refusal is None and imports.real_path(path) in imports.included:
        return []
    read = take(imports, layer, path) if refusal is None else Refusal("outside", refusal)
    if isinstance(read, FileRead) and read.status != "loaded":
        why = read.problems[0].message.rstrip(".") if read.problems else "it does not exist"
        read = Refusal("unreadable", f"{path} cannot be read: {why}")
    if isinstance(read, Refusal) or read.text is None:
        why = read.why if isinstance(read, Refusal) else ""
        message = f"The section's file is left out: {why or 'the limit of a prompt is reached'}."
        imports.problems.append(Problem(origin.path, span, "prompt.section-file", Severity.WARNING, message))
        return []
    imports.included.add(imports.real_path(path))
    return expand(imports, layer, path, read.text)


def _has_file(layer: Layer, path: str) -> bool:
    return any(file.path == path for file in layer.files)


def _section_path(layer: Layer, imports: Imports, name: str) -> tuple[str, str | None]:
    """Absolute path of a section's file, and the reason why it must not be read."""
    if not layer.in_workspace:
        expanded = os.path.join(imports.user_home, name[2:]) if name.startswith("~/") else name
        base = layer.config_directory if layer.name == GLOBAL else layer.directory
        return os.path.normpath(os.path.join(base, expanded)), None
    path = os.path.normpath(os.path.join(layer.directory, name))
    inside = within(imports.real_path(path), imports.real_path(layer.directory))
    if os.path.isabs(name) or name.startswith("~/") or not inside:
        return path, f"{name} is not beneath {layer.directory}"
    return path, None
