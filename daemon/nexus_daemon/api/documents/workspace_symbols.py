"""List the symbols of all folders: headings of instruction files, MCP servers, skills and agents."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.profile_types import LISTED
from nexus_context.assistants.tracking.in_use import NEXUS
from nexus_context.assistants.views.mcp_servers import find_server_key
from nexus_context.assistants.views.profile import read_profile
from nexus_context.errors import Span
from nexus_context.folder.prompt.headings import find_headings
from nexus_daemon.api.documents.importing import importing_texts
from nexus_daemon.api.explain import Scene, scene_of
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.convert import Locator, Texts

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

MOST_SYMBOLS = 500
HEADING, SERVER, SKILL = 15, 2, 12  # `SymbolKind` of LSP: String, Module, Function
TOP = Span(0, 0)


class _NamedPlace(NamedTuple):
    name: str
    kind: int
    path: str
    span: Span
    container: str


async def find_workspace_symbols(
    client: "Connection", params: lsp_types.WorkspaceSymbolParams
) -> list[dict[str, Any]]:
    """Return the symbols whose names contain the letters of the query in that order, at most MOST_SYMBOLS."""
    symbols: list[dict[str, Any]] = []
    for folder in list(client.folders):
        scene = await scene_of(client, folder, has_servers=False, is_fresh=False)
        symbols += await client.read(_symbols, scene, params.query.casefold())
    return symbols[:MOST_SYMBOLS]


def _symbols(scene: Scene, query: str) -> list[dict[str, Any]]:
    symbols = {symbol[:4]: symbol for symbol in _all(scene) if _has_letters(symbol.name.casefold(), query)}
    texts = {symbol.path: scene.disk.text(symbol.path) or "" for symbol in symbols.values()}
    locate = Locator(Texts(texts), scene.encoding)
    return [
        {
            "name": symbol.name,
            "kind": symbol.kind,
            "location": locate.location(symbol.path, symbol.span),
            "containerName": symbol.container,
        }
        for symbol in list(symbols.values())[:MOST_SYMBOLS]
    ]


def _has_letters(name: str, query: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in query)


def _all(scene: Scene) -> Iterator[_NamedPlace]:
    disk, surroundings = scene.disk, scene.surroundings
    for path, text in importing_texts(scene).items():
        for heading in find_headings(text):
            yield _NamedPlace(
                heading.title, HEADING, path, span=heading.line, container=os.path.basename(path)
            )
    for name in scene.in_use:
        if name == NEXUS:
            continue
        program = PROGRAMS[name]
        for server in program.servers.read(disk, program.settings(disk, surroundings)):
            span = find_server_key(server.path, server.name, disk)
            yield _NamedPlace(
                server.name, SERVER, server.path, span=span, container=f"MCP server of {program.title}"
            )
        for part in read_profile(name, surroundings, disk=disk, counted=False).parts:
            if part.scope in LISTED and part.path is not None:
                yield _NamedPlace(
                    _definition_name(part.path), SKILL, part.path, span=TOP, container=part.scope
                )


def _definition_name(path: str) -> str:
    """Return the name of a skill or agent, from its directory or its file."""
    directory, name = os.path.split(path)
    return os.path.basename(directory) if name == "SKILL.md" else os.path.splitext(name)[0]
