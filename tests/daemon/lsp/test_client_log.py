"""A warning goes to the client that it concerns, and to all where it concerns the daemon."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nexus_daemon.lsp import serving
from nexus_daemon.lsp.client_log import ClientLog
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.lsp.lsp_types import InitializeParams
from nexus_daemon.process.logs import process_log
from nexus_daemon.workspace.workers import Workers
from support.talk import HELLO, Talk, call, tell
from support.waiting import wait_until, yield_to_loop

logger = logging.getLogger("nexus_daemon.test")
Log = list[list[str]]


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    log = ClientLog()
    before = [(name, logging.getLogger(name).level) for name in process_log.LOGGERS]
    logging.getLogger().addHandler(log)
    yield
    logging.getLogger().removeHandler(log)
    for name, level in before:
        logging.getLogger(name).setLevel(level)


def register(server: NexusServer) -> None:
    """Handlers that log at each moment of a request's life."""
    workers = Workers(lambda: None)
    later: set[asyncio.Task[None]] = set()

    @server.feature("initialize")
    def initialize(params: InitializeParams) -> None:
        asyncio.get_running_loop().call_soon(logger.warning, "daemon begins")

    @server.custom("nexus/now", lambda: msgspec.Raw)
    def now(_: msgspec.Raw) -> dict[str, Any]:
        logger.warning("now")
        return {}

    @server.custom("nexus/later", lambda: msgspec.Raw)
    async def waiting(_: msgspec.Raw) -> dict[str, Any]:
        await asyncio.sleep(0)
        logger.warning("later")
        return {}

    @server.custom("nexus/thread", lambda: msgspec.Raw)
    async def thread(_: msgspec.Raw) -> dict[str, Any]:
        await workers.run(logger.warning, "thread")
        workers.close()
        return {}

    @server.custom("nexus/after", lambda: msgspec.Raw)
    def after(_: msgspec.Raw) -> dict[str, Any]:
        async def go_on() -> None:
            await asyncio.sleep(0)
            logger.warning("after")

        task = asyncio.get_running_loop().create_task(go_on())
        later.add(task)
        task.add_done_callback(later.discard)
        return {}


def check(story: Callable[[Talk, Talk], Awaitable[None]]) -> Log:
    """What each of two clients is told in a story."""

    async def run() -> Log:
        talks = [Talk(register) for _ in range(2)]
        for talk in talks:
            talk.send(HELLO)
        await yield_to_loop()
        greeted = [text for talk in talks for message in talk.read() if (text := said(message))]
        assert greeted == ["daemon begins"] * 4  # what goes on afterwards concerns everybody
        await story(*talks)
        for talk in talks:
            await talk.settle()
        told = [[said(message) for message in talk.read()] for talk in talks]
        for talk in talks:
            talk.link.end(0, "end")
        return [[text for text in texts if text] for texts in told]

    return asyncio.run(run())


def said(message: dict[str, Any]) -> str:
    params = message.get("params", {})
    kinds = {"window/logMessage": "", "$/logTrace": "trace: "}
    method = message.get("method")
    return kinds[method] + params["message"] if method in kinds else ""


async def ask(method: str, first: Talk, _: Talk) -> None:
    first.send(call(1, method, {}))
    await first.settle()
    await yield_to_loop(5)


@pytest.mark.parametrize(
    ("method", "log"),
    [
        ("nexus/now", [["now"], []]),
        ("nexus/later", [["later"], []]),
        ("nexus/thread", [["thread"], []]),
        ("nexus/after", [["after"], ["after"]]),
        ("nexus/none", [[], []]),
    ],
)
def test_who_is_told(method: str, log: Log) -> None:
    assert check(partial(ask, method)) == log


def test_what_concerns_the_daemon_is_told_to_all() -> None:
    async def story(first: Talk, second: Talk) -> None:
        logger.warning("all")

    assert check(story) == [["all"], ["all"]]


def test_a_notification_concerns_its_client() -> None:
    async def story(first: Talk, second: Talk) -> None:
        change = {"textDocument": {"uri": "file:///x", "version": 1}, "contentChanges": []}
        second.send(tell("textDocument/didChange", change))

    assert check(story) == [[], ["ignored a change of file:///x, which is not open"]]


def test_an_ended_connection_is_told_nothing() -> None:
    async def story(first: Talk, second: Talk) -> None:
        first.link.end(0, "it left")
        logger.warning("all")

    assert check(story) == [[], ["all"]]


def test_verbose_is_for_one_connection() -> None:
    async def story(first: Talk, second: Talk) -> None:
        second.send(tell("$/setTrace", {"value": "verbose"}))
        logger.debug("detail")
        second.send(tell("$/setTrace", {"value": "off"}))
        logger.debug("none")

    assert check(story) == [[], ["trace: DEBUG nexus_daemon.test: detail"]]


def test_verbose_tells_nothing_of_other_connections() -> None:
    async def story(first: Talk, second: Talk) -> None:
        second.send(tell("$/setTrace", {"value": "verbose"}))
        first.send(call(1, "nexus/now", {}))

    assert check(story) == [["now"], []]


@pytest.mark.parametrize("value", ["off", "messages", "verbose", "loud"])
def test_levels_of_trace(value: str) -> None:
    """`messages` tells how long each request took, `verbose` what is logged, too."""

    async def story(first: Talk, second: Talk) -> None:
        first.send(tell("$/setTrace", {"value": value}))
        first.send(call(1, "nexus/later", {}))
        await first.settle()

    first, second = check(story)
    told = [text.split(" took ")[0].split(" after ")[0] for text in first]
    took = "trace: nexus/later (1)"
    debug = "trace: DEBUG nexus_daemon.lsp.dispatch: nexus/later: ok"
    expected = {"messages": ["later", took], "verbose": ["later", took, debug]}
    assert (told, second) == (expected.get(value, ["later"]), [])


def test_the_number_of_a_connection_is_in_the_log(tmp_path: Path) -> None:
    numbers: list[int | None] = []

    class Numbers(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.msg in ("now", "all"):
                numbers.append(serving.current_number())

    async def story(first: Talk, second: Talk) -> None:
        for talk in (first, second):
            talk.send(call(1, "nexus/now", {}))
        logger.warning("all")
        await wait_until(lambda: len(numbers) == 3)

    root, handler = logging.getLogger(), Numbers()
    root.addHandler(handler)
    try:
        check(story)
    finally:
        root.removeHandler(handler)
    assert numbers[0] is not None
    assert numbers == [numbers[0], numbers[0] + 1, None]
