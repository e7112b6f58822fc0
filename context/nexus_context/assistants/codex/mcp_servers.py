"""The MCP servers that the settings of Codex name."""

import os
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.codex import rules
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import AssistantServer, Rule, Scope, ServerReader, Surroundings
from nexus_context.assistants.reading.servers import merged_servers, server_names
from nexus_context.assistants.reading.settings import read_toml
from nexus_context.assistants.reading.working_tree import find_working_tree, parents

_NOT_TRUSTED = "Codex reads the settings of a folder only if the user trusts it."


def _read_servers(disk: Disk, surroundings: Surroundings) -> Iterator[AssistantServer]:
    user_path = os.path.join(rules.codex_home(surroundings), "config.toml")
    user = read_toml(disk, user_path)
    config = {**read_toml(disk, rules.SYSTEM_CONFIG), **user}
    root = rules.project_root(disk, surroundings.folder, config)
    chain = parents(surroundings.folder)
    directories = chain[: chain.index(root) + 1]
    paths = [os.path.join(directory, ".codex", "config.toml") for directory in directories]
    is_trusted = _is_trusted(disk, user, surroundings.folder, root)
    layers: list[tuple[str, Scope]] = [(rules.SYSTEM_CONFIG, "managed"), (user_path, "user")]
    for path, directory in zip(reversed(paths), reversed(directories), strict=True):
        if path != user_path and is_trusted:
            layers.append((path, "project" if directory == surroundings.folder else "parent"))
    yield from merged_servers(
        ((path, scope, read_toml(disk, path).get("mcp_servers")) for path, scope in layers), "Codex"
    )
    if not is_trusted:
        for path in paths:
            if path != user_path:
                for name in server_names(read_toml(disk, path), "mcp_servers"):
                    yield AssistantServer(name, path, "project", start="off", reason=_NOT_TRUSTED)


def _is_trusted(disk: Disk, user: dict[str, Any], folder: str, root: str) -> bool:
    projects = user.get("projects")
    repository = find_working_tree(disk, folder)
    keys = (folder, root, *(() if repository is None else (repository.root, repository.main)))
    entries = [projects.get(key) for key in keys] if isinstance(projects, dict) else []
    return any(isinstance(each, dict) and each.get("trust_level") == "trusted" for each in entries)


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
    ),
    _read_servers,
)
