"""Says what `nexus setup` writes for opencode 1.18.33.

MCP servers are in `~/.config/opencode/opencode.json` (`XDG_CONFIG_HOME`), or in `opencode.json` of the
project. The hooks are a plugin, which is a JavaScript file; there is no hook for prompts.
"""

import json
from os.path import join

from nexus_context.assistants.setup.setup_types import (
    ProgramSetup,
    SettingsEntry,
    SettingsFile,
    SetupChoices,
    SetupPlace,
)

PLUGIN = "nexus.js"
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


def _list_files(options: SetupChoices, place: SetupPlace) -> tuple[SettingsFile, ...]:
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


SETUP = ProgramSetup(_list_files, "The plugin tells Nexus when a session starts and pauses.")
