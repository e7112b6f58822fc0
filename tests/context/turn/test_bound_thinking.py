"""Reasoning comes back only behind what it was bound to: a provider that checks it never refuses."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger import open_ledger
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.store import Ledger
from nexus_context.memory.item import MemoryItem
from nexus_context.tokens import counter_for
from nexus_context.turn.assembly import assemble
from nexus_context.turn.git import GitState
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.prefix import compare
from nexus_context.turn.request import AssembledContext, Options, Request
from support.fixture import write_fixture
from support.folders import load_folder
from support.ledgers import turn_of
from support.strict_provider import Answer, Pricing, Reply, StrictProvider

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TOOL = {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}
MODELS = ("claude-opus-5-5", "claude-fable-5-1")
FILES = """
//- /home/a/.nexus3/config.json
{"provider": {"model": "claude-opus-5-5"}, "parameters": {"thinking": {"level": "high"}},
 "context": {"max_tokens": 6000, "reserve_tokens": 500}}
//- /home/a/.nexus3/NEXUS.md
RULES
"""


class Chat:
    """A conversation with a strict provider, by a program that appends what it sent and got."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seconds = 0.0
        self.provider = StrictProvider(
            "anthropic",
            clock=lambda: self.seconds,
            count=lambda text: len(text) // 4,
            pricing=Pricing(5, 25, 0.5, 6.25),
        )
        self.snapshot = self.with_rules("Be brief.")
        self.conversation = ContextManager(started=NOON)
        self.model = MODELS[0]
        self.contexts: list[AssembledContext] = []
        self.replies: list[Reply] = []

    def with_rules(self, text: str) -> Snapshot:
        return load_folder(write_fixture(FILES.replace("RULES", text), self.root), "/home/a")

    def request(self, text: str | None, *, thinking: tuple[str, ...], calls: bool = False) -> Message:
        """Send a request; returns the answer as a message."""
        self.seconds += 20
        memory = [MemoryItem("knowledge", "notes", f"Passage {len(self.replies)}.", 1.5)] if text else []
        request = Request(
            message=None if text is None else Message("user", text),
            format="anthropic",
            options=Options(model=self.model, additional_tools=[TOOL]),
            git=GitState(branch=f"branch-{len(self.replies)}"),
        )
        now = NOON + timedelta(seconds=self.seconds)
        context = assemble(self.snapshot, self.conversation, request, now=now, memory=memory)
        assert context.request is not None
        answer = Answer("Behind the wall.", thinking, [("look", {})] if calls else ())
        reply = self.provider.send(context.request, answer)
        self.contexts.append(context)
        self.replies.append(reply)
        blocks = reply.message["content"]
        called = tuple(
            ToolCall(one["id"], one["name"], one["input"]) for one in blocks if one["type"] == "tool_use"
        )
        message = Message("assistant", [one for one in blocks if one["type"] != "tool_use"], called)
        self.conversation.add([context.turn_message, message])
        return message

    def ask(self, text: str = "Where is the gate?", *, loops: int = 0, result: str = "A wall.") -> None:
        """One turn of the user, with as many tool calls."""
        answer = self.request(text, thinking=("Hm.",), calls=loops > 0)
        for left in reversed(range(loops)):
            (call,) = answer.tool_calls
            self.conversation.add([Message("tool", result, tool_call_id=call.id)])
            answer = self.request(None, thinking=("So.", "Well."), calls=left > 0)

    def restart(self, ledger: Ledger, session: str) -> None:
        """Write everything to a ledger, and go on with what it returns."""
        history = self.conversation.history
        ledger.append("/home/a", session, turn_of(*history.messages))
        stored = ledger.history("/home/a", session)
        assert stored is not None
        self.conversation = ContextManager()
        self.conversation.add(one.message for one in stored.messages)

    def thinking_sent(self) -> int:
        """Blocks of reasoning in the last request."""
        body: Mapping[str, Any] = self.contexts[-1].request or {}
        blocks = [
            block for one in body["messages"] if isinstance(one["content"], list) for block in one["content"]
        ]
        return sum(block["type"] == "thinking" for block in blocks)


