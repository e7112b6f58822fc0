"""Plans and finishes one compaction, from top to bottom: plan → summarize → finish → apply.

    plan(history, …)          what is replaced, what stays, how long the summary may be
    Plan.request()            what a summarizer is asked (`summarizer`); it may answer asynchronously
    finish(plan, written)     the new history with its receipt, or a refusal
    ContextManager.apply      puts the result in place; `undo_compaction` takes it back

What stays
 1. Walk back from the newest group while the groups fit the budget. A group is never split. The newest group
    stays even if it exceeds the budget.
 2. If the first turn among these groups holds at least TURN_SHARE of their tokens, start there instead: a
    conversation that begins with a user message is easier to follow.
 3. The newest `keep_recent_turns` turns stay if they fit beside the summary (rule 6), otherwise as many of
    them as fit. Only if no message precedes them, they are compacted as rule 1 says.
 4. An earlier summary never stays: it is folded into the new one. If it alone would be replaced, there is
    nothing to compact.
 5. The leading system messages stay. A pinned message stays with its whole group. A pinned text appears
    verbatim in the summary, and so do the pins of earlier summaries. A pin that cannot be honored is refused.

How long
 6. The new history should take the share `target` of the available tokens, minus the system prompt and the
    tools. If a provider refused the request as too long, the share is `overflow_target`. The preserved
    messages and the summary together take that much.
 7. The summary may take BASE_SUMMARY tokens and the share WINDOW_SHARE of the available tokens, which is 5 %
    of a window of 200,000 tokens. It takes at most the share SUMMARY_SHARE and MOST_SUMMARY tokens.
    NAMES_SHARE of its limit is for names that a model's summary lacks (`names_note`).
 8. The work is bounded. Of the replaced messages, only the beginning and the newest READ_TOKENS (or as many
    as the window holds) are read. Summary and receipt say how many are not read; callers need not load those.

The result
 9. A summary that replaces a compaction which only its provider could read begins with a sentence that says
    so.
10. A summary that does not shrink the history is refused. `reached` says whether the history is below the
    threshold now. If it is false, do not compact again until something changes.
11. An item is lost if it occurs in the replaced messages and nowhere in the new history. The new history is
    the summary, and the texts and the arguments of tool calls of the messages that stay. Case matters.
    A system message is lost if any part of it is missing.
12. The receipt lists MOST_LISTED items of each kind, the most important first. `counts` has the totals. For
    replaced results of tools, the receipt has their number for each tool.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import uuid4

import msgspec

from nexus_context.conversation.compaction.detection import READ_TOKENS, CompactionSettings, Reason
from nexus_context.conversation.compaction.extract_facts import Fact, Facts, extract_facts
from nexus_context.conversation.compaction.names_note import (
    NAMES_SHARE,
    Words,
    names_in,
    texts_of,
    with_names,
)
from nexus_context.conversation.compaction.receipt import MOST_LISTED, CompactionError, Lost, Receipt
from nexus_context.conversation.compaction.summarizer import SummaryRequest, Written, build_summarize_prompt
from nexus_context.conversation.groups import Grouping, group_starts
from nexus_context.conversation.history import Gap, History
from nexus_context.conversation.identifiers import IdentifierIndex
from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.conversation.message_secrets import without_secrets
from nexus_context.conversation.parts import CompactionPart
from nexus_context.conversation.shortening import shorten_text
from nexus_context.conversation.summary import (
    compaction_text,
    create_summary_message,
    is_summary,
    pins_in,
    server_compaction,
    summary_of,
    with_pins,
)
from nexus_context.conversation.tool_pairs import with_missing_results
from nexus_context.conversation.window import Budget
from nexus_context.errors import RequestError
from nexus_context.text.redact import redact_message
from nexus_context.tokens import MinimalCounter, TokenCounter, complete, count_message

TURN_SHARE = 0.5
SUMMARY_SHARE = 0.25
GAIN = 0.5
BASE_SUMMARY = 3_000
WINDOW_SHARE = 0.035
MOST_SUMMARY = 20_000
"""Tokens of a summary, however large the window."""
LEAST_SUMMARY = 256
"""Tokens that a summary may take even if the target leaves no room: a shorter one says nothing."""
LEAD_SHARE = 0.1
"""Share of the tokens read that may come from the beginning of a longer conversation."""
MOST_NAMES = 20_000
"""Names and values that are looked up in the new history."""
MOST_COMPARED = 4_000_000_000
"""Characters that are searched to look them up: the longer the history, the fewer names are looked up."""
LEAST_NAMES = 1_000
LONGEST_RULE = 2_000
"""Characters of a lost system message that the receipt has."""
OTHER_TOOLS = "…"
"""What the results of rare tools are counted under."""

_SOME_DAY = datetime(2000, 1, 1)
_LONGEST_QUOTE = 40  # characters of a pin that an error quotes


# ---------------------------------------------------------------- plan


class CompactionRequest(msgspec.Struct, frozen=True):
    """Why a conversation is compacted, and what the user asks of it.

    `overflow` is true if a provider refused the request as too long. A pin is a text that must stay verbatim,
    or the index of a message that must stay, in the whole conversation. `instructions` override those of the
    settings.
    """

    reason: Reason = "explicit"
    overflow: bool = False
    pins: Iterable[str | int] = ()
    instructions: str | None = None


class Plan(msgspec.Struct, frozen=True):
    """What a compaction would replace. Sizes are in tokens, and indexes refer to `messages`."""

    messages: tuple[Message, ...]
    start: int  # the first message that stays because it is new
    pinned: tuple[int, ...]  # messages before `start` that stay because they are pinned
    reason: Reason
    summary_limit: int  # of the summary's text
    tokens_before: int  # of all messages
    tokens_kept: int  # of the messages that stay
    threshold: int  # of the history; from here on a compaction is due
    pins: tuple[str, ...] = ()
    instructions: str | None = None
    model: str | None = None
    lead: int = 0  # of the messages before `start`, those between `lead` and `read_from` are not read
    read_from: int = 0
    missing: int = 0  # replaced messages that are not loaded and so not among `messages`

    @property
    def replaced_count(self) -> int:
        """The number of messages that the summary will replace."""
        return self.start - len(self.pinned) + self.missing

    @property
    def unread(self) -> int:
        """The number of replaced messages that are not read."""
        return self.replaced_count - len(self.replaced)

    @property
    def older(self) -> tuple[Message, ...]:
        """The messages before `start` that are read, including pinned ones."""
        return tuple(self.messages[index] for index in self._older())

    @property
    def replaced(self) -> tuple[Message, ...]:
        """The messages that the summary will replace and that are read, oldest first."""
        pinned = set(self.pinned)
        return tuple(self.messages[index] for index in self._older() if index not in pinned)

    @property
    def preserved(self) -> tuple[Message, ...]:
        """The messages that stay, oldest first."""
        return (*(self.messages[index] for index in self.pinned), *self.messages[self.start :])

    def covered(self) -> list[Message]:
        """Return all messages before `start`, with their secrets covered."""
        return [*map(without_secrets, self.messages[: self.start])]

    def finish(self, written: Written, *, counter: TokenCounter, made_at: datetime) -> "FinishedCompaction":
        """Call the function `finish` with this plan."""
        return finish(self, written, counter=counter, made_at=made_at)

    def _older(self) -> Iterable[int]:
        return (*range(self.lead), *range(self.read_from, self.start))

    def extended(self, messages: Sequence[Message], tokens: int) -> "Plan":
        """Return the plan after these messages were appended, which stay. `tokens` are all their tokens."""
        return msgspec.structs.replace(
            self,
            messages=(*self.messages, *messages),
            tokens_before=self.tokens_before + tokens,
            tokens_kept=self.tokens_kept + tokens,
        )

    def request(self, sent: Sequence[Message] | None = None, *, room: int | None = None) -> SummaryRequest:
        """Build the request for summarizers.

        `sent` are the messages as they were last sent, so that a provider finds them in its cache. If it is
        None, all messages are used. `room` is the number of tokens that a request may still take. If it is
        less than the summary's limit, the request holds only the messages to be replaced, with their secrets
        covered, because no cache has them.
        """
        preserved = len(self.messages) - self.start
        if room is not None and room < self.summary_limit:
            sent, preserved = [*map(without_secrets, self.older)], 0
        question = build_summarize_prompt(
            limit=int(self.summary_limit * (1 - NAMES_SHARE)),
            preserved=preserved,
            pins=self.pins,
            instructions=self.instructions,
        )
        return SummaryRequest(
            messages=(*(self.messages if sent is None else sent), Message("user", question)),
            replaced=self.replaced,
            limit=self.summary_limit,
            preserved=self.preserved,
            pins=self.pins,
            instructions=self.instructions,
            model=self.model,
        )


def plan(
    history: History,
    counter: TokenCounter,
    budget: Budget,
    *,
    settings: CompactionSettings,
    request: CompactionRequest = CompactionRequest(),  # noqa: B008  # frozen
) -> Plan | None:
    """Plan a compaction. Return None if there is nothing to replace.

    Messages that are not loaded (`history.gap`) are replaced unread. Raise RequestError for a pin that is
    neither text nor index, is empty, is too long for the summary, or is not loaded.
    """
    messages, sums, gap = history.messages, history.sums(counter), history.gap
    pins = _checked_pins(request.pins, len(messages) + gap.messages)
    total = sums[-1] + gap.tokens
    leading = sums[history.leading.stop] - sums[history.leading.start]
    shares = _share(Budget(budget.available, budget.fixed + leading), total - leading, settings, request)
    start = select(
        history, counter, budget=shares.recent, turns=settings.keep_recent_turns, turns_budget=shares.turns
    )
    indexes = [_loaded_index(pin, gap) for pin in pins if isinstance(pin, int)]
    pinned = _pinned_groups(messages, start, indexes).union(at for at in history.leading if at < start)
    replaced = [message for index, message in enumerate(messages[:start]) if index not in pinned]
    if not gap.messages and all(map(is_summary, replaced)):
        return None
    lead, read_from = _read_range(history, sums, start, max(READ_TOKENS, budget.available))
    unread = read_from - lead + gap.messages
    shell = create_summary_message("", _SOME_DAY, len(replaced) + gap.messages, unread=unread)
    limit = max(shares.summary - count_message(counter, content_of(shell)), 1)
    texts = [redact_message(pin) for pin in pins if isinstance(pin, str)]
    _check_sizes(texts, counter, limit)
    summaries = [redact_message(summary_of(message)) for message in replaced if is_summary(message)]
    carried = [pin for summary in summaries for pin in pins_in(summary)]
    tokens_kept = sums[-1] - sums[start] + sum(sums[index + 1] - sums[index] for index in pinned)
    pin_tokens = counter.count(with_pins("", texts).strip()) if texts else 0
    limit = min(limit, max(int((total - tokens_kept) * GAIN), LEAST_SUMMARY, 2 * pin_tokens))
    return Plan(
        messages=tuple(messages),
        start=start,
        pinned=tuple(sorted(pinned)),
        reason=request.reason,
        summary_limit=limit,
        tokens_before=total,
        tokens_kept=tokens_kept,
        threshold=int(budget.available * settings.threshold) - budget.fixed,
        pins=tuple(dict.fromkeys([*carried, *texts])),
        instructions=request.instructions or settings.instructions,
        model=settings.model,
        lead=lead,
        read_from=read_from,
        missing=gap.messages,
    )


def select(
    history: History, counter: TokenCounter, *, budget: int, turns: int = 0, turns_budget: int = 0
) -> int:
    """Return the index from which messages stay (rules 1 to 4). Return 0 if there is nothing to replace.

    The messages that stay may take `budget` tokens, or `turns_budget` tokens if they are the newest `turns`
    turns. Messages before a gap never stay.
    """
    messages, sums = history.messages, history.sums(counter)
    earliest = history.gap.lead if history.gap.messages else 0
    if not messages:
        return 0
    grouping = Grouping(messages[:earliest])
    if earliest:
        grouping.skip()
    for message in messages[earliest:]:
        grouping.add(message)
    summary = max((index for index, message in enumerate(messages) if is_summary(message)), default=-1)
    groups = [start for start in grouping.groups if start > summary and start >= earliest]
    if not groups:
        return earliest
    start = groups[-1]
    for group in reversed(groups):
        if sums[-1] - sums[group] > budget and group != groups[-1]:
            break
        start = group
    least = TURN_SHARE * (sums[-1] - sums[start])
    turn = next((turn for turn in grouping.turns if turn >= start), None)
    if turn is not None and sums[-1] - sums[turn] >= least:
        start = turn
    recent = [turn for turn in grouping.turns if turn >= groups[0]][-turns:] if turns else []
    with_turns = min([start, *(turn for turn in recent if sums[-1] - sums[turn] <= turns_budget)])
    stays = {*history.leading, *(at for at in range(start) if is_summary(messages[at]))}
    if earliest or not stays.issuperset(range(with_turns)):
        return with_turns
    return 0 if stays.issuperset(range(start)) else start


def select_messages_for_compaction(
    messages: Iterable[Message],
    token_counter: MinimalCounter | TokenCounter,
    available_budget: int,
    recent_preserve_ratio: float = 0.25,
) -> tuple[list[Message], list[Message]]:
    """Return the messages to summarize and the messages to preserve, both oldest first, by rules 1, 2, 4 and
    5.

    The preserved messages take at most the share `recent_preserve_ratio` of `available_budget` tokens. The
    newest group stays even if it takes more, and so do leading system messages. If a call has no result, the
    result that is sent for it counts, and is among the messages to summarize.
    """
    given_messages = list(messages)
    history = History(with_missing_results(given_messages))
    budget = int(available_budget * recent_preserve_ratio)
    start = select(history, complete(token_counter), budget=budget)
    old_messages = history.messages[:start]
    rules = [old_messages[at] for at in history.leading if at < start]
    replaced = [message for at, message in enumerate(old_messages) if at not in history.leading]
    given_ids = {*map(id, given_messages)}
    return replaced, [*rules, *(message for message in history.messages[start:] if id(message) in given_ids)]


class _TokenShares(NamedTuple):
    """Tokens for the summary message, for the messages that stay, and for the newest turns that stay."""

    summary: int
    recent: int
    turns: int


def _share(
    budget: Budget, total: int, settings: CompactionSettings, request: CompactionRequest
) -> _TokenShares:
    """How much room there is (rules 3, 6 and 7)."""
    target = settings.overflow_target if request.overflow else settings.target
    goal = int(budget.available * target) - budget.fixed
    scaled = min(BASE_SUMMARY + int(budget.available * WINDOW_SHARE), MOST_SUMMARY)
    summary = max(LEAST_SUMMARY, min(scaled, int(budget.available * SUMMARY_SHARE), goal // 2))
    recent = min(int(max(budget.room, 0) * settings.recent_preserve_ratio), max(goal - summary, 0))
    if request.reason == "explicit" or request.overflow:
        recent = min(recent, int(total * settings.recent_preserve_ratio))
    return _TokenShares(summary, recent, turns=max(goal - summary, 0))


def _pinned_groups(messages: Sequence[Message], start: int, pins: Sequence[int]) -> set[int]:
    """The indexes before `start` that stay: pinned messages with their groups."""
    pinned: set[int] = set()
    starts = [*group_starts(messages), len(messages)] if pins else []
    for pin in pins:
        if pin < start and not is_summary(messages[pin]):
            next_group = bisect_right(starts, pin)
            pinned.update(range(starts[next_group - 1], starts[next_group]))
    return pinned


def _read_range(history: History, sums: Sequence[int], start: int, max_tokens: int) -> tuple[int, int]:
    """`lead` and `read_from` of a plan (rule 8): read the newest `max_tokens` tokens before `start`."""
    read_from = min(bisect_left(sums, sums[start] - max_tokens), max(start - 1, 0))
    end = history.gap.lead if history.gap.messages else read_from
    read_from = max(read_from, end)
    if not history.gap.messages:
        roles = (at for at in range(end) if history.messages[at].role not in ("user", "system"))
        end = next(roles, end)
    return min(bisect_right(sums, max_tokens * LEAD_SHARE) - 1, end), read_from


# ---------------------------------------------------------------- pins


def _checked_pins(pins: Iterable[str | int], count: int) -> tuple[str | int, ...]:
    """The pins, none of them empty. `count`: messages of the whole conversation."""
    if isinstance(pins, str):
        raise _bad_pin("pins is a text; put it in a list.")
    pins = tuple(pins)
    for pin in pins:
        if isinstance(pin, bool) or not isinstance(pin, str | int):
            raise _bad_pin(f"pin {pin!r} is neither a text nor the index of a message.")
        if isinstance(pin, str) and not pin.strip():
            raise _bad_pin(f"pin {pin!r:.40} is empty; it must be a text, or the index of a message.")
        if isinstance(pin, int) and not 0 <= pin < count:
            present = f"messages 0 to {count - 1}" if count else "no messages"
            raise _bad_pin(f"pin {pin}: the conversation has {present}.")
    return pins


def _check_sizes(pins: Sequence[str], counter: TokenCounter, limit: int) -> None:
    """Refuse a pin that exceeds the summary, and pins that exceed it together."""
    for pin in pins:
        tokens = counter.count(with_pins("", [pin]).strip())
        if tokens > limit:
            quote = repr(pin if len(pin) <= _LONGEST_QUOTE else f"{pin[:_LONGEST_QUOTE]}…")
            raise _bad_pin(
                f"pin {quote} takes {tokens:,} tokens, but the summary may take only {limit:,}. Pin less of "
                "it, or pin the message that it comes from by its index."
            )
    tokens = counter.count(with_pins("", pins).strip())
    if tokens > limit:
        raise _bad_pin(
            f"{len(pins)} pins take {tokens:,} tokens together, but the summary may take only {limit:,}. "
            "Pin less."
        )


def _bad_pin(message: str) -> RequestError:
    return RequestError(message, code="bad-pin")


def _loaded_index(pin: int, gap: Gap) -> int:
    """The index among the loaded messages of an index in the whole conversation."""
    if not gap.messages or pin < gap.lead:
        return pin
    if pin < gap.lead + gap.messages:
        raise RequestError(
            f"The pinned message {pin} is not loaded. Load the whole conversation first.",
            code="history-not-loaded",
        )
    return pin - gap.messages


# ---------------------------------------------------------------- finish


class CompactionResult(msgspec.Struct, frozen=True):
    """A compaction that can be applied. The new history is the summary, then the preserved messages."""

    summary_message: Message
    preserved_messages: Sequence[Message]
    original_token_count: int
    new_token_count: int

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the new history."""
        return (self.summary_message, *self.preserved_messages)


