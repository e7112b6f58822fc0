"""The settings of Codex in a folder: the system's, the user's, and a trusted project's."""

import os
from collections.abc import Mapping
from typing import Any

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import AssistantSettings, AssistantSettingsFile, Surroundings
from nexus_context.assistants.reading.settings import read_toml, texts_of
from nexus_context.assistants.reading.working_tree import find_working_tree, parents

SYSTEM_CONFIG = "/etc/codex/config.toml"
MARKERS = (".git",)


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """The settings in a folder."""
    user_path = os.path.join(codex_home(surroundings), "config.toml")
    own = (
        AssistantSettingsFile(SYSTEM_CONFIG, "managed", read_toml(disk, SYSTEM_CONFIG)),
        AssistantSettingsFile(user_path, "user", read_toml(disk, user_path)),
    )
    if not is_trusted(disk, surroundings, own):
        return AssistantSettings(surroundings, own)
    files = (
        AssistantSettingsFile(
            path,
            "project" if directory == surroundings.folder else "parent",
            read_toml(disk, path),
        )
        for directory, path in project_files(disk, surroundings, own)
    )
    return AssistantSettings(surroundings, (*own, *files))


def codex_home(surroundings: Surroundings) -> str:
    """The user's directory of Codex."""
    return surroundings.environ.get("CODEX_HOME") or os.path.join(surroundings.user_home, ".codex")


def project_files(
    disk: Disk, surroundings: Surroundings, own: tuple[AssistantSettingsFile, ...]
) -> list[tuple[str, str]]:
    """The directories of a project from its root down to the folder, each with the path of its settings."""
    user_path = os.path.join(codex_home(surroundings), "config.toml")
    root = project_root(disk, AssistantSettings(surroundings, own))
    chain = parents(surroundings.folder)
    places = ((each, os.path.join(each, ".codex", "config.toml")) for each in chain[chain.index(root) :: -1])
    return [place for place in places if place[1] != user_path]


def project_root(disk: Disk, settings: AssistantSettings) -> str:
    """The directory that the project's files are read from."""
    folder, value = settings.where.folder, settings.value("project_root_markers")
    markers = texts_of(value) if isinstance(value, list) else list(MARKERS)
    for directory in parents(folder) if markers else ():
        if any(disk.exists(os.path.join(directory, marker)) for marker in markers):
            return directory
    return folder


def is_trusted(disk: Disk, surroundings: Surroundings, own: tuple[AssistantSettingsFile, ...]) -> bool:
    """Whether the user trusts the folder, so that its settings count."""
    projects: Any = own[-1].values.get("projects")
    repository = find_working_tree(disk, surroundings.folder)
    root = project_root(disk, AssistantSettings(surroundings, own))
    keys = (
        surroundings.folder,
        root,
        *(() if repository is None else (repository.root, repository.main)),
    )
    entries = [projects.get(key) for key in keys] if isinstance(projects, Mapping) else []
    return any(isinstance(each, Mapping) and each.get("trust_level") == "trusted" for each in entries)
