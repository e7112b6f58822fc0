"""Order, cancelling, and requests to the client."""

import asyncio
import errno
from typing import Any

import msgspec
import pytest

from nexus_daemon.lsp import failures
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.lsp.failures import ClientError, DisconnectedError
from support.talk import HELLO, Message, Talk, call, result, tell
from support.waiting import yield_to_loop


def test_order_and_cancelling() -> None:
    seen: list[str] = []

    def register(server: NexusServer) -> None:
        @server.custom("t/slow", lambda: msgspec.Raw)
        async def slow(params: msgspec.Raw) -> str:
            seen.append("slow starts")
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("slow ends")
            return ""

        @server.custom("t/deaf", lambda: msgspec.Raw)
        async def deaf(params: msgspec.Raw) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "finished anyway"
            return ""

        @server.feature("textDocument/didOpen")
        def opened(params: Any) -> None:
            seen.append(f"opened {params.text_document.uri}")

        @server.feature("textDocument/didClose")
        def closed(params: Any) -> None:
            document = server.documents.get(params.text_document.uri)
            seen.append(f"closed with {document.text if document else None}")

    async def run() -> list[Message]:
        talk = Talk(register)
        identifier = {"uri": "u", "version": 2}
        talk.send(
            HELLO,
            call(1, "t/slow", {}),
            tell("textDocument/didOpen", {"textDocument": {**identifier, "languageId": "x", "text": "abc"}}),
            tell("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": "new"}]}),
            tell(
                "textDocument/didChange",
                {"textDocument": {"uri": "other"}, "contentChanges": [{"text": "x"}]},
            ),
            tell("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": 5}]}),
            tell("textDocument/didClose", {"textDocument": identifier}),
            call(2, "t/deaf", {}),
            tell("$/cancelRequest", {"id": "1"}),
            tell("$/cancelRequest", {"id": 1}),
            tell("$/cancelRequest", {"id": 2}),
            tell("$/cancelRequest", {"id": 99}),
            tell("$/other", {"id": 1}),
        )
        received = await talk.settle()
        talk.link.end(0, "over")
        return received[1:]

    received = asyncio.run(run())
    assert sorted(received, key=lambda m: int(m["id"])) == [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {
                "code": -32800,
                "message": "t/slow was cancelled.",
                "data": {"code": "cancelled", "problems": []},
            },
        },
        {
            "jsonrpc": "2.0",
            "id": 2,
            "error": {
                "code": -32800,
                "message": "t/deaf was cancelled.",
                "data": {"code": "cancelled", "problems": []},
            },
        },
    ]
    assert seen == ["slow starts", "opened u", "closed with new", "slow ends"]


def test_an_answer_that_comes_too_late_is_ignored() -> None:
    """The caller is cancelled, or the time is over, and has not had its turn of the loop yet."""

    async def run() -> list[Message]:
        talk = Talk()
        talk.send(HELLO)
        asked = asyncio.ensure_future(talk.server.request("workspace/configuration", {"items": []}))
        await yield_to_loop()
        asked.cancel()
        talk.send(result(1, []), call(2, "nexus/echo", {"value": 1}))
        return (await talk.settle())[2:]

    gone = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
    assert asyncio.run(run()) == [result(2, {"value": 1}), gone]


async def ask(answer: Message | None, *, timeout_s: float | None = None) -> tuple[Any, list[Message]]:
    """Send a request of ours, answer it, and return its outcome and what was sent."""
    talk = Talk()
    talk.send(HELLO)
    task = asyncio.ensure_future(
        talk.server.request("workspace/configuration", {"items": []}, list[int], timeout_s=timeout_s)
    )
    await yield_to_loop()
    if answer is not None:
        talk.send({"jsonrpc": "2.0", "id": "unknown", "result": 1}, {"jsonrpc": "2.0", "id": 1, **answer})
    elif timeout_s is None:
        talk.link.eof_received()
    try:
        outcome: Any = await task
    except (ClientError, DisconnectedError, TimeoutError) as error:
        outcome = f"{type(error).__name__}: {error}"
    return outcome, talk.writer.messages()[1:]


ASKED = {"jsonrpc": "2.0", "id": 1, "method": "workspace/configuration", "params": {"items": []}}


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"result": [1, 2]}, [1, 2]),
        ({"result": ["x"]}, "ClientError: The client's reply: Expected `int`, got `str` - at `$[0]`"),
        ({}, "ClientError: The client's reply: Expected `array`, got `null`"),
        ({"error": {"code": -1, "message": "no"}}, "ClientError: no"),
        ({"error": 5}, "ClientError: The client's reply: Expected `object`, got `int`"),
        (None, "DisconnectedError: The client has gone."),
    ],
)
def test_a_request_of_ours(answer: Message | None, outcome: Any) -> None:
    assert asyncio.run(ask(answer)) == (outcome, [ASKED])


def test_a_request_of_ours_that_nobody_answers() -> None:
    gone = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
    assert asyncio.run(ask(None, timeout_s=0.01)) == ("TimeoutError: ", [ASKED, gone])


def test_a_thread_may_notify() -> None:
    async def run() -> list[Message]:
        talk = Talk()
        talk.send(HELLO)
        await asyncio.to_thread(talk.server.notify, "nexus/x", {"a": float("nan")})
        return (await talk.settle())[1:]

    assert asyncio.run(run()) == [{"jsonrpc": "2.0", "method": "nexus/x", "params": {"a": None}}]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EMFILE, "x"), "too many files are open"),
        (OSError(errno.ENFILE, "x"), "too many files are open"),
        (ModuleNotFoundError("x", name="nexus_daemon.api.x"), "Nexus was updated while its daemon ran"),
        (ImportError("x", name="nexus_context"), "Nexus was updated while its daemon ran"),
        (ModuleNotFoundError("x", name="tiktoken"), "ModuleNotFoundError. See the log."),
        (ImportError("x"), "ImportError. See the log."),
        (OSError(errno.EIO, "x"), "OSError. See the log."),
    ],
)
def test_what_a_person_can_do_about_a_failure(error: Exception, expected: str) -> None:
    failure = failures.failure_of(error, "nexus/x", failures.describe_problem)
    assert failure.message.startswith(f"nexus/x failed: {expected}")
