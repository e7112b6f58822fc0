"""Slow work that no request waits for, as the windows of its folder see it."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nexus_context.folder import loading
from nexus_daemon.lsp import progress
from nexus_daemon.process import lazy
from nexus_daemon.server import build
from nexus_daemon.workspace import vocabulary_loader
from support.desk import CONFIG, TIMEOUT_S, Desk, tell_story
from support.talk import HELLO, Talk, call, result, tell
from support.waiting import wait_until

SHOWS = {"window": {"workDoneProgress": True}}


class Gate:
    """A function that waits until `opened`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        self.opened = threading.Event()
        real = getattr(module, name)

        def wait(*arguments: Any, **options: Any) -> Any:
            assert self.opened.wait(TIMEOUT_S)
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, wait)


class Window:
    """A client of a desk that shows the progress of all work, however quick."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(progress, "DELAY_S", 0.0)
        self.talk = Talk(partial(build, lambda: desk.daemon))
        folder = {"uri": desk.uri("/a"), "name": "a"}
        params = {**HELLO["params"], "capabilities": SHOWS, "workspaceFolders": [folder]}
        self.talk.send({**HELLO, "params": params})
        self._created: set[int] = set()

    def kinds(self, title: str) -> list[str]:
        """What the window was told of the first work with this title; it creates each token."""
        messages = self.talk.writer.messages()
        for one in messages:
            if one.get("method") == progress.CREATE and one["id"] not in self._created:
                self._created.add(one["id"])
                self.talk.send(result(one["id"], None))
        values = [one["params"] for one in messages if one.get("method") == "$/progress"]
        tokens = [one["token"] for one in values if one["value"].get("title") == title]
        return [one["value"]["kind"] for one in values if one["token"] in tokens[:1]]


async def check(window: Window, gate: Gate, title: str) -> None:
    """Work is shown while it is held, and ends when it goes on."""
    await wait_until(lambda: window.kinds(title) == ["begin"])
    gate.opened.set()
    await wait_until(lambda: window.kinds(title) == ["begin", "end"])


def test_a_folder_that_loads_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, loading, "load")

    async def story(desk: Desk) -> None:
        await check(Window(desk, monkeypatch), gate, "Nexus: Loading a")

    tell_story(tmp_path, story)


def test_a_folder_that_is_removed_while_it_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, loading, "load")

    async def story(desk: Desk) -> None:
        window, title = Window(desk, monkeypatch), "Nexus: Loading a"
        await wait_until(lambda: window.kinds(title) == ["begin"])
        removed = {"added": [], "removed": [{"uri": desk.uri("/a"), "name": "a"}]}
        window.talk.send(tell("workspace/didChangeWorkspaceFolders", {"event": removed}))
        await wait_until(lambda: window.kinds(title) == ["begin", "end"])
        gate.opened.set()

    tell_story(tmp_path, story)


def test_a_knowledge_base_that_is_indexed_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, lazy.knowledge, "refresh")

    async def story(desk: Desk) -> None:
        Path(desk.tree.path(CONFIG)).write_text('{"memory": {"knowledge": {"paths": ["docs"]}}}')
        Path(desk.tree.path("/a/docs")).mkdir()
        Path(desk.tree.path("/a/docs/a.md")).write_text("red")
        window = Window(desk, monkeypatch)
        params = {"workspaceFolder": desk.uri("/a"), "query": "red"}
        window.talk.send(call(1, "nexus/knowledge/query", params))
        await check(window, gate, "Nexus: Indexing the knowledge base")

    tell_story(tmp_path, story)


def test_a_vocabulary_that_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch, vocabulary_loader, "load_encoding")

    async def story(desk: Desk) -> None:
        monkeypatch.setattr(vocabulary_loader, "PAUSE_S", 0.0)
        monkeypatch.setattr(vocabulary_loader, "is_loaded", lambda _: False)
        window = Window(desk, monkeypatch)
        await wait_until(lambda: desk.daemon.windows.folders)
        desk.daemon.vocabularies.require(desk.daemon.windows.folders[0], "o200k_base")
        await check(window, gate, "Nexus: Loading the vocabulary of the model")

    tell_story(tmp_path, story)
