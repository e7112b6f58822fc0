"""Reads the MCP servers that an assistant's settings name, and which of them it would start in a folder.

1. Servers are read, never started: their tools, and what those cost, are not known.
2. The command, address, variables and headers of a server are not shown.
3. If several servers have one name, the nearest counts: the folder's before those of directories above and
   the user's. The others are not listed; they are a problem if the program was seen to leave them out.
4. The room of each assistant has its rules, and says which program or documentation showed them.
"""

from collections.abc import Iterator, Mapping

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.definitions import Preference, choose
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantServer, AssistantSettings, Start
from nexus_context.assistants.reading.settings import read_document
from nexus_context.assistants.reading.toml import TomlDocument, read_toml
from nexus_context.errors import Problem, Span

STARTS: Mapping[Start, str] = {
    "starts": "starts with the assistant",
    "asks": "waits for approval",
    "off": "is not started",
}
"""What is said of a server, behind its name."""
SERVER_KEYS = ("mcpServers", "mcp_servers", "servers", "mcp")
"""The keys of the objects that name servers."""


def find_server_key(path: str, name: str, disk: Disk) -> Span:
    """Return the place where a settings file first names a server, or the beginning of the file if it is not
    found.
    """
    return next(iter(find_server_keys(path, name, disk)), Span(0, 0))


def find_server_keys(path: str, name: str, disk: Disk) -> list[Span]:
    """List all places where a settings file has the key of a server. In TOML each header of its tables is
    one.
    """
    document = read_toml(disk, path) if path.endswith(".toml") else read_document(disk, path)
    for pointer in () if document is None else _pointers(document.value, ()):
        if pointer[-1] == name and pointer[-2] in SERVER_KEYS:
            if isinstance(document, TomlDocument):
                return document.key_spans(pointer)
            key = None if document is None else document.key_span(pointer)
            return [] if key is None else [key]
    return []


def _pointers(value: object, parent_keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The keys of an object of servers, wherever it stands."""
    if isinstance(value, dict):
        for key, member in value.items():
            if parent_keys:
                yield *parent_keys, key
            if not parent_keys or parent_keys[-1] not in SERVER_KEYS:
                yield from _pointers(member, (*parent_keys, key))


def read_servers(
    name: str, settings: AssistantSettings, disk: Disk, *, problems: list[Problem] | None = None
) -> tuple[AssistantServer, ...]:
    """Read the servers in the settings of an assistant, one of each name. Empty if it does not start with
    these settings.

    Pass a disk that has read no instruction files, so that a large settings file leaves these their share.
    Servers that are replaced by another one with their name are added to `problems`.
    """
    program = PROGRAMS[name]
    candidates = () if settings.stop else program.servers.read(disk, settings)
    title, why = program.instructions.assistant.title, program.servers.why
    replaced: list[Problem] = []
    preference = Preference(title, "MCP server", why)
    servers = choose(candidates, preference, settings.where, disk=disk, ignored=[], problems=replaced)
    if problems is not None and why:
        problems.extend(replaced)
    return tuple(sorted(servers, key=lambda server: server.name))
