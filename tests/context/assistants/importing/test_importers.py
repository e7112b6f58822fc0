"""Files of other programs as sessions: how they are split, named and counted, and never duplicated."""

import gzip
import json
from typing import Any

import msgspec
import pytest

from nexus_context.assistants.importing import importers, jsonl
from nexus_context.assistants.importing.importers import FileSession, Imported, Importer
from nexus_context.conversation.agent_result import ProviderUsage, TurnOutcome
from nexus_context.conversation.message import Message
from nexus_context.ledger.records import Counted, NewTurn, Turn
from nexus_context.ledger.store import Ledger
from nexus_context.tokens import counter_for
from support import program_files
from support.json_lines import json_lines
from support.ledgers import anchor, turn_of

HERE = "/work/here"
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "Found."},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Two?"},
    {"role": "assistant", "content": "No."},
]
CODE: list[dict[str, Any]] = [
    {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "timestamp": "2026-03-01T10:00:00+02:00",
        "message": {"role": "user", "content": "Fix it."},
    },
    {
        "type": "assistant",
        "uuid": "a1",
        "parentUuid": "u1",
        "timestamp": "2026-03-01T10:00:05+02:00",
        "message": {
            "id": "m1",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "Done."}],
        },
    },
]


def lines(records: list[Any]) -> bytes:
    return json_lines(records).encode()


def put(ledger: Ledger, data: bytes, path: str = "/x/chat.jsonl") -> list[Imported]:
    importer = Importer(ledger, HERE, counter_for)
    return [importer.add(found) for found in importers.read(data, path).sessions]


def check(ledger: Ledger, session: str, expected: list[list[str]]) -> None:
    """The roles of each turn."""
    assert [[one.role for one in turn.messages] for turn in ledger.turns(HERE, session)] == expected


TURNS = [["user", "assistant", "tool", "assistant"], ["user", "assistant"]]


def test_a_turn_goes_from_the_user_to_the_user(ledger: Ledger) -> None:
    assert put(ledger, lines(CHAT)) == [Imported("chat", "new", 2, 6)]
    check(ledger, "chat", TURNS)
    first, second = ledger.turns(HERE, "chat")
    assert first.context == {"system": "Be brief."}
    assert first.event == {"type": "import", "file": "chat.jsonl"}
    assert (second.context, second.event) == (None, None)


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ("a u a", [["assistant", "user", "assistant"]]),
        ("u u a", [["user"], ["user", "assistant"]]),
        ("a a", [["assistant", "assistant"]]),
    ],
)
def test_what_stands_before_the_first_user_belongs_to_its_turn(
    ledger: Ledger, roles: str, expected: list[list[str]]
) -> None:
    names = {"a": "assistant", "u": "user"}
    put(ledger, lines([{"role": names[role], "content": "x"} for role in roles.split()]))
    check(ledger, "chat", expected)


def test_a_session_of_claude_code(ledger: Ledger) -> None:
    assert put(ledger, lines(CODE), "/x/3f2a.jsonl") == [Imported("3f2a", "new", 1, 2)]
    (turn,) = ledger.turns(HERE, "3f2a")
    assert (turn.model, turn.created) == ("claude-sonnet-4-5", "2026-03-01T08:00:00.000Z")
    assert turn.counter == counter_for("claude-sonnet-4-5").name
    assert turn.tokens == sum(turn.counts) > 0


def test_each_record_of_a_benchmark_is_a_session(ledger: Ledger) -> None:
    records = [
        {"task_id": task, "trial": 0, "traj": [*CHAT, {"role": "user", "content": str(task)}]}
        for task in (1, 2)
    ]
    data = gzip.compress(json.dumps(records).encode())
    made = put(ledger, data, "/x/airline.json.gz")
    assert [one.session for one in made] == ["airline, task 1, trial 0", "airline, task 2, trial 0"]
    assert [one.outcome for one in put(ledger, data, "/x/airline.json.gz")] == ["known", "known"]


def test_what_is_there_is_not_imported_again_whatever_it_is_called(ledger: Ledger) -> None:
    put(ledger, lines(CHAT))
    ledger.rename(HERE, "chat", "mine")
    assert put(ledger, gzip.compress(lines(CHAT)), "/y/chat.json.gz") == [Imported("mine", "known")]
    turn = NewTurn(messages=(), counter="test")
    ledger.append(HERE, "mine", turn)
    assert put(ledger, lines(CHAT)) == [Imported("mine", "known")]
    assert [one.name for one in ledger.sessions(HERE)] == ["mine"]


