"""Makes the entries that setup writes, hooks and the MCP server, and finds what in settings does the same."""

import shlex
from collections.abc import Sequence
from typing import Any

from nexus_context.assistants.setup.setup_types import SettingsEntry, SetupChoices


def hook_commands(
    assistant: str, events: Sequence[str], prompt_event: str, options: SetupChoices
) -> list[tuple[str, str]]:
    """List each event with the command line of its hook. If the user chose memory, the event before a prompt
    is sent has a hook of its own for that.
    """
    commands = [(event, shlex.join((*options.command, "hook", assistant, event))) for event in events]
    if options.memory:
        words = (*options.command, "hook", assistant, prompt_event, "--memory")
        commands.append((prompt_event, shlex.join(words)))
    return commands


def hook_entry(container: tuple[str, ...], handler: dict[str, Any]) -> SettingsEntry:
    """Make the entry of one hook in the list at `container`."""
    return SettingsEntry(container, None, {"hooks": [handler]})


def server_command(options: SetupChoices) -> dict[str, Any]:
    """Return the command and arguments that start `nexus mcp`, as settings of servers have them."""
    return {"command": options.command[0], "args": [*options.command[1:], "mcp"]}


def is_ours(entry: SettingsEntry, value: Any) -> bool:
    """Whether a value of the settings does what an entry does, even if its command is written differently."""
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
