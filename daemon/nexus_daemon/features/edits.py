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

    `creates` says that it can create files, `is_versioned` that its edits name the versions of documents, and
    `asks` that it can ask the user about an edit first. `uris` and `versions` are those of its open
    documents, by path.
    """

    creates: bool = False
    is_versioned: bool = False
    asks: bool = False
    uris: Mapping[str, str] = {}
    versions: Mapping[str, int | None] = {}


def workspace_edit(
    edits: Mapping[str, Iterable[Edit]], new_paths: Collection[str], locate: Locator, editing: Editing
) -> dict[str, Any]:
    """Build the edit of several files (path → edits). `new_paths` are created.

    An open document is named by the URI that the client uses for it.
    """
    uris = {path: editing.uris.get(path) or locate.uri(path) for path in edits}
    changes = {uris[path]: _text_edits(path, file_edits, locate) for path, file_edits in edits.items()}
    if not new_paths and not editing.is_versioned:
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
    return {"documentChanges": [*creating, *editing_documents]}


def edit_of_folder(
    edits: Mapping[str, Iterable[Edit]], folder: str, locate: Locator, editing: Editing
) -> dict[str, Any]:
    """Build the edit of files around a folder. Edits of files outside of the folder need the user's consent.

    If the client cannot ask for consent, these edits are left out.
    """
    asks = editing.asks and editing.is_versioned
    included_edits = {
        path: file_edits for path, file_edits in edits.items() if asks or path.startswith(f"{folder}/")
    }
    edit = workspace_edit(included_edits, (), locate, editing)
    outside_uris = {
        editing.uris.get(path) or locate.uri(path)
        for path in included_edits
        if not path.startswith(f"{folder}/")
    }
    if not outside_uris:
        return edit
    for document in edit["documentChanges"]:
        if document["textDocument"]["uri"] in outside_uris:
            document["edits"] = [{**text_edit, "annotationId": OUTSIDE} for text_edit in document["edits"]]
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
