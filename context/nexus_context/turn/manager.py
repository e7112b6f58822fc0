"""Holds the conversation of one session, and selects the part of it that fits the budget.

A Python program can use a `ContextManager` alone: it sets a system prompt and tools, adds messages, and gets
what to send. In the daemon a `ContextManager` holds a session's messages, and `assembly` adds the rest from
the folder's snapshot.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.conversation import coercion
from nexus_context.conversation.agent_result import RequestBasis
from nexus_context.conversation.body_shape import AS_IT_IS, BodyShape
from nexus_context.conversation.bound_thinking import SentRequest, report_behind
from nexus_context.conversation.budget import ContextConfig, TokenUsage, corrected, history_rows
from nexus_context.conversation.compaction.server import SplitTurn
from nexus_context.conversation.frozen import Frozen, frozen_of, frozen_text, settled
from nexus_context.conversation.history import Gap, History
from nexus_context.conversation.message import Message, sent_content
from nexus_context.conversation.reported_usage import Estimate, report_of
from nexus_context.conversation.sent_requests import AssembledRequest, SentRequests
from nexus_context.conversation.state import ConversationState
from nexus_context.conversation.summary import as_summary
from nexus_context.conversation.times import local_time, opening_message, with_times
from nexus_context.conversation.tools import check_tool
from nexus_context.conversation.view import View, overflow
from nexus_context.conversation.window import Budget, Policy, Window
from nexus_context.errors import RequestError
from nexus_context.tokens import (
    MinimalCounter,
    TokenCounter,
    complete,
    count_message,
    counter_for,
    family_of_counter,
    get_token_counter,
)
from nexus_context.tokens.correction import UNCORRECTED, Correction
from nexus_context.turn.manager_budget import ManagerBudget
from nexus_context.turn.message_methods import MessageMethods
from nexus_context.turn.one_thread import OneThread, in_one_thread

if TYPE_CHECKING:
    from nexus_context.conversation.agent_result import ProviderUsage
    from nexus_context.conversation.compaction.detection import CompactionSettings, Reason
    from nexus_context.conversation.compaction.receipt import Receipt
    from nexus_context.conversation.compaction.run import FinishedCompaction, Plan
    from nexus_context.ledger.records import Counted
    from nexus_context.ledger.store import Ledger
    from nexus_context.tokens.correction import UsageReport

# Compaction is imported where it is used: most conversations end before they are long enough.

WINDOWS = 8
"""Cuts that a conversation remembers: one for each model window and policy in use."""


@in_one_thread(
    *("add", "prune_unpaired_tool_results", "fix_orphaned_tool_calls", "ensure_assistant_after_tool_results"),
    *("clear_messages", "restore", "build_messages", "get_token_usage", "is_over_budget", "compact", "apply"),
    "append_stored",
    *("plan_compaction", "apply_compaction", "undo_compaction", "view"),
    *("set_system_prompt", "set_tool_definitions"),
)
class ContextManager(MessageMethods):
    """Holds the messages of one session. With its own system prompt and tools, it holds all that is sent to a
    model.

    Messages are immutable, their inputs are copied, and each is counted once. `messages` are all since the
    last compaction; `build_messages` cuts them. Threads must take turns: if two use it at once, the second
    gets RequestError, code `concurrent-use`.
    """

    def __init__(  # noqa: PLR0913 - a session of a ledger takes three
        self,
        config: ContextConfig | None = None,
        *,
        model: str | None = None,
        counter: MinimalCounter | TokenCounter | None = None,
        started: datetime | None = None,
        clock: Callable[[], datetime] | None = None,
        ledger: "Ledger | None" = None,
        folder: str | os.PathLike[str] | None = None,
        session: str = "main",
    ) -> None:
        """`started`, a local time, opens the session with a message that tells when it began.

        Without `config.max_tokens` the limit is the window of `model`, without a model 8,000 tokens.
        `compact`, `is_over_budget` and `add(usage=)` go by the budget of the last request of `assemble`.

        `counter` counts tokens; the default is that of `model`, else cl100k_base. `clock` returns the local
        time with its zone, which is told before each user message, and before a tool's result an hour later.

        With a `ledger`, the conversation is the `session` of an absolute `folder`: what is stored is read at
        once, each `add` is on the disk before it is in memory, and so are compactions. `clock` and, for a new
        session, `started` are then the computer's. LedgerError where the ledger cannot be read or written;
        nothing has changed then. ValueError without an absolute folder.
        """
        self.config, self.model = config or ContextConfig(), model
        self._counter = complete(counter or (counter_for(model) if model else get_token_counter()))
        self._own = ManagerBudget(self.config, model, self._counter)
        self._policy = self.config.policy
        self.in_use = OneThread()
        self._state = ConversationState(History())
        self._windows: dict[tuple[str, Policy, int], Window] = {}
        self._prompts: dict[str, tuple[str, str]] = {}  # before and after a compaction that changed it
        self._frozen: Frozen | None = None
        self.freezes = 0  # changes of the state in `frozen`
        self._last_request: datetime | None = None
        self._clock = clock
        self._told: datetime | None = None  # when a message last told the time of the clock
        self.correction = UNCORRECTED  # of the totals of its requests
        self.requests = SentRequests()  # that `assembly` made of this conversation
        self._stored = False  # whether the ledger has the opening message
        if ledger is not None:
            from nexus_context.turn.bound_session import BoundSession  # most conversations have none
        self._session = None if ledger is None else BoundSession(ledger, folder, session)
        if self._session is not None:
            self._clock = clock or local_time
            self._follow(started)
        elif started is not None:
            self._take(self._state.append([opening_message(started)]))

    # ------------------------------------------------------------ messages

    def __len__(self) -> int:
        """All messages since the last compaction, including those that are not loaded."""
        return len(self.history) + self.history.gap.messages

    @property
    def counter(self) -> TokenCounter:
        """The counter of this conversation's tokens."""
        return self._counter

    @property
    def revision(self) -> tuple[int, int]:
        """A value that differs after every change of the messages."""
        return self._state.replaced, self._state.length

    @property
    def frozen(self) -> Frozen | None:
        """The system prompt and tools with which the next request begins. None if they will be rendered anew.

        It becomes None when the messages are replaced: by a compaction, by its undo, or by a restored
        history.
        """
        return self._frozen

    @property
    def last_request(self) -> datetime | None:
        """The time of the last request after which the conversation continued. None if it is unknown."""
        return self._last_request

    def freeze(self, frozen: Frozen | None, *, at: datetime | None = None) -> None:
        """Set the system prompt and tools with which the next requests begin. None renders them anew once.

        `at` is the time of the request that was sent with them.
        """
        self.freezes += frozen is not self._frozen
        self._frozen = frozen
        self.requests.drop_proposals()
        self._last_request = at or self._last_request

    @property
    def history(self) -> History:
        """All loaded messages since the last compaction, whether they are sent or not. Do not change it."""
        return self._state.history

    @property
    def messages(self) -> list[Message]:
        """A copy of all loaded messages since the last compaction, in order and as their authors wrote
        them.
        """
        return self.history.in_order(self.history.messages[:])

    def add(self, messages: Iterable[Message], *, usage: "ProviderUsage | None" = None) -> None:
        """Add messages. In a conversation with a ledger they are one turn, which is stored first.

        `usage` is what the provider counted for the last answer and its request. A user message without a
        preamble gets the time of the clock. If a server compacted the conversation with its answer, the
        history is compacted as by `compact`.

        If the messages contain the turn message of an assembled context, they answer that request; otherwise
        `sent_requests` decides which request they answer. If a message cannot be sent, raise RequestError,
        code `bad-message`, which names the first one; then nothing has changed.
        """
        batch = coercion.messages_from(messages)
        coercion.check_usage(usage)
        told_at = self._told
        if self._clock is not None:
            batch, told_at = with_times(batch, self._clock(), told_at)
        turn = self.requests.bind(batch, self.history)
        split, request = turn.split, turn.request
        batch = tuple(split.messages)
        report = self._report(usage, batch, self.requests.last if request is None else request.sent)
        proposal = None if request is None else request.proposal
        frozen = settled(self._frozen, proposal, batch)
        at = request.at if request is not None and proposal is not None else None
        if self._session is None or not (batch or split.summary):
            self._take(self._state.append(batch))
            self._told = told_at
            if batch:
                self.requests.settle(turn)
                self.freeze(frozen, at=at)
            self._correct(report)
            self._compact_by_server(split)
            return
        opening = self.history.messages[0] if not self._stored else None
        counted = self._counted([*([opening] if opening else []), *batch])
        counted_opening = counted.pop(0) if opening else None
        changed = msgspec.UNSET if frozen is self._frozen else frozen_text(frozen)
        summary = None if split.summary is None else self._counted([split.summary])[0]
        follows = self._session.append(
            counted,
            counter=self.counter.name,
            opening=counted_opening,
            frozen=changed,
            compaction=self._session.server_compaction(summary, split.kept),
            report=report,
            usage=usage,
            basis=self._request_basis(request),
        )
        self._correct(report)
        self._stored, self._told = True, told_at
        if follows:
            self._take(self._state.append(batch))
            self.requests.settle(turn)
            self.freeze(frozen, at=at)
        else:
            self._follow()

    def clear_messages(self) -> None:
        """Forget all messages and compactions. System prompt and tools stay.

        In a conversation with a ledger, the session begins anew, and what was stored stays in the ledger.
        """
        if self._session is not None:
            self._session.clear()
            self._follow()
            return
        self.correction = msgspec.structs.replace(self.correction, anchor=None)
        self._take(self._state.restore(History()))

    def restore(
        self,
        messages: Sequence[Message],
        *,
        tokens: Sequence[int],
        counter: str,
        lead: int = 0,
        gap_messages: int = 0,
        gap_tokens: int = 0,
    ) -> None:
        """Replace the conversation, including its compactions, by a history from a ledger.

        `tokens` are the counts of the messages by the counter with the name `counter`. After the first `lead`
        messages, `gap_messages` messages of `gap_tokens` tokens are missing. A method that needs them raises
        RequestError, code `history-not-loaded`. A conversation that has a ledger itself raises RequestError,
        code `bad-option`.
        """
        self._refuse_with_ledger()
        checked = coercion.messages_from(messages)
        history = History.restored(checked, tokens, counter, Gap(lead, gap_messages, gap_tokens))
        self._take(self._state.restore(history))

    def append_stored(self, messages: History) -> None:
        """Add messages that a ledger already has, with their token counts. As with `restore`, the
        conversation must not have a ledger itself.
        """
        self._refuse_with_ledger()
        self._take(self._state.append_counted(messages))

    # ------------------------------------------------------------ what is sent

    @property
    def system_prompt(self) -> str:
        return self._own.system_prompt

    def set_system_prompt(self, text: str) -> None:
        self._own.set(system_prompt=text)

    def set_tool_definitions(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Set the tools, in the form of any provider. Raise RequestError for a tool without a name."""
        copies = []
        for index, tool in enumerate(tools):
            check_tool(tool, f"tools[{index}]")
            copies.append(coercion.copied(dict(tool), f"tools[{index}]", "bad-tool"))
        self._own.set(tools=copies)

    @property
    def prompt_and_tools(self) -> tuple[str, Sequence[Mapping[str, Any]]]:
        """The values of `set_system_prompt` and `set_tool_definitions`. Do not change them."""
        return self._own.system_prompt, self._own.tools

    def get_tool_definitions(self) -> list[dict[str, Any]]:
        """Return copies of the tool definitions, in the order in which they were set."""
        return deepcopy(self._own.tools)

    def build_messages(self) -> list[Message]:
        """Return the system prompt and the messages to send. They are cut to the budget, and broken pairs of
        calls and results are repaired.

        Raise ContextOverflowError if not even the newest message fits.
        """
        view = self._view(looking=False)
        if view.over:
            raise overflow(view, self._own_budget().available, is_assumed=self._own.is_assumed)
        messages = view.sound_messages().messages
        if self._own.system_prompt:
            messages.insert(0, Message("system", self._own.system_prompt))
        return messages

    def get_token_usage(self) -> TokenUsage:
        """Return what the messages of `build_messages` and the tools cost, row by row."""
        spent = self._own.usage(history_rows(self._view(), self.counter))
        return corrected(spent, self.correction, self.counter)

    def is_over_budget(self) -> bool:
        """Whether the next request must cut messages, because the messages of the last request and those
        added since exceed the budget.
        """
        if not self._windows:
            self._view()
        window, budget = next(reversed(self._windows.values())), self._budget()[1]
        return window.demand(budget) > budget.room

    # ------------------------------------------------------------ compaction

    def compact(
        self,
        *,
        made_at: datetime,
        settings: "CompactionSettings | None" = None,
        pins: Iterable[str | int] = (),
        instructions: str | None = None,
        overflow: bool = False,
    ) -> "Receipt":
        """Replace old messages by a summary of the embedded summarizer. Return a receipt, which lists what
        was lost.

        `pins` are texts that must stay word for word, and indexes of `history.messages` whose messages stay
        whole. Set `overflow` if a provider refused the context as too long. `made_at` is a local time. Raise
        CompactionError, without a change, if there is nothing to replace or nothing to gain.
        """
        from nexus_context.conversation.compaction.extractive import extract
        from nexus_context.conversation.compaction.run import finish

        counter, budget = self._budget()
        family = family_of_counter(counter).name
        plan = self.plan_compaction(
            counter,
            Budget(self.correction.capacity(budget.available, family), budget.fixed),
            settings=settings or self._settings(),
            pins=pins,
            instructions=instructions,
            overflow=overflow,
        )
        written = extract(plan.request(), counter)
        result = finish(plan, written, counter=counter, made_at=made_at)
        self.apply(result, counter)
        return result.receipt

    def plan_compaction(
        self,
        counter: TokenCounter,
        budget: Budget,
        *,
        settings: "CompactionSettings",
        reason: "Reason" = "explicit",
        pins: Iterable[str | int] = (),
        instructions: str | None = None,
        overflow: bool = False,
    ) -> "Plan":
        """Return what a compaction would replace. Its summary is then written elsewhere (`compaction.run`).

        Messages that are not loaded are replaced without being read. Raise CompactionError if there is
        nothing to replace, and RequestError if a pinned message is not loaded.
        """
        from nexus_context.conversation.compaction.receipt import CompactionError
        from nexus_context.conversation.compaction.run import CompactionRequest, plan

        request = CompactionRequest(reason, overflow, pins, instructions)
        planned = plan(self.history, counter, budget, settings=settings, request=request)
        if planned is None:
            raise CompactionError(
                "Nothing was compacted: all messages are new, pinned or a summary already.",
                code="nothing-to-compact",
            )
        return planned

    def apply(self, result: "FinishedCompaction", counter: TokenCounter) -> None:
        """Replace messages by the summary of a finished compaction, until it is undone with
        `undo_compaction`.
        """
        receipt, summary = result.receipt, result.summary_message
        if self._session is not None:
            self._store_compaction(receipt.id, summary, result.preserved_messages, receipt)
        else:
            self._take(self._state.compact(receipt.id, result.messages, counter))

    def apply_compaction(
        self,
        summary_message: Message,
        preserved_messages: Iterable[Message],
        new_system_prompt: str | None = None,
    ) -> None:
        """Replace the history by a summary and the preserved messages, and set `new_system_prompt` if it is
        not None. Leading system messages stay in any case.
        """
        from nexus_context.conversation.compaction.run import new_id

        summary_message = as_summary(coercion.message_from(summary_message, "summary_message"))
        preserved = self.history.with_leading(coercion.messages_from(preserved_messages))
        compaction = new_id()
        if self._session is not None:
            self._store_compaction(compaction, summary_message, preserved, {})
        else:
            self._take(self._state.compact(compaction, [summary_message, *preserved], self.counter))
        if new_system_prompt is not None and compaction in self.compactions:
            self._prompts[compaction] = self._own.system_prompt, new_system_prompt
            self.set_system_prompt(new_system_prompt)

    @property
    def compactions(self) -> list[str]:
        """The ids of the compactions that can be undone, oldest first."""
        if self._session is not None:
            return [*self._session.compactions]
        return [compaction.id for compaction in self._state.compactions]

    def undo_compaction(self, compaction: str | None = None) -> None:
        """Undo the last compaction, or the compaction with this id and all later ones. Messages that were
        added since stay.

        If a compaction set a new system prompt, that is undone, too, unless another prompt was set since.
        Raise RequestError if there is no such compaction.
        """
        ids = self.compactions
        if not ids or (compaction is not None and compaction not in ids):
            from nexus_context.conversation.compaction.receipt import nothing_to_undo

            raise RequestError(nothing_to_undo(compaction, ids), code="unknown-compaction")
        if self._session is not None:
            self._session.undo(compaction)
            self._follow()
        else:
            self._take(self._state.undo(compaction))
        for undone in reversed(ids):
            if undone not in self.compactions and undone in self._prompts:
                prompt_before, prompt_after = self._prompts.pop(undone)
                if self._own.system_prompt == prompt_after:
                    self.set_system_prompt(prompt_before)

    # ------------------------------------------------------------ for assembly

    def view(
        self,
        counter: TokenCounter,
        policy: Policy,
        budget: Budget,
        *,
        limit: int,
        looking: bool = False,
        shape: BodyShape = AS_IT_IS,
    ) -> View:
        """Return the messages that fit `budget`. Each `limit`, which stands for the window of a model, has
        its own cut.

        With `looking`, nothing is sent, so the conversation's cut does not move (rule 5 of `window`).
        """
        key = (counter.name, policy, limit)
        window = self._windows.pop(key, None) or Window(self.history, counter, policy)
        self._windows[key] = window  # the last used one is the last
        if len(self._windows) > WINDOWS:
            del self._windows[next(iter(self._windows))]
        return (window.look if looking else window.fit)(budget, shape=shape)

    # ------------------------------------------------------------ inside

    def _settings(self) -> "CompactionSettings":
        from nexus_context.conversation.compaction.detection import CompactionSettings

        return CompactionSettings()

    def _follow(self, started: datetime | None = None) -> None:
        """Read the session's history from the ledger, or open a new session."""
        assert self._session is not None  # noqa: S101 - only called with a ledger
        stored = self._session.load()
        self._stored = stored is not None
        history = History([opening_message(started or local_time())])
        if stored is not None:
            messages, name = stored.messages, self.counter.name
            tokens = [
                stored_message.tokens
                if stored_message.counter == name
                else self._tokens(stored_message.message)
                for stored_message in messages
            ]
            history = History.restored(
                [stored_message.message for stored_message in messages], tokens, name, Gap(0, 0, 0)
            )
        self._take(self._state.restore(history))
        self.freeze(frozen_of(self._session.frozen))
        self._correct(None)

    def _report(
        self, usage: "ProviderUsage | None", batch: Sequence[Message], request: SentRequest | None
    ) -> "UsageReport | None":
        if usage is None:
            return None
        if request is not None:
            return report_behind(request, self.history, usage, batch, correction=self.correction)
        total = self.get_token_usage().total
        estimate = Estimate(family_of_counter(self.counter).name, total, True, any(self.prompt_and_tools))
        return report_of(usage, estimate, batch, [*map(self._tokens, batch)], correction=self.correction)

    def _correct(self, report: "UsageReport | None") -> None:
        """Correct totals by what a provider counted; with a ledger, by all that it has."""
        if self._session is not None:
            self.correction = self._session.correction(family_of_counter(self._budget()[0]).name)
        elif report is not None:
            self.correction = Correction(report.family, anchor=report)

    def _request_basis(self, request: AssembledRequest | None) -> RequestBasis:
        return (request and request.basis) or self._own.basis()

    def _tokens(self, message: Message) -> int:
        return count_message(self.counter, sent_content(message), message.tool_calls, message.role)

    def _counted(self, messages: Iterable[Message]) -> "list[Counted]":
        from nexus_context.ledger.records import Counted

        return [Counted(message, self._tokens(message)) for message in messages]

    def _compact_by_server(self, split: SplitTurn) -> None:
        """Put the compaction of the last turn in force, if it has one."""
        if split.summary is None:
            return
        from nexus_context.conversation.compaction.run import new_id

        kept_messages = self.history.with_leading(self.history.messages[len(self.history) - split.kept :])
        self._take(self._state.compact(new_id(), [split.summary, *kept_messages], self.counter))

    def _store_compaction(
        self, compaction: str, summary: Message, preserved: Sequence[Message], receipt: Any
    ) -> None:
        """Write a compaction, and follow the ledger."""
        assert self._session is not None  # noqa: S101 - only called with a ledger
        name, counted = self.counter.name, self._counted([summary])[0]
        written = self._session.new_compaction(compaction, counted, name, receipt=receipt)
        self._session.compact(self.history.messages, preserved, written)
        self._follow()

    def _arrange(self, order: Sequence[int]) -> None:
        if [*order] == [*range(len(self.history))]:
            return
        if self._session is not None:
            self._session.arrange(order)
        self._take(self._state.cut(order, self.counter))

    def _refuse_with_ledger(self) -> None:
        if self._session is not None:
            raise RequestError(
                "This conversation is a session of a ledger; it reads its history itself.",
                code="bad-option",
            )

    def _take(self, state: ConversationState) -> None:
        """Take the next state."""
        is_replaced, self._state = state.replaced != self._state.replaced, state
        if is_replaced:
            self._windows.clear()
            self.freeze(None)

    def _view(self, *, looking: bool = True) -> View:
        return self.view(
            self.counter, self._policy, self._own_budget(), limit=self._own.limit, looking=looking
        )

    def _budget(self) -> tuple[TokenCounter, Budget]:
        """The counter and the budget of the last assembled request; without one those of this manager."""
        request = self.requests.last
        if request is None or request.size is None:
            return self.counter, self._own_budget()
        return request.size.counter, Budget(request.size.available, request.size.fixed)

    def _own_budget(self) -> Budget:
        return self._own.budget
