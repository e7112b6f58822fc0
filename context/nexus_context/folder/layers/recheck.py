"""Checks a settings file again after a keystroke that leaves it broken: only its own problems change.

Most keystrokes are of this kind, and their diagnostics must appear at once.

1. The file is the only change, and it is the settings file of a layer that was read before.
2. It had an error and still has one. So its last good document stays in force, and with it all settings,
   servers and the prompt.
3. Every problem of the file concerns its text, its values, or what it may set, so none is lost. None is a bug
   of Nexus, which any change may resolve.

If one of these does not hold the result is None, and the whole folder is loaded.
"""

from collections.abc import Sequence

import msgspec

from nexus_context.config.scope import restrict
from nexus_context.disk.containment import met_bug
from nexus_context.disk.files import JSON_LIMIT, FileRead
from nexus_context.errors import Problem, Severity
from nexus_context.folder.layers.layer_types import CheckedDocument, Layer, Layers
from nexus_context.folder.layers.text_reader import UNSAVED, check_settings, unsaved
from nexus_context.text.json import parse


def recheck(layers: Layers, path: str, text: str, *, global_path: str) -> Layers | None:
    """Return the layers with an unsaved text of one settings file. None if more may have changed.

    `global_path` is the global `config.json`.
    """
    if path in layers.links:  # it is also read under another path
        return None
    merged, checked_before = layers.memory.merged, layers.memory.checked.get(path)
    last_read = layers.memory.reads.get(path)
    if merged is None or checked_before is None or last_read is None or not _broken(checked_before.problems):
        return None
    layer_index = next(
        (n for n, layer in enumerate(merged.present) if layer.document is checked_before.document), None
    )
    scoped = (problem for problem in merged.problems if problem.path == path)
    problems = [*last_read.problems, *checked_before.problems, *scoped]
    if (
        layer_index is None
        or met_bug(problems)
        or sorted(map(_key, problems)) != sorted(_key(p) for p in layers.problems if p.path == path)
    ):
        return None
    read = _read(last_read, text)
    if read.status != "loaded" or read.text is None:
        return None
    document = parse(path, read.text)
    checked = CheckedDocument(document, check_settings(document))
    if not _broken(checked.problems):
        return None
    config_layer = msgspec.structs.replace(merged.present[layer_index], document=document)
    present = (*merged.present[:layer_index], config_layer, *merged.present[layer_index + 1 :])
    scope = restrict(present, global_path=global_path)[1]
    if _elsewhere(scope, path) != _elsewhere(merged.problems, path):
        return None
    memory = msgspec.structs.replace(
        layers.memory,
        reads={**layers.memory.reads, path: read},
        documents={**layers.memory.documents, path: document},
        checked={**layers.memory.checked, path: checked},
        merged=msgspec.structs.replace(merged, present=present, problems=scope),
    )
    new_problems = (
        *read.problems,
        *checked.problems,
        *(scoped_problem for scoped_problem in scope if scoped_problem.path == path),
    )
    return msgspec.structs.replace(
        layers,
        layers=tuple(_with_text(layer, path, read.text) for layer in layers.layers),
        problems=(*_elsewhere(layers.problems, path), *new_problems),
        documents=memory.documents,
        texts={**layers.texts, path: read.text},
        memory=memory,
    )


def _read(last_read: FileRead, text: str) -> FileRead:
    """The result of reading the unsaved text; a shortcut for plain ASCII text."""
    if (
        last_read.stamp == UNSAVED
        and last_read.status == "loaded"
        and not last_read.problems
        and len(text) <= JSON_LIMIT
        and text.isascii()
        and "\r" not in text
        and "\0" not in text
    ):
        return msgspec.structs.replace(last_read, text=text)
    return unsaved(last_read.path, text, JSON_LIMIT, last_read.real)


def _broken(problems: Sequence[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)


def _key(problem: Problem) -> tuple[int, int, str, str]:
    return problem.span.start, problem.span.end, problem.code, problem.message


def _elsewhere(problems: Sequence[Problem], path: str) -> list[Problem]:
    return [problem for problem in problems if problem.path != path]


def _with_text(layer: Layer, path: str, text: str) -> Layer:
    if all(file.path != path for file in layer.files):
        return layer
    files = [msgspec.structs.replace(file, text=text) if file.path == path else file for file in layer.files]
    return msgspec.structs.replace(layer, files=tuple(files))
