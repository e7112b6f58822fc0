"""A client that does not read is not read either, and loses nothing; what waits for it is bounded."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_daemon import protocol
from nexus_daemon.lsp.link import Limits
from nexus_daemon.lsp.outgoing import MOST, Outbox
from nexus_daemon.protocol import SessionDidChange
from nexus_daemon.workspace.publish import PUBLISH, PublishDiagnosticsParams
from support.talk import HELLO, Message, Talk, call, result, tell
from support.waiting import wait_until, yield_to_loop

NARROW = Limits(unread_high=100, unread_low=50, poll_seconds=1000)
LOG = "window/logMessage"


def check(run: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(run, 10))


def stuck(limits: Limits = NARROW, *messages: Message) -> Talk:
    """A connection whose client says hello, reads the reply, and then reads nothing more."""
    talk = Talk(limits=limits)
    talk.send(HELLO, *messages)
    talk.read()
    talk.writer.stuck = True
    return talk


def echo(number: int) -> Message:
    return call(number, "nexus/echo", {"value": "x" * 60})


def text(number: int) -> Message:
    return result(number, {"value": "x" * 60})


def test_messages_wait_until_the_client_reads() -> None:
    async def run() -> None:
        talk = stuck()
        for number in range(1, 9):
            talk.send(echo(number))
        assert talk.writer.messages() == [text(1), text(2)]  # the second one was one too many
        assert talk.read() == [text(1), text(2)]
        for first in (3, 5, 7):
            await talk.settle()
            assert talk.read() == [text(first), text(first + 1)]
        talk.send(echo(9))
        assert await talk.settle() == [text(9)]

    check(run())


def test_one_answer_may_be_longer_than_what_may_wait() -> None:
    async def run() -> None:
        talk = stuck()
        talk.send(call(1, "nexus/echo", {"value": "x" * 1000}))
        talk.send(echo(2), echo(3))
        assert [each["id"] for each in talk.read()] == [1, 2]
        assert [each["id"] for each in await talk.settle()] == [3]

    check(run())


def test_what_was_asked_before_is_answered_and_other_connections_go_on() -> None:
    async def run() -> None:
        talk, other = stuck(), Talk(limits=NARROW)
        wait = {"seconds": 0.01, "size": 60}
        talk.send(call(1, "nexus/wait", wait), call(2, "nexus/wait", wait), echo(3), echo(4), echo(5))
        other.send(HELLO, echo(1))
        await other.settle()
        assert other.read()[-1] == text(1)
        await talk.settle()
        assert sorted(each["id"] for each in talk.writer.messages()) == [1, 2, 3, 4]
        talk.read()
        assert await talk.settle() == [text(5)]

    check(run())


def test_a_stalled_client_may_leave() -> None:
    async def run(end: str) -> int:
        talk = stuck(Limits(unread_high=100, unread_low=50, poll_seconds=0.01, flush_seconds=0.01))
        talk.send(echo(1), echo(2), echo(3))
        if end == "input":
            talk.link.eof_received()
        elif end == "output":
            talk.writer.abort()
        else:
            talk.link.end(143, "SIGTERM")
        return await talk.link.done

    assert [check(run(end)) for end in ("input", "output", "signal")] == [1, 1, 143]


def test_a_client_that_hangs_for_very_long_is_left() -> None:
    """One that reads anything at all is not."""

    async def run(reads: bool) -> int | None:
        talk = stuck(Limits(unread_high=100, unread_low=50, poll_seconds=0.01, hang_seconds=0.3))
        talk.send(echo(1), echo(2), echo(3))
        if not reads:
            return await talk.link.done
        for _ in range(60):
            await asyncio.sleep(0.01)
            talk.link.wrote()
        assert talk.link.stalled and not talk.link.done.done()
        talk.link.end(0, "over")
        return await talk.link.done

    assert (check(run(False)), check(run(True))) == (1, 0)


# ---------------------------------------------------------------- requests under way


def replies(talk: Talk) -> list[Message]:
    return [each for each in talk.writer.messages()[1:] if "id" in each]


def test_so_many_requests_are_under_way_and_the_others_wait_in_order() -> None:
    async def run() -> None:
        talk = Talk(limits=Limits(in_flight=2, poll_seconds=1000))
        forever = {"seconds": 60}
        talk.send(HELLO, call(1, "nexus/wait", forever), call(2, "nexus/wait", forever))
        talk.send(echo(3), call(4, "nexus/wait", {"seconds": 0}), tell("$/setTrace", {"value": "messages"}))
        talk.send(echo(5))
        await yield_to_loop(10)
        assert (talk.server.protocol.in_flight, len(talk.writer.messages())) == (2, 1)
        talk.send(tell("$/cancelRequest", {"id": 2}))  # it does not wait
        await wait_until(lambda: len(replies(talk)) >= 4)
        assert [each["id"] for each in replies(talk)] == [2, 3, 4, 5]
        assert replies(talk)[0]["error"]["code"] == -32800
        talk.link.end(0, "over")

    check(run())


def test_an_answer_of_the_client_does_not_wait() -> None:
    async def run() -> None:
        talk = Talk(limits=Limits(in_flight=1, poll_seconds=1000))
        talk.send(HELLO, call(1, "nexus/ask", {}), echo(2))
        await wait_until(lambda: talk.writer.messages()[1:])
        talk.send(result(1, [5]))
        assert (await talk.settle())[2:] == [result(1, [5]), text(2)]

    check(run())


def test_exit_and_the_end_of_the_input_do_not_wait() -> None:
    async def run(said: bool) -> list[Message]:
        talk = Talk(limits=Limits(in_flight=1, poll_seconds=1000))
        talk.send(HELLO, call(1, "nexus/wait", {"seconds": 60}), echo(2), tell("nexus/echo", {"value": 1}))
        talk.send({"jsonrpc": "2.0", "id": 3, "method": 7})
        await yield_to_loop()
        if said:
            talk.send(tell("exit"))
        else:
            talk.link.eof_received()
        assert await talk.link.done == 1
        return talk.writer.messages()[1:]

    for end in (True, False):
        replies = [(each["id"], each["error"]["code"]) for each in check(run(end))]
        assert replies == [(1, -32802), (2, -32802), (3, -32600)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["echo", "wait", "note", "read", "pause", "turn"]), max_size=60), st.data())
def test_every_request_gets_one_reply(steps: list[str], data: st.DataObject) -> None:
    """However the client's reading and writing are mixed; and each reader's part of the output is bounded."""

    async def run() -> None:
        talk = stuck(Limits(unread_high=300, unread_low=100, in_flight=3, poll_seconds=1000))
        asked, received = 0, []
        for step in steps:
            if step in ("echo", "wait"):
                asked += 1
                wait = {"seconds": 0, "size": data.draw(st.integers(0, 200))}
                talk.send(echo(asked) if step == "echo" else call(asked, "nexus/wait", wait))
            elif step == "note":
                talk.send(tell("nexus/echo", {"value": 1}))
            elif step == "read":
                received += talk.read()
            elif step == "pause":
                await yield_to_loop()
            else:
                await yield_to_loop(5)
            assert len(talk.writer.data) <= 300 + (1 + 3) * 400

        def is_all_read() -> bool:
            received.extend(talk.read())
            return len(received) >= asked

        await wait_until(is_all_read)
        assert sorted(each["id"] for each in received) == list(range(1, asked + 1))

    check(run())


# ---------------------------------------------------------------- what the daemon says by itself


def test_notifications_wait_and_only_the_newest_is_sent() -> None:
    async def run() -> list[Message]:
        talk = stuck()
        talk.send(echo(1), echo(2))
        for number in range(5_000):
            talk.server.notify(PUBLISH, PublishDiagnosticsParams(f"file:///{number % 3}", [], number))
        assert talk.read() == [text(1), text(2)]
        return [*talk.read(), *await talk.settle()]

    published = check(run())
    assert [each["params"]["version"] for each in published] == [4_997, 4_998, 4_999]
    assert {each["method"] for each in published} == {PUBLISH}


def test_what_waits_for_one_that_never_reads_is_bounded() -> None:
    """Whatever others do meanwhile. What it reads later is the newest of each kind."""
    count, files, sessions = 20_000, 200, 30

    async def run() -> list[Message]:
        talk = stuck()
        talk.send(echo(1), echo(2))
        for number in range(count):
            file, session = f"file:///{number % files}", f"session {number % sessions}"
            talk.server.notify(PUBLISH, PublishDiagnosticsParams(file, [], number))
            talk.server.notify("nexus/session/didChange", changed(session, turn=str(number)))
            usage: Any = None
            cost = protocol.ContextDidChange("file:///a", number, "session", usage, session)
            talk.server.notify("nexus/context/didChange", cost)
            talk.server.notify("nexus/event/published", protocol.EventPublished("file:///a", str(number)))
            talk.server.notify(LOG, {"type": 1, "message": str(number)})
            if number % 500 == 0:
                await asyncio.sleep(0)  # no turn of the loop may be a long one
        assert len(talk.writer.data) < 1_000
        talk.read()
        talk.writer.stuck = False
        return [*talk.read(), *await talk.settle()]

    messages = check(run())
    kinds = [(each["method"], each["params"]) for each in messages]
    assert len(kinds) == files + sessions + 2 + MOST
    versions = [params["version"] for method, params in kinds if method == PUBLISH]
    turns = [int(params["turn"]) for method, params in kinds if method == "nexus/session/didChange"]
    costs = [params for method, params in kinds if method == "nexus/context/didChange"]
    events = [params["id"] for method, params in kinds if method == "nexus/event/published"]
    assert versions == list(range(count - files, count))
    assert turns == list(range(count - sessions, count))
    assert [(cost["revision"], cost.get("session")) for cost in costs] == [(count - 1, None)]
    assert events == [str(count - 1)]


def test_what_is_dropped_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> list[Message]:
        talk = stuck(Limits(unread_high=100, unread_low=1 << 30, poll_seconds=1000))
        talk.send(echo(1), echo(2))
        for number in range(MOST + 7):
            await asyncio.to_thread(talk.server.notify, LOG, {"type": 1, "message": str(number)})
        await talk.settle()
        talk.writer.stuck = False
        talk.read()
        return await talk.settle()

    shown = [int(each["params"]["message"]) for each in check(run())]
    assert shown == list(range(7, MOST + 7))
    assert caplog.messages == [f"dropped 7 notifications {LOG}, as the client did not read"]


def test_a_request_of_ours_waits_for_the_client_to_read() -> None:
    async def run(reads: bool) -> Any:
        talk = stuck()
        talk.send(echo(1), echo(2))
        asked = asyncio.ensure_future(
            talk.server.request("workspace/configuration", {}, list[int], timeout_s=5 if reads else 0.01)
        )
        await yield_to_loop()
        assert len(talk.writer.messages()) == 2
        if not reads:
            with pytest.raises(TimeoutError):
                await asked
            assert len(talk.writer.messages()) == 2
            return None
        talk.read()
        await wait_until(lambda: talk.writer.data)
        assert [each["method"] for each in talk.read()] == ["workspace/configuration"]
        talk.send(result(1, [7]))
        return await asked

    assert (check(run(True)), check(run(False))) == ([7], None)


def changed(session: str, reason: str = "appended", turn: str | None = None) -> SessionDidChange:
    return SessionDidChange("file:///a", session, reason, "other", turn)


def popped(outbox: Outbox) -> list[Any]:
    waiting = []
    while (each := outbox.pop()) is not None:
        waiting.append(each[1])
    return waiting


@pytest.mark.parametrize(
    ("params", "waiting"),
    [
        ([changed("a", turn="1"), changed("b"), changed("a", turn="2")], [1, 2]),
        ([changed("a"), changed("a", "deleted"), changed("a", "created")], [0, 1, 2]),
        ([changed("a", "deleted"), changed("a", "created"), changed("a", "deleted")], [1, 2]),
        ([{"type": 1, "message": "a"}, {"type": 1, "message": "b"}, {"type": 1, "message": "a"}], [1, 2]),
    ],
)
def test_of_one_key_the_newest_waits(params: list[Any], waiting: list[int]) -> None:
    outbox = Outbox()
    for each in params:
        outbox.add(LOG if isinstance(each, dict) else "nexus/session/didChange", each)
    assert len(outbox) == len(waiting)
    assert popped(outbox) == [params[index] for index in waiting]
    assert not len(outbox)


def test_a_context_that_several_sessions_changed_names_none() -> None:
    usage: Any = None
    outbox = Outbox()
    for session in ("a", "b"):
        outbox.add(
            "nexus/context/didChange", protocol.ContextDidChange("file:///a", 1, "session", usage, session)
        )
    assert [each.session for each in popped(outbox)] == [None]


def test_diagnostics_are_never_dropped() -> None:
    outbox = Outbox()
    for number in range(2 * MOST):
        outbox.add(PUBLISH, PublishDiagnosticsParams(f"file:///{number}", []))
        outbox.add("nexus/session/didChange", changed(str(number)))
    assert len(outbox) == 3 * MOST
    assert outbox.dropped == {"nexus/session/didChange": MOST}
