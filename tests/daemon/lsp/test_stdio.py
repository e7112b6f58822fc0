"""A real server process on stdio: what only pipes, processes and time can show."""

import json
import os
import random
import signal
import socket
import string
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.client import Client, ReplyError, frame

TESTS = Path(__file__).parents[2]
SERVER = (sys.executable, "-m", "support.server")
FOLDER = {"workspaceFolder": "u"}


def check(*limits: str) -> Client:
    """Start a server and say hello."""
    client = start(*limits)
    client.initialize()
    return client


def start(*limits: str) -> Client:
    return Client([*SERVER, *limits], cwd=TESTS)


def test_a_session() -> None:
    with check() as client:
        item = {"uri": "u", "languageId": "json", "version": 1, "text": "a\u2028b\r\n😀x"}
        client.notify("textDocument/didOpen", {"textDocument": item})
        spot = {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 3}}
        changes = [{"range": spot, "text": "\ud83d"}, {"range": {**spot, "end": spot["start"]}, "text": "y"}]
        client.notify(
            "textDocument/didChange", {"textDocument": {"uri": "u", "version": 2}, "contentChanges": changes}
        )
        assert client.request("nexus/text", FOLDER) == "a\u2028b\r\n😀y\ufffd"
        position = {"textDocument": {"uri": "u"}, "position": {"line": 0, "character": 1}}
        assert client.request("textDocument/hover", position)["contents"]["value"] == "a\u2028b\r\n😀y\ufffd"
        asked = client.send_request("nexus/ask", {})
        client.respond(client.wait_method("workspace/configuration")["id"], [1, 2])
        assert client.wait_reply(asked)["result"] == [1, 2]
        assert client.stop() == []


def test_print_does_not_reach_the_wire() -> None:
    with check() as client:
        client.request("nexus/odd", {})
        assert client.stop() == []
        assert "this is no frame" in client.stderr


def test_failures_are_told_without_their_text() -> None:
    with check() as client:
        with pytest.raises(ReplyError, match="nexus/crash failed: ZeroDivisionError"):
            client.request("nexus/crash", {})
        told = client.wait_method("window/logMessage")["params"]
        assert told == {"type": 1, "message": "the handler of nexus/crash failed"}
        assert client.stop() == []
        assert "ZeroDivisionError: secret" in client.stderr


def test_trace() -> None:
    with check() as client:
        client.notify("$/setTrace", {"value": "messages"})
        client.request("nexus/echo", {"value": "private"})
        assert client.wait_method("$/logTrace")["params"]["message"].startswith("nexus/echo (2) took ")
        client.notify("$/setTrace", {"value": "off"})
        assert client.stop() == []


def test_frames_do_not_mix() -> None:
    rand = random.Random(5)  # noqa: S311
    sizes = [rand.choice([0, 10, 1000, 100_000, 400_000]) for _ in range(50)]
    with check() as client:
        ids = [
            client.send_request("nexus/wait", {"seconds": rand.random() / 20, "size": size}) for size in sizes
        ]
        replies = [client.wait_reply(message_id)["result"] for message_id in ids]
        assert [len(reply["text"]) for reply in replies] == sizes
        assert client.stop() == []


def test_two_megabytes_both_ways() -> None:
    text = "".join(random.Random(1).choices(string.printable + "é😀", k=2_000_000))  # noqa: S311
    with check() as client:
        assert client.request("nexus/echo", {"value": {"text": text}}) == {"value": {"text": text}}
        command = {"command": "nexus.echo", "arguments": [{"value": [text]}]}
        assert client.request("workspace/executeCommand", command) == {"value": [text]}
        assert client.stop() == []


