"""`nexus sessions list`, `show` and `search`: what all programs have, kept or not, as one list."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_daemon.cli import main
from support.assistant_logs import ClaudeLog, CodexLog, OpencodeDatabase
from support.commands import use_home

TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
THREAD = re.compile(r"\b[0-9a-f]{8}\b")
SECRET = "ghp_" + "a1B2" * 9


class Shell:
    """The command line of a user in `folder`, where three programs have a conversation each."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.folder = root / "home", root / "shop"
        (self.folder / "web").mkdir(parents=True)
        self._root, self._capsys = str(root), capsys
        self.claude = ClaudeLog(self.home, "c1", folder=str(self.folder / "web"))
        self.claude.user(f"Where is the gate of {SECRET}?")
        self.claude.answer("It is behind the harbour.")
        self.codex = CodexLog(self.home, "r1", folder=str(self.folder))
        self.codex.user("Is the Harbour open?")
        self.codex.answer("At noon.")
        database = OpencodeDatabase(self.home)
        database.session("o1", folder=str(self.folder))
        database.message("o1", "user", "Draw the harbour at noon.")
        database.answer("o1", "Done.", 100)

    def run(self, action: str, *arguments: str, code: int = 0) -> str:
        """What is printed; times and the ids of threads left out."""
        place = [] if action == "keep" else ["--folder", str(self.folder)]
        if action == "keep":
            place = [str(self.folder)]
        assert main(["sessions", action, *arguments, *place]) == code
        printed = self._capsys.readouterr()
        text = (printed.out + printed.err).replace(self._root, "")
        return THREAD.sub("<thread>", TIME.sub("<time>", text))

    def rows(self, *arguments: str) -> list[list[str]]:
        """The rows of the list, without its header."""
        lines = self.run("list", *arguments).splitlines()
        return [re.split(r"\s{2,}", line.strip()) for line in lines if line.strip(" ─")][1:]

    def json(self, *arguments: str) -> Any:
        assert main(["sessions", *arguments, "--json", "--folder", str(self.folder)]) == 0
        return json.loads(self._capsys.readouterr().out.replace(self._root, ""))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    use_home(monkeypatch, tmp_path)
    return Shell(tmp_path, capsys)


# ---------------------------------------------------------------- list


def test_one_list_of_all_programs(shell: Shell) -> None:
    shell.run("append", "main", "Hello.")
    rows = shell.rows()
    assert rows == snapshot(
        [
            ["<thread>", "main", "Nexus", "<time>", "28", "–", "yes"],
            [
                "c1",
                "Where is the gate of ****************************************?",
                "Claude Code",
                "web",
                "<time>",
                "100",
                "–",
                "no",
            ],
            ["r1", "Is the Harbour open?", "Codex", "<time>", "100", "–", "no"],
            ["o1", "title of o1", "opencode", "<time>", "100", "$0.01", "no"],
            ["4 conversations", "328", "at least $0.01"],
        ]
    )


def test_what_is_kept_and_its_file_are_one_row(shell: Shell) -> None:
    before = shell.rows()
    shell.run("keep")
    after = shell.rows()
    assert [row[:-1] for row in after[:-1]] == [row[:-1] for row in before[:-1]]
    assert {row[-1] for row in after[:-1]} == {"yes"}
    shell.codex.path.unlink()
    assert shell.rows("--program", "codex") == snapshot(
        [["<thread>", "Is the Harbour open?", "Codex", "<time>", "≈15", "–", "yes"]]
    )


def test_the_time_of_an_import_is_not_the_last_turn(shell: Shell) -> None:
    shell.run("import", str(shell.claude.path))
    (listed,) = (each for each in shell.json("list")["conversations"] if each["program"] == "nexus")
    assert listed["lastTurn"].startswith("2026-11-20")


def test_the_list_of_a_program_and_of_a_time(shell: Shell) -> None:
    shell.run("append", "main", "Hello.")
    assert [row[1] for row in shell.rows("--program", "nexus")] == ["main"]
    assert [row[1] for row in shell.rows("--since", "1d")] == ["main"]
    assert len(shell.rows("--since", "2026-11-20")) == 4
    assert shell.run("list", "--since", "1h", "--program", "codex") == (
        "nexus sessions: No conversation matches --program and --since.\n"
    )
    with pytest.raises(SystemExit):
        shell.run("list", "--since", "soon")
    assert [each["id"] for each in shell.json("list", "--assistants", "--program", "codex")["sessions"]] == [
        "r1"
    ]


