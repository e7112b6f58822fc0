"""Finds the MCP servers of a folder's layers, and of other tools' files in the folder.

The folder's own `mcp.json` wins over other tools' files if both define a name. Those files are read in the
folder itself; `.mcp.json` is also read at the root of its repository if that is an ancestor.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
from collections.abc import Callable, Mapping, Sequence

from nexus_context.config.mcp import McpServer, read_servers, shadow, shadow_hints, syntax_problems
from nexus_context.config.merge import Effective
from nexus_context.disk.containment import contained, met_bug
from nexus_context.disk.files import JSON_LIMIT
from nexus_context.errors import Problem
from nexus_context.folder.layers.installed_packages import installed_lookup
from nexus_context.folder.layers.layer_types import DEFAULTS, LOCAL, DocumentServers, LayerFile
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.walk import LayerPlace
from nexus_context.text.json import JsonDocument

Which = Callable[[str], str | None]

PROJECT = "project"
VSCODE = "vscode"


def find_servers(
    reading: Reading,
    places: Sequence[LayerPlace],
    effective: Effective,
    *,
    environ: Mapping[str, str],
    which: Which,
) -> tuple[tuple[McpServer, ...], list[list[LayerFile]]]:
    """Return all servers in layer order, the shadowed ones marked, and the MCP files of each place.

    The packaged file, of the first place, is read only if the global one, of the second, does not count.
    """
    servers: list[McpServer] = []
    files: list[list[LayerFile]] = [[] for _ in places]
    global_counts = False
    for index in range(len(places) - 1, -1, -1):
        place = places[index]
        if place.name == DEFAULTS and global_counts:
            continue
        of_place: list[McpServer] = []
        for origin, path in _files_of(place, effective):
            if not reading.is_there(place, path, JSON_LIMIT) and reading.refusals.get(path) is not None:
                continue
            file, file_servers = _read_file(reading, place, origin, path, environ=environ, which=which)
            if file.status != "missing" or (origin == place.name and not place.optional):
                files[index].append(file)
            global_counts = not place.in_workspace and file.status in ("loaded", "stale")
            of_place.extend(file_servers)
        servers[:0] = of_place
    marked = shadow(servers)
    reading.problems.extend(
        reading.contain(places[-1].directory, lambda: shadow_hints(marked, reading.is_as_read), ())
    )
    return marked, files


def _files_of(place: LayerPlace, effective: Effective) -> list[tuple[str, str]]:
    """Origin and path of the MCP files of a place, the most important last."""
    files = []
    if place.name == LOCAL and effective.get("/mcp/read_vscode"):
        files.append((VSCODE, os.path.join(place.directory, ".vscode", "mcp.json")))
    if (place.name == LOCAL or place.repository) and effective.get("/mcp/read_mcp_json"):
        files.append((PROJECT, os.path.join(place.directory, ".mcp.json")))
    if place.config_directory is not None:
        files.append((place.name, os.path.join(place.config_directory, "mcp.json")))
    return files


def _read_file(
    reading: Reading, place: LayerPlace, origin: str, path: str, environ: Mapping[str, str], which: Which
) -> tuple[LayerFile, tuple[McpServer, ...]]:
    document = reading.document(path)
    if document is None:
        file = reading.settle(path, None, ())
        servers: tuple[McpServer, ...] = ()
    else:
        earlier = reading.served_before(path)
        served = _serve(document, earlier, place, origin, environ=environ, which=which)
        reading.served[path] = served
        servers = served.servers
        file = reading.settle(path, document, served.problems)
    if file.in_force is None:
        servers = ()
    elif file.in_force is not document:
        servers = _serve(file.in_force, (), place, origin, environ=environ, which=which).servers
    return LayerFile("mcp", path, file.status, file.text), servers


def _serve(
    document: JsonDocument,
    earlier: Sequence[DocumentServers],
    place: LayerPlace,
    origin: str,
    environ: Mapping[str, str],
    which: Which,
) -> DocumentServers:
    """The servers of a document; earlier ones if everything that they depend on is unchanged."""
    for candidate in earlier:
        if (
            candidate.document is document
            and not met_bug(candidate.problems)
            and candidate.environ == environ
            and all(which(command) == resolved for command, resolved in candidate.commands.items())
        ):
            return candidate
    commands: dict[str, str | None] = {}

    def noted(command: str) -> str | None:
        commands[command] = which(command)
        return commands[command]

    def read() -> tuple[tuple[McpServer, ...], tuple[Problem, ...]]:
        servers, resolved = read_servers(
            document,
            origin=origin,
            folder=place.directory,
            environ=environ,
            which=noted,
            installed=installed_lookup(environ),
            is_foreign=origin in (PROJECT, VSCODE),
        )
        syntax = syntax_problems(document, resolved, jsonc=origin == VSCODE)
        syntax_errors = [problem for problem in syntax if problem.code != "json.empty"]
        return servers, (*syntax_errors, *resolved)

    servers, problems = contained(document.path, read, lambda problem: ((), (problem,)))
    return DocumentServers(document, dict(environ), commands, servers, problems=problems)
