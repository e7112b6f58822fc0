"""Warn at 75, 90 and 95 % of the budget, each once until the conversation is compacted or cleared."""

from nexus_daemon import protocol
from nexus_daemon.lsp import lsp_types
from nexus_daemon.sessions.conversations import Conversation

THRESHOLDS = (75, 90, 95)
"""Percent of the available tokens."""


def budget_warning(
    conversation: Conversation, folder: str, usage: protocol.TokenUsage, *, percent: float
) -> lsp_types.ShowMessageParams | None:
    """Return the warning to show at `percent` of the budget. None if the user has had it.

    `folder` is a name for people.
    """
    threshold = threshold_at(percent)
    if threshold <= (conversation.warned or 0):
        return None
    conversation.warned = threshold
    state = (
        f"Nexus: the conversation {conversation.session!r} of {folder} fills {percent:g} % of what "
        f"{usage.model or 'the model'} takes ({usage.available:,} tokens)."
    )
    effect = (
        "The oldest turns are no longer sent."
        if percent > 100
        else "Above 100 %, the oldest turns are no longer sent."
    )
    return lsp_types.ShowMessageParams(
        type=lsp_types.INFORMATION if threshold == THRESHOLDS[0] else lsp_types.WARNING,
        message=f"{state} {effect} nexus.session.compact makes room.",
    )


def threshold_at(percent: float) -> int:
    """Return the highest threshold reached at `percent`, or 0 below the first."""
    return max((threshold for threshold in THRESHOLDS if percent >= threshold), default=0)
