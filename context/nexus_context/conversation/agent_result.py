"""Defines what an agent's engine returns from a turn: the messages that it produced, and what the provider
said.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.errors import RequestError


class ProviderUsage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The tokens of a turn's last request and its answer, as the provider counted them.

    `input_tokens` excludes tokens that were read from the provider's cache or written to it. The figures of
    the cache are None if the provider did not say them. Figures of several requests must not be added up: a
    context is as large as its last request.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def request_tokens(self) -> int:
        """All tokens of the request, including those of the cache."""
        return self.input_tokens + (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)

    def check(self) -> None:
        """Raise RequestError if a number of tokens is negative."""
        for field in msgspec.structs.fields(self):
            tokens = getattr(self, field.name)
            if tokens is not None and tokens < 0:
                raise RequestError(
                    f"providerUsage.{field.encode_name} is {tokens}; it must not be negative.",
                    code="bad-usage",
                )


class RequestBasis(NamedTuple):
    """What a request was made with: the model, the agent's role, the names of the tools, and the system
    prompt.
    """

    model: str | None
    role: str
    toolset: tuple[str, ...]
    prompt: str


class TurnOutcome(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a turn ended: the provider's usage and reason to stop, or an error. A field is None if nothing is
    known about it.
    """

    usage: ProviderUsage | None = None
    stop_reason: str | None = None
    error: str | None = None


class AgentResult(msgspec.Struct, frozen=True):
    """The result of a turn (seed 002). `messages` are all messages of the turn, including the results of
    tools.
    """

    messages: Sequence[Message]
    outcome: TurnOutcome = TurnOutcome()

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls in these messages, in order."""
        return tuple(call for message in self.messages for call in message.tool_calls)

    @property
    def usage(self) -> ProviderUsage | None:
        """The tokens that the provider counted, or None."""
        return self.outcome.usage

    @property
    def stop_reason(self) -> str | None:
        """The reason why the model stopped, or None."""
        return self.outcome.stop_reason

    @property
    def error(self) -> str | None:
        """The error that made the turn fail, or None."""
        return self.outcome.error
