"""The contract of a ledger of any engine: turns, histories, compactions, forks, keys, direct messages."""

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.half_pairs import whole_message
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.ledger.errors import HeadMovedError, LedgerError
from nexus_context.ledger.records import Counted, DirectMessage, NewTurn, StoredReceipt, Turn
from nexus_context.ledger.rows import json_text, message_of, row_of, value_of
from nexus_context.ledger.store import Ledger
from support.conversations import MESSAGES, nested
from support.ledgers import FOLDER, append, compaction, history, new_ledger, turn, words


def check(ledger: Ledger, steps: str, expected: str, session: str = "main", **limits: Any) -> None:
    """Steps such as `u1 a1 | !s1 0-1 | undo s1`: turns, compactions with what they keep, undos."""
    play(ledger, steps, session)
    assert history(ledger, session, **limits) == expected


def play(ledger: Ledger, steps: str, session: str = "main") -> None:
    for step in steps.split(" | "):
        name, *rest = step.split()
        if name == "undo":
            ledger.undo(FOLDER, session, rest[0] if rest else None)
        elif name.startswith("!"):
            head = ledger.head(FOLDER, session)
            kept = [(int(low), int(high)) for low, high in (each.split("-") for each in rest)]
            ledger.compact(FOLDER, session, compaction(name[1:], head.seq if head else 0, *kept))
        else:
            append(ledger, step, session)


def refused(code: str, *call: Any, **about: Any) -> None:
    with pytest.raises(LedgerError) as caught:
        call[0](*call[1:], **about)
    assert caught.value.code == code


# ---------------------------------------------------------------- receipts


@pytest.mark.parametrize(
    ("steps", "asked", "expected"),
    [
        ("u1 a1 | !s1", None, ("s1", True)),
        ("u1 a1 | !s1 | u2 | !s2", None, ("s2", True)),
        ("u1 a1 | !s1 | u2 | !s2", "s1", ("s1", True)),  # the later one stands on it
        ("u1 a1 | !s1 | u2 | !s2 | undo", "s2", ("s2", False)),
        ("u1 a1 | !s1 | u2 | !s2 | undo", "s1", ("s1", True)),
        ("u1 a1 | !s1 | u2 | !s2 | undo s1", "s1", ("s1", False)),
        ("u1 a1 | !s1 | undo | !s2", None, ("s2", True)),
        ("u1 a1 | !s1 | undo", None, ("s1", False)),
    ],
)
def test_the_receipt_of_a_compaction(
    ledger: Ledger, steps: str, asked: str | None, expected: tuple[str, bool]
) -> None:
    play(ledger, steps)
    kept = ledger.pages.receipt(FOLDER, "main", asked)
    assert (kept.session, kept.receipt, kept.in_force) == ("main", {"of": expected[0]}, expected[1])


def test_a_receipt_is_found_by_its_id_whatever_became_of_the_session(ledger: Ledger) -> None:
    play(ledger, "u1 a1 | !s1 | u2")
    ledger.fork(FOLDER, "main", "fork")
    ledger.undo(FOLDER, "main")
    ledger.rename(FOLDER, "main", "plan")
    assert ledger.pages.receipt(FOLDER, "main", "s1") == StoredReceipt("plan", {"of": "s1"}, in_force=False)
    assert ledger.pages.receipt(FOLDER, "fork", "s1") == StoredReceipt("fork", {"of": "s1"}, in_force=True)
    ledger.delete(FOLDER, "plan")
    assert ledger.pages.receipt(FOLDER, "fork", "s1") == StoredReceipt("fork", {"of": "s1"}, in_force=True)
    refused("unknown-compaction", ledger.pages.receipt, "/work/other", "main", "s1")


# ---------------------------------------------------------------- histories


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("u1 a1 | u2 a2", "u1 a1 u2 a2"),
        ("u1 a1 | u2 | !s1", "s1"),
        ("u1 a1 | !s1 | u2 a2", "s1 u2 a2"),
        ("u1 a1 u2 a2 | !s1 0-1 3-4 | u3", "s1 u1 a2 u3"),
        ("u1 a1 | !s1 1-2 | u2 | !s2 | u3", "s2 u3"),
        ("u1 a1 | !s1 1-2 | u2 | !s2 2-3 | u3", "s2 s1 u3"),  # a summary stays only if it is kept
        ("u1 a1 | !s1 | u2 | undo", "u1 a1 u2"),
        ("u1 a1 | !s1 | u2 | !s2 | u3 | undo", "s1 u2 u3"),
        ("u1 a1 | !s1 | u2 | !s2 | u3 | undo s1", "u1 a1 u2 u3"),
        ("u1 a1 | !s1 | u2 | !s2 | undo s2 | !s3 | u3", "s3 u3"),
        ("u1 a1 | !s1 | u2 | !s2 | undo s2 | !s3 | undo", "s1 u2"),
        ("u1 | !s1 | !s2 | undo | undo | u2", "u1 u2"),
    ],
)
def test_the_history_is_what_compactions_leave(ledger: Ledger, steps: str, expected: str) -> None:
    check(ledger, steps, expected)


