"""Says what `nexus setup` writes for Gemini CLI 0.61.0.

Hooks and MCP servers are in `~/.gemini/settings.json`, or in `.gemini/settings.json` of the project. The
event `PreCompress` comes with every turn, so it has no hook.
"""

from os.path import join

from nexus_context.assistants.setup.entries import hook_commands, hook_entry, server_command
from nexus_context.assistants.setup.setup_types import (
    ProgramSetup,
    SettingsEntry,
    SettingsFile,
    SetupChoices,
    SetupPlace,
)

TIMEOUT_MS = 5_000
EVENTS = ("SessionStart", "SessionEnd", "AfterAgent")
PROMPT_EVENT = "BeforeAgent"


def _list_files(options: SetupChoices, place: SetupPlace) -> tuple[SettingsFile, ...]:
    hooks = [
        hook_entry(
            ("hooks", event),
            {"type": "command", "command": command, "name": "nexus", "timeout": TIMEOUT_MS},
        )
        for event, command in hook_commands("gemini", EVENTS, PROMPT_EVENT, options)
    ]
    directory = place.folder if options.scope == "project" else place.home
    entries = (*hooks, SettingsEntry(("mcpServers",), "nexus", server_command(options)))
    return (SettingsFile(join(directory, ".gemini", "settings.json"), "commented", entries),)


SETUP = ProgramSetup(
    _list_files, "The hooks tell Nexus when a session starts, pauses and ends.", PROMPT_EVENT
)
