"""Servers that flood, hang, die, list too much or answer wrongly: each costs itself, and says why."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.servers import running_server
from nexus_daemon.servers.server_log import MOST_BYTES
from support.server_story import SUPPORT, Servers, check
from support.waiting import wait_until

PROGRAM = SUPPORT / "mcp_hostile_server.py"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.desk.TIMEOUT_S", 30.0)  # for a server to start on a busy machine
    monkeypatch.setattr(running_server, "RESTART_S", 0.05)
    monkeypatch.setattr("nexus_daemon.servers.folder_servers.CALL_S", 2.0)


def tell(tmp_path: Path, mode: str, story: Any) -> None:
    """Tell a story about the approved server of a mode, and what it is known to be after its start."""

    async def told(servers: Servers) -> None:
        await servers.approve()
        await story(servers, await servers.ask("mcp/start", name="test"))

    check(tmp_path, told, args=[str(PROGRAM), mode])


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        ("hangs at start", "The server did not list its tools within 3 s."),
        ("floods its output", "The server could not be reached"),
        ("endless line", "The server could not be reached"),
        ("5,000 tools", "The server lists more than 1,000 tools."),
        ("one name twice", "The server lists a tool without a name, or two of one name."),
        ("schema of 10 MB", "The definitions of the server have 10 MiB; at most 8 MiB are read."),
        ("deep schema", ""),
    ],
)
def test_a_server_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, error: str
) -> None:
    monkeypatch.setattr(running_server, "START_S", 3.0)

    async def story(servers: Servers, server: Any) -> None:
        assert server["state"] == "failed"
        assert server["error"].startswith(error)
        assert await servers.refused("mcp/call", server="test", tool="alpha") in (
            "mcp-not-ready",
            "unknown-tool",
        )
        turn = await servers.ask("context/assemble", message="Go.", options={"mcpTools": True})
        assert turn["tools"] == []

    tell(tmp_path, mode, story)


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("floods its errors", "done"),
        ("schema of 2 MB", "done"),
        ("schema of itself", "done"),
        ("another id first", "done"),
        ("twice", "done"),
        ("no JSON-RPC", "done"),
        ("asks", '["refused", "refused", "refused", "refused"]'),
        ("dies in a call", "mcp-ended"),
        ("hangs in a call", "mcp-slow"),
        ("another id", "mcp-slow"),
        ("result of nothing", "mcp-slow"),
        ("result of 100 MB", "mcp-ended"),
        ("no result", "mcp-bad-answer"),
    ],
)
def test_a_call_of_a_hostile_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, answer: str
) -> None:
    if answer != "mcp-slow":
        monkeypatch.setattr("nexus_daemon.servers.folder_servers.CALL_S", 20.0)

    async def story(servers: Servers, server: Any) -> None:
        assert (server["state"], [tool["name"] for tool in server["tools"]]) == ("ready", ["alpha"])
        for _ in range(2):  # what came too much does not answer the next call
            reply = await servers.reply("mcp/call", server="test", tool="alpha", arguments={})
            if "error" in reply:
                assert reply["error"]["data"]["code"] == answer
                break
            assert reply["result"]["content"] == [{"type": "text", "text": answer}]
        log = Path(server["log"].removeprefix("file://"))
        assert not log.exists() or log.stat().st_size <= MOST_BYTES

        async def is_back() -> bool:
            return await servers.state() == "ready"

        assert await wait_until(is_back)

    tell(tmp_path, mode, story)


def test_names_with_every_character(tmp_path: Path) -> None:
    async def story(servers: Servers, server: Any) -> None:
        names = {tool["name"]: tool["offeredAs"] for tool in server["tools"]}
        assert len(names) == len(set(names.values())) == 13
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", offered) for offered in names.values())
        for name in names:
            assert (await servers.reply("mcp/call", server="test", tool=name))["result"]["content"]
        turn = await servers.ask("context/assemble", message="Go.", options={"mcpTools": True})
        assert {tool["name"] for tool in turn["tools"]} == set(names.values())

    tell(tmp_path, "names", story)


def test_escape_sequences_steer_no_terminal(tmp_path: Path) -> None:
    async def story(servers: Servers, server: Any) -> None:
        assert {flag["suspicion"] for flag in server["flags"]} == {"hidden"}
        assert await servers.refused("mcp/call", server="test", tool="alpha") == "mcp-refused"
        log = Path(server["log"].removeprefix("file://")).read_text()
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", log)

    tell(tmp_path, "escapes", story)


def test_two_servers_may_have_tools_of_one_name(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        entry = {"command": sys.executable, "args": [str(PROGRAM), "plain"]}
        both = {"test": entry, "other": {**entry, "args": [str(PROGRAM), "dies in a call"]}}
        (servers.directory / ".mcp.json").write_text(json.dumps({"mcpServers": both}))

        async def are_there() -> bool:
            return len((await servers.ask("mcp/servers"))["servers"]) == 2

        assert await wait_until(are_there)
        for name in both:
            server = await servers.server(name)
            await servers.ask("mcp/approve", name=name, hash=server["hash"])
            await servers.ask("mcp/start", name=name)
        turn = await servers.ask("context/assemble", message="Go.", options={"mcpTools": True})
        assert {tool["name"] for tool in turn["tools"]} == {"mcp__test__alpha", "mcp__other__alpha"}
        assert await servers.refused("mcp/call", server="other", tool="alpha") == "mcp-ended"
        assert (await servers.call("alpha"))["content"][0]["text"] == "done"

    check(tmp_path, story)
