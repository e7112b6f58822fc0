"""The life of a daemon: it starts with its editor, answers in order, and never outlives it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.client import TIMEOUT_S, Client, frame
from support.editor import Editor, environ, uri_of
from support.waiting import block_until


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    with Editor(tmp_path / "home") as editor:
        yield editor


def check(editor: Editor, *said: str) -> int:
    """Send requests and notifications without parameters; return the exit code."""
    for method in said:
        if method == "exit":
            editor.notify(method)
        elif method == "initialize":
            editor.hello()
        else:
            editor.request(method)
    return editor.wait_exit()


def test_a_polite_end(editor: Editor) -> None:
    assert check(editor, "initialize", "shutdown", "exit") == 0
    assert editor.unread == []
    assert "Traceback" not in editor.stderr


@pytest.mark.parametrize("said", [["exit"], ["initialize", "exit"]])
def test_exit_without_shutdown(editor: Editor, said: list[str]) -> None:
    assert check(editor, *said) == 1


def test_before_initialize_and_after_shutdown(editor: Editor) -> None:
    early = editor.wait_reply(editor.send_request("nexus/status", {}))
    assert early["error"]["code"] == -32002
    editor.hello()
    again = editor.wait_reply(editor.send_request("initialize", {"capabilities": {}}))
    assert again["error"]["code"] == -32600
    assert editor.request("nexus/status", {})["connections"] == 1
    editor.request("shutdown")
    for method in ("nexus/status", "shutdown", "textDocument/codeAction"):
        late = editor.wait_reply(editor.send_request(method, {}))
        assert late["error"]["code"] == -32600
    assert check(editor, "exit") == 0


def test_what_a_client_learns_from_initialize(editor: Editor) -> None:
    reply = editor.hello(encodings=["utf-8", "utf-16"])
    assert reply["serverInfo"]["name"] == "nexus"
    capabilities = reply["capabilities"]
    assert capabilities["positionEncoding"] == "utf-8"
    assert capabilities["textDocumentSync"]["openClose"] is True
    assert capabilities["codeActionProvider"] == {"codeActionKinds": ["quickfix", "refactor.extract"]}
    assert capabilities["workspace"]["workspaceFolders"] == {"supported": True, "changeNotifications": True}
    commands = [
        *("nexus.context.layers", "nexus.context.preview", "nexus.context.usage", "nexus.showInContext"),
        *("nexus.showServer", "nexus.status", "nexus.workspace.init"),
    ]
    assert capabilities["executeCommandProvider"]["commands"] == commands, "those for people"
    editor.goodbye()


def test_the_end_of_the_input_ends_the_daemon(editor: Editor) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nA.\n")
    editor.hello(tree.path("/a"))
    editor.layers(tree.path("/a"))
    editor.close_input()
    assert editor.wait_exit() == 1


def test_what_was_asked_before_the_end_is_answered(editor: Editor) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nA.\n")
    editor.hello(tree.path("/a"))
    ids = [
        editor.send_request("nexus/context/usage", {"workspaceFolder": uri_of(tree.path("/a"))})
        for _ in range(20)
    ]
    editor.send_request("shutdown")
    editor.notify("exit")
    assert editor.wait_exit() == 0
    answered = [message["id"] for message in editor.received if "id" in message and "method" not in message]
    assert set(ids) <= set(answered)
    assert len(answered) == len(set(answered))


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(editor: Editor, number: int) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nA.\n")
    editor.hello(tree.path("/a"))
    editor.layers(tree.path("/a"))
    editor.process.send_signal(number)
    assert editor.wait_exit() == 128 + number
    assert "Traceback" not in editor.stderr


KILLED = """
import signal, subprocess, sys
with open(sys.argv[1], "rb") as hello:
    command = [sys.executable, "-m", "nexus_daemon", "serve"]
    daemon = subprocess.Popen(command, stdin={stdin}, stdout=subprocess.PIPE)
    {feed}
    daemon.stdout.read(20)
    print(daemon.pid, flush=True)
    signal.pause()
