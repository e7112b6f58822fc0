"""Holds the conversation of an agent. Its prompt, tools and budget are the agent's, and follow the agent's
files.

1. `system_prompt` and `get_tool_definitions` are what the agent's next request would be sent with.
2. `get_token_usage` returns the same as `Agent.usage`, and `build_messages` returns the messages that it
   counts.
3. `set_tool_definitions` offers tools to the agent; those that it may not use are left out.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from nexus_context.conversation.agent_result import RequestBasis
from nexus_context.conversation.budget import TokenUsage
from nexus_context.conversation.compaction.detection import CompactionSettings, settings_of
from nexus_context.conversation.message import Message
from nexus_context.conversation.sent_requests import AssembledRequest
from nexus_context.conversation.tools import name_of
from nexus_context.conversation.view import View, overflow
from nexus_context.conversation.window import Budget
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.store import Ledger
from nexus_context.tokens import TokenCounter
from nexus_context.turn import costs, models
from nexus_context.turn.costs import FixedPart
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Options, Request


class AgentConversation(ContextManager):
    """The messages of an agent, with its prompt, tools and budget."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        *,
        place: tuple[Ledger, str] | None = None,
        session: str = "main",
    ) -> None:
        """`snapshot` returns the agent's present one. With the `place` in a ledger, it is a session there."""
        self._snapshot = snapshot
        ledger, folder = place or (None, None)
        super().__init__(ledger=ledger, folder=folder, session=session)

    @property
    def counter(self) -> TokenCounter:
        """The counter of the agent's model."""
        return models.model_of(self._snapshot(), None)[1]

    @property
    def options(self) -> Options:
        """The options of the agent's next request: the tools that were passed to `set_tool_definitions`."""
        return Options(additional_tools=tuple(self._own.tools))

    @property
    def system_prompt(self) -> str:
        """The agent's system prompt, made from its files as they are now."""
        return self._fixed_part().prompt.text

    def set_system_prompt(self, text: str) -> None:  # noqa: ARG002 - the base class has it
        """Always raise RequestError, because the prompt comes from the agent's files or from
        `spawn(system_prompt=…)`.
        """
        raise RequestError(
            "The system prompt of an agent comes from its files. Start the agent with system_prompt to give "
            "it another.",
            code="bad-option",
        )

    def get_tool_definitions(self) -> list[dict[str, Any]]:
        """Return copies of the tools that the agent is offered, without those that it may not use."""
        return deepcopy(self._fixed_part().tools)

    def _request_basis(self, request: AssembledRequest | None) -> RequestBasis:
        if request is not None and request.basis is not None:
            return request.basis
        fixed, role = self._fixed_part(), self._snapshot().role
        return RequestBasis(
            fixed.model.given or None, role, tuple(map(name_of, fixed.tools)), fixed.prompt.text
        )

    def build_messages(self) -> list[Message]:
        """Return the system prompt and the messages to send, cut to the budget of the agent's model.

        Raise ContextOverflowError if not even the newest message fits.
        """
        fixed = self._fixed_part()
        view, spent = costs.fitted(self._snapshot(), self, fixed, self.options)
        if spent.over:
            raise overflow(view, spent.available)
        system = [Message("system", fixed.prompt.text)] if fixed.prompt.text else []
        return [*system, *view.sound_messages().messages]

    def get_token_usage(self) -> TokenUsage:
        """Return what the messages of `build_messages` and the tools cost, row by row. `Agent.usage` returns
        the same.
        """
        fixed = self._fixed_part()
        return costs.fitted(self._snapshot(), self, fixed, self.options, looking=True)[1]

    def apply_compaction(
        self,
        summary_message: Message,
        preserved_messages: Iterable[Message],
        new_system_prompt: str | None = None,
    ) -> None:
        """Replace the history by a summary and the preserved messages. The system prompt is still made from
        the agent's files.

        Raise RequestError if `new_system_prompt` is not None.
        """
        if new_system_prompt is not None:
            self.set_system_prompt(new_system_prompt)
        super().apply_compaction(summary_message, preserved_messages)

    # ------------------------------------------------------------ inside

    def _fixed_part(self) -> FixedPart:
        return costs.fixed_part(self._snapshot(), Request(options=self.options), now=None)

    def _settings(self) -> CompactionSettings:
        return settings_of(self._snapshot().effective)

    def _view(self, *, looking: bool = True) -> View:
        fixed = self._fixed_part()
        return costs.fitted(self._snapshot(), self, fixed, self.options, looking=looking)[0]

    def _budget(self) -> tuple[TokenCounter, Budget]:
        return self.counter, self._own_budget()

    def _own_budget(self) -> Budget:
        fixed = self._fixed_part()
        empty = costs.empty_usage(self._snapshot(), fixed, self.options)
        return Budget(empty.available, empty.total)
