"""Reads the MCP servers that the settings of VS Code name."""

import os
from collections.abc import Iterator

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantServer,
    AssistantSettings,
    Rule,
    ServerReader,
    Start,
)
from nexus_context.assistants.reading.server_checks import refusal

PAGE = "https://code.visualstudio.com/docs/agent-customization/mcp-servers"
_TRUST = "VS Code asks the user to trust it first."


def _read_servers(_: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    for file in reversed(settings.files):
        servers = file.values.get("servers") if os.path.basename(file.path) == "mcp.json" else None
        for name, server in servers.items() if isinstance(servers, dict) else ():
            why = refusal(server, "VS Code")
            start: Start = "off" if why else "asks"
            yield AssistantServer(name, file.path, file.scope, start=start, reason=why or _TRUST)


SERVERS = ServerReader(
    (
        Rule("`servers` of `.vscode/mcp.json` and of the user's, each after the user's trust", PAGE),
        Rule("a server needs a `command` or a `url`; `${env:NAME}` is replaced, `${NAME}` is not", PAGE),
    ),
    _read_servers,
)
