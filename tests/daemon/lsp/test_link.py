"""One connection in memory: every request is answered once, and every end is clean."""

import asyncio
import json
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_daemon.lsp import framing
from support.talk import HELLO, Message, Talk, call, result, tell
from support.waiting import wait_until


def check(*messages: object, hello: bool = True) -> list[Message]:
    """Send messages after `initialize`; return what came back, without its reply and the log's lines."""

    async def run() -> list[Message]:
        talk = Talk()
        talk.send(*([HELLO] if hello else []), *messages)
        received = await talk.settle()
        talk.link.end(0, "the test is over")
        return received[1 if hello else 0 :]

    return asyncio.run(run())


def errors(*messages: object, hello: bool = True) -> list[tuple[Any, int, str]]:
    return [(m["id"], m["error"]["code"], m["error"]["message"]) for m in check(*messages, hello=hello)]


def body(text: bytes) -> bytes:
    return framing.header(len(text)) + text


# ---------------------------------------------------------------- every request is answered


def test_bad_messages() -> None:
    found = errors(
        body(b"{"),
        body(b""),
        body(b'{"jsonrpc":"2.0","id":7,"method":"nexus/echo","params":{"a":}}'),
        body(b'{"jsonrpc":"2.0","id":7,"method":"\xff"}'),
        body(b"[" * 50_000),
        [HELLO],
        "text",
        {"jsonrpc": "2.0", "id": 1},
        {"id": 2, "method": "nexus/echo"},
        {"jsonrpc": "1.0", "id": 3, "method": "nexus/echo"},
        {"jsonrpc": "2.0", "id": "four", "method": 4},
        {"jsonrpc": "2.0", "id": None, "method": "nexus/echo"},
        {"jsonrpc": "2.0", "id": {}, "method": "nexus/echo"},
        call(5, "nexus/unknown", {}),
        call(6, "textDocument/rename", {}),
        call(7, "$/unknown"),
    )
    assert found == snapshot(
        [
            (None, -32700, "Not JSON: Input data was truncated"),
            (None, -32700, "Not JSON: Input data was truncated"),
            (None, -32700, "Not JSON: JSON is malformed: invalid character (byte 60)"),
            (
                None,
                -32700,
                "Not JSON: 'utf-8' codec can't decode byte 0xff in position 34: invalid start byte",
            ),
            (None, -32600, "Not a JSON-RPC message: Expected `object`, got `array`"),
            (None, -32600, "Not a JSON-RPC message: Expected `object`, got `array`"),
            (None, -32600, "Not a JSON-RPC message: Expected `object`, got `str`"),
            (1, -32600, "A message needs a method."),
            (2, -32600, 'A message needs `"jsonrpc": "2.0"`.'),
            (3, -32600, 'A message needs `"jsonrpc": "2.0"`.'),
            ("four", -32600, "Not a JSON-RPC message: Expected `str`, got `int` - at `$.method`"),
            (None, -32600, "The id of a request must be a number or a string."),
            (
                None,
                -32600,
                "Not a JSON-RPC message: Expected `int | float | str | null`, got `object` - at `$.id`",
            ),
            (5, -32601, "There is no method nexus/unknown."),
            (6, -32601, "There is no method textDocument/rename."),
            (7, -32601, "There is no method $/unknown."),
        ]
    )


