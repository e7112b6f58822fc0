"""MCP servers that Nexus runs: a call of a tool beside the SDK alone, and servers that are listed."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.promises import ROOT, Measured, Promise, Run, milliseconds, promises, take_turns

sys.path.insert(0, str(ROOT / "tests"))

from anyio.from_thread import start_blocking_portal
from mcp import Client as SdkClient
from mcp import StdioServerParameters

from nexus_daemon.lsp.convert import path_to_uri
from nexus_daemon.workspace.trusted_folders import set_trust
from support.client import Client

SERVER = ROOT / "tests" / "support" / "mcp_old_server.py"
"""It starts as fast as a Python process can: nobody is measured against a slow server."""
SDK = "the SDK's client alone"
STARTING = "starting them and listing their tools"
TOOLS, SERVERS = 20, 20


@promises(Promise("a call of a tool over stdio", 3.0, SDK))
def calls(run: Run) -> Iterator[Measured]:
    """From `nexus/mcp/call` to its reply: trust, approval and pin are looked up each time."""
    folder = _write_folder(run, 1)
    with _client(run, folder) as client, _connect_sdk(folder) as call_sdk:
        about = {"workspaceFolder": path_to_uri(str(folder))}
        _approve_all(client, about)
        client.request("nexus/mcp/start", {**about, "name": "server0"})
        call = {**about, "server": "server0", "tool": "tool1", "arguments": {"text": "x"}}
        steps = {
            "nexus": partial(milliseconds, partial(client.request, "nexus/mcp/call", call)),
            SDK: partial(milliseconds, call_sdk),
        }
        turns = take_turns(steps, run.pick(full=200, quick=20), warm=5)
        client.stop()
    yield "a call of a tool over stdio", turns["nexus"], turns[SDK]


@promises(Promise(f"{SERVERS} servers that do not run are listed", 0.05, STARTING))
def lists(run: Run) -> Iterator[Measured]:
    """With tools and tokens, of what they offered last; beside that, each is started once."""
    folder = _write_folder(run, SERVERS)
    with _client(run, folder) as client:
        about = {"workspaceFolder": path_to_uri(str(folder))}
        names = _approve_all(client, about)

        def start_all() -> None:
            for name in names:
                client.request("nexus/mcp/start", {**about, "name": name})

        def stop_all() -> None:
            for name in names:
                client.request("nexus/mcp/stop", {**about, "name": name})

        start_all()
        stop_all()
        steps = {
            "nexus": partial(milliseconds, partial(client.request, "nexus/mcp/servers", about)),
            STARTING: partial(_timed_start, start_all, stop_all),
        }
        turns = take_turns(steps, run.pick(full=4, quick=1), warm=1)
        listed = client.request("nexus/mcp/servers", about)["servers"]
        if [len(server["tools"]) for server in listed] != [TOOLS] * SERVERS:
            raise RuntimeError("not all servers are listed with their tools")
        client.stop()
    yield f"{SERVERS} servers that do not run are listed", turns["nexus"], turns[STARTING]


def _timed_start(start_all: Any, stop_all: Any) -> float:
    elapsed = milliseconds(start_all)
    stop_all()
    return elapsed


def _write_folder(run: Run, servers: int) -> Path:
    folder = run.folder("folder", {})
    tools = {f"tool{number}": "Finds what has all words." for number in range(TOOLS)}
    (folder / "tools.json").write_text(json.dumps(tools))
    entry = {"command": sys.executable, "args": [str(SERVER), str(folder)]}
    named = {f"server{number}": {**entry, "env": {"NUMBER": str(number)}} for number in range(servers)}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": named}))
    set_trust({**os.environ, **run.environ}, str(folder), trusted=True)
    return folder


def _client(run: Run, folder: Path) -> Client:
    client = Client([*run.nexus, "serve"], cwd=folder, env=run.environ)
    folders = [{"uri": path_to_uri(str(folder)), "name": "folder"}]
    client.request("initialize", {"processId": None, "capabilities": {}, "workspaceFolders": folders})
    client.notify("initialized", {})
    return client


def _approve_all(client: Client, about: dict[str, Any]) -> list[str]:
    servers = client.request("nexus/mcp/servers", about)["servers"]
    for server in servers:
        client.request("nexus/mcp/approve", {**about, "name": server["name"], "hash": server["hash"]})
    return [server["name"] for server in servers]


@contextmanager
def _connect_sdk(folder: Path) -> Iterator[Callable[[], None]]:
    """A function that calls the tool by a client of the SDK, which runs on a loop in a thread of its own."""
    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER), str(folder)])
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(SdkClient(parameters)) as client,
    ):
        yield partial(portal.call, client.call_tool, "tool1", {"text": "x"})
