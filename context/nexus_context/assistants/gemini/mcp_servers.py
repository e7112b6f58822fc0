"""The MCP servers that the settings of Gemini CLI name."""

from collections.abc import Iterator

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import (
    AssistantServer,
    AssistantSettings,
    Rule,
    ServerReader,
    Start,
)
from nexus_context.assistants.reading.servers import server_names
from nexus_context.assistants.reading.settings import texts_of

PAGE = "https://geminicli.com/docs/tools/mcp-server"


def _read_servers(_: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    chosen = [each for each in settings.each("mcp") if isinstance(each, dict)]
    excluded = {name for each in chosen for name in texts_of(each.get("excluded"))}
    lists = [texts_of(each["allowed"]) for each in chosen if isinstance(each.get("allowed"), list)]
    allowed = lists[-1] if lists else None
    for file in reversed(settings.files):
        for name in server_names(file.values):
            reason = None
            if name in excluded:
                reason = "`mcp.excluded` leaves it out."
            elif allowed is not None and name not in allowed:
                reason = "`mcp.allowed` does not name it."
            start: Start = "starts" if reason is None else "off"
            yield AssistantServer(name, file.path, file.scope, start=start, reason=reason)


SERVERS = ServerReader(
    (
        Rule("`mcpServers` of `~/.gemini/settings.json` and `.gemini/settings.json`", PAGE),
        Rule("`mcp.allowed` and `mcp.excluded` choose among them", PAGE),
    ),
    _read_servers,
)
