"""What an agent's engine returns from a turn: the messages that it produced, and what the provider said."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.errors import RequestError


class ProviderUsage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The tokens of a turn's last request and its answer, by the provider's own count.

    `input_tokens` excludes what was read from the provider's cache or written to it; None: not said. Figures
    of several requests must not be added up: a context is as large as its last request.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def request_tokens(self) -> int:
        """All tokens of the request."""
        return self.input_tokens + (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)

    def check(self) -> None:
        """Raise RequestError for a negative number of tokens."""
        for field in msgspec.structs.fields(self):
            tokens = getattr(self, field.name)
            if tokens is not None and tokens < 0:
                raise RequestError(
                    f"providerUsage.{field.encode_name} is {tokens}; it must not be negative.",
                    code="bad-usage",
                )


class RequestBasis(NamedTuple):
    """What a request was made with: model, role of the agent, names of the tools, system prompt."""

    model: str | None
    role: str
    toolset: tuple[str, ...]
    prompt: str


class TurnOutcome(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a turn ended: by the provider's usage and reason to stop, or by an error; None: not said."""

    usage: ProviderUsage | None = None
    stop_reason: str | None = None
    error: str | None = None


class AgentResult(msgspec.Struct, frozen=True):
    """The result of a turn (seed 002). `messages` are all that belong to it, with the results of tools."""

    messages: Sequence[Message]
    outcome: TurnOutcome = TurnOutcome()

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools in these messages, in order."""
        return tuple(call for message in self.messages for call in message.tool_calls)

    @property
    def usage(self) -> ProviderUsage | None:
        """What the provider counted."""
        return self.outcome.usage

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped."""
        return self.outcome.stop_reason

    @property
    def error(self) -> str | None:
        """What made the turn fail."""
        return self.outcome.error
