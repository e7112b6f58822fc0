"""The MCP servers that the settings of opencode name."""

import os
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.opencode import rules
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import (
    AssistantServer,
    AssistantSettings,
    Rule,
    Scope,
    ServerReader,
    Surroundings,
)
from nexus_context.assistants.reading.servers import merged_servers
from nexus_context.assistants.reading.working_tree import parents


def _read_servers(disk: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    surroundings = settings.where
    layers: list[tuple[str, Scope, Any]] = []
    for document in rules.settings_documents(disk, surroundings):
        servers = document.value.get("mcp") if isinstance(document.value, dict) else None
        layers.append((document.path, _scope_of(document.path, surroundings), servers))
    yield from merged_servers(layers, "opencode")


def _scope_of(path: str, surroundings: Surroundings) -> Scope:
    directory = os.path.dirname(path)
    if os.path.basename(directory) == ".opencode":
        directory = os.path.dirname(directory)
    if directory == surroundings.folder:
        return "project"
    is_above = directory in parents(surroundings.folder) and directory != surroundings.user_home
    return "parent" if is_above else "user"


SERVERS = ServerReader(
    (
        Rule(
            "`mcp` of all its settings, of which the nearest wins, unless `enabled` is false",
            rules.PROGRAM,
        ),
    ),
    _read_servers,
)
