"""Reports what the usages in a conversation of another program say about our counts, without any text.

1. Nobody here knows the prompts of another program's requests, so only growth is compared: how much more the
   provider counted in a later request than in an earlier one, and our count of the messages in between.
2. Exact counting is slow, so only one stretch of about SAMPLE tokens is counted. It is one of the last
   stretches for which the estimates by length say that both figures may be of the same text.
"""

from collections.abc import Sequence

from nexus_context.assistants.importing import Answer, Conversation
from nexus_context.conversation.message import content_of
from nexus_context.conversation.reported_usage import LEAST_GROWTH, growth_report
from nexus_context.tokens import TokenCounter, count_message, family_of_counter
from nexus_context.tokens.correction import UsageReport

SAMPLE = 12_000
"""Estimated tokens of the messages that are counted of one conversation."""

MOST_STRETCHES = 8
"""Stretches of a conversation that are looked at."""

UNLIKELY = 3
"""A stretch is not counted if the provider's growth and the estimate by length differ by more than this."""


def measure_growth(
    conversation: Conversation, counts: Sequence[int], counter: TokenCounter
) -> UsageReport | None:
    """Compare the usages in a conversation with our counts. Return None if they say nothing; `counts` are
    estimates for each message.
    """
    answers = conversation.answers
    end = len(answers)
    for _ in range(MOST_STRETCHES):
        start = _start_of_stretch(answers, counts, end)
        if end - start > 1 and _is_likely(answers[start], answers[end - 1], counts):
            return _measure(conversation, answers[start:end], counter)
        end = start + 1 if end - start > 1 else end - 1
        if end < 2:
            break
    return None


def _is_likely(first_answer: Answer, last_answer: Answer, counts: Sequence[int]) -> bool:
    """Whether the growth between two answers is plausible, by estimates of the messages between them."""
    estimate = sum(counts[first_answer.message : last_answer.message])
    if (
        first_answer.outcome.usage is None
        or last_answer.outcome.usage is None
        or estimate < LEAST_GROWTH // 2
    ):
        return False
    grown = last_answer.outcome.usage.request_tokens - first_answer.outcome.usage.request_tokens
    return estimate <= UNLIKELY * grown and grown <= UNLIKELY * estimate


def _start_of_stretch(answers: Sequence[Answer], counts: Sequence[int], end: int) -> int:
    """The first answer of a stretch that ends before `end` and in which the requests grow."""
    start, tokens = end - 1, 0
    while start > 0:
        earlier, later = answers[start - 1], answers[start]
        tokens += sum(counts[earlier.message : later.message])
        usages = earlier.outcome.usage, later.outcome.usage
        if (tokens > SAMPLE and start < end - 1) or usages[0] is None or usages[1] is None:
            break
        if usages[1].request_tokens < usages[0].request_tokens:
            break
        start -= 1
    return start


def _measure(
    conversation: Conversation, answers: Sequence[Answer], counter: TokenCounter
) -> UsageReport | None:
    start = answers[0].message
    tokens = 0
    requests: list[tuple[int, int]] = []
    for answer in answers:
        for message in conversation.messages[start : answer.message]:
            tokens += count_message(counter, content_of(message), message.tool_calls, message.role)
        start = answer.message
        usage = answer.outcome.usage
        if usage is not None:
            requests.append((tokens, usage.request_tokens))
    return growth_report(family_of_counter(counter).name, requests)
