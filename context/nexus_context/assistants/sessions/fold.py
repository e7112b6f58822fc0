"""Turns the steps of a session into its report. One fold for all formats; it is the only mutable state.

1. Several records of one request count once. If a key comes again, the larger of each figure counts.
2. A request made aside, such as one for a summary, has usage and cost, but its window is not the session's.
3. Where the program states its own sums, they count, and what came after its last statement is added. A
   statement of less than the last one and what was recorded since is another process's, which counted from
   zero.
4. A sum names what it does not include (`Sum.lacks`). An answer that was recorded before it ended is
   estimated from its text.
5. If the beginning of a file was not read, the window is complete only after the next compaction.
6. Messages are kept from one compaction to the next, at most MOST_CHARACTERS, to find what the compaction
   dropped. Only the last compaction is compared, when its report is wanted.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from nexus_context.assistants.sessions.cache_misses import (
    CacheSituation,
    FindChange,
    cache_state,
    lifetime_of,
    state_after_compaction,
)
from nexus_context.assistants.sessions.prices import (
    ALL_ALIKE,
    RequestPrice,
    TokenPrices,
    limits_of,
    price,
    request_prices,
)
from nexus_context.assistants.sessions.receipt import CompactionReceipt
from nexus_context.assistants.sessions.report import (
    CacheMiss,
    CacheState,
    CompactionReport,
    CostOrigin,
    DroppedItems,
    ReportedWindow,
    SessionReport,
    SubAgent,
)
from nexus_context.assistants.sessions.session_types import AssistantSession, Usage, larger_window, sum_usages
from nexus_context.assistants.sessions.steps import (
    AgentStep,
    AssistantRequest,
    Definitions,
    LoadedInstructions,
    Memo,
    SessionCompaction,
    StatedTotals,
    Step,
    ToolOutput,
    ToolUse,
    WindowText,
)
from nexus_context.assistants.sessions.tool_costs import Tool, ToolCosts
from nexus_context.assistants.sessions.window_parts import Part, WindowParts, estimate, rows
from nexus_context.conversation.message import Message, Role, ToolCall

MOST_CHARACTERS = 8_000_000  # of messages that are kept
LONGEST_TEXT = 40_000  # characters of one of them: names are sought at its ends
MOST_MISSES = 50  # the latest
MOST_COMPACTIONS = 50
ZERO = Usage()
_ROLES: dict[str, Role] = {"user": "user", "answers": "assistant", "summary": "user"}


USUAL_WINDOW = 200_000
"""Tokens of Claude's window, unless one of a million is asked for."""
UNENDED = 8
"""Output tokens at most of an answer that was recorded as it began: what the provider counted by then."""
NO_USAGE = RequestPrice(None, ("an answer without its usage",))
SUMMARY = RequestPrice(None, ("the request for a summary, which the program does not record",))


class Sum(msgspec.Struct):
    """The usage and cost of several requests. `lacks` counts, by reason, the requests that the cost does not
    include wholly.
    """

    usage: Usage = ZERO
    priced_usd: float = 0.0
    priced: int = 0
    lacks: Counter[str] = msgspec.field(default_factory=Counter)

    @property
    def cost_usd(self) -> float | None:
        """The known cost in US dollars: 0 without any request, None if no request has a price."""
        return self.priced_usd if self.priced or not self.lacks else None

    def add(self, usage: Usage, cost: RequestPrice) -> None:
        """Add a request with what it cost."""
        self.usage = add_usage(self.usage, usage)
        if cost.usd is not None:
            self.priced_usd += cost.usd
            self.priced += 1
        if cost.lacks:
            self.lacks.update(cost.lacks)

    def remove(self, usage: Usage, cost: RequestPrice) -> None:
        """Take a request out again, because more is known about it now."""
        less = Usage(
            fresh=-usage.fresh,
            cache_read=-usage.cache_read,
            cache_write=-usage.cache_write,
            output=-usage.output,
        )
        self.usage = add_usage(self.usage, less)
        if cost.usd is not None:
            self.priced_usd -= cost.usd
            self.priced -= 1
        if cost.lacks:
            self.lacks = self.lacks - Counter(cost.lacks)

    def include(self, other: "Sum") -> None:
        """Add all requests of another sum."""
        self.usage = add_usage(self.usage, other.usage)
        self.priced_usd += other.priced_usd
        self.priced += other.priced
        self.lacks.update(other.lacks)


