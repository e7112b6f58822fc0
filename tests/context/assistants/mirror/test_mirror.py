"""Sessions of other assistants in the ledger: complete, once, and never less than there was."""

import json
import os
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from nexus_context.assistants.importing import importers
from nexus_context.assistants.importing.importers import Importer
from nexus_context.assistants.mirror import (
    MirrorSummary,
    excerpts,
    mirror_files,
    mirror_session,
    session_writer,
)
from nexus_context.assistants.sessions import record_reader as reader
from nexus_context.conversation.message import Message, text_of
from nexus_context.ledger import open_ledger
from nexus_context.ledger.sqlite_tables import MirrorTables
from nexus_context.ledger.store import Ledger
from nexus_context.tokens import counter_for
from support.assistant_logs import FOLDER, ClaudeLog, CodexLog, OpencodeDatabase, use
from support.ledgers import turn_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(ledger: Ledger, home: Path, **options: Any) -> MirrorSummary:
    return mirror_files(ledger, str(home), {}, **options)


def words(ledger: Ledger, session: str, workspace: str = FOLDER) -> str:
    """The messages of a session: the first letter of the role, then the text, or the calls."""
    said = []
    for turn in ledger.turns(workspace, session):
        for message in turn.messages:
            calls = "".join(f"[{call.id}]" for call in message.tool_calls)
            said.append(f"{message.role[0]}:{text_of(message)}{calls}")
    return " ".join(said)


def check(ledger: Ledger, *expected: tuple[str, str], workspace: str = FOLDER) -> None:
    """The names and messages of all sessions, the oldest first."""
    names = [session.name for session in reversed(ledger.sessions(workspace))]
    assert [(name, words(ledger, name, workspace)) for name in names] == list(expected)


def totals(summary: MirrorSummary) -> dict[str, int]:
    names = ("new", "continued", "forked", "deleted", "turns", "messages")
    counts = {name: summary.total(name) for name in names} | {"unchanged": summary.unchanged}
    return {name: count for name, count in counts.items() if count}


def talk(log: ClaudeLog) -> None:
    log.user("Where?")
    log.answer("Let me look.", use("c1"))
    log.result("c1", "a gate")
    log.answer("There.")


ONE = "claude-code: Where?"
TALK = "u:Where? a:Let me look.[c1] t:a gate a:There."


# ---------------------------------------------------------------- what there is


def test_sessions_of_all_three(ledger: Ledger, home: Path) -> None:
    talk(ClaudeLog(home, "s1"))
    rollout = CodexLog(home, "r1")
    rollout.user("What now?")
    rollout.call("k1")
    rollout.result("k1", "files")
    rollout.answer("Done.")
    database = OpencodeDatabase(home)
    database.session("ses_1")
    database.message("ses_1", "user", "Who?")
    database.message("ses_1", "assistant", "Me.")
    assert totals(run(ledger, home)) == {"new": 3, "turns": 3, "messages": 10}
    check(
        ledger,
        (ONE, TALK),
        ("codex: What now?", "u:What now? a:[k1] t:files a:Done."),
        ("opencode: Who?", "u:Who? a:Me."),
    )
    assert totals(run(ledger, home)) == {"unchanged": 3}
    origin = ledger.sessions(FOLDER)[-1].origin
    assert origin is not None
    assert (origin.assistant, origin.id, Path(origin.path).name) == ("claude-code", "s1", "s1.jsonl")
    assert {hit.assistant for hit in ledger.pages.search("gate", workspace=FOLDER)} == {"claude-code"}
    assert ledger.upkeep.verify().sound


