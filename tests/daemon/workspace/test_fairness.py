"""Two windows of one daemon: while one floods, or a folder hangs, the requests of the other go through."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from nexus_context.disk import cancellation
from nexus_daemon.api import tokens
from nexus_daemon.sessions import operations
from support.desk import TIMEOUT_S, Desk, replies, tell_story
from support.talk import Talk, call, tell
from support.waiting import wait_until

FLOOD = 64


class Hang:
    """A job that hangs until `go_on` for what `hangs` chooses; `begun` counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        self.go_on = threading.Event()
        self.begun = 0
        self.hangs: Any = lambda *_: True
        real = getattr(module, name)

        def job(*arguments: Any) -> Any:
            if self.hangs(*arguments):
                self.begun += 1
                assert self.go_on.wait(TIMEOUT_S)
            return real(*arguments)

        monkeypatch.setattr(module, name, job)


def check(desk: Desk, talk: Talk, numbers: range, *, answered: int) -> None:
    """So many of these requests are answered, each once."""
    assert [len(replies(talk, number)) for number in numbers].count(1) == answered
    assert max(len(replies(talk, number)) for number in numbers) <= 1


def test_a_window_that_floods_delays_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hang = Hang(monkeypatch, tokens, "count_texts")
    hang.hangs = lambda params, *_: params.texts == ["slow"]

    async def story(desk: Desk) -> None:
        one, two = await desk.client(), await desk.client()
        flood = range(1, FLOOD + 1)
        for number in flood:
            one.send(call(number, "nexus/tokens/count", {"texts": ["slow"]}))
        answer = await desk.ask(two, 1, "nexus/tokens/count", texts=["red green"])
        assert (answer["total"], hang.begun > 0) == (2, True)
        assert (await desk.ask(two, 2, "nexus/context/layers"))["layers"]
        assert (await desk.ask(two, 3, "nexus/session/list"))["sessions"] == []
        check(desk, one, flood, answered=0)
        hang.go_on.set()
        for number in flood:
            await desk.reply(one, number)
        check(desk, one, flood, answered=FLOOD)

    tell_story(tmp_path, story)


def test_a_folder_that_hangs_delays_no_other_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system whose server is gone: every request that reads a file there hangs."""
    hang = Hang(monkeypatch, operations, "export")

    async def story(desk: Desk) -> None:
        hang.hangs = lambda scope, _: scope.folder.path == desk.tree.path("/a")
        one, two = await desk.client("/a", "/lone"), await desk.client("/a")
        ask = {"format": "jsonl"}
        flood = range(1, 21)
        for number in flood:
            params = {"workspaceFolder": desk.uri("/a"), "session": f"s{number}", **ask}
            one.send(call(number, "nexus/session/export", params))
        lone = {"workspaceFolder": desk.uri("/lone"), "session": "main"}
        message = [{"role": "user", "content": "Hello."}]
        assert await desk.ask(one, 21, "nexus/session/append", messages=message, **lone)
        text = (await desk.ask(one, 22, "nexus/session/export", **lone, **ask))["text"]
        assert "Hello." in text
        layers = await desk.ask(two, 1, "nexus/context/layers")  # of /a, by the other window
        assert layers["layers"] and hang.begun == 4
        check(desk, one, flood, answered=0)
        hang.go_on.set()

    tell_story(tmp_path, story)


def test_a_cancelled_request_ends_in_its_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that only read end at their next check, and their threads are free again."""
    begun, ended, timed_out = threading.Event(), threading.Event(), threading.Event()

    def export(*_: object) -> str:
        begun.set()
        try:
            until = time.monotonic() + TIMEOUT_S
            while time.monotonic() < until:
                cancellation.check()
                time.sleep(0.001)
            timed_out.set()
        finally:
            ended.set()
        return "not cancelled"

    monkeypatch.setattr(operations, "export", export)

    async def story(desk: Desk) -> None:
        talk = await desk.client()
        ask = {"workspaceFolder": desk.uri("/a"), "session": "main", "format": "jsonl"}
        talk.send(call(1, "nexus/session/export", ask))
        await wait_until(begun.is_set)
        talk.send(tell("$/cancelRequest", {"id": 1}))
        assert (await desk.reply(talk, 1))["error"]["message"] == "nexus/session/export was cancelled."
        await wait_until(ended.is_set)
        await wait_until(lambda: desk.daemon.workers.requests.is_idle)
        assert not timed_out.is_set()

    tell_story(tmp_path, story)
