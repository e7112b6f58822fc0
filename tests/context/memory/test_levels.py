"""The levels of memory: what is remembered of a session, of its past, and of the workspace."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.summary import create_summary_message, with_pins
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, Head, NewCompaction, Turn
from nexus_context.ledger.store import Ledger
from nexus_context.memory import working
from nexus_context.memory.levels import Levels
from nexus_context.memory.working import WorkingMemory
from support.ledgers import turn_of

FOLDER = "/home/a"


def user(text: str) -> Message:
    return Message("user", text)


def says(text: str) -> Message:
    return Message("assistant", text)


def runs(command: str, result: str, call: str = "1") -> list[Message]:
    """An assistant runs a command."""
    return [
        Message("assistant", None, (ToolCall(call, "bash", {"command": command}),)),
        Message("tool", result, tool_call_id=call, name="bash"),
    ]


def writes(path: str, call: str = "w") -> list[Message]:
    return [
        Message("assistant", None, (ToolCall(call, "write_file", {"path": path}),)),
        Message("tool", "ok", tool_call_id=call, name="write_file"),
    ]


def append(ledger: Ledger, session: str, *messages: Message, folder: str = FOLDER) -> None:
    ledger.append(folder, session, turn_of(*messages))


def test_levels_over_another_connection_know_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def begin(thread: str) -> WorkingMemory:
        begun.append(thread)
        return WorkingMemory(thread)

    monkeypatch.setattr("nexus_context.memory.levels.WorkingMemory", begin)
    path = str(tmp_path / "ledger.db")
    one, two = open_ledger(path), open_ledger(path)
    append(one, "a", user("No, never touch prod."), says("I will not."))
    levels = Levels(one)
    entries = levels.important(FOLDER, limit=5)
    assert entries
    one.close()
    other = levels.over(two)
    assert other.important(FOLDER, limit=5) == entries
    append(two, "a", user("No, always use tabs."), says("I will."))
    assert len(other.important(FOLDER, limit=5)) > len(entries)
    assert len(begun) == 1
    two.close()


def compact(ledger: Ledger, session: str, name: str, text: str) -> None:
    head = ledger.head(FOLDER, session) or Head("")
    summary = create_summary_message(text, datetime(2026, 11, 20), head.messages)
    made = NewCompaction(
        id=name, seq=head.seq, summary=Counted(summary, 1), counter="test", kept=(), receipt=None
    )
    ledger.compact(FOLDER, session, made)


def check(ledger: Ledger, level: str, expected: list[str], **given: Any) -> None:
    """What a level remembers: `session/turn: text`."""
    read = getattr(Levels(ledger), level)
    entries = read(FOLDER, **{"session": "main", "limit": 10} | given)
    assert [f"{each.session}/{each.seq}: {each.text}" for each in entries] == expected


# ---------------------------------------------------------------- L1


def test_the_newest_messages_without_results(ledger: Ledger) -> None:
    append(ledger, "main", user("[Session started: 2026-11-20 12:00 (local)]"), user("One"), says("Two"))
    append(ledger, "main", *runs("ls", "a.py"), says("There is a.py."))
    append(ledger, "other", user("Elsewhere"))
    call = 'assistant: [Calling bash({"command":"ls"})]'
    everything = ["main/1: user: One", "main/1: assistant: Two", f"main/2: {call}"]
    everything.append("main/2: assistant: There is a.py.")
    check(ledger, "recent", everything)
    check(ledger, "recent", everything[-2:], limit=2)
    check(ledger, "recent", [], limit=0)
    check(ledger, "recent", ["other/1: user: Elsewhere"], session=None)
    check(ledger, "recent", [], session="nobody")


def test_a_cleared_session_remembers_nothing(ledger: Ledger) -> None:
    append(ledger, "main", user("Never push to main."))
    levels = Levels(ledger)
    assert len(levels.important(FOLDER, "main", limit=5)) == 1
    ledger.clear(FOLDER, "main")
    for level in ("recent", "important", "summaries"):
        check(ledger, level, [])
    assert levels.important(FOLDER, "main", limit=5) == []  # nor does one that had read it


# ---------------------------------------------------------------- L2


def test_what_matters_of_a_session(ledger: Ledger) -> None:
    append(ledger, "main", user("Hi"), says("Hello, how are you today?"))
    append(ledger, "main", user("Never push to main."), says("Understood."))
    append(ledger, "main", user("Why is it slow?"), *writes("src/a.py"))
    decided = "We decided to use a cache because the disk is slow."
    append(ledger, "main", says(decided))
    check(
        ledger,
        "important",
        [
            "main/2: user: Never push to main.",
            f"main/3: user: Why is it slow?\nassistant: {decided}\n`src/a.py`: changed",
        ],
    )
    check(ledger, "important", ["main/2: user: Never push to main."], limit=1)


def test_an_error_and_its_mend(ledger: Ledger) -> None:
    append(ledger, "main", user("Test it"), *runs("pytest", "ValueError: bad token\nexit code: 1"))
    check(ledger, "important", ["main/1: user: Test it\nValueError: bad token (in `pytest`)"])
    append(ledger, "main", user("And now?"))
    append(ledger, "main", *runs("pytest", "3 passed", "2"))
    check(
        ledger,
        "important",
        [
            "main/1: user: Test it\nValueError: bad token (in `pytest`; resolved since)",
            "main/2: `pytest`: 3 passed",
        ],
    )


def test_what_is_pinned_matters_most(ledger: Ledger) -> None:
    append(ledger, "main", user("Never push."))
    append(ledger, "main", says("."), Message("user", "The key is 7.", meta={"pinned": True}))
    compact(ledger, "main", "c1", with_pins("All of it.", ["Port 8080"]))
    check(ledger, "important", ["main/2: user: The key is 7.", "main/3: Port 8080"], limit=2)


def test_without_a_session_the_latest_are_asked(ledger: Ledger) -> None:
    append(ledger, "one", user("Never push to main."))
    append(ledger, "two", user("Always test."))
    append(ledger, "three", user("Always lint."), folder="/home/b")
    check(
        ledger,
        "important",
        ["two/1: user: Always test.", "one/1: user: Never push to main."],
        session=None,
    )


# ---------------------------------------------------------------- L3


def test_summaries_of_compactions(ledger: Ledger) -> None:
    append(ledger, "main", user("Never push to main."))
    compact(ledger, "main", "c1", "First.")
    append(ledger, "main", user("More"))
    compact(ledger, "main", "c2", "Second.")
    check(ledger, "summaries", ["main/2: First.", "main/4: Second."])
    check(ledger, "summaries", ["main/4: Second."], limit=1)
    ledger.undo(FOLDER, "main")
    check(ledger, "summaries", ["main/2: First."])


def test_a_session_without_compactions_has_a_summary_when_it_is_asked_for(ledger: Ledger) -> None:
    append(ledger, "main", user("Never push to main."), *(says(f"{number}.") for number in range(3)))
    check(ledger, "summaries", [])  # nothing but the newest messages
    append(ledger, "main", *(says(f"{number}.") for number in range(3)))
    (entry,) = Levels(ledger).summaries(FOLDER, "main", limit=5)
    assert entry.text == snapshot("""\
