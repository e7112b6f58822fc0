"""`nexus mcp` as a process: with the client of the `mcp` SDK, and with clients that misbehave."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any

import anyio
import mcp
import pytest
from mcp.client.stdio import StdioServerParameters

from nexus_daemon.shared import client
from nexus_daemon.shared.mcp_server.definitions import NAMES, READING
from support.fixture import Fixture, write_fixture
from support.hostile import on_a_terminal
from support.shared import SharedHome
from support.waiting import block_until

TREE = """
//- /work/CLAUDE.md
# Rules
Be brief. @none.md
//- /work/AGENTS.md
Agents.
//- /other/AGENTS.md
Others.
"""
SERVER = (sys.executable, "-m", "nexus_daemon", "mcp")
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


@pytest.fixture
def tree(tmp_path: Path) -> Fixture:
    return write_fixture(TREE, tmp_path / "tree")


Use = Callable[[mcp.Client], Awaitable[None]]


def check(home: SharedHome, tree: Fixture, use: Use, *options: str, mode: str = "auto", **more: Any) -> None:
    """Let the client of the SDK use a server in the folder `work`."""

    async def run() -> None:
        server = StdioServerParameters(
            command=SERVER[0], args=[*SERVER[1:], *options], env=home.environ, cwd=tree.path("/work")
        )
        async with mcp.Client(server, mode=mode, read_timeout_seconds=30, **more) as connected:
            await use(connected)

    anyio.run(run)


async def text_of(connected: mcp.Client, tool: str, **arguments: Any) -> str:
    result = await connected.call_tool(tool, arguments)
    assert not result.is_error
    return "".join(part.text for part in result.content if part.type == "text")


# ---------------------------------------------------------------- the client of the SDK


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_the_client_of_the_sdk(home: SharedHome, tree: Fixture, mode: str, version: str) -> None:
    async def use(connected: mcp.Client) -> None:
        assert connected.protocol_version == version
        assert connected.instructions
        tools = (await connected.list_tools()).tools
        assert [tool.name for tool in tools] == list(READING)
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        about = mcp.types.Implementation(name="codex-mcp-client", version="1")
        assert connected.client_info == about
        text = await text_of(connected, "show_context")
        assert text.startswith("You read")
        assert "AGENTS.md (project)" in text
        assert "none.md does not exist" in await text_of(connected, "check_configuration", assistant="all")
        wrong = await connected.call_tool("show_context", {"path": "../other"})
        assert wrong.is_error
        with pytest.raises(mcp.MCPError):
            await connected.call_tool("add_memory", {"text": "x"})

    check(
        home, tree, use, mode=mode, client_info=mcp.types.Implementation(name="codex-mcp-client", version="1")
    )


def test_the_shared_daemon_answers(home: SharedHome, tree: Fixture) -> None:
    async def use(connected: mcp.Client) -> None:
        assert not client.is_running(home.place)  # a session that never calls a tool starts nothing
        await text_of(connected, "show_context")
        assert client.is_running(home.place)

    check(home, tree, use)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_that_dies_is_replaced(home: SharedHome, tree: Fixture, number: signal.Signals) -> None:
    async def use(connected: mcp.Client) -> None:
        first = await text_of(connected, "show_context", assistant="codex")
        pid = client.lock_owner(home.place)
        await anyio.to_thread.run_sync(home.end, number)
        assert await text_of(connected, "show_context", assistant="codex") == first
        assert client.lock_owner(home.place) not in (None, pid)

    check(home, tree, use)


@pytest.mark.parametrize("option", ["--local", ""])
def test_without_a_daemon(home: SharedHome, tree: Fixture, option: str) -> None:
    if not option:
        home.variables["NEXUS_DAEMON"] = "off"

    async def use(connected: mcp.Client) -> None:
        assert "CLAUDE.md" in await text_of(connected, "show_context", assistant="claude-code")

    check(home, tree, use, *([option] if option else []))
    home.variables["NEXUS_DAEMON"] = "on"
    assert not client.is_running(home.place)


def test_a_hung_daemon(home: SharedHome, tree: Fixture) -> None:
    async def use(connected: mcp.Client) -> None:
        await text_of(connected, "show_context")
        pid = client.lock_owner(home.place)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            assert await text_of(connected, "show_context")
            waited = time.monotonic()
            assert await text_of(connected, "show_context")
            assert time.monotonic() - waited < waited - began  # it is not tried again
        finally:
            os.kill(pid, signal.SIGCONT)

    check(home, tree, use)


def test_notes_are_kept_with_write_only(home: SharedHome, tree: Fixture) -> None:
    async def use(connected: mcp.Client) -> None:
        assert [tool.name for tool in (await connected.list_tools()).tools] == list(NAMES)
        await text_of(connected, "add_memory", text="The gate opens at six.")
        assert not client.is_running(home.place)  # it runs only what reads
        assert "opens at six" in await text_of(connected, "query_memory", kind="notes")

    check(home, tree, use, "--write")


def test_the_roots_of_the_client(home: SharedHome, tree: Fixture) -> None:
    async def roots(_: Any) -> mcp.types.ListRootsResult:
        root = mcp.types.Root(uri=Path(tree.path("/other")).as_uri())  # type: ignore[arg-type]
        return mcp.types.ListRootsResult(roots=[root])

    async def use(connected: mcp.Client) -> None:
        assert tree.path("/other") in await text_of(connected, "show_context", assistant="codex")

    check(home, tree, use, mode="legacy", list_roots_callback=roots)


def test_the_folder_of_the_command_line(home: SharedHome, tree: Fixture) -> None:
    async def use(connected: mcp.Client) -> None:
        assert tree.path("/other") in await text_of(connected, "show_context", assistant="codex")
        assert tree.path("/work") in await text_of(
            connected, "show_context", assistant="codex", path=tree.path("/work")
        )

    check(home, tree, use, "--folder", "../other", "--folder", ".")


@pytest.mark.parametrize("option", ["--local", "--max-tokens=500"])
def test_notices_are_part_of_the_answer(home: SharedHome, tree: Fixture, option: str) -> None:
    settings = home.home / ".nexus3" / "config.json"
    settings.parent.mkdir()
    settings.write_text("{broken")

    async def use(connected: mcp.Client) -> None:
        text = await text_of(connected, "search_conversations", query="gate")
        assert f"Note: nexus sessions: {settings} has errors and is ignored" in text

    check(home, tree, use, option)


# ---------------------------------------------------------------- clients that misbehave


class Process:
    """A server, and the messages that it wrote."""

    def __init__(
        self, home: SharedHome, directory: str, *options: str, command: tuple[str, ...] = SERVER
    ) -> None:
        self._process = subprocess.Popen(
            [*command, *options],
            cwd=directory,
            env=home.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.messages: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, *messages: Any) -> None:
        assert self._process.stdin is not None
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self._process.stdin.write(data)
        self._process.stdin.flush()

    def wait(self, message_id: Any) -> dict[str, Any]:
        block_until(lambda: any(one.get("id") == message_id for one in self.messages), 30)
        return next(one for one in self.messages if one.get("id") == message_id)

    def end(self) -> tuple[int, str]:
        """Close the input; the exit code, and what is on standard error."""
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._process.stdin.close()
        code = self._process.wait(30)
        self._thread.join(10)
        errors = self._process.stderr.read().decode()
        self._process.stderr.close()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code, errors

    def kill(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        self._process.wait(10)
        return self.end()[0]

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            self.messages.append(json.loads(line))


def call(message_id: Any, tool: str = "show_context", **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": params}


def test_the_end_of_the_input_ends_the_server(home: SharedHome, tree: Fixture) -> None:
    server = Process(home, tree.path("/work"), "--local")
    server.send(PING, call(1))
    assert server.end() == (0, "")
    assert [one["id"] for one in server.messages] == ["ping", 1]


NOISY = """
from nexus_daemon.cli import mcp
from nexus_daemon.shared.mcp_server import definitions, process
listed = definitions.definitions
def noisy(**options):
    print("noise", flush=True)
    return listed(**options)
