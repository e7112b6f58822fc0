"""When a conversation is compacted."""

import pytest

from nexus_context.conversation.compaction.detection import (
    CompactionSettings,
    Reason,
    settings_of,
    should_compact,
)


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
def test_the_first_reason_that_applies(
    percent: float, messages: int, tool_calls: int, explicit: bool, reason: Reason | None
) -> None:
    settings = CompactionSettings()
    result = should_compact(
        settings, percent=percent, messages=messages, tool_calls=tool_calls, explicit=explicit
    )
    assert result == reason


def test_if_compaction_is_off_only_an_explicit_request_counts() -> None:
    off = settings_of({"enabled": False, "threshold": 0.5, "_comment": "x"})
    assert off == CompactionSettings(enabled=False, threshold=0.5)
    assert should_compact(off, percent=99.0, messages=1000) is None
    assert should_compact(off, percent=0.0, explicit=True) == "explicit"
