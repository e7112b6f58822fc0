"""What a context costs: rows that sum to the total, and the same figures for the program that runs
the model.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.budget import CategoryTokens, TokenBudget, UsageRow, history_rows, usage
from nexus_context.conversation.history import History
from nexus_context.conversation.truncation import STRATEGIES, Strategy
from nexus_context.conversation.window import Budget, Policy, Window
from nexus_context.tokens import SimpleTokenCounter, get_model_limits
from support.histories import Letters, conversation

SIMPLE = SimpleTokenCounter()
ROWS = st.lists(
    st.builds(
        UsageRow,
        st.sampled_from(["system", "tools", "history", "memory", "event"]),
        st.text(max_size=3),
        st.integers(0, 100_000),
        st.booleans(),
    )
)


def check(text: str, room: int, expected: list[tuple[str, int]], strategy: Strategy = "oldest_first") -> None:
    """The rows of the sent part of a conversation."""
    counter = Letters()
    policy = Policy(strategy, identifier_tokens=0, keep_recent_turns=1)
    view = Window(History(conversation(text)), counter, policy).fit(Budget(room, 0))
    rows = history_rows(view, counter)
    assert [(row.label, row.tokens) for row in rows] == expected
    assert {(row.category, row.exact) for row in rows} <= {("history", True)}


def test_rows_of_a_conversation() -> None:
    check("", 50, [])
    check("u1", 50, [("1 message", 10)])
    check("u1 a1 u2", 50, [("3 messages", 30)])
    check("u1 a1 u2 a2 u3 a3", 50, [("1 message from the beginning", 10), ("2 messages", 20)])
    check("u1 a1 u2 a2 u3 a3", 50, [("2 messages", 20)], "recency")
    check("a1:30 a2 u2 c3 r3 c4 r4", 80, [("3 messages", 37)], "sliding")  # with the turn's first message
    check("u1 c2 r2:900", 200, [("3 messages", 125)])


def test_names_of_what_is_cut_have_a_row() -> None:
    said = conversation("u1 a1 u2 a2 u3:300 a3:300 u4:300 a4:300")
    history = History([*said, *conversation("u5:300 a5:300")])
    view = Window(history, SIMPLE, Policy(keep_recent_turns=1)).fit(Budget(1_500, 0))
    rows = history_rows(view, SIMPLE)
    assert sum(row.tokens for row in rows) == view.tokens == SIMPLE.count_messages(view.messages())
    assert (view.note is not None) == any("not sent" in row.label for row in rows)


@given(ROWS, st.integers(0, 200_000), st.integers(0, 5_000), st.integers(0, 5_000))
def test_budget_and_usage_are_the_same_figures(
    rows: list[UsageRow], limit: int, response: int, tools: int
) -> None:
    spent = usage(get_model_limits("gpt-4o"), SIMPLE, rows, max_tokens=limit, reserved=response + tools)
    budget = spent.budget(reserve_tools=tools)
    assert spent.total == sum(row.tokens for row in rows) == sum(spent.by_category().values())
    assert budget == TokenBudget(
        model_limit=spent.limit,
        reserve_response=response,
        reserve_tools=tools,
        available=spent.available,
        used=CategoryTokens(**spent.by_category(), total=spent.total),
        remaining=spent.available - spent.total,
    )
    assert spent.available == max(min(limit, 128_000) - response - tools, 0)
    assert spent.over == (spent.remaining < 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_view_that_is_kept_has_its_own_rows_when_the_conversation_goes_on(strategy: Strategy) -> None:
    counter, history = Letters(), History(conversation("u1 a1 u2 a2 u3 a3"))
    view = Window(history, counter, Policy(strategy, identifier_tokens=0)).fit(Budget(50, 0))
    before = history_rows(view, counter), view.messages()
    history.extend(conversation("u4 a4"))
    assert (history_rows(view, counter), view.messages()) == before
