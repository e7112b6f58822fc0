"""The MCP servers that an assistant's settings name, and which of them it would start in a folder.

1. Servers are read, never started: their tools, and what those cost, are not known.
2. Of a server no command, address, variable or header is told.
3. Of several servers of a name the nearest counts: the folder's before those of directories above and the
   user's; the others are not listed.
4. Each assistant's room has its rules, with the program that showed them, or the documentation.
"""

from collections.abc import Mapping

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import AssistantServer, AssistantSettings, Start

STARTS: Mapping[Start, str] = {
    "starts": "starts with the assistant",
    "asks": "waits for approval",
    "off": "is not started",
}
"""What is said of a server, behind its name."""


def read_servers(name: str, settings: AssistantSettings, disk: Disk) -> tuple[AssistantServer, ...]:
    """The servers of an assistant with these settings, by name; none if it does not start.

    The settings are read beside the instruction files, so that a large one leaves these their share.
    """
    servers: dict[str, AssistantServer] = {}
    for server in () if settings.stop else PROGRAMS[name].servers.read(disk, settings):
        servers.setdefault(server.name, server)
    return tuple(servers[each] for each in sorted(servers))
