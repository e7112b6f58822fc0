"""Reads MCP servers from the settings of other programs, where the rooms of several do the same."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nexus_context.assistants.reading.profile_types import AssistantServer, Scope


def server_names(settings: Mapping[str, Any], key: str = "mcpServers") -> list[str]:
    """List the names of the servers below a key of the settings."""
    servers = settings.get(key)
    return (
        [name for name, value in servers.items() if isinstance(value, dict)]
        if isinstance(servers, dict)
        else []
    )


def settings_places(folder: str, user_home: str) -> list[tuple[str, Scope]]:
    """List the directories that may have settings, each with whose it is: the folder, then the user's
    home.
    """
    places: list[tuple[str, Scope]] = [(folder, "project"), (user_home, "user")]
    return places[1:] if folder == user_home else places


def merged_servers(layers: Iterable[tuple[str, Scope, Any]], title: str) -> Iterator[AssistantServer]:
    """Yield the servers of several files. `layers` are the path, scope and servers of each, the least
    important first; a later file changes single fields of a server.
    """
    fields: dict[str, dict[str, Any]] = {}
    places: dict[str, tuple[str, Scope]] = {}
    for path, scope, servers in layers:
        for name, value in servers.items() if isinstance(servers, dict) else ():
            if isinstance(value, dict):
                fields.setdefault(name, {}).update(value)
                places[name] = (path, scope)
    for name, values in fields.items():
        path, scope = places[name]
        is_off = values.get("enabled") is False
        reason = f"{title} leaves it out: `enabled` is false." if is_off else None
        yield AssistantServer(name, path, scope, start="off" if is_off else "starts", reason=reason)
