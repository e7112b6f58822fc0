"""Finds the plugins of Claude Code that are on in a folder, and their skills, commands, agents and styles.

1. The setting `enabledPlugins` turns on `name@marketplace`, in the order of its keys. The marketplace must be
   known, and the plugin installed for the user or for this folder. If the marketplace is a directory, the
   plugin is read there, else where `installed_plugins.json` says.
2. A directory in the user's skills that has `.claude-plugin/plugin.json` is a plugin, unless `enabledPlugins`
   turns off `name@skills-dir`.
3. The manifest may name other places. Those of commands and agents replace the usual directory, those of
   skills are added to it.
"""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from nexus_context.assistants.claude_code.settings import config_directory
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.assistants.reading.settings import read_json, texts_of
from nexus_context.assistants.reading.working_tree import find_working_tree

MANIFEST = os.path.join(".claude-plugin", "plugin.json")
MARKETPLACE = os.path.join(".claude-plugin", "marketplace.json")
KEYS = {"commands": "commands", "agents": "agents", "skills": "skills", "output-styles": "outputStyles"}
_ADDED = ("skills",)
_SKILLS_KEY = "@skills-dir"


class Plugin(NamedTuple):
    """A plugin that is on. `name` is put before the names of its skills; `root` is its directory.

    `is_installed` is false if it is a directory in the user's skills.
    """

    name: str
    root: str
    manifest: dict[str, Any]
    is_installed: bool = True

    def places(self, kind: str) -> list[str]:
        """List the files and directories that may define a kind, such as "skills". They need not exist."""
        value = self.manifest.get(KEYS[kind])
        named_paths = [value] if isinstance(value, str) else texts_of(value)
        usual_paths = [] if named_paths and kind not in _ADDED else [kind]
        return [
            os.path.normpath(os.path.join(self.root, relative_path))
            for relative_path in (*usual_paths, *named_paths)
        ]


def enabled_plugins(disk: Disk, settings: AssistantSettings) -> Iterator[Plugin]:
    """Yield the plugins that are on, in the order in which Claude Code lists their skills and commands."""
    config = config_directory(settings.where)
    enabled: dict[str, Any] = {}
    for value in settings.each("enabledPlugins"):
        enabled.update(value)
    marketplaces = read_json(disk, os.path.join(config, "plugins", "known_marketplaces.json"))
    installed_plugins = read_json(disk, os.path.join(config, "plugins", "installed_plugins.json")).get(
        "plugins"
    )
    for key in (key for key, is_on in enabled.items() if is_on is True):
        name, _, market = key.partition("@")
        marketplace = marketplaces.get(market)
        if isinstance(marketplace, dict):
            entries = installed_plugins.get(key) if isinstance(installed_plugins, dict) else None
            root = _root(disk, settings, name, marketplace, entries=entries)
            if root is not None:
                yield from _plugin(disk, name, root)
    directory = os.path.join(config, "skills")
    for name in sorted(name for name, _ in disk.entries(directory)):
        root = os.path.join(directory, name)
        if disk.is_file(os.path.join(root, MANIFEST)):
            for plugin in _plugin(disk, name, root):
                if enabled.get(f"{plugin.name}{_SKILLS_KEY}") is not False:
                    yield plugin._replace(is_installed=False)


def _plugin(disk: Disk, name: str, root: str) -> Iterator[Plugin]:
    path = os.path.join(root, MANIFEST)
    manifest = read_json(disk, path)
    own_name = manifest.get("name")
    is_valid = isinstance(own_name, str) and isinstance(manifest.get("version"), str | None)
    if is_valid or not disk.is_file(path):
        yield Plugin(str(own_name) if is_valid else name, root, manifest)


def _root(
    disk: Disk, settings: AssistantSettings, name: str, marketplace: dict[str, Any], *, entries: Any
) -> str | None:
    """The directory of a plugin; None if it is not installed here."""
    source, location = marketplace.get("source"), marketplace.get("installLocation")
    if isinstance(source, dict) and source.get("source") == "directory" and isinstance(location, str):
        marketplace_plugins = read_json(disk, os.path.join(location, MARKETPLACE)).get("plugins")
        for entry in marketplace_plugins if isinstance(marketplace_plugins, list) else ():
            if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get("source"), str):
                return os.path.normpath(os.path.join(location, entry["source"]))
        return None
    repository = find_working_tree(disk, settings.where.folder)
    homes = (None, settings.where.folder, *(() if repository is None else (repository.root,)))
    for entry in entries if isinstance(entries, list) else ():
        if (
            isinstance(entry, dict)
            and entry.get("projectPath") in homes
            and isinstance(entry.get("installPath"), str)
        ):
            return str(entry["installPath"])
    return None
