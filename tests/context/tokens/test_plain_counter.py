"""A counter of the caller, wherever a counter is taken."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nexus_context import agents
from nexus_context.conversation.budget import ContextConfig
from nexus_context.conversation.compaction.run import select_messages_for_compaction
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.errors import RequestError
from nexus_context.tokens import PlainCounter, SimpleTokenCounter, complete, get_token_counter
from nexus_context.turn.assembly import usage_of
from nexus_context.turn.manager import ContextManager
from support.fixture import write_fixture
from support.pools import pool_of


class Words:
    """Counts words, and nothing else."""

    __hash__ = None  # type: ignore[assignment]

    def count(self, text: str) -> int:
        return len(text.split())

    def count_messages(self, messages: list[Message]) -> int:
        return sum(self.count(str(message.content)) + 4 for message in messages)


def test_a_counter_of_ones_own_counts() -> None:
    """The figures of a conversation of two messages and a prompt, by this counter."""
    figures = {"system": 6, "tools": 0, "messages": 12, "total": 18, "budget": 8_000, "available": 6_000}
    made = ContextManager(counter=Words())
    made.set_system_prompt("Be brief.")
    made.add_user_message("one two three")
    made.add_assistant_message("four")
    usage = made.get_token_usage()
    assert {name: usage[name] for name in figures} == figures
    assert usage["total"] == usage.total == sum(row.tokens for row in usage.rows)


def test_every_figure_has_a_name() -> None:
    made = ContextManager(counter=Words())
    made.add_user_message("one")
    usage = made.get_token_usage()
    assert dict(usage) == {
        "system": 0,
        "tools": 0,
        "messages": 5,
        "memory": 0,
        "event": 0,
        "total": 5,
        "budget": 8_000,
        "available": 6_000,
        "remaining": 5_995,
    }
    assert isinstance(usage, Mapping)
    assert list(usage) == list(usage.keys()) == [name for name, _ in usage.items()]
    assert sum(usage.values()) == sum(dict(usage).values())
    assert ("total" in usage, "totals" in usage, len(usage)) == (True, False, 9)
    assert (usage.get("total"), usage.get("totals"), usage.get("totals", 0)) == (5, None, 0)
    with pytest.raises(KeyError, match="'totals' is not a figure of the usage"):
        usage["totals"]


def test_an_adapter_belongs_to_its_counter() -> None:
    one, other = Words(), Words()
    assert complete(one) is complete(one)
    assert complete(one).name != complete(other).name
    assert isinstance(complete(one), PlainCounter)
    assert not complete(one).exact
    simple = SimpleTokenCounter()
    assert complete(simple) is simple


def test_what_cannot_count_is_refused() -> None:
    with pytest.raises(TypeError, match=r"str is not a token counter: it needs count\(text\)"):
        ContextManager(counter="words")


def test_the_rows_of_a_folder_sum_up(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/NEXUS.md\n# Rules\nBe brief.\n\n## More\nUse tabs.\n", tmp_path)
    agent: agents.Agent = pool_of(fixture, "/home/a").main
    counter = Words()
    usage = usage_of(agent.snapshot, agent.conversation, counter=counter)
    assert usage == agent.usage(counter=counter)
    assert usage.total == sum(row.tokens for row in usage.rows) > 20
    assert sum(part.tokens for part in usage.parts) == usage["system"]


def test_messages_are_selected_by_it() -> None:
    messages = [Message("user" if at % 2 == 0 else "assistant", "word " * 10) for at in range(6)]
    summarized, preserved = select_messages_for_compaction(messages, Words(), 200, 0.25)  # 50 tokens
    assert (len(summarized), len(preserved)) == (4, 2)
    assert [*summarized, *preserved] == messages


# ---------------------------------------------------------------- counters as programs write them


class Letters:
    """Needs nothing but `count`."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def count(self, text: str) -> Any:
        self.counted.append(text)
        return len(text)


class Sized(Letters):
    """Says what a message costs: its letters and 100; 1,000 for one of the system."""

    def count_messages(self, messages: list[Any]) -> int:
        return sum(len(str(one.content)) + (1000 if one.role == "system" else 100) for one in messages)


class Odd(Letters):
    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result

    def count(self, text: str) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def test_a_counter_needs_count_alone() -> None:
    made = ContextManager(counter=Letters())
    made.add_user_message("12345")
    assert made.get_token_usage()["messages"] == 9


def test_what_a_counter_says_of_a_message_is_what_counts_and_cuts() -> None:
    made = ContextManager(counter=Sized(), config=ContextConfig(max_tokens=2_600, reserve_tokens=0))
    made.set_system_prompt("Brief")
    for number in range(20):
        made.add_user_message(f"{number:05}")
        made.add_assistant_message("x" * 5)
    usage = made.get_token_usage()
    assert (usage["system"], usage["messages"]) == (1005, 7 * 105)
    assert made.counter.count_messages(made.build_messages()) == usage.total < 2_600


def test_dictionaries_are_counted_as_messages() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
    as_dictionaries: list[Any] = [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    messages = [Message("user", "Look"), Message("assistant", None, (ToolCall("c", "read", {"path": "a"}),))]
    for counter in (get_token_counter(), SimpleTokenCounter(), complete(Letters())):
        assert counter.count_messages(as_dictionaries) == counter.count_messages(messages) > 10


def test_a_fraction_is_rounded_up_and_nothing_is_below_zero() -> None:
    assert [complete(Odd(result)).count("a") for result in (1.2, 3, -4, 0.0)] == [2, 3, 0, 0]


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (OSError("no server"), "The token counter failed: Odd.count raised OSError: no server."),
        (None, "Odd.count returned None; it must return a number of tokens."),
        (float("nan"), "Odd.count returned nan; it must return a number of tokens."),
        (True, "Odd.count returned True; it must return a number of tokens."),
    ],
)
def test_a_counter_that_fails_is_named(result: Any, told: str) -> None:
    made = ContextManager(counter=Odd(result))
    with pytest.raises(RequestError) as caught:
        made.add_user_message("one")
        made.get_token_usage()
    assert (caught.value.code, str(caught.value)) == ("bad-counter", told)


def test_a_slow_counter_is_asked_once_for_a_text() -> None:
    counter = Letters()
    made = ContextManager(counter=counter)
    made.set_system_prompt("Be brief.")
    for number in range(5):
        made.add_user_message(f"number {number}")
        made.get_token_usage()
        made.build_messages()
    assert len(counter.counted) == len(set(counter.counted))
