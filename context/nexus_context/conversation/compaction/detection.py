"""Whether a conversation should be compacted, and why.

1. Reasons, the first that holds: asked for, tokens, messages, tool calls; counts since the last compaction.
2. Only the first two act by themselves; the counts advise.
3. The share is compared as it is shown: in percent, to one decimal.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

READ_TOKENS = 500_000
"""Tokens of old messages that one compaction reads at most, or as many as are available for a request where
that is more: about two megabytes, a second or two of work.
"""

Reason = Literal["explicit", "token_limit", "message_count", "tool_count"]


class CompactionSettings(msgspec.Struct, frozen=True):
    """The section `compaction` of config.json. Ratios are shares of the available tokens."""

    enabled: bool = True
    threshold: float = 0.8
    message_threshold: int = 100
    tool_call_threshold: int = 50
    target: float = 0.6
    overflow_target: float = 0.4
    recent_preserve_ratio: float = 0.25
    reload_prompt: bool = True
    model: str | None = None
    instructions: str | None = None


def settings_of(section: Mapping[str, Any]) -> CompactionSettings:
    """The settings of a checked section of config.json; what it does not say is as by default."""
    known = {name: section[name] for name in CompactionSettings.__struct_fields__ if name in section}
    return msgspec.convert(known, CompactionSettings)


def should_compact(
    settings: CompactionSettings,
    *,
    percent: float,
    messages: int = 0,
    tool_calls: int = 0,
    explicit: bool = False,
) -> Reason | None:
    """The reason to compact, None without one.

    `percent` is `TokenUsage.percent`, everything that is sent against what is available; `messages` and
    `tool_calls` are those since the last compaction. An explicit request counts even where compaction is off.
    """
    if explicit:
        return "explicit"
    if not settings.enabled:
        return None
    if percent >= round(100 * settings.threshold, 1):
        return "token_limit"
    if messages >= settings.message_threshold:
        return "message_count"
    if tool_calls >= settings.tool_call_threshold:
        return "tool_count"
    return None
