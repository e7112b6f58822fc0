"""Build the edits that follow a rename: of an MCP server or a skill in all settings, of a file in the
imports that name it.
"""

import os.path
from collections.abc import Iterable, Iterator, Mapping

from nexus_context.assistants.views.server_uses import NameUse
from nexus_context.errors import Edit
from nexus_context.folder.prompt.imports import import_targets


def name_edits(uses: Iterable[NameUse], new_name: str) -> dict[str, list[Edit]]:
    """Return the edits that write another name at these places, as path → edits."""
    edits: dict[str, list[Edit]] = {}
    for use in uses:
        edits.setdefault(use.path, []).append(Edit(use.span, new_name))
    return edits


def import_edits(texts: Mapping[str, str], moves: Mapping[str, str], user_home: str) -> dict[str, list[Edit]]:
    """Return the edits of imports when files and directories move, as path of the importing file → edits.

    `texts` maps the paths of importing files to their texts, `moves` the old paths to the new ones. If an
    importing file moves itself, its relative imports are rewritten for its new directory.
    """
    edits: dict[str, list[Edit]] = {}
    for path, text in texts.items():
        importer = _moved(path, moves)
        for span, target in import_targets(path, text, user_home):
            new_target = _moved(target, moves)
            if new_target == target and importer == path:
                continue
            written = text[span.start + 1 : span.end]
            new_text = _written(written, new_target, importer, user_home)
            if new_text != written:
                edits.setdefault(path, []).append(Edit(span, f"@{new_text}"))
    return edits


def _moved(path: str, moves: Mapping[str, str]) -> str:
    """Where a path is after the moves."""
    for old_path, new_path in _longest_first(moves):
        if path == old_path or path.startswith(f"{old_path}/"):
            return new_path + path[len(old_path) :]
    return path


def _longest_first(moves: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return iter(sorted(moves.items(), key=lambda move: len(move[0]), reverse=True))


def _written(written_path: str, target: str, importer: str, user_home: str) -> str:
    """Write a path in the form of `written_path`: from the home, absolute, or relative to the importer."""
    if written_path.startswith("~/") and target.startswith(f"{user_home}/"):
        name = f"~/{os.path.relpath(target, user_home)}"
    elif written_path.startswith("/"):
        name = target
    else:
        name = os.path.relpath(target, os.path.dirname(importer))
        name = f"./{name}" if written_path.startswith("./") and not name.startswith("../") else name
    return name.replace(" ", "\\ ")
