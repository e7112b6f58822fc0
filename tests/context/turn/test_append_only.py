"""Each request begins with the bytes of the one before: a turn is appended as it was sent."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context.conversation.budget import EARLIER_EVENTS, EARLIER_MEMORY
from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewTurn
from nexus_context.memory.item import MemoryItem
from nexus_context.tokens import SimpleTokenCounter, count_message, counter_for
from nexus_context.turn.assembly import assemble
from nexus_context.turn.git import GitState
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.models import model_of
from nexus_context.turn.prefix import compare
from nexus_context.turn.request import AssembledContext, Request
from support.folders import load_configured
from support.views import check as check_view

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WINDOW = (
    '{"provider": {"model": "claude-sonnet-4-5"}, "context": {"max_tokens": 2600, "reserve_tokens": 500}}'
)


class Talk:
    """A conversation, turn by turn, with what each request sent."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.conversation = ContextManager(started=NOON)
        self.contexts: list[AssembledContext] = []
        self.now = NOON

    def ask(self, text: str | None, *, items: Sequence[str] = (), **request: Any) -> AssembledContext:
        """One request; its rows sum to the tokens of what is sent."""
        self.now += timedelta(minutes=1)
        memory = [MemoryItem("knowledge", f"notes {at}", item, 1.5) for at, item in enumerate(items)]
        message = None if text is None else Message("user", text)
        context = assemble(
            self.snapshot, self.conversation, Request(message=message, **request), now=self.now, memory=memory
        )
        check_view(context.view, counter_for(context.model))
        self.contexts.append(context)
        return context

    def answer(self, *messages: Message) -> None:
        turn_message = self.contexts[-1].turn_message
        self.conversation.add([turn_message, *messages])


def sent(context: AssembledContext) -> list[bytes]:
    """The messages of a request, as bytes."""
    last = [] if context.current_message is None else [context.current_message]
    return [msgspec.json.encode(message) for message in [*context.history, *last]]


def check(talk: Talk) -> None:
    """Each request begins with the bytes of the one before, and the report says what it reuses."""
    counter = SimpleTokenCounter()
    for before, now in zip(talk.contexts, talk.contexts[1:], strict=False):
        assert sent(now)[: len(sent(before))] == sent(before)
        report = compare(before.prefix, now.prefix, counter)
        assert report.broke is None


def turns(talk: Talk) -> Iterator[AssembledContext]:
    """Four turns with everything that a turn can be sent with."""
    yield talk.ask("Where is the gate?", event={"platform": "repl", "hookData": ["3 files changed"]})
    yield talk.ask("Who has the key?", items=["The key is with Bors."], git=GitState(branch="main"))
    yield talk.ask("And now?", items=["The key is with Bors.", "The bridge is up."])
    yield talk.ask(None, event={"alarm": "fire"})


def test_a_turn_is_sent_again_as_it_was_sent(tmp_path: Path) -> None:
    talk = Talk(load_configured(tmp_path))
    for _ in turns(talk):
        talk.answer(Message("assistant", "Behind the wall."))
    talk.ask("Is it open?")
    check(talk)
    said = [content_of(message) for message in talk.conversation.messages if message.role == "user"][1:]
    assert said == [
        "Where is the gate?",
        "Who has the key?",
        "And now?",
        "",
    ]  # what the user wrote stays apart
    rows = {row.label: row.tokens for row in talk.contexts[-1].usage.rows if row.category == "history"}
    assert set(rows) == {"9 messages", EARLIER_EVENTS, EARLIER_MEMORY}
    assert min(rows.values()) > 0


def test_what_an_earlier_message_has_is_not_repeated(tmp_path: Path) -> None:
    talk = Talk(load_configured(tmp_path))
    reports = []
    for context in turns(talk):
        reports.append(context.metadata.get("memory", {}))
        talk.answer(Message("assistant", "Yes."))
    assert reports[1]["included"] == ["notes 0"]
    assert (reports[2]["included"], reports[2]["sentBefore"]) == (["notes 1"], ["notes 0"])
    assert str(talk.contexts[2].current_message).count("Bors") == 0


