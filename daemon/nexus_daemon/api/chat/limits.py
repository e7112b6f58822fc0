"""Limit what a turn may use, and count what it has used: steps, tokens and dollars."""

from collections.abc import Sequence
from typing import NamedTuple

from nexus_context.assistants.sessions.prices import price_sum
from nexus_context.assistants.sessions.session_types import Usage
from nexus_context.config.merge import Effective
from nexus_context.conversation.agent_result import ProviderUsage
from nexus_context.errors import RequestError
from nexus_daemon.protocol.chat import ChatOptions, ChatSpending


class TurnLimits(NamedTuple):
    """The most requests (`steps`), billed tokens and dollars that one turn may use."""

    steps: int
    tokens: int
    usd: float


def limits_of(effective: Effective, options: ChatOptions) -> TurnLimits:
    """Return the limits of a turn: each option of the request, else the setting.

    RequestError if an option is not positive or is above the setting.
    """

    def lowest(name: str, requested: float | None) -> float:
        limit = effective.get(f"/chat/{name}")
        if requested is None:
            return float(limit)
        if not 0 < requested <= limit:
            raise RequestError(
                f"`{name}` is {requested:g}: it must be above 0 and at most chat.{name}, {limit:g}.",
                code="bad-option",
            )
        return requested

    return TurnLimits(
        int(lowest("max_steps", options.max_steps)),
        int(lowest("max_tokens", options.max_tokens)),
        lowest("max_usd", options.max_usd),
    )


class TurnSpending:
    """Counts what the steps of a turn, and of the agents that it started, were billed for, at list prices.

    `parent` is the count of the turn that started this one. Everything counted here is counted there at once,
    and this turn also stops when a limit of the parent is reached.
    """

    def __init__(self, limits: TurnLimits, parent: "TurnSpending | None") -> None:
        self.steps = 0
        self._limits = limits
        self._above = parent
        self._tokens = 0
        self._usd: float | None = None
        self._lacks: dict[str, None] = {}

    def add(self, model: str, usage: ProviderUsage | None) -> None:
        """Count a step of a model. `usage` is None if the provider did not report it."""
        self.steps += 1
        if usage is None:
            self.include(0, None, ["a step whose tokens the provider did not count"])
            return
        counted = Usage(
            usage.input_tokens,
            usage.cache_read_tokens or 0,
            usage.cache_write_tokens or 0,
            usage.output_tokens,
        )
        price = price_sum(model, counted)
        self.include(counted.sent + counted.output, price.usd, list(price.lacks))

    def include(self, tokens: int, usd: float | None, lacks: Sequence[str]) -> None:
        """Count billed tokens and dollars here and in the parent turn.

        `usd` is None if the price is not known; `lacks` names what the sum of dollars leaves out.
        """
        self._tokens += tokens
        self._lacks.update(dict.fromkeys(lacks))
        if usd is not None:
            self._usd = (self._usd or 0.0) + usd
        if self._above is not None:
            self._above.include(tokens, usd, lacks)

    def reached(self) -> str | None:
        """Return the name of the setting whose limit allows no further step, else None."""
        return "chat.max_steps" if self.steps >= self._limits.steps else self.bill_reached()

    def bill_reached(self) -> str | None:
        """Return the name of the setting whose limit of tokens or dollars is reached, here or in the parent.

        None if no limit is reached.
        """
        if self._tokens >= self._limits.tokens:
            return "chat.max_tokens"
        if self._usd is not None and self._usd >= self._limits.usd:
            return "chat.max_usd"
        return None if self._above is None else self._above.bill_reached()

    def report(self) -> ChatSpending:
        """Return the sums in the protocol's form."""
        return ChatSpending(self._tokens, self._usd, list(self._lacks))
