"""The walk with facts in every turn: what subjects are given, what is sent, what is counted."""

from collections.abc import Sequence
from typing import Any

import pytest
from benchmarks.conversation import traces, validity
from benchmarks.conversation.adapters.nexus_turns import EveryStep, EveryTurn
from benchmarks.conversation.adapters.plain import Everything
from benchmarks.conversation.anthropic_form import MAX_TOKENS, anthropic_body
from benchmarks.conversation.fact_quality import MINIMUM, MODELS, UNCUT, FactQuality, Vendor
from benchmarks.conversation.fact_walk import THINKING, Stored, walk_with_facts, with_unique_calls
from benchmarks.conversation.facts import count, text_of, tokens_of
from benchmarks.conversation.subject import WITH_FACTS
from benchmarks.conversation.turn_facts import PASSAGES, facts_of_turn

from nexus_context.tokens import get_model_limits

Message = dict[str, Any]

MARK = {"type": "ephemeral"}


def say(role: str, content: str | None, **more: Any) -> Message:
    return {"role": role, "content": content} | more


def call(*ids: str) -> Message:
    calls = [
        {"id": name, "type": "function", "function": {"name": "get", "arguments": '{"id":"HAT136"}'}}
        for name in ids
    ]
    return say("assistant", None, tool_calls=calls)


def result(name: str, content: str = "costs 455") -> Message:
    return say("tool", content, tool_call_id=name, name="get")


RULES = say("system", "rules " * 2_000)
CHAT = [
    RULES,
    say("user", "I am mia_li_3668"),
    call("a"),
    result("a"),
    say("assistant", "It costs 455."),
    say("user", "Then book it."),
    say("assistant", "mia_li_3668 has HAT136."),
]


def check(chat: Sequence[Message], subject: Any, vendor: Vendor, budget: int = UNCUT) -> FactQuality:
    """The quality of a walk."""
    return walk_with_facts(subject, chat, budget, vendor)


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
def test_who_stores_everything_is_never_refused_and_writes_everything_once(vendor: Vendor) -> None:
    quality = check(CHAT, Stored(Everything(0), vendor), vendor)
    assert (quality.requests, quality.full, quality.refused, quality.invalid) == (3, 0, 0, 0)
    chat = with_unique_calls(CHAT)
    fronts = iter(facts_of_turn(number).front for number in range(2))
    stored = [
        message | {"content": f"{next(fronts)}\n\n{message['content']}"}
        if message["role"] == "user"
        else message
        for message in chat
    ]
    thinking = count(THINKING) if vendor == "anthropic" else 0
    system = 4 if vendor == "anthropic" else 0  # Anthropic's system prompt is no message
    sent = [tokens_of(stored[:end]) + at * thinking - system for at, end in enumerate((2, 4, 6))]
    assert (quality.sent_tokens, quality.read_tokens) == (sum(sent), sum(sent[:2]))
    assert quality.paid == pytest.approx(
        0.1 * quality.read_tokens + 1.25 * (quality.sent_tokens - quality.read_tokens)
    )
    assert (quality.needed, quality.kept) == (3, 3)  # 455, mia_li_3668, HAT136


class Editing(Everything):
    """Writes something else into the first message each time."""

    def build(self) -> list[Message]:
        system, first, *others = super().build()
        return [system, first | {"content": f"{len(others)} {first['content']}"}, *others]


def test_thinking_behind_a_changed_message_is_refused_and_then_dropped() -> None:
    quality = check(CHAT, Stored(Editing(0), "anthropic"), "anthropic")
    assert (quality.requests, quality.refused, quality.invalid, quality.dropped) == (3, 2, 0, 1 + 2)
    assert quality.hit < 0.8
    assert check(CHAT, Stored(Editing(0), "openai"), "openai").refused == 0


def test_answers_that_say_the_same_have_their_own_thinking() -> None:
    chat = [
        RULES,
        *[say("user", "Go on."), say("assistant", "I do."), say("user", "Go."), say("assistant", "")] * 3,
    ]
    quality = check(chat, Stored(Everything(0), "anthropic"), "anthropic")
    assert (quality.requests, quality.refused, quality.invalid) == (6, 0, 0)
    quality = check(chat, Stored(Everything(0), "openai"), "openai")
    assert (quality.requests, quality.refused, quality.invalid) == (6, 0, 0)


class Newest(Everything):
    """Sends the newest message only."""

    def build(self) -> list[Message]:
        return super().build()[-1:]