def test_reasoning_comes_back_as_long_as_nothing_changed(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    for _ in range(3):
        chat.ask(loops=2)
    assert chat.thinking_sent() == 13  # all but those of the last answer
    assert all(reply.dropped == () for reply in chat.replies)


@pytest.mark.parametrize("change", ["compaction", "model"])
def test_a_change_lapses_what_was_bound_to_it(tmp_path: Path, change: str) -> None:
    chat = Chat(tmp_path)
    for _ in range(3):
        chat.ask("Where is the gate? " * 20)
    before = chat.thinking_sent()
    if change == "model":
        chat.model = MODELS[1]
    else:
        chat.conversation.compact(made_at=NOON)
    chat.ask("And now?")
    report = compare(chat.contexts[-2].prefix, chat.contexts[-1].prefix, counter_for(chat.model))
    assert report.lapsed == 2
    assert (before, chat.thinking_sent()) == (2, 0)
    repairs = [repair.kind for repair in chat.contexts[-1].metadata["repairs"]]
    assert set(repairs) == {"thinking-left-out"}
    chat.ask("And then?")
    assert chat.thinking_sent() == 1  # the one since
    if change == "compaction":
        chat.conversation.undo_compaction()
        chat.ask("As before?")
        assert chat.thinking_sent() == 3


def test_an_edit_of_the_rules_is_told_and_lapses_nothing(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    for _ in range(3):
        chat.ask("Where is the gate? " * 20)
    chat.snapshot = chat.with_rules("Be thorough.")
    chat.ask("And now?")
    assert chat.thinking_sent() == 3
    assert "Be thorough." in str((chat.contexts[-1].request or {})["messages"])


def test_what_another_process_goes_on_with_is_bound_to_the_same(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    chat.ask(loops=1)
    chat.restart(ledger, "main")
    chat.ask()
    assert chat.thinking_sent() == 3
    ledger.close()


def test_what_a_server_compacted_is_what_the_next_reasoning_is_bound_to(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    chat.ask(loops=1)
    request = Request(
        message=Message("user", "And now?"),
        format="anthropic",
        options=Options(model=chat.model, additional_tools=[TOOL]),
    )
    context = assemble(chat.snapshot, chat.conversation, request, now=NOON)
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    block = {"type": "compaction", "content": "They looked.", "signature": "c2ln"}
    text = {"type": "text", "text": "Behind the wall."}
    calls = (ToolCall("c", "look", {}),)
    chat.conversation.add(
        [
            context.turn_message,
            Message("assistant", [thinking, block, thinking, text], calls),
            Message("tool", "A wall.", tool_call_id="c"),
            Message("assistant", [thinking, text]),
        ]
    )
    chat.contexts.append(assemble(chat.snapshot, chat.conversation, request, now=NOON))
    body = chat.contexts[-1].request
    assert body is not None
    assert [block["type"] for block in body["messages"][0]["content"]] == [
        "compaction", "thinking", "text", "tool_use",
    ]  # fmt: skip
    assert chat.thinking_sent() == 2  # what precedes the compaction went with the rest
    assert chat.contexts[-1].metadata.get("repairs", []) == []
    chat.conversation.undo_compaction()
    chat.contexts.append(assemble(chat.snapshot, chat.conversation, request, now=NOON))
    assert chat.thinking_sent() == 4  # three of the first turn, and what precedes the compaction


STEPS = st.sampled_from(["ask", "ask", "loop", "long", "rules", "compact", "undo", "model", "restart"])


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(STEPS, st.integers(0, 60)), max_size=18))
def test_no_request_is_refused(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    chat = Chat(tmp_path)
    ledger = open_ledger(str(tmp_path / f"{uuid4()}.db"))
    for number, (step, size) in enumerate(steps):
        if step in ("ask", "loop", "long"):
            result = "A wall. " * (size * 60 if step == "long" else size)
            chat.ask(
                f"Where is gate {number}?" * (1 + size),
                loops=0 if step == "ask" else 1 + size % 3,
                result=result,
            )
        elif step == "rules":
            chat.snapshot = chat.with_rules(f"Be brief {size % 3}.")
        elif step == "model":
            chat.model = MODELS[size % 2]
        elif step == "restart" and len(chat.conversation):
            chat.restart(ledger, f"s{number}")
        else:
            try:
                if step == "undo":
                    chat.conversation.undo_compaction()
                elif step == "compact":
                    chat.conversation.compact(made_at=NOON)
            except (RequestError, LedgerError) as error:
                assert error.code in ("unknown-compaction", "nothing-to-compact", "no-gain", "no-summary"), (
                    error.code
                )
    ledger.close()


# ---------------------------------------------------------------- which request an answer answers

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def requested(chat: Chat, text: str | None, **options: Any) -> AssembledContext:
    """A request that is assembled, and not answered yet."""
    chat.seconds += 20
    request = Request(
        message=None if text is None else Message("user", text),
        format="anthropic",
        options=Options(**{"model": chat.model, "additional_tools": [TOOL]} | options),
    )
    now = NOON + timedelta(seconds=chat.seconds)
    chat.contexts.append(assemble(chat.snapshot, chat.conversation, request, now=now))
    return chat.contexts[-1]


def titles(chat: Chat, count: int) -> None:
    """Requests for titles, of which nobody appends the answer."""
    for number in range(count):
        requested(chat, f"A title of {number} words?", model=MODELS[1], additional_tools=[])


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("named", [True, False])
def test_another_request_before_the_answer_loses_nothing(tmp_path: Path, count: int, named: bool) -> None:
    """In a loop of tools, too, whose requests have no message; with `turn_message`, and without."""
    chat = Chat(tmp_path)
    first = requested(chat, "Where is the gate?")
    titles(chat, count)
    question = (
        first.turn_message
        if named
        else Message("user", "Where is the gate?", preamble=first.turn_message.preamble)
    )
    call = (ToolCall("c", "look", {}),)
    chat.conversation.add([question, Message("assistant", [THOUGHT], call)])
    chat.conversation.add([Message("tool", "A wall.", tool_call_id="c")])
    second = requested(chat, None)
    titles(chat, count)
    chat.conversation.add(
        [
            *([second.turn_message] if named else []),
            Message("assistant", [THOUGHT, {"type": "text", "text": "There."}]),
        ]
    )
    assert [message.role for message in chat.conversation.messages[1:]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert chat.conversation.frozen == first.proposal.frozen
    last = requested(chat, "And now?")
    assert (chat.thinking_sent(), last.metadata.get("repairs", [])) == (2, [])


def test_an_answer_to_a_forgotten_request_is_sent_without_its_reasoning(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    first = requested(chat, "Where is the gate?")
    titles(chat, 8)
    answer = Message("assistant", [THOUGHT, {"type": "text", "text": "There."}])
    chat.conversation.add([first.turn_message, answer])
    for model in (chat.model, "claude-sonnet-4-5"):  # the second does not check what reasoning was bound to
        last = requested(chat, "And now?", model=model)
        kinds = [repair.kind for repair in last.metadata["repairs"]]
        assert (chat.thinking_sent(), kinds) == (0, ["thinking-left-out"])


def test_an_answer_that_comes_late_is_bound_to_its_own_request(tmp_path: Path) -> None:
    """Undoing what was compacted meanwhile brings its reasoning back."""
    chat = Chat(tmp_path)
    for _ in range(3):
        chat.ask("Where is the gate? " * 20)
    late = requested(chat, "And the tower?")
    chat.conversation.compact(made_at=NOON)
    chat.conversation.add(
        [late.turn_message, Message("assistant", [THOUGHT, {"type": "text", "text": "There."}])]
    )
    requested(chat, "And now?")
    assert chat.thinking_sent() == 0
    chat.conversation.undo_compaction()
    requested(chat, "And now?")
    assert chat.thinking_sent() == 4


def test_a_failed_write_forgets_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    chat = Chat(tmp_path)
    chat.conversation = ContextManager(ledger=ledger, folder=tmp_path, clock=lambda: NOON)
    first = requested(chat, "Where is the gate?")
    answer = Message("assistant", [THOUGHT, {"type": "text", "text": "There."}])
    with monkeypatch.context() as patch:
        patch.setattr(
            ledger, "append", lambda *_: (_ for _ in ()).throw(LedgerError("full", code="ledger-full"))
        )
        with pytest.raises(LedgerError):
            chat.conversation.add([first.turn_message, answer])
    chat.conversation.add([first.turn_message, answer])
    requested(chat, "And now?")
    assert chat.thinking_sent() == 1
    ledger.close()
