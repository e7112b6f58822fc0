"""Folders that take long: they end, they say so, and no other folder waits for them."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexus_context.disk.deadline import Deadline
from nexus_context.folder import loading
from nexus_daemon.workspace import reload as reloading
from support.desk import TIMEOUT_S, Desk, published, tell_story
from support.talk import Talk, call
from support.waiting import wait_until

HOSTILE = 20


def burning(monkeypatch: pytest.MonkeyPatch, is_hostile: Callable[[str], bool]) -> set[str]:
    """Loads of these folders compute without an end; of which one has begun, and which had two at a time."""
    begun: set[str] = set()
    running: list[str] = []
    load = loading.load

    def slow(folder: str, *args: Any, deadline: Deadline | None = None, **more: Any) -> Any:
        if is_hostile(folder):
            begun.add(f"{folder} a second time" if folder in running else folder)
            running.append(folder)
            try:
                while deadline is not None:
                    sum(range(1000))
                    deadline.check(f"{folder}/big")
            finally:
                running.remove(folder)
        return load(folder, *args, deadline=deadline, **more)

    monkeypatch.setattr(loading, "load", slow)
    return begun


def test_a_clean_folder_is_answered_beside_many_that_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = burning(monkeypatch, lambda folder: "hostile" in folder)
    monkeypatch.setattr(reloading, "LOAD_S", 60.0)

    async def story(desk: Desk) -> None:
        talk = await desk.client("/a")
        for number in range(HOSTILE):
            desk.folders.add(desk.uri(f"/hostile{number}"))
        await wait_until(lambda: len(begun) >= HOSTILE)
        desk.folders.add(desk.uri("/lone"))
        for message_id, folder in ((1, "/lone"), (2, "/a")):
            talk.send(call(message_id, "nexus/context/preview", {"workspaceFolder": desk.uri(folder)}))
            assert "text" in (await desk.reply(talk, message_id))["result"]
        threads = [one for one in threading.enumerate() if one.name.startswith("nexus-load")]
        # one a folder; a pool starts another one where a thread has answered and is not back yet
        assert len(threads) <= HOSTILE + 2 * 2
        assert len(begun) == HOSTILE
        for number in range(HOSTILE):  # which ends their threads, too
            desk.folders.remove(desk.uri(f"/hostile{number}"))

    tell_story(tmp_path, story)


def test_a_folder_that_takes_too_long_keeps_its_last_state_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = False
    burning(monkeypatch, lambda _: hostile)

    async def story(desk: Desk) -> None:
        nonlocal hostile
        talk = await desk.client("/a")
        folder = desk.folders.at(desk.uri("/a"))
        revisions = [(await asyncio.wait_for(folder.current(), TIMEOUT_S)).revision]
        hostile = True
        monkeypatch.setattr(reloading, "LOAD_S", 0.05)
        for _ in range(2):  # the second time there is nothing new to say
            desk.folders.changed(None)
            revisions.append((await asyncio.wait_for(folder.current(), TIMEOUT_S)).revision)
        path = desk.uri("/a/big")
        late = await wait_until(lambda: [one for one in published(talk) if one["params"]["uri"] == path])
        (shown,) = late[-1]["params"]["diagnostics"]
        assert (shown["code"], shown["severity"]) == ("layer.overdue", 1)
        assert "stopped here after 0.05 s" in shown["message"]
        talk.send(call(1, "nexus/context/preview", {"workspaceFolder": desk.uri("/a")}))
        assert "A." in (await desk.reply(talk, 1))["result"]["text"]
        await wait_until(lambda: told(talk, revisions[1]))
        hostile = False
        monkeypatch.setattr(reloading, "LOAD_S", 30.0)
        desk.folders.changed(None)
        revisions.append((await asyncio.wait_for(folder.current(), TIMEOUT_S)).revision)
        assert desk.shown(talk, "/a/big") == []
        first = revisions[0]  # what is kept by revision must never be taken for what another one had
        assert revisions == [first, first + 1, first + 1, first + 2]
        await wait_until(lambda: told(talk, revisions[-1]))

    def told(talk: Talk, revision: int) -> list[Any]:
        """Where the client was told that the context has this revision."""
        news = (one for one in talk.writer.messages() if one.get("method") == "nexus/context/didChange")
        return [one for one in news if one["params"]["revision"] == revision]

    tell_story(tmp_path, story)


def test_a_folder_that_was_never_loaded_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    burning(monkeypatch, lambda folder: folder.endswith("lone"))

    async def story(desk: Desk) -> None:
        talk = await desk.client("/a")
        monkeypatch.setattr(reloading, "LOAD_S", 0.05)
        desk.folders.add(desk.uri("/lone"))
        talk.send(call(1, "nexus/context/preview", {"workspaceFolder": desk.uri("/lone")}))
        error = (await desk.reply(talk, 1))["error"]
        assert error["data"]["code"] == "folder-unreadable"
        assert "could not be loaded within 0.05 s: loading stopped at" in error["message"]
        shown = [one for one in talk.writer.messages() if one.get("method") == "window/showMessage"]
        assert "it has no context yet" in json.dumps(shown)

    tell_story(tmp_path, story)
