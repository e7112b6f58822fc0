"""Progress of slow work: begun late, ended always, cancellable, and never a burden on a client."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from nexus_daemon.api.methods import METHODS
from nexus_daemon.lsp import progress
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.server import title_of
from support.talk import HELLO, Message, Talk, call, result, tell
from support.waiting import wait_until, yield_to_loop

SHOWS = {**HELLO, "params": {**HELLO["params"], "capabilities": {"window": {"workDoneProgress": True}}}}
TITLE = "Nexus: Working"


class Slow:
    """A server whose `t/slow` ends when `go_on` is set, or fails."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.fails = False
        self.cancelled = False
        self.begun = asyncio.Event()

    def register(self, server: NexusServer) -> None:
        @server.custom("t/slow", lambda: msgspec.Raw, title=TITLE)
        async def slow(_: msgspec.Raw) -> str:
            progress.report("first step")
            self.begun.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            if self.fails:
                raise RuntimeError
            return "done"


def check(
    story: Callable[[Talk, Slow], Awaitable[None]],
    expected: list[Message],
    monkeypatch: pytest.MonkeyPatch,
    *,
    hello: Message = SHOWS,
    delay_s: float = 0.0,
) -> None:
    """After `initialize`, a story with a client writes these messages."""
    monkeypatch.setattr(progress, "DELAY_S", delay_s)

    async def run() -> list[Message]:
        slow = Slow()
        talk = Talk(slow.register)
        talk.send(hello)
        await yield_to_loop(5)
        talk.read()
        await story(talk, slow)
        messages = await talk.settle()
        talk.link.end(0, "over")
        return messages

    assert asyncio.run(run()) == expected


def told(token: object, kind: str, **value: object) -> Message:
    return tell("$/progress", {"token": token, "value": {"kind": kind, **value}})


def begin(token: object) -> Message:
    return told(token, "begin", title=TITLE, cancellable=True, message="first step")


async def written(talk: Talk, method: str) -> None:
    await wait_until(lambda: [one for one in talk.writer.messages() if one.get("method") == method])


CREATE = call(1, progress.CREATE, {"token": "nexus-1"})
CANCELLED = {
    "jsonrpc": "2.0",
    "id": 7,
    "error": {
        "code": -32800,
        "message": "t/slow was cancelled.",
        "data": {"code": "cancelled", "problems": []},
    },
}


@pytest.mark.parametrize("token", ["mine", 5])
def test_the_token_of_the_request(monkeypatch: pytest.MonkeyPatch, token: object) -> None:
    async def story(talk: Talk, slow: Slow) -> None:
        talk.send(call(7, "t/slow", {"workDoneToken": token}))
        await written(talk, "$/progress")
        slow.go_on.set()

    check(story, [begin(token), told(token, "end"), result(7, "done")], monkeypatch, hello=HELLO)


def test_a_token_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(talk: Talk, slow: Slow) -> None:
        talk.send(call(7, "t/slow", {}))
        await written(talk, progress.CREATE)
        talk.send(result(1, None))
        await written(talk, "$/progress")
        slow.go_on.set()

    expected = [CREATE, begin("nexus-1"), told("nexus-1", "end"), result(7, "done")]
    check(story, expected, monkeypatch)


def test_a_client_that_creates_no_token_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(talk: Talk, slow: Slow) -> None:
        talk.send(call(7, "t/slow", {}))
        await written(talk, progress.CREATE)
        talk.send({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}})
        slow.go_on.set()

    check(story, [CREATE, result(7, "done")], monkeypatch)


@pytest.mark.parametrize(("hello", "delay_s"), [(HELLO, 0.0), (SHOWS, 60.0)], ids=["not declared", "quick"])
def test_nothing_is_shown(monkeypatch: pytest.MonkeyPatch, hello: Message, delay_s: float) -> None:
    async def story(talk: Talk, slow: Slow) -> None:
        talk.send(call(7, "t/slow", {}))
        await slow.begun.wait()
        await yield_to_loop(5)
        slow.go_on.set()

    check(story, [result(7, "done")], monkeypatch, hello=hello, delay_s=delay_s)


