"""haystack-ai: the `CompactionHook` with a `SlidingWindowCompactor` on an agent's state, an exact counter."""

import json
import os
from collections.abc import Sequence
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from benchmarks.conversation.facts import OpenAIMessage, tokens_of
from haystack.components.agents.state.state import State  # type: ignore[import-not-found]
from haystack.dataclasses import ChatMessage, ToolCall  # type: ignore[import-not-found]
from haystack.hooks.compaction import CompactionHook, SlidingWindowCompactor  # type: ignore[import-not-found]


class ExactCounter:
    """Its protocol of a counter. What a message says is counted once: its text is remembered."""

    def count(self, messages: list[Any], tools: Any = None) -> int:
        """Tokens of the messages; no tools are sent here."""
        assert not tools
        return tokens_of(map(_openai, messages))


class Compacting:
    """Compacts to `to` of the budget once `at` of it is reached; what it dropped is gone."""

    def __init__(self, budget: int, at: float, to: float) -> None:
        self._state = State(schema={}, data={"messages": []})
        self._hook = CompactionHook(
            SlidingWindowCompactor(),
            context_window=budget,
            compact_at=at,
            compact_to=to,
            token_counter=ExactCounter(),
        )

    def prepare(self, message: OpenAIMessage) -> Any:
        """A ChatMessage. A result is made by hand: the reader of OpenAI's form takes none that is empty."""
        if message["role"] != "tool":
            return ChatMessage.from_openai_dict_format(message)
        origin = ToolCall(message["name"], {}, id=message["tool_call_id"])
        return ChatMessage.from_tool(message["content"], origin=origin)

    def add(self, prepared: Any) -> None:
        """Appends it to the state, as the agent does."""
        self._state.set("messages", [prepared])

    def build(self) -> list[Any]:
        """The messages after the hook that runs before the model."""
        self._hook.run(self._state)
        messages: list[Any] = self._state.data["messages"]
        return messages

    def sent(self, built: list[Any]) -> Sequence[OpenAIMessage]:
        """By its own conversion."""
        return list(map(_openai, built))

    def encode(self) -> bytes:
        """Its own dictionaries, then `json`."""
        return json.dumps([message.to_dict() for message in self._state.data["messages"]]).encode()


def _openai(message: Any) -> OpenAIMessage:
    converted: OpenAIMessage = message.to_openai_dict_format()
    return converted
