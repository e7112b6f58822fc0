"""What setup writes for each program: which files, and which entries in them. Rules as data.

1. Claude Code 2.1.330: hooks and status line in `settings.json` of `~/.claude` (`CLAUDE_CONFIG_DIR`), or of
   `.claude` in the project; MCP servers of the user in `~/.claude.json` (with `CLAUDE_CONFIG_DIR`,
   `.claude.json` in it), of a project in `.mcp.json`. The same entries as `claude mcp add` writes.
2. Codex 0.169.0: hooks and MCP servers as tables in `~/.codex/config.toml` (`CODEX_HOME`), or in `.codex` of
   the project. It runs a hook only after the user has trusted it.
3. opencode 1.18.33: MCP servers in `~/.config/opencode/opencode.json` (`XDG_CONFIG_HOME`), or `opencode.json`
   of the project; hooks by a plugin, a JavaScript file.
4. Gemini CLI 0.61.0: both in `~/.gemini/settings.json`, or in `.gemini` of the project. Its
   `PreCompress` comes with every turn, so that it says nothing.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from os.path import join
from typing import Any

import msgspec

from nexus_context.assistants.setup.model import Scope, SettingsEntry, SettingsFile

TIMEOUT_S = 5
CODEX_TIMEOUT_S = 3  # the most that it gives the hook at a session's end
PLUGIN = "nexus.js"


class SetupChoices(msgspec.Struct, frozen=True):
    """What the user chose. `command` starts Nexus: its words. `memory`: prompts get memory and knowledge."""

    command: tuple[str, ...]
    scope: Scope = "user"
    memory: bool = False


class SetupPlace(msgspec.Struct, frozen=True):
    """The user's home, the project's folder and the environment variables."""

    home: str
    folder: str
    environ: Mapping[str, str]


CLAUDE_EVENTS = (
    "SessionStart",
    "SessionEnd",
    "InstructionsLoaded",
    "PreCompact",
    "SubagentStop",
    "Stop",
)
CODEX_EVENTS = ("SessionStart", "SessionEnd", "PreCompact", "PostCompact", "Stop")
GEMINI_EVENTS = ("SessionStart", "SessionEnd", "AfterAgent")
PROMPT_EVENTS = {"claude-code": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent"}
"""The event before a prompt is sent, where its hook may add to the context."""


PLUGIN_TEXT = """\
// Written by `nexus setup opencode`; `nexus setup opencode --undo` removes it.
import { spawn } from "node:child_process"

const COMMAND = __COMMAND__
const EVENTS = new Set(["session.created", "session.idle", "session.deleted"])
const MOST_MS = 1000

// tells the daemon of Nexus what happens; nobody waits for it
function tell(event, payload) {
  try {
    const hook = spawn(COMMAND[0], [...COMMAND.slice(1), event], { stdio: ["pipe", "ignore", "ignore"] })
    const timer = setTimeout(() => hook.kill("SIGKILL"), MOST_MS)
    hook.on("error", () => clearTimeout(timer))
    hook.on("close", () => clearTimeout(timer))
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify(payload))
  } catch {}
}

