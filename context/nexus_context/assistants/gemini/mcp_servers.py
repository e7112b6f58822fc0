"""Reads the MCP servers that the settings of Gemini CLI name."""

from collections.abc import Iterator, Mapping
from typing import Any

from nexus_context.assistants.gemini.settings import is_complete, read_extensions
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantServer,
    AssistantSettings,
    Rule,
    Scope,
    ServerReader,
    Start,
)
from nexus_context.assistants.reading.servers import server_names
from nexus_context.assistants.reading.settings import texts_of

PAGE = "https://geminicli.com/docs/tools/mcp-server"


def _read_servers(disk: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    excluded = {_bare(name) for value in settings.each("mcp", "excluded") for name in texts_of(value)}
    lists = [set(map(_bare, texts_of(value))) for value in settings.each("mcp", "allowed")]
    allowed_names = set[str].intersection(*lists) if lists else set[str]()  # an empty list allows all
    places: list[tuple[str, Scope, Mapping[str, Any]]] = []
    places.extend((file.path, file.scope, file.values) for file in reversed(settings.files))
    places.extend(
        (extension.path, "user", extension.values) for extension in read_extensions(disk, settings.where)
    )
    for path, scope, values in places:
        for name in server_names(values):
            reason = None
            if _bare(name) in excluded:
                reason = "`mcp.excluded` leaves it out."
            elif allowed_names and _bare(name) not in allowed_names:
                reason = "`mcp.allowed` does not name it."
            elif not is_complete(values["mcpServers"][name]):
                reason = "It has no `command`, `url` or `httpUrl`."
            start: Start = "starts" if reason is None else "off"
            yield AssistantServer(name, path, scope, start=start, reason=reason)


def _bare(name: str) -> str:
    return name.lower().strip()


SERVERS = ServerReader(
    (
        Rule("`mcpServers` of `~/.gemini/settings.json` and `.gemini/settings.json`", PAGE),
        Rule("`mcpServers` of extensions that are on, unless settings have one of the name", PAGE),
        Rule("`mcp.allowed` and `mcp.excluded` choose among them", PAGE),
    ),
    _read_servers,
)
