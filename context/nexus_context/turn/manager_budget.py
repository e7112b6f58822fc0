"""Computes the budget of a `ContextManager` that a program uses alone: its limits, and what its system prompt
and tools cost.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from nexus_context.conversation.agent_result import RequestBasis
from nexus_context.conversation.budget import ContextConfig, DefaultLimit, TokenUsage, UsageRow, usage
from nexus_context.conversation.tools import fixed_rows, name_of
from nexus_context.conversation.window import Budget
from nexus_context.folder.layers.agent_definitions import UNIFIED
from nexus_context.tokens import TokenCounter, get_model_limits


class ManagerBudget:
    """The limits, system prompt and tools of a manager, each counted once.

    `limit` is the number of tokens of the whole window. `is_assumed` is true if the configuration sets no
    limit and no model is known.
    """

    def __init__(self, config: ContextConfig, model: str | None, counter: TokenCounter) -> None:
        is_default = isinstance(config.max_tokens, DefaultLimit)
        self._limits = get_model_limits(model)
        self._most = None if is_default and model else config.max_tokens
        self._reserved = config.reserve_tokens
        self._counter = counter
        self.is_assumed = is_default and not model
        self.limit = self._limits.limit(self._most)
        self.system_prompt = ""
        self.tools: list[dict[str, Any]] = []
        self._fixed: tuple[UsageRow, ...] | None = None
        self._budget: Budget | None = None

    def set(self, *, system_prompt: str | None = None, tools: list[dict[str, Any]] | None = None) -> None:
        """Change the system prompt or the tools."""
        self.system_prompt = self.system_prompt if system_prompt is None else system_prompt
        self.tools = self.tools if tools is None else tools
        self._fixed = self._budget = None

    def basis(self) -> RequestBasis:
        """Return the model, role, tools and system prompt with which the manager's own requests are made."""
        names = tuple(map(name_of, self.tools))
        return RequestBasis(self._limits.given or None, UNIFIED, names, self.system_prompt)

    @property
    def rows(self) -> tuple[UsageRow, ...]:
        """The rows of what system prompt and tools cost."""
        if self._fixed is None:
            self._fixed = fixed_rows(self.system_prompt, self.tools, self._counter)
        return self._fixed

    def usage(self, rows: Iterable[UsageRow] = ()) -> TokenUsage:
        """Return the cost of system prompt, tools and `rows`."""
        every = [*self.rows, *rows]
        spent = usage(self._limits, self._counter, every, max_tokens=self._most, reserved=self._reserved)
        return msgspec.structs.replace(spent, limit_known=False) if self.is_assumed else spent

    @property
    def budget(self) -> Budget:
        if self._budget is None:
            spent = self.usage()
            self._budget = Budget(spent.available, spent.total)
        return self._budget
