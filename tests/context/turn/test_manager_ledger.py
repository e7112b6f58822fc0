"""A conversation that is a session of a ledger: stored first, read again, with the time of day."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.budget import EARLIER_EVENTS, ContextConfig
from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import RequestError
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.store import Ledger
from nexus_context.tokens import SimpleTokenCounter
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Options, Request

NOW = datetime(2026, 11, 23, 9, 5, tzinfo=UTC)
STARTED = "[Session started: 2026-11-23 09:05 (local)]"
TIME = "Current time: 2026-11-23 09:05 (UTC+00:00)"
FOLDER = "/work/castle"


def bound(ledger: Ledger, **options: Any) -> ContextManager:
    config = ContextConfig(max_tokens=2_000, reserve_tokens=500)
    complete: dict[str, Any] = {
        "clock": lambda: NOW,
        "started": NOW,
        "counter": SimpleTokenCounter(),
    } | options
    return ContextManager(config, ledger=ledger, folder=FOLDER, **complete)


def check(ledger: Ledger, chat: ContextManager, *contents: str) -> None:
    """What memory, the ledger and a conversation that is opened now have."""
    stored = ledger.history(FOLDER, "main")
    assert [text_of(message) for message in chat.history.messages] == list(contents)
    assert [text_of(one.message) for one in (stored.messages if stored else ())] == list(contents)
    again = bound(ledger, started=datetime(2030, 1, 1))
    assert again.history.messages == chat.history.messages
    assert again.get_token_usage() == chat.get_token_usage()
    assert again.build_messages() == chat.build_messages()


def test_a_message_is_stored_before_it_is_in_memory(ledger: Ledger) -> None:
    chat = bound(ledger)
    assert [text_of(message) for message in chat.messages] == [STARTED]
    chat.add_user_message("Where is the gate?")
    check(ledger, chat, STARTED, "Where is the gate?")
    chat.add_assistant_message(None, [{"id": "c1", "name": "look", "arguments": {"at": "north"}}])
    chat.add_tool_result("c1", "look", "a wall")
    check(ledger, chat, STARTED, "Where is the gate?", "", "a wall")
    ledger.close()
    with pytest.raises(LedgerError):
        chat.add_user_message("Lost?")
    assert len(chat) == 4


def test_a_turn_of_the_conversation_is_one_of_the_ledger(ledger: Ledger) -> None:
    chat = bound(ledger)

    def turns() -> list[list[str]]:
        return [[text_of(message) for message in turn.messages] for turn in ledger.turns(FOLDER, "main")]

    chat.add_user_message("Where is the gate?")
    chat.add_assistant_message(None, [{"id": "c1", "name": "look", "arguments": {}}])
    assert turns() == [[STARTED, "Where is the gate?", ""]], "on the disk after each message"
    chat.add_tool_result("c1", "look", "a wall")
    chat.add_assistant_message("Behind the wall.")
    chat.add_user_message("Open it.")
    chat.add([Message("assistant", "Done.")], usage=ProviderUsage(40, 2))
    bound(ledger).add_assistant_message("It was read again: this begins a turn.")
    first, second, third = ledger.turns(FOLDER, "main")
    assert [len(turn.messages) for turn in (first, second, third)] == [5, 2, 1]
    assert second.outcome is not None
    assert second.outcome.usage == ProviderUsage(40, 2)
    assert ledger.upkeep.verify().sound


def test_results_in_a_users_message_extend_the_turn(ledger: Ledger) -> None:
    chat = bound(ledger)
    chat.add_user_message("Where?")
    use = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    chat.add([Message("assistant", [use])])
    chat.add([Message("user", [{"type": "tool_result", "tool_use_id": "c1", "content": "a wall"}])])
    assert len(list(ledger.turns(FOLDER, "main"))) == 1


def test_a_compaction_within_a_turn_keeps_what_follows(ledger: Ledger) -> None:
    chat = bound(ledger)
    for text in ("one", "two", "three"):
        chat.add_user_message(text)
    chat.apply_compaction(Message("user", "sum"), chat.messages[-1:])
    chat.add_assistant_message("four")
    check(ledger, chat, "sum", "three", "four")
    other = bound(ledger)
    chat.add_assistant_message("five")
    other.apply_compaction(Message("user", "sum again"), other.messages[-1:])
    check(ledger, other, "sum again", "four", "five")


def test_what_another_program_appends_is_read(ledger: Ledger) -> None:
    one, other = bound(ledger), bound(ledger)
    one.add_user_message("one")
    other.add_user_message("two")
    check(ledger, other, STARTED, "one", "two")
    one.add_user_message("three")
    check(ledger, one, STARTED, "one", "two", "three")


def test_a_compaction_is_stored_and_taken_back(ledger: Ledger) -> None:
    chat = bound(ledger)
    for number in range(12):
        chat.add_user_message(f"Question {number}: {'why ' * 30}")
        chat.add_assistant_message(f"Answer {number}: {'so ' * 30}")
    before = chat.history.messages[:]
    receipt = chat.compact(made_at=NOW)
    after = [text_of(message) for message in chat.history.messages]
    assert len(after) < len(before)
    check(ledger, chat, *after)
    assert bound(ledger).compactions == chat.compactions == [receipt.id]
    chat.add_user_message("And then?")
    check(ledger, chat, *after, "And then?")
    again = bound(ledger)
    again.undo_compaction()
    check(ledger, again, *map(text_of, before), "And then?")


def test_a_summary_of_ones_own_is_stored(ledger: Ledger) -> None:
    chat = bound(ledger)
    for text in ("one", "two", "three"):
        chat.add_user_message(text)
    with pytest.raises(RequestError, match="not one of this conversation"):
        chat.apply_compaction(Message("user", "sum"), [Message("user", "three")])
    chat.apply_compaction(Message("user", "sum"), chat.messages[-1:])
    check(ledger, chat, "sum", "three")
    chat.undo_compaction()
    check(ledger, chat, STARTED, "one", "two", "three")


def test_clearing_begins_anew(ledger: Ledger) -> None:
    chat = bound(ledger)
    chat.add_user_message("one")
    chat.clear_messages()
    chat.add_user_message("two")
    stored = ledger.history(FOLDER, "main")
    assert stored is not None
    assert [text_of(one.message) for one in stored.messages][1:] == ["two"]
    assert chat.history.messages == [one.message for one in stored.messages]


def test_the_time_is_told_also_after_a_tool_result(ledger: Ledger) -> None:
    chat = bound(ledger)
    chat.add_user_message("Where?")
    chat.add_assistant_message(None, [{"id": "c1", "name": "look", "arguments": {}}])
    chat.add_tool_result("c1", "look", "a wall")
    sent = [text_of(message) for message in chat.build_messages()]
    assert sent == [STARTED, f"{TIME}\n\nWhere?", "", "a wall"]
    usage = chat.get_token_usage()
    assert usage["total"] == SimpleTokenCounter().count_messages(chat.build_messages())
    assert [row.label for row in usage.rows] == ["4 messages", EARLIER_EVENTS]
    chat.add_user_message([{"type": "text", "text": "Why?"}])
    later = [text_of(message) for message in chat.build_messages()]
    assert later == [*sent, f"{TIME}\nWhy?"]
    assert [text_of(message) for message in chat.messages] == [STARTED, "Where?", "", "a wall", "Why?"]


def test_a_result_hours_later_tells_the_time(ledger: Ledger) -> None:
    hours = iter([9, 9, 15, 15, 15])
    chat = bound(ledger, clock=lambda: NOW.replace(hour=next(hours)))
    chat.add_user_message("Where?")
    chat.add_assistant_message(None, [{"id": name, "name": "look", "arguments": {}} for name in ("a", "b")])
    chat.add_tool_result("a", "look", "a wall")
    chat.add_tool_result("b", "look", "a door")
    late = TIME.replace(" 09:05", " 15:05")
    sent = [text_of(message) for message in chat.build_messages()]
    assert sent == [STARTED, f"{TIME}\n\nWhere?", "", f"{late}\n\na wall", "a door"]
    check(ledger, chat, STARTED, "Where?", "", "a wall", "a door")


def test_a_result_after_a_restart_tells_the_time(ledger: Ledger) -> None:
    chat = bound(ledger)
    chat.add_user_message("Where?")
    chat.add_assistant_message(None, [{"id": name, "name": "look", "arguments": {}} for name in ("a", "b")])
    again = bound(ledger, clock=lambda: NOW.replace(hour=15))
    again.add_tool_result("a", "look", "a wall")
    again.add_tool_result("b", "look", "a door")
    late = TIME.replace(" 09:05", " 15:05")
    assert [text_of(message) for message in again.build_messages()][3:] == [f"{late}\n\na wall", "a door"]


def test_without_a_clock_there_is_no_time() -> None:
    chat = ContextManager(counter=SimpleTokenCounter())
    chat.add_user_message("Why?")
    assert chat.build_messages() == [Message("user", "Why?")]
    assert chat.get_token_usage()["event"] == 0


def test_a_bound_conversation_has_a_folder_and_reads_itself(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="needs the absolute path of its folder"):
        ContextManager(ledger=ledger)
    with pytest.raises(ValueError, match="must be an absolute path, not 'castle'"):
        ContextManager(ledger=ledger, folder="castle")
    with pytest.raises(RequestError) as refused:
        bound(ledger).restore([], tokens=[], counter="characters")
    assert refused.value.code == "bad-option"


def test_a_turn_says_what_it_was_made_with(ledger: Ledger, tmp_path: Path) -> None:
    chat = bound(ledger, model="gpt-4o")
    chat.set_system_prompt("You are helpful.")
    chat.set_tool_definitions([{"name": "look"}, {"name": "open"}])
    chat.add_user_message("Where is the gate?")
    chat.add_assistant_message("Behind the wall.")
    chat.set_system_prompt("You are brief.")
    turn = assemble(None, chat, Request(Message("user", "Open?"), options=Options(model="gpt-4.1")), now=NOW)
    chat.add([turn.turn_message, Message("assistant", "Yes.")])
    first, second = ledger.turns(FOLDER, "main")
    assert (first.model, first.role, first.toolset) == ("gpt-4o", "unified", ("look", "open"))
    assert first.context == {"system": {"text": "You are helpful."}}
    assert (second.model, second.toolset) == ("gpt-4.1", ("look", "open"))
    assert second.context == {"system": {"text": "You are brief."}}