def test_bad_params() -> None:
    found = errors(
        call(1, "nexus/folder"),
        call(2, "nexus/folder", None),
        call(3, "nexus/folder", {"workspaceFolder": 1}),
        call(4, "nexus/folder", [1]),
        call(5, "nexus/echo", {}),
        body(b'{"jsonrpc":"2.0","id":6,"method":"nexus/wait","params":{"seconds":1e999}}'),
        call(7, "textDocument/moniker"),
        call(
            8,
            "textDocument/moniker",
            {"textDocument": {"uri": "a"}, "position": {"line": "x", "character": 0}},
        ),
        call(9, "textDocument/moniker", []),
        call(10, "workspace/executeCommand", {}),
        call(11, "workspace/executeCommand", {"command": "nexus.unknown"}),
        call(12, "workspace/executeCommand", {"command": "nexus.folder"}),
        call(13, "workspace/executeCommand", {"command": "nexus.folder", "arguments": [{}, {}]}),
        call(14, "workspace/executeCommand", {"command": "nexus.folder", "arguments": 5}),
    )
    assert found == snapshot(
        [
            (1, -32602, "Invalid params: Object missing required field `workspaceFolder`"),
            (2, -32602, "Invalid params: Object missing required field `workspaceFolder`"),
            (3, -32602, "Invalid params: Expected `str`, got `int` - at `$.workspaceFolder`"),
            (4, -32602, "Invalid params: Expected `object`, got `array`"),
            (5, -32602, "Invalid params: Object missing required field `value`"),
            (6, -32602, "Invalid params: Number out of range - at `$.seconds`"),
            (7, -32602, "Invalid params: missing 'textDocument': attribute text_document (MonikerParams)"),
            (
                8,
                -32602,
                "Invalid params: invalid literal for int() with base 10: 'x': attribute line (MonikerParams)",
            ),
            (9, -32602, "Invalid params: missing 'textDocument': attribute text_document (MonikerParams)"),
            (10, -32602, "Invalid params: Object missing required field `command`"),
            (11, -32602, "There is no command nexus.unknown."),
            (12, -32602, "Invalid params: Object missing required field `workspaceFolder`"),
            (13, -32602, "nexus.folder takes one argument, an object."),
            (14, -32602, "Invalid params: Expected `array`, got `int` - at `$.arguments`"),
        ]
    )


def test_handlers_that_fail() -> None:
    assert check(
        call(1, "nexus/fail", {"workspaceFolder": "x"}),
        call(2, "nexus/crash", {}),
        call(3, "nexus/rubbish", {}),
        call(
            4,
            "textDocument/completion",
            {"textDocument": {"uri": "a"}, "position": {"line": 0, "character": 0}},
        ),
    ) == snapshot(
        [
            {
                "jsonrpc": "2.0",
                "id": 1,
                "error": {
                    "code": -32803,
                    "message": "Do something else.",
                    "data": {
                        "code": "unknown-folder",
                        "problems": [
                            {"path": "/a.json", "severity": 1, "code": "json.syntax", "message": "bad"}
                        ],
                    },
                },
            },
            {
                "jsonrpc": "2.0",
                "id": 2,
                "error": {
                    "code": -32603,
                    "message": "nexus/crash failed: ZeroDivisionError. See the log.",
                    "data": {"code": "internal-error", "problems": []},
                },
            },
            {
                "jsonrpc": "2.0",
                "id": 3,
                "error": {
                    "code": -32603,
                    "message": "The result of nexus/rubbish is not JSON: TypeError. See the log.",
                    "data": {"code": "internal-error", "problems": []},
                },
            },
            {
                "jsonrpc": "2.0",
                "id": 4,
                "error": {
                    "code": -32603,
                    "message": "The result of textDocument/completion is not JSON: TypeError. See the log.",
                    "data": {"code": "internal-error", "problems": []},
                },
            },
        ]
    )


def test_what_json_cannot_say() -> None:
    assert check(call("a", "nexus/odd", {})) == [result("a", [None, None, "\ufffd", 10**30])]


ANY_JSON = {"class": 1, "a-b": [None, {"_x": {"jsonrpc": "2.0", "id": 9, "method": "m"}}], "": "é\u2028😀"}


@pytest.mark.parametrize(
    "text", [json.dumps(ANY_JSON), "1.50e+3", '"\\u00e9\\/"', "123456789012345678901234567890"]
)
def test_json_comes_back_byte_for_byte(text: str) -> None:
    async def run() -> bytes:
        talk = Talk()
        talk.send(HELLO)
        talk.writer.forget()
        talk.send(
            body(b'{"jsonrpc":"2.0","id":1,"method":"nexus/echo","params":{"value":%b}}' % text.encode())
        )
        return bytes(talk.writer.data)

    assert (
        asyncio.run(run()).split(b"\r\n\r\n")[1]
        == b'{"jsonrpc":"2.0","id":1,"result":{"value":%b}}' % text.encode()
    )


def test_a_command_is_the_same_request() -> None:
    arguments = [{"value": ANY_JSON}]
    assert check(
        call(1, "nexus/echo", {"value": ANY_JSON}),
        call(2, "workspace/executeCommand", {"command": "nexus.echo", "arguments": arguments}),
        call(1.5, "workspace/executeCommand", {"command": "nexus.wait", "arguments": [{"seconds": 0}]}),
    ) == [
        result(1, {"value": ANY_JSON}),
        result(2, {"value": ANY_JSON}),
        result(1.5, {"waited": 0.0, "text": ""}),
    ]


