"""The log, `$/setTrace` and traces of real daemons."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon.process.logs.read_log import Follower
from support.client import ReplyError
from support.editor import Editor

FOLDER = "//- /a/.nexus3/config.json\n{}\n//- /a/NEXUS.md\nBe kind.\n"


def logged(directory: Path) -> list[dict[str, Any]]:
    follower = Follower(str(directory))
    try:
        return list(follower.read())
    finally:
        follower.close()


@contextmanager
def check(home: Path, **variables: str) -> Iterator[tuple[Editor, str]]:
    """An editor with a folder, whose daemon has these variables; it ends as it should."""
    with Editor(home, variables=variables) as editor:
        tree = editor.tree(FOLDER)
        editor.hello(tree.path("/a"), clientInfo={"name": "Editor of tests"})
        yield editor, tree.path("/a")
        editor.goodbye()


def test_two_daemons_log_to_one_file(tmp_path: Path) -> None:
    log = str(tmp_path / "logs")
    with check(tmp_path / "one", NEXUS_LOG=log), check(tmp_path / "two", NEXUS_LOG=log):
        pass
    lines = logged(tmp_path / "logs")
    assert len({line["process"] for line in lines}) == 2
    connections = [line for line in lines if line["message"] == "connection 1: Editor of tests"]
    assert [(line["connection"], line["level"]) for line in connections] == [(1, "INFO"), (1, "INFO")]
    assert sum(line["message"].startswith("the connection ends: exit") for line in lines) == 2


def test_no_log_hurts_nobody_and_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory", encoding="utf-8")
    with check(tmp_path / "home", NEXUS_LOG=str(tmp_path / "file")) as (editor, folder):
        message = editor.wait_method("window/logMessage")["params"]["message"]
        assert editor.ask("context/usage", folder)["total"] > 0
    assert message.startswith("the log cannot be written, and goes on without a file: NotADirectoryError")
    assert sum("the log cannot" in line for line in editor.stderr.splitlines()) == 1


def test_a_trace_of_a_turn(tmp_path: Path) -> None:
    with check(tmp_path / "home") as (editor, folder):
        number = editor.send_request("nexus/debug/trace", {"seconds": 3})
        with pytest.raises(ReplyError, match="Another trace is being recorded"):
            editor.request("nexus/debug/trace", {"seconds": 3})
        editor.ask("context/assemble", folder, message="Hello")
        with pytest.raises(ReplyError, match="nobody"):
            editor.ask("agent/get", folder, agentId="nobody")
        trace = editor.wait_reply(number)["result"]["trace"]
    events = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["pid"] == 1]
    (turn,) = (event for event in events if event["name"] == "nexus/context/assemble")
    end = turn["ts"] + turn["dur"]
    phases = {event["cat"] for event in events if event is not turn and turn["ts"] <= event["ts"] <= end}
    assert turn["args"]["outcome"] == "ok"
    assert turn["args"]["folder"].endswith("/a")
    assert {"queue", "worker", "wait for load", "assemble", "ledger", "encode", "write"} <= phases
    (failed,) = (event for event in events if event["name"] == "nexus/agent/get")
    assert failed["args"]["outcome"] == "failed"


def test_a_recording_ends_with_its_request(tmp_path: Path) -> None:
    with check(tmp_path / "home") as (editor, _):
        number = editor.send_request("nexus/debug/trace", {"seconds": 600})
        editor.notify("$/cancelRequest", {"id": number})
        assert editor.wait_reply(number)["error"]["code"] == -32800
        trace = editor.request("nexus/debug/trace", {"seconds": 0.01})["trace"]
    assert trace["otherData"]["dropped"] == 0


@pytest.mark.parametrize("seconds", [0, -1, 601])
def test_how_long_a_trace_may_take(tmp_path: Path, seconds: float) -> None:
    with (
        check(tmp_path / "home") as (editor, _),
        pytest.raises(ReplyError, match="A trace takes up to 600 seconds"),
    ):
        editor.request("nexus/debug/trace", {"seconds": seconds})
