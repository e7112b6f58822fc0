"""When a conversation is compacted, and which messages stay."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.compaction.detection import (
    CompactionSettings,
    Reason,
    settings_of,
    should_compact,
)
from nexus_context.conversation.compaction.selection import select, select_messages_for_compaction
from nexus_context.conversation.groups import group_starts
from nexus_context.conversation.message import Message, content_of
from nexus_context.tokens import count_message
from support.chats import chat
from support.histories import Letters, histories


@pytest.mark.parametrize(
    ("percent", "messages", "tool_calls", "explicit", "reason"),
    [
        (0.0, 0, 0, False, None),
        (79.9, 99, 49, False, None),
        (80.0, 0, 0, False, "token_limit"),
        (100.0, 100, 50, False, "token_limit"),
        (10.0, 100, 50, False, "message_count"),
        (10.0, 99, 50, False, "tool_count"),
        (10.0, 0, 0, True, "explicit"),
        (99.0, 100, 50, True, "explicit"),
    ],
)
def test_the_first_reason_that_holds(
    percent: float, messages: int, tool_calls: int, explicit: bool, reason: Reason | None
) -> None:
    settings = CompactionSettings()
    found = should_compact(
        settings, percent=percent, messages=messages, tool_calls=tool_calls, explicit=explicit
    )
    assert found == reason


def test_where_compaction_is_off_only_a_request_counts() -> None:
    off = settings_of({"enabled": False, "threshold": 0.5, "_comment": "x"})
    assert off == CompactionSettings(enabled=False, threshold=0.5)
    assert should_compact(off, percent=99.0, messages=1000) is None
    assert should_compact(off, percent=0.0, explicit=True) == "explicit"


def check(text: str, budget: int, expected: str) -> None:
    """The first message that stays; a message costs as many tokens as it has letters a quarter of, and 4."""
    messages = chat(text)
    start = select(messages, counts_of(messages), budget=budget)
    kept = messages[start] if start else None
    assert (kept and (kept.content or kept.tool_calls[0].name)) == (expected or None)


def counts_of(messages: list[Message]) -> list[int]:
    return [count_message(Letters(), content_of(each), each.tool_calls) for each in messages]


TURNS = """
user: one is long enough to be worth something
assistant: two
user: three
bash: ls
=> four
assistant: six
user: seven
assistant: eight
"""


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (0, "eight"),  # the newest group, whatever it costs
        (10, "eight"),
        (12, "seven"),
        (20, "seven"),  # `six` fits, too, but no turn begins with it
        (36, "bash"),
        (46, "three"),
        (1000, ""),
    ],
)
def test_selection(budget: int, expected: str) -> None:
    check(TURNS, budget, expected)


def test_within_one_long_turn_the_cut_is_between_groups() -> None:
    loop = "user: go\n" + "".join(f"bash: step {n} with some words\n=> done {n}\n" for n in range(20))
    messages = chat(loop)
    start = select(messages, counts_of(messages), budget=100)
    assert 1 < start < len(messages) - 2
    assert messages[start].tool_calls


def test_an_earlier_summary_is_never_kept() -> None:
    check("user: [CONTEXT SUMMARY]\n  x\nuser: a\nassistant: b\nuser: c", 1000, "")
    check("user: [CONTEXT SUMMARY]\n  x\nuser: a\nassistant: b\nuser: c\nassistant: d", 12, "c")
    check("user: a\nuser: [CONTEXT SUMMARY]\n  x\nuser: c", 1000, "c")


def test_nothing_is_selected_of_nothing() -> None:
    assert select([], [], budget=10) == 0
    assert select_messages_for_compaction([], Letters(), 10) == ([], [])


@given(histories(), st.integers(0, 3000))
def test_groups_stay_whole_and_what_stays_is_the_end(messages: list[Message], budget: int) -> None:
    counts = counts_of(messages)
    start = select(messages, counts, budget=budget)
    replaced, kept = select_messages_for_compaction(messages, Letters(), budget, 1.0)
    assert (replaced, kept) == (messages[:start], messages[start:])
    groups = group_starts(messages)
    assert start in (0, *groups)
    if start:
        sums = [0, *accumulate(counts)]
        assert sums[-1] - sums[start] <= budget or start == groups[-1]
