"""Which messages belong together, where turns begin, and what is noted as broken on arrival."""

from collections.abc import Sequence

import pytest
from hypothesis import given

from nexus_context.conversation.groups import LATE, Grouping, group_starts
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.repair import repaired
from support.histories import BROKEN, conversation, histories


def check(text: str, groups: str, turns: Sequence[int] = (), broken: Sequence[int] = ()) -> Grouping:
    """The groups of a conversation, with `|` between them, and where turns and what is broken begin."""
    messages = conversation(text)
    grouping = Grouping(messages)
    words = text.split()
    ends = [*grouping.groups[1:], len(words)]
    made = [" ".join(words[start:end]) for start, end in zip(grouping.groups, ends, strict=True)]
    assert (" | ".join(made), grouping.turns, grouping.broken) == (groups, list(turns), list(broken))
    assert group_starts(messages) == grouping.groups
    return grouping


def test_a_call_and_its_results_are_one_group() -> None:
    check("u1 a1 u2", "u1 | a1 | u2", [0, 2])
    check("u1 c2 r2 a1", "u1 | c2 r2 | a1", [0])
    check("u1 c2+3+4 r4 r2 r3 c5 r5", "u1 | c2+3+4 r4 r2 r3 | c5 r5", [0])
    check("c2+3 r2", "c2+3 r2")  # still waiting: not broken yet


def test_a_turn_begins_where_the_user_follows_another() -> None:
    check("u1 u2 a1 u3 u4", "u1 | u2 | a1 | u3 | u4", [0, 3])
    check("s1 u1 c2 r2 u2", "s1 | u1 | c2 r2 | u2", [1, 4])
    check("a1 a2", "a1 | a2")


def test_a_late_result_takes_in_what_lies_between() -> None:
    check("u1 c2 u3 a3 r2 a4 u5", "u1 | c2 u3 a3 r2 | a4 | u5", [0, 6], [1, 4])
    check("c1 c2 r1 r2 u3", "c1 c2 r1 r2 | u3", [4], [0, 2])
    check("c1 u2 c3 u4 r1 a5 r3 a6", "c1 u2 c3 u4 r1 a5 r3 | a6", (), [0, 2, 4, 6])


def test_a_result_without_a_call_stands_alone() -> None:
    check("u1 r9 a1", "u1 | r9 | a1", [0], [1])
    check("r1 c1 r1", "r1 | c1 r1", (), [0])
    check("u1 c2 r2 a3 r2", "u1 | c2 r2 | a3 | r2", [0], [4])  # a second answer, too late


def test_a_second_answer_belongs_to_the_first() -> None:
    check("u1 c2 r2 r2 a3", "u1 | c2 r2 r2 | a3", [0], [3])


def test_a_call_is_given_up_after_a_while() -> None:
    between = " ".join(["a1"] * LATE)
    check(f"c1 {between[3:]} r1", f"c1 {between[3:]} r1", (), [0, LATE])
    grouping = Grouping(conversation(f"c1 {between} r1"))
    assert (grouping.unanswered, len(grouping.groups), grouping.broken) == (False, LATE + 2, [0, LATE + 1])


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("c1 r1 c1 r1 c1 r1", "1 1 1-2 1-2 1-3 1-3"),
        ("c1+1 r1 r1", "1,1-2 1 1-2"),  # in their order
        ("c1 c1 r1 r1", "1 1-2 1-2 1"),  # the newest waits for it
        ("c1 r1 c1-2 r1-2 c1 r1", "1 1 1-2 1-2 1-3 1-3"),
        ("c1 r1 c1 r1 c1-2 r1-2", "1 1 1-2 1-2 1-2-2 1-2-2"),
        ("c1 r1 c1 r1 r1", "1 1 1-2 1-2 1-2"),  # the second answer is not taken for the first call's
    ],
)
def test_an_id_that_is_used_again_is_sent_under_another(text: str, sent: str) -> None:
    messages = conversation(text)
    renamed = Grouping(messages).renamed
    made = [renamed.get(index, message) for index, message in enumerate(messages)]
    ids = [one.tool_call_id or ",".join(call.id for call in one.tool_calls) for one in made]
    assert " ".join(ids) == sent


CALL = ToolCall("c1", "run")


@pytest.mark.parametrize(
    ("message", "sound"),
    [
        (Message("user", "Grüße 🎉"), True),
        (Message("user", [{"type": "text", "text": "Hi"}, {"type": "image"}]), True),
        (Message("user", ["plain text"]), True),
        (Message("assistant", "", (CALL,)), True),
        (Message("assistant", None, (CALL,)), True),
        (Message("user", ""), False),
        (Message("user", " \n"), False),
        (Message("user", None), False),
        (Message("user"), False),
        (Message("user", []), False),
        (Message("user", [{"type": "text", "text": " "}]), False),
        (Message("assistant", None), False),
        (Message("user", "half a pair \ud83c"), False),
        (Message("user", [{"type": "text", "text": "\ud83c"}]), False),
        (Message("user", [{"type": "tool_use", "id": "c1", "name": "run", "input": {}}]), False),
        (Message("user", "Hi", (CALL,)), False),
        (Message("assistant", None, (ToolCall("", "run"),)), False),
        (Message("assistant", None, (ToolCall("c1", "run", {"x": "\ud83c"}),)), False),
    ],
)
def test_what_a_message_has_to_be_repaired_for_is_noted(message: Message, sound: bool) -> None:
    assert (Grouping([message]).broken == []) is sound


@given(histories(BROKEN))
def test_what_is_called_sound_needs_no_repair(messages: list[Message]) -> None:
    grouping = Grouping()
    for index, message in enumerate(messages):
        grouping.add(message)
        assert grouping.groups[0] == 0
        assert all(a < b for a, b in zip(grouping.groups, grouping.groups[1:], strict=False))
        assert set(grouping.turns) <= set(grouping.groups) & set(grouping.questions)
        for start in grouping.groups[-6:]:
            if grouping.is_sound(0, None, start, index + 1):
                sent = [grouping.renamed.get(at, messages[at]) for at in range(start, index + 1)]
                assert repaired(sent) == (sent, [])


@given(histories(BROKEN))
def test_each_id_is_sent_once_and_no_group_is_torn(messages: list[Message]) -> None:
    grouping = Grouping(messages)
    sent = [grouping.renamed.get(at, message) for at, message in enumerate(messages)]
    called: dict[str, int] = {}
    for index, message in enumerate(sent):
        for call in message.tool_calls:
            assert call.id not in called or not call.id
            called[call.id] = index
    answered: set[str] = set()
    for index, message in enumerate(sent):
        start = called.get(message.tool_call_id or "")
        if message.tool_call_id and start is not None and message.tool_call_id not in answered:
            answered.add(message.tool_call_id)
            groups = [group for group in grouping.groups if group <= index]
            assert start >= groups[-1] or index in grouping.broken