Extractive: sentences picked from the conversation; no model wrote this.

## Goal
- Never push to main.\
""")


# ---------------------------------------------------------------- L4


def test_all_sessions_are_searched(ledger: Ledger) -> None:
    append(ledger, "main", user("Where is helm?"))
    append(ledger, "other", user("How do we deploy?"), says("We deploy with helm."))
    append(ledger, "away", user("We deploy with helm, too."), folder="/home/b")
    levels = Levels(ledger)
    found = levels.across(FOLDER, "deploy helm", limit=5)
    assert [(hit.session, hit.text) for hit in found] == [("other", "assistant: We «deploy» with «helm».")]
    assert {hit.session for hit in levels.across(FOLDER, "helm", limit=5)} == {"main", "other"}
    assert [hit.session for hit in levels.across(FOLDER, "helm", limit=5, only="main")] == ["main"]
    assert levels.across(FOLDER, "helm", limit=0) == []
    append(ledger, "main", *runs("kubectl", "helm helm"))
    found = levels.across(FOLDER, "helm", limit=5)
    assert [hit.text.partition(":")[0] for hit in found].index("tool") == 2
    assert len(levels.across(FOLDER, "helm", limit=5, results=False)) == 2
    # nobody said all of it: the messages that have most of its words
    (best, *_) = levels.across(FOLDER, "Please tell me how to deploy with helm in Frankfurt", limit=5)
    assert (best.session, "helm" in best.text) == ("other", True)


@pytest.mark.parametrize(
    ("query", "found"),
    [("fix-3", []), ("what became of fix-3?", []), ("what became of fix-11?", ["main"]), ("fix", ["main"])],
)
def test_an_identifier_is_found_whole(ledger: Ledger, query: str, found: list[str]) -> None:
    append(ledger, "main", user("Start fix-11 of the release."), says("Done."))
    assert [hit.session for hit in Levels(ledger).across(FOLDER, query, limit=5)] == found


def test_without_a_query_the_latest_summaries_of_the_others(ledger: Ledger) -> None:
    for name in ("one", "two", "main"):
        append(ledger, name, user(f"Never push to {name}."))
        compact(ledger, name, name, f"About {name}.")
    entries = Levels(ledger).across(FOLDER, limit=5, besides="main")
    assert [(each.session, each.text) for each in entries] == [("two", "About two."), ("one", "About one.")]


# ---------------------------------------------------------------- reading


class Recorded:
    """The turns of a thread, and the number of those that were read."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.given = list(turns)
        self.shown = len(turns)
        self.read = 0

    def head(self, workspace: str, session: str) -> Head:
        return Head("t", seq=self.shown)

    def turns(self, workspace: str, session: str, *, last: int) -> Iterator[Turn]:
        self.read += min(last, self.shown)
        yield from self.given[: self.shown][-last:]


