"""Says what `nexus setup` writes for Claude Code 2.1.330.

Hooks and the status line are in `settings.json` of `~/.claude` (`CLAUDE_CONFIG_DIR`), or of `.claude` in the
project. MCP servers of the user are in `~/.claude.json`, or in `.claude.json` of `CLAUDE_CONFIG_DIR`; those
of a project are in `.mcp.json`. The entries are those that `claude mcp add` writes.
"""

import shlex
from os.path import join

from nexus_context.assistants.setup.entries import hook_commands, hook_entry, server_command
from nexus_context.assistants.setup.setup_types import (
    ProgramSetup,
    SettingsEntry,
    SettingsFile,
    SetupChoices,
    SetupPlace,
)

TIMEOUT_S = 5
EVENTS = ("SessionStart", "SessionEnd", "InstructionsLoaded", "PreCompact", "SubagentStop", "Stop")
PROMPT_EVENT = "UserPromptSubmit"


def _list_files(options: SetupChoices, place: SetupPlace) -> tuple[SettingsFile, ...]:
    config_directory = place.environ.get("CLAUDE_CONFIG_DIR")
    hooks = [
        hook_entry(("hooks", event), {"type": "command", "command": command, "timeout": TIMEOUT_S})
        for event, command in hook_commands("claude-code", EVENTS, PROMPT_EVENT, options)
    ]
    line = {"type": "command", "command": shlex.join((*options.command, "statusline"))}
    server = {"type": "stdio", **server_command(options), "env": {}}
    settings, servers = (
        join(config_directory or join(place.home, ".claude"), "settings.json"),
        join(config_directory or place.home, ".claude.json"),
    )
    if options.scope == "project":
        settings, servers = join(place.folder, ".claude", "settings.json"), join(place.folder, ".mcp.json")
    return (
        SettingsFile(settings, "json", (*hooks, SettingsEntry((), "statusLine", line))),
        SettingsFile(servers, "json", (SettingsEntry(("mcpServers",), "nexus", server),)),
    )


SETUP = ProgramSetup(
    _list_files,
    "The hooks tell Nexus when a session starts, pauses, is compacted and ends, and which instructions it "
    "loaded. After a compaction they give back what the summary dropped.",
    PROMPT_EVENT,
)
