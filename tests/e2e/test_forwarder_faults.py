"""The forwarder between an editor that says anything and a daemon that dies or hangs."""

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from nexus_daemon.shared import client
from nexus_daemon.shared.tracker import RESTARTED
from support.client import ReplyError
from support.editor import Editor, uri_of
from support.shared import SharedHome
from support.waiting import block_until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

WRONG = '{"tools": {"summery": true}}'
TREE = f"//- /.nexus3/config.json\n{WRONG}\n//- /AGENTS.md\nUse tabs.\n"
DEEP = "[" * 1_500 + "]" * 1_500
CHINESE = "/".join(f"{number}" + "说明文件的目录名字很长" * 7 for number in range(6))


def raw(window: Editor, text: str) -> None:
    body = text.encode()
    window.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def kill(home: SharedHome) -> None:
    pid = home.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


ODD = {
    "an id of null": '{"jsonrpc":"2.0","id":null,"method":"nexus/status","params":{}}',
    "no method": '{"jsonrpc":"2.0","id":"x"}',
    "a long id": json.dumps({"jsonrpc": "2.0", "id": "x" * 6_000, "method": "nexus/status", "params": {}}),
    "a fractional id": '{"jsonrpc":"2.0","id":1.5,"method":"nexus/status","params":{}}',
    "deep parameters": f'{{"jsonrpc":"2.0","id":"deep","method":"nexus/status","params":{DEEP}}}',
    "a deep notification": f'{{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{DEEP}}}',
    "a list": "[1, 2]",
    "no JSON": "{]",
    "half a character": '{"jsonrpc":"2.0","method":"textDocument/didClose",'
    '"params":{"textDocument":{"uri":"\\ud800"}}}',
    "a large number": '{"jsonrpc":"2.0","id":' + "9" * 400 + ',"method":"nexus/status"}',
    "a constant": '{"jsonrpc":"2.0","id":Infinity,"method":"nexus/status"}',
    "folders of another kind": json.dumps(
        {
            "jsonrpc": "2.0",
            "method": "workspace/didChangeWorkspaceFolders",
            "params": {"event": {"added": 5, "removed": [7]}},
        }
    ),
    "a command of another kind": json.dumps(
        {"jsonrpc": "2.0", "id": "y", "method": "workspace/executeCommand", "params": {"command": ["x"]}}
    ),
}


@pytest.mark.parametrize("frame", ODD.values(), ids=ODD.keys())
def test_whatever_the_editor_says_the_window_goes_on(home: SharedHome, frame: str) -> None:
    with home.window() as window:
        root = window.tree(TREE).root
        window.hello(root)
        config = Path(root, ".nexus3/config.json")
        window.until(lambda: window.codes(config))
        raw(window, frame)
        assert window.request("nexus/status", {})["connections"] == 1
        kill(home)
        assert window.request("nexus/status", {})["connections"] == 1
        window.layers(root)
        assert window.codes(config) == ["config.unknown-key"]


def test_a_file_with_a_long_name_has_diagnostics(home: SharedHome) -> None:
    with home.window() as window:
        root = Path(window.tree(TREE).root, CHINESE)
        root.mkdir(parents=True)
        config = root / ".nexus3" / "config.json"
        config.parent.mkdir()
        config.write_text(WRONG)
        assert len(uri_of(config)) > 4_096
        window.hello(root)
        window.until(lambda: window.codes(config))
        kill(home)
        window.layers(root)
        assert window.codes(config) == ["config.unknown-key"]