def turns_of(messages: Sequence[Message], sizes: Sequence[int]) -> list[Turn]:
    turns: list[Turn] = []
    place = 0
    for size in [*sizes, len(messages)]:
        if place < len(messages):
            some = tuple(messages[place : place + size])
            seq = len(turns) + 1
            turns.append(Turn(id=str(seq), seq=seq, type="query", created="", tokens=0, messages=some))
            place += size
    return turns


STEPS = st.lists(st.sampled_from(["ask", "ask", "say", "fail", "pass", "write"]), min_size=20, max_size=60)


def made(steps: Sequence[str]) -> list[Message]:
    """A conversation in which each step has its own words."""
    messages: list[Message] = []
    for number, step in enumerate(steps):
        call, command = str(number), f"test {number % 3}"
        messages += {
            "ask": [user(f"Never do {number}.")],
            "say": [says(f"We decided {number} because of it.")],
            "fail": runs(command, f"ValueError: {number}", call),
            "pass": runs(command, f"{number} passed", call),
            "write": writes(f"src/{number}.py", call),
        }[step]
    return messages


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(STEPS, st.lists(st.integers(1, 3), min_size=40, max_size=90), st.lists(st.integers(1, 9), max_size=20))
def test_what_is_remembered_does_not_depend_on_when_it_was_read(
    monkeypatch: pytest.MonkeyPatch, steps: list[str], sizes: list[int], reads: list[int]
) -> None:
    monkeypatch.setattr(working, "SCANNED", 12)
    monkeypatch.setattr(working, "TURNS_TOGETHER", 4)
    ledger = Recorded(turns_of(made(steps), sizes))
    total, ledger.shown = ledger.shown, 0
    followed = WorkingMemory("t")
    for count in [*reads, total]:
        ledger.shown = min(ledger.shown + count, total)
        assert followed.follow(ledger, "", "", ledger.head("", ""))  # type: ignore[arg-type]
        followed.entries("s", 3)
    fresh = WorkingMemory("t")
    fresh.follow(ledger, "", "", ledger.head("", ""))  # type: ignore[arg-type]
    assert followed.entries("s", 100) == fresh.entries("s", 100)


def test_a_session_that_goes_on_is_not_read_again() -> None:
    turns = turns_of([user(f"Never do {number}.") for number in range(2_000)], [1] * 2_000)
    ledger = Recorded(turns)
    ledger.shown = 1_990
    followed = WorkingMemory("t")
    followed.follow(ledger, "", "", ledger.head("", ""))  # type: ignore[arg-type]
    assert ledger.read <= working.SCANNED + working.TURNS_TOGETHER
    ledger.read, ledger.shown = 0, 2_000
    followed.follow(ledger, "", "", ledger.head("", ""))  # type: ignore[arg-type]
    assert ledger.read == 11, "the new turns, and the last one, which may have been extended"


def test_what_is_appended_while_it_is_read_is_not_missed() -> None:
    ledger = Recorded(turns_of([user(f"Never do {number}.") for number in range(9)], [1] * 9))
    followed = WorkingMemory("t")
    followed.follow(ledger, "", "", Head("t", seq=4))  # type: ignore[arg-type]
    assert len(followed.entries("s", 100)) == 1  # the user's messages follow one another: one exchange
    assert "Never do 8." in followed.entries("s", 100)[0].text


def test_messages_are_told_briefly(ledger: Ledger) -> None:
    append(ledger, "main", user("Never " + "do it " * 2_000))
    (entry,) = Levels(ledger).recent(FOLDER, "main", limit=1)
    assert len(entry.text) < 2_200
    assert "characters left out" in entry.text
    assert msgspec.json.encode(Levels(ledger).important(FOLDER, "main", limit=1))


def test_several_threads_read_while_one_appends(ledger: Ledger) -> None:
    levels = Levels(ledger)
    append(ledger, "main", user("Never do 0."))
    with ThreadPoolExecutor(4) as pool:
        reads = [
            pool.submit(read, FOLDER, "main", limit=9)
            for _ in range(12)
            for read in (levels.recent, levels.important, levels.summaries)
        ]
        for number in range(1, 20):
            append(ledger, "main", says("Understood."), user(f"Never do {number}."))
        assert all(read.result() is not None for read in reads)
    last = levels.important(FOLDER, "main", limit=1)
    assert last == Levels(ledger).important(FOLDER, "main", limit=1)
    assert last[0].text == "user: Never do 19."


def test_nothing_is_kept_of_a_deleted_session(ledger: Ledger) -> None:
    levels = Levels(ledger)
    append(ledger, "main", user("Never push to main."))
    assert levels.important(FOLDER, "main", limit=1)
    ledger.delete(FOLDER, "main")
    for read in (levels.recent, levels.important, levels.summaries):
        assert read(FOLDER, "main", limit=5) == []
    assert levels.across(FOLDER, "push", limit=5) == []
    assert "push" not in repr(vars(levels))


def test_assembling_loads_no_database() -> None:
    code = "import sys, nexus_context.turn, nexus_context.memory.sources, nexus_context.memory.queries; "
    code += "print([m for m in ('apsw', 'platformdirs', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
