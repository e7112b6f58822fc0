"""Rename MCP servers in all settings, and follow renamed files in the imports that name them.

A skill is renamed with its directory: the rules that name it follow.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nexus_context.assistants.views.server_uses import NameUse, find_server_uses, is_server_name
from nexus_context.assistants.views.setting_keys import is_server
from nexus_context.assistants.views.skill_uses import find_skill_uses
from nexus_context.errors import RequestError, Span
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


def prepare_rename(question: Question, params: lsp_types.PositionParams) -> dict[str, Any] | None:
    """Return the name that can be changed at a position, with its range. None if there is none."""
    place, document = question.settings_place(params.position), question.document
    named_server = None if place is None else server_at(question, place)
    if named_server is None:
        return None
    return {"range": document.locate.range(document.path, named_server[1]), "placeholder": named_server[0]}


def rename(question: Question, params: lsp_types.RenameParams) -> dict[str, Any]:
    """Return the edits that rename the MCP server at a position.

    RequestError if there is no server at the position, the new name is not valid, or a server has it already.
    """
    place = question.settings_place(params.position)
    named_server = None if place is None else server_at(question, place)
    if named_server is None:
        raise RequestError("Only the name of an MCP server can be renamed here.", code="bad-rename")
    if not is_server_name(params.new_name):
        allowed = "Use letters, digits, `-`, `.` and single `_`."
        raise RequestError(
            f"{params.new_name!r} is not a valid name for an MCP server. {allowed}", code="bad-rename"
        )
    if any(use.defines for use in server_uses(question, params.new_name)[0]):
        complaint = f"There is an MCP server {params.new_name!r} already. Choose another name."
        raise RequestError(complaint, code="bad-rename")
    uses, locate = server_uses(question, named_server[0])
    edits = name_edits(uses, params.new_name)
    return edit_of_folder(edits, question.document.folder, locate, question.editing)


async def rename_files(client: "Connection", params: lsp_types.RenameFilesParams) -> dict[str, Any] | None:
    """Return the edits that update imports and names of skills before files are moved. None if there are
    none.
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
    surroundings, disk, texts = scene.surroundings, scene.disk, importing_texts(scene)
    edits = import_edits(texts, moves, surroundings.user_home)
    for old_path, new_path in moves.items():
        if os.path.dirname(old_path) == os.path.dirname(new_path):
            uses = find_skill_uses(old_path, disk, surroundings)
            for path, skill_edits in name_edits(uses, os.path.basename(new_path)).items():
                edits.setdefault(path, []).extend(skill_edits)
                texts[path] = disk.text(path) or ""
    locate = Locator(Texts(texts), scene.encoding)
    return edit_of_folder(edits, surroundings.folder, locate, editing) if edits else None
