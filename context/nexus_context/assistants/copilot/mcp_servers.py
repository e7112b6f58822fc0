"""The MCP servers that the settings of VS Code name."""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import AssistantServer, AssistantSettings, Rule, ServerReader
from nexus_context.assistants.reading.servers import server_names
from nexus_context.assistants.reading.settings import read_json

PAGE = "https://code.visualstudio.com/docs/agent-customization/mcp-servers"
_TRUST = "VS Code asks the user to trust it first."


def _read_servers(disk: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    surroundings = settings.where
    path = os.path.join(surroundings.folder, ".vscode", "mcp.json")
    for name in server_names(read_json(disk, path), "servers"):
        yield AssistantServer(name, path, "project", start="asks", reason=_TRUST)


SERVERS = ServerReader(
    (Rule("`servers` of `.vscode/mcp.json`, each after the user's trust", PAGE),), _read_servers
)
