"""One daemon and its clients, in memory: what is shared, what belongs to one, and what threads may do."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nexus_context.errors import RequestError
from nexus_context.folder import loading
from nexus_context.turn import models
from nexus_daemon.server import build
from nexus_daemon.sessions import usage
from nexus_daemon.windows.daemon import Daemon
from support.desk import CONFIG, GOOD, TIMEOUT_S, WRONG, Desk, replies, tell_story
from support.talk import HELLO, Talk, call, tell
from support.waiting import wait_until, yield_to_loop


@contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Work on the usage of a session begins (first event) and waits at its start for the second event."""
    begun, go_on = threading.Event(), threading.Event()
    measure = usage.measure_scope

    def slow(scope: Any) -> Any:
        begun.set()
        assert go_on.wait(TIMEOUT_S)
        return measure(scope)

    with monkeypatch.context() as patch:
        patch.setattr(usage, "measure_scope", slow)
        yield begun, go_on
        go_on.set()


def test_a_cancelled_request_keeps_its_session_until_its_thread_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        messages = [{"role": "user", "content": f"number {n}"} for n in range(50)]
        with held_up(monkeypatch) as (begun, go_on):
            append = {"workspaceFolder": desk.uri("/a"), "messages": messages}
            talk.send(call(1, "nexus/session/append", append))
            assert await asyncio.to_thread(begun.wait, TIMEOUT_S)
            talk.send(tell("$/cancelRequest", {"id": 1}), tell("$/cancelRequest", {"id": 1}))
            assert (await desk.reply(talk, 1))["error"]["code"] == -32800
            talk.send(call(2, "nexus/session/messages", {"workspaceFolder": desk.uri("/a")}))
            await desk.ask(talk, 6, "nexus/status")
            assert replies(talk, 2) == []
            go_on.set()
            assert len((await desk.reply(talk, 2))["result"]["messages"]) == 51
        cost = await desk.ask(talk, 3, "nexus/context/usage")
        await desk.ask(talk, 4, "nexus/session/clear")
        again = await desk.ask(talk, 5, "nexus/session/append", messages=messages)
        assert cost["total"] == again["usage"]["total"]
        folder = desk.folders.at(desk.uri("/a"))
        manager = folder.conversations.peek("main").manager
        _, counter = models.model_of(await folder.current(), None)
        assert (len(manager.history.sums(counter)), len(manager.history.encoded())) == (52, 51)

    tell_story(tmp_path, story)


