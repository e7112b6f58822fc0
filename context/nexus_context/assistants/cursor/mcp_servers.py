"""Reads the MCP servers that the settings of Cursor name."""

from collections.abc import Iterator

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantServer,
    AssistantSettings,
    Rule,
    ServerReader,
)
from nexus_context.assistants.reading.server_checks import refusal

PAGE = "https://cursor.com/docs/context/mcp"


def _read_servers(_: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    for file in reversed(settings.files):
        servers = file.values.get("mcpServers")
        for name, server in servers.items() if isinstance(servers, dict) else ():
            why = refusal(server, "Cursor")
            yield AssistantServer(name, file.path, file.scope, start="off" if why else "starts", reason=why)


SERVERS = ServerReader(
    (
        Rule("`mcpServers` of `~/.cursor/mcp.json` and `.cursor/mcp.json`", PAGE),
        Rule("a server needs a `command` or a `url`; `${env:NAME}` is replaced, `${NAME}` is not", PAGE),
    ),
    _read_servers,
)
