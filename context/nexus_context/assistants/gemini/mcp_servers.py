"""The MCP servers that the settings of Gemini CLI name."""

import os
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.gemini.rules import home_directory
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import (
    AssistantServer,
    Rule,
    Scope,
    ServerReader,
    Start,
    Surroundings,
)
from nexus_context.assistants.reading.servers import server_names, settings_places
from nexus_context.assistants.reading.settings import read_json, texts_of

PAGE = "https://geminicli.com/docs/tools/mcp-server"


def _read_servers(disk: Disk, surroundings: Surroundings) -> Iterator[AssistantServer]:
    settings: list[tuple[str, Scope, dict[str, Any]]] = []
    for directory, scope in settings_places(surroundings.folder, home_directory(surroundings)):
        path = os.path.join(directory, ".gemini", "settings.json")
        settings.append((path, scope, read_json(disk, path)))
    chosen = [each["mcp"] for _, _, each in settings if isinstance(each.get("mcp"), dict)]
    excluded = {name for each in chosen for name in texts_of(each.get("excluded"))}
    allowed = next(
        (texts_of(each["allowed"]) for each in chosen if isinstance(each.get("allowed"), list)), None
    )
    for path, scope, each in settings:
        for name in server_names(each):
            reason = None
            if name in excluded:
                reason = "`mcp.excluded` leaves it out."
            elif allowed is not None and name not in allowed:
                reason = "`mcp.allowed` does not name it."
            start: Start = "starts" if reason is None else "off"
            yield AssistantServer(name, path, scope, start=start, reason=reason)


SERVERS = ServerReader(
    (
        Rule("`mcpServers` of `~/.gemini/settings.json` and `.gemini/settings.json`", PAGE),
        Rule("`mcp.allowed` and `mcp.excluded` choose among them", PAGE),
    ),
    _read_servers,
)
