"""langchain-core: `trim_messages` over the whole history at every request, as its documentation shows it."""

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from benchmarks.conversation.facts import CALL_TOKENS, MESSAGE_TOKENS, OpenAIMessage, count
from langchain_core.messages import (  # type: ignore[import-not-found]
    AIMessage,
    BaseMessage,
    convert_to_messages,
    convert_to_openai_messages,
    trim_messages,
)

from nexus_context.tokens import TiktokenCounter

RECOMMENDED = {
    "strategy": "last",
    "start_on": "human",
    "end_on": ("human", "tool"),
    "include_system": True,
}

_COUNTER = TiktokenCounter("cl100k_base")


class Default:
    """`max_tokens` and an exact counter that remembers every text it has counted, nothing else."""

    arguments: ClassVar[dict[str, Any]] = {}
    counter: Any = staticmethod(lambda messages: _exact(messages, count))

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._messages: list[Any] = []

    def prepare(self, message: OpenAIMessage) -> Any:
        """A LangChain message."""
        return convert_to_messages([message])[0]

    def add(self, prepared: Any) -> None:
        """Appends it."""
        self._messages.append(prepared)

    def build(self) -> list[Any]:
        """The trimmed messages."""
        trimmed: list[Any] = trim_messages(
            self._messages, max_tokens=self._budget, token_counter=self.counter, **self.arguments
        )
        return trimmed

    def sent(self, built: list[Any]) -> Sequence[OpenAIMessage]:
        """By LangChain's own conversion."""
        return list(map(_with_arguments, convert_to_openai_messages(built), built))

    def encode(self) -> bytes:
        """LangChain's own conversion to OpenAI's form, then `json`."""
        return json.dumps(convert_to_openai_messages(self._messages)).encode()


class Recommended(Default):
    """The arguments that its documentation recommends for chat models, with the same counter."""

    arguments = RECOMMENDED


class Forgetful(Recommended):
    """The same with a counter that counts every text anew, as a chat model given as the counter does."""

    counter = staticmethod(lambda messages: _exact(messages, _COUNTER.count))


class Approximate(Recommended):
    """The same with LangChain's quick estimate, which it recommends for the hot path."""

    counter = "approximate"


def _exact(messages: Sequence[BaseMessage], tokens: Callable[[str], int]) -> int:
    total = 0
    for message in messages:
        total += MESSAGE_TOKENS + tokens(str(message.content))
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                total += tokens(call["name"]) + tokens(json.dumps(call["args"])) + CALL_TOKENS
    return total


def _with_arguments(converted: OpenAIMessage, message: Any) -> OpenAIMessage:
    """Content that is absent comes back as empty text: absent again, so that it is no block."""
    return converted if message.content else converted | {"content": None}
