"""One compaction: plan what is replaced, have a summary written, finish or refuse.

    plan → request → a summary (somebody else's work, maybe asynchronous) → finish

1. The plan keeps the newest groups (`selection`) and every message that is pinned, with its whole group.
2. Afterwards the history should take `target` of what is available, less what stands outside of it (system
   prompt, tools); `overflow_target` after a provider refused. What is kept and the summary share that.
3. The summary may take SUMMARY_SHARE of what is available and SUMMARY_TOKENS at most.
4. Pins stand in the summary word for word, those of an earlier summary, too. A pin that cannot be kept is
   refused.
5. A summary that does not make the history smaller is refused. `reached` says whether the threshold is met:
   if not, nobody should start another compaction until something changed.
6. The work is bounded: of what is replaced, the beginning and the newest READ_TOKENS, or as many as the
   window holds, are read for the summary and the receipt. Both say how many messages between them are not
   read. A caller need not load those.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from uuid import uuid4

import msgspec

from nexus_context.conversation.compaction.detection import READ_TOKENS, CompactionSettings, Reason
from nexus_context.conversation.compaction.errors import CompactionError
from nexus_context.conversation.compaction.loss import lost
from nexus_context.conversation.compaction.receipt import Receipt
from nexus_context.conversation.compaction.selection import select
from nexus_context.conversation.compaction.summarizer import SummaryRequest, Written, instruction
from nexus_context.conversation.compaction.summary import (
    create_summary_message,
    is_summary,
    pins_in,
    summary_of,
    with_pins,
)
from nexus_context.conversation.groups import group_starts
from nexus_context.conversation.history import NO_GAP, Gap
from nexus_context.conversation.message import Message, content_of
from nexus_context.errors import RequestError
from nexus_context.tokens import TokenCounter, count_message

SUMMARY_SHARE = 0.25
SUMMARY_TOKENS = 4_000
LEAST_SUMMARY = 256
"""Tokens that a summary may take even where the target leaves no room: less says nothing."""
LEAD_SHARE = 0.1
"""Share of that which the beginning of a longer conversation may take to be read as well."""


class Plan(msgspec.Struct, frozen=True):
    """What a compaction would replace. Sizes are in tokens; indexes are of `messages`."""

    messages: tuple[Message, ...]
    start: int  # the first message that is kept because it is new
    pinned: tuple[int, ...]  # messages before `start` that are kept because they are pinned
    reason: Reason
    summary_limit: int  # of the summary's text
    tokens_before: int  # of all messages
    tokens_kept: int  # of those that are kept
    threshold: int  # of the history, from which on a compaction is due
    pins: tuple[str, ...] = ()
    instructions: str | None = None
    model: str | None = None
    lead: int = 0  # of the messages before `start`, those between `lead` and `read_from` are not read
    read_from: int = 0
    missing: int = 0  # replaced messages that are not even loaded: not among `messages`

    @property
    def replaced_count(self) -> int:
        """How many messages the summary will stand for."""
        return self.start - len(self.pinned) + self.missing

    @property
    def unread(self) -> int:
        """How many of them nobody reads."""
        return self.replaced_count - len(self.replaced)

    @property
    def older(self) -> tuple[Message, ...]:
        """The messages before those that are kept because they are new, without the unread ones."""
        return tuple(self.messages[index] for index in self._older())

    @property
    def replaced(self) -> tuple[Message, ...]:
        """The messages that the summary will stand for, oldest first, without the unread ones."""
        kept = set(self.pinned)
        return tuple(self.messages[index] for index in self._older() if index not in kept)

    @property
    def preserved(self) -> tuple[Message, ...]:
        """The messages that are kept, oldest first."""
        return (*(self.messages[index] for index in self.pinned), *self.messages[self.start :])

    def _older(self) -> Iterable[int]:
        return (*range(self.lead), *range(self.read_from, self.start))

    def extended(self, messages: Sequence[Message], tokens: int) -> "Plan":
        """The plan when these messages were added behind those that it was made of: they are kept, too.

        `tokens` are theirs.
        """
        return msgspec.structs.replace(
            self,
            messages=(*self.messages, *messages),
            tokens_before=self.tokens_before + tokens,
            tokens_kept=self.tokens_kept + tokens,
        )

    def request(self, sent: Sequence[Message] | None = None, *, room: int | None = None) -> SummaryRequest:
        """What summarizers are asked. `sent` are the messages as they were last sent, so that a provider
        finds them in its cache; they are all messages if it is not given, and only those to be replaced if
        `room`, the tokens that a request may still take, is less than the limit.
        """
        kept = len(self.messages) - self.start
        if room is not None and room < self.summary_limit:
            sent, kept = self.older, 0
        asked = instruction(
            limit=self.summary_limit, kept=kept, pins=self.pins, instructions=self.instructions
        )
        return SummaryRequest(
            messages=(*(self.messages if sent is None else sent), asked),
            replaced=self.replaced,
            limit=self.summary_limit,
            pins=self.pins,
            instructions=self.instructions,
            model=self.model,
        )


class CompactionResult(msgspec.Struct, frozen=True):
    """A compaction to be applied: the history becomes the summary, then what is preserved."""

    summary_message: Message
    preserved_messages: tuple[Message, ...]
    original_token_count: int
    new_token_count: int
    receipt: Receipt
    reached: bool  # whether the history is now below the threshold

    @property
    def messages(self) -> tuple[Message, ...]:
        """The new history."""
        return (self.summary_message, *self.preserved_messages)


def plan(
    messages: Sequence[Message],
    counts: Sequence[int],
    *,
    available: int,
    fixed: int = 0,
    counter: TokenCounter,
    settings: CompactionSettings,
    reason: Reason,
    overflow: bool = False,
    pins: Iterable[str | int] = (),
    instructions: str | None = None,
    gap: Gap = NO_GAP,
) -> Plan | None:
    """What a compaction would do; None when there is nothing to replace.

    `counts` are the tokens of each message; of the `available` tokens `fixed` are taken by what is not
    history. `overflow`: a provider refused the request as too long. A pin is a text that must stay word
    for word, or the index of a message that stays whole, in the whole conversation. `instructions` win over
    the settings'. `gap`: messages that are not loaded; they are replaced, and nobody reads them.

    Raises RequestError for a pin that is neither, that is empty, too large for the summary, or not loaded.
    """
    pins = _checked(pins, len(messages) + gap.messages)
    sums = [0, *accumulate(counts)]
    total = sums[-1] + gap.tokens
    goal = int(available * (settings.overflow_target if overflow else settings.target)) - fixed
    most = max(LEAST_SUMMARY, min(SUMMARY_TOKENS, int(available * SUMMARY_SHARE), goal // 2))
    budget = min(int(max(available - fixed, 0) * settings.recent_preserve_ratio), max(goal - most, 0))
    if reason == "explicit" or overflow:
        budget = min(budget, int(total * settings.recent_preserve_ratio))
    start = select(messages, counts, budget=budget, earliest=gap.lead if gap.messages else 0)
    whole = _pinned(messages, start, [_loaded(pin, gap) for pin in pins if isinstance(pin, int)])
    texts = [pin for pin in pins if isinstance(pin, str)]
    replaced = [each for index, each in enumerate(messages[:start]) if index not in whole]
    if not gap.messages and all(map(is_summary, replaced)):
        return None
    lead, read_from = _read(messages, sums, start, gap, max(READ_TOKENS, available))
    carried = [pin for each in replaced if is_summary(each) for pin in pins_in(summary_of(each))]
    unread = read_from - lead + gap.messages
    shell = create_summary_message("", _SOME_DAY, len(replaced) + gap.messages, unread=unread)
    overhead = count_message(counter, content_of(shell))
    limit = max(most - overhead, 1)
    _check_sizes(texts, counter, limit)
    kept = sums[-1] - sums[start] + sum(counts[index] for index in whole)
    return Plan(
        messages=tuple(messages),
        start=start,
        pinned=tuple(sorted(whole)),
        reason=reason,
        summary_limit=limit,
        tokens_before=total,
        tokens_kept=kept,
        threshold=int(available * settings.threshold) - fixed,
        pins=tuple(dict.fromkeys([*carried, *texts])),
        instructions=instructions or settings.instructions,
        model=settings.model,
        lead=lead,
        read_from=read_from,
        missing=gap.messages,
    )


def finish(
    plan: Plan, written: Written, *, counter: TokenCounter, made_at: datetime, compaction: str | None = None
) -> CompactionResult:
    """The new history with its receipt. `CompactionError` with the code `no-gain` if it is no smaller.

    `made_at` is a local time; `compaction` is its id, by default a new one.
    """
    text = with_pins(written.text, plan.pins)
    message = create_summary_message(text, made_at, plan.replaced_count, unread=plan.unread)
    after = plan.tokens_kept + count_message(counter, content_of(message))
    if after >= plan.tokens_before:
        raise CompactionError(
            f"Nothing was compacted: with the summary of {written.summarizer} the history would take {after} "
            f"tokens instead of {plan.tokens_before}.",
            code="no-gain",
        )
    receipt = Receipt(
        id=compaction or new_id(),
        reason=plan.reason,
        summarizer=written.summarizer,
        replaced_messages=plan.replaced_count,
        tokens_before=plan.tokens_before,
        tokens_after=after,
        created=made_at.isoformat(timespec="seconds"),
        lost=lost(plan.replaced, (message, *plan.preserved), written.harvest),
        failures=written.failures,
        unread_messages=plan.unread or msgspec.UNSET,
        model=written.model or msgspec.UNSET,
    )
    return CompactionResult(
        message, plan.preserved, plan.tokens_before, after, receipt, reached=after < plan.threshold
    )


def new_id() -> str:
    """An id for a compaction, 12 hexadecimal digits: no two of a session are the same."""
    return uuid4().hex[:12]


_SOME_DAY = datetime(2000, 1, 1)
_SHOWN = 40  # characters of a pin that an error shows


def _checked(pins: Iterable[str | int], count: int) -> tuple[str | int, ...]:
    """The pins, all of which say something. `count`: messages that there are."""
    if isinstance(pins, str):
        raise _bad("pins is a text; put it in a list.")
    pins = tuple(pins)
    for pin in pins:
        if isinstance(pin, bool) or not isinstance(pin, str | int):
            raise _bad(f"pin {pin!r} is neither a text nor the index of a message.")
        if isinstance(pin, str) and not pin.strip():
            raise _bad(f"pin {pin!r:.40} is empty; it must be a text, or the index of a message.")
        if isinstance(pin, int) and not 0 <= pin < count:
            there = f"messages 0 to {count - 1}" if count else "no messages"
            raise _bad(f"pin {pin}: the conversation has {there}.")
    return pins


def _check_sizes(pins: Sequence[str], counter: TokenCounter, limit: int) -> None:
    """Refuse a text that the summary cannot hold, and texts that it cannot hold together."""
    for pin in pins:
        tokens = counter.count(with_pins("", [pin]).strip())
        if tokens > limit:
            shown = repr(pin if len(pin) <= _SHOWN else f"{pin[:_SHOWN]}…")
            raise _bad(
                f"pin {shown} takes {tokens:,} tokens, and the summary may take {limit:,}. Pin less of "
                "it, or the message that it is from, by its index."
            )
    tokens = counter.count(with_pins("", pins).strip())
    if tokens > limit:
        raise _bad(
            f"{len(pins)} pins take {tokens:,} tokens together, and the summary may take {limit:,}. Pin less."
        )


def _bad(message: str) -> RequestError:
    return RequestError(message, code="bad-pin")


def _loaded(pin: int, gap: Gap) -> int:
    """The index, among the messages that are loaded, of one in the whole conversation."""
    if not gap.messages or pin < gap.lead:
        return pin
    if pin < gap.lead + gap.messages:
        raise RequestError(
            f"The pinned message {pin} is not loaded. Load the whole conversation first.",
            code="history-not-loaded",
        )
    return pin - gap.messages


def _pinned(messages: Sequence[Message], start: int, pins: Sequence[int]) -> set[int]:
    """The indexes before `start` that stay, with their groups."""
    whole: set[int] = set()
    starts = [*group_starts(messages), len(messages)] if pins else []
    for pin in pins:
        if pin < start and not is_summary(messages[pin]):
            after = bisect_right(starts, pin)
            whole.update(range(starts[after - 1], starts[after]))
    return whole


def _read(
    messages: Sequence[Message], sums: Sequence[int], start: int, gap: Gap, most: int
) -> tuple[int, int]:
    """`lead` and `read_from` of a plan: the newest `most` tokens before `start`, and the beginning."""
    read_from = min(bisect_left(sums, sums[start] - most), max(start - 1, 0))
    end = gap.lead if gap.messages else read_from
    read_from = max(read_from, end)
    if not gap.messages:
        asked = (at for at in range(end) if messages[at].role not in ("user", "system"))
        end = next(asked, end)
    return min(bisect_right(sums, most * LEAD_SHARE) - 1, end), read_from