"""


@pytest.mark.skipif(os.name == "nt", reason="process ids of POSIX")
@pytest.mark.parametrize("input_stays_open", [False, True])
def test_a_killed_client_takes_its_daemon_along(tmp_path: Path, input_stays_open: bool) -> None:
    """By the end of its input, or, when someone else holds that open, by the process id in `initialize`."""
    reader, writer = os.pipe()
    hello = tmp_path / "hello"
    program = KILLED.format(
        stdin="int(sys.argv[2])" if input_stays_open else "subprocess.PIPE",
        feed="" if input_stays_open else "daemon.stdin.write(hello.read()); daemon.stdin.flush()",
    )
    hello.write_bytes(b"")
    if not input_stays_open:
        hello.write_bytes(frame(initialize(None)))
    client = subprocess.Popen(
        [sys.executable, "-c", program, str(hello), str(reader)],
        env={**os.environ, **environ(tmp_path)},
        stdout=subprocess.PIPE,
        pass_fds=[reader],
    )
    try:
        os.write(writer, frame(initialize(client.pid)))
        assert client.stdout is not None
        daemon = int(client.stdout.readline())
        client.kill()
        client.wait(TIMEOUT_S)
        assert wait_gone(daemon), "the daemon outlives its client"
    finally:
        client.kill()
        client.communicate()
        os.close(reader)
        os.close(writer)


def initialize(process_id: int | None) -> dict[str, object]:
    params: dict[str, object] = {"processId": process_id, "rootUri": None, "capabilities": {}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def wait_gone(process_id: int) -> bool:
    """Whether a process ends; otherwise it is killed."""
    try:
        return block_until(lambda: is_gone(process_id))
    except TimeoutError:
        os.kill(process_id, signal.SIGKILL)
        return False


def is_gone(process_id: int) -> bool:
    """Whether a process has ended; one that only waits for its parent has."""
    try:
        os.kill(process_id, 0)
        return ") Z " in Path(f"/proc/{process_id}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return True


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: 1e12\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n{}",
        b"Content-Length: -5\r\n\r\n",
    ],
)
def test_what_is_no_frame_closes_the_connection_and_says_why(editor: Editor, data: bytes) -> None:
    editor.hello()
    editor.send_bytes(data)
    assert editor.wait_exit() == 1
    assert "closing the connection" in editor.stderr
    assert "Traceback" not in editor.stderr


def test_a_message_that_is_no_json_is_answered_and_forgotten(editor: Editor) -> None:
    editor.hello()
    editor.send_bytes(b"Content-Length: 5\r\n\r\n{]{]{")
    assert editor.wait_for(lambda message: message.get("id", 0) is None)["error"]["code"] == -32700
    assert editor.request("nexus/status", {})["connections"] == 1
    editor.goodbye()


def test_a_request_without_an_id_does_nothing(editor: Editor) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nA.\n")
    folder = str(tree.path("/a"))
    for method in ("initialize", "shutdown", "nexus/session/delete"):  # before anything else is known
        editor.notify(method, {"capabilities": {}, "workspaceFolder": uri_of(folder)})
    editor.hello(folder)
    editor.ask("session/append", folder, messages=[{"role": "user", "content": "stay"}])
    place = {"workspaceFolder": uri_of(folder), "session": "main"}
    unanswerable = ("nexus/session/delete", "nexus/session/clear", "shutdown", "initialize")
    for method in unanswerable:
        editor.notify(method, place)
    editor.notify("workspace/executeCommand", {"command": "nexus.session.delete", "arguments": [place]})
    opened = editor.wait_reply(editor.send_request("textDocument/didOpen", {"textDocument": {"uri": "u"}}))
    assert opened["error"]["code"] == -32601
    assert len(editor.ask("session/messages", folder)["messages"]) == 2
    logged = [one["params"]["message"] for one in editor.said("window/logMessage")]
    assert logged == [
        f"ignored {method}: it is a request, and came without an id"
        for method in (*unanswerable, "workspace/executeCommand")
    ]
    editor.goodbye()


@pytest.mark.parametrize(
    "uri",
    ["", "file:", "file://[", "file://[::1", "untitled:x", "\0", "file:///%00", "file:///a%ff", "file:a"],
)
def test_a_uri_that_is_none_is_survived(editor: Editor, uri: str) -> None:
    editor.hello()
    item = {"uri": uri, "languageId": "json", "version": 1, "text": "{"}
    editor.notify("textDocument/didOpen", {"textDocument": item})
    editor.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri}, "contentChanges": [{"text": "{}"}]}
    )
    folder = {"uri": uri, "name": ""}
    editor.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": [folder]}})
    editor.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    action = {"textDocument": {"uri": uri}, "range": place, "context": {"diagnostics": []}}
    for method in ("textDocument/codeAction", "textDocument/codeLens"):
        assert editor.request(method, action) == []
    editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    editor.goodbye()


def test_a_cancelled_request_is_answered_once(editor: Editor) -> None:
    editor.hello()
    text = "".join(chr(0x4E00 + number % 20_000) for number in range(400_000))
    slow = editor.send_request("nexus/tokens/count", {"texts": [text]})
    editor.notify("$/cancelRequest", {"id": slow})
    reply = editor.wait_reply(slow)
    assert reply["error"]["code"] == -32800
    assert editor.request("nexus/tokens/count", {"texts": ["hello world"]})["total"] == 2
    editor.goodbye()
    assert [message for message in editor.received if message.get("id") == slow] == [reply]


BUSY = """
import sys, threading
from nexus_daemon.api import tokens
def hang(*_):
    sys.stderr.write("hanging\\n")
    sys.stderr.flush()
    threading.Event().wait()
