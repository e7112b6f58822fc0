"""Conversations outlive everything: a killed daemon, a second window, a broken file, a disk that refuses."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from nexus_context.conversation.message import text_of
from nexus_context.ledger import open_ledger
from nexus_context.ledger.daily_backups import list_backups
from nexus_context.ledger.opening import RETRY_S
from nexus_context.ledger.restore import restore
from support.client import ReplyError
from support.editor import Editor, uri_of
from support.ledgers import DISK
from support.talk import user
from support.waiting import block_until

FOLDER = """
//- /a/NEXUS.md
Be brief.
//- /a/.nexus3/config.json
{
  "provider": {"model": "gpt-4o"},
  "context": {"max_tokens": 6000, "reserve_tokens": 1000},
  "compaction": {"enabled": false}
}
"""
CHANGED = "nexus/session/didChange"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with TemporaryDirectory(dir=DISK) as directory:
        yield Path(directory)


@contextmanager
def opened(home: Path, folder: str | None = None) -> Iterator[tuple[Editor, str]]:
    """An editor and its daemon with the folder /a, which is made if there is none yet."""
    with Editor(home) as editor:
        path = folder or editor.tree(FOLDER).path("/a")
        editor.hello(path)
        yield editor, path


def say(editor: Editor, folder: str, *contents: str, **more: object) -> Any:
    return editor.ask("session/append", folder, messages=[user(content) for content in contents], **more)


def held(editor: Editor, folder: str, session: str = "main") -> list[Any]:
    messages = editor.ask("session/messages", folder, session=session)["messages"]
    return [message["content"] for message in messages]


def listed(editor: Editor, folder: str) -> list[str]:
    return [one["session"] for one in editor.ask("session/list", folder)["sessions"]]


def changes(editor: Editor) -> list[tuple[str, str, str]]:
    said = [message["params"] for message in editor.said(CHANGED)]
    return [(one["reason"], one["session"], one["by"]) for one in said]


def labels(usage: Any) -> list[str]:
    return [row["label"] for row in usage["rows"]]


def shown(editor: Editor) -> list[str]:
    return [message["params"]["message"] for message in editor.said("window/showMessage")]


def code_of(editor: Editor, folder: str, method: str, **params: object) -> Any:
    with pytest.raises(ReplyError) as failed:
        editor.ask(method, folder, **params)
    return failed.value.error["data"]["code"]


def test_what_was_acknowledged_survives_the_daemon(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as (editor, folder):
        for number in range(20):
            turn = say(editor, folder, f"{number}", "word " * 60, idempotencyKey=f"key {number}")
        made = editor.ask("session/compact", folder, pins=["the release is on Friday"])
        say(editor, folder, "after")
        before = held(editor, folder)
        editor.process.kill()
    with opened(tmp_path / "home", folder) as (editor, _):
        assert held(editor, folder) == before
        assert "the release is on Friday" in before[0]
        again = say(editor, folder, "19", "word " * 60, idempotencyKey="key 19")
        assert (again["turn"], held(editor, folder)) == (turn["turn"], before)
        editor.ask("session/undoCompaction", folder, compaction=made["compaction"])
        assert held(editor, folder)[1::2] == [str(number) for number in range(20)] + ["after"]
        editor.process.kill()
    with opened(tmp_path / "home", folder) as (editor, _):
        assert held(editor, folder)[1:3] == ["0", "word " * 60]
        assert code_of(editor, folder, "session/undoCompaction") == "unknown-compaction"
        editor.goodbye()


def test_a_user_is_not_warned_again_because_the_daemon_started_anew(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as (editor, folder):
        say(editor, folder, "word " * 4000)
        assert len([text for text in shown(editor) if " fills " in text]) == 1
        editor.goodbye()
    with opened(tmp_path / "home", folder) as (editor, _):
        say(editor, folder, "Go on.")
        assert shown(editor) == []
        say(editor, folder, "word " * 700)
        assert len(shown(editor)) == 1
        editor.goodbye()


def test_two_windows_talk_in_one_conversation(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as (one, folder), opened(tmp_path / "home", folder) as (two, _):
        for number in range(10):
            said = say(two if number % 2 else one, folder, f"{number}")
        assert said["count"] == 11
        assert held(one, folder) == held(two, folder)
        assert held(one, folder)[1:] == [str(number) for number in range(10)]
        seen = one.ask("context/assemble", folder, message="And?")["parentTurn"]
        assert seen == said["turn"]
        say(two, folder, "faster")
        late = say(one, folder, "slower", parentTurn=seen)
        assert (late["session"], late["forked"], late["count"]) == ("main (2)", True, 12)
        assert held(two, folder, "main (2)")[-2:] == ["9", "slower"]
        assert held(one, folder)[-1] == "faster"
        for editor in (one, two):
            editor.goodbye()


def test_windows_are_told_of_each_others_changes(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as (one, folder), opened(tmp_path / "home", folder) as (two, _):
        assert listed(two, folder) == []
        say(one, folder, "word " * 50)
        one.until(lambda: ("appended", "main", "self") in changes(one))
        assert changes(one)[0] == ("created", "main", "self")
        two.until(lambda: ("created", "main", "other") in changes(two))
        say(one, folder, "more")
        two.until(lambda: ("appended", "main", "other") in changes(two))
        two.until(lambda: "3 messages" in labels(two.changes(folder)[-1]["usage"]))
        two.ask("session/clear", folder)
        one.until(lambda: ("cleared", "main", "other") in changes(one))
        assert held(one, folder) == []
        for editor in (one, two):
            editor.goodbye()


def test_the_life_of_sessions(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as (editor, folder):
        made = editor.ask("session/create", folder, session="plan", agent="planner")
        assert made["session"] == "plan"
        assert code_of(editor, folder, "session/create", session="plan") == "session-exists"
        first = say(editor, folder, "Where is the café?", session="plan")["turn"]
        say(editor, folder, "In the harbour.", session="plan")
        fork = editor.ask("session/fork", folder, session="plan", turn=first, to="other plan")
        assert held(editor, folder, "other plan")[1:] == ["Where is the café?"]
        say(editor, folder, "At the station.", session="other plan")
        assert held(editor, folder, "plan")[1:] == ["Where is the café?", "In the harbour."]
        sessions = {one["session"]: one for one in editor.ask("session/list", folder)["sessions"]}
        assert list(sessions) == ["other plan", "plan"]
        assert sessions["other plan"]["forkedFrom"] == "plan"
        assert (sessions["other plan"]["thread"], sessions["plan"]["agent"]) == (fork["thread"], "planner")
        assert [(one["turns"], one["messages"]) for one in sessions.values()] == [(2, 3), (2, 3)]
        editor.ask("session/rename", folder, session="other plan", to="station")
        assert code_of(editor, folder, "session/rename", session="plan", to="station") == "session-exists"
        assert code_of(editor, folder, "session/rename", session="plan", to=" ") == "bad-session-name"
        assert held(editor, folder, "station")[2:] == ["At the station."]
        assert held(editor, folder, "other plan") == []
        status = editor.request("nexus/status", {})
        assert (status["folders"][0]["sessions"], status["sessions"]) == (["plan", "station"], 2)
        hits = search(editor, folder, "cafe")
        assert [(hit["role"], hit["snippet"]) for hit in hits] == [("user", "Where is the «café»?")]
        editor.ask("session/delete", folder, session="plan")
        assert [hit["session"] for hit in search(editor, folder, "cafe")] == ["station"]
        assert search(editor, folder, "harbour") == []
        for method, names in (("delete", {}), ("export", {}), ("fork", {"to": "x"}), ("rename", {"to": "x"})):
            assert code_of(editor, folder, f"session/{method}", session="plan", **names) == "unknown-session"
        assert listed(editor, folder) == ["station"]
        editor.until(lambda: ("deleted", "plan", "self") in changes(editor))
        told = [change[0] for change in changes(editor)]
        assert told == ["created", "appended", "appended", "forked", "appended", "renamed", "deleted"]
        editor.goodbye()


def search(editor: Editor, folder: str | None, query: str, **more: object) -> list[Any]:
    where = {} if folder is None else {"workspaceFolder": uri_of(folder)}
    hits: list[Any] = editor.request("nexus/session/search", {"query": query, **where, **more})["hits"]
    return hits


def test_a_search_finds_in_one_folder_or_everywhere(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as (editor, folder):
        other = editor.tree(FOLDER).path("/a")
        editor.add(other)
        for where, words in ((folder, "one harbour"), (other, "two harbours and a harbour")):
            say(editor, where, words)
        say(editor, other, "a harbour of its own", session="side")
        assert [hit["workspaceFolder"] for hit in search(editor, folder, "harbour")] == [uri_of(folder)]
        assert len(search(editor, other, "harbour")) == 2
        assert len(search(editor, other, "harbour", session="side")) == 1
        assert {hit["workspaceFolder"] for hit in search(editor, None, "harbour")} == {
            uri_of(folder),
            uri_of(other),
        }
        assert len(search(editor, None, "harbour", limit=1)) == 1
        editor.goodbye()
    with Editor(tmp_path / "home") as editor:
        editor.hello()
        assert len(search(editor, None, "harb*")) == 3
        editor.goodbye()


def test_an_export_has_everything(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as (editor, folder):
        for number in range(20):
            say(editor, folder, f"question {number}", "word " * 60)
        editor.ask("session/compact", folder)
        lines = editor.ask("session/export", folder)["text"].splitlines()
        assert len(lines) == 22  # a header, a line for each turn
        page = editor.ask("session/export", folder, format="markdown")["text"]
        assert [f"question {number}" for number in range(20) if f"question {number}" not in page] == []
        assert code_of(editor, folder, "session/export", format="pdf") == "unknown-format"
        params = {"workspaceFolder": uri_of(folder), "format": "markdown"}
        command = {"command": "nexus.session.export", "arguments": [params]}
        assert editor.request("workspace/executeCommand", command)["text"] == page
        editor.goodbye()


def test_pages_of_messages(tmp_path: Path) -> None:
    with opened(tmp_path / "home") as (editor, folder):
        for number in range(5):
            say(editor, folder, f"{number}a", f"{number}b")
        seen: list[str] = []
        page: dict[str, Any] = {}
        while not page or "before" in page:
            before = {"before": page["before"]} if page else {}
            page = editor.ask("session/messages", folder, limit=4, **before)
            seen = [message["content"] for message in page["messages"]] + seen
        assert seen == held(editor, folder)
        assert code_of(editor, folder, "session/messages", limit=0) == "bad-option"
        editor.goodbye()


def test_where_nothing_can_be_written_it_works_and_says_so(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "state").write_text("not a directory")
    with opened(home) as (editor, folder):
        assert editor.request("nexus/status", {})["ledger"] is None
        say(editor, folder, "hi")
        assert held(editor, folder)[1:] == ["hi"]
        ledger = editor.request("nexus/status", {})["ledger"]
        assert (ledger["persists"], ledger["sessions"]) == (False, 1)
        assert "Conversations are lost when Nexus ends" in ledger["notice"]
        assert shown(editor) == [f"Nexus: {ledger['notice']}"]
        editor.goodbye()


def test_where_something_can_be_written_again_nothing_is_lost(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "state").write_text("not a directory")
    with opened(home) as (editor, folder):
        for text in ("one", "two"):
            say(editor, folder, text)
        (home / "state").unlink()
        time.sleep(RETRY_S)
        say(editor, folder, "three")
        assert held(editor, folder)[1:] == ["one", "two", "three"]
        editor.until(lambda: [one for one in shown(editor) if "can be written again" in one])
        assert editor.request("nexus/status", {})["ledger"]["persists"] is True
        say(editor, folder, "four")
        editor.goodbye()
    ledger = open_ledger(str(home / "state" / "ledger.db"))
    (session,) = ledger.sessions()
    texts = [text_of(one) for turn in ledger.turns(session.workspace, "main") for one in turn.messages]
    assert texts[1:] == ["one", "two", "three", "four"]
    assert ledger.upkeep.verify().sound
    ledger.close()


def test_a_broken_ledger_is_set_aside_and_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "state").mkdir(parents=True)
    (home / "state" / "ledger.db").write_bytes(b"\x00rubbish" * 1000)
    with opened(home) as (editor, folder):
        say(editor, folder, "hi")
        (notice,) = shown(editor)
        (aside,) = (home / "state").glob("ledger.db.broken-*")
        assert str(aside) in notice
        assert "nexus sessions salvage" in notice
        ledger = editor.request("nexus/status", {})["ledger"]
        assert (ledger["persists"], ledger["path"]) == (True, str(home / "state" / "ledger.db"))
        editor.goodbye()
    with opened(home, folder) as (editor, _):
        assert held(editor, folder)[1:] == ["hi"]
        assert shown(editor) == []
        editor.goodbye()


def test_a_ledger_that_lost_turns_is_set_aside_and_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with opened(home) as (editor, folder):
        say(editor, folder, "hi")
        editor.goodbye()
    (home / "state" / "ledger.db").write_bytes(b"")
    with opened(home, folder) as (editor, _):
        assert held(editor, folder)[1:] == []
        (notice,) = shown(editor)
        assert "lacks acknowledged writes" in notice
        assert editor.request("nexus/status", {})["ledger"]["notice"] == notice.removeprefix("Nexus: ")
        say(editor, folder, "again")
        editor.goodbye()
    with opened(home, folder) as (editor, _):
        assert held(editor, folder)[1:] == ["again"]
        assert shown(editor) == []
        editor.goodbye()


BACKING_UP = """
from nexus_daemon.windows import folder_ledgers
from nexus_context.ledger import daily_backups
folder_ledgers.BACKUP_AFTER_S = 0.0
folder_ledgers.BACKUP_EVERY_S = folder_ledgers.POLL_S = 0.1
"""


def test_a_backup_is_made_and_restored_while_two_daemons_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Editor(home, before=BACKING_UP) as one, Editor(home, before=BACKING_UP) as two:
        folder = one.tree(FOLDER).path("/a")
        for editor in (one, two):
            editor.hello(folder)
        say(one, folder, "saved")
        say(two, folder, "saved, too")
        path = home / "state" / "ledger.db"
        block_until(lambda: list_backups(str(path)))
        for number in range(10):
            say(one, folder, f"one {number}")
            say(two, folder, f"two {number}")
        before = held(one, folder)
        restored = restore(str(path), {})
        assert [(turns.session, turns.last) for turns in restored.missing] == [("main", 22)]
        (turns,) = restored.missing
        kept = before[: turns.first]  # the first message is the system prompt
        for editor in (one, two):
            assert held(editor, folder) == kept
        say(two, folder, "after")
        assert held(one, folder) == [*kept, "after"]
        assert shown(one) == shown(two) == []
        one.goodbye()
        two.goodbye()
    assert restored.previous is not None
    with closing(open_ledger(str(path))) as ledger, closing(open_ledger(restored.previous)) as previous:
        assert (ledger.notice, previous.notice) == (None, None)
        assert ledger.upkeep.verify().sound and previous.upkeep.verify().sound
        (session,) = previous.sessions()
        assert session.head.seq == 22


def test_a_ledger_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with opened(home) as (editor, folder):
        say(editor, folder, "hi")
        editor.goodbye()
    path = home / "state" / "ledger.db"
    raised(path)
    before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    with opened(home, folder) as (editor, _):
        for method in ("session/messages", "context/assemble", "session/list"):
            assert code_of(editor, folder, method) == "ledger-newer"
        assert editor.ask("context/preview", folder)["text"]
        assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before
        editor.goodbye()


def raised(path: Path) -> None:
    """Let the ledger be of a version that there will be one day."""
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version + 1}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def test_the_global_settings_say_where_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".nexus3").mkdir(parents=True)
    own = home / "elsewhere" / "mine.db"
    (home / ".nexus3" / "config.json").write_text(f'{{"ledger": {{"path": "{own}"}}}}')
    with opened(home) as (editor, folder):
        say(editor, folder, "hi")
        assert editor.request("nexus/status", {})["ledger"]["path"] == str(own)
        assert own.exists()
        assert not (home / "state").exists()
        editor.goodbye()
