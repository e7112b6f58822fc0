"""What a provider's usage says about an estimate, turn by turn; lies say nothing."""

import pytest

from nexus_context import ContextConfig, ContextManager
from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.reported_usage import Estimate, growth_report, report_of
from nexus_context.tokens.correction import UNCORRECTED

CALL = Message("assistant", "", (ToolCall("1", "read", {}),))
RESULT = Message("tool", "text", tool_call_id="1")
TURN = [Message("user", "hello"), CALL, RESULT, Message("assistant", "done")]
TOKENS = [100, 20, 300, 50]


def check(
    *figures: int | None, messages: list[Message] = TURN, begun: bool = False
) -> tuple[int, int, int] | None:
    """What is reported, estimated and was displayed, for a first request of 1,000 tokens."""
    usage = ProviderUsage(figures[0] or 0, figures[1] or 0, *figures[2:])
    estimate = Estimate("claude", 1000, begun=begun)
    report = report_of(usage, estimate, messages, TOKENS[: len(messages)], correction=UNCORRECTED)
    return None if report is None else (report.reported, report.estimated, report.shown)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ((1400, 60), (1460, 1370, 1370)),  # 1,000, the call and its result, the answer
        ((3, 60, 1400), (1463, 1370, 1370)),
        ((3, 60, 1000, 400), (1463, 1370, 1370)),
        ((1400, 4000), (1400, 1320, 1320)),  # reasoning that is not sent again
        ((1400, 0), (1400, 1320, 1320)),
        ((0, 60), None),
        ((14_000, 60), None),  # ten times off
        ((140, 60), None),
        ((1400, 60, 1400), None),  # the cache counted twice
        ((10, 60, 1_000_000), None),
        ((-1400, 60), None),
        ((1400, -60), (1400, 1320, 1320)),
    ],
)
def test_a_turn_of_two_requests(
    figures: tuple[int | None, ...], expected: tuple[int, int, int] | None
) -> None:
    assert check(*figures) == expected


@pytest.mark.parametrize(
    ("messages", "begun", "expected"),
    [
        (TURN[:2], False, (1260, 1020, 1020)),
        (TURN[:2], True, (1260, 1120, 1120)),  # the user's message is not in the estimate
        (TURN[:1], True, None),  # nothing was answered
        ([], True, None),
    ],
)
def test_which_messages_a_request_had(
    messages: list[Message], begun: bool, expected: tuple[int, int, int] | None
) -> None:
    assert check(1240, 20, messages=messages, begun=begun) == expected


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ((21_000, 60), (21_060, 1370, 1370)),  # prompt and tools of 20,000 tokens that nobody told us
        ((1400, 60), (1460, 1370, 1370)),
        ((140, 60), None),
        ((300_000, 60), None),  # no prompt is as long
        ((0, 60), None),
    ],
)
def test_an_unknown_prompt(figures: tuple[int, int], expected: tuple[int, int, int] | None) -> None:
    estimate = Estimate("claude", 1000, prompt_known=False)
    report = report_of(ProviderUsage(*figures), estimate, TURN, TOKENS, correction=UNCORRECTED)
    assert (None if report is None else (report.reported, report.estimated, report.shown)) == expected


def test_totals_of_a_manager_that_is_told_neither_prompt_nor_tools() -> None:
    chat = ContextManager(ContextConfig(max_tokens=100_000), model="claude-sonnet-4")
    chat.add_user_message("What is in the log?")
    chat.add([Message("assistant", "Nothing.")], usage=ProviderUsage(18_000, 0))
    for _ in range(3):
        spent = chat.get_token_usage()
        assert spent.corrected is not None
        assert 17_900 < spent.corrected.total - spent.total <= 18_000
        chat.add_user_message("And now? " * 50)


def test_a_conversation_is_anchored_by_its_newest_usage() -> None:
    chat = ContextManager(ContextConfig(max_tokens=100_000), model="claude-sonnet-4")
    chat.set_system_prompt("Be brief. " * 100)
    chat.add_user_message("What is in the log? " * 20)
    assert chat.get_token_usage().corrected is None
    estimated = chat.get_token_usage().total
    chat.add([Message("assistant", "Nothing. " * 20)], usage=ProviderUsage(estimated + 100, 0))
    spent = chat.get_token_usage()
    assert spent.corrected is not None
    assert spent.corrected.total == spent.total + 100
    assert spent.total == sum(row.tokens for row in spent.rows)
    chat.add([Message("user", "And now?"), Message("assistant", "No.")], usage=ProviderUsage(7, 1, 9_000_000))
    assert chat.get_token_usage().corrected is not None  # the lie is forgotten, the anchor stays
    corrected = chat.get_token_usage()
    assert corrected.corrected is not None
    assert corrected.corrected.total == corrected.total + 100
    chat.clear_messages()
    assert chat.get_token_usage().corrected is None


def test_a_correction_changes_nothing_that_is_sent() -> None:
    chats = [ContextManager(ContextConfig(max_tokens=4_000), model="claude-sonnet-4") for _ in range(2)]
    for number in range(30):
        for chat in chats:
            chat.add_user_message(f"Question {number}: " + "what is this? " * 20)
            usage = None if chat is chats[0] else ProviderUsage(chat.get_token_usage().total * 19 // 10, 40)
            chat.add([Message("assistant", "It is that. " * 10)], usage=usage)
        assert chats[0].build_messages() == chats[1].build_messages()
        assert chats[0].get_token_usage().rows == chats[1].get_token_usage().rows
    assert chats[1].get_token_usage().corrected is not None


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([], None),
        ([(0, 15_000)], None),
        ([(0, 15_000), (1_999, 17_000)], None),  # too little
        ([(0, 15_000), (2_000, 17_200)], (2_200, 2_000)),
        ([(0, 15_000), (1_000, 16_000), (4_000, 19_000), (6_000, 21_600)], (6_600, 6_000)),
        ([(0, 15_000), (5_000, 20_500), (8_000, 9_000), (11_000, 12_600)], (5_500, 5_000)),  # compacted
        ([(0, 15_000), (2_000, 17_200), (8_000, 9_000), (18_000, 20_000)], (11_000, 10_000)),
        ([(0, 15_000), (5_000, 90_000)], None),  # no count of the same text
        ([(0, 0), (5_000, 0)], None),
        ([(0, -5), (5_000, 5_000)], (5_005, 5_000)),
    ],
)
def test_the_growth_of_an_imported_conversation(
    requests: list[tuple[int, int]], expected: tuple[int, int] | None
) -> None:
    report = growth_report("claude", requests)
    assert (None if report is None else (report.reported, report.estimated)) == expected
    assert report is None or (report.shown, report.anchors) == (report.estimated, False)
