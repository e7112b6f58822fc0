"""When a conversation is compacted."""

from pathlib import Path

import pytest

from nexus_context.conversation.compaction.detection import (
    CompactionSettings,
    Reason,
    settings_of,
    should_compact,
)
from support.fixture import write_fixture
from support.folders import load_folder


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


def test_if_compaction_is_off_only_an_explicit_request_counts(tmp_path: Path) -> None:
    files = """//- /a/.nexus3/config.json
{"compaction": {"enabled": false, "threshold": 0.5, "_comment": "x"}, "context": {"keep_recent_turns": 5}}
"""
    off = settings_of(load_folder(write_fixture(files, tmp_path), "/a").effective)
    assert off == CompactionSettings(enabled=False, threshold=0.5, keep_recent_turns=5)
    assert should_compact(off, percent=99.0, messages=1000) is None
    assert should_compact(off, percent=0.0, explicit=True) == "explicit"