def test_the_rows_of_a_turn_move_to_the_history(tmp_path: Path) -> None:
    talk = Talk(load_configured(tmp_path))
    asked = talk.ask("Where?", items=["The key is with Bors."])
    talk.answer(Message("assistant", "There."))
    again = talk.ask("Why?")
    tokens = {row.label: row.tokens for row in again.usage.rows}
    before = {row.label: row.tokens for row in asked.usage.rows}
    counter = model_of(talk.snapshot, None)[1]
    assert tokens[EARLIER_MEMORY] == pytest.approx(before["notes 0"], abs=2)  # the gap, and rounding
    assert sum(row.tokens for row in again.usage.rows) == again.usage.total
    assert again.usage.by_category()["history"] == counter.count_messages(again.history)


@pytest.mark.parametrize("ending", [Message("tool", "a wall", tool_call_id="c"), None])
def test_a_tool_loop_keeps_the_time_of_its_turn(tmp_path: Path, ending: Message | None) -> None:
    talk = Talk(load_configured(tmp_path))
    talk.ask("Where?")
    talk.answer(
        Message("assistant", None, (ToolCall("c", "look", {}),)), Message("tool", "a wall", tool_call_id="c")
    )
    talk.contexts.append(assemble(talk.snapshot, talk.conversation, Request(), now=talk.now))
    check(talk)
    assert "Current time: 2026-11-20 12:01" in str(talk.contexts[-1].history[1])
    count, nothing_but_its_id = len(talk.conversation), talk.contexts[-1].turn_message
    assert nothing_but_its_id == Message("user", answers=nothing_but_its_id.answers)
    talk.conversation.add([nothing_but_its_id])
    assert len(talk.conversation) == count


def test_plain_replay_sends_only_what_the_user_wrote(tmp_path: Path) -> None:
    talk = Talk(load_configured(tmp_path, '{"context": {"replay": "plain"}}'))
    for _ in turns(talk):
        talk.answer(Message("assistant", "Yes."))
    users = [content_of(message) for message in talk.ask("Why?").history if message.role == "user"]
    assert users[1:4] == ["Where is the gate?", "Who has the key?", "And now?"]
    report = compare(talk.contexts[0].prefix, talk.contexts[1].prefix, SimpleTokenCounter())
    assert report.reused < talk.contexts[0].prefix.tokens + 5  # the message is not reused