def test_the_list_for_programs(shell: Shell) -> None:
    shell.run("keep")
    values = shell.json("list")
    assert [each["session"] for each in values["sessions"]] == snapshot(
        ["opencode: Draw the harbour at noon.", "codex: Is the Harbour open?"]
    )
    assert values["total"] == snapshot(
        {
            "conversations": 3,
            "tokens": 300,
            "costUsd": 0.01,
            "costLacks": ["conversations of which no cost is known"],
        }
    )
    (conversation,) = (each for each in values["conversations"] if each["id"] == "c1")
    conversation["thread"], conversation["path"] = "<thread>", Path(conversation["path"]).name
    assert conversation == snapshot(
        {
            "program": "claude-code",
            "id": "c1",
            "session": "claude-code: Where is the gate of ***?",
            "thread": "<thread>",
            "title": "Where is the gate of ****************************************?",
            "folder": "/shop/web",
            "lastTurn": "2026-11-20T10:00:02.000Z",
            "tokens": 100,
            "estimated": False,
            "window": 200000,
            "costUsd": None,
            "costLacks": ["conversations of which no cost is known"],
            "kept": True,
            "path": "c1.jsonl",
            "parent": None,
            "forkOf": None,
        }
    )


@pytest.mark.parametrize("is_kept", [False, True], ids=["not kept", "kept"])
def test_a_package_has_what_ran_in_folders_above_it(shell: Shell, tmp_path: Path, *, is_kept: bool) -> None:
    """Not what ran beside it, nor in the user's home."""
    package = shell.folder / "packages" / "a"
    package.mkdir(parents=True)
    beside = ClaudeLog(shell.home, "b1", folder=str(shell.folder / "packages" / "b"))
    beside.user("Where is the harbour of b?")
    ClaudeLog(shell.home, "h1", folder=str(tmp_path)).user("Is there a harbour anywhere?")
    above = ClaudeLog(shell.home, "a1", folder=str(shell.folder))
    above.user("Where is the harbour of all?")
    if is_kept:
        shell.run("keep", "--all")
    shell.folder = package
    rows = shell.rows()
    assert sorted((row[0], row[3]) for row in rows[:-1]) == [
        ("a1", "/shop"),
        ("o1", "/shop"),
        ("r1", "/shop"),
    ]
    found = shell.run("search", "harbour")
    assert (found.count("«"), found.count(", /shop")) == (3, 3)


def test_a_link_to_a_folder_has_what_the_folder_has(shell: Shell, tmp_path: Path) -> None:
    shell.run("append", "main", "Hello.")
    rows = shell.rows()
    (tmp_path / "link").symlink_to(shell.folder)
    shell.folder = tmp_path / "link"
    assert shell.rows() == rows


# ---------------------------------------------------------------- show


@pytest.mark.parametrize(("name", "text"), [("c1", "behind"), ("r", "At noon."), ("o1", "Done.")])
def test_what_is_not_kept_is_shown(shell: Shell, name: str, text: str) -> None:
    printed = shell.run("show", name)
    assert "not kept: read from the file of" in printed
    assert text in printed
    shown = shell.json("show", name)
    assert [turn["seq"] for turn in shown["turns"]] == [1]
    assert shown["session"]["kept"] is False


def test_a_session_that_is_not_kept(shell: Shell) -> None:
    for number in range(3):
        shell.claude.user(f"Question {number}?")
    printed = shell.run("show", "c1", "--last", "1")
    assert re.sub(r"/home/.*/", "…/", printed) == snapshot("""\
Where is the gate of ****************************************?
4 turns, 5 messages; window 100; cost –; last turn <time>
not kept: read from the file of Claude Code, c1
…/c1.jsonl

… 3 earlier turns: --last N shows more
turn 4, <time>, claude-sonnet-4-5
       user        7  Question 2?
""")


def test_a_session_of_a_folder_inside_is_shown_when_it_is_kept(shell: Shell) -> None:
    agent = ClaudeLog(shell.home, "x", folder=str(shell.folder / "web"), agent="a7", session="c1")
    agent.user("Search.")
    shell.run("keep")
    assert "kept from claude-code: c1\n" in shell.run("show", "c1")
    assert "kept from claude-code: c1/a7\n" in shell.run("show", "c1/a7")
    agent_name = "claude-code agent: Search."
    assert "kept from claude-code: c1/a7\n" in shell.run("show", agent_name)


