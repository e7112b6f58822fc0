"""Tells which programs take settings, or MCP servers alone, from a file that somebody edits."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantServer, AssistantSettings, Surroundings

_OTHER_FILES = {"mcp.json", "requirements.toml"}
"""Files of VS Code and Codex that have keys of their own."""


class SettingsReader(NamedTuple):
    """A program that looks for its settings in a file, whether or not it accepts them.

    If `has_keys` is true, the keys of the file are those of the program's settings, else it only names
    servers. `servers` are all servers of the program.
    """

    program: str
    settings: AssistantSettings
    servers: tuple[AssistantServer, ...]
    has_keys: bool


def settings_readers(path: str, disk: Disk, surroundings: Surroundings) -> Iterator[SettingsReader]:
    """Yield the programs that look for settings at a path, in the order of PROGRAMS."""
    for name, program in PROGRAMS.items():
        looks = Disk(disk.overlays)
        settings = program.settings(looks, surroundings)
        names = {os.path.basename(file.path) for file in settings.files}
        # Codex does not list the file of a folder that it does not trust
        has_keys = (
            path in looks.read
            and os.path.basename(path) in names - _OTHER_FILES
            and bool(program.settings_schema)
        )
        servers = tuple(program.servers.read(looks, settings))
        if path in looks.read and (has_keys or _names_servers(path)):
            yield SettingsReader(name, settings, servers, has_keys)


def _names_servers(path: str) -> bool:
    return os.path.basename(path) in ("mcp.json", ".mcp.json", ".claude.json")
