"""`nexus/config/*`: the settings in force and their sources."""

from typing import Annotated, Any

from nexus_daemon.protocol.shapes import OneOf, Range, Sparse, Wire


class Provenance(Sparse, frozen=True):
    """One value of a setting in one layer."""

    # the layer that sets the value; `built-in` for a default, `agent` for an agent's grant, `limit` if a list
    # is too long
    layer: str
    uri: str  # its file; for an agent's grant, which is in no file, the agent's directory
    range: Range  # the value in the file; empty if it is in no file
    value: Any  # the value as written
    wins: bool  # whether it is the value in force, or part of it
    ignored: bool = False  # true: its file may not set this


class McpServer(Sparse, frozen=True):
    """One MCP server in a file. No server is started."""

    name: str  # the server's name
    type: Annotated[str, OneOf("stdio", "http", "sse")]  # `stdio`, `http` or `sse`
    origin: str  # the layer of its file; `project` for `.mcp.json`, `vscode` for `.vscode/mcp.json`
    uri: str  # that file
    range: Range  # its entry in the file
    enabled: bool  # false: disabled in its file
    shadowed_by: str | None = None  # origin of the server of the same name that overrides it


class EffectiveResult(Wire, frozen=True):
    """The settings in force and their sources."""

    revision: int  # revision of the folder's snapshot
    config: dict[str, Any]  # every setting, including defaults
    provenance: dict[str, list[Provenance]]  # the values of each setting, lowest layer first, by JSON pointer
    mcp_servers: list[McpServer]  # in the order of the layers, including overridden ones