@pytest.mark.parametrize("first", range(2, 7))
def test_what_went_on_is_continued(ledger: Ledger, first: int) -> None:
    put(ledger, lines(CHAT[:first]))
    (made,) = put(ledger, lines(CHAT))
    assert (made.session, made.outcome, made.messages) == ("chat", "continued", 7 - first)
    said = [one for turn in ledger.turns(HERE, "chat") for one in turn.messages]
    (found,) = importers.read(lines(CHAT), "/x/chat.jsonl").sessions
    assert said == [one for turn in found.turns for one in turn.messages]
    assert put(ledger, lines(CHAT)) == [Imported("chat", "known")]


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        (CHAT[:4], CHAT, "/x/other.jsonl"),
        (CHAT, CHAT[:4], "/x/other.jsonl"),
        (CHAT, CHAT, "/x/other.jsonl"),
        (CHAT[1:4], CHAT, "/x/chat.jsonl"),  # another system prompt
        ([{"model": "a", "messages": CHAT[:4]}], [{"model": "b", "messages": CHAT}], "/x/chat.jsonl"),
        ([{"id": "a", "messages": CHAT[:4]}], [{"id": "b", "messages": CHAT}], "/x/chat.jsonl"),
        (CHAT[:4], [*CHAT, {"role": "nobody", "content": 1}], "/x/chat.jsonl"),  # with an error
        (CHAT[:4], CHAT, importers.STANDARD_INPUT),
    ],
)
def test_what_only_begins_alike_is_another_session(
    ledger: Ledger, before: list[Any], after: list[Any], path: str
) -> None:
    put(
        ledger,
        lines(before),
        importers.STANDARD_INPUT if path == importers.STANDARD_INPUT else "/x/chat.jsonl",
    )
    (made,) = put(ledger, lines(after), path)
    assert made.outcome == "new"
    assert len(ledger.sessions(HERE)) == 2


def claude(session: str, count: int) -> bytes:
    """The first records of a session of Claude Code."""
    later: dict[str, Any] = {
        **CODE[0],
        "uuid": "u2",
        "parentUuid": "a1",
        "message": {"role": "user", "content": "More."},
    }
    return lines([{**record, "sessionId": session} for record in [*CODE, later][:count]])


def test_a_session_of_claude_code_is_known_by_its_id(ledger: Ledger) -> None:
    put(ledger, claude("one", 2), "/x/a.jsonl")
    assert put(ledger, claude("two", 3), "/x/a.jsonl") == [Imported("a (2)", "new", 2, 3)]
    assert put(ledger, claude("one", 2), "/y/b.jsonl") == [Imported("a", "known")]
    assert put(ledger, gzip.compress(claude("one", 3)), "/y/b.jsonl") == [Imported("a", "continued", 1, 1)]
    assert put(ledger, claude("one", 2), "/y/b.jsonl") == [Imported("a", "known")]


def test_programs_are_imported_and_known_again(ledger: Ledger) -> None:
    for name, data in program_files.PROGRAMS.items():
        imported = put(ledger, data, f"/x/{name}.json")
        assert [one.outcome for one in imported] == ["new"] * len(imported), name
        assert [one.outcome for one in put(ledger, data, f"/y/{name}.json")] == ["known"] * len(imported), (
            name
        )
    names = {one.name for one in ledger.sessions(HERE)}
    assert {"claude-code", "claude-code, agent a7", "claude-web, Files", "opencode, Files"} <= names


def test_what_the_provider_said_of_the_last_answer_is_the_outcome_of_its_turn(ledger: Ledger) -> None:
    put(ledger, program_files.PROGRAMS["opencode"], "/x/opencode.json")
    outcomes = [turn.outcome for turn in ledger.turns(HERE, "opencode, Files")]
    assert outcomes == [
        TurnOutcome(ProviderUsage(10, 5, 900, 100), "tool-calls"),
        TurnOutcome(stop_reason="stop"),
    ]


def test_sub_agents_are_sessions_of_their_own(ledger: Ledger) -> None:
    first = program_files.jsonl(program_files.CLAUDE[:5])
    assert put(ledger, first, "/x/3f2a.jsonl") == [
        Imported("3f2a", "new", 2, 3),
        Imported("3f2a, agent a7", "new", 1, 1),
    ]
    check(ledger, "3f2a, agent a7", [["user"]])
    event = next(iter(ledger.turns(HERE, "3f2a, agent a7"))).event
    assert event == {"type": "import", "file": "3f2a.jsonl", "id": "s/a7", "conversation": "agent a7"}


def test_the_same_from_standard_input_is_there_already(ledger: Ledger) -> None:
    put(ledger, lines(CHAT), importers.STANDARD_INPUT)
    assert [one.outcome for one in put(ledger, lines(CHAT), importers.STANDARD_INPUT)] == ["known"]


def test_an_export_of_another_folder_does_not_continue_a_session_of_its_name(ledger: Ledger) -> None:
    said = turn_of(Message("user", "Hello"))
    for folder, created in ((HERE, "2026-01-01T00:00:00Z"), ("/work/there", "2026-01-02T00:00:00Z")):
        ledger.append(folder, "main", msgspec.structs.replace(said, created=created))
    ledger.append("/work/there", "main", said)
    text = "".join(jsonl.lines("main", ledger.turns("/work/there", "main"))).encode()
    assert put(ledger, text) == [Imported("main (2)", "new", 2, 2)]
    ledger.append("/work/there", "main", said)
    text = "".join(jsonl.lines("main (2)", ledger.turns("/work/there", "main"))).encode()
    assert put(ledger, text) == [Imported("main (2)", "continued", 1, 1)]


