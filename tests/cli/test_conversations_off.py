"""The setting `views.conversations`: while it is off, no command opens a session file of another program."""

import json
from pathlib import Path

import pytest

from nexus_context.config.conversations import NOT_READ
from support.assistant_logs import ClaudeLog, CodexLog, OpencodeDatabase
from support.commands import Output, run_nexus, use_home
from support.opens import session_opens

OFF = '{"views": {"conversations": false}}'


class Shell:
    """The commands of a user in `folder`, where programs have conversations."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.folder = root / "home", root / "shop"
        self.folder.mkdir()
        (self.folder / "CLAUDE.md").write_text("Use tabs.\n")
        self.claude = ClaudeLog(self.home, "c1", folder=str(self.folder))
        self.claude.user("Where is the gate?")
        self.claude.answer("Behind the harbour.")
        codex = CodexLog(self.home, "r1", folder=str(self.folder))
        codex.user("Is the harbour open?")
        database = OpencodeDatabase(self.home)
        database.session("o1", folder=str(self.folder))
        database.message("o1", "user", "Draw the harbour.")
        project = self.home / ".gemini" / "tmp" / "shop"
        (project / "chats").mkdir(parents=True)
        (project / ".project_root").write_text(str(self.folder))
        (project / "chats" / "session-g1.jsonl").write_text("{}\n")
        self._capsys = capsys

    def turn_off(self, *, everywhere: bool = False) -> None:
        directory = self.home if everywhere else self.folder
        (directory / ".nexus3").mkdir(exist_ok=True)
        (directory / ".nexus3" / "config.json").write_text(OFF)

    def run(self, *arguments: str) -> tuple[Output, list[str]]:
        """What a command prints, and what it opens of the sessions."""
        with session_opens(self.home) as opened:
            output = run_nexus(self._capsys, *arguments)
        return output, opened


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    use_home(monkeypatch, tmp_path)
    monkeypatch.delenv("GEMINI_CLI_HOME", raising=False)
    shell = Shell(tmp_path, capsys)
    monkeypatch.chdir(shell.folder)
    return shell


LISTING = (
    ("sessions", "list"),
    ("sessions", "list", "--json"),
    ("sessions", "list", "--all"),
    ("sessions", "list", "--assistants"),
    ("sessions", "list", "--assistants", "--all", "--json"),
    ("sessions", "show", "c1"),
    ("sessions", "search", "harbour"),
    ("sessions", "search", "harbour", "--all"),
    ("sessions", "search", "harbour", "--session", "c1"),
    ("sessions", "keep"),
    ("sessions", "keep", "--all"),
    ("watch", "--once"),
    (),
)
OTHERS = (
    ("check",),
    ("show",),
    ("show", "--for", "all"),
    ("show", "--for", "claude-code", "--source"),
    ("explain", "Bash(ls)"),
    ("status",),
    ("doctor",),
)


@pytest.mark.parametrize("command", LISTING, ids=" ".join)
def test_what_would_list_conversations_says_that_they_are_off(shell: Shell, command: tuple[str, ...]) -> None:
    assert shell.run(*command)[1] != []
    shell.turn_off()
    output, opened = shell.run(*command)
    assert opened == []
    assert (output.out + output.err).count(NOT_READ) == 1
    assert "Traceback" not in output.err


@pytest.mark.parametrize("command", OTHERS, ids=" ".join)
def test_no_other_command_opens_a_session(shell: Shell, command: tuple[str, ...]) -> None:
    shell.turn_off(everywhere=True)
    output, opened = shell.run(*command)
    assert opened == []
    assert "Traceback" not in output.err


def test_watch_does_not_wait_where_nothing_is_read(shell: Shell) -> None:
    shell.turn_off()
    output, _ = shell.run("watch")
    assert (output.code, output.out) == (1, "")
    assert output.err.startswith(f"nexus watch: {NOT_READ} See ")
    assert output.err.endswith("config.json:1.\n")


def test_what_was_kept_before_is_listed_and_shown(shell: Shell) -> None:
    shell.run("sessions", "keep")
    shell.turn_off()
    listed, _ = shell.run("sessions", "list", "--json")
    conversations = json.loads(listed.out)["conversations"]
    assert {(each["program"], each["kept"]) for each in conversations} == {
        ("claude-code", True),
        ("codex", True),
        ("opencode", True),
    }
    shown, opened = shell.run("sessions", "show", "c1")
    assert (shown.code, opened) == (0, [])
    assert "Behind the harbour." in shown.out
    found, _ = shell.run("sessions", "search", "harbour")
    assert "Behind the" in found.out


def test_a_workspace_file_does_not_turn_on_what_the_user_has_turned_off(shell: Shell) -> None:
    shell.turn_off(everywhere=True)
    (shell.folder / ".nexus3").mkdir()
    (shell.folder / ".nexus3" / "config.json").write_text('{"views": {"conversations": true}}')
    _, opened = shell.run("sessions", "list")
    assert opened == []
