"""`nexus hook` in a process of its own: whatever happens, it ends soon, with 0 and no trouble to see."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nexus_daemon.shared import hello
from nexus_daemon.shared.hook_client import LONGEST_SPOOLED, MOST_SPOOLED, is_users_process, spool, spool_path
from support.shared import SharedHome, shared_home
from support.waiting import block_until

PAYLOAD = {"session_id": "s", "cwd": "/home/ana/company", "hook_event_name": "Stop"}
COMPACT = {**PAYLOAD, "hook_event_name": "SessionStart", "source": "compact"}
SOON_S = 30.0  # on a machine that is busy: the process has a timer of its own


class Ended(NamedTuple):
    """The end of a process: exit code and output."""

    code: int
    stdout: bytes
    stderr: bytes


SILENT = Ended(0, b"", b"")


def call(
    home: SharedHome, event: str, payload: Any = PAYLOAD, *options: str, environ: dict[str, str] | None = None
) -> Ended:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    result = subprocess.run(
        [sys.executable, "-P", "-m", "nexus_daemon", "hook", "claude-code", event, *options],
        input=data,
        env={**home.environ, **(environ or {})},
        capture_output=True,
        timeout=SOON_S,
        check=False,
    )
    return Ended(result.returncode, result.stdout, result.stderr)


class StandIn:
    """A daemon that records what it gets, and sends some bytes."""

    def __init__(self, home: SharedHome, reply: bytes | None) -> None:
        self.received: list[hello.Fields] = []
        self._reply = reply
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(home.place.socket)
        self._listener.listen()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            connected, _ = self._listener.accept()
            data = b""
            while piece := connected.recv(65_536):
                data += piece
                line, _, body = data.partition(b"\n")
                if len(body) >= hello.body_length(line):
                    break
            self.received.append(hello.decode(body))
            if self._reply is not None:
                with contextlib.suppress(OSError):  # most clients wait for none
                    connected.sendall(self._reply)
                connected.close()


def test_the_daemon_gets_the_payload_as_it_came(home: SharedHome) -> None:
    daemon = StandIn(home, None)
    data = '{ "session_id": "s\u00fc", "x": "\ud83d\ude00"\n}'.encode("utf-8", "surrogatepass") + b" \xff"
    assert call(home, "Stop", data, "--memory", environ={"CODEX_HOME": "/c", "SECRET": "1"}) == SILENT
    block_until(lambda: bool(daemon.received))
    fields = daemon.received[0]
    assert os.fsencode(fields.get("payload")) == data
    assert (fields.get("purpose"), fields.get("assistant"), fields.get("event")) == (
        "hook",
        "claude-code",
        "Stop",
    )
    assert fields.get_all("option") == ["--memory"]
    assert fields.environ["CODEX_HOME"] == "/c"
    assert "SECRET" not in fields.environ


def test_the_answer_is_printed(home: SharedHome) -> None:
    StandIn(home, hello.encode(hello.Fields((("status", "ok"), ("output", '{"ü": 1}\n')))))
    assert call(home, "SessionStart", COMPACT) == Ended(0, '{"ü": 1}\n'.encode(), b"")


@pytest.mark.parametrize("event", ["Stop", "SessionStart", "UserPromptSubmit", "", "../x", "\u00fc"])
@pytest.mark.parametrize("reply", [None, b"", b"HTTP/1.1 400\r\n", b"NEXUS/1 999999999\n", b"NEXUS/1 5\nab"])
def test_a_daemon_that_hangs_or_is_none(home: SharedHome, event: str, reply: bytes | None) -> None:
    StandIn(home, reply)
    assert call(home, event, COMPACT) == SILENT


@pytest.mark.parametrize("data", [b"", b"[]", b"\0", b"{\0}", b"\xff\xfe", b"JSON", b"{" + b"x" * (5 << 20)])
@pytest.mark.parametrize("event", ["SessionStart", "PreCompact", "InstructionsLoaded"])
def test_garbage_is_not_handed_on(home: SharedHome, event: str, data: bytes) -> None:
    daemon = StandIn(home, None)
    assert call(home, event, data) == SILENT
    assert daemon.received == []


@pytest.mark.parametrize(
    "environ",
    [
        {"NEXUS_DAEMON": "off"},
        {"XDG_RUNTIME_DIR": "/dev/null"},
        {"HOME": "", "XDG_RUNTIME_DIR": ""},
        {"NEXUS_TRANSPORT": "tcp"},
    ],
)
def test_without_a_daemon(home: SharedHome, environ: dict[str, str]) -> None:
    assert call(home, "Stop", environ=environ) == SILENT


def test_an_input_that_never_ends(home: SharedHome) -> None:
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "nexus_daemon", "hook", "claude-code", "Stop"],
        stdin=read_end,
        env=home.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.communicate(timeout=SOON_S) == (b"", b"")
    assert process.returncode == 0
    os.close(read_end)
    os.close(write_end)


@pytest.mark.parametrize("redirected", [">&-", "2>&- >&-", "<&-", "<&- >&- 2>&-", "| true"])
def test_closed_streams(home: SharedHome, redirected: str) -> None:
    StandIn(home, hello.encode(hello.Fields((("status", "ok"), ("output", "x" * 100_000)))))
    command = f'"$0" -P -m nexus_daemon hook claude-code SessionStart {redirected}'
    if "<" not in redirected:
        command = f"echo '{json.dumps(COMPACT)}' | {command}"
    result = subprocess.run(
        ["sh", "-c", f"{command}; echo $?", sys.executable],
        env=home.environ,
        capture_output=True,
        timeout=SOON_S,
        check=False,
    )
    assert (result.stdout.split()[-1:], result.stderr) == ([b"0"], b"")


def test_arguments_that_are_none_of_a_hook(home: SharedHome) -> None:
    for arguments in ([], ["claude-code"]):
        result = subprocess.run(
            [sys.executable, "-P", "-m", "nexus_daemon", "hook", *arguments],
            env=home.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


# ---------------------------------------------------------------- without a daemon: the spool


def test_what_would_be_lost_is_spooled(home: SharedHome) -> None:
    place = home.place
    for number in range(3):
        payload = b'{"n":\n%d}' % number
        spool(place, "claude-code", "PreCompact", payload)
    spool(place, "claude-code", "PreCompact", b"{" + b" " * LONGEST_SPOOLED)
    path = Path(spool_path(place))
    assert path.read_bytes() == b"".join(
        b'claude-code\tPreCompact\t{"n": %d}\n' % number for number in range(3)
    )
    assert path.stat().st_mode & 0o777 == 0o600
    for _ in range(MOST_SPOOLED // 10_000 + 5):
        spool(place, "claude-code", "PreCompact", b"{" + b"x" * 10_000)
    assert path.stat().st_size <= MOST_SPOOLED


def test_a_link_is_not_followed(home: SharedHome) -> None:
    target = home.home / "target"
    target.write_text("mine")
    os.symlink(target, spool_path(home.place))
    assert not spool(home.place, "claude-code", "PreCompact", b"{}")
    assert target.read_text() == "mine"


def test_a_daemon_is_started_and_takes_what_was_spooled(home: SharedHome) -> None:
    folder = home.home / "company"
    folder.mkdir()
    (folder / "CLAUDE.md").write_text("x")
    loaded = {
        **PAYLOAD,
        "cwd": str(folder),
        "file_path": str(folder / "CLAUDE.md"),
        "load_reason": "session_start",
    }
    assert call(home, "InstructionsLoaded", loaded) == SILENT
    assert Path(spool_path(home.place)).exists()
    assert call(home, "SessionStart", {**PAYLOAD, "source": "startup"}) == SILENT  # it waits for no daemon
    block_until(lambda: home.pid() is not None)
    assert call(home, "Stop") == SILENT
    from nexus_daemon.assistants.hooks.loaded_files import read_sessions

    block_until(lambda: bool(read_sessions(home.environ)))
    assert [file.path for file in read_sessions(home.environ)[0].files] == [str(folder / "CLAUDE.md")]
    assert not Path(spool_path(home.place)).exists()


@pytest.mark.parametrize("dies", [True, False])
def test_a_daemon_that_hangs_loses_no_fact(home: SharedHome, dies: bool) -> None:
    """It may be killed with what its socket holds; the next one, or this one later, takes the file."""
    folder = home.home / "company"
    folder.mkdir()
    (folder / "CLAUDE.md").write_text("x")
    loaded = {**PAYLOAD, "cwd": str(folder), "file_path": str(folder / "CLAUDE.md"), "load_reason": "include"}
    with home.window() as window:
        window.hello()
        pid = home.pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        assert call(home, "InstructionsLoaded", loaded) == SILENT
        assert Path(spool_path(home.place)).exists()
        os.kill(pid, signal.SIGKILL if dies else signal.SIGCONT)
        window.request("nexus/status", {}, timeout=20)
        assert call(home, "Stop") == SILENT
        from nexus_daemon.assistants.hooks.loaded_files import read_sessions

        block_until(lambda: bool(read_sessions(home.environ)))
        assert [file.path for file in read_sessions(home.environ)[0].files] == [str(folder / "CLAUDE.md")]
        block_until(lambda: not Path(spool_path(home.place)).exists())


@pytest.mark.parametrize("transport", ["", "tcp"])
def test_a_real_daemon_answers_after_a_compaction(tmp_path: Path, transport: str) -> None:
    with shared_home(tmp_path / "home", transport) as home:
        check_answer(home)


def check_answer(home: SharedHome) -> None:
    transcript = home.home / "s.jsonl"
    record = {
        "type": "user",
        "uuid": "1",
        "sessionId": "s",
        "message": {"role": "user", "content": "Never use tabs."},
    }
    transcript.write_text(json.dumps(record) + "\n")
    payload = {**PAYLOAD, "cwd": str(home.home), "transcript_path": str(transcript)}
    call(home, "SessionStart", {**payload, "source": "startup"})
    block_until(lambda: home.pid() is not None)
    summary = {**payload, "agent_type": "", "last_assistant_message": "<summary>A.</summary>"}

    def compact() -> bytes:
        call(home, "PreCompact", payload)
        call(home, "SubagentStop", summary)
        answer = call(home, "SessionStart", {**payload, "source": "compact"})
        assert (answer.code, answer.stderr) == (0, b"")
        return answer.stdout

    answers: list[bytes] = []

    def is_answered() -> bool:  # not while the daemon still imports what it needs
        answers.append(compact())
        return bool(answers[-1])

    block_until(is_answered)
    assert "Never use tabs." in json.loads(answers[-1])["hookSpecificOutput"]["additionalContext"]


def test_a_stopped_daemon_holds_nobody_up(home: SharedHome) -> None:
    call(home, "SessionStart", {**PAYLOAD, "source": "startup"})
    block_until(lambda: home.pid() is not None)
    pid = home.pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        for event in ("Stop", "SessionStart", "UserPromptSubmit"):
            assert call(home, event, COMPACT) == SILENT
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep others out by the directory")
def test_a_socket_of_another_user_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_users_process(ours)
        monkeypatch.setattr(os, "getuid", lambda: 4_711)
        assert not is_users_process(ours)


def test_next_to_nothing_is_imported() -> None:
    program = (
        "import sys; before = set(sys.modules); from nexus_daemon.shared import hook_client;"
        "print(*sorted(set(sys.modules) - before))"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[1:1] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(result.stdout.split())
    assert sorted(name for name in imported if name.startswith("nexus")) == [
        "nexus_daemon",
        "nexus_daemon.process",
        "nexus_daemon.process.version",
        "nexus_daemon.shared",
        "nexus_daemon.shared.hello",
        "nexus_daemon.shared.hook_client",
        "nexus_daemon.shared.identity",
    ]
    slow = {
        "collections",
        "contextlib",
        "enum",
        "functools",
        "json",
        "re",
        "signal",
        "socket",
        "struct",
        "typing",
    }
    assert imported & slow == set()