def test_a_fork_is_not_continued(ledger: Ledger) -> None:
    put(ledger, lines(CHAT))
    first = next(iter(ledger.turns(HERE, "chat")))
    ledger.fork(HERE, "chat", "other way", turn=first.id)
    assert put(ledger, lines(CHAT)) == [Imported("chat", "known")]
    longer = [*CHAT, {"role": "user", "content": "Three?"}]
    assert put(ledger, lines(longer)) == [Imported("chat", "continued", 1, 1)]
    check(ledger, "other way", TURNS[:1])


def test_another_conversation_gets_a_free_name(ledger: Ledger) -> None:
    put(ledger, lines(CHAT))
    assert put(ledger, lines(CHAT[3:]))[0].session == "chat (2)"
    assert put(ledger, lines(CHAT[5:]))[0].session == "chat (3)"


def test_an_export_of_a_fork_comes_back_though_it_is_part_of_another(ledger: Ledger) -> None:
    put(ledger, lines(CHAT))
    ledger.fork(HERE, "chat", "fork", turn=next(iter(ledger.turns(HERE, "chat"))).id)
    text = "".join(jsonl.lines("fork", ledger.turns(HERE, "fork"))).encode()
    assert put(ledger, text)[0].outcome == "known"
    ledger.delete(HERE, "fork")
    assert put(ledger, gzip.compress(text), "/x/fork.jsonl.gz") == [Imported("fork", "new", 1, 4)]


def test_what_cannot_be_read_is_told_and_the_rest_is_imported(ledger: Ledger) -> None:
    data = lines(CHAT[:2]) + b"{broken\n" + lines(CHAT[4:])
    contents = importers.read(data, "/x/chat.jsonl")
    assert [data.decode()[slice(*one.span)][:1] for one in contents.problems] != []
    assert [len(one.turns) for one in contents.sessions] == [2]


@pytest.mark.parametrize("data", [b"", b"hello", b"\x1f\x8bbroken", b"\xff\xfe\x00", b"[]", b"null", b"{}"])
def test_whatever_a_file_is_reading_it_never_raises(data: bytes) -> None:
    contents = importers.read(data, "/x/file")
    assert contents.sessions == ()
    assert contents.problems


def test_names_are_of_one_line(ledger: Ledger) -> None:
    record = {"custom_id": "a\n\x1b[31m" + "b" * 500, "body": {"messages": CHAT}}
    (made,) = put(ledger, lines([record]))
    assert made.session.isprintable() and len(made.session) == importers.LONGEST_NAME


def test_counts_given_by_an_export_stay(ledger: Ledger) -> None:
    (found,) = importers.read(lines(CHAT), "/x/chat.jsonl").sessions
    message = found.turns[0].messages[0]
    ledger.append(HERE, "a", NewTurn(messages=(Counted(message, 12_345),), counter="mine"))
    text = "".join(jsonl.lines("b", ledger.turns(HERE, "a"))).encode()
    ledger.delete(HERE, "a")
    put(ledger, text)
    (turn,) = ledger.turns(HERE, "b")
    assert (turn.counter, turn.counts) == ("mine", (12_345,))


def session_with_usages(name: str, percent: int) -> FileSession:
    """A conversation of another program, whose requests had 15,000 tokens besides and counts off by this."""
    counter, turns, tokens = counter_for("claude-sonnet-4"), [], 0
    for number in range(8):
        question = Message("user", f"{name} {number}: " + "what is in the log? " * 100)
        answer = Message("assistant", "Nothing. " * 20)
        sizes = [counter.count_messages([one]) for one in (question, answer)]
        usage = ProviderUsage(15_000 + (tokens + sizes[0]) * percent // 100, 40)
        turns.append(
            Turn(
                id="",
                seq=number + 1,
                type="query",
                created="",
                tokens=0,
                messages=(question, answer),
                model="claude-sonnet-4",
                outcome=TurnOutcome(usage),
                event=None if number else {"type": "import", "file": f"{name}.jsonl"},
            )
        )
        tokens += sum(sizes)
    return FileSession(name, tuple(turns))


def test_usages_of_imported_conversations_correct_our_counts(ledger: Ledger) -> None:
    importer = Importer(ledger, HERE, counter_for)
    for number in range(8):
        assert ledger.usage.correction("claude").factor is None
        session = session_with_usages(f"s{number}", 112)
        assert importer.add(session) == Imported(f"s{number}", "new", 8, 16)
        assert importer.add(session).outcome == "known"  # and counts once
    correction = ledger.usage.correction("claude")
    assert (correction.factor, correction.error) == (1120, 107)
    assert anchor(ledger, HERE, "s0") is None  # its requests had other prompts
    (*_, last) = ledger.turns(HERE, "s0")
    assert last.outcome is not None
    assert last.outcome.usage is not None
