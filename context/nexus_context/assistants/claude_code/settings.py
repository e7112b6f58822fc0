"""The settings of Claude Code in a folder: of the user, the project, this machine, and the organization.

1. Files, the least important first: `settings.json` of the user's directory, `.claude/settings.json` and
   `.claude/settings.local.json` of the folder, and the organization's `managed-settings.json`.
2. A later file's value counts; lists of all files are joined.
3. `env` of each adds variables, which count as those of the process.
"""

import os
import sys
from collections.abc import Iterator

from msgspec.structs import replace

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import (
    AssistantSettings,
    AssistantSettingsFile,
    Scope,
    Surroundings,
)
from nexus_context.assistants.reading.settings import read_json

MANAGED = {"darwin": "/Library/Application Support/ClaudeCode", "win32": "C:\\Program Files\\ClaudeCode"}


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """The settings in a folder."""
    files = tuple(
        AssistantSettingsFile(path, scope, read_json(disk, path))
        for path, scope in _settings_places(surroundings)
    )
    settings = AssistantSettings(surroundings, files)
    variables = {
        name: str(value)
        for each in settings.each("env")
        if isinstance(each, dict)
        for name, value in each.items()
        if name != "CLAUDE_CONFIG_DIR"  # by which the user's file was found
    }
    return replace(settings, where=replace(surroundings, environ={**surroundings.environ, **variables}))


def config_directory(surroundings: Surroundings) -> str:
    """The user's directory of Claude Code."""
    return surroundings.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(surroundings.user_home, ".claude")


def managed_directory() -> str:
    """The directory of an organization's files."""
    return MANAGED.get(sys.platform, "/etc/claude-code")


def _settings_places(surroundings: Surroundings) -> Iterator[tuple[str, Scope]]:
    project = os.path.join(surroundings.folder, ".claude")
    yield os.path.join(config_directory(surroundings), "settings.json"), "user"
    yield os.path.join(project, "settings.json"), "project"
    yield os.path.join(project, "settings.local.json"), "local"
    yield os.path.join(managed_directory(), "managed-settings.json"), "managed"
