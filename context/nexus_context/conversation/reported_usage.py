"""Compares the usage that a provider reported for a turn with our estimate of the same request.

1. A usage is that of the last request of the turn, which ends with its last answer.
2. The report includes the answer if the provider's count and ours can be of the same text. Otherwise the
   provider's count may include reasoning that is not sent again.
3. The prompts of another program's requests are unknown. So the report of an imported conversation has only
   the growth between two of its requests: that of the longest stretch in which nothing was cut or compacted.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.conversation.message import Message
from nexus_context.tokens.correction import Correction, UsageReport, checked_report, is_plausible

LEAST_GROWTH = 2_000
"""Estimated tokens below which the growth of an imported conversation says nothing."""


class Estimate(NamedTuple):
    """The estimated tokens of the first request of a turn. If `begun` is true, they do not include the turn's
    own first messages.

    `prompt_known` is true if the prompt and tools in the estimate are those that were sent, as far as the
    program told us.
    """

    family: str
    tokens: int
    begun: bool = False
    prompt_known: bool = True


def report_of(
    usage: ProviderUsage | None,
    estimate: Estimate,
    messages: Sequence[Message],
    tokens: Sequence[int],
    *,
    correction: Correction,
) -> UsageReport | None:
    """Return the report of a turn with these messages, each with its `tokens`. Return None if the usage says
    nothing.
    """
    answers = [at for at, message in enumerate(messages) if message.role == "assistant"]
    if usage is None or not answers:
        return None
    first_answer, last_answer = answers[0], answers[-1]
    estimated = estimate.tokens + sum(tokens[0 if estimate.begun else first_answer : last_answer])
    reported, shown = usage.request_tokens, correction.total(estimated, estimate.family)
    shown = estimated if shown is None else shown
    answer = tokens[last_answer]
    if is_plausible(usage.output_tokens, answer):
        reported, estimated, shown = reported + usage.output_tokens, estimated + answer, shown + answer
    report = UsageReport(estimate.family, reported=reported, estimated=estimated, shown=shown)
    return checked_report(report, prompt_known=estimate.prompt_known)


def growth_report(family: str, requests: Iterable[tuple[int, int]]) -> UsageReport | None:
    """Return the report of a conversation that another program had. Return None if its usages say nothing.

    `requests` are its requests with a usage, in order. Each has the estimated tokens of all messages before
    the answer, and the tokens that the provider counted.
    """
    best: UsageReport | None = None
    start = last_request = None
    for request in requests:
        if start is None or last_request is None or request[1] < last_request[1]:
            start = request
        last_request = request
        grown = UsageReport(
            family,
            reported=request[1] - start[1],
            estimated=request[0] - start[0],
            shown=request[0] - start[0],
            anchors=False,
        )
        if grown.estimated >= LEAST_GROWTH and (best is None or grown.estimated > best.estimated):
            best = grown
    return None if best is None else checked_report(best)
