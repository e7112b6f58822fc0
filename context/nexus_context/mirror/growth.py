"""What the usages in a conversation of another program say about our counts: one report, without any text.

1. Another program's requests had prompts that nobody here knows, so only growth is compared: what the
   provider counted more in a later request than in an earlier one, and our count of the messages in between.
2. Exact counting is slow. So a stretch of at most SAMPLE tokens is counted, the last one that says something.
"""

from collections.abc import Sequence

from nexus_context.conversation.message import Message, content_of
from nexus_context.conversation.reported_usage import LEAST_GROWTH, growth_report
from nexus_context.conversation.transcripts import Answer, Conversation
from nexus_context.tokens import TokenCounter, count_message, family_of_counter
from nexus_context.tokens.correction import UsageReport

SAMPLE = 40_000
"""Estimated tokens of the messages that are counted of one conversation."""


def measure_growth(
    conversation: Conversation, counts: Sequence[int], counter: TokenCounter
) -> UsageReport | None:
    """The report of a conversation; None if its usages say nothing. `counts` estimate its messages."""
    end = len(conversation.answers)
    while end > 1:
        start = _start_of_stretch(conversation.answers, counts, end)
        if end - start > 1:
            report = _measure(conversation, conversation.answers[start:end], counter)
            if report is not None:
                return report
        end = min(start + 1, end - 1) if end - start > 1 else end - 1
        if sum(counts[: conversation.answers[end - 1].message]) < LEAST_GROWTH // 2:
            return None
    return None


def _start_of_stretch(answers: Sequence[Answer], counts: Sequence[int], end: int) -> int:
    """The first answer of a stretch that ends before `end` and in which the requests grow."""
    start, tokens = end - 1, 0
    while start > 0:
        earlier, later = answers[start - 1], answers[start]
        tokens += sum(counts[earlier.message : later.message])
        usages = earlier.outcome.usage, later.outcome.usage
        if tokens > SAMPLE or usages[0] is None or usages[1] is None:
            break
        if usages[1].request_tokens < usages[0].request_tokens:
            break
        start -= 1
    return start


def _measure(
    conversation: Conversation, answers: Sequence[Answer], counter: TokenCounter
) -> UsageReport | None:
    first = answers[0].message
    tokens = 0
    requests: list[tuple[int, int]] = []
    for answer in answers:
        for message in conversation.messages[first : answer.message]:
            tokens += _count(counter, message)
        first = answer.message
        usage = answer.outcome.usage
        if usage is not None:
            requests.append((tokens, usage.request_tokens))
    return growth_report(family_of_counter(counter).name, requests)


def _count(counter: TokenCounter, message: Message) -> int:
    return count_message(counter, content_of(message), message.tool_calls)
