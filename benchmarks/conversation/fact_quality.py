"""What a walk with facts in every turn is asked, and its sums."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec
from benchmarks.conversation.facts import OpenAIMessage
from benchmarks.conversation.turn_facts import TurnFacts

Vendor = Literal["anthropic", "openai"]
Body = dict[str, Any]

MODELS: Mapping[Vendor, str] = {"anthropic": "claude-opus-5-5", "openai": "gpt-5.6"}
MINIMUM: Mapping[Vendor, int] = {"anthropic": 512, "openai": 1_024}
"""Tokens of the shortest prefix that is cached for these models."""

UNCUT = 10**9  # tokens


class TurnSubject(Protocol):
    """One conversation whose turns carry facts, in the hands of one library.

    Methods return the nanoseconds that they took, as far as these are measured.
    """

    def load(self, messages: Sequence[OpenAIMessage]) -> None:
        """Appends a history, its system message first, without facts."""

    def begin(self, message: OpenAIMessage, facts: TurnFacts) -> int:
        """Begins a turn with the user's message. A system message comes first of all, without facts."""

    def build(self) -> tuple[Body, int]:
        """The body of the next request."""

    def answer(self, message: OpenAIMessage, thinking: Sequence[Body]) -> int:
        """Appends the assistant's message, with the thinking blocks that the provider gave with it."""

    def result(self, message: OpenAIMessage) -> int:
        """Appends a tool's result."""


class FactQuality(msgspec.Struct):
    """The sums of one walk."""

    requests: int = 0
    full: int = 0  # requests whose history no longer fits
    over_budget: int = 0
    refused: int = 0  # thinking behind a changed prefix
    invalid: int = 0  # refused for anything else, or not built: nothing is sent
    failure: str = ""  # the first one
    dropped: int = 0  # thinking blocks that were dropped, summed over requests
    sent_tokens: int = 0
    read_tokens: int = 0
    paid: float = 0.0  # plain tokens
    needed: int = 0
    kept: int = 0
    step_us: float = 0.0  # the median of what a step takes: add and build

    @property
    def hit(self) -> float:
        """The share of the sent tokens that are read from the cache."""
        return self.read_tokens / self.sent_tokens if self.sent_tokens else 0.0

    @property
    def cost(self) -> float:
        """What is paid for a sent token, relative to one without a cache."""
        return self.paid / self.sent_tokens if self.sent_tokens else 0.0

    @property
    def recall(self) -> float:
        """The share of the identifiers of next steps that were seen before and are still sent."""
        return self.kept / self.needed if self.needed else 1.0


class WalkedWithFacts(msgspec.Struct, frozen=True):
    """The quality of one walk."""

    vendor: Vendor
    trace: str
    budget: int
    quality: FactQuality
