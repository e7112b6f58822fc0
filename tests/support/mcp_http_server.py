"""A server of MCP over HTTP with the official SDK: `python mcp_http_server.py PORT TRANSPORT`."""

import sys
from typing import Literal, cast

from mcp.server.mcpserver import MCPServer

PORT = int(sys.argv[1])
TRANSPORT = cast(Literal["sse", "streamable-http"], sys.argv[2])
server = MCPServer("remote")


@server.tool()
def alpha(text: str) -> str:
    """Adds two numbers."""
    return text


if TRANSPORT == "sse":
    server.run("sse", host="127.0.0.1", port=PORT)
else:
    server.run("streamable-http", host="127.0.0.1", port=PORT)