@pytest.mark.parametrize(
    ("steps", "tokens", "expected"),
    [
        ("u1 a1 | u2 a2 | u3 a3", 20, "u1 …3/30… u3 a3"),
        ("u1 a1 | u2 a2 | u3 a3", 21, "u1 …1/10… u2 a2 u3 a3"),  # whole turns
        ("u1 a1 | u2 a2 | u3 a3", 1_000, "u1 a1 u2 a2 u3 a3"),
        ("u1 a1 | u2 a2 | u3 a3", 0, "u1 …5/50…"),
        ("s1 u1 u2 | u3 a3 | u4:7 a4:9 | u5", 10, "s1 u1 u2 u3 …3/26… u5"),
        ("u1 u2 | u3 | u4", 10, "u1 u2 u3 u4"),  # nobody has answered yet
        ("u1 a1 | u2 a2 | !s1 1-2 | u3 a3 | u4 a4", 10, "s1 a1 …2/20… u4 a4"),
        ("u1 a1 | !s1 | u2 a2 | undo | u3 | u4", 15, "u1 …3/30… u3 u4"),  # no summary in the gap
        ("u1 a1 | u2 a2 a3 a4 a5 a6", 15, "u1 …4/40… a4 a5 a6"),  # a very long turn
        ("u1:9000 u2 | u3 | u4", 10, "u1 …2/20… u4"),  # a very long beginning
    ],
)
def test_a_limited_history_has_both_ends(ledger: Ledger, steps: str, tokens: int, expected: str) -> None:
    check(ledger, steps, expected, tokens=tokens)


def test_what_came_since_is_read_by_itself(ledger: Ledger) -> None:
    append(ledger, "u1 a1")
    head = ledger.head(FOLDER, "main")
    assert head is not None
    assert ledger.since(FOLDER, "main", head) == ()
    append(ledger, "u2 a2")
    append(ledger, "u3")
    assert words(ledger.since(FOLDER, "main", head)) == "u2 a2 u3"
    ledger.fork(FOLDER, "main", "idea")
    assert ledger.since(FOLDER, "idea", head) is None
    ledger.compact(FOLDER, "main", compaction("s1", 3))
    assert ledger.since(FOLDER, "main", head) is None
    ledger.clear(FOLDER, "main")
    assert ledger.since(FOLDER, "main", head) is None
    assert ledger.since(FOLDER, "nothing", head) is None


@pytest.mark.parametrize(
    ("before", "kept", "since", "expected"),
    [
        ("u1 a1", (), "u2 | a2", "s u2 a2"),
        ("u1 a1 u2", ((1, 3),), "a2", "s a1 u2 a2"),
        ("u1 a1 | u2", ((0, 1),), "a2 | u3", "s u1 a2 u3"),
        ("u1 a1 | !s1 1-2 | u2", ((2, 3), (3, 4)), "a2", "s s1 u2 a2"),
        ("u1", ((0, 1),), "", "s u1"),
        ("u1 | a1 | fork", ((0, 1),), "u2", "s u1 u2"),
    ],
)
def test_what_was_appended_since_a_compaction_was_planned_is_kept(
    ledger: Ledger, before: str, kept: Any, since: str, expected: str
) -> None:
    play(ledger, before.removesuffix(" | fork"))
    name = ledger.fork(FOLDER, "main", "idea").name if before.endswith("fork") else "main"
    head = ledger.head(FOLDER, name)
    assert head is not None
    if since:
        play(ledger, since, name)
    asked = msgspec.structs.replace(compaction("s", head.seq, *kept), thread=head.thread)
    done = ledger.compact(FOLDER, name, asked)
    assert history(ledger, name) == expected
    assert done.before.seq == head.seq + (since.count("|") + 1 if since else 0)
    append(ledger, "u9", name)
    assert history(ledger, name) == f"{expected} u9"
    assert history(ledger, name, tokens=1).split()[-1] == "u9"
    ledger.undo(FOLDER, name)
    assert "s " not in history(ledger, name) + " "


