"""Computes what the calls of each tool cost.

1. A call costs its share, by length, of the answer that it is in.
2. The arguments and the result of a call are new in the next request. Their tokens cost what new tokens cost
   there, whether or not they are written to the cache.
3. In each later request, up to the next compaction, they cost the mean price there of a token that had been
   sent before: the price of reading for what came from the cache, and that of new tokens for the rest.
"""

from collections.abc import Mapping

from nexus_context.assistants.sessions.prices import TokenPrices
from nexus_context.assistants.sessions.report import ToolCost
from nexus_context.assistants.sessions.session_types import Usage
from nexus_context.assistants.sessions.window_parts import Part

Tool = tuple[str, str | None]


class _Sums:
    __slots__ = ("calls", "cost", "errors", "tokens")

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.tokens = 0.0
        self.cost = 0.0


class ToolCosts:
    """Sums up the calls, errors, tokens and cost of each tool in one conversation."""

    def __init__(self) -> None:
        self._tools: dict[Tool, _Sums] = {}
        self._is_priced = True

    def add_call(self, tool: Tool) -> None:
        """Count a call of a tool."""
        self._of(tool).calls += 1

    def add_error(self, tool: Tool) -> None:
        """Count a call of a tool that failed."""
        self._of(tool).errors += 1

    def add_output(self, tool: Tool, tokens: float, prices: TokenPrices | None) -> None:
        """Add what a call's share of an answer costs. `tokens` are the tokens of that share."""
        if prices is not None:
            self._of(tool).cost += tokens * prices.output

    def take_request(
        self,
        tokens: Mapping[Part, float],
        new_parts: Mapping[Part, float],
        *,
        sent_before: int,
        usage: Usage,
        prices: TokenPrices | None,
    ) -> None:
        """Add what a request cost for calls and their results. `tokens` are the tokens of all parts of its
        window, `new_parts` those of the parts that were new in it.
        """
        if prices is None:
            self._is_priced = False
        read = min(usage.cache_read, sent_before)
        again = max(sent_before - read, 0)
        resend_price = 0.0
        if prices is not None and sent_before:
            resend_price = (read * prices.read + again * prices.new) / sent_before
        for part, count in tokens.items():
            category, label, server = part
            if category not in ("calls", "results"):
                continue
            sums, fresh = self._of((label, server)), new_parts.get(part, 0.0)
            if category == "results":
                sums.tokens += fresh
            if prices is not None:
                sums.cost += fresh * prices.new + max(count - fresh, 0.0) * resend_price

    def report(self, tokens: Mapping[Part, float]) -> tuple[ToolCost, ...]:
        """List the tools, the most expensive first. `tokens` are the tokens of each part of the window
        now.
        """
        costs = [
            ToolCost(
                tool=tool,
                server=server,
                calls=sums.calls,
                errors=sums.errors,
                tokens=round(sums.tokens),
                in_window=round(tokens.get(("results", tool, server), 0.0)),
                cost_usd=sums.cost if self._is_priced else None,
            )
            for (tool, server), sums in self._tools.items()
        ]
        return tuple(
            sorted(
                costs, key=lambda tool_cost: (-(tool_cost.cost_usd or 0.0), -tool_cost.tokens, tool_cost.tool)
            )
        )

    def _of(self, tool: Tool) -> _Sums:
        sums = self._tools.get(tool)
        if sums is None:
            sums = self._tools[tool] = _Sums()
        return sums
