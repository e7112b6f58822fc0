"""The protocol of `nexus mcp`: versions, errors, cancellation, whatever a client sends."""

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_daemon.shared.mcp_server import clients, definitions, workspace_folders
from nexus_daemon.shared.mcp_server.line_reader import read_lines
from nexus_daemon.shared.mcp_server.stdio_server import (
    MODERN,
    VERSIONS,
    WAITING,
    RunningCall,
    StdioServer,
    ToolRequest,
)
from nexus_daemon.shared.mcp_server.workspace_folders import WorkspaceFolders
from support.waiting import block_until

HERE = ("/work",)
Execute = Callable[[ToolRequest, RunningCall], dict[str, Any]]


def echo(call: ToolRequest, _: RunningCall) -> dict[str, Any]:
    """The result of a tool that tells what it was called with."""
    return {"call": [call.name, call.arguments, list(call.folders), call.client]}


class Wire:
    """A server in a thread, and what it sent."""

    def __init__(
        self, execute: Execute = echo, *, writes: bool = False, folders: WorkspaceFolders | None = None
    ) -> None:
        self.sent: list[dict[str, Any]] = []
        self._pieces: list[bytes] = []
        self._changed = threading.Condition()
        self._server = StdioServer(
            folders=folders or WorkspaceFolders(HERE, "/"),
            writes=writes,
            execute=execute,
            write=self._take,
        )
        self._thread = threading.Thread(target=self._server.serve, args=(self._read,))
        self._thread.start()

    def send(self, *messages: Any) -> None:
        """Send messages, or bytes as they are."""
        lines = (one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages)
        with self._changed:
            self._pieces += lines
            self._changed.notify_all()

    def wait(self, message_id: Any) -> dict[str, Any]:
        """The reply to a request."""
        block_until(lambda: any(one.get("id") == message_id for one in self.sent))
        return next(one for one in self.sent if one.get("id") == message_id)

    def end(self) -> list[dict[str, Any]]:
        """End the input; everything that was sent."""
        self.send(b"")
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.sent

    def _read(self, _: int) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._pieces)
            return self._pieces.pop(0)

    def _take(self, data: bytes) -> None:
        assert data.endswith(b"\n")
        assert b"\n" not in data[:-1]
        self.sent.append(json.loads(data))


def request(message_id: Any, method: str, params: Any = None) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": message_id, "method": method}
    return message if params is None else {**message, "params": params}


def call(message_id: Any, **params: Any) -> dict[str, Any]:
    return request(message_id, "tools/call", {"name": "show_context", **params})


def initialize(version: str = VERSIONS[-1], *, name: str = "test", **capabilities: Any) -> dict[str, Any]:
    about = {"clientInfo": {"name": name, "version": "1"}, "capabilities": capabilities}
    return request(0, "initialize", {"protocolVersion": version, **about})


def check(*messages: Any, execute: Execute = echo) -> list[dict[str, Any]]:
    """What a server sends after these messages."""
    wire = Wire(execute)
    wire.send(*messages)
    return wire.end()


def errors(*messages: Any) -> list[tuple[Any, int, str]]:
    """The id, code and text of each error."""
    return [(one["id"], one["error"]["code"], one["error"]["message"]) for one in check(*messages)]


# ---------------------------------------------------------------- the handshake


def test_the_handshake() -> None:
    assert check(initialize()) == snapshot(
        [
            {
                "jsonrpc": "2.0",
                "id": 0,
                "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "nexus", "title": "Nexus", "version": "0.1.0"},
                    "instructions": definitions.instructions(),
                },
            }
        ]
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_of_the_client_is_taken(version: str) -> None:
    assert check(initialize(version))[0]["result"]["protocolVersion"] == version


@pytest.mark.parametrize("version", ["2023-01-01", "2099-01-01", MODERN, "", None, 5, []])
def test_an_unknown_version_gets_the_newest(version: Any) -> None:
    assert check(initialize(version))[0]["result"]["protocolVersion"] == VERSIONS[-1]


@pytest.mark.parametrize("params", [{}, None, {"clientInfo": 5, "capabilities": []}])
def test_a_handshake_that_says_little(params: Any) -> None:
    assert "result" in check(request(0, "initialize", params))[0]


