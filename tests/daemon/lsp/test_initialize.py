"""The reply to `initialize`: early, and the same as the real protocol's."""

import asyncio
import os
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import pytest

from nexus_daemon.api.methods import OFFER
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.first_message import Opening, answer_first_message
from nexus_daemon.lsp.initialize import initialize_result
from nexus_daemon.server import build
from support.client import Client, frame
from support.talk import Talk, call

SERVE = [sys.executable, "-m", "nexus_daemon", "serve"]


def no_daemon() -> Any:
    raise AssertionError("the daemon is not needed to say hello")


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"general": {"positionEncodings": ["utf-8", "utf-16"]}},
        {"general": {"positionEncodings": ["utf-32"]}, "textDocument": {"rename": {"prepareSupport": True}}},
        {"workspace": {"workspaceFolders": False}, "textDocument": {"diagnostic": {}}},
    ],
)
def test_the_early_reply_is_what_the_feature_table_says(capabilities: dict[str, Any]) -> None:
    params = {"processId": None, "capabilities": capabilities}

    async def run() -> Any:
        talk = Talk(partial(build, no_daemon))
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # `no_daemon`, later
        talk.send(call(1, "initialize", params))
        return talk.writer.messages()[0]["result"]["capabilities"]

    early = initialize_result(OFFER, lsp_types.InitializeParams(capabilities=capabilities))
    assert early["capabilities"] == asyncio.run(run())


HELLO = frame(call(1, "initialize", {"processId": None, "capabilities": {}}))
STATUS = frame(call(2, "nexus/status", {}))
CLIENT = lsp_types.InitializeParams()


@pytest.mark.parametrize(
    ("sent", "opening"),
    [
        ([HELLO], Opening(CLIENT, b"")),
        ([HELLO[:9], HELLO[9:30], HELLO[30:]], Opening(CLIENT, b"")),
        ([HELLO + STATUS], Opening(CLIENT, STATUS)),
        ([HELLO + STATUS[:5]], Opening(CLIENT, STATUS[:5])),
        ([STATUS + HELLO], Opening(None, STATUS + HELLO)),
        ([HELLO[:-1]], Opening(None, HELLO[:-1])),
        ([b"GET / HTTP/1.1\r\n"], Opening(None, b"GET / HTTP/1.1\r\n")),
        ([], Opening(None, b"")),
    ],
)
def test_the_first_message_is_answered_and_nothing_else_is_lost(sent: list[bytes], opening: Opening) -> None:
    (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()

    def write() -> None:
        for data in sent:
            os.write(to_stdin, data)
        os.close(to_stdin)

    writer = threading.Thread(target=write)
    writer.start()
    assert answer_first_message(OFFER, stdin, stdout) == opening
    writer.join()
    os.close(stdout)
    with open(from_stdout, "rb") as replies:
        assert (b'"capabilities"' in replies.read()) is (opening.client is not None)
    os.close(stdin)


def test_a_client_that_reads_nothing_gets_no_reply() -> None:
    (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()
    os.close(from_stdout)
    os.write(to_stdin, HELLO + STATUS)
    assert answer_first_message(OFFER, stdin, stdout) == Opening(None, HELLO + STATUS)
    for descriptor in (stdin, to_stdin, stdout):
        os.close(descriptor)


def test_what_comes_with_the_first_message_waits_its_turn() -> None:
    with Client(SERVE) as client:
        hello: dict[str, Any] = {"processId": None, "capabilities": {}}
        ids = [client.send_request("initialize", hello), client.send_request("nexus/status", {})]
        again = client.send_request("initialize", hello)
        assert "capabilities" in client.wait_reply(ids[0])["result"]
        assert client.wait_reply(again)["error"]["code"] == -32600
        assert client.wait_reply(ids[1])["result"]["folders"] == []
        client.stop()


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"jsonrpc": "2.0", "id": 1, "method": "nexus/status"}, -32002),
        ({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": [1]}, -32602),
        ({"id": 1, "method": "initialize", "params": {}}, -32600),
    ],
)
def test_another_first_message_gets_the_real_answer(message: dict[str, Any], code: int) -> None:
    with Client(SERVE) as client:
        client.send(message)
        assert client.wait_reply(1)["error"]["code"] == code
        assert client.initialize()["serverInfo"]["name"] == "nexus"
        client.stop()


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc": "2.0", "id": 1, "method": "initialize\xff", "params": {}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"rootPath": "\xff"}}',
    ],
)
def test_a_first_message_that_is_not_utf_8_is_answered(body: bytes) -> None:
    with Client(SERVE) as client:
        client.send_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert client.wait_reply(None)["error"]["code"] == -32700
        assert client.initialize()["serverInfo"]["name"] == "nexus"
        client.stop()


def test_leaving_after_the_first_message_ends_the_server() -> None:
    done = subprocess.run(SERVE, input=b"Content-Length: 2\r\n\r\n{}", capture_output=True, timeout=20)
    assert done.returncode == 1
