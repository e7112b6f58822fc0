"""What the checks need to know of one message in OpenAI's form: its text, tokens, blocks and identifiers.

Tokens are exact (cl100k_base) and the same for every subject: 4 a message, its text, and for each tool call
its name, its arguments and 5.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from benchmarks.conversation.identifiers import identifiers, values

from nexus_context.tokens import TiktokenCounter

MESSAGE_TOKENS = 4
CALL_TOKENS = 5

OpenAIMessage = dict[str, Any]
Block = tuple[int, int]  # hash of what the block says, tokens

_COUNTER = TiktokenCounter("cl100k_base")


class Call(NamedTuple):
    """One tool call of an assistant's message."""

    id: str
    name: str
    arguments: str


class Facts(NamedTuple):
    """Everything that is asked of a message more than once."""

    tokens: int
    blocks: tuple[Block, ...]
    identifiers: frozenset[str]


@cache
def count(text: str) -> int:
    """Exact tokens of `text`; remembered, so that counting is no part of what is measured in the walk."""
    return _COUNTER.count(text)


def text_of(message: Mapping[str, Any]) -> str:
    """The content as text: the text parts of a list are joined by newlines."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def calls_of(message: Mapping[str, Any]) -> tuple[Call, ...]:
    """The tool calls, in order."""
    return tuple(
        Call(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    )


def facts_of(message: Mapping[str, Any]) -> Facts:
    """The facts of a message; remembered by what it says."""
    return _facts(message["role"], text_of(message), calls_of(message), message.get("tool_call_id"))


def tokens_of(messages: Iterable[Mapping[str, Any]]) -> int:
    """Exact tokens of all messages."""
    return sum(facts_of(message).tokens for message in messages)


def call_identifiers(calls: Sequence[Call]) -> frozenset[str]:
    """The identifiers in the values of the calls' arguments, not in the names of parameters and tools."""
    return frozenset(
        found for call in calls for value in values(call.arguments) for found in identifiers(value)
    )


@cache
def _facts(role: str, text: str, calls: tuple[Call, ...], answers: str | None) -> Facts:
    blocks: list[Block] = []
    if text or not calls:
        blocks.append((hash((role, text, answers)), count(text)))
    blocks += [(hash((role, call)), count(call.name) + count(call.arguments) + CALL_TOKENS) for call in calls]
    blocks[0] = (blocks[0][0], blocks[0][1] + MESSAGE_TOKENS)
    found = frozenset(identifiers(text)) | call_identifiers(calls)
    return Facts(sum(tokens for _, tokens in blocks), tuple(blocks), found)