class _Answered(msgspec.Struct):
    """A request that was counted, as its records say so far. `estimated` are tokens of its answer."""

    request: AssistantRequest
    cost: RequestPrice
    estimated: int = 0


class SessionFold:
    """Takes in the steps of one conversation, and knows what they come to.

    `find_change` gets two times and returns an instruction file that was written between them, else an empty
    text.
    """

    def __init__(self, *, is_partial: bool = False, find_change: FindChange = lambda *_: "") -> None:
        self.requests = 0
        self.last: AssistantRequest | None = None
        self.sum = Sum()
        self.instructions: dict[str, str] = {}
        self.agents: dict[str, SessionFold] = {}
        self.first_words: str | None = None
        self.parts = WindowParts()
        self.parts.is_partial = is_partial
        self._is_partial = is_partial
        self._find_change = find_change
        self._answered: dict[str, _Answered] = {}  # by the key of the request
        self._stated = StatedTotals()
        self._restarted = Sum()  # what earlier processes stated in the end
        self._estimated = Sum()  # answers since the last statement
        self._usage_since = Sum()  # what came after the program's statement of usage, and of cost
        self._cost_since = Sum()
        self._stated_at = 0.0
        self._largest = 0  # tokens of the largest request to the last model
        self._situation = CacheSituation()
        self._misses: deque[CacheMiss] = deque(maxlen=MOST_MISSES)
        self._missed = Sum()
        self._compactions: deque[CompactionReport] = deque(maxlen=MOST_COMPACTIONS)
        self._tools = ToolCosts()
        self._calls: dict[str, Tool] = {}
        self._definitions: Definitions | None = None
        self._answer: list[tuple[Part, float]] = []  # parts of the last answer with their estimates
        self._memos: deque[Memo] = deque()
        self._characters = 0
        self._is_cut = is_partial  # whether messages since the last compaction are missing
        self._receipt = CompactionReceipt(())  # of the last compaction
        self._history: list[Message] = []  # from the last compaction to the next request
        self._is_after_compaction = False  # until the next request
        self._dropped: tuple[int, DroppedItems] | None = None

    # ------------------------------------------------------------ steps

    def take(self, step: Step | AgentStep) -> None:
        """Take in the next step."""
        if isinstance(step, AgentStep):
            self.agents.setdefault(step.agent, SessionFold()).take(step.step)
        elif isinstance(step, AssistantRequest):
            self._take_request(step)
        elif isinstance(step, WindowText):
            self._take_passage(step)
        elif isinstance(step, ToolUse):
            self._take_call(step)
        elif isinstance(step, ToolOutput):
            self._take_output(step)
        elif isinstance(step, SessionCompaction):
            self._take_compaction(step)
        elif isinstance(step, LoadedInstructions):
            self._take_instructions(step)
        elif isinstance(step, Definitions):
            self._take_definitions(step)
        else:
            self._take_totals(step)

    def _take_request(self, request: AssistantRequest) -> None:
        answered = self._answered.get(request.key)
        if answered is not None:
            self._take_longer_answer(answered, request)
            return
        self._spread_answer()
        self._answered[request.key] = answered = _Answered(request, _price(request))
        if not request.is_inherited:  # the origin counts it
            self.requests += 1
            self._count(answered, self._all_sums)
        if request.usage.sent or request.usage.output:
            self._open(request)

    def _open(self, request: AssistantRequest) -> None:
        if not request.is_aside:
            self._take_window(request, request_prices(request))
            self.last = request

    def _take_longer_answer(self, answered: _Answered, request: AssistantRequest) -> None:
        earlier_request = answered.request
        longer = merge_requests(earlier_request, request)
        if longer == earlier_request or earlier_request.is_inherited:
            return
        self._uncount(answered)
        answered.request, answered.cost = longer, _price(longer)
        self._count(answered, self._all_sums)
        if not (earlier_request.usage.sent or earlier_request.usage.output):
            self._open(longer)
        elif self.last is not None and self.last.key == request.key:
            self.parts.widen(longer.usage.sent)
            self.last = self._situation.last = longer

    @property
    def _all_sums(self) -> tuple[Sum, ...]:
        return self.sum, self._usage_since, self._cost_since

    def _count(self, answered: _Answered, sums: Iterable[Sum]) -> None:
        for running_sum in sums:
            running_sum.add(answered.request.total, answered.cost)

    def _uncount(self, answered: _Answered) -> None:
        for running_sum in self._all_sums:
            running_sum.remove(answered.request.total, answered.cost)
        self._estimate_answer(answered, 0)

    def _estimate_answer(self, answered: _Answered, tokens: int) -> None:
        """Count an answer that was recorded before it ended with this many tokens more than it states."""
        prices = request_prices(answered.request)
        for count, change in ((answered.estimated, self._estimated.remove), (tokens, self._estimated.add)):
            if count:
                change(Usage(output=count), RequestPrice(None if prices is None else prices.output * count))
        answered.estimated = tokens

    def _estimate_last(self) -> None:
        """Estimate the last answer from its text, if it was recorded before it ended."""
        answered = None if self.last is None else self._answered.get(self.last.key)
        if answered is None or answered.request.is_inherited:
            return
        if answered.request.is_unended and answered.request.usage.output <= UNENDED:
            answer_tokens = round(sum(tokens for _, tokens in self._answer))
            unstated_tokens = max(answer_tokens - answered.request.usage.output, 0)
            if unstated_tokens > answered.estimated:
                self._estimate_answer(answered, unstated_tokens)

    def _take_window(self, request: AssistantRequest, prices: TokenPrices | None) -> None:
        sent_before = self.parts.sent
        is_same = self.last is not None and self.last.model == request.model
        self._largest = max(request.usage.sent, self._largest if is_same else 0)
        new_parts = self.parts.take_request(request.usage.sent)
        self._tools.take_request(
            self.parts.tokens, new_parts, sent_before=sent_before, usage=request.usage, prices=prices
        )
        if self._is_partial and self.last is None:  # what was before it, nobody knows
            self._situation.last = request
        elif (
            miss := self._situation.take_request(request, self._find_change)
        ) is not None and not request.is_inherited:
            self._misses.append(miss)
            if miss.cause != "first":
                self._missed.add(Usage(cache_write=miss.tokens), RequestPrice(miss.cost_usd))
        if self._is_after_compaction:
            self._compactions[-1] = replace(self._compactions[-1], after=request.usage.sent)
            self._is_after_compaction = False

    def _take_passage(self, passage: WindowText) -> None:
        tokens, text = estimate(passage.text, passage.units), passage.text
        part: Part = (passage.category, passage.label, None)
        if passage.category in ("answers", "thinking"):
            self._answer.append((part, tokens))
        else:
            self.parts.add(part, tokens)
        role = _ROLES.get(passage.category)
        if role is not None and text:
            self._remember(passage.id, Message(role, text[:LONGEST_TEXT]))
        elif passage.category == "attachments" and text and self._is_after_compaction:
            self._history.append(Message("user", text[:LONGEST_TEXT]))
        if passage.category == "user" and self.first_words is None and text.strip():
            self.first_words = text

    def _take_call(self, call: ToolUse) -> None:
        if call.id in self._calls:  # a record that was written again
            return
        tool = call.tool, call.server
        self._calls[call.id] = tool
        self._tools.add_call(tool)
        encoded = call.arguments if isinstance(call.arguments, str) else _json(call.arguments)
        self._answer.append((("calls", *tool), estimate(encoded) + estimate(call.tool)))
        arguments = call.arguments if len(encoded) <= LONGEST_TEXT else encoded[:LONGEST_TEXT]
        self._remember(
            call.record, Message("assistant", None, tool_calls=(ToolCall(call.id, call.tool, arguments),))
        )

    def _take_output(self, output: ToolOutput) -> None:
        tool = self._calls.get(output.call, ("unknown", None))
        if output.is_error:
            self._tools.add_error(tool)
        self.parts.add(("results", *tool), estimate(output.text, output.units))
        message = Message("tool", output.text[:LONGEST_TEXT], tool_call_id=output.call, name=tool[0])
        self._remember(output.record, message)

    def _take_compaction(self, compaction: SessionCompaction) -> None:
        last_request = self.last
        tokens_before = None if last_request is None else last_request.usage.sent + last_request.usage.output
        self._compactions.append(
            CompactionReport(
                at=compaction.at,
                trigger=compaction.trigger,
                before=compaction.before or tokens_before,
                after=compaction.after,
                is_partial=self._is_cut,
            )
        )
        if not compaction.is_recorded:
            for running_sum in self._all_sums:
                running_sum.add(ZERO, SUMMARY)
        preserved_memos = [memo for memo in self._memos if memo.record in compaction.preserved]
        self._receipt = CompactionReceipt([memo.message for memo in self._memos])
        self._history = [memo.message for memo in preserved_memos]
        self._dropped = None
        self._answer = []
        self.parts.compact()
        for memo in preserved_memos:
            content = memo.message.content
            if isinstance(content, str):
                self.parts.add(
                    ("user" if memo.message.role == "user" else "answers", "", None), estimate(content)
                )
        self._memos, self._characters, self._is_cut = deque(preserved_memos), 0, False
        self._is_after_compaction = self._situation.is_compacted = True

    def _take_instructions(self, loaded: LoadedInstructions) -> None:
        for path, text in loaded.files:
            if self.instructions.get(path, text) != text:
                self._situation.changed_file = path
            self.instructions[path] = text
            self.parts.add(("instructions", path, None), estimate(text))

    def _take_definitions(self, definitions: Definitions) -> None:
        previous_definitions, self._definitions = self._definitions, definitions
        if previous_definitions is not None and (previous_definitions.system, previous_definitions.tools) != (
            definitions.system,
            definitions.tools,
        ):
            self._situation.changed_tools = True

    def _take_totals(self, totals: StatedTotals) -> None:
        previous_totals = self._stated
        if self._is_restarted(totals):
            self._restarted.include(Sum(previous_totals.usage or ZERO, previous_totals.cost_usd or 0.0))
        if totals.usage is not None:
            self._usage_since = Sum()
        if totals.cost_usd is not None:
            self._cost_since = Sum()
            self._stated_at = max(self.last.at if self.last is not None else 0.0, totals.at or 0.0)
        if totals.usage is not None or totals.cost_usd is not None:
            self._estimated = Sum()
        self._stated = StatedTotals(
            totals.usage or previous_totals.usage,
            previous_totals.cost_usd if totals.cost_usd is None else totals.cost_usd,
            totals.window or previous_totals.window,
            at=previous_totals.at if totals.cost_usd is None else totals.at,
            lacks=previous_totals.lacks if totals.cost_usd is None else totals.lacks,
        )

    def _is_restarted(self, totals: StatedTotals) -> bool:
        """Whether the program began to count anew: its sums are below the previous ones (rule 3)."""
        previous_totals, since = self._stated, self._usage_since.usage
        if (
            previous_totals.cost_usd is not None
            and totals.cost_usd is not None
            and totals.cost_usd < previous_totals.cost_usd
        ):
            return True
        if previous_totals.usage is None or totals.usage is None:
            return False
        least_usage = (
            previous_totals.usage if totals.is_continued else add_usage(previous_totals.usage, since)
        )
        return totals.usage.sent < least_usage.sent or totals.usage.output < least_usage.output

    def _spread_answer(self) -> None:
        """Divide the provider's output tokens among the parts of the last answer; without them, estimate."""
        self._estimate_last()
        answer, self._answer = self._answer, []
        estimated_tokens = sum(tokens for _, tokens in answer)
        answered = None if self.last is None else self._answered.get(self.last.key)
        output = answered.request.usage.output + answered.estimated if answered is not None else 0
        factor = output / estimated_tokens if estimated_tokens and output else 1.0
        prices = None if self.last is None else request_prices(self.last)
        for part, tokens in answer:
            self.parts.add(part, tokens * factor)
            if part[0] == "calls":
                self._tools.add_output((part[1], part[2]), tokens * factor, prices)

    def _remember(self, record: str, message: Message) -> None:
        self._memos.append(Memo(record, message))
        if self._is_after_compaction:
            self._history.append(message)
        self._characters += _length(message)
        while self._characters > MOST_CHARACTERS:
            self._characters -= _length(self._memos.popleft().message)
            self._is_cut = True

    # ------------------------------------------------------------ report

    def since(self, at: float) -> Sum:
        """Sum up the requests after a time, in seconds since 1970. Requests of the session's origin are left
        out.
        """
        later = Sum()
        for answered in reversed(self._answered.values()):
            if answered.request.at <= at:
                break
            if not answered.request.is_inherited:
                self._count(answered, (later,))
        return later

    def total_sum(self) -> Sum:
        """Sum up all requests, with estimates for answers that were recorded before they ended."""
        self._estimate_last()
        total = Sum()
        total.include(self.sum)
        total.include(self._estimated)
        return total

    def sub_agent(self, name: str, title: str | None = None) -> SubAgent:
        """Describe this conversation as that of a sub-agent."""
        last_request, total = self.last, self.total_sum()
        words = title or self.first_words
        return SubAgent(
            id=name,
            title=None if words is None else words[:200],
            model=None if last_request is None else last_request.model,
            requests=self.requests,
            usage=total.usage,
            window=self.parts.sent,
            cost_usd=total.cost_usd,
            changed=0.0 if last_request is None else last_request.at,
            lacks=dict(total.lacks),
            estimated=self._estimated.usage.output,
        )

    def report(
        self,
        session: AssistantSession,
        *,
        files: Sequence[tuple[str, float]] = (),
        agents: Sequence[SubAgent] = (),
        agents_since: Callable[[float], Sum] | None = None,
    ) -> SessionReport:
        """Make the report of the session. `session` and `agents` are what the caller knows of it and its
        sub-agents.

        `files` are instruction files with their tokens, for programs whose transcripts do not name them.
        `agents_since` sums up the sub-agents' requests after a time; it is None if the program's own sums do
        not include them.
        """
        last_request = self.last
        model = session.model if last_request is None else last_request.model
        self._estimate_last()
        every_agent = [*agents, *(fold.sub_agent(name) for name, fold in self.agents.items())]
        later_agents = None if agents_since is None else self._later_agents(every_agent, agents_since)
        total, total_origin = self._total(every_agent, later_agents)
        cost, cost_origin, lacks = self._cost(total, every_agent, later_agents)
        size = self._stated.window or self._evident_window(session.window, model)
        tokens = self.parts.current()
        own_files = () if self.instructions else files
        reported_parts = rows(tokens, self._definitions, own_files)
        return SessionReport(
            assistant=session.assistant,
            id=session.id,
            path=session.path,
            folder=session.folder,
            title=session.prompt or self.first_words,
            model=model,
            version=(last_request.version if last_request is not None else None) or session.version,
            started=session.started,
            changed=session.changed,
            requests=self.requests,
            window=ReportedWindow(
                sum(part.tokens for part in reported_parts), size, reported_parts, self.parts.sent == 0
            ),
            last=None if last_request is None else last_request.usage,
            last_at=0.0 if last_request is None else last_request.at,
            total=total,
            total_origin=total_origin,
            cost_usd=cost,
            cost_origin=cost_origin,
            lacks=lacks,
            estimated=self._estimated.usage.output + sum(agent.estimated for agent in every_agent),
            cache=None
            if last_request is None
            else self._cache_state(last_request, sum(part.tokens for part in reported_parts)),
            misses=tuple(self._misses),
            missed_tokens=self._missed.usage.cache_write,
            missed_usd=self._missed.cost_usd,
            compactions=self._reported_compactions(session.folder),
            tools=self._tools.report(tokens),
            agents=tuple(every_agent),
            instructions=tuple(self.instructions) or tuple(path for path, _ in own_files),
            parent=session.parent,
            fork_of=session.fork_of,
        )

    def _evident_window(self, stated: int | None, model: str | None) -> int | None:
        """The registry's window size, unless the requests or compactions of the session show another."""
        limits = limits_of(model or "")
        size = stated or (limits.context_window if limits.known else None)
        compacted = [
            compaction.before
            for compaction in self._compactions
            if compaction.trigger == "auto" and compaction.before
        ]
        if limits.provider == "anthropic" and compacted and max(*compacted, self._largest) <= USUAL_WINDOW:
            size = USUAL_WINDOW
        return larger_window(size, self._largest)

    def _cache_state(self, last_request: AssistantRequest, window: int) -> CacheState:
        if self.parts.sent == 0:  # what was sent has been compacted since
            return state_after_compaction(last_request, window, lifetime_of(last_request))
        return cache_state(last_request, self.parts.pending, lifetime_of(last_request))

    def _later_agents(self, agents: Sequence[SubAgent], agents_since: Callable[[float], Sum]) -> Sum:
        """What the sub-agents used after the program's last statement, which includes them."""
        stated = self._stated.usage
        if stated is not None and self._stated.at is None:
            recorded = sum_usages((self.sum.usage, *(agent.usage for agent in agents)))
            total = sum_usages((self._restarted.usage, stated, self._usage_since.usage))
            if recorded.sent <= total.sent and recorded.output <= total.output:
                return Sum()
        return agents_since(self._stated_at)

    def _total(self, agents: Sequence[SubAgent], later_agents: Sum | None) -> tuple[Usage, CostOrigin]:
        stated, origin = self._stated.usage, "nexus"
        total = add_usage(self.sum.usage, self._estimated.usage)
        if stated is not None:
            later_usage = ZERO if later_agents is None else later_agents.usage
            later = sum_usages((self._usage_since.usage, self._estimated.usage, later_usage))
            total = sum_usages((self._restarted.usage, stated, later))
            origin = "both" if later != ZERO else "program"
        if stated is None or later_agents is None:
            for agent in agents:
                total = add_usage(total, agent.usage)
                origin = "both" if stated is not None else origin
        return total, origin  # type: ignore[return-value]

    def _cost(
        self, total: Usage, agents: Sequence[SubAgent], later_agents: Sum | None
    ) -> tuple[float | None, CostOrigin | None, dict[str, int]]:
        """The cost, who summed it up, and what it lacks."""
        stated_usd = self._stated.cost_usd
        if stated_usd is None and self._is_partial and self._stated.usage is not None:
            # as if all had been as the last one
            prices = None if self.last is None else request_prices(self.last)
            reason = {ALL_ALIKE: self.requests}
            return (None, None, reason) if prices is None else (prices.cost(total), "nexus", reason)
        cost_sum = Sum()
        cost_sum.include(self.sum if stated_usd is None else self._cost_since)
        cost_sum.include(self._estimated)
        if stated_usd is not None and later_agents is not None:
            cost_sum.include(later_agents)
        else:
            for agent in agents:
                cost = agent.cost_usd
                cost_sum.include(Sum(agent.usage, cost or 0.0, int(cost is not None), Counter(agent.lacks)))
        if stated_usd is None:
            cost_sum.lacks.update(self._unrecorded())
            if not self.requests and not agents:
                return None, None, dict(cost_sum.lacks)
            return cost_sum.cost_usd, None if cost_sum.cost_usd is None else "nexus", dict(cost_sum.lacks)
        cost_sum.lacks.update(self._stated.lacks)
        is_later = cost_sum.usage != ZERO
        cost = self._restarted.priced_usd + stated_usd + cost_sum.priced_usd
        return cost, "both" if is_later else "program", dict(cost_sum.lacks)

    def _unrecorded(self) -> dict[str, int]:
        """What the program counts beyond the requests that it recorded."""
        if self._is_partial:
            return {"what of the file was not read": 0}
        if self._stated.usage is None:
            return {}
        missing = add_usage(self._restarted.usage, self._stated.usage).sent - self.sum.usage.sent
        missing += self._usage_since.usage.sent
        return {f"requests of {missing:,} tokens that are not recorded": 0} if missing > 0 else {}

    def _reported_compactions(self, folder: str | None) -> tuple[CompactionReport, ...]:
        if not self._compactions:
            return ()
        *earlier_compactions, last_compaction = self._compactions
        if self._dropped is None or self._dropped[0] != len(self._history):
            self._dropped = len(self._history), self._receipt.compare(self._history, folder)
        return (*earlier_compactions, replace(last_compaction, dropped=self._dropped[1]))


