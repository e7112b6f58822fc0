"""`nexus/config/*`: the settings in force and where each comes from."""

from typing import Annotated, Any

from nexus_daemon.protocol.shapes import OneOf, Range, Sparse, Wire


class Provenance(Sparse, frozen=True):
    """One value that a layer sets."""

    # the layer that sets the value; `built-in` for a default, `agent` for what an agent was granted,
    # `limit` where a list is too long
    layer: str
    uri: str  # its file; the agent's directory for what that was granted, which stands in no file
    range: Range  # the value in the file; empty for what stands in none
    value: Any  # the value as it stands there
    wins: bool  # whether it is, or is part of, the value in force
    ignored: bool = False  # true: its file may not set this; absent where another value just wins over it


class McpServer(Sparse, frozen=True):
    """One MCP server that a file names. No server is started."""

    name: str  # the server's name
    type: Annotated[str, OneOf("stdio", "http", "sse")]  # `stdio`, `http` or `sse`
    origin: str  # the layer of its file; `project` for `.mcp.json`, `vscode` for `.vscode/mcp.json`
    uri: str  # that file
    range: Range  # its entry in the file
    enabled: bool  # false: switched off in its file
    shadowed_by: str | None = None  # origin of the server of this name that wins over it


class EffectiveResult(Wire, frozen=True):
    """The settings in force and where each comes from."""

    revision: int  # revision of the folder's snapshot
    config: dict[str, Any]  # every setting, defaults included
    provenance: dict[str, list[Provenance]]  # who set a value, lowest layer first, by JSON pointer
    mcp_servers: list[McpServer]  # in the order of the layers, shadowed ones too