def test_it_ends_with_a_failure(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def story(talk: Talk, slow: Slow) -> None:
        slow.fails = True
        talk.send(call(7, "t/slow", {"workDoneToken": 1}))
        await written(talk, "$/progress")
        slow.go_on.set()

    error = {
        "code": -32603,
        "message": "t/slow failed: RuntimeError. See the log.",
        "data": {"code": "internal-error", "problems": []},
    }
    check(story, [begin(1), told(1, "end"), {"jsonrpc": "2.0", "id": 7, "error": error}], monkeypatch)
    assert [record.message for record in caplog.records] == ["the handler of t/slow failed"]


@pytest.mark.parametrize(
    "cancellation",
    [tell("$/cancelRequest", {"id": 7}), tell("window/workDoneProgress/cancel", {"token": 1})],
    ids=["of the request", "of the progress"],
)
def test_cancelling(monkeypatch: pytest.MonkeyPatch, cancellation: Message) -> None:
    async def story(talk: Talk, slow: Slow) -> None:
        talk.send(call(7, "t/slow", {"workDoneToken": 1}))
        await written(talk, "$/progress")
        talk.send(tell("window/workDoneProgress/cancel", {"token": "another"}), cancellation, cancellation)
        await wait_until(lambda: slow.cancelled)

    check(story, [begin(1), told(1, "end"), CANCELLED], monkeypatch)


def test_a_client_that_reads_late_learns_nothing_of_work_that_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(talk: Talk, slow: Slow) -> None:
        talk.link._writable.clear()  # noqa: SLF001 - it has too much unread
        protocol = talk.server.protocol
        first, second = (protocol.work_progress.begin(name, token=name) for name in ("first", "second"))
        await yield_to_loop(5)
        first.report("a step")
        first.end()
        first.end()
        second.report("a step")
        talk.link.wrote()
        second.end()

    begun = told("second", "begin", title="second", message="a step")
    check(story, [begun, told("second", "end")], monkeypatch)


def test_a_connection_that_ends_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(talk: Talk, slow: Slow) -> None:
        talk.send(call(7, "t/slow", {}))
        await written(talk, progress.CREATE)
        talk.read()
        talk.link.eof_received()
        await wait_until(lambda: slow.cancelled)
        await yield_to_loop(5)
        # the cancellation of `create`, and the one reply
        assert [one.get("method", one.get("id", "")) for one in talk.writer.messages()] == [
            7,
        ]
        talk.writer.forget()

    check(story, [], monkeypatch)


def work_in_progress() -> list[progress.WorkProgress]:
    return [one for one in gc.get_objects() if isinstance(one, progress.WorkProgress)]


@pytest.mark.parametrize("params", [{}, {"workDoneToken": "mine"}])
def test_a_request_that_has_its_reply_is_freed_at_once(
    monkeypatch: pytest.MonkeyPatch, params: dict[str, object]
) -> None:
    async def story(talk: Talk, slow: Slow) -> None:
        slow.go_on.set()
        talk.send(call(7, "t/slow", params))
        await talk.settle()
        await yield_to_loop(5)
        assert [one for one in work_in_progress() if one not in before] == []

    gc.collect()
    before = work_in_progress()  # of tests that were cut off
    gc.disable()  # only cycles need it
    try:
        check(story, [result(7, "done")], monkeypatch, delay_s=60.0)
    finally:
        gc.enable()


def test_every_request_has_a_title() -> None:
    assert [method for method in METHODS if title_of(method) == "Nexus: Working"] == []


def test_a_title_for_people() -> None:
    assert title_of("nexus/session/search") == "Nexus: Searching conversations"
    assert title_of("nexus/session/messages") == "Nexus: Reading the conversation"


@pytest.mark.parametrize(
    ("raw", "token"),
    [
        (b'{"a": 1, "workDoneToken": "x"}', "x"),
        (b'{"workDoneToken": 3}', 3),
        (b'{"a": {"workDoneToken": "inner"}}', None),
        (b'{"workDoneToken": [1]}', None),
        (b'["workDoneToken"]', None),
        (b"null", None),
        (b'{"a": "' + b"x" * 100_000 + b'", "workDoneToken": "late"}', "late"),
        (b'{"workDoneToken": "early", "a": "' + b"x" * 100_000 + b'"}', "early"),
    ],
)
def test_tokens(raw: bytes, token: Any) -> None:
    assert progress.token_of(msgspec.Raw(raw)) == token