def test_a_compaction_of_a_thread_that_is_another_by_now_is_refused(ledger: Ledger) -> None:
    thread = append(ledger, "u1 a1").head.thread
    append(ledger, "u2")
    with pytest.raises(HeadMovedError):
        ledger.compact(FOLDER, "main", compaction("s1", 3))
    done = ledger.compact(FOLDER, "main", compaction("s1", 2))
    assert msgspec.structs.replace(done, repeated=True) == ledger.compact(FOLDER, "main", compaction("s1", 2))
    append(ledger, "u3")
    for late in ("s1", "s2"):  # planned before there was a compaction
        with pytest.raises(HeadMovedError):
            ledger.compact(FOLDER, "main", compaction(late, 2))
    ledger.undo(FOLDER, "main")
    with pytest.raises(HeadMovedError):
        ledger.compact(FOLDER, "main", compaction("s2", 4))
    ledger.clear(FOLDER, "main")
    append(ledger, "u1 a1")
    other = msgspec.structs.replace(compaction("s2", 1), thread=thread)
    with pytest.raises(HeadMovedError):
        ledger.compact(FOLDER, "main", other)
    assert history(ledger) == "u1 a1"


# ---------------------------------------------------------------- keys and parents


def test_the_same_key_appends_once(ledger: Ledger) -> None:
    first = append(ledger, "u1 a1", key="k")
    append(ledger, "u2")
    again = append(ledger, "u1 a1", key="k")
    assert again == msgspec.structs.replace(first, repeated=True)
    assert history(ledger) == "u1 a1 u2"
    append(ledger, "u1 a1", "other", key="k")
    assert history(ledger, "other") == "u1 a1"
    ledger.clear(FOLDER, "main")
    assert not append(ledger, "u1 a1", key="k").repeated


def test_a_turn_behind_one_that_is_not_the_last_goes_to_a_fork(ledger: Ledger) -> None:
    one = append(ledger, "u1 a1")
    append(ledger, "u2", parent=one.turn)
    forked = append(ledger, "u3", parent=one.turn, key="k")
    assert (forked.forked, forked.session, forked.before.seq) == (True, "main (2)", 1)
    assert (history(ledger), history(ledger, "main (2)")) == ("u1 a1 u2", "u1 a1 u3")
    assert append(ledger, "u3", parent=one.turn, key="k") == msgspec.structs.replace(forked, repeated=True)
    assert append(ledger, "u4", "main (2)", parent=one.turn).session == "main (3)"
    assert append(ledger, "u5", parent=None).session == "main (4)"
    assert history(ledger, "main (4)") == "u5"
    found = ledger.find(FOLDER, "main (2)")
    assert found is not None and found.forked_from == "main"


def test_a_fork_that_is_deleted_takes_the_keys_of_its_turns_along(ledger: Ledger) -> None:
    one = append(ledger, "u1")
    append(ledger, "u2")
    append(ledger, "u3", parent=one.turn, key="k")
    ledger.delete(FOLDER, "main (2)")
    again = append(ledger, "u3", parent=one.turn, key="k")
    assert (again.repeated, again.session) == (False, "main (2)")


def test_who_was_cleared_away_goes_on_in_a_fork_and_who_was_deleted_is_told(ledger: Ledger) -> None:
    one = append(ledger, "u1 a1")
    ledger.clear(FOLDER, "main")
    assert append(ledger, "u2", parent=one.turn).session == "main (2)"
    assert history(ledger, "main (2)") == "u1 a1 u2"
    ledger.delete(FOLDER, "main (2)")
    ledger.delete(FOLDER, "main")
    refused("unknown-turn", append, ledger, "u3", parent=one.turn)
    assert ledger.sessions() == []


# ---------------------------------------------------------------- sessions


def test_sessions_are_listed_by_what_changed_last(ledger: Ledger) -> None:
    ledger.create(FOLDER, "b", agent="lead")
    append(ledger, "u1 a1:30", "a")
    ledger.create("/elsewhere", "c")
    append(ledger, "u1", "b")
    found = [(one.workspace, one.name, one.agent, one.head.tokens) for one in ledger.sessions()]
    assert found == [(FOLDER, "b", "lead", 10), ("/elsewhere", "c", None, 0), (FOLDER, "a", None, 40)]
    assert [one.name for one in ledger.sessions(FOLDER)] == ["b", "a"]
    assert ledger.sessions("/nowhere") == []
    assert ledger.find(FOLDER, "c") is None


