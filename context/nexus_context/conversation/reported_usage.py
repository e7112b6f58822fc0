"""The usage that a provider reported for a turn, beside our estimate of the same request.

1. A usage is that of the last request of the turn, which ends with its last answer.
2. The answer is in the report as well if the two counts of it may be of the same text. Reasoning that is not
   sent again would otherwise count.
"""

from collections.abc import Sequence
from typing import NamedTuple

from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.message import Message
from nexus_context.tokens.correction import Correction, UsageReport, checked_report, is_plausible


class Estimate(NamedTuple):
    """The estimated tokens of the first request of a turn. `begun`: without the turn's own first messages."""

    family: str
    tokens: int
    begun: bool = False


def report_of(
    usage: ProviderUsage | None,
    estimate: Estimate,
    messages: Sequence[Message],
    tokens: Sequence[int],
    *,
    correction: Correction,
) -> UsageReport | None:
    """The report of a turn of these messages with their tokens; None if its usage says nothing."""
    answers = [at for at, message in enumerate(messages) if message.role == "assistant"]
    if usage is None or not answers:
        return None
    first, last = answers[0], answers[-1]
    estimated = estimate.tokens + sum(tokens[0 if estimate.begun else first : last])
    reported, shown = usage.request_tokens, correction.total(estimated, estimate.family)
    shown = estimated if shown is None else shown
    answer = tokens[last]
    if is_plausible(usage.output_tokens, answer):
        reported, estimated, shown = reported + usage.output_tokens, estimated + answer, shown + answer
    return checked_report(UsageReport(estimate.family, reported=reported, estimated=estimated, shown=shown))
