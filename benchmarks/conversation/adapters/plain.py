"""The reference: everything that was ever said is sent."""

import json
from collections.abc import Sequence

from benchmarks.conversation.facts import OpenAIMessage


class Everything:
    """A list."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._messages: list[OpenAIMessage] = []

    def prepare(self, message: OpenAIMessage) -> OpenAIMessage:
        """The message itself."""
        return message

    def add(self, prepared: OpenAIMessage) -> None:
        """Appends it."""
        self._messages.append(prepared)

    def build(self) -> list[OpenAIMessage]:
        """All of it."""
        return self._messages

    def sent(self, built: list[OpenAIMessage]) -> Sequence[OpenAIMessage]:
        """All of it."""
        return built

    def encode(self) -> bytes:
        """By the standard library: what others are held against."""
        return json.dumps(self._messages).encode()
