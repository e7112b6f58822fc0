"""Nexus's own `ContextManager`."""

from collections.abc import Sequence
from typing import Any

import msgspec
from benchmarks.conversation.facts import OpenAIMessage, calls_of

from nexus_context.conversation.bodies import formats
from nexus_context.conversation.budget import ContextConfig
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.tokens import TiktokenCounter
from nexus_context.turn.manager import ContextManager


class Nexus:
    """All of the budget is for the request; what isn't said in `options` is the library's default."""

    def __init__(self, budget: int, **options: Any) -> None:
        self._counter = TiktokenCounter("cl100k_base")
        config = ContextConfig(max_tokens=budget, reserve_tokens=0, **options)
        self._manager = ContextManager(config, counter=self._counter)

    def prepare(self, message: OpenAIMessage) -> Message:
        """A message; the system prompt is none, and set apart."""
        if message["role"] == "system":
            self._manager.set_system_prompt(message["content"])
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in calls_of(message))
        answers = message.get("tool_call_id")
        return Message(message["role"], message.get("content"), calls, answers, message.get("name"))

    def add(self, prepared: Message) -> None:
        """Appends it."""
        if prepared.role != "system":
            self._manager.add((prepared,))

    def count(self) -> int:
        """The tokens of the history: only what is new is counted."""
        return self._manager.history.tokens(self._counter)

    def build(self) -> list[Message]:
        """What is sent."""
        return self._manager.build_messages()

    def sent(self, built: list[Message]) -> Sequence[OpenAIMessage]:
        """By its own rendering for OpenAI."""
        body, _ = formats.openai("gpt-4o", "", built, (), {})
        messages: list[OpenAIMessage] = body["messages"]
        return messages

    def encode(self) -> bytes:
        """The messages as a reply of the daemon holds them."""
        return msgspec.json.encode({"messages": self._manager.history.encoded()})