def test_what_is_not_there_is_refused(ledger: Ledger) -> None:
    append(ledger, "u1")
    append(ledger, "u1", "other")
    strange = append(ledger, "u2", "other").turn
    refused("session-exists", ledger.create, FOLDER, "main")
    refused("session-exists", ledger.rename, FOLDER, "main", "other")
    refused("session-exists", ledger.fork, FOLDER, "main", "other")
    refused("session-exists", ledger.import_turns, FOLDER, "main", [])
    for call in (ledger.clear, ledger.delete, ledger.turns, ledger.undo):
        refused("unknown-session", call, FOLDER, "nothing")
    refused("unknown-session", ledger.rename, FOLDER, "nothing", "x")
    refused("unknown-session", ledger.compact, FOLDER, "nothing", compaction("s", 0))
    refused("unknown-compaction", ledger.undo, FOLDER, "main")
    refused("unknown-session", ledger.pages.receipt, FOLDER, "nothing")
    refused("unknown-compaction", ledger.pages.receipt, FOLDER, "main")
    refused("unknown-compaction", ledger.pages.receipt, FOLDER, "nothing", "s")
    for name in ("", "-1", "x-1", strange, strange + "0", f"{strange}-"):
        refused("unknown-turn", ledger.fork, FOLDER, "main", "new", turn=name)
    assert ledger.head(FOLDER, "nothing") is None
    assert ledger.history(FOLDER, "nothing") is None
    refused("bad-text", ledger.create, FOLDER, "\ud800")
    refused("bad-text", ledger.head, FOLDER, "\ud800")


def test_a_deleted_session_leaves_what_others_share(ledger: Ledger) -> None:
    one = append(ledger, "u1 a1")
    append(ledger, "u2 a2")
    ledger.fork(FOLDER, "main", "idea", turn=one.turn)
    append(ledger, "u3", "idea")
    ledger.fork(FOLDER, "idea", "idea of it")
    ledger.delete(FOLDER, "main")
    ledger.delete(FOLDER, "idea")
    assert history(ledger, "idea of it") == "u1 a1 u3"
    append(ledger, "u4", "idea of it")
    assert ledger.pages.search("a2") == []
    assert [(hit.session, hit.seq) for hit in ledger.pages.search("a1")] == [("idea of it", 1)]


def test_a_fork_may_start_before_a_compaction_and_in_what_was_cleared(ledger: Ledger) -> None:
    one = append(ledger, "u1 a1")
    ledger.compact(FOLDER, "main", compaction("s1", 1))
    last = append(ledger, "u2")
    ledger.fork(FOLDER, "main", "before", turn=one.turn)
    ledger.clear(FOLDER, "main")
    ledger.fork(FOLDER, "main", "after", turn=last.turn)
    ledger.fork(FOLDER, "main", "empty")
    assert [history(ledger, name) for name in ("before", "after", "empty")] == ["u1 a1", "s1 u2", ""]
    ledger.undo(FOLDER, "after")
    assert history(ledger, "after") == "u1 a1 u2"


# ---------------------------------------------------------------- turns and imports


def test_turns_say_all_that_was_given(ledger: Ledger) -> None:
    given_ = turn(
        "u1:3 a1:4",
        model="m",
        role="worker",
        toolset=("read", "write"),
        permissions="sandboxed",
        event={"type": "message", "n": [1, None]},
        context={"system": "é"},
        created="2020-01-01T00:00:00Z",
    )
    ledger.append(FOLDER, "main", given_)
    (found,) = ledger.turns(FOLDER, "main")
    assert found == Turn(
        id=found.id,
        seq=1,
        type="query",
        created="2020-01-01T00:00:00Z",
        tokens=7,
        messages=tuple(counted.message for counted in given_.messages),
        model="m",
        role="worker",
        event={"type": "message", "n": [1, None]},
        context={"system": "é"},
        counter="letters",
        counts=(3, 4),
        toolset=("read", "write"),
        permissions="sandboxed",
    )


def test_turns_of_one_ledger_are_the_same_in_another(ledger: Ledger) -> None:
    check(
        ledger, "u1 a1 | !s1 1-2 | u2 | !s2 | undo s2 | u3 a3 | !s3 0-1 | undo s1 | u4", "u1 a1 u2 u3 a3 u4"
    )
    turns = list(ledger.turns(FOLDER, "main"))
    with new_ledger() as other:
        other.import_turns(FOLDER, "copy", turns)
        found = list(other.turns(FOLDER, "copy"))
        assert [msgspec.structs.replace(one, id="", parent=None) for one in found] == [
            msgspec.structs.replace(one, id="", parent=None) for one in turns
        ]
        assert history(other, "copy") == "u1 a1 u2 u3 a3 u4"


