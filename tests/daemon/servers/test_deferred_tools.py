"""Tools of a real server that a model gets only when it looks for them, and what servers cost."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.server_story import NEWEST, SERVER, Servers, check
from support.waiting import wait_until

CALL = {"id": "c1", "name": "search_tools", "arguments": {"query": "add"}}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.desk.TIMEOUT_S", 30.0)  # for a server to start on a busy machine


def defer(servers: Servers, mode: str = "always", **settings: Any) -> None:
    directory = servers.directory / ".nexus3"
    directory.mkdir(exist_ok=True)
    config = {"provider": {"model": "gpt-4o"}, "tools": {"defer": mode}, **settings}
    (directory / "config.json").write_text(json.dumps(config))


async def offered(servers: Servers, **params: object) -> tuple[list[str], int | None]:
    turn = await servers.ask("context/assemble", options={"mcpTools": True}, format="openai", **params)
    return [tool["name"] for tool in turn["tools"]], turn["usage"].get("deferredTokens")


def test_what_a_search_has_found_is_offered_from_then_on(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        defer(servers)
        await servers.approve()

        async def is_read() -> bool:
            return (await offered(servers, message="Add."))[0] == ["search_tools"]

        assert await wait_until(is_read)
        found = await servers.ask("mcp/search", query="add numbers")
        assert [tool["name"] for tool in found["tools"]] == ["mcp__test__alpha"]
        text = found["text"]
        assert text == "These tools can be called now:\nmcp__test__alpha: Adds two numbers."
        messages = [
            {"role": "user", "content": "Add."},
            {"role": "assistant", "content": None, "toolCalls": [CALL]},
            {"role": "tool", "content": text, "toolCallId": "c1"},
        ]
        await servers.ask("session/append", messages=messages)
        names, _ = await offered(servers)
        assert names == ["search_tools", "mcp__test__alpha"]
        usage = await servers.ask("context/usage")
        rows = [row["label"] for row in usage["rows"] if row["category"] == "tools"]
        assert rows == names
        await servers.ask("session/fork", session="main", to="other")  # knows what the first one found
        assert (await offered(servers, session="other"))[0] == names
        assert (await offered(servers, session="fresh", message="Go."))[0] == ["search_tools"]
        defer(servers, "never")

        async def is_sent_whole() -> bool:
            names, deferred = await offered(servers, session="fresh", message="Go.")
            return (names, deferred) == (["mcp__test__alpha", "mcp__test__environment"], None)

        assert await wait_until(is_sent_whole)

    check(tmp_path, story)


def test_only_what_may_be_called_is_found(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        defer(servers, permissions={"deny": ["mcp__test__alpha"]})
        await servers.approve()

        async def found() -> list[str]:
            tools = (await servers.ask("mcp/search", query="alpha environment"))["tools"]
            return [tool["name"] for tool in tools]

        async def is_denied() -> bool:
            return await found() == ["mcp__test__environment"]

        assert await wait_until(is_denied)
        server = await servers.server()
        assert [tool.get("enabled", True) for tool in server["tools"]] == [False, True]
        assert server["tokens"] == server["tools"][1]["tokens"]

    check(tmp_path, story)


def test_the_list_says_what_the_servers_cost_and_which_nobody_calls(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        defer(servers)
        assert "summary" not in await servers.ask("mcp/servers")  # nothing is known yet
        await servers.approve()
        await servers.ask("mcp/start", name="test")
        servers.write_tools(**{f"tool_{number}": "Does a thing. " * 20 for number in range(20)})
        await servers.ask("mcp/refresh", name="test")
        server = await servers.server()
        await servers.ask("mcp/approve", name="test", hash=server["hash"], pin=server["pin"])

        async def listed() -> Any:
            result = await servers.ask("mcp/servers")
            return result if len(result["servers"][0]["tools"]) == 20 else None

        result = await wait_until(listed)
        assert result["deferredTokens"] == result["tokens"]
        assert all(tool["deferred"] for tool in result["servers"][0]["tools"])
        assert result["unused"] == ["test"]
        assert result["summary"] == (
            f"This server costs {result['tokens']:,} tokens, 2 % of the window of 128,000, of which "
            f"{result['deferredTokens']:,} are sent only when the model looks for them; it was not called in "
            "30 days."
        )
        call = {"id": "c1", "name": "mcp__test__tool_1", "arguments": {}}
        messages = [
            {"role": "user", "content": "Is mcp__test__tool_1 any good?"},
            {"role": "assistant", "content": "", "toolCalls": [call]},
            {"role": "tool", "content": "Done.", "toolCallId": "c1"},
        ]
        await servers.ask("session/append", messages=messages[:1])
        assert (await servers.ask("mcp/servers"))["unused"] == ["test"]  # the user's words are no call
        await servers.ask("session/append", messages=messages[1:])
        result = await servers.ask("mcp/servers")
        assert "unused" not in result
        assert result["servers"][0]["lastCall"] > "2026"
        assert result["summary"].endswith("are sent only when the model looks for them.")

    check(tmp_path, story)


def test_the_same_program_in_another_folder_has_a_price(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        await servers.approve()
        await servers.ask("mcp/start", name="test")
        cost = (await servers.server())["tokens"]
        other = servers.directory / "other"
        other.mkdir()
        entry = {"command": sys.executable, "args": [str(SERVER), str(servers.directory)], "cwd": str(other)}
        unlike = entry | {"args": [str(NEWEST), str(servers.directory)]}
        entries = {"test": entry, "unlike": unlike}
        (servers.directory / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))

        async def is_priced() -> Any:
            server = await servers.server()
            return server if server["state"] == "unapproved" else None

        server = await wait_until(is_priced)
        assert (server["seenElsewhere"], server.get("exact"), server["tokens"]) == (True, None, cost)
        result = await servers.ask("mcp/servers")
        assert (result["tokens"], "summary" in result) == (
            0,
            False,
        )  # it may not start
        assert "tools" not in result["servers"][1]
        await servers.approve()
        assert (await servers.ask("mcp/servers"))["summary"].startswith(f"This server costs ≈{cost} tokens, ")
        assert await servers.refused("mcp/call", server="test", tool="gamma") == "unknown-tool"
        assert not (await servers.server()).get("seenElsewhere")  # it ran

    check(tmp_path, story)


def test_the_window_is_that_of_the_model_that_was_picked_last(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        assert (await servers.ask("mcp/servers"))["window"] == 128_000  # a guess
        options = {"model": "claude-opus-5-5", "maxContextTokens": 70_000}
        await servers.ask("context/assemble", message="Go.", options=options)
        messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "Gone."}]
        await servers.ask("session/append", messages=messages)
        assert (await servers.ask("mcp/servers"))["window"] == 70_000

    check(tmp_path, story)
