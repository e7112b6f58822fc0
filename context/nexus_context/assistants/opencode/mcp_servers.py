"""Reads the MCP servers that the settings of opencode name."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from nexus_context.assistants.opencode import rules
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantServer,
    AssistantSettings,
    Rule,
    Scope,
    ServerReader,
)
from nexus_context.assistants.reading.servers import merged_servers

_INCOMPLETE = "opencode does not start it: it needs `type`, and a valid `command` or `url`."


def _read_servers(_: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    servers = settings.merged().get("mcp", {})
    layers: list[tuple[str, Scope, Any]] = [
        (file.path, file.scope, file.values.get("mcp")) for file in settings.files
    ]
    for server in merged_servers(layers, "opencode"):
        is_incomplete = server.start == "starts" and "type" not in servers[server.name]
        yield replace(server, start="off", reason=_INCOMPLETE) if is_incomplete else server


SERVERS = ServerReader(
    (
        Rule(
            "`mcp` of all its settings, of which the nearest wins, unless `enabled` is false",
            rules.PROGRAM,
        ),
    ),
    _read_servers,
)
