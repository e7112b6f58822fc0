"""Reads the MCP servers that the settings of Claude Code name."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from nexus_context.assistants.claude_code import rules
from nexus_context.assistants.claude_code.mcp_file import NAME, McpFile, read_mcp_file
from nexus_context.assistants.claude_code.settings import managed_directory, read_state
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import (
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
from nexus_context.assistants.reading.settings import texts_of
from nexus_context.assistants.reading.working_tree import find_working_tree, parents

PAGE = "https://code.claude.com/docs/en/mcp"
_NAME = "serverName"
_ASKS = "Claude Code asks the user first; `claude -p` starts it without asking."


def _read_servers(disk: Disk, settings: AssistantSettings) -> Iterator[AssistantServer]:
    surroundings = settings.where
    state_path, state = read_state(disk, surroundings)
    managed = os.path.join(managed_directory(), "managed-mcp.json")
    only_managed = disk.is_file(managed)
    project = _project_state(disk, surroundings, state)
    settings = replace(settings, files=(*settings.files, AssistantSettingsFile(state_path, "local", project)))
    disabled = set(texts_of(project.get("disabledMcpServers")))
    theirs = read_mcp_file(disk, managed)
    for name, entry in theirs.servers.items():
        reason = theirs.skipped.get(name) or _refused_by_lists(name, entry, settings, is_managed=True)
        yield AssistantServer(name, managed, "managed", start="off" if reason else "starts", reason=reason)
    files: list[tuple[Scope, str, McpFile]] = [("local", state_path, _of_state(project))]
    for directory in parents(surroundings.folder):
        path = os.path.join(directory, NAME)
        scope: Scope = "project" if directory == surroundings.folder else "parent"
        files.append((scope, path, read_mcp_file(disk, path)))
    files.append(("user", state_path, _of_state(state)))
    for scope, path, file in files:
        for name, entry in file.servers.items():
            start, reason = _start_of(name, settings if path != state_path else None)
            if name in disabled:
                start, reason = "off", "The user switched it off in this folder."
            if refusal := file.skipped.get(name) or _refused_by_lists(name, entry, settings):
                start, reason = "off", refusal
            if only_managed:
                start, reason = "off", "The organization allows only the servers of managed-mcp.json."
            yield AssistantServer(name, path, scope, start=start, reason=reason)


def _of_state(state: dict[str, Any]) -> McpFile:
    return McpFile({name: state["mcpServers"][name] for name in server_names(state)})


def _refused_by_lists(
    name: str, entry: Mapping[str, Any], settings: AssistantSettings, *, is_managed: bool = False
) -> str | None:
    """Why the lists of allowed and denied servers keep a server from starting.

    Servers of the organization's file need not be allowed. Once a list of allowed servers names commands, a
    process is allowed by its command alone, and so is an address once it names addresses.
    """
    denied_entries = _entries_of(settings, "deniedMcpServers")
    if any(_stands_for(list_entry, name, entry) for list_entry in denied_entries):
        return "`deniedMcpServers` leaves it out."
    allowed_entries = _entries_of(settings, "allowedMcpServers")
    if is_managed or not any(isinstance(value, list) for value in settings.each("allowedMcpServers")):
        return None
    kind = "serverUrl" if entry.get("url") and not entry.get("command") else "serverCommand"
    by_address_or_command = [list_entry for list_entry in allowed_entries if kind in list_entry]
    decisive = by_address_or_command or [list_entry for list_entry in allowed_entries if _NAME in list_entry]
    if not any(_stands_for(list_entry, name, entry) for list_entry in decisive):
        return "`allowedMcpServers` does not name it."
    return None


def _entries_of(settings: AssistantSettings, key: str) -> list[Mapping[str, Any]]:
    lists = (value for value in settings.each(key) if isinstance(value, list))
    return [list_entry for value in lists for list_entry in value if isinstance(list_entry, Mapping)]


def _stands_for(list_entry: Mapping[str, Any], name: str, entry: Mapping[str, Any]) -> bool:
    """Check whether a list entry names a server by its command, its address, or its name."""
    if "serverCommand" in list_entry:
        return bool(list_entry["serverCommand"] == [entry.get("command"), *texts_of(entry.get("args"))])
    if "serverUrl" in list_entry:
        return _fits(str(list_entry["serverUrl"]), str(entry.get("url")))
    return bool(list_entry.get(_NAME) == name)


def _fits(pattern: str, text: str) -> bool:
    """Check in linear time whether a text matches a pattern in which `*` stands for any text."""
    prefix, *remaining_pieces = pattern.split("*")
    if not remaining_pieces:
        return pattern == text
    *pieces, suffix = remaining_pieces
    at, end = len(prefix), len(text) - len(suffix)
    if at > end or not (text.startswith(prefix) and text.endswith(suffix)):
        return False
    for piece in pieces:
        piece_at = text.find(piece, at, end)
        if piece_at < 0:
            return False
        at = piece_at + len(piece)
    return True


def _project_state(disk: Disk, surroundings: Surroundings, state: dict[str, Any]) -> dict[str, Any]:
    """What the state of Claude Code has of the folder's repository, or of the folder."""
    projects = state.get("projects")
    repository = find_working_tree(disk, surroundings.folder)
    key = surroundings.folder if repository is None else repository.root
    project = projects.get(key) if isinstance(projects, dict) else None
    return project if isinstance(project, dict) else {}


def _start_of(name: str, settings: AssistantSettings | None) -> tuple[Start, str | None]:
    """Whether a server starts, and why not. `settings` is None unless a file of the project names it."""
    if settings is None:
        return "starts", None
    if any(name in _names_of(value) for value in settings.each("disabledMcpjsonServers")):
        return "off", "`disabledMcpjsonServers` leaves it out."
    if settings.value("enableAllProjectMcpServers") is True or any(
        name in _names_of(value) for value in settings.each("enabledMcpjsonServers")
    ):
        return "starts", None
    return "asks", _ASKS


def _names_of(value: Any) -> list[str]:
    """The names of a list; a text stands for a list of one."""
    return [value] if isinstance(value, str) else texts_of(value)


SERVERS = ServerReader(
    (
        Rule("`mcpServers` of ~/.claude.json, or of $CLAUDE_CONFIG_DIR/.claude.json", rules.PROGRAM),
        Rule("those there under `projects`, by the root of the repository, else the folder", rules.PROGRAM),
        Rule("`.mcp.json` of the folder and of every directory above it", rules.PROGRAM),
        Rule("those of `.mcp.json` after the user's approval; `claude -p` does not ask", PAGE),
        Rule("`enabledMcpjsonServers` and `enableAllProjectMcpServers` of settings approve", PAGE),
        Rule("`disabledMcpjsonServers` and a project's `disabledMcpServers` leave out", rules.PROGRAM),
        Rule("`deniedMcpServers` and `allowedMcpServers` by name, command or address", rules.PROGRAM),
        Rule("entries of a wrong type, or with `url` and no `type`, are skipped", rules.PROGRAM),
        Rule("with the `managed-mcp.json` of an organization only its servers", PAGE),
    ),
    _read_servers,
    "Of one name the server that the user added here counts, then the nearest `.mcp.json`, then the user's.",
)
