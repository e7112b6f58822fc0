"""Decides whether a conversation should be compacted, and why.

1. The first reason that applies is reported, in this order: an explicit request, tokens, messages, tool
   calls. Messages and tool calls count from the last compaction on.
2. Only an explicit request and the token limit start a compaction. The other two reasons are advice.
3. The percentage is compared as it is displayed: rounded to one decimal.
"""

from typing import Literal

import msgspec

from nexus_context.config.merge import Effective

READ_TOKENS = 500_000
"""Tokens of old messages that one compaction reads at most, or the tokens available for a request if those
are more: about two megabytes, a second or two of work.
"""

Reason = Literal["explicit", "token_limit", "message_count", "tool_count"]


class CompactionSettings(msgspec.Struct, frozen=True):
    """The section `compaction` of config.json. Ratios are shares of the available tokens.

    `keep_recent_turns` comes from the section `context`, because truncation uses it, too.
    """

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
    keep_recent_turns: int = 3


def settings_of(effective: Effective) -> CompactionSettings:
    """Return the compaction settings of a folder."""
    section = effective.get("/compaction") or {}
    values = {name: section[name] for name in CompactionSettings.__struct_fields__ if name in section}
    return CompactionSettings(**values, keep_recent_turns=effective.get("/context/keep_recent_turns"))


def should_compact(
    settings: CompactionSettings,
    *,
    percent: float,
    messages: int = 0,
    tool_calls: int = 0,
    explicit: bool = False,
) -> Reason | None:
    """Return the reason to compact, or None if there is none.

    `percent` is `TokenUsage.percent`: everything that is sent, relative to what is available. `messages` and
    `tool_calls` count from the last compaction on. An explicit request counts even if compaction is switched
    off.
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
