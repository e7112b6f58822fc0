"""Which results stand right behind their calls, and what is missing there.

A request is repaired anyway (`repair`). These rules are for a program that repairs the conversation itself,
before it selects messages for a compaction or takes over what was interrupted.
"""

from collections.abc import Sequence
from typing import NamedTuple

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.unpaired import missing_result


class _Batch(NamedTuple):
    """An assistant's message with calls, the indexes of the results behind it, and its calls without one."""

    end: int
    results: list[int]
    missing: list[ToolCall]


def _batches(messages: Sequence[Message]) -> list[_Batch]:
    batches: list[_Batch] = []
    for index, message in enumerate(messages):
        if message.role != "assistant" or not message.tool_calls:
            continue
        waiting = {call.id: call for call in message.tool_calls}
        results: list[int] = []
        end = index + 1
        while end < len(messages) and messages[end].role == "tool":
            if waiting.pop(messages[end].tool_call_id or "", None) is not None:
                results.append(end)
            end += 1
        batches.append(_Batch(end, results, list(waiting.values())))
    return batches


def paired(messages: Sequence[Message]) -> list[int]:
    """The indexes of all messages but results that do not follow their call, or answer it again."""
    results = {index for batch in _batches(messages) for index in batch.results}
    return [index for index, message in enumerate(messages) if message.role != "tool" or index in results]


def missing_results(messages: Sequence[Message]) -> list[tuple[int, Message]]:
    """For each call without a result one that says so, and the index before which it belongs."""
    return [(batch.end, missing_result(call)) for batch in _batches(messages) for call in batch.missing]


def with_missing_results(messages: Sequence[Message]) -> list[Message]:
    """The messages with a result for each call that has none anywhere."""
    whole, answered = list(messages), {message.tool_call_id for message in messages}
    for index, result in reversed(missing_results(messages)):
        if result.tool_call_id not in answered:
            whole.insert(index, result)
    return whole


def is_answered_batch(messages: Sequence[Message]) -> bool:
    """Whether the last messages are calls with all their results."""
    last = _batches(messages)[-1:]
    return any(batch.results and not batch.missing and batch.end == len(messages) for batch in last)