def test_a_cut_leaves_out_event_and_memory_text_of_earlier_turns_first(tmp_path: Path) -> None:
    talk = Talk(load_configured(tmp_path, WINDOW))
    kept: list[int] = []
    for number in range(60):
        context = talk.ask(f"Question {number}?", items=[f"Passage {number}: {'the gate ' * 40}"])
        kept.append(len(context.history))
        talk.answer(Message("assistant", f"Answer {number}."))
    cut = next(at for at, context in enumerate(talk.contexts) if context.view.replaced)
    first = talk.contexts[cut]
    assert first.view.removed == 0  # all messages are still there
    texts = [str(content_of(message)) for message in first.history if message.role == "user"]
    assert [("Passage" in text) for text in texts[1:]] == [*([False] * (len(texts) - 2)), True]
    assert kept[cut] == kept[cut - 1] + 2
    report = compare(talk.contexts[cut - 1].prefix, first.prefix, SimpleTokenCounter())
    assert report.broke is not None
    assert report.broke.label == "event and memory text of earlier turns is not sent any more"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["ask", "loop", "event", "compact", "undo"]), st.integers(0, 400)),
        max_size=25,
    )
)
def test_the_reported_reuse_is_what_the_bytes_share(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    talk = Talk(load_configured(tmp_path, WINDOW))
    counter = model_of(talk.snapshot, None)[1]
    for number, (step, size) in enumerate(steps):
        if step == "compact" or step == "undo":
            try:
                if step == "undo":
                    talk.conversation.undo_compaction()
                else:
                    talk.conversation.compact(made_at=talk.now)
            except Exception as error:  # noqa: BLE001 - nothing to compact or to undo
                assert type(error).__name__ in ("CompactionError", "RequestError")
            continue
        items = [f"Passage {size}: {'gate ' * size}"] if size % 3 else []
        if step == "event":
            talk.ask(None, event={"number": number}, items=items)
            talk.answer(Message("assistant", "Noted."))
            continue
        talk.ask(f"Question {number}? {'x' * (size % 50)}", items=items)
        calls = (ToolCall(f"c{number}", "look", {}),)
        loop = [
            Message("assistant", None, calls),
            Message("tool", "a wall " * size, tool_call_id=f"c{number}"),
        ]
        talk.answer(*(loop if step == "loop" else [Message("assistant", "Behind the wall. " * (size % 20))]))
        if step == "loop":
            talk.contexts.append(assemble(talk.snapshot, talk.conversation, Request(), now=talk.now))
            talk.conversation.add([Message("assistant", "It is a wall.")])
    for before, now in zip(talk.contexts, talk.contexts[1:], strict=False):
        report = compare(before.prefix, now.prefix, counter)
        fixed = sum(now.prefix.prompt_tokens) + sum(now.prefix.tool_tokens)
        if before.view.history is now.view.history:
            same = 0
            for one, other in zip(all_sent(before), all_sent(now), strict=False):
                if one != other:
                    break
                same += count_message(counter, content_of(one), one.tool_calls)
            assert report.reused == fixed + same
        if report.broke is None and before.view.history is now.view.history:
            assert all_sent(now)[: len(all_sent(before))] == all_sent(before)


def all_sent(context: AssembledContext) -> list[Message]:
    return [*context.history, *([context.current_message] if context.current_message else [])]


def test_a_ledger_returns_the_same_bytes(tmp_path: Path) -> None:
    talk = Talk(load_configured(tmp_path))
    counter = SimpleTokenCounter()
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    for _ in turns(talk):
        talk.answer(Message("assistant", "Yes."))
    history = talk.conversation.history
    sums = history.sums(counter)
    counted = [Counted(one, sums[at + 1] - sums[at]) for at, one in enumerate(history.messages)]
    ledger.append("/home/a", "main", NewTurn(messages=tuple(counted), counter=counter.name))
    stored = ledger.history("/home/a", "main")
    assert stored is not None
    again = ContextManager()
    again.restore(
        [one.message for one in stored.messages],
        tokens=[one.tokens for one in stored.messages],
        counter=counter.name,
    )
    assert again.history.sent == history.sent
    assert [
        hit.snippet for hit in ledger.pages.search("Bors")
    ] == []  # what the user did not write is not found
    ledger.close()


@pytest.mark.parametrize("placement", ["event", "off"])
def test_a_loop_of_tools_that_goes_on_hours_later_is_told_the_time(tmp_path: Path, placement: str) -> None:
    config = f'{{"context": {{"datetime": {{"placement": "{placement}"}}}}}}'
    talk = Talk(load_configured(tmp_path, config))

    def step(number: int) -> AssembledContext:
        talk.answer(Message("assistant", None, (ToolCall(f"c{number}", "look", {}),)))
        talk.conversation.add_tool_result(f"c{number}", "look", "a wall")
        return talk.ask(None)

    talk.ask("Where is the gate?")
    assert step(1).current_message is None
    talk.now += timedelta(hours=6)
    late = step(2).current_message
    time = Message("user", "Current time: 2026-11-20 18:03 (UTC+00:00)")
    assert late == (time if placement == "event" else None)
    assert step(3).current_message is None
    talk.answer(Message("assistant", "Behind the wall."))
    talk.ask("Thanks.")
    check(talk)
    assert time in talk.contexts[-1].history or placement == "off"


@pytest.mark.parametrize("form", ["openai", "openai-responses", "anthropic", "gemini"])
def test_the_time_stands_behind_the_result(tmp_path: Path, form: str) -> None:
    talk = Talk(load_configured(tmp_path, '{"provider": {"model": "gpt-4o"}}'))
    talk.ask("Where is the gate?", format=form)
    talk.answer(Message("assistant", None, (ToolCall("c1", "look", {}),)))
    talk.conversation.add_tool_result("c1", "look", "a wall")
    talk.now += timedelta(hours=6)
    body = msgspec.json.encode(talk.ask(None, format=form).request)
    assert body.index(b"a wall") < body.index(b"Current time: 2026-11-20 18:02")


def test_results_in_a_users_content_are_a_loop_too(tmp_path: Path) -> None:
    snapshot, chat = load_configured(tmp_path), ContextManager()
    first = assemble(snapshot, chat, Request(Message("user", "Where is the gate?")), now=NOON)
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "a wall"}
    chat.add([first.turn_message, Message("assistant", [call]), Message("user", [result])])
    late = assemble(snapshot, chat, Request(), now=NOON + timedelta(hours=6)).current_message
    assert late == Message("user", "Current time: 2026-11-20 18:00 (UTC+00:00)")
