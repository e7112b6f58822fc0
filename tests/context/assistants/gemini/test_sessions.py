"""Sessions of Gemini CLI: the file was written by the recorder of 0.61.0, with a rewind and a compression."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.assistants.gemini.record_format import FORMAT
from nexus_context.assistants.gemini.records import SNAPSHOT, GeminiRecord
from nexus_context.assistants.gemini.steps import GeminiSteps
from nexus_context.assistants.importing import read_transcript
from nexus_context.assistants.mirror import mirror_files
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.sessions.session_types import Place
from nexus_context.assistants.tracking import Usage, find_sessions
from nexus_context.assistants.tracking.follow import SessionFollower
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.errors import Span
from nexus_context.ledger import open_ledger
from support.json_lines import json_lines

RECORDED = Path(__file__).with_name("gemini_session.jsonl")
FOLDER = "/home/ana/shop"
SESSION = "0b8f1c2e-6a51-4d0c-9a57-2f7c3d1e4a10"
LINES = RECORDED.read_bytes().splitlines(keepends=True)
FIRST = "Where is the gate of the harbour? Never use tabs."


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """The directory of a project's sessions."""
    project = tmp_path / ".gemini" / "tmp" / "shop"
    chats = project / "chats"
    chats.mkdir(parents=True)
    (project / ".project_root").write_text(FOLDER + "\n")
    return chats


def write(chats: Path, lines: list[bytes] = LINES) -> Path:
    path = chats / "session-2026-11-27T20-22-0b8f1c2e.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def follower_in(home: Path) -> SessionFollower:
    (session,) = find_sessions(Place(str(home), {}), FOLDER).sessions
    return SessionFollower(session)


def test_a_session_is_found_by_its_folder(tmp_path: Path, chats: Path) -> None:
    path = write(chats)
    (session,) = find_sessions(Place(str(tmp_path), {}), FOLDER).sessions
    assert (session.assistant, session.id, session.path) == ("gemini", SESSION, str(path))
    assert (session.folder, session.prompt, session.model) == (FOLDER, FIRST, "gemini-2.5-pro")
    assert session.last == Usage(fresh=4_000, output=6)
    assert session.window == 1_048_576
    assert find_sessions(Place(str(tmp_path), {}), "/home/ana").sessions == (session,)
    assert find_sessions(Place(str(tmp_path), {}), "/home/ana/other").sessions == ()
    moved = {"GEMINI_CLI_HOME": str(tmp_path)}
    assert find_sessions(Place("/nowhere", moved), FOLDER).sessions == (session,)


def test_a_sub_agent_belongs_to_its_session(tmp_path: Path, chats: Path) -> None:
    write(chats)
    agents = chats / SESSION
    agents.mkdir()
    (agents / "helper-1.jsonl").write_bytes(b"".join(LINES[:1]).replace(SESSION.encode(), b"helper-1"))
    sessions = {one.id: one for one in find_sessions(Place(str(tmp_path), {}), FOLDER).sessions}
    assert (sessions["helper-1"].parent, sessions[SESSION].parent) == (SESSION, None)


def test_a_folder_has_the_sessions_of_those_inside_it(tmp_path: Path, chats: Path) -> None:
    write(chats)
    place = Place(str(tmp_path), {})
    new = tmp_path / ".gemini" / "tmp" / "new"
    new.mkdir()
    for folder, paths in {"/home": {f"{chats}/"}, FOLDER: {f"{chats}/"}, "/opt": set[str]()}.items():
        watched = {f"{tmp_path}/.gemini/tmp/", f"{new}/"} | paths
        assert set(PROGRAMS["gemini"].sessions.watched(place, folder)) == watched
        assert len(list(PROGRAMS["gemini"].sessions.list_files(place, folder))) == len(paths)


def test_the_report_counts_each_request_and_each_text_once(tmp_path: Path, chats: Path) -> None:
    write(chats)
    follower = follower_in(tmp_path)
    follower.advance()
    report = follower.report()
    assert report.requests == 5  # also the one that was taken back: it was paid for
    assert report.total == Usage(fresh=9_000 + 1_100 + 200 + 250 + 4_000, cache_read=26_000, output=89)
    assert report.cost_usd is not None
    assert [one.trigger for one in report.compactions] == [None]
    assert (report.compactions[0].before, report.compactions[0].after) == (9_258, 4_000)
    assert [(tool.tool, tool.calls) for tool in report.tools] == [("read_file", 1)]
    parts = {part.category for part in report.window.parts}
    assert {"summary", "user", "answers"} <= parts
    assert (report.damaged, report.unread) == (0, {})
    assert report.title == FIRST


