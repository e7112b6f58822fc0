"""The reply to `initialize`: early, and the same as the real protocol's."""

import asyncio
import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.initialize import EarlyInitialize, initialize_result
from nexus_daemon.lsp.link import Limits, StreamLink
from nexus_daemon.server import OFFER, build
from support.client import Client, frame
from support.talk import Talk, call
from support.waiting import yield_to_loop

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


def test_the_reply_comes_before_pygls() -> None:
    code = """
import sys
from nexus_daemon.lsp.link import StreamLink
send = StreamLink.send
def noting(self, *parts):
    if b'"capabilities"' in b"".join(parts):
        heavy = {"pygls", "lsprotocol", "cattrs", "nexus_context.snapshot"} & sys.modules.keys()
        sys.stderr.write(f"imported: {sorted(heavy)}\\n")
    send(self, *parts)
StreamLink.send = noting
from nexus_daemon.cli import main
sys.exit(main(["serve"]))
"""
    with Client([sys.executable, "-c", code]) as client:
        client.initialize()
        client.stop()
    assert "imported: []" in client.stderr


def test_nothing_is_imported_for_a_client_that_has_gone() -> None:
    async def run() -> None:
        def grow() -> Any:
            raise AssertionError("nobody needs the real protocol")

        complaints: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
        link = StreamLink(Limits())
        link.use_protocol(EarlyInitialize(OFFER, grow, link))
        link.data_received(frame(call(1, "initialize", {"processId": None, "capabilities": {}})))
        link.end(143, "SIGTERM")
        await yield_to_loop(3)
        assert (link.done.result(), complaints) == (143, [])

    asyncio.run(run())


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
