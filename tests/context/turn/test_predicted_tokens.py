"""The tokens that a usage predicts are those of the body, in every format: one small example each."""

from pathlib import Path
from typing import Any

import pytest

from nexus_context.conversation.budget import EARLIER_CHANGES
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.ledger import open_ledger
from nexus_context.turn.prefix import compare
from support.strict_walk import MODELS, Letters, Model, Walk

OPUS, FABLE, SONNET = MODELS[:3]


def walked(root: Path, model: Model) -> Walk:
    """A walk with one turn; every request checks what was predicted."""
    walk = Walk(root, open_ledger(str(root / "ledger.db")), model, window=1_000_000)
    walk.ask(0, "Where?")
    return walk


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_note_costs_what_it_is_sent_as(tmp_path: Path, model: Model) -> None:
    walk = walked(tmp_path, model)
    walk.loop(0, "Who?", ["A wall. " * 300])
    walk.snapshot = walk.with_rules("Be thorough.")
    walk.ask(0, "And now?")
    assert "Be thorough." in str(walk.sent[-1].context.request or {})
    walk.ask(0, "Why?")
    rows = {row.label: row.tokens for row in walk.sent[-1].context.usage.rows}
    assert rows[EARLIER_CHANGES] > 0


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_an_empty_result_costs_its_text(tmp_path: Path, model: Model) -> None:
    walk = walked(tmp_path, model)
    walk.loop(0, "Who?", [""])


@pytest.mark.parametrize("other", MODELS, ids=str)
@pytest.mark.parametrize("model", [OPUS, MODELS[4]], ids=str)
def test_reasoning_that_is_left_out_costs_nothing(tmp_path: Path, model: Model, other: Model) -> None:
    walk = walked(tmp_path, model)
    walk.loop(0, "Who?", ["A wall."])
    walk.model = other
    walk.ask(0, "And now?")
    walk.model = model
    walk.ask(0, "And then?")


@pytest.mark.parametrize(
    ("block", "other"),
    [
        ({"type": "compaction", "content": "They looked.", "signature": "c2ln"}, MODELS[4]),
        ({"type": "compaction", "id": "co_1", "encrypted_content": "c2ln"}, OPUS),
    ],
)
def test_a_compaction_by_another_server_costs_its_text(tmp_path: Path, block: Any, other: Model) -> None:
    walk = walked(tmp_path, MODELS[4] if other is OPUS else OPUS)
    content = [block, {"type": "text", "text": "So."}]
    walk.windows[0].add([Message("user", "Go on."), Message("assistant", content)])
    walk.model = other
    walk.ask(0, "And now?")
    assert "compact" in str(walk.sent[-1].context.request)


@pytest.mark.parametrize("model", [OPUS, SONNET], ids=str)
def test_the_text_that_asks_to_continue_is_part_of_the_conversation(tmp_path: Path, model: Model) -> None:
    walk = walked(tmp_path, model)
    walk.ask(0, None)
    context = walk.sent[-1].context
    assert context.turn_message.content == "[Continue.]"
    walk.ask(0, "And now?")
    assert walk.sent[-1].reply.usage.cache_read == walk.sent[-2].reply.usage.sent


def test_a_session_that_was_read_again_is_predicted_to_be_reused(tmp_path: Path) -> None:
    walk = walked(tmp_path, OPUS)
    walk.reopen(0)
    walk.ask(0, "And now?")
    assert walk.sent[-1].reply.usage.cache_read == walk.sent[-2].reply.usage.sent


def test_a_message_that_a_cut_left_out_is_not_predicted_to_be_reused(tmp_path: Path) -> None:
    walk = Walk(tmp_path, open_ledger(str(tmp_path / "ledger.db")), OPUS, window=5_000)
    walk.loop(0, "Who?", ["A wall. " * 100])
    while not walk.sent[-1].context.view.start:
        walk.ask(0, "And now? " * 60)
    first, last = (sent.context.prefix for sent in (walk.sent[0], walk.sent[-1]))
    report = compare(first, last, Letters(1))
    assert report.broke is not None
    assert report.reused == first.tokens  # the opening message, not the one that followed it


def test_another_setting_of_thinking_ends_the_reuse(tmp_path: Path) -> None:
    walk = walked(tmp_path, SONNET)
    calls = (ToolCall("c", "look", {}),)
    walk.windows[0].add([Message("user", "Who?"), Message("assistant", None, calls)])
    walk.windows[0].add([Message("tool", "A wall.", tool_call_id="c")])
    walk.ask(0, None)  # an answer without reasoning before it: the model is not told to think
    assert "thinking" not in (walk.sent[-1].context.request or {})
