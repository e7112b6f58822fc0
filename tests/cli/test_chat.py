"""`nexus chat` and `nexus agents spawn --run`, with a loopback provider: in a pipe, and on a terminal."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nexus_daemon.cli import main
from nexus_daemon.cli.chat.local_models import list_models
from nexus_daemon.cli.chat.screen import Screen, split_blocks
from nexus_daemon.protocol.chat import ChatItem
from support.commands import run_nexus, use_home
from support.loopback_provider import Call, Gate, LoopbackProvider, Refusal, Thinking, loopback_provider
from support.server_story import SERVER

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-ant-canary-77aa"
PATIENCE_S = 25.0
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_home(monkeypatch, tmp_path)
    monkeypatch.setenv("TEST_KEY", KEY)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("# Tides\n")
    (tmp_path / "home" / ".nexus3").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return tmp_path / "home"


def choose(home: Path, provider: LoopbackProvider, **settings: object) -> None:
    named = {"name": "anthropic", "model": "claude-sonnet-4-6", "api_key_env": "TEST_KEY"}
    config = {"provider": {**named, "base_url": provider.url}, **settings}
    (home / ".nexus3" / "config.json").write_text(json.dumps(config))


# ---------------------------------------------------------------- in a pipe


def test_one_message_prints_the_answer_and_is_recorded(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with loopback_provider([Thinking("Hm."), "# Low\n\nAt **noon**."], ["Again at noon."]) as provider:
        choose(home, provider)
        first = run_nexus(capsys, "chat", "-p", "When is low tide?")
        assert (first.code, first.out) == (0, "# Low\n\nAt **noon**.\n")
        assert "goes to anthropic" in first.err
        second = run_nexus(capsys, "chat", "-p", "Really?", "--format", "json")
        answer = json.loads(second.out)
        assert (answer["stopReason"], answer["steps"]) == ("end_turn", 1)
        assert second.err == ""
        assert "When is low tide?" in json.dumps(provider.requests[1]["messages"])


def test_without_a_provider_it_says_how_to_get_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".nexus3" / "config.json").write_text("{}")
    said = run_nexus(capsys, "chat", "-p", "Hello.")
    assert said.code == 1
    assert "ANTHROPIC_API_KEY" in said.err
    assert said.err.count("\n") <= 2


def test_a_failure_is_one_line_without_the_key(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with loopback_provider(Refusal(401, "authentication_error", f"invalid x-api-key {KEY}")) as provider:
        choose(home, provider)
        said = run_nexus(capsys, "chat", "-p", "Hello.")
    assert said.code == 1
    assert KEY not in said.out + said.err
    assert "provider.api_key_env" in said.err


def test_a_stored_key_is_used_and_forgotten(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_KEY")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("getpass.getpass", lambda _: KEY)
    with loopback_provider(["At noon."]) as provider:
        choose(home, provider)
        assert run_nexus(capsys, "chat", "--key").out == "The key is stored.\n"
        assert run_nexus(capsys, "chat", "-p", "When?").out == "At noon.\n"
        assert KEY in str(provider.headers[0])
        monkeypatch.setattr("getpass.getpass", lambda _: "")
        assert run_nexus(capsys, "chat", "--key").out == "The key is forgotten.\n"
        said = run_nexus(capsys, "chat", "-p", "When?")
        assert (said.code, len(provider.requests)) == (1, 1)
        assert "nexus chat --key" in said.err


@pytest.mark.parametrize("arguments", [[], ["--format", "json"]])
def test_a_conversation_needs_a_terminal(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run_nexus(capsys, "chat", *arguments).code == 2


def test_a_pipe_whose_reader_leaves_keeps_the_answer(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with loopback_provider(["tide " * 10 + "\n"] * 4_000, ["Yes."]) as provider:
        choose(home, provider)
        command = [sys.executable, "-m", "nexus_daemon", "chat", "-p", "Go on."]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(PATIENCE_S) == 0
        assert "Traceback" not in said
        run_nexus(capsys, "chat", "-p", "Was that all?")
        assert json.dumps(provider.requests[1]["messages"]).count("tide") == 40_000


@pytest.mark.parametrize(("given", "code"), [(b"When is \xff?", 0), (b"", 1), (None, 1)])
def test_any_input_makes_a_message_or_a_sentence(home: Path, given: bytes | None, code: int) -> None:
    """None: standard input is closed."""
    with loopback_provider(["At noon."]) as provider:
        choose(home, provider)
        command = [sys.executable, "-m", "nexus_daemon", "chat", "-p", "-"]
        if given is None:
            command = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command]
        ran = subprocess.run(command, input=given, capture_output=True, check=False, timeout=PATIENCE_S)
        assert ran.returncode == code
        assert b"Traceback" not in ran.stderr
        if code == 0:
            assert "When is \ufffd" in json.dumps(provider.requests[0]["messages"], ensure_ascii=False)


def test_an_agent_that_runs_reports_to_its_manager(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = "The leak is in pool.close."
    with loopback_provider([Call("c1", "list_agents")], [report], ["I see."]) as provider:
        choose(home, provider)
        ran = run_nexus(capsys, "agents", "spawn", "auth", "--task", "Find the leak.", "--run")
        assert (ran.code, ran.out.strip()) == (0, report)
        assert "2 steps" in ran.err
        run_nexus(capsys, "chat", "-p", "What did auth find?")
        assert report in json.dumps(provider.requests[-1]["messages"])  # waited for the next turn of main


def test_an_agent_has_limits_of_its_own(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = [[Call(f"c{number}", "list_agents")] for number in range(9)]
    with loopback_provider(*script) as provider:
        choose(home, provider)
        task = ["agents", "spawn", "auth", "--task", "Go on for ever.", "--run", "--max-steps", "3"]
        assert run_nexus(capsys, *task).code == 0
        assert len(provider.requests) == 3


def test_run_needs_a_task(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_nexus(capsys, "agents", "spawn", "auth", "--run").code == 2


# ---------------------------------------------------------------- on a terminal


class ChatTerminal:
    """`nexus chat` on a pseudo-terminal; `text` is what it has shown."""

    def __init__(self, environ: Mapping[str, str], columns: int) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        os.set_blocking(self._ours, False)
        self.text = ""
        command = [sys.executable, "-m", "nexus_daemon", "chat"]
        environ = {**os.environ, "TERM": "xterm", **environ}
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ)
        os.close(theirs)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def read_until(self, wanted: str) -> str:
        """What is shown up to and with a text that has not been read yet."""
        deadline = time.monotonic() + PATIENCE_S
        while wanted not in self.text:
            assert time.monotonic() < deadline, self.text
            try:
                shown = os.read(self._ours, 65_536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.01)
                continue
            except OSError:  # the process has ended
                assert wanted in self.text, self.text
                break
            self.text += _CONTROL.sub("", shown).replace("\r", "")
        before, found, self.text = self.text.partition(wanted)
        return before + found

    def end(self) -> int:
        self.type("\x04")
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            os.close(self._ours)


@pytest.fixture
def terminals() -> Iterator[list[ChatTerminal]]:
    started: list[ChatTerminal] = []
    yield started
    for terminal in started:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.wait()


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}])
def test_a_conversation_on_a_narrow_terminal(
    home: Path, terminals: list[ChatTerminal], environ: Mapping[str, str]
) -> None:
    long = "The tide is low at noon, and again at midnight, as it is on most days of this month."
    with loopback_provider([f"## Tides\n\n{long}\n\n- one\n- two"], ["Undone."]) as provider:
        choose(home, provider)
        terminals.append(ChatTerminal(environ, 40))
        (chat,) = terminals
        chat.read_until("> ")
        chat.type("When is low tide?\n")
        shown = chat.read_until("1 step")
        assert all(len(line) <= 40 for line in chat_lines(shown))
        assert "Tides" in shown
        chat.read_until("> ")
        chat.type("And then?\n")
        chat.read_until("Undone.")
        chat.read_until("> ")
        chat.type("/undo\n")
        assert "main-2" in chat.read_until("And then?")
        chat.read_until("> ")
        chat.type("/nonsense\n")
        chat.read_until("/help")
        chat.read_until("> ")
        assert chat.end() == 0


def chat_lines(shown: str) -> list[str]:
    """The lines of the answer."""
    start, end = shown.index("Tides"), shown.rindex("[main")
    return [line.rstrip() for line in shown[start:end].splitlines()]


def test_ctrl_c_cancels_an_answer_and_the_chat_goes_on(home: Path, terminals: list[ChatTerminal]) -> None:
    gate = Gate()
    with loopback_provider(["Half an", gate, " answer."], ["Whole."]) as provider:
        choose(home, provider)
        terminals.append(ChatTerminal({}, 80))
        (chat,) = terminals
        chat.read_until("> ")
        chat.type("Hello.\n")
        chat.read_until("Half an")
        chat.process.send_signal(signal.SIGINT)  # as Ctrl-C does on a terminal of the process's own
        chat.read_until("Cancelled.")
        gate.opened.set()
        chat.type("Again.\n")
        chat.read_until("Whole.")
        chat.read_until("> ")
        assert "Half an" in json.dumps(provider.requests[1]["messages"])
        assert chat.end() == 0


def approve_notes() -> None:
    """Let the folder have a server of notes."""
    folder = Path.cwd()
    server = {"command": sys.executable, "args": [str(SERVER), str(folder)]}
    (folder / "tools.json").write_text('{"find_notes": "Finds notes."}')
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"notes": server}}))
    assert main(["trust", "."]) == 0
    assert main(["mcp", "approve", "notes", "--yes"]) == 0


def test_what_was_typed_before_a_question_does_not_answer_it(
    home: Path, terminals: list[ChatTerminal]
) -> None:
    approve_notes()
    gate = Gate()
    call = Call("c1", "mcp__notes__find_notes", {"text": "tide"})
    with loopback_provider(["I look.", gate, call], ["Then not."]) as provider:
        choose(home, provider)
        terminals.append(ChatTerminal({}, 100))
        (chat,) = terminals
        chat.read_until("> ")
        chat.type("When is low tide?\n")
        chat.read_until("I look.")
        chat.type("y\n")
        gate.opened.set()
        chat.read_until("[N]o: ")
        chat.type("n\n")
        assert "did not allow" in chat.read_until("2 steps")
        chat.read_until("> ")
        assert chat.end() == 0


def test_the_recorded_session_of_the_page(home: Path, terminals: list[ChatTerminal]) -> None:
    """docs/chat.md shows this session: a question, a tool that is asked for, a fork."""
    approve_notes()
    call = Call("c1", "mcp__notes__find_notes", {"text": "tide"})
    answer = "The tide is low at **12:40**, says a note:\n\n- boats leave at noon\n- nets come in at two\n\n"
    with loopback_provider(["I look for a note.\n\n", call], [answer], ["At 18:55.\n\n"]) as provider:
        choose(home, provider)
        terminals.append(ChatTerminal({"NO_COLOR": "1"}, 100))
        (chat,) = terminals
        shown = chat.read_until("> ")
        for typed, wanted in (
            ("When is low tide?\n", "[N]o: "),
            ("y\n", "2 steps"),
            ("And high tide?\n", "1 step"),
            ("/undo\n", "And high tide?"),
            ("/compact\n", "/undo restores them."),
        ):
            chat.type(typed)
            shown += chat.read_until(wanted)
            if typed != "When is low tide?\n":
                shown += chat.read_until("> ")
        assert chat.end() == 0
    session = re.sub(r" at http://127\.0\.0\.1:\d+", "", shown.removesuffix("> "))
    lines = [line.rstrip() for line in session.splitlines()]
    page = (ROOT / "docs" / "chat.md").read_text(encoding="utf-8")
    assert "\n".join(lines).strip() in page


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("One.", ""),
        ("One.\n\nTwo", "One.\n\n"),
        ("```\na\n\nb", ""),
        ("A.\n\n```\na\n\nb", "A.\n\n"),
        ("```\na\n\nb\n```\n\nC", "```\na\n\nb\n```\n\n"),
        ("\n\nA", ""),
    ],
)
def test_blocks_are_printed_once_they_are_whole(text: str, whole: str) -> None:
    assert split_blocks(text) == (whole, text[len(whole) :])


def test_a_long_block_is_split_in_linear_time() -> None:
    code = "```\n" + "x = 1\n\n" * 20_000
    start = time.process_time()
    assert split_blocks(f"A.\n\n{code}") == ("A.\n\n", code)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(("piece", "last"), [("word " * 20, "word END"), ("x = 1\n\n", "END")])
def test_a_block_without_end_costs_a_screen_for_each_piece(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], piece: str, last: str
) -> None:
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    screen = Screen(is_plain=False)
    screen.show([ChatItem("text", text="```\n" + piece * 10_000)])
    start = time.process_time()
    for _ in range(20):
        screen.show([ChatItem("text", text=piece)])
    screen.show([ChatItem("text", text="END")])
    assert time.process_time() - start < 3.0
    capsys.readouterr()
    screen.show([ChatItem("text", text="!")])
    assert f"{last}!" in capsys.readouterr().out


def test_no_server_at_a_port_has_no_models() -> None:
    assert list_models(1) == []
