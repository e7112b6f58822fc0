"""The daemon's side of a command of another process: its output, its end, clients that are gone or slow."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from nexus_daemon.shared import command_runner
from nexus_daemon.shared.command_runner import CommandRequest, CommandRunner, Send
from nexus_daemon.shared.hello import Fields

BEAT = b"o 0\n"
FIELDS = Fields(
    [
        ("argument", "check"),
        ("argument", "größe"),
        ("cwd", "/work"),
        ("environ", "A=b"),
        ("stdout", "utf-8 strict 0 0 0 4096"),
        ("stderr", "latin-1 replace 1 1 1 512"),
        ("size", "80 24"),
        ("encoding", "utf-8"),
        ("program", "3.11"),
    ]
)


def check(run: Callable[[CommandRequest, Send], int | None], fields: Fields = FIELDS) -> bytes:
    """Everything that a client receives of a command, after the first beat."""

    async def serve() -> bytes:
        daemon, client = socket.socketpair()
        daemon.setblocking(False)
        with client:
            serving = asyncio.create_task(CommandRunner(run).serve(daemon, fields))
            received = await asyncio.to_thread(receive_all, client)
            await serving
            return received

    received = asyncio.run(serve())
    assert received.startswith(BEAT) or fields is not FIELDS
    return received.removeprefix(BEAT)


def receive_all(client: socket.socket) -> bytes:
    received = b""
    while data := client.recv(65_536):
        received += data
    return received


def test_the_request() -> None:
    requests: list[CommandRequest] = []
    check(lambda request, _: requests.append(request))
    stdout = command_runner.StreamFacts("utf-8", "strict", False, False, False, 4096)
    stderr = command_runner.StreamFacts("latin-1", "replace", True, True, True, 512)
    assert requests == [
        CommandRequest(("check", "größe"), "/work", {"A": "b"}, stdout, stderr, (80, 24), "utf-8", "3.11")
    ]


def test_output_and_exit_code() -> None:
    def run(_: CommandRequest, send: Send) -> int:
        send("o", b"one\n")
        send("e", b"two")
        send("o", b"")
        return 3

    assert check(run) == b"o 4\none\ne 3\ntwox 3\n"


def test_a_command_that_the_client_has_to_run() -> None:
    assert check(lambda _, __: None) == b""


def test_a_command_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    def run(_: CommandRequest, send: Send) -> int:
        send("o", b"half")
        raise ValueError("of Nexus")

    assert check(run) == b"o 4\nhalf"
    assert [(one.levelno, one.getMessage()) for one in caplog.records] == [
        (logging.ERROR, "nexus check failed for another process")
    ]


@pytest.mark.parametrize("missing", ["size", "stdout", "stderr"])
def test_an_incomplete_request(caplog: pytest.LogCaptureFixture, missing: str) -> None:
    fields = Fields(pair for pair in FIELDS.pairs if pair[0] != missing)
    assert check(lambda _, __: 0, fields) == b""
    assert [one.getMessage() for one in caplog.records] == ["a client's command is incomplete"]


def test_more_than_a_socket_holds_to_a_client_that_reads_late() -> None:
    data = bytes(range(256)) * 8192

    def run(_: CommandRequest, send: Send) -> int:
        send("o", data)
        return 0

    assert check(run) == b"o %d\n%sx 0\n" % (len(data), data)


def test_beats_between_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_runner, "BEAT_S", 0.01)

    def run(_: CommandRequest, send: Send) -> int:
        for _turn in range(3):
            threading.Event().wait(0.1)
            send("o", BEAT)
        return 0

    received = check(run)
    assert received.count(BEAT) > 6
    assert received.replace(b"o 4\n" + BEAT, b"|").replace(BEAT, b"") == b"|||x 0\n"


def test_a_client_that_is_gone() -> None:
    is_gone, ended = threading.Event(), threading.Event()

    def run(_: CommandRequest, send: Send) -> int:
        is_gone.wait(10)
        try:
            while True:
                send("o", b"x" * 65_536)
        finally:
            ended.set()

    async def serve() -> None:
        daemon, client = socket.socketpair()
        daemon.setblocking(False)
        serving = asyncio.create_task(CommandRunner(run).serve(daemon, FIELDS))
        await asyncio.sleep(0)
        client.close()
        is_gone.set()
        await asyncio.wait_for(serving, 10)

    asyncio.run(serve())
    assert ended.is_set()


def test_a_daemon_that_is_busy_leaves_the_command_to_the_client() -> None:
    free = threading.Event()

    def run(request: CommandRequest, _: Send) -> int:
        free.wait(10)
        return 0

    async def serve() -> list[bytes]:
        runner = CommandRunner(run)
        tasks: list[asyncio.Task[Any]] = []
        clients: list[socket.socket] = []
        for _ in range(command_runner.MOST_RUNNING + 1):
            daemon, client = socket.socketpair()
            daemon.setblocking(False)
            tasks.append(asyncio.create_task(runner.serve(daemon, FIELDS)))
            clients.append(client)
        await tasks[-1]
        free.set()
        received = [await asyncio.to_thread(receive_all, client) for client in clients]
        await asyncio.gather(*tasks)
        for client in clients:
            client.close()
        return received

    assert asyncio.run(serve()) == [BEAT + b"x 0\n"] * command_runner.MOST_RUNNING + [b""]
