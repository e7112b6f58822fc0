"""The real servers of npm that the package.json in tests/mcp_servers names, and one of ours over HTTP."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.remote_servers import configure_remote, remote
from support.server_story import Servers, check
from support.talk import call, tell
from support.waiting import wait_until

PACKAGES = Path(__file__).resolve().parents[2] / "mcp_servers" / "node_modules" / ".bin"

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (PACKAGES / "mcp-server-everything").exists(),
    reason="real servers need Node.js, and `npm ci` in tests/mcp_servers (`make test` does that)",
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.desk.TIMEOUT_S", 30.0)  # for a server to start on a busy machine


def start(
    tmp_path: Path, name: str, *arguments: str, story: Callable[[Servers, Any], Any], **more: Any
) -> None:
    """Approve and start a real server, and tell a story of it and of what it is known to offer."""

    async def told(servers: Servers) -> None:
        await servers.approve()
        server = await servers.ask("mcp/start", name="test")
        assert server["state"] == "ready", server
        assert server["tokens"] == sum(tool["tokens"] for tool in server["tools"]) > 0
        await story(servers, server)

    check(tmp_path, told, command=str(PACKAGES / f"mcp-server-{name}"), args=list(arguments), **more)


def names_of(server: Any) -> set[str]:
    return {tool["name"] for tool in server["tools"]}


@needs_node
def test_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(servers: Servers, server: Any) -> None:
        assert names_of(server) >= {"echo", "get-sum", "get-structured-content", "get-tiny-image"}
        assert set(server["prompts"]) >= {"simple-prompt", "args-prompt"}
        assert any(uri.startswith("demo://resource/") for uri in server["resources"])
        assert server["instructions"]
        turn = await servers.ask("context/assemble", message="Go.", options={"mcpTools": True})
        assert {tool["name"] for tool in turn["tools"]} >= {"mcp__test__echo", "mcp__test__get-sum"}

        answer = await servers.call("echo", message="hi")
        assert answer["content"] == [{"type": "text", "text": "Echo: hi"}]
        structured = await servers.call("get-structured-content", location="New York")
        assert "temperature" in json.loads(structured["content"][0]["text"])
        image = next(
            part for part in (await servers.call("get-tiny-image"))["content"] if part["type"] == "image"
        )
        assert (image["mimeType"], len(image["data"]) > 100) == ("image/png", True)
        links = await servers.call("get-resource-links", count=2)
        assert {part["type"] for part in links["content"]} == {"text", "resource_link"}

        wrong = await servers.call("get-sum", a="x", b=2)
        assert (wrong["isError"], "Invalid" in wrong["content"][0]["text"]) == (True, True)
        environment = json.loads((await servers.call("get-env"))["content"][0]["text"])
        assert environment["MODE"] == "test"
        assert not any(name.startswith("NEXUS") for name in environment)

        steps = await servers.call("trigger-long-running-operation", duration=0.2, steps=2)
        assert "completed" in steps["content"][0]["text"]
        monkeypatch.setattr("nexus_daemon.servers.folder_servers.CALL_S", 0.3)
        slow = {"server": "test", "tool": "trigger-long-running-operation"}
        assert await servers.refused("mcp/call", **slow, arguments={"duration": 5, "steps": 5}) == "mcp-slow"
        assert (await servers.call("echo", message="still there"))["content"]

    start(tmp_path, "everything", "stdio", story=story, env={"MODE": "test"})


@needs_node
def test_a_call_is_cancelled(tmp_path: Path) -> None:
    async def story(servers: Servers, _: Any) -> None:
        tool = {"server": "test", "tool": "trigger-long-running-operation"}
        params = {"workspaceFolder": servers.desk.uri("/a"), **tool, "arguments": {"duration": 20}}
        servers.talk.send(call(7, "nexus/mcp/call", params))
        await asyncio.sleep(0.3)
        servers.talk.send(tell("$/cancelRequest", {"id": 7}))
        assert (await servers.desk.reply(servers.talk, 7))["error"]["code"] == -32800
        assert (await servers.call("echo", message="hi"))["content"]

    start(tmp_path, "everything", "stdio", story=story)


@needs_node
def test_files(tmp_path: Path) -> None:
    async def story(servers: Servers, server: Any) -> None:
        assert names_of(server) >= {"read_text_file", "write_file", "list_directory"}
        path = servers.directory / "notes.txt"
        await servers.call("write_file", path=str(path), content="The gate opens at six.")
        assert path.read_text() == "The gate opens at six."
        answer = await servers.call("read_text_file", path=str(path))
        assert answer["content"][0]["text"] == "The gate opens at six."
        outside = await servers.call("read_text_file", path="/etc/passwd")
        assert (outside["isError"], "denied" in outside["content"][0]["text"]) == (True, True)

    start(tmp_path, "filesystem", "${workspaceFolder}", story=story)


@needs_node
def test_memory(tmp_path: Path) -> None:
    async def story(servers: Servers, _: Any) -> None:
        entity = {"name": "gate", "entityType": "door", "observations": ["opens at six"]}
        await servers.call("create_entities", entities=[entity])
        found = await servers.call("search_nodes", query="six")
        assert json.loads(found["content"][0]["text"])["entities"] == [entity]
        await servers.ask("mcp/stop", name="test")
        again = await servers.call("read_graph")  # it starts again, and has kept that
        assert json.loads(again["content"][0]["text"])["entities"] == [entity]
        assert await servers.state() == "ready"

    start(tmp_path, "memory", story=story, env={"MEMORY_FILE_PATH": str(tmp_path / "memory.json")})


@pytest.mark.parametrize("transport", ["sse", "streamable-http"])
def test_ours_over_http(tmp_path: Path, transport: str) -> None:
    with remote(transport) as url:

        async def story(servers: Servers) -> None:
            await configure_remote(servers, transport, url)
            server = await servers.ask("mcp/start", name="test")
            assert names_of(server) == {"alpha", "fails", "forecast", "picture", "relist", "slow"}
            assert (server["prompts"], server["resources"]) == (["greet"], ["memo://gate"])
            assert (await servers.call("alpha", text="hi"))["content"] == [{"type": "text", "text": "hi"}]
            forecast = await servers.call("forecast", city="Rome")
            assert json.loads(forecast["content"][0]["text"]) == {"city": "Rome", "degrees": 21}
            assert (await servers.call("picture"))["content"][0]["type"] == "image"
            assert (await servers.call("fails"))["isError"]
            assert (await servers.call("slow", seconds=0.2))["content"]
            await servers.call("relist")

            async def is_changed() -> bool:
                return await servers.state() == "changed"

            assert await wait_until(is_changed)
            assert await servers.refused("mcp/call", server="test", tool="alpha") == "mcp-changed"

        check(tmp_path, story)
