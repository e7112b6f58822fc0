"""Edits that make Nexus read an instruction file: of the folder's own settings, or of the file beside it.

1. An entry of `context.instruction_files` is added to the list of the folder's own `config.json`. If no file
   sets the list, its default is written with it, since a set list replaces the default.
2. Otherwise `@path` is appended to the instruction file that is read.
3. Broken settings are left alone. A missing file is created.
"""

import json
import os
from typing import Any, NamedTuple

from nexus_context.config import fixes
from nexus_context.errors import Edit, Span
from nexus_context.jsontext import JsonDocument
from nexus_context.layers.model import LOCAL, Layers, Remedy

FILES, DEPTH = "instruction_files", "ancestor_depth"


class FileEdits(NamedTuple):
    """Edits of one file. `creates`: it does not exist yet."""

    path: str
    edits: tuple[Edit, ...]
    creates: bool = False


def edits_of(layers: Layers, remedy: Remedy) -> tuple[FileEdits, ...]:
    """The edits that make a file readable; empty if they cannot be determined."""
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
        gap = "" if not text or text.endswith("\n") else "\n"
        end = Span(len(text), len(text))
        file_edits.append(FileEdits(remedy.importer, (Edit(end, f"{gap}\n@{remedy.name}\n"),)))
    return tuple(file_edits)


def title_of(remedy: Remedy) -> str:
    """What the edits do, for people."""
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
    whole = json.dumps({"context": settings}, indent=2) + "\n"
    if text is None:
        missing = any(file.path == path and file.status == "missing" for file in local.files)
        return FileEdits(path, (Edit(Span(0, 0), whole),), creates=True) if missing else None
    if not text.strip():
        return FileEdits(path, (Edit(Span(0, len(text)), whole),))
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
        last = len(context[name]) - 1
        if last >= 0:
            end = document.span(("context", name, last)).end
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
