"""A compaction, step by step: planned, a summary written by whoever can, carried out.

1. The steps are a generator. It yields a `Draft` where it needs a summary and is sent what was written, or
   None: then it writes the embedded one. Each step blocks: for worker threads, while the conversation is
   locked.
2. Between two steps others may have the conversation, and other windows may write at any time. What they
   append is kept as it is: the ledger puts the compaction behind it, so it is tried once. Anything else
   (another compaction, a clearing) ends this one: HeadMovedError.
3. A model's summary that saves nothing is replaced by the embedded one.
4. A compaction is in force once the ledger has it (`following`).
"""

from collections.abc import Generator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nexus_context import assembly
from nexus_context.assembly import AssembledContext, costs
from nexus_context.conversation.compaction.detection import Reason, settings_of
from nexus_context.conversation.compaction.errors import CompactionError
from nexus_context.conversation.compaction.receipt import Receipt
from nexus_context.conversation.view import View
from nexus_context.conversation.window import Budget
from nexus_context.ledger.errors import HeadMovedError, LedgerError
from nexus_context.prompt import texts
from nexus_context.snapshot import Snapshot
from nexus_context.tokens import TokenCounter
from nexus_daemon.sessions import next_request, sync
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger

if TYPE_CHECKING:  # rarely needed
    from nexus_context.conversation.compaction.run import CompactionResult, Plan
    from nexus_context.conversation.compaction.summarizer import Written

T = TypeVar("T")


class Sent(msgspec.Struct, frozen=True):
    """What the conversation's requests look like: for one that asks for a summary, on the same prefix."""

    prompt: str
    prompt_tokens: int
    view: View
    limit: int  # tokens of the model's window, or the configured maximum


class Draft(msgspec.Struct, frozen=True):
    """A compaction that lacks its summary. `compaction` is the one in force."""

    plan: "Plan"
    sent: Sent
    counter: TokenCounter
    compaction: str | None


Steps = Generator[Draft, "Written | None", T]


def embedded(steps: Steps[T]) -> T:
    """What comes of the steps with embedded summaries."""
    try:
        while True:
            steps.send(None)
    except StopIteration as ended:
        value: T = ended.value
        return value


def compact(
    snapshot: Snapshot,
    conversation: Conversation,
    ledger: FolderLedger,
    *,
    pins: list[str | int] = [],  # noqa: B006 (never changed)
    instructions: str | None = None,
    overflow: bool = False,
    now: datetime,
) -> Steps[Receipt]:
    """Compact the conversation because the user asks. Raises CompactionError where that brings nothing."""
    sync.follow(conversation, ledger, snapshot)
    options = next_request.besides(snapshot, conversation, ledger)
    fixed = costs.fixed_part(snapshot, assembly.Request(options=options), now=now)
    view, spent = costs.fitted(snapshot, conversation.manager, fixed, options, looking=True)
    result = yield from _compacted(
        snapshot,
        conversation,
        ledger,
        fixed.counter,
        Budget(spent.available, sum(row.tokens for row in fixed.before)),
        Sent(fixed.prompt.text, sum(fixed.prompt_tokens), view, spent.limit),
        reason="explicit",
        now=now,
        pins=pins,
        instructions=instructions,
        overflow=overflow,
    )
    conversation.kept_whole = False
    return result.receipt


def compact_if_it_helps(
    snapshot: Snapshot,
    conversation: Conversation,
    ledger: FolderLedger,
    context: AssembledContext,
    now: datetime,
) -> Steps[tuple[dict[str, Any], bool]]:
    """What became of it, for `metadata.compaction`, and whether the conversation changed."""
    spent = context.usage
    fixed = spent.total - context.view.tokens - spent.by_category().get("memory", 0)
    threshold = snapshot.effective.get("/compaction/threshold")
    if fixed >= threshold * spent.available:
        conversation.futile = True
        return {"reached": False, "problem": texts.text("compaction_no_room").format(fixed=fixed)}, False
    counter = costs.model_of(snapshot, None)[1]
    budget, before = Budget(spent.available, fixed), conversation.compaction
    sent = Sent(context.prompt.text, sum(context.prefix.prompt_tokens), context.view, spent.limit)
    try:
        result = yield from _compacted(
            snapshot, conversation, ledger, counter, budget, sent, reason="token_limit", now=now
        )
    except LedgerError as error:
        if conversation.compaction != before:  # by another window: it is done
            return {}, True
        # nothing has changed; the next turn finds it due again
        return {"reached": False, "problem": str(error)}, False
    except CompactionError as error:
        conversation.futile = True
        return {"reached": False, "problem": str(error)}, False
    return {"id": result.receipt.id, "receipt": result.receipt}, True


