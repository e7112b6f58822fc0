"""The environment variables that a folder's settings and servers need, and whether they are set.

A credential is a variable that `provider.api_key_env` or an enabled MCP server names, without a default. It
is configured if it is set and not empty; its value is not used otherwise.
"""

from collections.abc import Iterator, Mapping

import msgspec

from nexus_context.config.mcp import McpServer
from nexus_context.config.references import references_in
from nexus_context.layers.model import Layers


class Credential(msgspec.Struct, frozen=True):
    """An environment variable that something needs, and whether it is set."""

    variable: str
    configured: bool


def credentials(layers: Layers, environ: Mapping[str, str]) -> tuple[Credential, ...]:
    """The credentials of a folder, sorted by name."""
    names = set()
    api_key_variable = layers.effective.get("/provider/api_key_env")
    if isinstance(api_key_variable, str) and api_key_variable.strip():
        names.add(api_key_variable.strip())
    for server in layers.servers:
        if server.enabled and server.shadowed_by is None:
            names.update(_variables(server))
    return tuple(Credential(name, bool(environ.get(name))) for name in sorted(names))


def _variables(server: McpServer) -> Iterator[str]:
    values = (*server.command, server.url or "", *server.env.values(), *server.headers.values())
    for value in values:
        for reference in references_in(value):
            if reference.kind == "variable" and reference.default is None:
                yield reference.name
