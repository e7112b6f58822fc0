"""Find the instruction files of a folder, and which of them import which."""

from collections.abc import Iterator

from nexus_context.assistants.views.instruction_files import find_instruction_files
from nexus_context.errors import Span
from nexus_context.folder.prompt.imports import import_targets, imported_paths
from nexus_daemon.api.explain import Scene
from nexus_daemon.features.open_document import KINDS

IMPORTING = tuple(suffix for suffix, kind in KINDS.items() if kind == "instructions")
MOST_IMPORTING = 500
"""The most files that are searched for imports."""


def importing_texts(scene: Scene) -> dict[str, str]:
    """Return the texts, by path, of the files that any program may read, and of the files that these
    import.
    """
    surroundings, disk = scene.surroundings, scene.disk
    files = find_instruction_files(disk, surroundings)
    texts, paths = dict[str, str](), [*disk.overlays, *reversed(files.nested), *reversed(files.around)]
    while paths:  # those that are imported import others
        path = paths.pop()
        text = None if path in texts or not path.endswith(IMPORTING) else disk.text(path)
        if text is not None and len(texts) < MOST_IMPORTING:
            texts[path] = text
            paths += imported_paths(path, text, surroundings.user_home)
    return texts


def find_imports_of(target: str, scene: Scene, texts: dict[str, str]) -> Iterator[tuple[str, Span]]:
    """Find the imports of the file `target` in `texts` (path → text).

    Yields the path of each importing file and the span of the import.
    """
    real = scene.disk.real(target)
    for path, text in texts.items():
        for span, imported in import_targets(path, text, scene.surroundings.user_home):
            if imported == target or scene.disk.real(imported) == real:
                yield path, span
