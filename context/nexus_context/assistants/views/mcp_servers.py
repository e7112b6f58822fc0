"""The MCP servers that an assistant's settings name, and which of them it would start in a folder.

1. Servers are read, never started: their tools, and what those cost, are not known.
2. Of a server no command, address, variable or header is told.
3. Of several servers of a name the nearest counts: the folder's before those of directories above and the
   user's; the others are not listed.
4. Each assistant has its rules in RULES, with the program that showed them, or the documentation.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from nexus_context.assistants.claude_code import rules as claude_code
from nexus_context.assistants.codex import rules as codex
from nexus_context.assistants.gemini import rules as gemini
from nexus_context.assistants.opencode import rules as opencode
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import AssistantServer, Rule, Scope, Start, Surroundings
from nexus_context.assistants.reading.settings import read_json, read_toml, texts_of
from nexus_context.assistants.reading.working_tree import find_working_tree, parents

CLAUDE_PAGE = "https://code.claude.com/docs/en/mcp"
GEMINI_PAGE = "https://geminicli.com/docs/tools/mcp-server"
COPILOT_PAGE = "https://code.visualstudio.com/docs/agent-customization/mcp-servers"
CURSOR_PAGE = "https://cursor.com/docs/context/mcp"
_CLAUDE_CODE = "Claude Code 2.1.330"
RULES: Mapping[str, tuple[Rule, ...]] = {
    "claude-code": (
        Rule("`mcpServers` of ~/.claude.json, or of $CLAUDE_CONFIG_DIR/.claude.json", _CLAUDE_CODE),
        Rule("those there under `projects`, by the root of the repository, else the folder", _CLAUDE_CODE),
        Rule("`.mcp.json` of the folder and of every directory above it", _CLAUDE_CODE),
        Rule("those of `.mcp.json` after the user's approval; `claude -p` does not ask", CLAUDE_PAGE),
        Rule("`enabledMcpjsonServers` and `enableAllProjectMcpServers` of settings approve", CLAUDE_PAGE),
        Rule("`disabledMcpjsonServers` and a project's `disabledMcpServers` leave out", _CLAUDE_CODE),
        Rule("with the `managed-mcp.json` of an organization only its servers", CLAUDE_PAGE),
    ),
    "codex": (
        Rule(
            "`mcp_servers` of $CODEX_HOME/config.toml (~/.codex), unless `enabled` is false",
            "Codex 0.169.0",
        ),
        Rule(
            "those of `.codex/config.toml` from the root down to the folder, if it is trusted",
            "Codex 0.169.0",
        ),
    ),
    "opencode": (
        Rule(
            "`mcp` of all its settings, of which the nearest wins, unless `enabled` is false",
            "opencode 1.18.33",
        ),
    ),
    "gemini": (
        Rule("`mcpServers` of `~/.gemini/settings.json` and `.gemini/settings.json`", GEMINI_PAGE),
        Rule("`mcp.allowed` and `mcp.excluded` choose among them", GEMINI_PAGE),
    ),
    "copilot": (Rule("`servers` of `.vscode/mcp.json`, each after the user's trust", COPILOT_PAGE),),
    "cursor": (Rule("`mcpServers` of `~/.cursor/mcp.json` and `.cursor/mcp.json`", CURSOR_PAGE),),
}
STARTS: Mapping[Start, str] = {
    "starts": "starts with the assistant",
    "asks": "waits for approval",
    "off": "is not started",
}
"""What is said of a server, behind its name."""
_NOT_TRUSTED = "Codex reads the settings of a folder only if the user trusts it."
_TRUST = "VS Code asks the user to trust it first."
_ASKS = "Claude Code asks the user first; `claude -p` starts it without asking."


def read_servers(
    name: str, surroundings: Surroundings, overlays: Mapping[str, str] | None = None
) -> tuple[AssistantServer, ...]:
    """The servers of an assistant in a folder, in the order of their names.

    `overlays` are unsaved texts by path. The settings are read beside the instruction files, so that a large
    one leaves these their share.
    """
    disk = Disk(overlays or {})
    servers: dict[str, AssistantServer] = {}
    for server in _READERS[name](disk, surroundings):
        servers.setdefault(server.name, server)
    return tuple(servers[each] for each in sorted(servers))


# ---------------------------------------------------------------- Claude Code


def _claude_code(disk: Disk, surroundings: Surroundings) -> Iterator[AssistantServer]:
    config = claude_code.config_directory(surroundings)
    state_path = os.path.join(
        config if "CLAUDE_CONFIG_DIR" in surroundings.environ else surroundings.user_home, ".claude.json"
    )
    state = _read_strict(disk, state_path)
    managed = os.path.join(claude_code.managed_directory(), "managed-mcp.json")
    only_managed = disk.is_file(managed)
    project = _claude_project(disk, surroundings, state)
    settings = [*claude_code.settings_of(disk, surroundings, config), project]
    disabled = set(texts_of(project.get("disabledMcpServers")))
    for name in _names(read_json(disk, managed)):
        yield AssistantServer(name, managed, "managed")
    files: list[tuple[Scope, str, list[str]]] = [("local", state_path, _names(project))]
    for directory in parents(surroundings.folder):
        path = os.path.join(directory, ".mcp.json")
        scope: Scope = "project" if directory == surroundings.folder else "parent"
        files.append((scope, path, _names(read_json(disk, path))))
    files.append(("user", state_path, _names(state)))
    for scope, path, names in files:
        for name in names:
            start, reason = _claude_start(name, settings if path != state_path else None)
            if name in disabled:
                start, reason = "off", "The user switched it off in this folder."
            if only_managed:
                start, reason = "off", "The organization allows only the servers of managed-mcp.json."
            yield AssistantServer(name, path, scope, start=start, reason=reason)


def _claude_project(disk: Disk, surroundings: Surroundings, state: dict[str, Any]) -> dict[str, Any]:
    """What the state of Claude Code has of the folder's repository, or of the folder."""
    projects = state.get("projects")
    repository = find_working_tree(disk, surroundings.folder)
    key = surroundings.folder if repository is None else repository.root
    project = projects.get(key) if isinstance(projects, dict) else None
    return project if isinstance(project, dict) else {}