@pytest.mark.parametrize("last", [1, 2, 3, 9])
def test_the_parent_of_a_turn_is_the_one_before(ledger: Ledger, last: int) -> None:
    for text in ("u1 a1", "u2 a2", "u3 a3"):
        append(ledger, text)
    second = list(ledger.turns(FOLDER, "main"))[1]
    ledger.fork(FOLDER, "main", "fork", turn=second.id)
    for text in ("u4 a4", "u5 a5"):
        append(ledger, text, session="fork")
    for session in ("main", "fork"):
        whole = list(ledger.turns(FOLDER, session))
        assert whole[2].parent == second.id
        parents = [None, *(one.id for one in whole)]
        page = list(ledger.turns(FOLDER, session, last=last))
        assert [one.parent for one in page] == parents[:-1][-last:]


def test_an_import_is_all_or_nothing_and_says_how_far_it_is(ledger: Ledger) -> None:
    heard: list[int] = []
    ledger.import_turns(FOLDER, "all", [turn(f"u{n}") for n in range(450)], on_progress=heard.append)
    assert heard == list(range(1, 451))
    assert [one.seq for one in ledger.turns(FOLDER, "all")] == heard
    assert [one.seq for one in ledger.turns(FOLDER, "all", last=3)] == [448, 449, 450]

    def broken() -> Iterator[NewTurn]:
        yield turn("u1")
        raise OSError("the file ends here")

    with pytest.raises(OSError, match="ends here"):
        ledger.import_turns(FOLDER, "half", broken())
    assert ledger.find(FOLDER, "half") is None
    assert ledger.pages.search("u1", session="half") == []


def test_a_session_that_is_deleted_while_it_is_read_is_said_to_be(ledger: Ledger) -> None:
    ledger.import_turns(FOLDER, "main", [turn(f"u{n}") for n in range(450)])
    reading = ledger.turns(FOLDER, "main")
    next(reading)
    ledger.delete(FOLDER, "main")
    refused("unknown-session", list, reading)


# ---------------------------------------------------------------- messages as rows


@given(MESSAGES)
def test_messages_come_back_as_they_went_in(messages: list[Message]) -> None:
    for message in messages:
        if message.role in ("system", "user", "assistant", "tool"):
            assert back(message) == whole_message(message)


ODD: list[Any] = [
    Message("user", "a\0b é 😀"),
    Message("user", "\ud800"),
    Message("user", ""),
    Message(
        "assistant", None, (ToolCall("1", "run", {"n": 2**70, "f": 1.5, "x": "\ud800", "deep": nested(300)}),)
    ),
    Message("assistant", "é", (ToolCall("1", "run", '{"a": 1}'), ToolCall("2", "é", [True, None]))),
    Message("tool", "found", tool_call_id="1", name="run", meta={"is_error": True}, timestamp=1.5, tokens=3),
    Message("user", [{"type": "text", "text": "é"}, 7, None], meta=None, timestamp="now"),
]


@pytest.mark.parametrize("message", ODD, ids=lambda message: repr(message)[:40])
def test_odd_messages_come_back_as_they_went_in(ledger: Ledger, message: Message) -> None:
    assert back(message) == whole_message(message)
    ledger.append(FOLDER, "main", NewTurn(messages=(Counted(message, 1),), counter="letters"))
    found = ledger.history(FOLDER, "main")
    assert found is not None and found.messages[0].message == whole_message(message)


@pytest.mark.parametrize(
    "value", [None, 1, 1.5, float("inf"), "\ud800", [1, {"a": None}], 2**70, True, {"é": "\0"}]
)
def test_other_values_come_back_as_they_went_in(value: Any) -> None:
    found = value_of(json_text(value))
    assert (found, type(found)) == (value, type(value))


def test_no_number_comes_back_as_none() -> None:
    assert str(value_of(json_text([float("nan")]))) == "[nan]"
    assert str(back(Message("user", "x", meta=float("nan"))).meta) == "nan"