def test_the_end_does_not_wait_for_a_thread(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        go_on.wait()

    async def story(desk: Desk) -> None:
        task = asyncio.create_task(desk.daemon.workers.run(hang))
        assert await asyncio.to_thread(begun.wait, TIMEOUT_S)
        task.cancel()
        await yield_to_loop()
        assert not task.done()
        await desk.daemon.close()
        await asyncio.wait([task], timeout=TIMEOUT_S)
        assert task.cancelled()

    try:
        tell_story(tmp_path, story)
    finally:
        go_on.set()


def test_each_client_has_its_own_text_of_a_file(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        one, two = await desk.client(), await desk.client()
        desk.open(one, CONFIG, GOOD)
        await wait_until(lambda: desk.shown(one, CONFIG) == [])
        desk.open(two, CONFIG, WRONG)
        await wait_until(lambda: desk.shown(two, CONFIG))
        assert desk.shown(one, CONFIG) == []
        desk.close(two, CONFIG)
        await wait_until(lambda: desk.shown(two, CONFIG) == [])
        assert desk.folders.overlays == {desk.tree.path(CONFIG): GOOD}

    tell_story(tmp_path, story)


@pytest.mark.parametrize("how", ["end", "close"])
def test_a_client_takes_along_what_it_brought(tmp_path: Path, how: str) -> None:
    async def story(desk: Desk) -> None:
        one, two = await desk.client("/a"), await desk.client("/a", "/home")
        desk.open(two, CONFIG, WRONG)
        await wait_until(lambda: desk.shown(two, CONFIG))
        desk.open(two, "/lone/.nexus3/config.json", WRONG)
        assert len(desk.daemon.windows.folders) == 4
        if how == "end":
            two.send(tell("exit"))
        else:
            two.link.eof_received()
        await wait_until(lambda: len(desk.daemon.windows.clients) == 1)
        assert desk.shown(one, CONFIG) is None
        assert [folder.path for folder in desk.daemon.windows.folders] == [desk.tree.path("/a")]
        assert (desk.folders.overlays, len(desk.daemon.windows.clients)) == ({}, 1)
        assert await desk.ask(one, 2, "nexus/context/usage") is not None

    tell_story(tmp_path, story)


def test_no_daemon_starts_after_its_client_has_gone(tmp_path: Path) -> None:
    started: list[str] = []

    async def story(desk: Desk) -> None:
        def start() -> Daemon:
            started.append("daemon")
            return desk.daemon

        talk = Talk(partial(build, start))
        talk.send(HELLO)
        talk.link.eof_received()
        await talk.link.done
        await yield_to_loop(5)

    tell_story(tmp_path, story)
    assert started == []


def test_a_lone_file_is_checked_while_a_folder_is_still_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder of its own at once; in a folder that turns out not to read it after that has loaded."""
    lone, inside = "/lone/.nexus3/config.json", "/a/deep/.nexus3/config.json"
    go_on = threading.Event()
    load = loading.load

    def slow(folder: str, *args: Any, **more: Any) -> Any:
        assert not folder.endswith("/a") or go_on.wait(TIMEOUT_S)
        return load(folder, *args, **more)

    monkeypatch.setattr("nexus_context.folder.loading.load", slow)

    async def story(desk: Desk) -> None:
        talk = Talk(partial(build, lambda: desk.daemon))
        talk.send({**HELLO, "params": {**HELLO["params"], "rootUri": desk.uri("/a")}})
        await yield_to_loop()
        desk.open(talk, lone, WRONG)
        desk.open(talk, inside, WRONG)
        await wait_until(lambda: desk.shown(talk, lone))
        assert desk.shown(talk, inside) is None
        go_on.set()
        await wait_until(lambda: desk.shown(talk, inside))

    tell_story(tmp_path, story)


def changes(talk: Talk) -> list[str]:
    said = [one["params"] for one in talk.writer.messages() if one.get("method") == "nexus/context/didChange"]
    return [one["reason"] for one in said]


def test_of_several_reasons_the_first_is_told_once_it_is_quiet(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await wait_until(lambda: changes(talk))
        folder = desk.folders.at(desk.uri("/a"))
        for reason in ("session", "config", "tokens", "disk"):
            folder.announce(reason)
        assert changes(talk) == ["folder"]
        await wait_until(lambda: changes(talk)[1:])
        assert changes(talk) == ["folder", "config"]

    tell_story(tmp_path, story)


def test_who_never_stops_typing_is_told_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_daemon.windows.live_folder.PATIENCE_S", 0.1)

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await wait_until(lambda: changes(talk))
        folder = desk.folders.at(desk.uri("/a"))

        def type_on() -> list[str]:
            folder.announce("config")
            return changes(talk)[1:]

        await wait_until(type_on)

    tell_story(tmp_path, story)


def test_nothing_is_told_about_a_folder_that_is_not_read_or_gone(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        await wait_until(lambda: changes(talk))
        folder = desk.folders.at(desk.uri("/a"))
        desk.folders.add(desk.uri("/home"))
        desk.folders.at(desk.uri("/home")).announce("tokens")
        folder.announce("config")
        talk.send(
            tell(
                "workspace/didChangeWorkspaceFolders",
                {"event": {"added": [], "removed": [{"uri": desk.uri("/a"), "name": ""}]}},
            )
        )
        with pytest.raises(RequestError, match="was removed"):
            await folder.current()
        await wait_until(lambda: changes(talk)[1:])  # the first of /home
        desk.folders.at(desk.uri("/home")).announce("config")
        await wait_until(lambda: changes(talk)[2:])  # later than that of /a would be
        assert changes(talk) == ["folder", "folder", "config"]

    tell_story(tmp_path, story)
