"""Reads the MCP servers of GitHub Copilot: those of VS Code's own files, then those of the portable files."""

import os
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.copilot.settings import portable_documents
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantServer,
    AssistantSettings,
    Rule,
    Scope,
    ServerReader,
    Start,
    Surroundings,
)
from nexus_context.assistants.reading.server_checks import refusal

PAGE = "https://code.visualstudio.com/docs/agent-customization/mcp-servers"
REFERENCE = "https://code.visualstudio.com/docs/agents/reference/mcp-configuration"
_TRUST = "VS Code asks the user to trust it first."


def _read_servers(disk: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    for path, scope, servers in (*_own_files(settings), *_portable_files(disk, settings.where)):
        for name, server in servers.items() if isinstance(servers, dict) else ():
            why = refusal(server, "VS Code")
            start: Start = "off" if why else "asks"
            yield AssistantServer(name, path, scope, start=start, reason=why or _TRUST)


def _own_files(settings: AssistantSettings) -> Iterator[tuple[str, Scope, Any]]:
    for file in reversed(settings.files):
        if os.path.basename(file.path) == "mcp.json":
            yield file.path, file.scope, file.values.get("servers")


def _portable_files(disk: Disk, surroundings: Surroundings) -> Iterator[tuple[str, Scope, Any]]:
    for document, scope in portable_documents(disk, surroundings):
        if isinstance(document.value, dict):
            yield document.path, scope, document.value.get("mcpServers")


SERVERS = ServerReader(
    (
        Rule("`servers` of `.vscode/mcp.json` and of the user's, each after the user's trust", PAGE),
        Rule(
            "`mcpServers` of `.mcp.json` in the folder, and of ~/.copilot/mcp-config.json (`$COPILOT_HOME`)",
            REFERENCE,
        ),
        Rule("a server needs a `command` or a `url`; `${env:NAME}` is replaced, `${NAME}` is not", PAGE),
    ),
    _read_servers,
)