def test_bytes_one_by_one() -> None:
    with check() as client:
        for byte in frame({"jsonrpc": "2.0", "id": 99, "method": "nexus/echo", "params": {"value": 1}}):
            client.send_bytes(bytes([byte]))
        assert client.wait_reply(99)["result"] == {"value": 1}
        assert client.stop() == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"Content-Length: 5\n\n", "a header line does not end with CRLF"),
        (b"Content-Length: -5\r\n", "Content-Length is not a number of bytes"),
        (b"Content-Length: 1000000000000\r\n", "the message is longer than 33554432 bytes"),
        (b"POST /nexus HTTP/1.1\r\nHost: x\r\n", "a header line is not `Name: value`"),
    ],
)
def test_a_malformed_header_ends_it(data: bytes, why: str) -> None:
    with check() as client:
        client.send_bytes(data)
        assert client.wait_exit() == 1
        told = [
            {
                "jsonrpc": "2.0",
                "method": "window/logMessage",
                "params": {"type": 1, "message": f"closing the connection: {why}"},
            }
        ]
        assert client.unread == told
        assert why in client.stderr
    with start() as client:
        client.send_bytes(data)
        assert (client.wait_exit(), client.unread) == (1, [])
        assert why in client.stderr


@pytest.mark.parametrize(("polite", "code"), [(True, 0), (False, 1)])
def test_end_of_input(polite: bool, code: int) -> None:
    with check() as client:
        if polite:
            client.request("shutdown")
        client.close_input()
        assert (client.wait_exit(), client.unread) == (code, [])


def test_exit_without_shutdown() -> None:
    with check() as client:
        client.notify("exit")
        assert (client.wait_exit(), client.unread) == (1, [])


def test_a_message_cut_off() -> None:
    with check() as client:
        client.send_bytes(b"Content-Length: 50\r\n\r\n{}")
        client.close_input()
        assert client.wait_exit() == 1
        assert "the input ended inside a message" in client.stderr


def test_open_requests_are_answered_at_the_end() -> None:
    with check() as client:
        waiting = client.send_request("nexus/wait", {"seconds": 60})
        client.request("shutdown")
        client.notify("exit")
        assert client.wait_exit() == 0
        assert client.wait_reply(waiting)["error"]["code"] == -32802


def test_the_clients_process_is_watched() -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with start('{"poll_seconds": 0.1}') as client:
        client.initialize(processId=parent.pid)
        parent.communicate(b"\n")
        assert client.wait_exit() == 1
        assert f"process {parent.pid} of the client is dead" in client.stderr


def test_a_process_that_cannot_be_seen_is_not_watched() -> None:
    with start('{"poll_seconds": 0.05}') as client:
        client.initialize(processId=2**22 + 5)
        client.request("nexus/wait", {"seconds": 0.2})  # several polls later, by the server's clock
        assert client.stop() == []


MIB = 1 << 20


def test_a_client_that_does_not_read_for_a_while() -> None:
    """It is not read either; then it reads, and every reply arrives."""
    size, count = 200_000, 1_000
    with silent() as server:
        requests = [request(n, "nexus/wait", {"seconds": 0, "size": size}) for n in range(1, count)]
        writer = threading.Thread(target=write, args=(server, [HELLO, *requests]))
        writer.start()
        at_rest(lambda: memory_of(server.pid, "VmHWM"))
        assert memory_of(server.pid, "VmHWM") < 120 * MIB < size * count
        assert sorted(read_some(server, count)) == list(range(count))
        writer.join(15)
        write(server, [request(count, "nexus/echo", {"value": 1})])
        assert read_some(server, 1) == [count]
        assert memory_of(server.pid, "VmHWM") < 120 * MIB


@pytest.mark.parametrize("half", [True, False])
def test_a_client_that_leaves_without_having_read(half: bool) -> None:
    """It closes its input only, and waits for the end; or its other side, too."""
    with silent('{"poll_seconds": 0.1}') as server:
        assert server.stdin is not None
        assert server.stdout is not None
        write(server, [HELLO, *(request(n, "nexus/wait", {"seconds": 0, "size": MIB}) for n in range(1, 50))])
        server.stdin.close()
        if not half:
            server.stdout.close()
        assert server.wait(15) == 1