definitions.definitions = noisy
process.serve(mcp.run_here)
"""


def test_only_messages_reach_standard_output(home: SharedHome, tree: Fixture) -> None:
    server = Process(home, tree.path("/work"), command=(sys.executable, "-c", NOISY))
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, PING)
    server.wait("ping")
    assert server.end() == (0, "noise\n")
    assert len(server.messages) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(home: SharedHome, tree: Fixture, number: signal.Signals) -> None:
    server = Process(home, tree.path("/work"))
    server.send(PING)
    server.wait("ping")
    assert server.kill(number) == -number


def test_a_line_of_100_mb(home: SharedHome, tree: Fixture) -> None:
    server = Process(home, tree.path("/work"), "--local")
    server.send(*[b"x" * (1 << 20)] * 100, b"\n", PING)
    assert server.wait(None)["error"]["code"] == -32600
    server.wait("ping")
    status = Path(f"/proc/{server.pid}/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 60_000  # kB
    server.end()


def test_a_client_that_reads_nothing_more(home: SharedHome, tree: Fixture) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with subprocess.Popen(
        SERVER, cwd=tree.path("/work"), env=home.environ, stdin=subprocess.PIPE, stdout=write_end
    ) as process:
        os.close(write_end)
        assert process.stdin is not None
        process.stdin.write(json.dumps(PING).encode() + b"\n")
        process.stdin.flush()
        assert process.wait(20) == 1


def test_a_cancelled_call(home: SharedHome, tree: Fixture) -> None:
    server = Process(home, tree.path("/work"))
    server.send(call(1))
    server.wait(1)
    pid = client.lock_owner(home.place)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        server.send(call(2), PING, cancelled)
        server.wait("ping")
        assert server.end()[0] == 0
    finally:
        os.kill(pid, signal.SIGCONT)
    assert [one["id"] for one in server.messages] == [1, "ping"]


@pytest.mark.parametrize("directory", ["gone", "deleted", "deleted before"])
def test_a_folder_that_is_gone(home: SharedHome, tree: Fixture, directory: str) -> None:
    other = tree.path("/other")
    command = (*SERVER, *(("--folder", "gone") if directory == "gone" else ()))
    if directory == "deleted before":
        command = ("sh", "-c", f"rm AGENTS.md; rmdir {other}; exec {' '.join(SERVER)}")
    server = Process(home, other, command=command)
    server.send(PING)
    server.wait("ping")
    if directory == "deleted":
        os.unlink(tree.path("/other/AGENTS.md"))
        os.rmdir(other)
    server.send(call(1))
    result = server.wait(1)["result"]
    assert result["isError"]
    assert "is not a directory" in result["content"][0]["text"]
    server.end()


def test_without_a_home_directory(home: SharedHome, tree: Fixture) -> None:
    for name in ("HOME", "NEXUS_HOME", "NEXUS_STATE"):
        home.variables[name] = ""
    server = Process(home, tree.path("/work"))
    server.send(call(1, assistant="codex"), call(2, "search_conversations", query="x"))
    assert "AGENTS.md" in server.wait(1)["result"]["content"][0]["text"]
    server.wait(2)
    assert server.end()[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_on_a_terminal_it_prints_help(home: SharedHome) -> None:
    assert "usage: nexus mcp [-h]" in on_a_terminal(["mcp"], home.environ)
    assert "usage: nexus mcp [-h]" in on_a_terminal(["mcp", "--write"], home.environ)
