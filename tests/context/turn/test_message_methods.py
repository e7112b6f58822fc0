"""The repairs of calls and results that a program asks for itself."""

from typing import Any

import pytest
from hypothesis import given

from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import RequestError
from nexus_context.ledger.store import Ledger
from nexus_context.turn.manager import ContextManager
from support.histories import BROKEN, Letters, conversation, histories, pairing_errors, shown

MISSING = "[No result of this call was recorded.]"


def manager(messages: list[Message]) -> ContextManager:
    made = ContextManager(counter=Letters())
    made.add(messages)
    return made


def words(made: ContextManager) -> str:
    """The messages as words; `m` is a result that says that there is none, `n` the note behind results."""
    names = {MISSING: "m", "[The turn ended before these results were answered.]": "n"}
    return " ".join(names.get(text_of(message)) or shown([message]) for message in made.messages)


@pytest.mark.parametrize(
    ("before", "after", "dropped", "noted"),
    [
        ("u1 a1", "u1 a1", 0, False),
        ("u1 c1 r1 a1", "u1 c1 r1 a1", 0, False),
        ("u1 c1 u2", "u1 c1 m u2", 0, False),
        ("u1 c1", "u1 c1 m n", 0, True),
        ("u1 c1 r1", "u1 c1 r1 n", 0, True),
        ("u1 c1+2 r2 u2", "u1 c1+2 r2 m u2", 0, False),
        ("u1 c1+2 r2 r1", "u1 c1+2 r2 r1 n", 0, True),
        ("r9 u1", "u1", 1, False),
        ("u1 c1 r1 r1 a1", "u1 c1 r1 a1", 1, False),
        ("u1 c1 r9 r1 a1", "u1 c1 r1 a1", 1, False),
        ("u1 c1 u2 r1 a1", "u1 c1 m u2 a1", 1, False),
        ("c1 u1 c2 u2 c3 r3", "c1 m u1 c2 m u2 c3 r3 n", 0, True),
        ("", "", 0, False),
    ],
)
def test_the_three_repairs(before: str, after: str, dropped: int, noted: bool) -> None:
    made = manager(conversation(before))
    assert made.prune_unpaired_tool_results() == dropped
    made.fix_orphaned_tool_calls()
    assert made.ensure_assistant_after_tool_results() is noted
    assert words(made) == after
    assert made.get_token_usage()["messages"] == Letters().count_messages(made.messages)


@given(histories(BROKEN))
def test_calls_and_results_are_then_in_pairs(messages: list[Message]) -> None:
    made = manager(messages)
    made.prune_unpaired_tool_results()
    made.fix_orphaned_tool_calls()
    left = [error for error in pairing_errors(made.messages) if "result" in error]
    calls = [call.id for message in made.messages for call in message.tool_calls]
    asks = [message.role == "assistant" for message in made.messages if message.tool_calls]
    assert not left or len({*calls} - {""}) < len(calls) or not all(asks)
    again = [*made.messages]
    assert made.prune_unpaired_tool_results() == 0
    made.fix_orphaned_tool_calls()
    assert made.messages == again


def test_what_is_only_added_keeps_the_beginning_of_the_requests() -> None:
    made = manager(conversation("u1 c1+2 r2"))
    sent = made.build_messages()
    made.fix_orphaned_tool_calls()
    assert (made.build_messages(), made.revision) == (sent, (0, 4))  # a request had the missing result


def test_a_compaction_before_it_can_be_undone() -> None:
    made = manager(conversation("u1 a1 u2 c2"))
    made.apply_compaction(conversation("u9")[0], made.messages[2:])
    made.add(conversation("u3 r7 c4 u4"))
    made.prune_unpaired_tool_results()
    made.fix_orphaned_tool_calls()
    assert words(made) == "u9 u2 c2 m u3 c4 m u4"
    made.undo_compaction()
    assert words(made) == "u1 a1 u2 c2 m u3 c4 m u4"


def test_a_session_of_a_ledger_keeps_what_is_dropped(ledger: Ledger) -> None:
    def opened() -> ContextManager:
        return ContextManager(counter=Letters(), ledger=ledger, folder="/work/castle")

    made = opened()
    made.add(conversation("u1 c1 r1 r1 c2 u2"))
    assert made.prune_unpaired_tool_results() == 1
    made.fix_orphaned_tool_calls()
    assert words(made).split(" ", 1)[1] == "u1 c1 r1 c2 m u2"
    kept = made.messages[-3:]
    made.apply_compaction(Message("user", "sum"), kept)
    assert words(made).split()[1:] == ["c2", "u2", "m"]  # in the order of the ledger
    again = opened()
    assert (again.messages, again.build_messages()) == (made.messages, made.build_messages())
    again.undo_compaction()
    assert words(again).split(" ", 1)[1] == "u1 c1 r1 r1 c2 u2 m"
    sent = [text_of(message) for message in again.build_messages()]
    assert sent[-2] == MISSING  # behind its call


def test_all_messages_must_be_loaded() -> None:
    made = manager([])
    made.restore(conversation("u1 a1"), tokens=[10, 10], counter="letters", lead=1, gap_messages=3)
    for repair in (made.prune_unpaired_tool_results, made.fix_orphaned_tool_calls):
        with pytest.raises(RequestError, match="3 of its messages are not loaded"):
            repair()


CALLS: list[dict[str, Any]] = [
    {"type": "tool_use", "id": "a", "name": "look", "input": {}},
    {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
    {"functionCall": {"id": "a", "name": "look", "args": {}}},
]
RESULTS: list[dict[str, Any]] = [
    {"type": "tool_result", "tool_use_id": "a", "content": "a wall"},
    {"type": "function_call_output", "call_id": "a", "output": "a wall"},
    {"functionResponse": {"id": "a", "name": "look", "response": {"output": "a wall"}}},
]


@pytest.mark.parametrize("call", CALLS)
def test_calls_count_where_a_providers_answer_has_them(call: dict[str, Any]) -> None:
    made = manager([Message("user", "Look."), Message("assistant", [call])])
    made.add_tool_result("a", "look", "a wall")
    assert made.prune_unpaired_tool_results() == 0
    made.add_tool_result("a", "look", "again")
    assert made.prune_unpaired_tool_results() == 1
    assert [text_of(message) for message in made.messages if message.role == "tool"] == ["a wall"]
    assert made.ensure_assistant_after_tool_results()
    open_call = manager([Message("user", "Look."), Message("assistant", [call]), Message("user", "And?")])
    open_call.fix_orphaned_tool_calls()
    assert [message.role for message in open_call.messages] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(("call", "result"), [*zip(CALLS, RESULTS, strict=True)])
def test_results_count_where_a_providers_request_has_them(
    call: dict[str, Any], result: dict[str, Any]
) -> None:
    made = manager([Message("user", "Look."), Message("assistant", [call]), Message("user", [result])])
    before = made.messages
    assert made.prune_unpaired_tool_results() == 0
    made.fix_orphaned_tool_calls()
    assert made.messages == before
    assert made.ensure_assistant_after_tool_results()
