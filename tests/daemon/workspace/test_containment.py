"""A bug that is met in one file, as a client sees it: a diagnostic there, and everything else as ever."""

import logging
from pathlib import Path
from typing import Any

import pytest

from nexus_context.disk import containment
from nexus_context.folder import loading
from nexus_context.folder.layers import text_reader
from support.desk import CONFIG, Desk, Story, tell_story, write
from support.waiting import wait_until

MCP = "/a/.nexus3/mcp.json"
HALF = {
    CONFIG: '{"context":{"zz":1},"context"}',
    MCP: '{"servers":{"db":{"command":"python3"}}, "servers"}',
    "/home/.nexus3/config.json": '{"context":{"zz":1},"context"}',
}
PROMPT = "nexus/context/preview"


@pytest.fixture(autouse=True)
def nothing_logged_yet() -> None:
    containment.logged_places.clear()


def check(root: Path, story: Story, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Tell a story about a daemon; the errors that it logged."""
    tell_story(root, story)
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def fail_on(monkeypatch: pytest.MonkeyPatch, module: Any, function: str, name: str | None) -> None:
    """A function raises where its first argument ends like this; None: always."""
    original = getattr(module, function)

    def faulty(*arguments: Any, **named: Any) -> Any:
        if name is None or str(arguments[0]).endswith(name):
            raise KeyError("secret")
        return original(*arguments, **named)

    monkeypatch.setattr(module, function, faulty)


async def shown(desk: Desk, talk: Any, path: str) -> list[str]:
    """The codes that a client shows for a file, once it was told any."""
    return await wait_until(lambda: desk.shown(talk, path)) or []


@pytest.mark.parametrize("path", HALF)
def test_a_key_that_is_typed_again(tmp_path: Path, caplog: pytest.LogCaptureFixture, path: str) -> None:
    async def story(desk: Desk) -> None:
        write(desk, path, HALF[path])
        talk = await desk.client("/a", "/lone")
        assert "json.missing-colon" in await shown(desk, talk, path)
        assert "A." in (await desk.ask(talk, 1, PROMPT))["text"]
        desk.open(talk, path, HALF[path].replace("1", "2"))
        assert "A." in (await desk.ask(talk, 2, PROMPT))["text"]

    assert check(tmp_path, story, caplog) == []


def test_a_bug_in_one_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(desk: Desk) -> None:
        Path(desk.tree.path(MCP)).write_text('{"mcpServers": {"db": {}}}')
        fail_on(monkeypatch, text_reader, "parse", CONFIG)
        talk = await desk.client("/a", "/lone")
        assert await shown(desk, talk, CONFIG) == ["internal"]
        assert await shown(desk, talk, MCP) == ["mcp.no-transport"]
        assert desk.shown(talk, "/lone/.nexus3/config.json") is None
        assert "A." in (await desk.ask(talk, 1, PROMPT))["text"]
        monkeypatch.undo()
        desk.open(talk, CONFIG, "{}")
        await desk.ask(talk, 2, PROMPT)
        assert desk.shown(talk, CONFIG) == []

    (error,) = check(tmp_path, story, caplog)
    assert error.startswith("a bug met in ")


@pytest.mark.parametrize("function", ["open_layers", "gather", "render"])
def test_a_bug_in_what_looks_at_all_files(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
) -> None:
    async def story(desk: Desk) -> None:
        fail_on(monkeypatch, loading, function, None)
        talk = await desk.client()
        assert await shown(desk, talk, "/a") == ["internal"]
        monkeypatch.undo()
        desk.open(talk, CONFIG, "{}")
        assert "A." in (await desk.ask(talk, 1, PROMPT))["text"]
        fail_on(monkeypatch, loading, function, None)
        desk.open(talk, MCP, "{}")
        assert "A." in (await desk.ask(talk, 2, PROMPT))["text"]
        assert desk.shown(talk, "/a") == ["internal"]

    (error,) = check(tmp_path, story, caplog)
    assert error.startswith("a bug met in ")
