"""`nexus sessions`: what each action prints, where, and with which exit code."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_context.conversation.message import Message
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewTurn
from nexus_daemon.cli import main
from nexus_daemon.cli.open_session import BEGINS_SESSIONS
from support import program_files
from support.assistant_logs import OpencodeDatabase
from support.commands import run_nexus, use_home
from support.json_lines import json_lines

CHAT = [
    {"role": "user", "content": "Is the disk full?"},
    {"role": "assistant", "content": "The disk is full."},
    {"role": "user", "content": "Empty it."},
    {"role": "assistant", "content": "Done."},
]
STAMP = re.compile(r"\d{8}T\d{6}Z")
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")


class Place:
    """A folder and the ledger of a user, and what a command does there."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = root / "project"
        self.folder.mkdir()
        self.file = root / "chat.jsonl"
        self.file.write_text(json_lines(CHAT))
        self._root, self._capsys = str(root), capsys

    def run(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """Standard output and error of `nexus sessions`; times and the test's own folder left out."""
        whole = arguments[0] in ("salvage", "verify", "backup", "restore")  # of all folders
        place = [] if whole or "--folder" in arguments else ["--folder", str(self.folder)]
        shown = run_nexus(self._capsys, "sessions", *arguments, *place, root=self._root)
        assert shown.code == code
        out, err = (TIME.sub("<time>", STAMP.sub("<stamp>", text)) for text in (shown.out, shown.err))
        return out, err

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json")[0])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    use_home(monkeypatch, tmp_path)
    return Place(tmp_path, capsys)


@pytest.fixture
def chat(place: Place) -> Place:
    """With one session, `chat`."""
    place.run("import", str(place.file))
    return place


BEGINNINGS = {
    "show": ("show", "ch"),
    "export": ("export", "cha"),
    "search": ("search", "disk", "--session", "ch"),
    "search everywhere": ("search", "disk", "--all", "--session", "ch"),
    "compact": ("compact", "ch"),
    "rebase": ("rebase", "ch"),
    "fork": ("fork", "ch", "new"),
    "rename": ("rename", "ch", "new"),
    "delete": ("delete", "ch", "--yes"),
}


@pytest.mark.parametrize("arguments", BEGINNINGS.values(), ids=BEGINNINGS)
def test_the_beginning_of_a_name_is_enough(chat: Place, arguments: tuple[str, ...]) -> None:
    out, err = chat.run(*arguments, code=1 if arguments[0] == "compact" else 0)
    assert "There is no session" not in err
    assert "chat" in out + err or "Nothing was compacted" in err


def test_the_beginning_of_several_names_lists_them(chat: Place) -> None:
    chat.run("fork", "chat", "chat-two")
    chat.run("fork", "chat", "other")
    assert chat.run("show", "cha", code=1)[1] == (
        "nexus sessions: There is no session 'cha' in /project. 2 begin so: 'chat-two', 'chat'. "
        "Write more of it.\n"
    )
    assert "chat\n" in chat.run("show", "chat")[0]  # the whole name of one counts
    thread = chat.json("list")["sessions"][0]["thread"]
    assert "other\n" in chat.run("show", thread[:-1])[0]


def test_no_beginning_names_the_session_to_append_to(chat: Place) -> None:
    chat.run("append", "cha", "Hello.")
    assert {one["session"] for one in chat.json("list")["sessions"]} == {"cha", "chat"}


@pytest.mark.parametrize(
    "command", [("show", "--session"), ("memory", "list", "--session"), ("memory", "query", "--session")]
)
def test_the_beginning_of_a_name_is_enough_elsewhere(
    chat: Place, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    place = ("--folder", str(chat.folder)) if command[0] == "memory" else (str(chat.folder),)
    assert main([*command, "ch", *place]) == 0
    assert "There is no session" not in capsys.readouterr().err


def test_an_import_says_what_it_did(place: Place) -> None:
    one = str(place.file)
    assert place.run("import", one) == (
        "/chat.jsonl: messages, imported as 'chat': 2 turns, 4 messages.\n",
        "",
    )
    assert place.run("import", one, one) == (
        "/chat.jsonl: messages, already there as 'chat'.\n" * 2 + "2 sessions already there of 2 files.\n",
        "",
    )
    with place.file.open("a") as file:
        file.write('{"role": "user", "content": "Thanks."}\n')
    out, _ = place.run("import", one)
    assert out == "/chat.jsonl: messages, continued 'chat': 1 turn, 1 message.\n"


def test_what_an_import_leaves_out_is_said_and_counted(place: Place) -> None:
    rollout = place.file.with_name("rollout.jsonl")
    rollout.write_bytes(program_files.PROGRAMS["codex"])
    own = "that Codex wrote for itself: settings, state and events that repeat the messages"
    left_out = f"Left out: 3 records {own}."
    assert place.run("import", str(rollout)) == (
        "/rollout.jsonl: a session of Codex, imported as 'rollout': 2 turns, 6 messages.\n",
        f"nexus sessions: /rollout.jsonl: {left_out}\n",
    )
    assert place.json("import", str(rollout))["files"] == [
        {
            "file": "/rollout.jsonl",
            "format": "codex",
            "messages": 6,
            "leftOut": [{"reason": "own", "count": 3, "text": left_out}],
            "sessions": [{"session": "rollout", "outcome": "known", "turns": 0, "messages": 0}],
            "problems": [
                {
                    "line": None,
                    "severity": "information",
                    "code": "transcript.own",
                    "message": left_out,
                }
            ],
        }
    ]


def test_what_is_wrong_with_a_file_is_said_with_its_line(place: Place) -> None:
    with place.file.open("a") as file:
        file.write('{broken}\n{"role": "user", "content": "Thanks."}\n')
    out, err = place.run("import", str(place.file), "/nowhere/x.jsonl", code=1)
    assert out == snapshot("""\
/chat.jsonl: messages, imported as 'chat': 3 turns, 5 messages.
1 session imported, 3 turns with 5 messages written of 2 files.
""")
    assert err == snapshot(
        "nexus sessions: /chat.jsonl:5: Expecting property name enclosed in double quotes: "
        "write a name, or remove this. The line is left out.\n"
        "nexus sessions: /nowhere/x.jsonl does not exist.\n"
    )


def test_sessions_are_listed(chat: Place) -> None:
    chat.run("fork", "chat", "other", "--turn", "1")
    rows = [line.split() for line in chat.run("list")[0].splitlines() if line.strip(" ─")]
    listed = {one["session"]: one for one in chat.json("list")["sessions"]}
    tokens = {name: str(one["tokens"]) for name, one in listed.items()}
    threads = {name: one["thread"][:8] for name, one in listed.items()}
    assert rows.pop(0) == ["session", "title", "program", "last", "turn", "window", "cost", "kept"]
    assert sorted(rows, key=len) == [
        ["2", "conversations", str(sum(map(int, tokens.values()))), "–"],
        [threads["chat"], "chat", "Nexus", "<time>", tokens["chat"], "–", "yes"],
        [
            threads["other"],
            "other",
            *["(fork", "of", "chat)"],
            "Nexus",
            "<time>",
            tokens["other"],
            "–",
            "yes",
        ],
    ]
    listed = chat.json("list")["sessions"][0]
    assert (listed["session"], listed["turns"], listed["messages"], listed["forkedFrom"]) == (
        "other", 1, 2, "chat",
    )  # fmt: skip


def test_a_list_fits_a_terminal(chat: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    chat.run("rename", "chat", "long " * 20)
    out, _ = chat.run("list")
    assert "kept" not in out
    (row,) = (line for line in out.splitlines() if "<time>" in line)
    assert " long long long" in row and "…" in row


def test_an_empty_list_says_where_there_are_some(place: Place, tmp_path: Path) -> None:
    assert place.run("list") == ("", f"nexus sessions: There are no sessions yet. {BEGINS_SESSIONS}\n")
    place.run("import", str(place.file))
    _, err = place.run("list", "--folder", str(tmp_path / "gone"), code=2)
    assert err == "nexus sessions: /gone is not a folder.\n"
    (tmp_path / "empty").mkdir()
    _, err = place.run("list", "--folder", str(tmp_path / "empty"))
    assert (
        err == "nexus sessions: /empty has no sessions; 1 other folder has: see nexus sessions list --all.\n"
    )
    out, _ = place.run("list", "--all", "--folder", str(tmp_path))
    assert [line.split()[1:] for line in out.splitlines() if line.strip(" ─")] == [
        ["title", "program", "folder", "last", "turn", "window", "cost", "kept"],
        ["chat", "Nexus", "/project", "<time>", "31", "–", "yes"],
    ]


def test_a_session_is_shown(chat: Place) -> None:
    assert chat.run("show", "chat")[0] == snapshot("""\
chat
2 turns, 4 messages, 31 tokens; begun <time>, changed <time>

turn 1, <time>
       user        9  Is the disk full?
  assistant        9  The disk is full.
turn 2, <time>
       user        7  Empty it.
  assistant        6  Done.
""")
    assert chat.run("show", "chat", "--last", "1")[0] == snapshot("""\
chat
2 turns, 4 messages, 31 tokens; begun <time>, changed <time>

… 1 earlier turn: --last N shows more
turn 2, <time>
       user        7  Empty it.
  assistant        6  Done.
""")
    told = chat.json("show", "chat")
    assert [turn["seq"] for turn in told["turns"]] == [1, 2]
    assert told["turns"][0]["messages"][0] == CHAT[0]


def test_search_marks_what_matched(chat: Place) -> None:
    assert chat.run("search", "disk", "full") == (
        (
            "chat, turn 1, assistant, <time>\n  The «disk» is «full».\n"
            "chat, turn 1, user, <time>\n  Is the «disk» «full»?\n"
        ),
        "",
    )
    (hit,) = chat.json("search", '"disk is"')["hits"]
    assert (hit["session"], hit["role"], hit["snippet"]) == ("chat", "assistant", "The «disk is» full.")
    assert chat.run("search", "zebra")[1].startswith("nexus sessions: No message matches 'zebra' in /project")
    assert chat.run("search", "!", code=2)[1] == "nexus sessions: The query '!' has no word to search for.\n"


def test_search_takes_words_to_exclude_unquoted(chat: Place) -> None:
    assert chat.run("search", "disk", "-is") == chat.run("search", "disk -is")
    assert chat.run("search", "-zebra", "done") == chat.run("search", "done -zebra")
    with pytest.raises(SystemExit):
        main(["sessions", "search", "disk", "--zebra"])
    with pytest.raises(SystemExit):
        main(["sessions", "list", "-zebra"])


def test_search_colours_what_matched_on_a_terminal(chat: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out, _ = chat.run("search", "disk is")
    assert out == snapshot("""\
\x1b[1mchat\x1b[0m, turn 1, \x1b[33massistant\x1b[0m\x1b[2m, <time>\x1b[0m
  The \x1b[1;31mdisk\x1b[0m \x1b[1;31mis\x1b[0m full.
\x1b[1mchat\x1b[0m, turn 1, \x1b[32muser\x1b[0m\x1b[2m, <time>\x1b[0m
  \x1b[1;31mIs\x1b[0m the \x1b[1;31mdisk\x1b[0m full?
""")


def test_an_export_never_overwrites(chat: Place, tmp_path: Path) -> None:
    out, err = chat.run("export", "chat")
    assert (len(out.splitlines()), err) == (3, "")
    assert chat.run("export", "chat", "-o", "-") == (out, "")
    file = tmp_path / "out.jsonl"
    _, err = chat.run("export", "chat", "-o", str(file))
    assert err == "nexus sessions: 2 turns of 'chat' written to /out.jsonl.\n"
    assert file.read_text() == out and file.stat().st_mode & 0o777 == 0o600
    _, err = chat.run("export", "chat", "-o", str(file), "--format", "markdown", code=1)
    assert err == snapshot(
        "nexus sessions: /out.jsonl already exists; use another name, or --force to overwrite it.\n"
    )
    assert file.read_text() == out
    chat.run("export", "chat", "-o", str(file), "--format", "markdown", "--force")
    assert re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", file.read_text()) == snapshot("""\
# chat

## Turn 1

<time>

### User

Is the disk full?

### Assistant

The disk is full.

## Turn 2

<time>

### User

Empty it.

### Assistant

Done.
""")
    chat.run("export", "chat", "-o", str(tmp_path / "out.md"))
    assert (tmp_path / "out.md").read_text() == file.read_text()
    _, err = chat.run("export", "chat", "-o", "/nowhere/x.md", code=1)
    assert err == snapshot("nexus sessions: /nowhere/x.md cannot be written: No such file or directory.\n")


def test_an_export_is_imported_elsewhere(chat: Place, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    chat.run("export", "chat", "-o", str(file))
    out, _ = chat.run("import", str(file), "--folder", str(tmp_path))
    assert out == "/out.jsonl: a session of Nexus, imported as 'chat': 2 turns, 4 messages.\n"
    assert chat.run("export", "chat", "--folder", str(tmp_path))[0] == file.read_text()


def test_fork_rename_and_delete(chat: Place) -> None:
    assert chat.run("fork", "chat", "a", "--turn", "1")[0] == "'a' shares 1 turn of 'chat'.\n"
    assert chat.run("fork", "chat", "b", "--turn", "3", code=1)[1] == snapshot(
        "nexus sessions: The session 'chat' has 2 turns; there is no turn 3.\n"
    )
    assert chat.run("rename", "a", "b")[0] == "'a' is now 'b'.\n"
    assert chat.run("rename", "b", "chat", code=1)[1] == snapshot(
        "nexus sessions: A session 'chat' already exists in /project; choose another name.\n"
    )
    assert chat.run("delete", "b", code=2)[1] == snapshot(
        "nexus sessions: delete asks for confirmation, which needs a terminal; use --yes to "
        "delete without it.\n"
    )
    assert chat.run("delete", "b", "--yes")[0] == "'b' is deleted.\n"
    assert [one["session"] for one in chat.json("list")["sessions"]] == ["chat"]


def test_delete_asks_on_a_terminal(chat: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["n\n", "y\n"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: next(answers), raising=False)
    assert chat.run("delete", "chat", code=1)[1] == snapshot("""\
  chat: 4 messages, changed <time>
Delete this session for good? [y/N] nexus sessions: Nothing was deleted.
""")
    assert chat.run("delete", "chat")[0] == "'chat' is deleted.\n"


def test_what_delete_asks_cannot_steer_a_terminal(
    chat: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steering(chat, tmp_path)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: "n", raising=False)
    _, err = chat.run("delete", "\x1b[31m", code=1)
    assert err == snapshot("""\
  ␛[31m: 1 message, changed <time>
Delete this session for good? [y/N] nexus sessions: Nothing was deleted.
""")


def test_an_interrupt_is_no_traceback(chat: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", interrupted, raising=False)
    assert chat.run("delete", "chat", code=130)[1].endswith("[y/N] \n")
    assert [one["session"] for one in chat.json("list")["sessions"]] == ["chat"]


WRITING = (
    ["import", "{file}"],
    ["fork", "chat", "b"],
    ["rename", "chat", "b"],
    ["delete", "chat", "--yes"],
    ["salvage", "{file}"],
)


@pytest.mark.parametrize("action", WRITING, ids=lambda action: action[0])
def test_nothing_is_written_where_it_would_not_stay(
    chat: Place, monkeypatch: pytest.MonkeyPatch, action: list[str]
) -> None:
    monkeypatch.setattr("nexus_context.ledger.sqlite.SqliteLedger.persists", False)
    monkeypatch.setattr("nexus_context.ledger.sqlite.SqliteLedger.notice", "Nothing persists.")
    out, err = chat.run(*(word.format(file=chat.file) for word in action), code=1)
    assert (out, err) == ("", "nexus sessions: Nothing was done. Nothing persists.\n")
    assert "chat" in chat.run("list")[0]


@pytest.mark.parametrize("action", WRITING, ids=lambda action: action[0])
def test_with_broken_settings_nothing_is_written(chat: Place, tmp_path: Path, action: list[str]) -> None:
    settings(tmp_path, '{"ledger": {"path": "/elsewhere/ledger.db",}')
    out, err = chat.run(*(word.format(file=chat.file) for word in action), code=1)
    assert out == ""
    assert err == snapshot(
        "nexus sessions: Nothing was done: /home/.nexus3/config.json has errors, and it may "
        "name another ledger (ledger.path). Fix it first; nexus check shows the errors.\n"
    )
    out, err = chat.run("list")
    assert "chat" in out
    assert err == (
        "nexus sessions: /home/.nexus3/config.json has errors and is ignored; "
        "the ledger in use is /state/ledger.db.\n"
    )


def test_the_path_of_the_ledger(chat: Place, tmp_path: Path) -> None:
    settings(tmp_path, '{"ledger": {"path": "~/mine/ledger.db"}}')
    assert chat.run("list")[1] == f"nexus sessions: There are no sessions yet. {BEGINS_SESSIONS}\n"
    assert not (tmp_path / "home/mine/ledger.db").exists()
    chat.run("append", "main", "Deploy.")
    assert (tmp_path / "home/mine/ledger.db").is_file()
    settings(tmp_path, '{"ledger": {"path": "mine/ledger.db"}}')
    assert chat.run("list", code=1)[1] == snapshot(
        "nexus sessions: The ledger's path 'mine/ledger.db' (ledger.path) is not an absolute "
        "path: its meaning would depend on the working directory. Write it from the root, or "
        "with ~/ for your home directory.\n"
    )


@pytest.mark.parametrize("command", [("list",), ("search", "disk")])
def test_a_ledger_that_cannot_be_used_is_no_empty_one(
    chat: Place, tmp_path: Path, command: tuple[str, ...]
) -> None:
    settings(tmp_path, '{"ledger": {"path": "~/mine"}}')
    (tmp_path / "home/mine").mkdir()
    assert "Conversations are lost when Nexus ends." in chat.run(*command)[1]


def settings(root: Path, text: str) -> None:
    """The global config.json."""
    (root / "home/.nexus3").mkdir(parents=True, exist_ok=True)
    (root / "home/.nexus3/config.json").write_text(text)


def test_a_broken_export_leaves_no_empty_session(place: Place) -> None:
    place.file.write_text('{"format": "nexus-session", "version": 1, "session": "a"}\n{"seq": 1, "ty')
    out, err = place.run("import", str(place.file), code=1)
    assert out == ""
    assert err == snapshot("""\
nexus sessions: /chat.jsonl:2: The line is not valid JSON; the turn is left out.
nexus sessions: /chat.jsonl:1: The session 'a' has no turn that can be read; it is left out.
""")
    assert place.json("list")["sessions"] == []


@pytest.mark.parametrize("name", ["", "a\x1b[31m"])
@pytest.mark.parametrize("action", ["fork", "rename"])
def test_a_name_that_none_should_have_is_refused(chat: Place, action: str, name: str) -> None:
    out, err = chat.run(action, "chat", name, code=1)
    assert out == "" and err.startswith("nexus sessions: ") and "\x1b" not in err
    assert [one["session"] for one in chat.json("list")["sessions"]] == ["chat"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("Chta", "Did you mean 'chat'?"), ("zzz", "Its sessions: 'chat'."), ("hat", "Did you mean 'chat'?")],
)
def test_an_unknown_session_is_said_with_those_near(chat: Place, name: str, said: str) -> None:
    for action in (["show", name], ["export", name], ["fork", name, "x"], ["delete", name, "--yes"]):
        _, err = chat.run(*action, code=1)
        assert err == f"nexus sessions: There is no session {name!r} in /project. {said}\n"


def steering(place: Place, root: Path) -> None:
    """Add a session that would steer a terminal, from before such names were refused."""
    ledger = open_ledger(environ={"NEXUS_STATE": str(root / "state")})
    said = Counted(Message("user", "\x1b]0;title\x07\x9b escape"), 3)
    ledger.append(str(place.folder), "steering", NewTurn(messages=(said,), counter="test"))
    ledger.close()
    with closing(sqlite3.connect(root / "state/ledger.db")) as connection, connection:
        connection.execute("UPDATE session SET name = ? WHERE name = 'steering'", ("\x1b[31m",))


def test_what_is_exported_to_a_terminal_cannot_steer_it(
    chat: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steering(chat, tmp_path)
    piped, _ = chat.run("export", "\x1b[31m")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    shown, _ = chat.run("export", "\x1b[31m")
    assert shown != piped and list(map(json.loads, shown.splitlines())) == [
        json.loads(line) for line in piped.split("\n") if line
    ]
    page, _ = chat.run("export", "\x1b[31m", "--format", "markdown")
    assert "␛]0;title␇� escape" in page
    for text in (shown, page):
        assert not set("\x1b\x07\x9b") & set(text)


def test_names_and_texts_cannot_steer_a_terminal(chat: Place, tmp_path: Path) -> None:
    steering(chat, tmp_path)
    for action in (["list"], ["search", "escape"], ["show", "\x1b[31m"]):
        assert "\x1b" not in chat.run(*action)[0]


def test_the_notice_of_the_ledger_is_said(chat: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_context.ledger.sqlite.SqliteLedger.notice", "Nothing persists.")
    assert chat.run("list")[1] == "nexus sessions: Nothing persists.\n"


@pytest.mark.parametrize(
    "arguments", [[], ["list", "--no"], ["show"], ["search"], ["show", "a", "--last", "0"]]
)
def test_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["sessions", *arguments])
    assert stopped.value.code == 2


def test_a_broken_ledger_is_salvaged_into_the_one_in_use(chat: Place, tmp_path: Path) -> None:
    state = tmp_path / "state"
    broken = tmp_path / "ledger.db.broken-1"
    chat.run("fork", "chat", "fork")
    chat.run("append", "fork", "Is it empty?")
    with closing(sqlite3.connect(state / "ledger.db")) as ledger, ledger:
        ledger.execute("UPDATE message SET tokens = 99 WHERE id = (SELECT max(id) FROM message)")
    broken.write_bytes((state / "ledger.db").read_bytes())
    chat.run("delete", "chat", "fork", "--yes")
    out, err = chat.run("salvage", str(broken))
    assert out == snapshot("""\
2 sessions with 4 turns recovered.
fork, /project: broken at turn 3 (the message 4 is not what was written); 1 turn could not be read.
/ledger.db.broken-1 is unchanged; nexus sessions list --all shows the recovered sessions.
""")
    assert err == ""
    assert {one["session"] for one in chat.json("list")["sessions"]} == {"chat", "fork"}
    assert [turn["messages"][0]["role"] for turn in chat.json("show", "chat")["turns"]] == ["user", "user"]


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("nowhere.db", 2, "nowhere.db is not a file"),
        ("state/ledger.db", 2, "is the ledger in use"),
        ("chat.jsonl", 1, "has nothing that can be read as turns of a session"),
    ],
)
def test_what_cannot_be_salvaged_is_said(
    chat: Place, tmp_path: Path, name: str, code: int, said: str
) -> None:
    assert said in chat.run("salvage", str(tmp_path / name), code=code)[1]


# ---------------------------------------------------------------- verify and backup


def test_what_is_sound_is_said_of_each_session(chat: Place) -> None:
    chat.run("fork", "chat", "second")
    out, err = chat.run("verify")
    assert out == (
        "ok, 2 turns: second, /project\nok, 2 turns: chat, /project\n2 sessions verified: none is broken.\n"
    )
    assert err == ""
    assert chat.json("verify")["sound"] is True


def test_a_broken_session_is_told_with_its_turn_and_the_exit_code(chat: Place, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "state" / "ledger.db")) as ledger, ledger:
        ledger.execute("UPDATE turn SET created = 'x' WHERE id & 3 = 1")
    out, err = chat.run("verify", code=1)
    assert out == snapshot("""\
broken at turn 1 (it is not what was written): chat, /project
1 session verified: 1 broken.
""")
    assert err == snapshot(
        "nexus sessions: The ledger /state/ledger.db was changed by another program: the "
        "session 'chat' of /project is not what was written from turn 1 on. nexus sessions "
        "verify checks all sessions.\n"
        "nexus sessions: nexus sessions salvage recovers what can still be read of a broken "
        "session.\n"
    )
    assert main(["sessions", "verify", "--json"]) == 1


def test_a_lost_ledger_is_told_whatever_is_asked(chat: Place, tmp_path: Path) -> None:
    (tmp_path / "state" / "ledger.db").write_bytes(b"")
    out, err = chat.run("verify", code=1)
    assert out == snapshot("0 sessions verified: none is broken.\n")
    assert err == snapshot(
        "nexus sessions: The ledger /state/ledger.db lacks acknowledged writes (its file is "
        "empty or gone): it was set aside as /state/ledger.db.broken-<stamp>, and a new one "
        "begun. Recover what can be read: nexus sessions salvage "
        "/state/ledger.db.broken-<stamp>. If you put it there yourself, for example from a "
        "backup: nexus sessions verify --accept /state/ledger.db.broken-<stamp>\n"
    )
    chat.run("verify")


def test_a_backup_is_written_verified_and_restored(chat: Place, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    out, err = chat.run("backup", str(target))
    assert (out, err) == ("1 session written to /backup.db and verified.\n", "")
    assert target.stat().st_mode & 0o777 == 0o600
    assert chat.run("backup", str(target), code=1)[1] == snapshot(
        "nexus sessions: /backup.db exists already; give another name.\n"
    )
    assert chat.run("backup", str(tmp_path / "no" / "backup.db"), code=1)[1] == snapshot(
        "nexus sessions: /no/backup.db cannot be written: No such file or directory.\n"
    )
    chat.run("rename", "chat", "later")
    out, err = chat.run("verify", "--accept", str(target))
    assert out == snapshot("""\
ok, 2 turns: chat, /project
1 session verified: none is broken.
""")
    assert err == snapshot("""\
nexus sessions: /state/ledger.db is now accepted as complete.
nexus sessions: The previous ledger is now /state/ledger.db.replaced-<stamp>.
""")
    assert not target.exists()


def test_a_daily_backup_is_restored_and_what_it_lacks_is_told(chat: Place, tmp_path: Path) -> None:
    assert chat.run("restore", code=1)[1] == snapshot(
        "nexus sessions: There is no backup in /state/ledger.db.backups.\n"
    )
    ledger = open_ledger(str(tmp_path / "state" / "ledger.db"))
    made = ledger.upkeep.back_up_daily()
    assert made is not None
    ledger.close()
    day = Path(made).stem
    chat.run("append", "chat", "And now?")
    chat.run("append", "chat", "And then?")
    chat.run("append", "later", "Hello.")
    assert chat.json("restore", "--list") == [{"day": day, "path": made.replace(str(tmp_path), "")}]
    assert chat.run("restore", "--list")[0] == f"{day}  {made.replace(str(tmp_path), '')}\n"
    out, err = chat.run("restore", day)
    assert out.replace(day, "<day>") == snapshot("""\
1 session restored from /state/ledger.db.backups/<day>.db.
later, /project: 1 turn is missing in the backup, or cut (1).
chat, /project: 2 turns are missing in the backup, or cut (3–4).
""")
    assert err == snapshot(
        "nexus sessions: The previous ledger is now /state/ledger.db.replaced-<stamp>; "
        "nexus sessions salvage copies what it holds.\n"
    )
    assert chat.json("list")["sessions"][0]["session"] == "chat"
    assert Path(made).exists()
    restored = chat.json("restore", made)
    assert (restored["missing"], restored["unread"]) == ([], [])
    assert chat.run("restore", "2020-01-01", code=1)[1].replace(day, "<day>") == snapshot(
        "nexus sessions: There is no backup 2020-01-01. The backups are: <day>.\n"
    )


def test_a_backup_of_a_ledger_that_lost_something_does_not_end_well(chat: Place, tmp_path: Path) -> None:
    (tmp_path / "state" / "ledger.db").write_bytes(b"")
    out, err = chat.run("backup", str(tmp_path / "backup.db"), code=1)
    assert out == snapshot("0 sessions written to /backup.db and verified.\n")
    assert err == snapshot(
        "nexus sessions: The ledger /state/ledger.db lacks acknowledged writes (its file is "
        "empty or gone): it was set aside as /state/ledger.db.broken-<stamp>, and a new one "
        "begun. Recover what can be read: nexus sessions salvage "
        "/state/ledger.db.broken-<stamp>. If you put it there yourself, for example from a "
        "backup: nexus sessions verify --accept /state/ledger.db.broken-<stamp>\n"
    )


@pytest.mark.parametrize("content", [None, b"", b"no ledger"])
def test_what_is_no_ledger_is_not_accepted(chat: Place, tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "other").write_bytes(content)
    chat.run("verify", "--accept", str(tmp_path / "other"), code=1)
    assert "chat" in chat.run("list")[0]


def test_a_compaction_by_the_provider_is_named(chat: Place, tmp_path: Path) -> None:
    block = {"type": "compaction", "content": "They emptied a disk.", "signature": "c2ln"}
    answer = {"role": "assistant", "content": [block, {"type": "text", "text": "Done."}]}
    path = tmp_path / "compacted.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "Again."}) + "\n" + json.dumps(answer) + "\n")
    chat.run("append", "chat", "--messages", str(path))
    assert chat.run("show", "chat")[0].splitlines()[-2:] == [
        "turn 4, <time>, compacted by Anthropic",
        (
            "  assistant        9  [Summary of the conversation so far, made by a server of Anthropic:] "
            "They emptied a disk. [compaction]"
        ),
    ]


# ---------------------------------------------------------------- sessions of other assistants


def write_assistant_session(place: Place, *, prompt: str = "Where is the gate?") -> None:
    directory = place.folder.parent / "home/.claude/projects" / re.sub("[^a-zA-Z0-9]", "-", str(place.folder))
    directory.mkdir(parents=True)
    usage = {"input_tokens": 1_000, "cache_read_input_tokens": 19_000, "output_tokens": 7}
    about = {"timestamp": "2026-11-23T17:59:17.756Z", "cwd": str(place.folder), "version": "2.1.330"}
    records = [
        {"type": "user", **about, "message": {"role": "user", "content": prompt}},
        {"type": "assistant", **about, "message": {"model": "claude-sonnet-4-5", "usage": usage}},
        {"type": "cost-state", "totalCostUSD": 1.5, "modelUsage": {}},
    ]
    text = json_lines(records)
    (directory / "5e55.jsonl").write_text(text)


def test_the_sessions_of_assistants(place: Place) -> None:
    write_assistant_session(place)
    out, err = place.run("list", "--assistants")
    rows = [
        re.split(r"\s{2,}", line.strip()) for line in out.splitlines() if "─" not in line and line.strip()
    ]
    assert rows == [
        ["session", "title", "assistant", "model", "window", "from cache", "cost", "changed"],
        [
            "5e55",
            "Where is the gate?",
            "claude-code",
            "claude-sonnet-4-5",
            "20,000 of 200,000 (10%)",
            "95%",
            "$1.50",
            "<time>",
        ],
    ]
    assert err == ""


@pytest.mark.parametrize(
    ("columns", "all_folders", "shown"),
    [
        (60, False, ["session", "title", "window"]),
        (80, False, ["session", "title", "window", "changed"]),
        (80, True, ["session", "title", "folder", "window"]),
        (120, False, ["session", "title", "assistant", "model", "window", "cost", "changed"]),
        (120, True, ["session", "title", "folder", "assistant", "window", "cost", "changed"]),
    ],
)
def test_the_least_columns_leave_a_narrow_terminal(
    place: Place, monkeypatch: pytest.MonkeyPatch, columns: int, all_folders: bool, shown: list[str]
) -> None:
    write_assistant_session(place, prompt="Where is the gate of the harbour, and who has its key?")
    monkeypatch.setenv("COLUMNS", str(columns))
    out, _ = place.run("list", "--assistants", *["--all"] * all_folders)
    lines = [line for line in out.splitlines() if line.strip()]
    assert max(map(len, lines)) <= columns
    assert re.split(r"\s{2,}", lines[0].strip()) == shown
    assert "5e55" in out and "Where is the " in out


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (40, ["session", "title"]),
        (80, ["session", "title", "folder", "turn", "window"]),
        (120, ["session", "title", "program", "folder", "last turn", "window", "cost", "kept"]),
    ],
)
def test_the_name_of_a_session_never_leaves(
    chat: Place, monkeypatch: pytest.MonkeyPatch, columns: int, shown: list[str]
) -> None:
    chat.run("fork", "chat", "the conversation about the disk of the harbour")
    monkeypatch.setenv("COLUMNS", str(columns))
    out, _ = chat.run("list", "--all")
    lines = [line for line in out.splitlines() if line.strip()]
    assert max(map(len, lines)) <= columns
    (header,) = (line for line in lines if "session " in line)
    assert re.split(r"\s{2,}", header.strip()) == shown
    assert "the conversati" in out


def test_no_sessions_of_assistants(place: Place) -> None:
    text = (
        "nexus sessions: Claude Code, Codex, opencode and Gemini CLI have no sessions {}; "
        "start one of them there.\n"
    )
    expected = text.format("in /project")
    assert place.run("list", "--assistants") == ("", expected)
    expected = text.format("on this machine")
    assert place.run("list", "--assistants", "--all") == ("", expected)
    assert place.json("list", "--assistants") == {"sessions": [], "totals": []}


def test_secrets_in_sessions_of_assistants_are_masked(place: Place) -> None:
    write_assistant_session(place, prompt="Use sk-ant-api03-" + "x1Y2" * 12 + " now")
    assert "x1Y2" not in place.run("list", "--assistants", "--all")[0]
    listed = place.json("list", "--assistants")
    assert listed["totals"] == [
        {
            "assistant": "claude-code",
            "sessions": 1,
            "unsummed": 0,
            "total": {"fresh": 0, "cacheRead": 0, "cacheWrite": 0, "output": 0},
            "costUsd": 1.5,
            "costAtLeast": False,
        }
    ]
    (session,) = listed["sessions"]
    assert str(session.pop("path")).endswith("/5e55.jsonl")
    assert session == {
        "assistant": "claude-code",
        "id": "5e55",
        "folder": "/project",
        "forkOf": None,
        "prompt": f"Use {'*' * 61} now",
        "model": "claude-sonnet-4-5",
        "version": "2.1.330",
        "started": "2026-11-23T17:59:17.756Z",
        "changed": "2026-11-23T17:59:17.756Z",
        "window": 200_000,
        "last": {"fresh": 1_000, "cacheRead": 19_000, "cacheWrite": 0, "output": 7},
        "total": {"fresh": 0, "cacheRead": 0, "cacheWrite": 0, "output": 0},
        "costUsd": 1.5,
        "parent": None,
        "costLacks": [],
        "damagedLines": 0,
    }


def test_a_total_of_costs_says_that_sessions_state_none(place: Place) -> None:
    write_assistant_session(place)
    database = OpencodeDatabase(place.folder.parent / "home")
    database.session("o1", folder=str(place.folder))
    database.session("o2", folder=str(place.folder))
    database.answer("o2", "Shut.", 100)
    totals = place.json("list", "--assistants")["totals"]
    costs = {one["assistant"]: (one["costUsd"], one["costAtLeast"]) for one in totals}
    assert costs == {"claude-code": (1.5, False), "opencode": (0.01, True)}


def test_a_database_of_an_assistant_that_cannot_be_read(place: Place) -> None:
    path = place.folder.parent / "home/.local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"This is no database at all. " * 40)
    write_assistant_session(place)
    out, err = place.run("list", "--assistants", code=1)
    assert "Where is the gate?" in out
    database = "/home/.local/share/opencode/opencode.db"
    assert err == f"nexus sessions: 1 file not read: file is not a database ({database})\n"