def test_other_refusals_are_counted_apart() -> None:
    quality = check(CHAT, Stored(Newest(0), "anthropic"), "anthropic")
    assert (quality.requests, quality.refused, quality.invalid) == (3, 0, 1)
    assert quality.failure.startswith("Refused: 400 invalid_request_error: messages.0.content.0: unexpected")


def test_what_fits_is_not_measured_and_what_is_too_long_is_counted() -> None:
    assert check(CHAT, Stored(Everything(0), "openai"), "openai", 100_000).sent_tokens == 0
    quality = check(CHAT, Stored(Everything(0), "openai"), "openai", 1_000)
    assert (quality.full, quality.over_budget) == (3, 3)


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
@pytest.mark.parametrize("subject", [EveryStep, EveryTurn])
@pytest.mark.parametrize("budget", [16_000, UNCUT])
def test_what_nexus_sends_is_valid(subject: Any, vendor: Vendor, budget: int) -> None:
    chat = traces.synthetic(80)
    quality = check(chat, subject(budget, vendor), vendor, budget)
    assert (quality.invalid, quality.failure) == (0, "")
    assert quality.requests == sum(message["role"] == "assistant" for message in chat)
    assert quality.step_us > 0


def test_what_nexus_sends_has_the_facts_of_the_turn() -> None:
    subject = EveryStep(UNCUT, "openai")
    facts = facts_of_turn(0)
    subject.begin(RULES, facts)
    subject.begin(say("user", "Hello."), facts)
    body, taken = subject.build()
    text = text_of(body["messages"][-1])
    assert taken > 0
    assert text.endswith("\n\nHello.")
    for fact in (facts.file, f"line: {facts.line}", *facts.files, *facts.passages, "2026-11-23 09:00"):
        assert fact in text


def test_the_body_for_anthropic() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    chat = [say("system", "rules"), say("user", "hello"), call("a"), result("a", ""), say("assistant", "")]
    body = anthropic_body("claude", chat, [(), (), [thought], (), ()])
    assert body == {
        "model": "claude",
        "max_tokens": MAX_TOKENS,
        "system": [{"type": "text", "text": "rules", "cache_control": MARK}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {
                "role": "assistant",
                "content": [
                    thought,
                    {"type": "tool_use", "id": "a", "name": "get", "input": {"id": "HAT136"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": []}]},
        ],
        "cache_control": MARK,
    }


def test_ids_of_calls_become_unique() -> None:
    chat = [call("a", "b"), result("a"), result("b"), call("a"), result("a")]
    changed = with_unique_calls(chat)
    assert [one["id"] for message in (changed[0], changed[3]) for one in message["tool_calls"]] == [
        "call_0_0",
        "call_0_1",
        "call_3_0",
    ]
    assert [changed[at]["tool_call_id"] for at in (1, 2, 4)] == ["call_0_0", "call_0_1", "call_3_0"]
    assert not validity.has_broken_pair(changed)
    assert chat == [call("a", "b"), result("a"), result("b"), call("a"), result("a")]


def test_facts_of_a_turn_are_the_same_each_time_and_no_other_turns() -> None:
    facts = [facts_of_turn(number) for number in range(50)]
    assert facts == [facts_of_turn(number) for number in range(50)]
    assert len({one.front for one in facts}) == 50
    assert all(len(one.passages) == PASSAGES and one.file in one.files for one in facts)
    assert all(150 <= count(one.front) <= 300 for one in facts)
    lines = facts[0].front.splitlines()
    assert lines[0] == "Current time: 2026-11-23 09:00 (UTC)"
    assert facts[1].front.startswith("Current time: 2026-11-23 09:03 (UTC)\nactiveFile: src/")


def test_long_turns_are_valid_and_the_same_each_time() -> None:
    chat = traces.long_turns(4)
    assert chat == traces.long_turns(4)
    assert [message["role"] for message in chat].count("user") == 4
    assert not validity.has_broken_pair(chat)
    assert tokens_of(chat) > 4 * 10_000


def test_every_subject_with_facts_has_an_adapter() -> None:
    assert [name for name, entry in WITH_FACTS.items() if entry.home == "nexus"] == [
        "nexus",
        "nexus, once a turn",
        "everything, uncut",
    ]
    assert {vendor: get_model_limits(model).cache_minimum for vendor, model in MODELS.items()} == MINIMUM