def _claude_start(name: str, settings: list[dict[str, Any]] | None) -> tuple[Start, str | None]:
    """Whether a server starts; `settings` are None for one that no file of the project names."""
    if settings is None:
        return "starts", None
    if any(name in texts_of(each.get("disabledMcpjsonServers")) for each in settings):
        return "off", "`disabledMcpjsonServers` leaves it out."
    if any(
        each.get("enableAllProjectMcpServers") is True or name in texts_of(each.get("enabledMcpjsonServers"))
        for each in settings
    ):
        return "starts", None
    return "asks", _ASKS


# ---------------------------------------------------------------- the others


def _codex(disk: Disk, surroundings: Surroundings) -> Iterator[AssistantServer]:
    user_path = os.path.join(codex.codex_home(surroundings), "config.toml")
    user = read_toml(disk, user_path)
    config = {**read_toml(disk, codex.SYSTEM_CONFIG), **user}
    root = codex.project_root(disk, surroundings.folder, config)
    chain = parents(surroundings.folder)
    directories = chain[: chain.index(root) + 1]
    paths = [os.path.join(directory, ".codex", "config.toml") for directory in directories]
    is_trusted = _is_trusted(disk, user, surroundings.folder, root)
    layers: list[tuple[str, Scope]] = [(codex.SYSTEM_CONFIG, "managed"), (user_path, "user")]
    for path, directory in zip(reversed(paths), reversed(directories), strict=True):
        if path != user_path and is_trusted:
            layers.append((path, "project" if directory == surroundings.folder else "parent"))
    yield from _merged(
        ((path, scope, read_toml(disk, path).get("mcp_servers")) for path, scope in layers), "Codex"
    )
    if not is_trusted:
        for path in paths:
            if path != user_path:
                for name in _names(read_toml(disk, path), "mcp_servers"):
                    yield AssistantServer(name, path, "project", start="off", reason=_NOT_TRUSTED)


def _is_trusted(disk: Disk, user: dict[str, Any], folder: str, root: str) -> bool:
    projects = user.get("projects")
    repository = find_working_tree(disk, folder)
    keys = (folder, root, *(() if repository is None else (repository.root, repository.main)))
    entries = [projects.get(key) for key in keys] if isinstance(projects, dict) else []
    return any(isinstance(each, dict) and each.get("trust_level") == "trusted" for each in entries)


