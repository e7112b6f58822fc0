"""`nexus sessions keep`: what it prints, and how the other actions show what was kept."""

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from inline_snapshot import snapshot

from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.sqlite_tables import MirrorTables
from nexus_daemon.cli import main
from support.assistant_logs import ClaudeLog, CodexLog, OpencodeDatabase
from support.commands import use_home

TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
SECRET = "ghp_" + "a1B2" * 9


class Shell:
    """The command line of a user with sessions of other assistants in `folder`."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.folder = root / "home", root / "shop"
        self.folder.mkdir()
        self._root, self._capsys = str(root), capsys
        self._project = "".join(letter if letter.isalnum() else "-" for letter in str(self.folder))

    def claude(self, name: str = "s1", **options: Any) -> ClaudeLog:
        return ClaudeLog(self.home, name, folder=str(self.folder), **options)

    def run(self, *arguments: str, code: int = 0) -> str:
        assert main(["sessions", *arguments]) == code
        printed = self._capsys.readouterr()
        text = (printed.out + printed.err).replace(self._root, "").replace(self._project, "<project>")
        return TIME.sub("<time>", text)

    def keep(self, *arguments: str, code: int = 0) -> str:
        return self.run("keep", str(self.folder), *arguments, code=code)

    def json(self, *arguments: str) -> Any:
        assert main(["sessions", *arguments, "--json"]) == 0
        return json.loads(self._capsys.readouterr().out)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    use_home(monkeypatch, tmp_path)
    return Shell(tmp_path, capsys)


def test_what_was_kept_is_summed_up(shell: Shell) -> None:
    log = shell.claude()
    log.user("Where?")
    log.answer("There.")
    CodexLog(shell.home, "r1", folder=str(shell.folder)).user("What?")
    CodexLog(shell.home, "r2", folder="/elsewhere").user("What?")
    assert shell.keep() == snapshot("2 sessions kept, 2 turns with 3 messages written.\n")
    assert shell.keep() == snapshot("Nothing is new, 2 files unchanged.\n")
    log.user("Sure?")
    shell.claude("s2").user("Other")
    assert shell.keep() == snapshot(
        "1 session kept, 1 session continued, 2 turns with 2 messages written, 1 file unchanged.\n"
    )
    assert shell.run("keep", "--all") == snapshot(
        "1 session kept, 1 turn with 1 message written, 3 files unchanged.\n"
    )


def test_there_is_nothing(shell: Shell) -> None:
    assert shell.keep() == snapshot(
        "There is nothing to keep: Claude Code, Codex, opencode and Gemini CLI have no sessions in /shop; "
        "start one of them there.\n"
    )
    assert shell.run("keep", "--all") == snapshot(
        "There is nothing to keep: Claude Code, Codex, opencode and Gemini CLI have no sessions "
        "on this machine; "
        "start one of them there.\n"
    )
    assert shell.run("keep", str(shell.folder / "none"), code=2).endswith("none is not a folder.\n")


def test_for_programs(shell: Shell) -> None:
    log = shell.claude()
    log.user("Where?")
    OpencodeDatabase(shell.home)
    values = shell.json("keep", str(shell.folder))
    files = [{**file, "path": Path(file["path"]).name} for file in values["files"]]
    assert files == snapshot(
        [
            {
                "assistant": "claude-code",
                "path": "s1.jsonl",
                "new": 1,
                "continued": 0,
                "forked": 0,
                "deleted": 0,
                "turns": 1,
                "messages": 1,
                "problems": [],
                "failure": None,
            },
            {
                "assistant": "opencode",
                "path": "opencode.db",
                "new": 0,
                "continued": 0,
                "forked": 0,
                "deleted": 0,
                "turns": 0,
                "messages": 0,
                "problems": [],
                "failure": None,
            },
        ]
    )
    assert (values["unchanged"], values["bytes"]) == (0, log.path.stat().st_size)


def test_damage_is_named_and_the_rest_is_kept(shell: Shell) -> None:
    log = shell.claude()
    log.user("Where?")
    log.raw(b"oops\n")
    log.answer("There.")
    path = shell.home / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database at all" * 100)
    place = len(log.path.read_bytes().split(b"oops")[0])
    assert shell.keep(code=1).replace(f"byte {place}", "byte <place>") == snapshot("""\
