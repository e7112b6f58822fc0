"""The steps of a session → its report. One fold for all formats; it is the only mutable state.

1. Records of one request are counted once: a key that was seen changes at most the output.
2. A request made aside (for a summary) has usage and cost, but its window is not the session's.
3. The program's own sums win where it states them. What came after its last statement is added.
4. Of a file whose beginning was not read, the window is complete after the next compaction in it.
5. Messages are kept from one compaction to the next, at most MOST_CHARACTERS: to say what the compaction
   dropped. Only the last one is compared, when its report is wanted.
"""

from collections import deque
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from nexus_context.assistants.sessions.cache_misses import (
    CacheSituation,
    FindChange,
    cache_state,
    lifetime_of,
    state_after_compaction,
)
from nexus_context.assistants.sessions.model import AssistantSession, Usage
from nexus_context.assistants.sessions.prices import TokenPrices, limits_of, request_prices
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


class Sum(msgspec.Struct):
    """Usage and cost of requests; the cost is None if one of them has no price."""

    usage: Usage = ZERO
    cost_usd: float | None = 0.0

    def add(self, usage: Usage, cost_usd: float | None) -> None:
        """Add a request."""
        self.usage = add_usage(self.usage, usage)
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd


class SessionFold:
    """What is known of one conversation so far.

    `find_change` says which instruction file was written between two times, empty for none.
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
        self._outputs: dict[str, int] = {}  # tokens of the answers so far, by the key of the request
        self._stated = StatedTotals()
        self._usage_since = Sum()  # what came after the program's statement of usage, and of cost
        self._cost_since = Sum()
        self._stated_at = 0.0
        self._log: list[tuple[float, Usage, float | None]] = []
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
        prices = request_prices(request.model, request.usage, request.written_1h)
        output = self._outputs.get(request.key)
        if output is not None:
            self._take_longer_answer(request, request.usage.output - output, prices)
            return
        self._outputs[request.key] = request.usage.output
        self._spread_answer()
        self.requests += 1
        cost = request.cost_usd
        if cost is None and prices is not None:
            cost = prices.cost(request.usage)
        self._add(request.at, request.usage, cost)
        if not request.is_aside:
            self._take_window(request, prices)
            self.last = request

    def _take_longer_answer(self, request: AssistantRequest, more: int, prices: TokenPrices | None) -> None:
        if more <= 0:
            return
        self._outputs[request.key] = request.usage.output
        self._add(request.at, Usage(output=more), None if prices is None else more * prices.output)
        if self.last is not None and self.last.key == request.key:
            self.last = self._situation.last = request

    def _take_window(self, request: AssistantRequest, prices: TokenPrices | None) -> None:
        before = self.parts.sent
        new = self.parts.take_request(request.usage.sent)
        self._tools.take_request(
            self.parts.tokens, new, sent_before=before, usage=request.usage, prices=prices
        )
        if self._is_partial and self.last is None:  # what was before it, nobody knows
            self._situation.last = request
        elif (miss := self._situation.take_request(request, self._find_change)) is not None:
            self._misses.append(miss)
            if miss.cause != "first":
                self._missed.add(Usage(cache_write=miss.tokens), miss.cost_usd)
        if self._is_after_compaction:
            self._compactions[-1] = replace(self._compactions[-1], after=request.usage.sent)
            self._is_after_compaction = False

    def _add(self, at: float, usage: Usage, cost: float | None) -> None:
        for each in (self.sum, self._usage_since, self._cost_since):
            each.add(usage, cost)
        self._log.append((at, usage, cost))

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
        last = self.last
        sent = None if last is None else last.usage.sent + last.usage.output
        self._compactions.append(
            CompactionReport(
                at=compaction.at,
                trigger=compaction.trigger,
                before=compaction.before or sent,
                after=compaction.after,
                is_partial=self._is_cut,
            )
        )
        preserved = [memo for memo in self._memos if memo.record in compaction.preserved]
        self._receipt = CompactionReceipt([memo.message for memo in self._memos])
        self._history = [memo.message for memo in preserved]
        self._dropped = None
        self._answer = []
        self.parts.compact()
        for memo in preserved:
            content = memo.message.content
            if isinstance(content, str):
                self.parts.add(
                    ("user" if memo.message.role == "user" else "answers", "", None), estimate(content)
                )
        self._memos, self._characters, self._is_cut = deque(preserved), 0, False
        self._is_after_compaction = self._situation.is_compacted = True

    def _take_instructions(self, loaded: LoadedInstructions) -> None:
        for path, text in loaded.files:
            if self.instructions.get(path, text) != text:
                self._situation.changed_file = path
            self.instructions[path] = text
            self.parts.add(("instructions", path, None), estimate(text))

    def _take_definitions(self, definitions: Definitions) -> None:
        before, self._definitions = self._definitions, definitions
        if before is not None and (before.system, before.tools) != (definitions.system, definitions.tools):
            self._situation.changed_tools = True

    def _take_totals(self, totals: StatedTotals) -> None:
        if totals.usage is not None:
            self._usage_since = Sum()
        if totals.cost_usd is not None:
            self._cost_since = Sum()
            self._stated_at = self._log[-1][0] if self._log else 0.0
        cost = self._stated.cost_usd if totals.cost_usd is None else totals.cost_usd
        window = totals.window or self._stated.window
        self._stated = StatedTotals(totals.usage or self._stated.usage, cost, window)

    def _spread_answer(self) -> None:
        """Share the provider's figure of the last answer among its parts; without one, take estimates."""
        answer, self._answer = self._answer, []
        whole = sum(tokens for _, tokens in answer)
        output = self.last.usage.output if self.last is not None else 0
        factor = output / whole if whole and output else 1.0
        prices = None if self.last is None else request_prices(self.last.model, self.last.usage)
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
        """The requests after a time."""
        later = Sum()
        for time, usage, cost in reversed(self._log):
            if time <= at:
                break
            later.add(usage, cost)
        return later

    def sub_agent(self, name: str, title: str | None = None) -> SubAgent:
        """This conversation as one of a sub-agent."""
        last = self.last
        words = title or self.first_words
        return SubAgent(
            id=name,
            title=None if words is None else words[:200],
            model=None if last is None else last.model,
            requests=self.requests,
            usage=self.sum.usage,
            window=self.parts.sent,
            cost_usd=self.sum.cost_usd,
            changed=0.0 if last is None else last.at,
        )

    def report(
        self,
        session: AssistantSession,
        *,
        files: Sequence[tuple[str, float]] = (),
        agents: Sequence[SubAgent] = (),
        agents_since: Callable[[float], Sum] | None = None,
    ) -> SessionReport:
        """The report of the session, with what the caller knows of it.

        `files` are instruction files with their tokens, for programs whose transcripts do not name them.
        `agents_since` sums up the sub-agents' requests after a time, if the program's own sums include them.
        """
        last = self.last
        model = session.model if last is None else last.model
        total, total_origin = self._total(agents, includes_agents=agents_since is not None)
        cost, cost_origin = self._cost(total, agents, agents_since)
        size = self._stated.window or session.window
        if size is None and model is not None and limits_of(model).known:
            size = limits_of(model).context_window
        tokens = self.parts.current()
        own_files = () if self.instructions else files
        listed = rows(tokens, self._definitions, own_files)
        return SessionReport(
            assistant=session.assistant,
            id=session.id,
            path=session.path,
            folder=session.folder,
            title=session.prompt or self.first_words,
            model=model,
            version=(last.version if last is not None else None) or session.version,
            started=session.started,
            changed=session.changed,
            requests=self.requests,
            window=ReportedWindow(sum(part.tokens for part in listed), size, listed, self.parts.sent == 0),
            last=None if last is None else last.usage,
            last_at=0.0 if last is None else last.at,
            total=total,
            total_origin=total_origin,
            cost_usd=cost,
            cost_origin=cost_origin,
            cache=None if last is None else self._cache_state(last, sum(part.tokens for part in listed)),
            misses=tuple(self._misses),
            missed_tokens=self._missed.usage.cache_write,
            missed_usd=self._missed.cost_usd,
            compactions=self._reported_compactions(session.folder),
            tools=self._tools.report(tokens),
            agents=(*agents, *(fold.sub_agent(name) for name, fold in self.agents.items())),
            instructions=tuple(self.instructions) or tuple(path for path, _ in own_files),
            parent=session.parent,
        )

    def _cache_state(self, last: AssistantRequest, window: int) -> CacheState:
        if self.parts.sent == 0:  # what was sent has been compacted since
            return state_after_compaction(last, window, lifetime_of(last))
        return cache_state(last, self.parts.pending, lifetime_of(last))

    def _total(self, agents: Sequence[SubAgent], *, includes_agents: bool) -> tuple[Usage, CostOrigin]:
        stated = self._stated.usage
        total, origin = self.sum.usage, "nexus"
        if stated is not None:
            total = add_usage(stated, self._usage_since.usage)
            origin = "both" if self._usage_since.usage != ZERO else "program"
        if stated is None or not includes_agents:
            for agent in self._all_agents(agents):
                total = add_usage(total, agent.usage)
                origin = "both" if stated is not None else origin
        return total, origin  # type: ignore[return-value]

    def _cost(
        self, total: Usage, agents: Sequence[SubAgent], agents_since: Callable[[float], Sum] | None
    ) -> tuple[float | None, CostOrigin | None]:
        stated = self._stated.cost_usd
        if stated is not None and agents_since is not None:
            later = agents_since(self._stated_at)
            more = [self._cost_since.cost_usd, later.cost_usd]
            is_later = self._cost_since.usage != ZERO or later.usage != ZERO
        elif stated is not None:
            more = [self._cost_since.cost_usd, *(agent.cost_usd for agent in self._all_agents(agents))]
            is_later = self._cost_since.usage != ZERO or len(more) > 1
        elif self._is_partial:  # as if all had been of the last model
            prices = None if self.last is None else request_prices(self.last.model, total)
            return (None, None) if prices is None else (prices.cost(total), "nexus")
        else:
            more = [self.sum.cost_usd, *(agent.cost_usd for agent in self._all_agents(agents))]
            is_later = False
        costs = [cost for cost in more if cost is not None]
        if len(costs) < len(more) or (stated is None and not self.requests):
            return (None, None) if stated is None else (stated, "program")
        return sum(costs, stated or 0.0), "nexus" if stated is None else "both" if is_later else "program"

    def _all_agents(self, agents: Sequence[SubAgent]) -> list[SubAgent]:
        return [*agents, *(fold.sub_agent(name) for name, fold in self.agents.items())]

    def _reported_compactions(self, folder: str | None) -> tuple[CompactionReport, ...]:
        if not self._compactions:
            return ()
        *earlier, last = self._compactions
        if self._dropped is None or self._dropped[0] != len(self._history):
            self._dropped = len(self._history), self._receipt.compare(self._history, folder)
        return (*earlier, replace(last, dropped=self._dropped[1]))


def add_usage(first: Usage, second: Usage) -> Usage:
    """The sum of two usages."""
    return Usage(
        fresh=first.fresh + second.fresh,
        cache_read=first.cache_read + second.cache_read,
        cache_write=first.cache_write + second.cache_write,
        output=first.output + second.output,
    )


def _length(message: Message) -> int:
    return len(message.content) if isinstance(message.content, str) else 200


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return ""
