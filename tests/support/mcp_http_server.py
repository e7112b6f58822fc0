"""A server of MCP over HTTP with the official SDK: `python mcp_http_server.py PORT TRANSPORT`."""

import asyncio
import sys
from typing import Literal, cast

from mcp.server.mcpserver import Context, Image, MCPServer
from pydantic import BaseModel

PORT = int(sys.argv[1])
TRANSPORT = cast(Literal["sse", "streamable-http"], sys.argv[2])
server = MCPServer("remote")


class Forecast(BaseModel):
    city: str
    degrees: int


@server.tool()
def alpha(text: str) -> str:
    """Adds two numbers."""
    return text


@server.tool()
def forecast(city: str) -> Forecast:
    """Has a structured result."""
    return Forecast(city=city, degrees=21)


@server.tool()
def picture() -> Image:
    """Draws."""
    return Image(data=b"\x89PNG\r\n", format="png")


@server.tool()
def fails() -> str:
    """Fails."""
    raise ValueError("the gate is shut")


@server.tool()
async def slow(seconds: float) -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return "done"


@server.tool()
async def relist(context: Context) -> str:
    """Offers one tool more."""
    server.add_tool(lambda: "new", name="new", description="Is new.")
    await context.notify_tools_changed()
    return "done"


@server.prompt()
def greet(name: str) -> str:
    """Greets."""
    return f"Say hello to {name}."


@server.resource("memo://gate")
def gate() -> str:
    """The gate."""
    return "It opens at six."


if TRANSPORT == "sse":
    server.run("sse", host="127.0.0.1", port=PORT)
else:
    server.run("streamable-http", host="127.0.0.1", port=PORT)