export const Nexus = async ({ directory }) => ({
  event: async ({ event }) => {
    if (!EVENTS.has(event.type)) return
    const session = event.properties?.sessionID ?? event.properties?.info?.id
    tell(event.type, { session_id: session, cwd: directory, hook_event_name: event.type, pid: process.pid })
  },
})
"""


def claude_code(options: SetupChoices, place: SetupPlace) -> tuple[SettingsFile, ...]:
    own = place.environ.get("CLAUDE_CONFIG_DIR")
    hooks = [
        _hook(("hooks", event), {"type": "command", "command": command, "timeout": TIMEOUT_S})
        for event, command in _commands("claude-code", CLAUDE_EVENTS, options)
    ]
    line = {"type": "command", "command": shlex.join((*options.command, "statusline"))}
    server = {"type": "stdio", **_server(options), "env": {}}
    settings, servers = (
        join(own or join(place.home, ".claude"), "settings.json"),
        join(own or place.home, ".claude.json"),
    )
    if options.scope == "project":
        settings, servers = join(place.folder, ".claude", "settings.json"), join(place.folder, ".mcp.json")
    return (
        SettingsFile(settings, "json", (*hooks, SettingsEntry((), "statusLine", line))),
        SettingsFile(servers, "json", (SettingsEntry(("mcpServers",), "nexus", server),)),
    )


def codex(options: SetupChoices, place: SetupPlace) -> tuple[SettingsFile, ...]:
    hooks = [
        _hook(("hooks", event), {"type": "command", "command": command, "timeout": CODEX_TIMEOUT_S})
        for event, command in _commands("codex", CODEX_EVENTS, options)
    ]
    directory = place.environ.get("CODEX_HOME") or join(place.home, ".codex")
    if options.scope == "project":
        directory = join(place.folder, ".codex")
    entries = (SettingsEntry(("mcp_servers",), "nexus", _server(options)), *hooks)
    return (SettingsFile(join(directory, "config.toml"), "toml", entries),)


def gemini(options: SetupChoices, place: SetupPlace) -> tuple[SettingsFile, ...]:
    hooks = [
        _hook(
            ("hooks", event),
            {"type": "command", "command": command, "name": "nexus", "timeout": TIMEOUT_S * 1000},
        )
        for event, command in _commands("gemini", GEMINI_EVENTS, options)
    ]
    directory = place.folder if options.scope == "project" else place.home
    entries = (*hooks, SettingsEntry(("mcpServers",), "nexus", _server(options)))
    return (SettingsFile(join(directory, ".gemini", "settings.json"), "commented", entries),)


def opencode(options: SetupChoices, place: SetupPlace) -> tuple[SettingsFile, ...]:
    directory = join(place.environ.get("XDG_CONFIG_HOME") or join(place.home, ".config"), "opencode")
    settings, plugins = join(directory, "opencode.json"), join(directory, "plugins")
    if options.scope == "project":
        settings, plugins = join(place.folder, "opencode.json"), join(place.folder, ".opencode", "plugins")
    server = {"type": "local", "command": [*options.command, "mcp"], "enabled": True}
    words = json.dumps([*options.command, "hook", "opencode"], ensure_ascii=False)
    plugin = SettingsEntry((), None, PLUGIN_TEXT.replace("__COMMAND__", words))
    return (
        SettingsFile(settings, "jsonc", (SettingsEntry(("mcp",), "nexus", server),)),
        SettingsFile(join(plugins, PLUGIN), "text", (plugin,)),
    )


PROGRAMS = {"claude-code": claude_code, "codex": codex, "gemini": gemini, "opencode": opencode}


def _commands(assistant: str, events: Sequence[str], options: SetupChoices) -> list[tuple[str, str]]:
    """Each event with the command line of its hook."""
    commands = [(event, shlex.join((*options.command, "hook", assistant, event))) for event in events]
    if options.memory:
        event = PROMPT_EVENTS[assistant]
        commands.append((event, shlex.join((*options.command, "hook", assistant, event, "--memory"))))
    return commands


def _hook(container: tuple[str, ...], handler: dict[str, Any]) -> SettingsEntry:
    return SettingsEntry(container, None, {"hooks": [handler]})


def _server(options: SetupChoices) -> dict[str, Any]:
    return {"command": options.command[0], "args": [*options.command[1:], "mcp"]}


def is_ours(entry: SettingsEntry, value: Any) -> bool:
    """Whether a value of the settings does what an entry does, however its command is written."""
    if entry.key == "nexus":
        words = [value.get("command"), value.get("args")] if isinstance(value, dict) else []
        return "mcp" in _words(words) and _names_nexus(words)
    if entry.key == "statusLine":
        return _runs(value, ("statusline",))
    handlers = value.get("hooks") if isinstance(value, dict) else None
    want = _words(entry.value["hooks"][0]["command"])
    at = want.index("hook")
    return isinstance(handlers, list) and any(_runs(handler, want[at : at + 3]) for handler in handlers)


def _runs(handler: Any, words: Sequence[str]) -> bool:
    command = handler.get("command") if isinstance(handler, dict) else None
    present = _words(command)
    size = len(words)
    return _names_nexus(command) and any(
        tuple(present[at : at + size]) == tuple(words) for at in range(len(present) - size + 1)
    )


def _names_nexus(value: Any) -> bool:
    names = (word.replace("\\", "/").rpartition("/")[2] for word in _words(value))
    return any(name in ("nexus", "nexus.exe", "nexus_daemon") for name in names)


def _words(value: Any) -> list[str]:
    if isinstance(value, list):
        return [word for item in value for word in _words(item)]
    if not isinstance(value, str):
        return []
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()