def test_an_id_that_several_have_or_none(shell: Shell) -> None:
    ClaudeLog(shell.home, "c22", folder=str(shell.folder)).user("Hello.")
    ClaudeLog(shell.home, "c333", folder="/elsewhere").user("Good morning.")
    assert shell.run("show", "c", code=1) == (
        "nexus sessions: 2 conversations begin with 'c': 'c1', 'c22'. Write more of it.\n"
    )
    assert "Hello." in shell.run("show", "c2")
    assert "Good morning." in shell.run("show", "c3")
    assert shell.run("show", "zebra", code=1).startswith("nexus sessions: There is no session 'zebra'")


# ---------------------------------------------------------------- search


def test_what_is_not_kept_is_found_beside_the_ledger(shell: Shell) -> None:
    shell.run("append", "main", "The harbour master called.")
    lines = shell.run("search", "HARBOUR").splitlines()
    assert lines[:2] == ["main, turn 1, user, <time>", "  The «harbour» master called."]
    assert sorted(lines[2:]) == snapshot(
        [
            "  Draw the «harbour» at noon.",
            "  Is the «Harbour» open?",
            "  It is behind the «harbour».",
            "claude-code: Where is the gate of ***?, c1, assistant, <time>, not kept, /shop/web",
            "codex: Is the Harbour open?, r1, user, <time>, not kept",
            (
                "nexus sessions: Also searched: files of 3 conversations that Nexus does not keep whole. "
                "To keep: nexus sessions keep."
            ),
            "opencode: title of o1, o1, user, <time>, not kept",
        ]
    )
    shell.run("keep")
    assert "not kept" not in shell.run("search", "harbour")


QUERIES = [
    "harbour",
    "harbour open",
    '"harbour open"',
    '"open harbour"',
    "harb",
    "harb*",
    "noon -draw",
    "-noon harbour",
    "größe",
    "read_file",
    "file",
    "字テ",
]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_means_the_same_kept_or_not(shell: Shell, query: str) -> None:
    shell.codex.user("Die GRÖSSE, die Größe, grösse: read_file read-file 漢字テスト")
    shell.claude.put("user", message={"role": "user", "content": "Größe!"})
    in_files = shell.json("search", query)
    shell.run("keep")
    in_ledger = shell.json("search", query)
    assert in_ledger["notKept"] == {"searched": 0, "hits": []}
    found = {(hit["program"], hit["position"]) for hit in in_files["notKept"]["hits"]}
    assert found == {(hit["assistant"], hit["position"]) for hit in in_ledger["hits"]}


def test_what_came_after_keep_is_found_once(shell: Shell) -> None:
    shell.run("keep")
    shell.claude.user("The harbour again.")
    shell.codex.user("And the harbour?")
    values = shell.json("search", "harbour", "--limit", "50")
    snippets = {hit["snippet"] for hit in values["notKept"]["hits"]}
    assert snippets == {"And the «harbour»?", "The «harbour» again."}
    assert values["notKept"]["searched"] == 2
    assert len({(hit["session"], hit["position"]) for hit in values["hits"]}) == len(values["hits"]) == 3


def test_a_search_in_one_session(shell: Shell) -> None:
    values = shell.json("search", "harbour", "--session", "r1")
    assert [hit["id"] for hit in values["notKept"]["hits"]] == ["r1"]
    assert values["notKept"]["searched"] == 1
    shell.run("keep")
    (hit,) = shell.json("search", "harbour", "--session", "c1")["hits"]
    assert hit["assistant"] == "claude-code"


def test_secrets_in_files_are_covered(shell: Shell) -> None:
    assert "a1B2" not in shell.run("search", "gate")
    assert "a1B2" not in shell.run("search", SECRET)


def test_a_search_names_what_it_cannot_read(shell: Shell) -> None:
    path = shell.home / ".local/share/opencode/opencode.db"
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.write_bytes(b"no database at all" * 100)
    printed = shell.run("search", "noon", code=1)
    assert "1 file not read: file is not a database" in printed
    assert "At «noon»." in printed
