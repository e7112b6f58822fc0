"""The settings of Gemini CLI in a folder: the user's, then the folder's, whose values count."""

import os

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import (
    AssistantSettings,
    AssistantSettingsFile,
    Scope,
    Surroundings,
)
from nexus_context.assistants.reading.settings import read_json


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """The settings in a folder."""
    home = home_directory(surroundings)
    places: list[tuple[str, Scope]] = [(home, "user"), (surroundings.folder, "project")]
    files = tuple(
        AssistantSettingsFile(path, scope, read_json(disk, path))
        for directory, scope in places[: 1 if home == surroundings.folder else 2]
        for path in (os.path.join(directory, ".gemini", "settings.json"),)
    )
    return AssistantSettings(surroundings, files)


def home_directory(surroundings: Surroundings) -> str:
    """The directory with the user's `.gemini`."""
    return surroundings.environ.get("GEMINI_CLI_HOME") or surroundings.user_home