1 session kept, 1 turn with 2 messages written, 1 file not read.
nexus sessions: /home/.claude/projects/<project>/s1.jsonl: 1 line is not JSON or too long (the first at \
byte <place>); left out.
nexus sessions: /home/.local/share/opencode/opencode.db: it cannot be read: file is not a database.
""")


def test_a_full_disk_keeps_what_was_written(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    log = shell.claude()
    log.user("Where?")

    def fails(*_: Any) -> None:
        raise LedgerError("The disk is full.", code="ledger-full")

    with monkeypatch.context() as patch:
        patch.setattr(MirrorTables, "write", fails)
        assert shell.keep(code=1) == snapshot(
            "nexus sessions: The disk is full. What was written before stays; the next nexus sessions keep "
            "continues there.\n"
        )
    assert shell.keep().startswith("1 session kept")


def test_a_locked_ledger_is_said(shell: Shell) -> None:
    log = shell.claude()
    log.user("Where?")
    shell.keep()
    log.answer("There.")
    with closing(apsw.Connection(str(shell.folder.parent / "state/ledger.db"))) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert "the next nexus sessions keep continues there" in shell.keep(code=1)
        holder.execute("ROLLBACK")
    assert shell.keep() == snapshot("1 session continued, 1 turn with 1 message written.\n")


def test_where_a_session_comes_from_is_shown(shell: Shell) -> None:
    log = shell.claude()
    log.user(f"Where is {SECRET}?")
    log.answer("Searching", {"type": "tool_use", "id": "c", "name": "Bash", "input": {"token": SECRET}})
    agent = shell.claude("x", agent="a7", session="s1")
    agent.user("Search.")
    shell.keep()
    place = ("--folder", str(shell.folder))
    rows = [line.split()[1:] for line in shell.run("list", *place).splitlines() if line.strip(" ─")]
    assert rows == snapshot(
        [
            ["title", "program", "last", "turn", "window", "cost", "kept"],
            ["Where", "is", "*" * 40 + "?", "Claude", "Code", "<time>", "100", "–", "yes"],
            ["Search.", "Claude", "Code", "<time>", "≈6", "–", "yes"],
            ["conversations", "106", "–"],
        ]
    )
    assert shell.run("show", "claude-code agent: Search.", *place) == snapshot("""\
claude-code agent: Search.
1 turn, 1 message, ≈6 tokens; begun <time>, changed <time>
kept from claude-code: s1/a7
a sub-agent of 'claude-code: Where is ***?'
/home/.claude/projects/<project>/s1/subagents/agent-a7.jsonl

turn 1, <time>
       user        6  Search.
""")
    (name,) = (one["session"] for one in shell.json("list", *place)["sessions"] if "Where" in one["session"])
    assert SECRET not in name
    shown = shell.run("show", name, *place)
    assert "a1B2" not in shown
    assert "Where is ****" in shown
    found = shell.run("search", "where", *place)
    assert "a1B2" not in found
    assert "from claude-code" in found
    assert "a1B2" not in shell.run("search", SECRET, *place)
    (hit,) = shell.json("search", "where", *place)["hits"]
    assert (hit["assistant"], "a1B2" in hit["snippet"]) == ("claude-code", False)
    origins = [one["origin"] for one in shell.json("list", *place)["sessions"]]
    assert [(one["assistant"], one["id"], one["parentSession"] is not None) for one in origins] == snapshot(
        [("claude-code", "s1/a7", True), ("claude-code", "s1", False)]
    )
    exported = shell.run("export", name, *place)
    assert SECRET in exported
    assert json.loads(exported.splitlines()[0])["origin"]["id"] == "s1"
    assert "Kept from claude-code: s1" in shell.run("export", name, "--format", "markdown", *place)