def test_only_a_folder_and_those_inside_it(ledger: Ledger, home: Path) -> None:
    for number, folder in enumerate((FOLDER, f"{FOLDER}/deep", f"{FOLDER}2", "/other")):
        ClaudeLog(home, f"s{number}", folder=folder).user("Hello")
        CodexLog(home, f"r{number}", folder=folder).user("Hello")
    database = OpencodeDatabase(home)
    for number, folder in enumerate((FOLDER, "/other")):
        database.session(f"o{number}", folder=folder)
        database.message(f"o{number}", "user", "Hello")
    assert run(ledger, home, folder=FOLDER).total("new") == 5
    assert {session.workspace for session in ledger.sessions()} == {FOLDER, f"{FOLDER}/deep"}
    assert run(ledger, home, folder=FOLDER).total("new") == 0
    assert run(ledger, home).total("new") == 5
    assert run(ledger, home, folder=FOLDER).unchanged == 5


def test_one_assistant(ledger: Ledger, home: Path) -> None:
    ClaudeLog(home, "s1").user("Hello")
    CodexLog(home, "r1").user("Hello")
    assert run(ledger, home, assistant="codex").total("new") == 1


def test_sub_agents_are_sessions_with_their_parent(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    agent = ClaudeLog(home, "x", agent="a7", session="s1")
    agent.user("Search.")
    agent.answer("Nothing.")
    run(ledger, home)
    check(ledger, (ONE, TALK), ("claude-code agent: Search.", "u:Search. a:Nothing."))
    session = ledger.find(FOLDER, "claude-code agent: Search.")
    assert session is not None
    assert session.origin is not None
    assert (session.origin.id, session.origin.parent) == ("s1/a7", "s1")
    assert session.origin.parent_session == ONE
    agent.user("Again.")
    agent.answer("Still nothing.")
    assert totals(run(ledger, home)) == {"continued": 1, "turns": 1, "messages": 2, "unchanged": 1}


def test_a_sub_agent_in_its_parents_file_grows_with_it(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    main = log.last
    log.user("Search.", parent=None, isSidechain=True, agentId="a1")
    log.answer("Nothing.", isSidechain=True, agentId="a1")
    side = log.last
    log.answer("There.", parent=main)
    run(ledger, home)
    agent = "claude-code agent: Search."
    check(ledger, (ONE, "u:Where? a:There."), (agent, "u:Search. a:Nothing."))
    main = log.last
    log.user("More.", parent=side, isSidechain=True, agentId="a1")
    log.user("And?", parent=main)
    run(ledger, home)
    check(ledger, (ONE, "u:Where? a:There. u:And?"), (agent, "u:Search. a:Nothing. u:More."))


def test_a_sub_agent_of_codex_and_of_opencode_has_its_parent(ledger: Ledger, home: Path) -> None:
    CodexLog(home, "r1").user("Main")
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "r1", "depth": 1}}}
    CodexLog(home, "r2", source=source).user("Sub")
    database = OpencodeDatabase(home)
    for name, parent in (("o1", None), ("o2", "o1")):
        database.session(name, parent=parent)
        database.message(name, "user", f"Hello {name}")
    run(ledger, home)
    origins = [session.origin for session in ledger.sessions(FOLDER)]
    assert {one.id: one.parent for one in origins if one is not None} == {
        "r1": None,
        "r2": "r1",
        "o1": None,
        "o2": "o1",
    }


