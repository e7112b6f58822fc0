"""A compaction that a provider's server made: out of the answer, first in what is sent, and the way back."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from nexus_context.conversation.budget import ContextConfig
from nexus_context.conversation.compaction.server import SplitTurn, split_turn
from nexus_context.conversation.history import History
from nexus_context.conversation.identifiers import IdentifierIndex
from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.conversation.summary import is_summary, summary_of
from nexus_context.conversation.truncation import STRATEGIES
from nexus_context.conversation.window import Budget, Policy, Window
from nexus_context.errors import ContextOverflowError, RequestError
from nexus_context.ledger import open_ledger
from nexus_context.tokens import SimpleTokenCounter
from nexus_context.turn.manager import ContextManager

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
BLOCK = {"type": "compaction", "content": "They looked for the gate.", "signature": "c2ln"}
SEALED = {"type": "compaction", "encrypted_content": "c2VhbGVk", "content": None}
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": "ZW5j"}
FAILED = {"type": "compaction", "content": None}
TEXT = {"type": "text", "text": "Behind the wall."}
EARLIER = {"type": "text", "text": "Let me see."}
MARK = {"type": "tool_call", "id": "c"}
CALL = ToolCall("c", "look")
QUESTION = Message("user", "Where?")
RESULT = Message("tool", "A wall.", tool_call_id="c")
UNREADABLE = "[The conversation so far was compacted by a server of {}, in a form that only it can read.]"


def answer(*parts: Any, calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message("assistant", list(parts), calls)


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ([QUESTION, answer(TEXT)], SplitTurn([QUESTION, answer(TEXT)])),
        ([QUESTION, answer(FAILED, TEXT)], SplitTurn([QUESTION, answer(FAILED, TEXT)])),
        ([Message("user", [BLOCK])], SplitTurn([Message("user", [BLOCK])])),
        ([QUESTION, answer(BLOCK, TEXT)], SplitTurn((QUESTION, answer(TEXT)), answer(BLOCK), 1)),
        (  # a result stays with its call
            [QUESTION, answer(ITEM, calls=(CALL,)), RESULT],
            SplitTurn((QUESTION, Message("assistant", None, (CALL,)), RESULT), answer(ITEM), 2),
        ),
        (  # what the compaction stands for is not sent behind it
            [answer(EARLIER, BLOCK, TEXT, calls=(CALL,)), RESULT],
            SplitTurn((answer(EARLIER), answer(TEXT, calls=(CALL,)), RESULT), answer(BLOCK), 2),
        ),
        (
            [answer(MARK, BLOCK, TEXT, calls=(CALL,)), RESULT],
            SplitTurn((answer(MARK, TEXT, calls=(CALL,)), RESULT), answer(BLOCK), 2),
        ),
        ([QUESTION, answer(BLOCK)], SplitTurn((QUESTION,), answer(BLOCK), 0)),
        ([answer(BLOCK)], SplitTurn((), answer(BLOCK), 0)),
        (  # the last one wins, in a message and in a turn
            [answer(BLOCK, EARLIER, ITEM, TEXT)],
            SplitTurn((answer(EARLIER), answer(TEXT)), answer(ITEM), 1),
        ),
        (
            [answer(ITEM, calls=(CALL,)), RESULT, answer(BLOCK, TEXT), QUESTION],
            SplitTurn(
                (Message("assistant", None, (CALL,)), RESULT, answer(TEXT), QUESTION), answer(BLOCK), 2
            ),
        ),
    ],
)
def test_it_is_taken_out_of_its_turn(turn: list[Message], expected: SplitTurn) -> None:
    assert split_turn(turn) == expected


@pytest.mark.parametrize(
    ("message", "summary"),
    [
        (answer(BLOCK), "They looked for the gate."),
        (answer(SEALED), UNREADABLE.format("Anthropic")),
        (answer(ITEM), UNREADABLE.format("OpenAI")),
        (answer(FAILED), None),
        (answer(BLOCK, TEXT), None),
        (answer(BLOCK, calls=(CALL,)), None),
        (Message("user", [BLOCK]), None),
        (answer(), None),
    ],
)
def test_it_is_a_summary(message: Message, summary: str | None) -> None:
    assert is_summary(message) == (summary is not None)
    if summary is not None:
        assert summary_of(message) == summary


# ---------------------------------------------------------------- a conversation


def chat(ledger: Any = None, *, max_tokens: int = 4_000) -> ContextManager:
    config = ContextConfig(max_tokens=max_tokens, reserve_tokens=500)
    bound: dict[str, Any] = {} if ledger is None else {"ledger": ledger, "folder": "/work/castle"}
    return ContextManager(config, counter=SimpleTokenCounter(), clock=lambda: NOON, started=NOON, **bound)


def sent(conversation: ContextManager) -> list[Any]:
    return [message.content for message in conversation.messages]


@pytest.mark.parametrize("stored", [False, True])
def test_the_next_request_begins_with_it_until_it_is_undone(tmp_path: Any, *, stored: bool) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db")) if stored else None
    conversation = chat(ledger)
    conversation.add([QUESTION, answer(EARLIER)])
    conversation.add([QUESTION, answer(BLOCK, TEXT)])
    assert sent(conversation) == [[BLOCK], [TEXT]]
    conversation.add([QUESTION, answer(EARLIER)])
    assert sent(conversation) == [[BLOCK], [TEXT], "Where?", [EARLIER]]
    conversation.add([answer(ITEM)])
    assert sent(conversation) == [[ITEM]]
    assert sent(chat(ledger))[:1] == ([[ITEM]] if stored else sent(chat())[:1])
    conversation.undo_compaction()
    assert sent(conversation) == [[BLOCK], [TEXT], "Where?", [EARLIER]]
    conversation.add([QUESTION])
    conversation.undo_compaction()
    opening = "[Session started: 2026-11-23 12:00 (local)]"
    expected = ["Where?", [EARLIER], "Where?", [TEXT], "Where?", [EARLIER], "Where?"]
    assert sent(conversation) == [opening, *expected]
    with pytest.raises(RequestError):
        conversation.undo_compaction()


def test_its_receipt_says_what_it_did_and_claims_nothing_lost(tmp_path: Any) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    conversation = chat(ledger)
    conversation.add([QUESTION, answer(EARLIER)])
    before = conversation.get_token_usage().total
    conversation.add([QUESTION, answer(BLOCK, TEXT)])
    stored = ledger.pages.receipt("/work/castle", "main")
    after = conversation.get_token_usage().total
    conversation.undo_compaction()
    receipt = dict(stored.receipt)
    assert (receipt.pop("id"), bool(receipt.pop("created"))) == (stored.receipt["id"], True)
    assert receipt == {
        "reason": "provider",
        "summarizer": "anthropic",
        "replacedMessages": 4,  # with the opening
        "tokensBefore": conversation.get_token_usage().total,
        "tokensAfter": after,
        "lost": {
            "paths": [],
            "commands": [],
            "identifiers": [],
            "errors": [],
            "instructions": [],
            "decisions": [],
            "rules": [],
            "counts": {},
        },
        "failures": [],
        "opaque": True,
        "text": "They looked for the gate.",
    }
    assert before < conversation.get_token_usage().total
    assert stored.in_force


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [1, 6_000])
def test_no_strategy_cuts_it(strategy: Any, size: int) -> None:
    block = ITEM | {"encrypted_content": "x" * size}
    messages = [answer(block), answer(TEXT)]
    for number in range(80):
        messages += [Message("user", f"Where is gate_{number}? " * 8), answer(EARLIER)]
    policy = Policy(strategy=strategy)
    view = Window(History(messages), SimpleTokenCounter(), policy).fit(Budget(2_000, 0))
    assert view.messages()[0] == messages[0]
    assert view.removed > 0
    assert not view.over


def test_a_request_that_it_does_not_fit_is_refused() -> None:
    conversation = chat()
    conversation.add([QUESTION, answer(ITEM | {"encrypted_content": "x" * 5_000_000}, TEXT)])
    with pytest.raises(ContextOverflowError) as refused:
        conversation.build_messages()
    assert str(refused.value) == (
        "The context does not fit: the compaction by the provider takes 128,004 of the 128,012 tokens that "
        "stay, and 3,500 of 3,500 are left for the conversation. Shorten the message, the system prompt or "
        "the tools, undo the compaction, or choose a model with a larger window."
    )
    conversation.undo_compaction()
    assert [text_of(one) for one in conversation.build_messages()][-1] == "Behind the wall."


def test_names_in_it_are_not_told_again() -> None:
    block = BLOCK | {"content": "They edited src/gate.py in commit 4f2a9c1."}
    messages = [answer(block), answer(TEXT)]
    for number in range(80):
        messages += [Message("user", f"Where is gate_{number}? " * 8), answer(EARLIER)]
    view = Window(History(messages), SimpleTokenCounter(), Policy()).fit(Budget(2_000, 0))
    assert view.note is not None
    assert "gate_1" in text_of(view.note)
    assert "src/gate.py" not in text_of(view.note)
    index = IdentifierIndex()
    index.extend(messages[:1])
    assert list(index.ranked()) == []


@pytest.mark.parametrize(
    ("part", "provider", "text"),
    [
        (BLOCK, "anthropic", "They looked for the gate."),
        (SEALED, "anthropic", UNREADABLE.format("Anthropic")),
        (ITEM, "openai", UNREADABLE.format("OpenAI")),
    ],
)
def test_a_later_compaction_replaces_it_with_what_can_be_read(
    part: dict[str, Any], provider: str, text: str
) -> None:
    conversation = chat()
    conversation.add([QUESTION, answer(part, TEXT)])
    for number in range(30):
        conversation.add([Message("user", f"Where is gate_{number}? " * 8), answer(EARLIER)])
    receipt = conversation.compact(made_at=NOON)
    assert receipt.replaced_opaque == provider
    assert receipt.opaque is msgspec.UNSET
    first = conversation.history.messages[0]
    assert is_summary(first)
    assert first.role == "user"
    assert text in text_of(first)
    conversation.undo_compaction()
    assert conversation.history.messages[0] == answer(part)
