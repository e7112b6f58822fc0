"""Sessions of other assistants, from files as the programs write them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from nexus_context.assistants.sessions import session_types
from nexus_context.assistants.sessions.session_types import Place
from nexus_context.assistants.tracking import AssistantSession, Usage, find_sessions
from nexus_context.disk.files import Lines

FOLDER = "/work/shop"
SESSION = "eccfd4a0-c552-490f-a185-42de97381828"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (one if isinstance(one, bytes) else json.dumps(one).encode() for one in records)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def only(home: Path, folder: str | None = FOLDER, **environ: str) -> AssistantSession:
    sessions = find_sessions(Place(str(home), environ), folder).sessions
    assert len(sessions) == 1
    return sessions[0]


def check(session: AssistantSession, **expected: Any) -> None:
    assert {name: getattr(session, name) for name in expected} == expected


# ---------------------------------------------------------------- Claude Code


def claude(home: Path, *records: Any, name: str = SESSION, directory: str = "-work-shop") -> Path:
    return write(home / ".claude/projects" / directory / f"{name}.jsonl", *records)


def record(kind: str, **values: Any) -> dict[str, Any]:
    about = {
        "timestamp": "2026-11-23T17:59:17.756Z",
        "cwd": FOLDER,
        "version": "2.1.330",
        "isSidechain": False,
    }
    return {"parentUuid": None, "type": kind, **about, "sessionId": SESSION, **values}


def asks(content: Any, **values: Any) -> dict[str, Any]:
    return record("user", message={"role": "user", "content": content}, **values)


def answers(cached: int, *, model: str = "claude-sonnet-4-5", **values: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 11,
        "cache_creation_input_tokens": 500,
        "cache_read_input_tokens": cached,
        "output_tokens": 7,
        "server_tool_use": {"web_search_requests": 0},
    }
    return record(
        "assistant", message={"role": "assistant", "model": model, "content": [], "usage": usage}, **values
    )


COST = {
    "type": "cost-state",
    "sessionId": SESSION,
    "totalCostUSD": 0.3,
    "modelUsage": {
        "claude-sonnet-4-5": {"inputTokens": 20, "outputTokens": 14, "cacheCreationInputTokens": 900},
        "claude-haiku-4-5": {"inputTokens": 2, "outputTokens": 1, "cacheReadInputTokens": 5},
    },
}
LAST = Usage(fresh=11, cache_read=3, cache_write=500, output=7)


def test_a_session_of_claude_code(home: Path) -> None:
    queue = {"type": "queue-operation", "operation": "enqueue", "timestamp": "2026-11-23T17:59:17.000Z"}
    path = claude(home, queue, asks("Where is the gate?"), answers(1), asks("And now?"), answers(3), COST)
    check(
        only(home),
        assistant="claude-code",
        id=SESSION,
        path=str(path),
        folder=FOLDER,
        prompt="Where is the gate?",
        model="claude-sonnet-4-5",
        version="2.1.330",
        started="2026-11-23T17:59:17.000Z",
        changed="2026-11-23T17:59:17.756Z",
        last=LAST,
        total=Usage(fresh=22, cache_read=5, cache_write=900, output=15),
        window=200_000,
        cost_usd=0.3,
        damaged=0,
    )
    assert LAST.sent == 514


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([answers(3)], {"last": LAST, "cost_usd": None, "total": None}),
        ([answers(3), answers(9, isSidechain=True)], {"last": LAST}),
        ([answers(3), answers(9, model="<synthetic>")], {"last": LAST, "model": "claude-sonnet-4-5"}),
        ([answers(3), record("assistant", message={"role": "assistant", "content": []})], {"last": LAST}),
        (
            [answers(3), record("system", subtype="compact_boundary", compactMetadata={"postTokens": 40})],
            {"last": Usage(fresh=40), "model": "claude-sonnet-4-5"},
        ),
        ([answers(3), record("system", subtype="compact_boundary")], {"last": None}),
        ([], {"last": None, "model": None, "window": None}),
        ([answers(3), b'{"type": "assis'], {"last": LAST, "damaged": 1}),
        ([answers(3), b"\0\0\0\0", b"[1]", b""], {"last": LAST, "damaged": 2}),
        ([answers(3), b'{"type": "later-kind", "new": {"a": [1]}}'], {"last": LAST, "damaged": 0}),
        ([answers(3), b"\xff\xfe"], {"last": LAST, "damaged": 1}),
        ([answers(-5), {**answers(3), "message": "odd"}], {"last": Usage(11, 0, 500, 7), "damaged": 0}),
    ],
)
def test_what_the_end_of_a_session_says(home: Path, records: list[Any], expected: dict[str, Any]) -> None:
    claude(home, asks("Hello"), *records)
    check(only(home), **expected)


@pytest.mark.parametrize(
    ("records", "prompt"),
    [
        ([asks([{"type": "text", "text": "In parts"}])], "In parts"),
        ([asks("<command-name>/clear</command-name>"), asks("Really")], "Really"),
        ([asks("Caveat", isMeta=True), asks("Summary", isCompactSummary=True), asks("Mine")], "Mine"),
        ([asks([{"type": "tool_result"}]), {**record("last-prompt"), "lastPrompt": "At last"}], "At last"),
        ([asks(None)], None),
    ],
)
def test_the_words_of_the_user(home: Path, records: list[Any], prompt: str | None) -> None:
    claude(home, answers(3), *records)
    check(only(home), prompt=prompt)


def test_a_session_that_begins_with_a_long_text_is_listed(home: Path) -> None:
    pasted = "x" * 2 * Lines.HEAD
    queue = {"type": "queue-operation", "operation": "enqueue", "content": pasted}
    claude(home, queue, asks(pasted), answers(3), COST)
    check(only(home), folder=FOLDER, prompt=pasted, cost_usd=0.3, damaged=0)


def test_a_line_that_is_being_written_is_not_damaged(home: Path) -> None:
    path = claude(home, asks("Hello"), answers(3))
    with path.open("ab") as file:
        file.write(b'{"type": "assistant", "mess')
    check(only(home), last=LAST, damaged=0)


def test_the_last_answer_is_found_before_long_records(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_record = record("attachment", attachment={"text": "x" * 3 * Lines.BLOCK})
    claude(home, asks("Hello"), answers(3), long_record, long_record)
    check(only(home), last=LAST)


def test_a_longer_line_than_is_looked_at_hides_what_is_before(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_types, "MOST", 10_000)
    claude(home, asks("Hello"), answers(3), record("attachment", text="x" * 100_000), COST)
    check(only(home), last=None, cost_usd=0.3, prompt="Hello")


@pytest.mark.parametrize(
    ("folder", "directory", "cwd", "expected"),
    [
        (FOLDER, "-work-shop", FOLDER, 1),
        (FOLDER, "-work-shop-api", "/work/shop/api", 1),
        (FOLDER, "-work-shop-api", "/work/shop-api", 0),
        (FOLDER, "-work", "/work", 0),
        ("/", "-work-shop", FOLDER, 1),
        (None, "-work-shop", FOLDER, 1),
        ("/wörk/a b.c", "-w-rk-a-b-c", "/wörk/a b.c", 1),
        ("/" + "x" * 300, "-" + "x" * 199 + "-abc", "/" + "x" * 300, 1),
    ],
)
def test_the_folder_of_a_session(
    home: Path, folder: str | None, directory: str, cwd: str, expected: int
) -> None:
    claude(home, asks("Hello", cwd=cwd), directory=directory)
    assert len(find_sessions(Place(str(home), {}), folder).sessions) == expected


def test_what_is_no_session_of_claude_code(home: Path) -> None:
    claude(home, asks("Sub-agent"), name="agent-1234")
    claude(home, {"type": "summary", "summary": "of another file"}, name="a")
    claude(home, name="empty")
    write(home / ".claude/projects/-work-shop/notes.txt", asks("Hello"))
    write(home / ".claude/projects/loose.jsonl", asks("Hello"))
    (home / ".claude/projects/-work-shop/directory.jsonl").mkdir()
    assert find_sessions(Place(str(home), {}), FOLDER) == find_sessions(
        Place(str(home / "nobody"), {}), FOLDER
    )


def test_another_directory_of_claude_code(home: Path) -> None:
    claude(home, asks("Hello"))
    (home / ".claude").rename(home / "elsewhere")
    check(only(home, CLAUDE_CONFIG_DIR=str(home / "elsewhere")), prompt="Hello")


def test_a_session_that_grew_is_read_again(home: Path) -> None:
    path = claude(home, asks("Hello"), answers(1))
    only(home)
    with path.open("ab") as file:
        file.write(json.dumps(answers(3)).encode() + b"\n")
    check(only(home), last=LAST)


# ---------------------------------------------------------------- Codex


def codex(home: Path, *records: Any, directory: str = "sessions/2026/11/23") -> Path:
    path = home / ".codex" / directory / "rollout-2026-11-23T17-59-21-01a2.jsonl"
    return write(path, *({"timestamp": "2026-11-23T17:59:22.000Z", **one} for one in records))


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"type": kind, "payload": payload}


META = item(
    "session_meta", id="01a2", cwd=FOLDER, timestamp="2026-11-23T17:59:21.053Z", cli_version="0.169.0"
)
TURN = item("turn_context", model="gpt-5", cwd=FOLDER)


SPAWNED = {"subagent": {"thread_spawn": {"parent_thread_id": "01a1", "depth": 1}}}


@pytest.mark.parametrize(
    ("about", "parent"),
    [
        ({}, None),
        ({"source": "exec"}, None),
        ({"source": {"subagent": "review"}}, None),
        ({"source": SPAWNED}, "01a1"),
        ({"source": "exec", "parent_thread_id": "01a0"}, "01a0"),
    ],
)
def test_the_parent_of_a_sub_agent_of_codex(home: Path, about: dict[str, Any], parent: str | None) -> None:
    codex(home, {**META, "payload": {**META["payload"], **about}}, TURN, says("Hello"))
    check(only(home), parent=parent)


def says(text: str) -> dict[str, Any]:
    return item("response_item", type="message", role="user", content=[{"type": "input_text", "text": text}])


def counts(sent: int) -> dict[str, Any]:
    last = {
        "input_tokens": sent,
        "cached_input_tokens": 100,
        "cache_write_input_tokens": 0,
        "output_tokens": 7,
    }
    info = {
        "last_token_usage": last,
        "total_token_usage": {**last, "input_tokens": 2 * sent},
        "model_context_window": 258_400,
    }
    return item("event_msg", type="token_count", info=info)


@pytest.mark.parametrize("directory", ["sessions/2026/11/23", "archived_sessions"])
def test_a_session_of_codex(home: Path, directory: str) -> None:
    instructions = says("# AGENTS.md instructions for /work/shop"), says("<environment_context>")
    turn = [TURN, *instructions, says("Where is the gate?"), counts(9), counts(5_000)]
    path = codex(home, META, *turn, directory=directory)
    check(
        only(home),
        assistant="codex",
        id="01a2",
        path=str(path),
        folder=FOLDER,
        prompt="Where is the gate?",
        model="gpt-5",
        version="0.169.0",
        started="2026-11-23T17:59:21.053Z",
        changed="2026-11-23T17:59:22.000Z",
        last=Usage(fresh=4_900, cache_read=100, output=7),
        total=Usage(fresh=9_900, cache_read=100, output=7),
        window=258_400,
        cost_usd=None,
    )


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([META], {"prompt": None, "last": None, "model": None, "window": None}),
        ([META, item("event_msg", type="token_count", info=None)], {"last": None}),
        ([META, TURN, item("event_msg", type="token_count", info={"last_token_usage": 3})], {"last": None}),
        ([META, counts(10)], {"last": Usage(fresh=0, cache_read=100, output=7)}),
        ([META, item("later_kind", type=None, message={"a": 1})], {"damaged": 0}),
        ([META, {"type": 5}], {"damaged": 0}),
    ],
)
def test_what_a_session_of_codex_may_lack(home: Path, records: list[Any], expected: dict[str, Any]) -> None:
    codex(home, *records)
    check(only(home), **expected)


def test_codex_elsewhere(home: Path) -> None:
    codex(home, META)
    assert find_sessions(Place(str(home), {}), "/work/other").sessions == ()
    assert find_sessions(Place(str(home), {"CODEX_HOME": str(home / "none")}), FOLDER).sessions == ()
    check(only(home, None, CODEX_HOME=str(home / ".codex")), id="01a2")


# ---------------------------------------------------------------- opencode

TABLES = """
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text,
    model text, cost real, tokens_input integer, tokens_output integer, tokens_cache_read integer,
    tokens_cache_write integer, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text);
