"""A counter with only `count` and `count_messages`, wherever a counter is taken."""

from pathlib import Path
from typing import Any

import pytest

from nexus_context import agents, assembly
from nexus_context.conversation.compaction.run import select_messages_for_compaction
from nexus_context.conversation.message import Message
from nexus_context.manager import ContextManager
from nexus_context.tokens import PlainCounter, SimpleTokenCounter, complete
from support.fixture import write_fixture
from support.pools import pool_of


class Words:
    """Counts words, and nothing else."""

    __hash__ = None  # type: ignore[assignment]

    def count(self, text: str) -> int:
        return len(text.split())

    def count_messages(self, messages: list[Message]) -> int:
        return sum(self.count(str(message.content)) + 4 for message in messages)


def check(counter: Any, figures: dict[str, int]) -> None:
    """The figures of a conversation of two messages and a prompt, by this counter."""
    made = ContextManager(counter=counter)
    made.set_system_prompt("Be brief.")
    made.add_user_message("one two three")
    made.add_assistant_message("four")
    usage = made.get_token_usage()
    assert {name: usage[name] for name in figures} == figures
    assert usage["total"] == usage.total == sum(row.tokens for row in usage.rows)


def test_a_counter_of_ones_own_counts() -> None:
    check(
        Words(), {"system": 6, "tools": 0, "messages": 12, "total": 18, "budget": 8_000, "available": 6_000}
    )


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
        ContextManager(counter="words")  # type: ignore[arg-type]


def test_the_rows_of_a_folder_sum_up(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/NEXUS.md\n# Rules\nBe brief.\n\n## More\nUse tabs.\n", tmp_path)
    agent: agents.Agent = pool_of(fixture, "/home/a").main
    counter = Words()
    usage = assembly.usage_of(agent.snapshot, agent.conversation, counter=counter)
    assert usage == agent.usage(counter=counter)
    assert usage.total == sum(row.tokens for row in usage.rows) > 20
    assert sum(part.tokens for part in usage.parts) == usage["system"]


def test_messages_are_selected_by_it() -> None:
    messages = [Message("user" if at % 2 == 0 else "assistant", "word " * 10) for at in range(6)]
    summarized, preserved = select_messages_for_compaction(messages, Words(), 200, 0.25)  # 50 tokens
    assert (len(summarized), len(preserved)) == (4, 2)
    assert [*summarized, *preserved] == messages
