"""The MCP servers that the settings of Cursor name."""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import AssistantServer, AssistantSettings, Rule, ServerReader
from nexus_context.assistants.reading.servers import server_names, settings_places
from nexus_context.assistants.reading.settings import read_json

PAGE = "https://cursor.com/docs/context/mcp"


def _read_servers(disk: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    surroundings = settings.where
    for directory, scope in settings_places(surroundings.folder, surroundings.user_home):
        path = os.path.join(directory, ".cursor", "mcp.json")
        for name in server_names(read_json(disk, path)):
            yield AssistantServer(name, path, scope)


SERVERS = ServerReader(
    (Rule("`mcpServers` of `~/.cursor/mcp.json` and `.cursor/mcp.json`", PAGE),), _read_servers
)
