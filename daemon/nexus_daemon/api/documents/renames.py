"""Rename MCP servers, skills and agents wherever they are named, and follow renamed files in the imports that
name them.

A skill is renamed with its directory, an agent with its file if that has its name: the rules that name it
follow, whichever of the two the user renames.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.assistants.views.definition_uses import (
    KINDS,
    NamedDefinition,
    definition_paths,
    find_definition,
)
from nexus_context.assistants.views.server_uses import NameUse, find_server_uses, is_server_name
from nexus_context.assistants.views.setting_keys import is_server
from nexus_context.errors import Edit, RequestError, Span
from nexus_context.folder.skills import is_skill_name
from nexus_daemon.api.documents.importing import importing_texts
from nexus_daemon.api.documents.question import Question
from nexus_daemon.api.explain import Scene, scene_of
from nexus_daemon.features.edits import Editing, edit_of_folder
from nexus_daemon.features.renames import import_edits, name_edits
from nexus_daemon.features.settings_place import SettingsPlace
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.convert import Locator, Texts, uri_to_path

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

_WORD = re.compile(r"[\w.-]+")
_LONGEST = 100  # characters of a name
_NOTHING = (
    "There is no name here that can be renamed. Put the cursor on the name of an MCP server, or of a skill "
    "or an agent in `.claude`. No other file may define that name, and a skill's directory must have it, too."
)


class _Name(NamedTuple):
    """A name in a document that can be changed. `definition` is the skill or agent, None for a server."""

    text: str
    span: Span
    definition: NamedDefinition | None


def server_at(question: Question, place: SettingsPlace) -> tuple[str, Span] | None:
    """Return the MCP server that the key, rule or list item at `place` names, as (name, span).

    None if it names none.
    """
    document, scene = question.document, question.scene
    written = document.text[place.span.start : place.span.end]
    if is_server(place.path) and written.strip("\"'") == place.path[-1]:
        quote = written[0] in "\"'"
        return str(place.path[-1]), Span(place.span.start + quote, place.span.end - quote)
    names = {server.name for reader in question.readers() for server in reader.servers}
    for use in (use for name in names for use in find_server_uses(name, scene.disk, scene.surroundings)):
        is_here = place.span.start <= use.span.start and use.span.end <= place.span.end
        if use.path == document.path and is_here:
            return document.text[use.span.start : use.span.end], use.span
    return None


def server_uses(question: Question, name: str) -> tuple[list[NameUse], Locator]:
    """Return the places that name a server, and the locator that converts their spans to positions."""
    scene = question.scene
    uses = find_server_uses(name, scene.disk, scene.surroundings)
    texts = {use.path: scene.disk.text(use.path) or "" for use in uses}
    return uses, Locator(Texts(texts), scene.encoding)


def prepare_rename(question: Question, params: lsp_types.PositionParams) -> dict[str, Any]:
    """Return the name that can be changed at a position, with its range. RequestError if there is none."""
    name, document = _name_at(question, params), question.document
    return {"range": document.locate.range(document.path, name.span), "placeholder": name.text}


def rename(question: Question, params: lsp_types.RenameParams) -> dict[str, Any]:
    """Return the edits that rename the MCP server, skill or agent at a position.

    RequestError if there is none, if the new name is not valid or taken, or if the directory or file must be
    renamed, too, and the client cannot do that.
    """
    name, new_name, scene = _name_at(question, params), params.new_name, question.scene
    definition, moves = name.definition, dict[str, str]()
    if definition is None:
        thing, allowed = "an MCP server", "letters, digits, `-`, `.` and single `_`"
        is_valid, uses = is_server_name(new_name), server_uses(question, name.text)[0]
        is_taken = any(use.defines for use in server_uses(question, new_name)[0])
    else:
        thing = "a skill" if definition.kind == "skill" else "an agent"
        allowed = "at most 64 lowercase letters and digits, with single `-` between them"
        is_valid, uses, new_path = is_skill_name(new_name), definition.uses, definition.renamed_path(new_name)
        moves = {} if new_path == definition.path else {definition.path: new_path}
        paths = definition_paths(definition.kind, new_name, scene.disk, scene.surroundings)
        is_taken = bool(paths) or any(map(scene.disk.exists, moves.values()))
    if not is_valid:
        raise _refusal(f"{new_name!r} is not a valid name for {thing}. Use {allowed}.")
    if is_taken:
        raise _refusal(f"There is {thing} {new_name!r} already. Choose another name.")
    for path in moves:
        _check_move(question, path)
    edits, locate = _edits_of(scene, moves, [(uses, new_name)])
    return edit_of_folder(edits, question.document.folder, locate, question.editing, moves=moves)


def _name_at(question: Question, params: lsp_types.PositionParams | lsp_types.RenameParams) -> _Name:
    """The name at a position. RequestError if there is none that can be changed."""
    document, scene = question.document, question.scene
    place, offset = question.settings_place(params.position), question.offset(params.position)
    server = None if place is None else server_at(question, place)
    if server is not None:
        return _Name(*server, definition=None)
    words = _WORD.finditer(document.text, max(offset - _LONGEST, 0), offset + _LONGEST)
    word = next((match[0] for match in words if match.start() <= offset <= match.end()), "")
    definitions = (find_definition(kind, word, scene.disk, scene.surroundings) for kind in KINDS if word)
    for definition in filter(None, definitions):
        for use in definition.uses:
            if use.path == document.path and use.span.start <= offset <= use.span.end:
                return _Name(word, use.span, definition)
    raise _refusal(_NOTHING)


def _check_move(question: Question, path: str) -> None:
    """Refuse to rename a file or directory that the client cannot or must not rename."""
    shown = question.shorten(path)
    if not question.editing.renames:
        raise _refusal(f"This editor cannot rename {shown} together with the name. Rename both by hand.")
    if not question.editing.may_change(path, question.document.folder):
        why = "is outside of this folder, and this editor cannot ask you first"
        raise _refusal(f"{shown} {why}. Rename it by hand.")


def _refusal(message: str) -> RequestError:
    return RequestError(message, code="bad-rename")


async def rename_files(client: "Connection", params: lsp_types.RenameFilesParams) -> dict[str, Any] | None:
    """Return the edits that update imports and names of skills and agents before files are moved. None if
    there are none.
    """
    paths = [
        (uri_to_path(file_rename.old_uri), uri_to_path(file_rename.new_uri)) for file_rename in params.files
    ]
    moves = {
        old_path: new_path for old_path, new_path in paths if old_path is not None and new_path is not None
    }
    folder = next(
        (
            containing_folder
            for old_path in moves
            if (containing_folder := client.folders.containing(old_path))
        ),
        None,
    )
    if folder is None:
        return None
    scene = await scene_of(client, folder, has_servers=False)
    return await client.read(_edits_of_moves, scene, moves, client.documents.editing())


def _edits_of_moves(scene: Scene, moves: Mapping[str, str], editing: Editing) -> dict[str, Any] | None:
    names = list[tuple[list[NameUse], str]]()
    for old_path, new_path in moves.items():
        stem, new_stem = (os.path.basename(path).removesuffix(".md") for path in (old_path, new_path))
        for kind in KINDS:
            definition = find_definition(kind, stem, scene.disk, scene.surroundings)
            if definition and definition.path == old_path and definition.renamed_path(new_stem) == new_path:
                names.append((definition.uses, new_stem))
    edits, locate = _edits_of(scene, moves, names)
    return edit_of_folder(edits, scene.surroundings.folder, locate, editing) if edits else None


def _edits_of(
    scene: Scene, moves: Mapping[str, str], names: Iterable[tuple[list[NameUse], str]]
) -> tuple[dict[str, list[Edit]], Locator]:
    """The edits of imports when files move, and of the places that get a new name (places, name)."""
    texts = importing_texts(scene) if moves else {}
    edits = import_edits(texts, moves, scene.surroundings.user_home)
    for uses, new_name in names:
        for path, file_edits in name_edits(uses, new_name).items():
            edits.setdefault(path, []).extend(file_edits)
            texts[path] = scene.disk.text(path) or ""
    return edits, Locator(Texts(texts), scene.encoding)