def _price(request: AssistantRequest) -> RequestPrice:
    return price(request) if request.total != ZERO or request.cost_usd is not None else NO_USAGE


def merge_requests(first: AssistantRequest, second: AssistantRequest) -> AssistantRequest:
    """Merge two records of one request. Of each figure the larger one counts."""
    longer = second if second.total.output >= first.total.output else first
    return replace(
        longer,
        at=first.at,
        model=longer.model or first.model or second.model,
        usage=largest_usage(first.usage, second.usage),
        written_1h=max(first.written_1h, second.written_1h),
        modes=tuple(dict.fromkeys((*first.modes, *second.modes))),
        searches=max(first.searches, second.searches),
        iterations=max(
            first.iterations, second.iterations, key=lambda parts: sum(part.usage.output for part in parts)
        ),
        is_unended=first.is_unended and second.is_unended,
    )


def largest_usage(first: Usage, second: Usage) -> Usage:
    """Return the larger of each figure of two usages."""
    return Usage(
        fresh=max(first.fresh, second.fresh),
        cache_read=max(first.cache_read, second.cache_read),
        cache_write=max(first.cache_write, second.cache_write),
        output=max(first.output, second.output),
    )


def add_usage(first: Usage, second: Usage) -> Usage:
    """Return the sum of two usages, figure by figure."""
    return sum_usages((first, second))


def _length(message: Message) -> int:
    return len(message.content) if isinstance(message.content, str) else 200


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return ""