def test_the_name_has_no_secret_and_the_messages_have_it(ledger: Ledger, home: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    ClaudeLog(home, "s1").user(f"Use {secret} please")
    run(ledger, home)
    (session,) = ledger.sessions(FOLDER)
    assert secret not in session.name
    assert words(ledger, session.name) == f"u:Use {secret} please"
    (hit,) = ledger.pages.search("please")
    assert secret not in hit.snippet
    (hit,) = ledger.pages.search(secret)
    assert "a1B2a1B2" not in hit.snippet


# ---------------------------------------------------------------- what grows


def test_a_file_that_has_grown_is_read_from_where_it_ended(
    ledger: Ledger, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    run(ledger, home)
    starts: list[int] = []
    read_lines = reader.read_lines

    def spy(path: str, start: int, size: int, longest: int) -> Any:
        starts.append(start)
        return read_lines(path, start, size, longest)

    monkeypatch.setattr(reader, "read_lines", spy)
    log.user("Sure?")
    log.answer("Yes.")
    size = log.path.stat().st_size
    assert totals(run(ledger, home)) == {"continued": 1, "turns": 1, "messages": 2}
    log.user("Why?")
    run(ledger, home)
    assert all(starts)
    assert starts[-1] > size // 2
    check(ledger, (ONE, f"{TALK} u:Sure? a:Yes. u:Why?"))


@pytest.mark.parametrize("assistant", ["claude-code", "codex"])
def test_any_cut_of_a_file_gives_the_same_session(ledger: Ledger, home: Path, assistant: str) -> None:
    """The file grows by a record, or by half of one, between the runs."""
    if assistant == "codex":
        rollout = CodexLog(home, "r1")
        for turn in range(3):
            rollout.user(f"Question {turn}")
            for step in range(2):
                rollout.answer(f"Thinking {turn}.{step}", sent=100 * turn)
                rollout.call(f"k{turn}{step}")
                rollout.result(f"k{turn}{step}", "files")
            rollout.answer("Done.")
        path = rollout.path
    else:
        log = ClaudeLog(home, "s1")
        for turn in range(3):
            log.user(f"Question {turn}")
            for step in range(2):
                log.answer(f"Thinking {turn}.{step}", use(f"c{turn}{step}"), use(f"d{turn}{step}"))
                log.result(f"c{turn}{step}", "one")
                log.result(f"d{turn}{step}", "two")
            log.answer("Done.")
        path = log.path
    data = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    for end in sorted({*ends, *(end - 30 for end in ends)}):
        path.write_bytes(data[:end])
        os.utime(path, ns=(end, end))
        run(ledger, home)
    (session,) = ledger.sessions(FOLDER)
    (entire,) = importers.read(data, str(path)).sessions
    expected = [text_of(message) for turn in entire.turns for message in turn.messages]
    calls = [call.id for turn in entire.turns for message in turn.messages for call in message.tool_calls]
    stored = [message for turn in ledger.turns(FOLDER, session.name) for message in turn.messages]
    assert [text for message in stored if (text := text_of(message))] == [text for text in expected if text]
    assert [call.id for message in stored for call in message.tool_calls] == calls


def test_an_answer_that_is_read_while_it_is_written_goes_on(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    log.answer("Let me look.", message="m1")
    run(ledger, home)
    log.answer(use("c1"), use("c2"), message="m1")
    run(ledger, home)
    log.result("c2", "two")
    run(ledger, home)
    log.result("c1", "one")
    log.answer("There.")
    run(ledger, home)
    check(ledger, (ONE, "u:Where? a:Let me look. a:[c1][c2] t:two t:one a:There."))


def test_an_unfinished_line_is_left_for_later(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    data = log.path.read_bytes()
    log.answer("There.")
    whole = log.path.read_bytes()
    for end in range(len(data) + 1, len(whole), 60):
        log.path.write_bytes(whole[:end])
        summary = run(ledger, home)
        assert [file.problems for file in summary.files if file.problems] == []
    log.path.write_bytes(whole)
    run(ledger, home)
    check(ledger, (ONE, "u:Where? a:There."))


def test_a_text_in_the_queue_waits(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    log.put("queue-operation", operation="enqueue", content="Hurry!")
    run(ledger, home)
    check(ledger, (ONE, "u:Where?"))
    log.answer("There.", parent=f"{log.name}-1")
    log.put("queue-operation", operation="dequeue", parent=log.last)
    log.user("Hurry!", parent=f"{log.name}-3")
    run(ledger, home)
    check(ledger, (ONE, "u:Where? a:There. u:Hurry!"))


def test_a_text_that_waited_for_an_hour_is_taken(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    log.put("queue-operation", operation="enqueue", content="Hurry!")
    run(ledger, home)
    os.utime(log.path, (1_700_000_000, 1_700_000_000))
    run(ledger, home)
    check(ledger, (ONE, "u:Where? u:Hurry!"))


# ---------------------------------------------------------------- what changes


def test_a_file_that_was_deleted_or_cut_loses_nothing(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    run(ledger, home)
    data = log.path.read_bytes()
    for kept in (len(data) // 2, 0, len(data)):
        log.path.write_bytes(data[:kept])
        run(ledger, home)
        check(ledger, (ONE, TALK))
    log.path.unlink()
    assert totals(run(ledger, home)) == {}
    check(ledger, (ONE, TALK))


def test_a_branch_goes_on_in_a_fork(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    log.answer("There.")
    back = log.last
    log.user("Sure?")
    log.answer("Yes.")
    run(ledger, home)
    log.user("Really?", parent=back)
    log.answer("No.")
    assert totals(run(ledger, home)) == {"forked": 1, "turns": 1, "messages": 2}
    log.user("Hm.")
    run(ledger, home)
    check(
        ledger,
        (ONE, "u:Where? a:There. u:Sure? a:Yes."),
        (f"{ONE} (2)", "u:Where? a:There. u:Really? a:No. u:Hm."),
    )
    assert ledger.find(FOLDER, f"{ONE} (2)").forked_from == ONE  # type: ignore[union-attr]
    assert all(session.origin is not None for session in ledger.sessions(FOLDER))
    assert ledger.upkeep.verify().sound


def test_turns_that_codex_takes_back_stay(ledger: Ledger, home: Path) -> None:
    rollout = CodexLog(home, "r1")
    for text in ("One", "Two"):
        rollout.user(text)
        rollout.answer(f"{text}!")
    run(ledger, home)
    rollout.put("event_msg", type="thread_rolled_back", num_turns=1)
    rollout.user("Three")
    rollout.answer("Three!")
    run(ledger, home)
    check(
        ledger,
        ("codex: One", "u:One a:One! u:Two a:Two!"),
        ("codex: One (2)", "u:One a:One! u:Three a:Three!"),
    )


def test_a_compaction_keeps_what_it_replaces(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    log.answer("There.")
    run(ledger, home)
    last = log.last
    log.put("system", subtype="compact_boundary", parent=None, logicalParentUuid=last)
    log.user("Summary.", isCompactSummary=True)
    log.answer("On we go.")
    assert totals(run(ledger, home)) == {"continued": 1, "turns": 1, "messages": 2}
    check(ledger, (ONE, "u:Where? a:There. u:Summary. a:On we go."))


def test_a_file_that_was_written_anew_goes_on_in_a_fork(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    run(ledger, home)
    log.path.unlink()
    other = ClaudeLog(home, "s1")
    other.user("Something else?")
    other.answer("Yes.")
    run(ledger, home)
    check(ledger, (ONE, TALK), ("claude-code: Something else?", "u:Something else? a:Yes."))


def test_a_file_that_moved_is_the_same_session(ledger: Ledger, home: Path) -> None:
    rollout = CodexLog(home, "r1")
    rollout.user("One")
    run(ledger, home)
    target = home / ".codex/archived_sessions" / rollout.path.name
    target.parent.mkdir()
    rollout.path.rename(target)
    run(ledger, home)
    rollout.path = target
    rollout.answer("Two")
    run(ledger, home)
    check(ledger, ("codex: One", "u:One a:Two"))
    origin = ledger.sessions(FOLDER)[0].origin
    assert origin is not None
    assert origin.path == str(target)


def test_a_session_of_opencode_goes_on(ledger: Ledger, home: Path) -> None:
    database = OpencodeDatabase(home)
    database.session("o1")
    database.message("o1", "user", "One")
    run(ledger, home)
    database.message("o1", "assistant", "Two")
    assert totals(run(ledger, home)) == {"continued": 1, "turns": 1, "messages": 1}
    database.connection.execute("DELETE FROM part; DELETE FROM message; DELETE FROM session")
    run(ledger, home)
    check(ledger, ("opencode: One", "u:One a:Two"))


# ---------------------------------------------------------------- beside others


def test_what_the_user_adds_is_not_the_programs(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    run(ledger, home)
    mine = turn_of(Message("user", "Mine."))
    ledger.append(FOLDER, ONE, mine)
    log.user("Sure?")
    assert totals(run(ledger, home)) == {"forked": 1, "turns": 1, "messages": 1}
    log.answer("Yes.")
    assert totals(run(ledger, home)) == {"continued": 1, "turns": 1, "messages": 1}
    check(ledger, (ONE, f"{TALK} u:Mine."), (f"{ONE} (2)", f"{TALK} u:Sure? a:Yes."))


def test_a_session_that_the_user_cleared_or_renamed_goes_on(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    run(ledger, home)
    ledger.rename(FOLDER, ONE, "gates")
    log.user("Sure?")
    run(ledger, home)
    check(ledger, ("gates", f"{TALK} u:Sure?"))
    ledger.clear(FOLDER, "gates")
    log.answer("Yes.")
    run(ledger, home)
    check(ledger, ("gates", ""), ("gates (2)", f"{TALK} u:Sure? a:Yes."))


def test_a_session_that_the_user_deleted_stays_deleted(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    run(ledger, home)
    ledger.delete(FOLDER, ONE)
    log.user("Sure?")
    assert totals(run(ledger, home)) == {"deleted": 1}
    check(ledger)


@pytest.mark.parametrize("is_later", [False, True])
def test_what_was_imported_is_continued(ledger: Ledger, home: Path, is_later: bool) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    importer = Importer(ledger, FOLDER, counter_for)
    (session,) = importers.read(log.path.read_bytes(), str(log.path)).sessions
    importer.add(session)
    if is_later:
        log.user("Sure?")
    run(ledger, home)
    check(ledger, ("s1", TALK + (" u:Sure?" if is_later else "")))
    log.user("And now?")
    run(ledger, home)
    assert words(ledger, "s1").endswith("u:And now?")
    assert ledger.find(FOLDER, "s1").origin is not None  # type: ignore[union-attr]


def test_what_is_mirrored_is_not_imported_again(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    run(ledger, home)
    importer = Importer(ledger, FOLDER, counter_for)
    (session,) = importers.read(log.path.read_bytes(), str(log.path)).sessions
    assert importer.add(session).outcome == "known"
    log.user("Sure?")
    (session,) = importers.read(log.path.read_bytes(), str(log.path)).sessions
    assert Importer(ledger, FOLDER, counter_for).add(session).outcome == "continued"
    log.answer("Yes.")
    run(ledger, home)
    check(ledger, (ONE, f"{TALK} u:Sure? a:Yes."))


def test_two_at_once_write_everything_once(tmp_path: Path, home: Path) -> None:
    logs = [ClaudeLog(home, f"s{number}") for number in range(6)]
    path = str(tmp_path / "ledger.db")
    for round_ in range(3):
        for log in logs:
            log.user(f"Round {round_} of {log.name}")
            log.answer("Yes.")

        def keep() -> None:
            opened = open_ledger(path)
            run(opened, home)
            opened.close()

        threads = [Thread(target=keep) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    opened = open_ledger(path)
    sessions = opened.sessions(FOLDER)
    assert sorted(session.name for session in sessions) == [
        f"claude-code: Round 0 of s{number}" for number in range(6)
    ]
    assert {session.head.messages for session in sessions} == {6}
    opened.close()


def test_one_session_for_a_hook(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    ClaudeLog(home, "x", agent="a7", session="s1").user("Search.")
    ClaudeLog(home, "s2").user("Other")
    assert mirror_session(ledger, str(log.path), "claude-code").total("new") == 2
    assert mirror_session(ledger, str(log.path), "claude-code").unchanged == 2
    assert mirror_session(ledger, str(home / "none.jsonl"), "claude-code") == MirrorSummary((), 0, 0)
    check(ledger, (ONE, TALK), ("claude-code agent: Search.", "u:Search."))


# ---------------------------------------------------------------- hostile files


@pytest.mark.parametrize(
    "damage",
    [b"\0\0\0\0\n", b"not JSON\n", b'{"type": "user", "message"\n', b"\xff\xfe\x80\n", b"[" * 2_000 + b"\n"],
)
def test_a_damaged_line_is_reported_and_the_others_are_read(
    ledger: Ledger, home: Path, damage: bytes
) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    log.raw(damage)
    log.answer("There.")
    (file,) = run(ledger, home).files
    assert len(file.problems) == 1
    assert "1 line" in file.problems[0]
    check(ledger, (ONE, "u:Where? a:There."))


def test_an_unknown_record_is_no_problem(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    log.raw(b'{"type": "news", "parentUuid": 7}\n{"no": "type"}\n7\n')
    log.answer("There.")
    run(ledger, home)
    check(ledger, (ONE, "u:Where? a:There."))


def test_what_is_not_a_transcript_is_left(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.raw(b"hello\n")
    os.mkfifo(log.path.with_name("fifo.jsonl"))
    log.path.with_name("empty.jsonl").touch()
    log.path.with_name("folder.jsonl").mkdir()
    log.path.with_name("loop").symlink_to(log.path.parent)
    log.path.with_name("gone.jsonl").symlink_to("/nowhere")
    run(ledger, home)
    check(ledger)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_a_failure(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    log.path.chmod(0)
    (file,) = run(ledger, home).files
    assert file.failure == "it cannot be read: Permission denied"


@pytest.mark.parametrize("folder", ["shop", "", "/wo\0rk", "\ud800", 7])
def test_an_impossible_folder_is_the_users_home(
    ledger: Ledger, home: Path, monkeypatch: pytest.MonkeyPatch, folder: Any
) -> None:
    monkeypatch.setenv("HOME", str(home))
    log = ClaudeLog(home, "s1")
    log.put("user", message={"role": "user", "content": "Where?"}, cwd=folder)
    run(ledger, home)
    assert [session.workspace for session in ledger.sessions()] == [str(home.resolve())]


def test_an_error_in_nexus_is_a_failure_of_one_file(
    ledger: Ledger, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(conversation: Any, *_: Any) -> str:
        if conversation.id == "s1":
            raise ZeroDivisionError
        return str(conversation.id)

    monkeypatch.setattr(session_writer, "name_of", fails)
    for name in ("s1", "s2"):
        ClaudeLog(home, name).user("Where?")
    database = OpencodeDatabase(home)
    database.session("o1")
    database.message("o1", "user", "Who?")
    summary = run(ledger, home)
    assert [file.failure is not None for file in summary.files] == [True, False, False]
    check(ledger, ("s2", "u:Where?"), ("o1", "u:Who?"))
    monkeypatch.undo()
    assert run(ledger, home).total("new") == 1


def test_a_session_of_opencode_that_the_user_cleared_goes_on(ledger: Ledger, home: Path) -> None:
    database = OpencodeDatabase(home)
    database.session("o1")
    database.message("o1", "user", "One")
    run(ledger, home)
    ledger.clear(FOLDER, "opencode: One")
    database.message("o1", "assistant", "Two")
    run(ledger, home)
    check(ledger, ("opencode: One", ""), ("opencode: One (2)", "u:One a:Two"))


def test_a_broken_database_is_a_failure(ledger: Ledger, home: Path) -> None:
    path = home / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5_000)
    talk(ClaudeLog(home, "s1"))
    summary = run(ledger, home)
    assert [file.failure is not None for file in summary.files] == [False, True]
    check(ledger, (ONE, TALK))


# ---------------------------------------------------------------- large files


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of more than 8 KB are read in pieces of 2 KB."""
    monkeypatch.setattr(excerpts, "WHOLE", 8_000)
    monkeypatch.setattr(excerpts, "PIECE", 2_000)
    monkeypatch.setattr(reader, "BLOCK", 2_000)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("is_codex", [False, True])
def test_a_large_file_is_read_in_pieces(ledger: Ledger, home: Path, is_codex: bool) -> None:
    log: Any = CodexLog(home, "r1") if is_codex else ClaudeLog(home, "s1")
    expected = []

    def more(number: int) -> None:
        log.user(f"Question {number}")
        log.answer(f"Answer {number} " + "x" * 300)
        expected.append(f"u:Question {number} a:Answer {number} {'x' * 300}")

    for number in range(40):
        more(number)
    assert log.path.stat().st_size > 8_000
    run(ledger, home)
    name = "codex: Question 0" if is_codex else "claude-code: Question 0"
    check(ledger, (name, " ".join(expected)))
    more(40)
    assert totals(run(ledger, home))["messages"] == 2
    check(ledger, (name, " ".join(expected)))
    # the beginning of the file changes, and its end: nothing is written twice
    data = log.path.read_bytes()
    log.path.write_bytes(b"{}\n" + data)
    more(41)
    run(ledger, home)
    check(ledger, (name, " ".join(expected)))


@pytest.mark.usefixtures("small_pieces")
def test_a_turn_that_is_longer_than_a_piece(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    calls = [f"c{number}" for number in range(30)]
    log.answer(*map(use, calls))
    for call in calls:
        log.result(call, "x" * 700)
    log.answer("There.")
    run(ledger, home)
    (session,) = ledger.sessions(FOLDER)
    turns = list(ledger.turns(FOLDER, session.name))
    messages = [message for turn in turns for message in turn.messages]
    assert [call.id for message in messages for call in message.tool_calls] == calls
    assert sorted(message.tool_call_id or "" for message in messages if message.role == "tool") == sorted(
        calls
    )
    assert text_of(messages[-1]) == "There."


@pytest.mark.usefixtures("small_pieces")
def test_a_line_that_is_longer_than_a_piece(
    ledger: Ledger, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excerpts, "LONGEST_LINE", 50_000)
    log = ClaudeLog(home, "s1")
    log.user("Where?")
    log.answer("x" * 20_000)
    log.user("y" * 80_000)
    log.answer("There.", parent=None)
    (file,) = run(ledger, home).files
    assert len(file.problems) == 1
    assert words(ledger, ONE).startswith("u:Where? a:xxx")
    assert words(ledger, ONE).endswith("a:There.")


def test_an_interrupted_run_continues(
    ledger: Ledger, home: Path, small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ClaudeLog(home, "s1")
    for number in range(40):
        log.user(f"Question {number}")
        log.answer("x" * 300)
    write = MirrorTables.write
    count = 0

    def fails(self: Any, *values: Any) -> None:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        write(self, *values)

    monkeypatch.setattr(MirrorTables, "write", fails)
    with pytest.raises(KeyboardInterrupt):
        run(ledger, home)
    (session,) = ledger.sessions(FOLDER)
    assert 0 < session.head.messages < 80
    run(ledger, home)
    (session,) = ledger.sessions(FOLDER)
    assert session.head.messages == 80


def test_what_a_file_notes_survives_another_version(ledger: Ledger, home: Path) -> None:
    log = ClaudeLog(home, "s1")
    talk(log)
    run(ledger, home)
    (file,) = ledger.mirrors.files().values()
    other = msgspec.structs.replace(file, stamp=(1,), progress=json.dumps({"offset": "?"}))
    ledger.mirrors.write((), [other])
    assert totals(run(ledger, home)) == {}
    check(ledger, (ONE, TALK))