def _opencode(disk: Disk, surroundings: Surroundings) -> Iterator[AssistantServer]:
    layers: list[tuple[str, Scope, Any]] = []
    for document in opencode.settings_documents(disk, surroundings):
        servers = document.value.get("mcp") if isinstance(document.value, dict) else None
        layers.append((document.path, _opencode_scope(document.path, surroundings), servers))
    yield from _merged(layers, "opencode")


def _opencode_scope(path: str, surroundings: Surroundings) -> Scope:
    directory = os.path.dirname(path)
    if os.path.basename(directory) == ".opencode":
        directory = os.path.dirname(directory)
    if directory == surroundings.folder:
        return "project"
    is_above = directory in parents(surroundings.folder) and directory != surroundings.user_home
    return "parent" if is_above else "user"


def _gemini(disk: Disk, surroundings: Surroundings) -> Iterator[AssistantServer]:
    settings: list[tuple[str, Scope, dict[str, Any]]] = []
    for directory, scope in _places(surroundings.folder, gemini.home_directory(surroundings)):
        path = os.path.join(directory, ".gemini", "settings.json")
        settings.append((path, scope, read_json(disk, path)))
    chosen = [each["mcp"] for _, _, each in settings if isinstance(each.get("mcp"), dict)]
    excluded = {name for each in chosen for name in texts_of(each.get("excluded"))}
    allowed = next(
        (texts_of(each["allowed"]) for each in chosen if isinstance(each.get("allowed"), list)), None
    )
    for path, scope, each in settings:
        for name in _names(each):
            reason = None
            if name in excluded:
                reason = "`mcp.excluded` leaves it out."
            elif allowed is not None and name not in allowed:
                reason = "`mcp.allowed` does not name it."
            start: Start = "starts" if reason is None else "off"
            yield AssistantServer(name, path, scope, start=start, reason=reason)


def _copilot(disk: Disk, surroundings: Surroundings) -> Iterator[AssistantServer]:
    path = os.path.join(surroundings.folder, ".vscode", "mcp.json")
    for name in _names(read_json(disk, path), "servers"):
        yield AssistantServer(name, path, "project", start="asks", reason=_TRUST)


def _cursor(disk: Disk, surroundings: Surroundings) -> Iterator[AssistantServer]:
    for directory, scope in _places(surroundings.folder, surroundings.user_home):
        path = os.path.join(directory, ".cursor", "mcp.json")
        for name in _names(read_json(disk, path)):
            yield AssistantServer(name, path, scope)


_READERS: Mapping[str, Callable[[Disk, Surroundings], Iterator[AssistantServer]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
    "copilot": _copilot,
    "cursor": _cursor,
}


# ---------------------------------------------------------------- settings


def _names(settings: dict[str, Any], key: str = "mcpServers") -> list[str]:
    """The names of the servers in settings."""
    servers = settings.get(key)
    return (
        [name for name, value in servers.items() if isinstance(value, dict)]
        if isinstance(servers, dict)
        else []
    )


def _places(folder: str, user_home: str) -> list[tuple[str, Scope]]:
    """The directories of settings, the nearest first."""
    places: list[tuple[str, Scope]] = [(folder, "project"), (user_home, "user")]
    return places[1:] if folder == user_home else places


def _merged(layers: Iterable[tuple[str, Scope, Any]], title: str) -> Iterator[AssistantServer]:
    """The servers of layers, the least important first: a later one changes single fields."""
    fields: dict[str, dict[str, Any]] = {}
    places: dict[str, tuple[str, Scope]] = {}
    for path, scope, servers in layers:
        for name, value in servers.items() if isinstance(servers, dict) else ():
            if isinstance(value, dict):
                fields.setdefault(name, {}).update(value)
                places[name] = (path, scope)
    for name, values in fields.items():
        path, scope = places[name]
        is_off = values.get("enabled") is False
        reason = f"{title} leaves it out: `enabled` is false." if is_off else None
        yield AssistantServer(name, path, scope, start="off" if is_off else "starts", reason=reason)


def _read_strict(disk: Disk, path: str) -> dict[str, Any]:
    """The object of a JSON file that a program writes, which may have megabytes; empty if there is none."""
    try:
        value = json.loads(disk.text(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