@contextmanager
def silent(*limits: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that nobody reads from."""
    with subprocess.Popen(
        [*SERVER, *limits],
        cwd=TESTS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            yield server
        finally:
            server.kill()


HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {}}}


def request(message_id: int, method: str, params: Any) -> Any:
    return {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}


def write(server: "subprocess.Popen[bytes]", messages: list[Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(b"".join(map(frame, messages)))
    server.stdin.flush()


def read_some(server: "subprocess.Popen[bytes]", count: int) -> list[Any]:
    """The ids of so many replies."""
    assert server.stdout is not None
    found = []
    for _ in range(count):
        header = server.stdout.readline()
        found.append(json.loads(server.stdout.read(2 + int(header.split(b":")[1])))["id"])
    return found


def memory_of(process_id: int, field: str) -> int:
    """A figure of a process's memory, in bytes."""
    if sys.platform != "linux":
        pytest.skip("only Linux tells how much memory another process has had")
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return int(status.split(f"{field}:")[1].split()[0]) * 1024


def at_rest(figure: Callable[[], int]) -> None:
    """Wait until a figure stays the same for half a second, a quarter of a minute at most."""
    before, end = -1, time.monotonic() + 15
    while (now := figure()) != before and time.monotonic() < end:
        before = now
        time.sleep(0.5)


def test_a_client_that_closes_its_reading_end() -> None:
    server = subprocess.Popen(
        SERVER, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert server.stdout is not None
    server.stdout.close()
    assert server.wait(15) == 1
    assert server.communicate()[1].count(b"Traceback") == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals(number: signal.Signals) -> None:
    with check() as client:
        client.process.send_signal(number)
        assert (client.wait_exit(), client.unread) == (128 + number, [])


SCRIPT: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}},
    {"jsonrpc": "2.0", "id": 2, "method": "nexus/echo", "params": {"value": "x" * 300_000}},
    {"jsonrpc": "2.0", "id": 3, "method": "shutdown"},
    {"jsonrpc": "2.0", "method": "exit"},
]


def replies(data: bytes) -> list[Any]:
    found = []
    while data:
        header, _, rest = data.partition(b"\r\n\r\n")
        length = int(header.split(b":")[1])
        found.append(json.loads(rest[:length])["id"])
        data = rest[length:]
    return found


def test_files_instead_of_pipes(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(map(frame, SCRIPT)))
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        assert (
            subprocess.run(SERVER, cwd=TESTS, stdin=stdin, stdout=stdout, timeout=15, check=False).returncode
            == 0
        )
    assert replies((tmp_path / "out").read_bytes()) == [1, 2, 3]


def test_no_input_at_all() -> None:
    assert (
        subprocess.run(SERVER, cwd=TESTS, stdin=subprocess.DEVNULL, timeout=15, check=False).returncode == 1
    )


@pytest.mark.parametrize("one", [True, False])
def test_sockets_instead_of_pipes(one: bool) -> None:
    """Node gives its children sockets; inetd gives one socket for both directions."""
    ours, theirs = socket.socketpair()
    ours_in, theirs_out = (ours, theirs) if one else socket.socketpair()
    server = subprocess.Popen(SERVER, cwd=TESTS, stdin=theirs.fileno(), stdout=theirs_out.fileno())
    theirs.close()
    theirs_out.close()
    ours.sendall(b"".join(map(frame, SCRIPT)))
    data = b""
    ours_in.settimeout(15)
    while chunk := ours_in.recv(65536):
        data += chunk
    assert replies(data) == [1, 2, 3]
    assert server.wait(15) == 0
    ours.close()
    ours_in.close()


def test_a_child_cannot_take_the_wire() -> None:
    script = (
        "import asyncio, msgspec\n"
        "from nexus_daemon.lsp.stdio import serve_stdio\n"
        "def build(server):\n"
        "    @server.custom('t/child', lambda: msgspec.Raw)\n"
        "    async def child(params):\n"
        "        return await (await asyncio.create_subprocess_shell('cat; echo noise')).wait()\n"
        "asyncio.run(serve_stdio(build))\n"
    )
    with Client([sys.executable, "-c", script], cwd=os.sep) as client:
        client.initialize()
        assert client.request("t/child", {}) == 0
        client.notify("exit")
        client.wait_exit()
        assert client.unread == []
        assert "noise" in client.stderr
