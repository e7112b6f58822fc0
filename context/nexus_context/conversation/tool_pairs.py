"""Determines which results directly follow their calls, and which results are missing.

A request is repaired anyway (`repair`). These rules are for a program that repairs the conversation itself,
before it selects messages for a compaction or continues an interrupted conversation.
"""

from collections.abc import Sequence
from typing import NamedTuple

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.repair import steps_of
from nexus_context.conversation.unpaired import missing_result


class _Batch(NamedTuple):
    """An answer with calls: where what is missing belongs, the results behind it, its calls without one.

    `place` and `results` are indexes of messages. `is_last`: nothing stands behind the results.
    """

    place: int
    results: list[int]
    missing: list[ToolCall]
    is_last: bool


def _batches(messages: Sequence[Message]) -> list[_Batch]:
    """The batches of calls, also of those and of results that stand in a content in a provider's form."""
    steps = [step for at, message in enumerate(messages) for step in steps_of(at, message, [])]
    batches: list[_Batch] = []
    for number, step in enumerate(steps):
        if not step.message.tool_calls:
            continue
        waiting = {call.id: call for call in step.message.tool_calls}
        results: list[int] = []
        insert_index, end = step.origin + 1, number + 1
        while end < len(steps) and steps[end].message.role == "tool":
            index = steps[end].origin
            if waiting.pop(steps[end].message.tool_call_id or "", None) is not None:
                results.append(index)
            insert_index = index + 1 if messages[index].role == "tool" else insert_index
            end += 1
        batches.append(_Batch(insert_index, results, list(waiting.values()), is_last=end == len(steps)))
    return batches


def paired(messages: Sequence[Message]) -> list[int]:
    """Return the indexes of all messages except results that do not follow their call, or that answer a call
    again.
    """
    results = {index for batch in _batches(messages) for index in batch.results}
    return [index for index, message in enumerate(messages) if message.role != "tool" or index in results]


def missing_results(messages: Sequence[Message]) -> list[tuple[int, Message]]:
    """Return, for each call without a result, a result that says so, and the index of the message before
    which it belongs.
    """
    return [(batch.place, missing_result(call)) for batch in _batches(messages) for call in batch.missing]


def with_missing_results(messages: Sequence[Message]) -> list[Message]:
    """Return the messages, with a result added for each call that has none anywhere."""
    completed = list(messages)
    steps = (step for at, message in enumerate(messages) for step in steps_of(at, message, []))
    answered = {step.message.tool_call_id for step in steps}
    for index, result in reversed(missing_results(messages)):
        if result.tool_call_id not in answered:
            completed.insert(index, result)
    return completed


def is_answered_batch(messages: Sequence[Message]) -> bool:
    """Whether the messages end with tool calls of one message and all their results."""
    last_batches = _batches(messages)[-1:]
    return any(batch.results and not batch.missing and batch.is_last for batch in last_batches)


def ends_with_result(messages: Sequence[Message]) -> bool:
    """Whether the last message is a tool's result, or ends with one in its content."""
    last_messages = messages[-1:]
    return any(
        step.message.role == "tool" for message in last_messages for step in steps_of(0, message, [])[-1:]
    )


def begins_exchange(messages: Sequence[Message]) -> bool:
    """Whether the first message is a user's, and has no tool's result in its content."""
    steps = (step.message for message in messages[:1] for step in steps_of(0, message, []))
    return bool(messages) and messages[0].role == "user" and all(step.role == "user" for step in steps)
