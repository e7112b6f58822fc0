"""Compactions: Nexus's own, and the newest messages as a plain baseline."""

import time
from datetime import datetime

import msgspec
from benchmarks.conversation.facts import OpenAIMessage, calls_of, count, facts_of
from benchmarks.conversation.survival import Compacted

from nexus_context.conversation.compaction.detection import CompactionSettings
from nexus_context.conversation.compaction.extractive import extract
from nexus_context.conversation.compaction.run import CompactionRequest as Request
from nexus_context.conversation.compaction.run import finish, plan
from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.conversation.summary import summary_of
from nexus_context.conversation.window import Budget
from nexus_context.tokens import TiktokenCounter

NOON = datetime(2026, 11, 23, 12)
_COUNTER = TiktokenCounter("cl100k_base")


def compact_with_nexus(messages: list[OpenAIMessage], window: int) -> Compacted:
    """As a turn that reaches the threshold, with the embedded summarizer and the default settings."""
    history = History([_message(each) for each in messages])
    history.sums(_COUNTER)  # a conversation has counted its messages before it is compacted
    settings, request = CompactionSettings(), Request("token_limit")
    start = time.process_time()
    planned = plan(history, _COUNTER, Budget(window, 0), settings=settings, request=request)
    assert planned is not None
    written = extract(planned.request(), _COUNTER)
    result = finish(planned, written, counter=_COUNTER, made_at=NOON)
    milliseconds = 1_000 * (time.process_time() - start)
    summary = summary_of(result.summary_message)
    return Compacted(
        [_openai(each) for each in result.messages], milliseconds, count(summary), planned.summary_limit
    )


def keep_last(messages: list[OpenAIMessage], window: int) -> Compacted:
    """The newest messages in as many tokens as Nexus keeps, from a message on that is not a result."""
    room = sum(facts_of(each).tokens for each in compact_with_nexus(messages, window).messages)
    start = len(messages)
    while start and facts_of(messages[start - 1]).tokens <= room:
        start -= 1
        room -= facts_of(messages[start]).tokens
    while start < len(messages) and messages[start]["role"] == "tool":
        start += 1
    return Compacted(messages[start:])


def _message(message: OpenAIMessage) -> Message:
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in calls_of(message))
    return Message(
        role=message["role"],
        content=message.get("content"),
        tool_calls=calls,
        tool_call_id=message.get("tool_call_id"),
        name=message.get("name"),
        meta=message.get("meta", msgspec.UNSET),
    )


def _openai(message: Message) -> OpenAIMessage:
    converted: OpenAIMessage = {"role": message.role, "content": content_of(message) or None}
    if message.tool_calls:
        converted["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id:
        converted |= {"tool_call_id": message.tool_call_id, "name": message.name}
    if isinstance(message.meta, dict):
        converted["meta"] = message.meta
    return converted
