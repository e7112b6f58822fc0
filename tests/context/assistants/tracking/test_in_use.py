"""Which views are in use, and in which order: by sessions, files and installed programs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.sessions.session_types import AssistantSession
from nexus_context.assistants.tracking.in_use import FolderView, find_views, read_views
from nexus_context.ledger import nexus_chats
from nexus_context.ledger.nexus_chats import last_nexus_turn
from support.assistant_logs import ClaudeLog
from support.fixture import write_fixture
from support.folders import load_folder
from support.ledgers import ledger_in, turn

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
STARTED = 1_795_169_000.0  # minutes after the first records of a ClaudeLog
MINUTE, HOUR, DAY = 1, 60, 24 * 60


def session(assistant: str, minutes: float) -> AssistantSession:
    """A session that changed some minutes ago."""
    changed = (NOW - timedelta(minutes=minutes)).isoformat()
    fields = ("id", "path", "folder", "prompt", "model", "version", "started", "last", "total", "window")
    values = dict.fromkeys((*fields, "cost_usd", "parent"))
    values |= {"id": "s", "path": "/s", "model": f"model of {assistant}", "started": changed}
    return AssistantSession(assistant=assistant, changed=changed, **values)  # type: ignore[arg-type]


def views(
    root: Path, files: str, sessions: list[tuple[str, float]], installed: str = "claude codex"
) -> list[FolderView]:
    """The views in use in a repository with these files, and programs that are installed."""
    work, programs = root / "home" / "work", root / "bin"
    for path in (work / ".git" / "HEAD", *(work / name for name in files.split())):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    programs.mkdir()
    for name in installed.split():
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    surroundings = Surroundings(os.path.realpath(work), str(root / "home"), {"PATH": str(programs)})
    listed = [session(*each) for each in sorted(sessions, key=lambda each: each[1])]
    found = find_views(surroundings, Disk(), listed, NOW.timestamp())
    assert {view.name for view in found} == {"nexus", *PROGRAMS}
    in_use = [view for view in found if view.in_use]
    assert list(found[: len(in_use)]) == in_use  # those in use come first
    return in_use


@pytest.mark.parametrize(
    ("files", "sessions", "expected"),
    [
        ("", [], ["Nexus: no assistant is in use here"]),
        (".nexus3/NEXUS.md", [], ["Nexus: .nexus3 is here"]),
        ("CLAUDE.md", [], ["Claude Code: CLAUDE.md is here"]),
        (
            "opencode.json AGENTS.md",
            [],
            [
                "Codex: AGENTS.md is here",
                "opencode: `opencode` is not on the PATH, but opencode.json is here",
            ],
        ),
        (
            "CLAUDE.md .nexus3/NEXUS.md",
            [("codex", 2 * MINUTE), ("opencode", 26 * HOUR)],
            [
                "Codex: it runs here",
                "opencode: last used here yesterday",
                "Nexus: .nexus3 is here",
                "Claude Code: CLAUDE.md is here",
            ],
        ),
        (
            "",
            [("claude-code", 9 * DAY), ("codex", 3 * HOUR), ("gemini", 20)],
            [
                "Gemini CLI: last used here 20 min ago",
                "Codex: last used here 3 h ago",
                "Claude Code: last used here 9 days ago",
            ],
        ),
        ("", [("codex", 40 * DAY)], ["Nexus: no assistant is in use here"]),
        ("CLAUDE.md", [("claude-code", 40 * DAY)], ["Claude Code: CLAUDE.md is here"]),
    ],
)
def test_views_in_use(
    tmp_path: Path, files: str, sessions: list[tuple[str, float]], expected: list[str]
) -> None:
    assert [f"{view.title}: {view.reason}" for view in views(tmp_path, files, sessions)] == expected


def test_a_view_has_the_model_of_its_last_session(tmp_path: Path) -> None:
    found = views(tmp_path, "", [("codex", 2), ("codex", 90), ("claude-code", 1)])
    assert [view.model for view in found] == ["model of claude-code", "model of codex"]


def test_a_mark_above_the_folder_is_named_from_there(tmp_path: Path) -> None:
    views(tmp_path, "CLAUDE.md packages/api/x", [])
    folder = os.path.realpath(tmp_path / "home" / "work" / "packages" / "api")
    surroundings = Surroundings(folder, str(tmp_path / "home"), {"PATH": ""})
    first = find_views(surroundings, Disk(), [], NOW.timestamp())[0]
    assert first.reason == f"`claude` is not on the PATH, but {Path('..', '..', 'CLAUDE.md')} is here"


def test_a_program_that_runs_at_the_root_runs_in_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: STARTED)
    log = ClaudeLog(tmp_path / "home", "s1", folder=os.path.realpath(tmp_path / "home" / "work"))
    log.user("Fix the login.")
    log.answer("It is fixed.", sent=43_000)
    views(tmp_path, "CLAUDE.md packages/api/x packages/web/x", [])
    snapshot = load_folder(write_fixture("//- /home/x\n", tmp_path), "/home")
    folder = os.path.realpath(tmp_path / "home" / "work" / "packages" / "api")
    surroundings = Surroundings(folder, str(tmp_path / "home"), {"PATH": ""})
    found = read_views(surroundings, Disk(), snapshot.effective)
    assert found.sessions == ()
    assert f"{found.views[0].title}: {found.views[0].reason}" == f"Claude Code: it runs in {Path('..', '..')}"


def test_files_that_a_program_does_not_heed_in_a_package_do_not_count(tmp_path: Path) -> None:
    files = ".cursor/rules/a.mdc .github/copilot-instructions.md .gemini/settings.json GEMINI.md"
    views(tmp_path, f"{files} packages/api/.cursor/rules/a.mdc packages/web/x", [])
    for package, expected in (
        ("api", ["Cursor: `cursor` is not on the PATH, but .cursor is here"]),
        ("web", []),
    ):
        folder = os.path.realpath(tmp_path / "home" / "work" / "packages" / package)
        surroundings = Surroundings(folder, str(tmp_path / "home"), {"PATH": ""})
        found = find_views(surroundings, Disk(), [], NOW.timestamp())
        reasons = [f"{view.title}: {view.reason}" for view in found if view.in_use]
        gemini = f"Gemini CLI: `gemini` is not on the PATH, but {Path('..', '..', 'GEMINI.md')} is here"
        assert sorted(reasons) == sorted([gemini, *expected])


@pytest.mark.parametrize(
    ("picked", "shown"),
    [
        ("auto", ["claude-code", "codex"]),
        ("codex", ["codex", "claude-code"]),
        ("gemini", ["gemini", "claude-code", "codex"]),
        ("nexus", ["nexus", "claude-code", "codex"]),
    ],
)
def test_the_view_that_the_setting_names_is_in_use_and_first(
    tmp_path: Path, picked: str, shown: list[str]
) -> None:
    surroundings = Surroundings(os.path.realpath(tmp_path), str(tmp_path / "home"), {"PATH": ""})
    listed = [session("claude-code", 1), session("codex", 90)]
    found = find_views(surroundings, Disk(), listed, NOW.timestamp(), picked=picked)
    assert [view.name for view in found if view.in_use] == shown
    assert (found[0].reason == "the setting `views.show` names it") == (picked != "auto")


def test_what_a_program_has_in_the_home_is_no_mark_of_a_project_there(tmp_path: Path) -> None:
    for name in (".claude/settings.json", ".codex/config.toml", ".gemini/settings.json", ".nexus3/NEXUS.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")

    def in_use() -> list[str]:
        home = os.path.realpath(tmp_path)
        found = find_views(Surroundings(home, home, {"PATH": ""}), Disk(), [], NOW.timestamp())
        return [f"{view.title}: {view.reason}" for view in found if view.in_use]

    assert in_use() == ["Nexus: no assistant is in use here"]
    (tmp_path / ".mcp.json").write_text("{}")
    assert in_use() == ["Claude Code: `claude` is not on the PATH, but .mcp.json is here"]


@pytest.mark.parametrize(
    ("folder", "events", "expected"),
    [
        ("", [None], "last used here 1 min ago"),
        ("", [{"type": "import", "file": "x.jsonl"}], "nothing of it is here"),
        ("", [{"type": "import", "file": "x.jsonl"}, None], "last used here 1 min ago"),
        ("/api", [None], "last used here 1 min ago"),
        ("-else", [None], "nothing of it is here"),
    ],
)
def test_a_chat_with_nexus_makes_it_a_view_in_use(
    tmp_path: Path, folder: str, events: list[dict[str, str] | None], expected: str
) -> None:
    work = tmp_path / "home" / "work"
    for path in (work / ".git" / "HEAD", work / "CLAUDE.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    with ledger_in(tmp_path / "ledger.db") as ledger:
        for event in events:
            ledger.append(os.path.realpath(work) + folder, "main", turn("u1 a1", event=event))
        environ = {"PATH": "", "NEXUS_STATE": str(tmp_path)}
        surroundings = Surroundings(os.path.realpath(work), str(tmp_path / "home"), environ)
        snapshot = load_folder(write_fixture("//- /home/work/CLAUDE.md\nx\n", tmp_path), "/home/work")
        found = read_views(surroundings, Disk(), snapshot.effective).views
    reasons = {view.name: view.reason for view in found}
    assert reasons["nexus"] == expected
    assert found[0].name == ("nexus" if "used" in expected else "claude-code")


@pytest.mark.parametrize("data", [None, b"", b"no database"])
def test_a_ledger_that_cannot_be_read_is_no_chat(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "ledger.db").write_bytes(data)
    assert last_nexus_turn(None, {"NEXUS_STATE": str(tmp_path)}, "/work") is None
    assert last_nexus_turn("relative.db", {}, "/work") is None
    assert sorted(os.listdir(tmp_path)) == ([] if data is None else ["ledger.db"])


def test_looking_for_a_chat_does_not_keep_this_process_from_writing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The `-shm` of a killed daemon is there, and its successor looks before it writes."""
    append = (
        "import os, signal, sys; from support.ledgers import ledger_in, turn; from pathlib import Path\n"
        "with ledger_in(Path(sys.argv[1])) as ledger:\n"
        "    ledger.append('/work', 'main', turn('u1 a1')); os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "ledger.db"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", append, str(path)], env=environ, check=False)
    assert (tmp_path / "ledger.db-shm").exists()

    @contextmanager
    def write_while_reading(connection: apsw.Connection) -> Iterator[apsw.Connection]:
        with closing(connection):
            connection.execute("SELECT count(*) FROM turn").fetchall()
            with ledger_in(path) as ledger:
                ledger.append("/work", "main", turn("u2 a2"))
            yield connection

    monkeypatch.setattr(nexus_chats, "closing", write_while_reading)
    assert last_nexus_turn(None, {"NEXUS_STATE": str(tmp_path)}, "/work") is not None