def test_a_message_that_is_none_is_not_kept(ledger: Ledger) -> None:
    strange = Message("nobody", "x")  # type: ignore[arg-type]
    for message in (strange, msgspec.structs.replace(strange, name="y")):
        with pytest.raises(ValueError, match="role 'nobody'"):
            ledger.append(FOLDER, "main", NewTurn(messages=(Counted(message, 1),), counter="c"))
    with pytest.raises(TypeError):
        ledger.append(FOLDER, "main", NewTurn(messages=(), counter="c", event=object()))
    assert ledger.sessions() == []


def back(message: Message) -> Message:
    row = row_of(message, 7, 1, 3)
    data = None if row.data is None else row.data.encode()
    return message_of((*row[:5], row.text.encode(), data, row.crc))


# ---------------------------------------------------------------- direct messages


def test_the_inbox_is_by_priority_then_by_arrival(ledger: Ledger) -> None:
    numbers = itertools.count()

    @given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, "n1", "n2"])), max_size=8))
    def any_messages(sent: list[tuple[int, str | None]]) -> None:
        agent = f"a{next(numbers)}"
        for at, (priority, node) in enumerate(sent):
            message = direct(f"{agent} {at}", priority=priority / 2, node=node, created=float(-at))
            ledger.messages.send(msgspec.structs.replace(message, target=agent))
        for node in (None, "n1"):
            wanted = [at for at, (_, of) in enumerate(sent) if node is None or of in (None, node)]
            wanted.sort(key=lambda at: -sent[at][0])
            found = ledger.messages.inbox(FOLDER, agent, now=0, node=node)
            assert [one.id for one in found] == [f"{agent} {at}" for at in wanted]

    any_messages()


def test_what_is_delivered_or_expired_waits_no_more(ledger: Ledger) -> None:
    ledger.messages.send(direct("1", ttl=10.0, metadata={"a": [1]}, task="t", session="main"))
    ledger.messages.send(direct("2"))
    ledger.messages.send(direct("2", content="again"))
    assert ledger.messages.inbox(FOLDER, "a", now=109.0) == [
        direct("1", ttl=10.0, metadata={"a": [1]}, task="t", session="main"),
        direct("2"),
    ]
    assert [one.id for one in ledger.messages.inbox(FOLDER, "a", now=110.0)] == ["2"]
    assert ledger.messages.inbox("/elsewhere", "a", now=0) == ledger.messages.inbox(FOLDER, "b", now=0) == []
    assert len(ledger.messages.inbox(FOLDER, "a", now=0, limit=1)) == 1
    ledger.messages.delivered(["2", "nothing"])
    ledger.messages.send(direct("2"))
    assert [one.id for one in ledger.messages.inbox(FOLDER, "a", now=0)] == ["1"]


def direct(name: str, **about: Any) -> DirectMessage:
    given_: dict[str, Any] = {"content": "hello", "created": 100.0} | about
    return DirectMessage(id=name, workspace=FOLDER, source="b", target="a", **given_)


# ---------------------------------------------------------------- what counted a session


def counted_by(ledger: Ledger, session: str) -> str:
    found = ledger.find(FOLDER, session)
    assert found is not None
    return " ".join(sorted(found.counters))


def count_with(ledger: Ledger, counter: str, what: str, session: str = "main") -> None:
    ledger.append(FOLDER, session, msgspec.structs.replace(turn(what), counter=counter))


def test_a_session_names_the_counters_of_what_it_still_sends(ledger: Ledger) -> None:
    append(ledger, "u1 a1")
    assert counted_by(ledger, "main") == "letters"
    ledger.fork(FOLDER, "main", "fork")
    count_with(ledger, "words", "u2 a2", "fork")
    assert [counted_by(ledger, name) for name in ("main", "fork")] == ["letters", "letters words"]
    ledger.compact(FOLDER, "fork", compaction("c", 2, (3, 4)))
    assert counted_by(ledger, "fork") == "letters words"  # the summary, and what was kept beside it
    count_with(ledger, "words", "u3 a3")
    ledger.compact(FOLDER, "main", compaction("d", 2))
    assert counted_by(ledger, "main") == "letters"
    ledger.undo(FOLDER, "main")
    assert counted_by(ledger, "main") == "letters words"
    ledger.clear(FOLDER, "main")
    assert counted_by(ledger, "main") == ""


def test_programs_find_what_has_moved_at_its_former_place(ledger: Ledger) -> None:
    append(ledger, "u1")
    former: Any = ledger
    with pytest.deprecated_call(match=r"ledger\.search is ledger\.pages\.search"):
        assert former.search("u1") == ledger.pages.search("u1") != []
    with pytest.raises(AttributeError, match="nothing_like_it"):
        former.nothing_like_it()