tokens.count_texts = hang
from nexus_daemon.cli import main
sys.exit(main(["serve"]))
"""


@pytest.mark.parametrize("polite", [True, False])
def test_a_thread_that_hangs_does_not_keep_the_daemon(tmp_path: Path, polite: bool) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with Client([sys.executable, "-c", BUSY], cwd=home, env=environ(home)) as client:
        client.initialize()
        hanging = client.send_request("nexus/tokens/count", {"texts": ["x"]})
        block_until(lambda: "hanging" in client.stderr)
        if polite:
            client.request("shutdown")
            client.notify("exit")
        else:
            client.close_input()
        assert client.wait_exit(3) == (0 if polite else 1)
        assert client.wait_reply(hanging)["error"]["code"] == -32802
        assert "Traceback" not in client.stderr


def test_two_daemons_of_one_user_share_what_was_said_and_nothing_else(tmp_path: Path) -> None:
    with Editor(tmp_path / "home") as one, Editor(tmp_path / "home") as two:
        tree = one.tree("//- /a/NEXUS.md\nA.\n")
        for editor in (one, two):
            editor.hello(tree.path("/a"))
        one.ask("session/append", tree.path("/a"), messages=[{"role": "user", "content": "hi"}])
        said = two.ask("session/messages", tree.path("/a"))["messages"]
        assert said[1:] == [{"role": "user", "content": "hi"}]
        one.goodbye()
        assert two.request("nexus/status", {})["connections"] == 1
        two.goodbye()


def test_nothing_is_written_where_the_user_works(editor: Editor) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nA.\n")
    before = sorted(editor.home.rglob("*"))
    editor.hello(tree.path("/a"))
    editor.layers(tree.path("/a"))
    assert sorted(editor.home.rglob("*")) == before  # nor is a ledger begun that nobody needs
    editor.ask("context/assemble", tree.path("/a"), message="x")
    editor.goodbye()
    state = editor.home / "state"
    assert sorted(path for path in editor.home.rglob("*") if state not in (path, *path.parents)) == before
    assert [path.name for path in state.iterdir() if path.suffix == ".db"] == ["ledger.db"]