"""
ANSWER = {"role": "assistant", "tokens": {"input": 4_000, "output": 4, "cache": {"read": 30, "write": 2}}}


class OpenCode:
    """opencode with its database open: what it wrote is in the log."""

    def __init__(self, home: Path) -> None:
        self.directory = home / ".local/share/opencode"
        self.directory.mkdir(parents=True)
        self.path = self.directory / "opencode.db"
        self.connection = apsw.Connection(str(self.path))
        self.connection.execute("PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0")
        self.connection.execute(TABLES)

    def add(self, *messages: Any, directory: str = FOLDER, model: str | None = '{"id": "m1"}') -> None:
        number = len(list(self.connection.execute("SELECT id FROM session")))
        row = (
            f"ses_{number}",
            None,
            directory,
            "The gate",
            "1.18.33",
            model,
            0.5,
            8_000,
            8,
            60,
            4,
            1_000,
            2_000,
        )
        self.connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        for place, message in enumerate(messages):
            values = (f"msg_{number}_{place}", f"ses_{number}", place, json.dumps(message))
            self.connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", values)

    def files(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.directory.iterdir()}


@pytest.fixture
def opencode(home: Path) -> Iterator[OpenCode]:
    program = OpenCode(home)
    yield program
    program.connection.close()


@pytest.mark.parametrize("is_open", [True, False])
def test_a_session_of_opencode(home: Path, opencode: OpenCode, is_open: bool) -> None:
    opencode.add({"role": "user"}, {"role": "assistant", "tokens": {"input": 1}}, ANSWER, {"role": "user"})
    opencode.add(directory="/work/other")
    if not is_open:
        opencode.connection.close()
    before = opencode.files()
    check(
        only(home),
        assistant="opencode",
        id="ses_0",
        path=str(opencode.path),
        folder=FOLDER,
        prompt="The gate",
        model="m1",
        version="1.18.33",
        started="1970-01-01T00:00:01.000Z",
        changed="1970-01-01T00:00:02.000Z",
        last=Usage(fresh=4_000, cache_read=30, cache_write=2, output=4),
        total=Usage(fresh=8_000, cache_read=60, cache_write=4, output=8),
        window=None,
        cost_usd=0.5,
        parent=None,
    )
    if not is_open:  # two connections of one process share the file -shm
        assert opencode.files() == before


READ = """
from nexus_context.assistants.sessions.session_types import Place
from nexus_context.assistants.tracking import find_sessions
import sys
print(len(find_sessions(Place(sys.argv[1], {})).sessions))
"""


def test_a_database_of_another_process_is_not_touched(home: Path, opencode: OpenCode) -> None:
    opencode.add()
    before = opencode.files()
    command = [sys.executable, "-c", READ, str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, opencode.files()) == ("1\n", before)


@pytest.mark.parametrize(
    ("messages", "model", "expected"),
    [
        ([], None, {"last": None, "model": None}),
        ([{"role": "assistant", "tokens": []}], "[]", {"last": None, "model": None}),
        (
            [{"role": "assistant", "tokens": {"cache": 3, "input": 5}}],
            "{",
            {"last": Usage(fresh=5), "model": None},
        ),
    ],
)
def test_what_opencode_may_lack(
    home: Path, opencode: OpenCode, messages: list[Any], model: str | None, expected: dict[str, Any]
) -> None:
    opencode.add(*messages, model=model)
    check(only(home), **expected)


def test_a_database_that_is_being_written(home: Path, opencode: OpenCode) -> None:
    opencode.add()
    opencode.connection.execute("BEGIN IMMEDIATE")
    opencode.add()
    assert len(find_sessions(Place(str(home), {}), FOLDER).sessions) == 1
    opencode.connection.execute("COMMIT")
    assert len(find_sessions(Place(str(home), {}), FOLDER).sessions) == 2


def failure(home: Path, path: Path) -> str:
    result = find_sessions(Place(str(home), {}), FOLDER)
    assert result.sessions == ()
    ((failed, reason),) = result.failures
    assert failed == str(path)
    return reason


def test_a_database_whose_log_nobody_applied(home: Path, opencode: OpenCode, tmp_path: Path) -> None:
    opencode.add()
    copy = tmp_path / "copy"
    shutil.copytree(home / ".local", copy / ".local")
    path = copy / ".local/share/opencode/opencode.db"
    path.with_name("opencode.db-shm").unlink()
    reason = failure(copy, path)
    assert reason == "opencode ended without writing its log to the database: start it once"
    assert not path.with_name("opencode.db-shm").exists()


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"not a database, but long enough to be one" * 30, "not a database"), (b"", "no such table: session")],
)
def test_a_broken_database(home: Path, data: bytes, reason: str) -> None:
    path = home / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert reason in failure(home, path)


def test_the_newest_session_of_all_assistants_comes_first(home: Path, opencode: OpenCode) -> None:
    opencode.add()
    claude(home, asks("Hello", timestamp="2026-11-23T18:00:00.000Z"))
    codex(home, META, TURN)
    sessions = find_sessions(Place(str(home), {}), FOLDER).sessions
    assert [one.assistant for one in sessions] == ["claude-code", "codex", "opencode"]