def _compacted(
    snapshot: Snapshot,
    conversation: Conversation,
    ledger: FolderLedger,
    counter: TokenCounter,
    budget: Budget,
    sent: Sent,
    *,
    reason: Reason,
    now: datetime,
    pins: list[str | int] = [],  # noqa: B006 (never changed)
    instructions: str | None = None,
    overflow: bool = False,
) -> Steps["CompactionResult"]:
    """Plan a compaction and carry it out. HeadMovedError where the conversation is another one meanwhile."""
    before = conversation.compaction
    sync.follow(conversation, ledger, snapshot)
    if conversation.compaction != before:  # what is due, and what numbers pin, was said of what it was
        raise HeadMovedError(conversation.session)
    plan = conversation.manager.plan_compaction(
        counter,
        budget,
        settings=settings_of(snapshot.effective.get("/compaction") or {}),
        reason=reason,
        pins=pins,
        instructions=instructions,
        overflow=overflow,
    )
    line = _Line.of(conversation)
    written = yield Draft(plan, sent, counter, conversation.compaction)
    sync.follow(conversation, ledger, snapshot)
    plan, positions = line.continued(plan, conversation, counter)
    result = _finished(plan, written, counter, now)
    _put_in_force(result, plan, positions, conversation, ledger, snapshot, counter)
    return result


class _Line(msgspec.Struct, frozen=True):
    """Which messages a plan was made of, by their positions in the ledger."""

    thread: str | None
    compaction: str | None
    positions: tuple[int, ...]

    @classmethod
    def of(cls, conversation: Conversation) -> "_Line":
        head = conversation.head
        thread = None if head is None else head.thread
        return cls(thread, conversation.compaction, tuple(conversation.positions))

    def continued(
        self, plan: "Plan", conversation: Conversation, counter: TokenCounter
    ) -> tuple["Plan", tuple[int, ...]]:
        """The plan with what was appended since, and the positions of all its messages.

        More of the conversation may be loaded by now. HeadMovedError where anything else happened.
        """
        now = _Line.of(conversation)
        if (now.thread, now.compaction) != (self.thread, self.compaction):
            raise HeadMovedError(conversation.session)
        last = max(self.positions, default=-1)
        first = next((at for at, each in enumerate(now.positions) if each > last), len(now.positions))
        if first == len(now.positions):
            return plan, self.positions
        history = conversation.manager.history
        sums = history.sums(counter)
        extended = plan.extended(history.messages[first:], sums[-1] - sums[first])
        return extended, (*self.positions, *now.positions[first:])


def _put_in_force(
    result: "CompactionResult",
    plan: "Plan",
    positions: Sequence[int],
    conversation: Conversation,
    ledger: FolderLedger,
    snapshot: Snapshot,
    counter: TokenCounter,
) -> None:
    """Write the compaction. HeadMovedError where another window did more than append meanwhile."""
    kept = [positions[index] for index in (*plan.pinned, *range(plan.start, len(plan.messages)))]
    asked = sync.compaction_of(conversation, result.summary_message, kept, counter, result.receipt)
    try:
        done = ledger.compact(conversation.session, asked)
    except HeadMovedError:
        sync.follow(conversation, ledger, snapshot)  # so that the caller sees what it is now
        raise
    if done.before != conversation.head:
        sync.follow(conversation, ledger, snapshot)  # with what another window appended meanwhile
        return
    conversation.manager.apply(result, counter)
    sync.compacted(conversation, done, kept, result.receipt.id)


def _finished(
    plan: "Plan", written: "Written | None", counter: TokenCounter, now: datetime
) -> "CompactionResult":
    from nexus_context.conversation.compaction import extractive
    from nexus_context.conversation.compaction.run import finish

    failures: tuple[str, ...] = ()
    if written is not None:
        try:
            return finish(plan, written, counter=counter, made_at=now)
        except CompactionError:
            if written.summarizer == extractive.NAME:
                raise
            failures = (*written.failures, f"{written.summarizer}: the summary saves nothing")
    own = extractive.extract(plan.request(), counter)
    return finish(plan, msgspec.structs.replace(own, failures=failures), counter=counter, made_at=now)
