"""Reads the MCP servers that the settings of Codex name."""

from collections.abc import Iterator

from msgspec.structs import replace

from nexus_context.assistants.codex import rules
from nexus_context.assistants.codex.requirements import PATH as REQUIREMENTS
from nexus_context.assistants.codex.settings import is_trusted, project_files
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
    AssistantServer,
    AssistantSettings,
    Rule,
    ServerReader,
)
from nexus_context.assistants.reading.servers import merged_servers, server_names
from nexus_context.assistants.reading.toml import read_toml

_FORBIDDEN = f"The organization does not allow it: {REQUIREMENTS}."
_NOT_TRUSTED = "Codex reads the settings of a folder only if the user trusts it."


def _read_servers(disk: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    required = [file.values.get("mcp_servers", {}) for file in settings.files if file.path == REQUIREMENTS]
    files = [file for file in settings.files if file.path != REQUIREMENTS]
    for server in merged_servers(
        ((file.path, file.scope, file.values.get("mcp_servers")) for file in files), "Codex"
    ):
        is_forbidden = any(server.name in servers for servers in required)
        yield replace(server, start="off", reason=_FORBIDDEN) if is_forbidden else server
    base_files = settings.files[:2]
    if not is_trusted(disk, settings.where, base_files):
        for _, path in reversed(project_files(disk, settings.where, base_files)):
            for name in server_names(read_toml(disk, path).value, "mcp_servers"):
                yield AssistantServer(name, path, "project", start="off", reason=_NOT_TRUSTED)


SERVERS = ServerReader(
    (
        Rule(
            "`mcp_servers` of $CODEX_HOME/config.toml (~/.codex), unless `enabled` is false",
            rules.PROGRAM,
        ),
        Rule(
            "those of `.codex/config.toml` from the root down to the folder, if it is trusted",
            rules.PROGRAM,
        ),
        Rule(f"`mcp_servers` of {REQUIREMENTS} allows them by name and `command` or `url`", rules.PROGRAM),
    ),
    _read_servers,
)
