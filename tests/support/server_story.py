"""A client in a folder with one MCP server that is really started, and stories about it."""

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from nexus_context.folder.trust import trust_file
from nexus_daemon.workspace.trusted_folders import set_trust
from support.desk import Desk, tell_story
from support.talk import Talk
from support.waiting import wait_until

SUPPORT = Path(__file__).resolve().parent
SERVER, NEWEST = SUPPORT / "mcp_old_server.py", SUPPORT / "mcp_server.py"
TOOLS = {"alpha": "Adds two numbers.", "environment": "Lists its variables."}


class Servers:
    """A client in the folder /a, whose `.mcp.json` names a server `test`."""

    def __init__(self, desk: Desk, talk: Talk) -> None:
        self.desk, self.talk, self.last = desk, talk, 100
        self.directory = Path(desk.tree.path("/a"))

    async def ask(self, method: str, **params: object) -> Any:
        reply = await self.reply(method, **params)
        assert "error" not in reply, reply
        return reply["result"]

    async def refused(self, method: str, **params: object) -> str:
        """The code of the error that answers a request."""
        code: str = (await self.reply(method, **params))["error"]["data"]["code"]
        return code

    async def reply(self, method: str, **params: object) -> Any:
        self.last += 1
        await self.desk.ask(self.talk, self.last, f"nexus/{method}", **params)
        return await self.desk.reply(self.talk, self.last)

    async def server(self, name: str = "test") -> Any:
        servers = (await self.ask("mcp/servers"))["servers"]
        return next(server for server in servers if server["name"] == name)

    async def state(self) -> str:
        state: str = (await self.server())["state"]
        return state

    async def approve(self, **params: object) -> None:
        server = await self.server()
        await self.ask("mcp/approve", name="test", hash=server["hash"], **params)

    async def call(self, tool: str, **arguments: object) -> Any:
        return await self.ask("mcp/call", server="test", tool=tool, arguments=arguments)

    def write_tools(self, **tools: str) -> None:
        (self.directory / "tools.json").write_text(json.dumps(tools))

    async def wait_for(self, state: str) -> None:
        """Wait until the server has a state."""

        async def has_state() -> bool:
            return await self.state() == state

        assert await wait_until(has_state)

    def processes(self) -> list[int]:
        """The processes of servers of the folder, not those that they started."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    if os.fsencode(SERVER) in words and os.fsencode(self.directory) in words:
                        found.append(int(entry.name))
        return found

    def calls(self) -> list[str]:
        path = self.directory / "calls"
        return path.read_text().split() if path.exists() else []

    def told(self) -> list[str]:
        messages = self.talk.writer.messages()
        return [each["params"]["state"] for each in messages if each.get("method") == "nexus/mcp/didChange"]


def configure(desk: Desk, **entry: object) -> None:
    directory = Path(desk.tree.path("/a"))
    server = {"command": sys.executable, "args": [str(SERVER), str(directory)], **entry}
    (directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": server}}))


def check(tmp_path: Path, story: Callable[[Servers], Any], *, trusted: bool = True, **entry: object) -> None:
    """Tell a story about a folder with one server."""

    async def told(desk: Desk) -> None:
        configure(desk, **entry)
        inputs = desk.daemon.load_inputs
        desk.daemon.load_inputs = msgspec.structs.replace(inputs, trust_file=trust_file(inputs.environ))
        if trusted:
            set_trust(inputs.environ, desk.tree.path("/a"), trusted=True)
        servers = Servers(desk, await desk.client())
        servers.write_tools(**TOOLS)
        await story(servers)

    tell_story(tmp_path, told)


def processes_of(group: int) -> list[int]:
    """The processes of a process group that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                state, _, number = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(number) == group and state != "Z":
                    found.append(int(entry.name))
    return found