def test_requests_that_carry_the_version() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    meta["io.modelcontextprotocol/clientInfo"] = {"name": "claude-code"}  # type: ignore[assignment]
    discovered, tools, called = sorted(
        check(
            request(1, "server/discover", {"_meta": meta}),
            request(2, "tools/list", {"_meta": meta}),
            call(3, _meta=meta),
        ),
        key=lambda message: int(message["id"]),
    )
    assert discovered == snapshot(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "instructions": definitions.instructions(),
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {
                    "io.modelcontextprotocol/serverInfo": {
                        "name": "nexus",
                        "title": "Nexus",
                        "version": "0.1.0",
                    }
                },
            },
        }
    )
    assert {name: value for name, value in tools["result"].items() if name != "tools"} == snapshot(
        {
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {
                "io.modelcontextprotocol/serverInfo": {"name": "nexus", "title": "Nexus", "version": "0.1.0"}
            },
        }
    )
    assert called["result"]["call"] == ["show_context", {}, ["/work"], "claude-code"]
    meta["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
    assert check(request(1, "tools/list", {"_meta": meta})) == snapshot(
        [
            {
                "jsonrpc": "2.0",
                "id": 1,
                "error": {
                    "code": -32022,
                    "message": "This version of the protocol is not supported.",
                    "data": {
                        "supported": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
                        "requested": "2099-01-01",
                    },
                },
            }
        ]
    )


# ---------------------------------------------------------------- requests


def test_ping_and_tools() -> None:
    pong, tools = check(request("a", "ping"), request(2, "tools/list", {"cursor": "x"}))
    assert pong == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert tools["result"] == {"tools": definitions.definitions(writes=False)}


def test_a_call() -> None:
    wire = Wire()
    wire.send(initialize(name="Codex"), call(1, arguments={"page": 2}), call("x"))
    assert wire.wait(1)["result"]["call"] == ["show_context", {"page": 2}, ["/work"], "Codex"]
    assert wire.wait("x")["result"]["call"] == ["show_context", {}, ["/work"], "Codex"]
    assert len(wire.end()) == 3


def test_writing_needs_the_option() -> None:
    params = {"name": "add_memory", "arguments": {"text": "x"}}
    [(_, code, text)] = errors(request(1, "tools/call", params))
    assert (code, text[:46]) == (-32602, "add_memory writes, and this server only reads.")
    wire = Wire(writes=True)
    wire.send(request(1, "tools/call", params), request(2, "tools/list"))
    assert wire.wait(1)["result"]["call"][0] == "add_memory"
    assert wire.wait(2)["result"]["tools"][-1]["name"] == "add_memory"
    wire.end()


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (
            b"garbage\n",
            snapshot((None, -32700, "The line is not JSON in UTF-8: Expecting value: line 1 colum")),
        ),
        (
            b"\xff\xfe\n",
            snapshot((None, -32700, "The line is not JSON in UTF-8: 'utf-8' codec can't decode by")),
        ),
        (
            b"\0\n",
            snapshot((None, -32700, "The line is not JSON in UTF-8: Expecting value: line 1 colum")),
        ),
        (b'{"id": NaN}\n', snapshot((None, -32700, "The line is not JSON in UTF-8: NaN is not a number."))),
        (
            b"[" * 100_000 + b"\n",
            snapshot((None, -32700, "The JSON is nested too deeply.")),
        ),
        (b"5\n", snapshot((None, -32600, "The message is not a JSON object."))),
        (
            [request(1, "ping")],
            snapshot((None, -32600, "Batches are not supported: send each message in a line of it")),
        ),
        ({}, snapshot((None, -32600, "The message has no `method` that is a string."))),
        ({"id": 1}, snapshot((1, -32600, "The message has no `method` that is a string."))),
        (
            {"id": None, "method": "ping"},
            snapshot((None, -32600, "The `id` must be a string or a whole number.")),
        ),
        (
            {"id": True, "method": "ping"},
            snapshot((None, -32600, "The `id` must be a string or a whole number.")),
        ),
        (
            {"id": 1.5, "method": "ping"},
            snapshot((None, -32600, "The `id` must be a string or a whole number.")),
        ),
        (
            {"id": [1], "method": "ping"},
            snapshot((None, -32600, "The `id` must be a string or a whole number.")),
        ),
        ({"id": 1, "method": 5}, snapshot((1, -32600, "The message has no `method` that is a string."))),
        (request(1, "ping", [1]), snapshot((1, -32602, "`params` must be an object."))),
        (request(1, "resources/list"), snapshot((1, -32601, "There is no method 'resources/list'."))),
        (
            request(1, "tools/call"),
            snapshot((1, -32602, "There is no tool 'None'. There are: show_context, check_conf")),
        ),
        (
            call(1, name="rm"),
            snapshot((1, -32602, "There is no tool 'rm'. There are: show_context, check_config")),
        ),
        (
            call(1, name=["show_context"]),
            snapshot((1, -32602, "There is no tool \"['show_context']\". There are: show_context")),
        ),
        (call(1, arguments=[]), snapshot((1, -32602, "`arguments` must be an object."))),
    ],
)
def test_what_is_no_request_is_an_error(message: Any, error: tuple[Any, int, str]) -> None:
    [(message_id, code, text)] = errors(message)
    assert (message_id, code, text[:60]) == error
    *_, pong = check(message, request(7, "ping"))
    assert pong == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize(
    "message",
    [
        b"\n",
        b"  \r\n",
        {"method": "notifications/progress"},
        {"method": "notifications/cancelled"},
        {"method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"method": "notifications/cancelled", "params": {"requestId": 99}},
        {"id": 4, "result": {}},
        {"id": "nexus-roots", "error": {"code": 1, "message": "no"}},
        {"method": "no/such"},
    ],
)
def test_what_gets_no_answer(message: Any) -> None:
    assert check(message) == []


@given(st.lists(st.one_of(st.binary(max_size=40), st.recursive(st.none() | st.text(), st.lists)), max_size=5))
def test_a_ping_is_answered_after_anything(messages: Sequence[Any]) -> None:
    pieces = [one + b"\n" if isinstance(one, bytes) else one for one in messages]
    assert check(*pieces, request("ping", "ping"))[-1] == {"jsonrpc": "2.0", "id": "ping", "result": {}}


# ---------------------------------------------------------------- calls that take long


class SlowTool:
    """A tool that waits until it may end."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.may_end = threading.Event()

    def __call__(self, call: ToolRequest, running: RunningCall) -> dict[str, Any]:
        self.begun.append(call.arguments)
        if running.use_abort(self.may_end.set):
            self.may_end.wait(20)
        return {"cancelled": running.is_cancelled}


def test_a_slow_call_delays_no_other_request() -> None:
    slow = SlowTool()
    wire = Wire(slow)
    wire.send(call(1), request(2, "ping"), request(3, "tools/list"))
    wire.wait(3)
    assert [one["id"] for one in wire.sent] == [2, 3]
    slow.may_end.set()
    assert [one["id"] for one in wire.end()] == [2, 3, 1]


def test_a_cancelled_call_ends_and_is_not_answered() -> None:
    slow = SlowTool()
    wire = Wire(slow)
    wire.send(call(1))
    block_until(lambda: slow.begun)
    wire.send({"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "late"}})
    block_until(slow.may_end.is_set)
    wire.send(request(2, "ping"))
    assert [one["id"] for one in wire.end()] == [2]


def test_a_call_that_waits_for_others_can_be_cancelled() -> None:
    slow = SlowTool()
    wire = Wire(slow)
    wire.send(*(call(number) for number in range(5)))
    block_until(lambda: len(slow.begun) == 4)
    wire.send({"method": "notifications/cancelled", "params": {"requestId": 4}}, request("p", "ping"))
    wire.wait("p")
    slow.may_end.set()
    answered = {one["id"] for one in wire.end()}
    waiting = 1 if 4 not in answered else 0
    assert len(slow.begun) == 5 - waiting
    assert len(answered) == 5


def test_an_id_is_free_again_once_it_is_answered() -> None:
    wire = Wire()
    for number in range(1, 50):
        wire.send(call(1))
        block_until(lambda number=number: len(wire.sent) == number)  # type: ignore[misc]
    assert all("result" in one for one in wire.end())


def test_a_bug_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: ToolRequest, __: RunningCall) -> dict[str, Any]:
        raise OSError("the secret path")

    wire = Wire(fail)
    wire.send(call(1))
    result = wire.wait(1)["result"]
    assert result["isError"]
    assert "secret" not in result["content"][0]["text"]
    wire.end()
    assert "the secret path" in capsys.readouterr().err


def test_many_calls_at_once() -> None:
    slow = SlowTool()
    wire = Wire(slow)
    wire.send(*(call(number) for number in range(WAITING)), call(1), call("more"))
    assert wire.wait("more")["error"] == snapshot(
        {"code": -32600, "message": "64 calls wait already. Call again later."}
    )
    assert [one["error"]["code"] for one in wire.sent] == [-32600, -32600]
    slow.may_end.set()
    assert len(wire.end()) == WAITING + 2


def test_a_call_is_answered_after_the_end_of_the_input() -> None:
    slow = SlowTool()
    wire = Wire(slow)
    wire.send(call(1), b"")
    block_until(lambda: slow.begun)
    slow.may_end.set()
    assert [one["id"] for one in wire.end()] == [1]


# ---------------------------------------------------------------- lines


@given(st.lists(st.binary(max_size=12)), st.integers(1, 5), st.integers(0, 8))
def test_lines_are_the_same_however_they_come(lines: list[bytes], size: int, longest: int) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    data = b"".join(line + b"\n" for line in lines)
    pieces = iter([*(data[at : at + size] for at in range(0, len(data), size)), b""])
    expected = [line if len(line) <= longest else None for line in lines]
    assert list(read_lines(lambda _: next(pieces), longest=longest)) == expected


def test_the_last_line_needs_no_end() -> None:
    pieces = iter([b"one\ntw", b"o", b""])
    assert list(read_lines(lambda _: next(pieces))) == [b"one", b"two"]


def test_an_endless_line_takes_no_memory() -> None:
    pieces = iter([*[b"x" * 65_536] * 1_600, b"\n{}\n", b""])  # 100 MB
    assert list(read_lines(lambda _: next(pieces))) == [None, b"{}"]
    wire = Wire()
    wire.send(b"x" * (2 << 20) + b"\n", request(1, "ping"))
    assert [one["id"] for one in wire.end()] == [None, 1]


# ---------------------------------------------------------------- folders


def test_roots(tmp_path: Path) -> None:
    for name in ("a", "b c"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")
    uris = [
        (tmp_path / "a").as_uri(),
        (tmp_path / "b c").as_uri(),
        (tmp_path / "file").as_uri(),
        (tmp_path / "gone").as_uri(),
        "http://example.org/a",
        "file://other/a",
        "file:///%00",
        5,
    ]
    folders = WorkspaceFolders((), str(tmp_path / "b c"))
    assert folders.current() == (str(tmp_path / "b c"),)
    folders.set_roots({"roots": [*({"uri": uri} for uri in uris), "x"]})
    assert folders.current() == (str(tmp_path / "b c"), str(tmp_path / "a"))
    answers: tuple[Any, ...] = (None, [], {}, {"roots": 5}, {"roots": []})
    for answer in answers:
        folders.set_roots(answer)
        assert folders.current() == (str(tmp_path / "b c"),)


def test_the_client_is_asked_for_its_roots(tmp_path: Path) -> None:
    wire = Wire(folders=WorkspaceFolders((), "/"))
    wire.send(initialize(roots={}), {"method": "notifications/initialized"}, call(1))
    asked = wire.wait("nexus-roots")
    assert asked == {"jsonrpc": "2.0", "id": "nexus-roots", "method": "roots/list"}
    wire.send({"jsonrpc": "2.0", "id": "nexus-roots", "result": {"roots": [{"uri": tmp_path.as_uri()}]}})
    assert wire.wait(1)["result"]["call"][2] == [str(tmp_path)]
    wire.send({"method": "notifications/roots/list_changed"}, request("p", "ping"))
    wire.wait("p")
    wire.send({"id": "nexus-roots", "error": {"code": 1, "message": "none"}}, call(2))
    assert wire.wait(2)["result"]["call"][2] == ["/"]
    assert [one["id"] for one in wire.end()].count("nexus-roots") == 2


def test_a_client_that_never_tells_its_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_folders, "ROOTS_S", 0.05)
    wire = Wire(folders=WorkspaceFolders((), "/"))
    wire.send(initialize(roots={}), {"method": "notifications/initialized"}, call(1))
    assert wire.wait(1)["result"]["call"][2] == ["/"]
    wire.end()


def test_folders_of_the_command_line_win() -> None:
    wire = Wire()
    wire.send(initialize(roots={}), {"method": "notifications/initialized"}, call(1))
    assert wire.wait(1)["result"]["call"][2] == ["/work"]
    assert len(wire.end()) == 2


@pytest.mark.parametrize(
    ("client", "assistant"),
    [
        ("claude-code", "claude-code"),
        ("codex-mcp-client", "codex"),
        ("opencode", "opencode"),
        ("gemini-cli-mcp-client", "gemini"),
        ("Visual Studio Code", "copilot"),
        ("cursor-vscode", "cursor"),
        ("mcp", None),
        ("", None),
    ],
)
def test_clients(client: str, assistant: str | None) -> None:
    assert clients.assistant_of(client) == assistant
