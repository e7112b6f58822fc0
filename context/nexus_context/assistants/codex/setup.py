"""Says what `nexus setup` writes for Codex 0.169.0.

Hooks and MCP servers are tables in `~/.codex/config.toml` (`CODEX_HOME`), or in `.codex` of the project.
Codex runs a hook only after the user has trusted it.
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

TIMEOUT_S = 3  # the most that it gives the hook at a session's end
EVENTS = ("SessionStart", "SessionEnd", "PreCompact", "PostCompact", "Stop")
PROMPT_EVENT = "UserPromptSubmit"


def _list_files(options: SetupChoices, place: SetupPlace) -> tuple[SettingsFile, ...]:
    hooks = [
        hook_entry(("hooks", event), {"type": "command", "command": command, "timeout": TIMEOUT_S})
        for event, command in hook_commands("codex", EVENTS, PROMPT_EVENT, options)
    ]
    directory = place.environ.get("CODEX_HOME") or join(place.home, ".codex")
    if options.scope == "project":
        directory = join(place.folder, ".codex")
    entries = (SettingsEntry(("mcp_servers",), "nexus", server_command(options)), *hooks)
    return (SettingsFile(join(directory, "config.toml"), "toml", entries),)


SETUP = ProgramSetup(
    _list_files,
    "The hooks tell Nexus when a session starts, pauses and is compacted. After a compaction they give back "
    "what the summary dropped.",
    PROMPT_EVENT,
    "Codex skips new hooks until you trust them: run codex, then /hooks.",
)
