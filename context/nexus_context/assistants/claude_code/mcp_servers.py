"""The MCP servers that the settings of Claude Code name."""

import json
import os
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from nexus_context.assistants.claude_code import rules
from nexus_context.assistants.claude_code.settings import config_directory, managed_directory
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import (
    AssistantServer,
    AssistantSettings,
    AssistantSettingsFile,
    Rule,
    Scope,
    ServerReader,
    Start,
    Surroundings,
)
from nexus_context.assistants.reading.servers import server_names
from nexus_context.assistants.reading.settings import read_json, texts_of
from nexus_context.assistants.reading.working_tree import find_working_tree, parents

PAGE = "https://code.claude.com/docs/en/mcp"
_ASKS = "Claude Code asks the user first; `claude -p` starts it without asking."


def _read_servers(disk: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    surroundings = settings.where
    config = config_directory(surroundings)
    state_path = os.path.join(
        config if "CLAUDE_CONFIG_DIR" in surroundings.environ else surroundings.user_home, ".claude.json"
    )
    state = _read_strict(disk, state_path)
    managed = os.path.join(managed_directory(), "managed-mcp.json")
    only_managed = disk.is_file(managed)
    project = _project_state(disk, surroundings, state)
    settings = replace(settings, files=(*settings.files, AssistantSettingsFile(state_path, "local", project)))
    disabled = set(texts_of(project.get("disabledMcpServers")))
    for name in server_names(read_json(disk, managed)):
        yield AssistantServer(name, managed, "managed")
    files: list[tuple[Scope, str, list[str]]] = [("local", state_path, server_names(project))]
    for directory in parents(surroundings.folder):
        path = os.path.join(directory, ".mcp.json")
        scope: Scope = "project" if directory == surroundings.folder else "parent"
        files.append((scope, path, server_names(read_json(disk, path))))
    files.append(("user", state_path, server_names(state)))
    for scope, path, names in files:
        for name in names:
            start, reason = _start_of(name, settings if path != state_path else None)
            if name in disabled:
                start, reason = "off", "The user switched it off in this folder."
            if only_managed:
                start, reason = "off", "The organization allows only the servers of managed-mcp.json."
            yield AssistantServer(name, path, scope, start=start, reason=reason)


def _project_state(disk: Disk, surroundings: Surroundings, state: dict[str, Any]) -> dict[str, Any]:
    """What the state of Claude Code has of the folder's repository, or of the folder."""
    projects = state.get("projects")
    repository = find_working_tree(disk, surroundings.folder)
    key = surroundings.folder if repository is None else repository.root
    project = projects.get(key) if isinstance(projects, dict) else None
    return project if isinstance(project, dict) else {}


def _start_of(name: str, settings: AssistantSettings | None) -> tuple[Start, str | None]:
    """Whether a server starts; `settings` are None for one that no file of the project names."""
    if settings is None:
        return "starts", None
    if any(name in texts_of(each) for each in settings.each("disabledMcpjsonServers")):
        return "off", "`disabledMcpjsonServers` leaves it out."
    if True in settings.each("enableAllProjectMcpServers") or any(
        name in texts_of(each) for each in settings.each("enabledMcpjsonServers")
    ):
        return "starts", None
    return "asks", _ASKS


def _read_strict(disk: Disk, path: str) -> dict[str, Any]:
    """The object of a JSON file that a program writes, which may have megabytes; empty if there is none."""
    try:
        value = json.loads(disk.text(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


SERVERS = ServerReader(
    (
        Rule("`mcpServers` of ~/.claude.json, or of $CLAUDE_CONFIG_DIR/.claude.json", rules.PROGRAM),
        Rule("those there under `projects`, by the root of the repository, else the folder", rules.PROGRAM),
        Rule("`.mcp.json` of the folder and of every directory above it", rules.PROGRAM),
        Rule("those of `.mcp.json` after the user's approval; `claude -p` does not ask", PAGE),
        Rule("`enabledMcpjsonServers` and `enableAllProjectMcpServers` of settings approve", PAGE),
        Rule("`disabledMcpjsonServers` and a project's `disabledMcpServers` leave out", rules.PROGRAM),
        Rule("with the `managed-mcp.json` of an organization only its servers", PAGE),
    ),
    _read_servers,
)