@pytest.mark.parametrize("step", [1, 2, 5])
def test_a_report_is_the_same_however_the_file_grew(tmp_path: Path, chats: Path, step: int) -> None:
    path = write(chats, LINES[:1])
    follower = follower_in(tmp_path)
    for end in range(1, len(LINES), step):
        write(chats, LINES[:end])
        follower.advance()
    path = write(chats)
    follower.advance()
    fresh = follower_in(tmp_path)
    fresh.advance()
    assert follower.report().total == fresh.report().total
    assert follower.report().window == fresh.report().window
    assert follower.paths == (str(path),)


@pytest.mark.parametrize("step", [1, 3, len(LINES)])
def test_a_session_is_kept_with_what_was_compressed(tmp_path: Path, chats: Path, step: int) -> None:
    state = {"NEXUS_STATE": str(tmp_path / "state")}
    with closing(open_ledger(environ=state)) as ledger:
        for end in (*range(1, len(LINES), step), len(LINES)):
            write(chats, LINES[:end])
            summary = mirror_files(ledger, str(tmp_path), {}, folder=FOLDER, assistant="gemini")
            assert [file.failure for file in summary.files] == [None] * len(summary.files)
        assert mirror_files(ledger, str(tmp_path), {}, folder=FOLDER).unchanged == 1
        sessions = ledger.sessions()
        texts = {
            one.name: [message for turn in ledger.turns(one.workspace, one.name) for message in turn.messages]
            for one in sessions
        }
    assert {one.workspace for one in sessions} == {FOLDER}
    last = max(texts.values(), key=lambda messages: "And the south gate?" in [m.content for m in messages])
    contents = [message.content for message in last]
    assert FIRST in contents
    assert "The gate is in the north." in contents
    assert "Then write it down." in contents
    assert "Are you sure about the north?" not in contents
    assert "/stats" not in contents
    assert [call.name for message in last for call in message.tool_calls] == ["read_file"]


def test_the_mirror_knows_the_parent_of_a_sub_agent(tmp_path: Path, chats: Path) -> None:
    agents = chats / SESSION
    agents.mkdir()
    (agents / "helper-1.jsonl").write_bytes(b"".join(LINES).replace(SESSION.encode(), b"helper-1"))
    with closing(open_ledger(environ={"NEXUS_STATE": str(tmp_path / "state")})) as ledger:
        mirror_files(ledger, str(tmp_path), {})
        mirrored = ledger.mirrors.find("gemini", "helper-1")
    assert mirrored is not None
    assert mirrored.origin.parent == SESSION


PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.sampled_from(["/x", SNAPSHOT])
)
KEYS = st.one_of(st.text(max_size=5), st.sampled_from(["text", "functionCall", "functionResponse", "id"]))
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
NAMES = ("id", "type", "content", "tokens", "toolCalls", "thoughts", "messages", "$set", "$rewindTo", "model")


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(LINES) - 1), st.sampled_from(NAMES), VALUES), max_size=6))
def test_no_value_in_a_record_stops_its_readers(changes: list[tuple[int, str, Any]]) -> None:
    """Whatever a field holds, the other messages are read, and nothing is an error in Nexus."""
    records: list[dict[str, Any]] = [json.loads(line) for line in LINES]
    for at, name, value in changes:
        calls = records[at].get("toolCalls")
        if isinstance(calls, list):
            records[at]["toolCalls"] = [*calls, value, {name: value}]
        records[at][name] = value
    steps = GeminiSteps()
    for record in records:
        assert isinstance(GeminiRecord(record).unknown, tuple)
        list(steps.read(GeminiRecord(record)))
    report = Report("/s.jsonl")
    taken = [Record(one, Span(0, 0), "A line") for one in records if FORMAT.reader.is_record(one)]
    FORMAT.reader.convert(taken, report, True)
    FORMAT.reader.convert(taken, report, False)
    typed = [GeminiRecord(record) for record in records]
    boundary = FORMAT.find_boundary(typed, False)
    FORMAT.continues(typed, () if boundary is None else boundary.parents, False)
    assert not [one for one in report.problems() if one.code == "internal"]


@pytest.mark.parametrize("entire", [False, True])
def test_the_file_of_a_session_is_imported_as_it_is_kept(entire: bool) -> None:
    transcript = read_transcript(RECORDED.read_bytes(), "/x/session.jsonl", entire=entire)
    (conversation,) = transcript.conversations
    assert (transcript.format, conversation.id) == ("gemini-cli", SESSION)
    lines = [Record(json.loads(line), Span(0, 0), "A line") for line in LINES]
    (kept,) = FORMAT.reader.convert(lines, Report("/s"), entire)
    assert conversation.messages == kept.messages
    assert conversation.answers


def test_an_empty_list_replaces_all_messages() -> None:
    first = {"sessionId": "s", "projectHash": "h"}
    said = [{"id": name, "type": "user", "content": name} for name in ("old", "new")]
    records = [first, said[0], {"$set": {"messages": []}}, said[1]]
    transcript = read_transcript(json_lines(records), "/x/s.jsonl")
    assert [one.content for one in transcript.conversations[0].messages] == ["new"]