class FinishedCompaction(CompactionResult, frozen=True):
    """A compaction with its receipt, as the function `finish` makes it."""

    receipt: Receipt
    reached: bool  # whether the history is now below the threshold


def finish(
    plan: Plan, written: Written, *, counter: TokenCounter, made_at: datetime, compaction: str | None = None
) -> FinishedCompaction:
    """Make the new history with its receipt. Raise `CompactionError`, code `no-gain`, if it is not smaller
    than the old one.

    `made_at` is a local time. `compaction` is the id of the compaction, or None for a new one.
    """
    opaque = server_compactions(plan)
    text, index = _with_notes(redact_message(written.text), opaque), written.index
    if index is None:  # a model wrote it
        index = names_in(plan.replaced)
        spent = counter.count(text)
        room = max(plan.summary_limit - spent, int(NAMES_SHARE * plan.summary_limit))
        gain = plan.tokens_before - plan.tokens_kept - spent
        text = with_names(text, index, plan.preserved, counter, limit=min(room, gain // 2))
    message = create_summary_message(
        with_pins(text, plan.pins), made_at, plan.replaced_count, unread=plan.unread
    )
    tokens_after = plan.tokens_kept + count_message(counter, content_of(message))
    if tokens_after >= plan.tokens_before:
        reason = (
            f"with its summary the history would take {tokens_after:,} tokens "
            f"instead of {plan.tokens_before:,}"
        )
        raise CompactionError(
            f"Nothing was compacted ({written.summarizer}): {reason}.", code="no-gain", reason=reason
        )
    receipt = Receipt(
        id=compaction or new_id(),
        reason=plan.reason,
        summarizer=written.summarizer,
        replaced_messages=plan.replaced_count,
        tokens_before=plan.tokens_before,
        tokens_after=tokens_after,
        created=made_at.isoformat(timespec="seconds"),
        lost=find_lost(plan.replaced, (message, *plan.preserved), written.facts, index=index),
        failures=written.failures,
        replaced_results=_count_results(plan.replaced) or msgspec.UNSET,
        unread_messages=plan.unread or msgspec.UNSET,
        model=written.model or msgspec.UNSET,
        replaced_opaque=opaque[-1].provider if opaque else msgspec.UNSET,
    )
    return FinishedCompaction(
        summary_message=message,
        preserved_messages=plan.preserved,
        original_token_count=plan.tokens_before,
        new_token_count=tokens_after,
        receipt=receipt,
        reached=tokens_after < plan.threshold,
    )


def server_compactions(plan: Plan) -> list[CompactionPart]:
    """Return the compactions by providers' servers that this compaction replaces."""
    compactions = map(server_compaction, plan.messages[: plan.start])
    return [compaction for compaction in compactions if compaction is not None]


def _with_notes(summary: str, opaque: Sequence[CompactionPart]) -> str:
    """The summary; it says first what nobody but a provider could read."""
    notes = [compaction_text(compaction) for compaction in opaque if not compaction.text.strip()]
    return "\n\n".join([*(note for note in notes if note not in summary), summary])


def new_id() -> str:
    """Make an id for a compaction: 12 random hexadecimal digits."""
    return uuid4().hex[:12]


# ---------------------------------------------------------------- receipt


def find_lost(
    replaced: Sequence[Message],
    history: Iterable[Message],
    facts: Facts | None = None,
    *,
    index: IdentifierIndex | None = None,
) -> Lost:
    """Find what occurs in `replaced` and nowhere in `history` (rule 11).

    `facts` and `index` are those of `replaced`, or None if they must be extracted.
    """
    present = _Present(history)
    if facts is None:
        facts = extract_facts(replaced)
    max_names = min(MOST_NAMES, max(LEAST_NAMES, MOST_COMPARED // (len(present.words) + 1)))
    if index is None:
        index = names_in(replaced, most=max_names)
    names = [mention for mention in index.ranked()[: 2 * max_names] if not present.has(mention.text)]
    runs = sorted(facts.activity.runs, key=lambda run: -run.at)
    failures = sorted(facts.activity.failures, key=lambda failure: (failure.resolved, -failure.at))
    errors = dict.fromkeys(failure.text.removesuffix(" […]") for failure in failures)
    missing = {
        "paths": [mention.text for mention in names if mention.kind == "path"],
        "commands": [run.command for run in runs if not present.has(run.command)],
        "identifiers": [mention.text for mention in names if mention.kind not in ("path", "command")],
        "errors": [error for error in errors if not present.has(error)],
        "instructions": _missing(facts.of("instructions"), present),
        "decisions": _missing(facts.of("decisions"), present),
        "rules": _missing_rules(replaced, present),
    }
    counts = {kind: len(items) for kind, items in missing.items() if items}
    return Lost(**{kind: tuple(items[:MOST_LISTED]) for kind, items in missing.items()}, counts=counts)


class _Present:
    """All text of the new history, without secrets."""

    def __init__(self, history: Iterable[Message]) -> None:
        self.words = Words(map(redact_message, texts_of(history)))

    def has(self, part: str) -> bool:
        return self.words.has(part) or (part.endswith(" …") and self.words.has(part.removesuffix(" …")))


def _count_results(replaced: Iterable[Message]) -> dict[str, int]:
    """Count the results of each tool, the most frequent first; rare tools are counted together."""
    tools = Counter(message.name or "" for message in replaced if message.role == "tool")
    counts = dict(tools.most_common(MOST_LISTED - 1))
    rare_results = tools.total() - sum(counts.values())
    return counts | ({OTHER_TOOLS: counts.get(OTHER_TOOLS, 0) + rare_results} if rare_results else {})


def _missing_rules(replaced: Iterable[Message], present: _Present) -> list[str]:
    """The system messages that are lost, the newest first."""
    rules = [redact_message(text_of(message)).strip() for message in replaced if message.role == "system"]
    lost = dict.fromkeys(rule for rule in reversed(rules) if rule and not present.has(rule))
    return [shorten_text(rule, LONGEST_RULE) for rule in lost]


def _missing(facts: Sequence[Fact], present: _Present) -> list[str]:
    """The facts that are lost, the most important first."""
    ranked = sorted(facts, key=lambda fact: (-fact.weight, -fact.at))
    return [fact.text for fact in ranked if not present.has(fact.text.removesuffix(" […]"))]