def test_an_edit_that_cannot_be_applied_does_not_stop_the_editor(home: SharedHome) -> None:
    with home.window() as window:
        root = window.tree(TREE).root
        notes = Path(root, "AGENTS.md")
        window.hello(root)
        window.open(notes, "Use tabs.\n")
        change = {"range": {"start": {"line": 0}}, "text": "x"}
        document = {"uri": uri_of(notes), "version": 2}
        window.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        place = {"line": 0, "character": 0}
        for version in range(3, 40):
            change = {"range": {"start": place, "end": place}, "text": "typed " * 2_000}
            document = {"uri": uri_of(notes), "version": version}
            window.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        assert window.request("nexus/status", {})["connections"] == 1
        kill(home)
        window.layers(root)
        text = window.ask("context/preview", root)["text"]
        assert "typed" not in text, "nobody knows where it was typed"
        window.type(notes, "Use spaces.\n")
        assert "Use spaces." in window.ask("context/preview", root)["text"]


def test_a_request_that_no_daemon_survives_fails(home: SharedHome) -> None:
    """Each daemon is killed as soon as it is there: the pauses grow, and the user is told."""
    with home.window() as window:
        root = window.tree(TREE).root
        window.hello(root)
        window.layers(root)
        killed: set[int] = set()
        ended = threading.Event()

        def hunt() -> None:
            while not ended.is_set():
                pid = client.lock_owner(home.place)
                if pid is not None and pid not in killed:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        killed.add(pid)
                time.sleep(0.005)

        hunter = threading.Thread(target=hunt)
        first = home.pid()
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        number = window.send_request("nexus/status", {})
        time.sleep(0.2)  # until the daemon has it
        hunter.start()
        try:
            assert window.wait_reply(number, timeout=20)["error"]["data"]["code"] == RESTARTED
            assert len(killed) < 16
            block_until(lambda: [one for one in told(window) if "nexus doctor" in one])
        finally:
            ended.set()
            hunter.join()
        block_until(lambda: is_served(window), timeout_s=40)


def is_served(window: Editor) -> bool:
    try:
        return bool(window.request("nexus/status", {}, timeout=30)["connections"] == 1)
    except ReplyError:  # of a daemon that was just killed
        return False


def told(window: Editor) -> list[str]:
    return [one["params"]["message"] for one in window.said("window/showMessage")]


def test_a_daemon_that_hangs_is_told_of_and_left(home: SharedHome) -> None:
    with home.window() as window:
        root = window.tree(TREE).root
        config = Path(root, ".nexus3/config.json")
        window.hello(root)
        window.open(config, WRONG)
        window.until(lambda: window.codes(config))
        pid = home.pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            number = window.send_request("nexus/status", {})
            for _ in range(64):  # an editor with one thread would freeze in its write
                window.type(config, '{"tools": {"summery": true}, "x": "%s"}' % ("y" * 16_384))
            assert time.monotonic() - began < 5
            assert window.wait_reply(number, timeout=20)["error"]["data"]["code"] == RESTARTED
            assert time.monotonic() - began < 15
            window.until(lambda: [one for one in told(window) if f"process {pid}, does not answer" in one])
            window.type(config, "{}")
        finally:
            os.kill(pid, signal.SIGCONT)
        window.layers(root)
        window.until(lambda: window.codes(config) == [])
        assert window.request("nexus/status", {})["pid"] == pid


def test_a_daemon_that_hangs_does_not_keep_the_window_of_an_editor_that_has_left(home: SharedHome) -> None:
    with home.window() as window:
        window.hello(window.tree(TREE).root)
        pid = home.pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            window.send_request("nexus/status", {})
            assert window.process.stdin is not None
            window.process.stdin.close()
            began = time.monotonic()
            block_until(lambda: window.process.poll() is not None, timeout_s=12)
            assert time.monotonic() - began < 10
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_daemon_that_works_for_long_is_left_alone(home: SharedHome) -> None:
    """A request that waits for the editor's model takes as long as that; the daemon answers meanwhile."""
    with home.window() as window:
        root = window.tree(TREE).root
        window.hello(root)
        window.layers(root)
        number = window.send_request("nexus/tokens/count", {"texts": ["word " * 3_000_000]})
        time.sleep(10)
        assert window.wait_reply(number, timeout=60)["result"]["total"] > 0
        assert told(window) == []