# ---------------------------------------------------------------- life of a connection


def test_order_of_life() -> None:
    assert errors(
        call(1, "nexus/echo", {"value": 1}),
        tell("textDocument/didOpen", {"textDocument": {"uri": "u", "text": "lost"}}),
        call(2, "shutdown"),
        call(3, "initialize"),
        hello=False,
    ) == snapshot(
        [
            (1, -32002, "The first request must be `initialize`."),
            (2, -32002, "The first request must be `initialize`."),
            (3, -32602, "initialize: Expected `object`, got `null`"),
        ]
    )
    assert check(
        HELLO, call(1, "shutdown"), call(2, "shutdown"), call(3, "nexus/echo", {"value": 1})
    ) == snapshot(
        [
            {
                "jsonrpc": "2.0",
                "id": 0,
                "error": {
                    "code": -32600,
                    "message": "`initialize` may be sent only once.",
                    "data": {"code": "invalid-request", "problems": []},
                },
            },
            {"jsonrpc": "2.0", "id": 1, "result": None},
            {
                "jsonrpc": "2.0",
                "id": 2,
                "error": {
                    "code": -32600,
                    "message": "shutdown came after `shutdown`; only `exit` may follow.",
                    "data": {"code": "invalid-request", "problems": []},
                },
            },
            {
                "jsonrpc": "2.0",
                "id": 3,
                "error": {
                    "code": -32600,
                    "message": "nexus/echo came after `shutdown`; only `exit` may follow.",
                    "data": {"code": "invalid-request", "problems": []},
                },
            },
        ]
    )


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([HELLO, call(1, "shutdown"), tell("exit")], 0),
        ([HELLO, tell("exit")], 1),
        ([tell("exit")], 1),
        ([HELLO, tell("exit"), call(1, "shutdown")], 1),
        ([HELLO, b"Content-Length: 1\n"], 1),
        ([HELLO, call(1, "shutdown"), b"GET / HTTP/1.1\r\n"], 1),
    ],
)
def test_exit_code(messages: list[object], code: int) -> None:
    async def run() -> tuple[int, str]:
        talk = Talk()
        talk.send(*messages)
        return await talk.link.done, talk.writer.closed

    assert asyncio.run(run()) == (code, "closed")


@pytest.mark.parametrize(("messages", "code"), [([], 1), ([HELLO], 1), ([HELLO, call(1, "shutdown")], 0)])
def test_end_of_input(messages: list[object], code: int) -> None:
    async def run() -> int:
        talk = Talk()
        talk.send(*messages)
        talk.link.eof_received()
        return await talk.link.done

    assert asyncio.run(run()) == code


def test_open_requests_are_answered_at_the_end() -> None:
    async def run() -> list[Message]:
        talk = Talk()
        talk.send(HELLO, call(1, "nexus/wait", {"seconds": 60}), call(2, "nexus/ask", {}))
        await wait_until(lambda: talk.writer.messages()[1:])
        talk.link.eof_received()
        await talk.link.done
        return await talk.settle()

    assert asyncio.run(run())[1:] == snapshot(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "workspace/configuration", "params": {"items": []}},
            {
                "jsonrpc": "2.0",
                "id": 1,
                "error": {
                    "code": -32802,
                    "message": "nexus/wait was cancelled.",
                    "data": {"code": "cancelled", "problems": []},
                },
            },
            {
                "jsonrpc": "2.0",
                "id": 2,
                "error": {
                    "code": -32802,
                    "message": "nexus/ask was cancelled.",
                    "data": {"code": "cancelled", "problems": []},
                },
            },
        ]
    )


def test_two_connections_in_one_process() -> None:
    async def run() -> list[list[Message]]:
        talks = [Talk(), Talk()]
        for number, talk in enumerate(talks):
            talk.send(HELLO, call(1, "nexus/wait", {"seconds": 0.01, "size": number}))
        talks[0].send(call(2, "nexus/echo", {"value": "first"}))
        talks[1].send(b"nonsense\n")
        received = [await talk.settle() for talk in talks]
        talks[0].link.end(0, "over")
        return received

    first, second = asyncio.run(run())
    assert first[1:] == [result(2, {"value": "first"}), result(1, {"waited": 0.01, "text": ""})]
    assert [(m["id"], m["error"]["code"]) for m in second[1:]] == [(1, -32802)]
