"""Build edits of files in the form that a client takes.

The user confirms an edit of a file outside of the folder. A client that cannot ask leaves that file as it is.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from nexus_context.errors import Edit
from nexus_daemon.lsp.convert import Locator

OUTSIDE = "outside"


class Editing(NamedTuple):
    """How a client takes edits.

    `creates` and `renames` say that it can create and rename files, `is_versioned` that its edits name the
    versions of documents, and `asks` that it can ask the user about an edit first. `uris` and `versions` are
    those of its open documents, by path.
    """

    creates: bool = False
    renames: bool = False
    is_versioned: bool = False
    asks: bool = False
    uris: Mapping[str, str] = {}
    versions: Mapping[str, int | None] = {}

    def may_change(self, path: str, folder: str) -> bool:
        """Whether a file may change: it is in the folder, or the client can ask the user first."""
        return path.startswith(f"{folder}/") or (self.asks and self.is_versioned)


def workspace_edit(
    edits: Mapping[str, Iterable[Edit]],
    new_paths: Collection[str],
    locate: Locator,
    editing: Editing,
    *,
    moves: Mapping[str, str] = {},
) -> dict[str, Any]:
    """Build the edit of several files (path → edits). `new_paths` are created first. `moves` (old path → new
    one) are renamed last, so `edits` have the old paths.

    An open document is named by the URI that the client uses for it.
    """
    uris = {path: editing.uris.get(path) or locate.uri(path) for path in edits}
    changes = {uris[path]: _text_edits(path, file_edits, locate) for path, file_edits in edits.items()}
    if not new_paths and not moves and not editing.is_versioned:
        return {"changes": changes}
    creating = [
        {"kind": "create", "uri": uris[path], "options": {"ignoreIfExists": True}} for path in new_paths
    ]
    editing_documents = [
        {
            "textDocument": {"uri": uri, "version": editing.versions.get(path)},
            "edits": changes[uri],
        }
        for path, uri in uris.items()
    ]
    renaming = [
        {
            "kind": "rename",
            "oldUri": editing.uris.get(old_path) or locate.uri(old_path),
            "newUri": locate.uri(new_path),
        }
        for old_path, new_path in moves.items()
    ]
    return {"documentChanges": [*creating, *editing_documents, *renaming]}


def edit_of_folder(
    edits: Mapping[str, Iterable[Edit]],
    folder: str,
    locate: Locator,
    editing: Editing,
    *,
    moves: Mapping[str, str] = {},
) -> dict[str, Any]:
    """Build the edit of files around a folder, and of `moves` (old path → new one). Outside of the folder, an
    edit or a move needs the user's consent.

    If the client cannot ask for consent, these edits and moves are left out.
    """
    included_edits = {path: edit for path, edit in edits.items() if editing.may_change(path, folder)}
    included_moves = {path: target for path, target in moves.items() if editing.may_change(path, folder)}
    edit = workspace_edit(included_edits, (), locate, editing, moves=included_moves)
    outside_uris = {
        editing.uris.get(path) or locate.uri(path)
        for path in (*included_edits, *included_moves)
        if not path.startswith(f"{folder}/")
    }
    if not outside_uris:
        return edit
    for change in edit["documentChanges"]:
        if change.get("oldUri") in outside_uris:
            change["annotationId"] = OUTSIDE
        elif "edits" in change and change["textDocument"]["uri"] in outside_uris:
            change["edits"] = [{**text_edit, "annotationId": OUTSIDE} for text_edit in change["edits"]]
    annotation = {"label": "Outside of the folder", "needsConfirmation": True}
    return {**edit, "changeAnnotations": {OUTSIDE: annotation}}


def _text_edits(path: str, edits: Iterable[Edit], locate: Locator) -> list[dict[str, Any]]:
    """Edits with the line ends of their file."""
    text = locate.text(path)
    line_end = "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"
    return [
        {
            "range": locate.range(path, edit.span),
            "newText": edit.text.replace("\r\n", "\n").replace("\n", line_end),
        }
        for edit in edits
    ]
