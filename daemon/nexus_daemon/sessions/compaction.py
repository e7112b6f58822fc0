"""Compact a conversation: plan → summarize → apply → receipt.

1. Planning and applying block. They run in a worker thread, while the request has the conversation locked.
2. The conversation is unlocked while the client's model writes the summary (`model_summarizer`): other
   requests go on, and other windows may write. One summary per conversation is requested at a time, and none
   if another request has compacted the conversation meanwhile.
3. Messages appended meanwhile are preserved as they are: in the ledger, the compaction comes after their
   turns. Any other change (a compaction, an undo, a clear) ends this compaction with HeadMovedError.
4. The embedded summarizer writes the summary if the client has no model, if the model fails, and if the
   model's summary saves nothing.
5. A compaction is in force as soon as the ledger has it. Only then does the conversation in memory change.
6. After that, the instruction files are read again if the settings want it (`compaction.reload_prompt`).
7. A turn never fails because of its compaction: a failure is reported in `metadata.compaction`. After
   CompactionError, `Conversation.futile` keeps later turns from trying again.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from nexus_context.conversation.compaction.detection import settings_of
from nexus_context.conversation.compaction.receipt import CompactionError, Receipt
from nexus_context.conversation.message import content_of
from nexus_context.conversation.window import Budget
from nexus_context.errors import RequestError
from nexus_context.folder.prompt import texts
from nexus_context.ledger.errors import HeadMovedError, LedgerError
from nexus_context.ledger.records import Counted, NewCompaction
from nexus_context.tokens import TokenCounter, count_message, family_of_counter
from nexus_context.turn import costs, models
from nexus_context.turn.request import AssembledContext, Request
from nexus_daemon import protocol
from nexus_daemon.process import lazy
from nexus_daemon.sessions import model_summarizer, next_request, sync, usage
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.model_summarizer import SummaryTask
from nexus_daemon.sessions.scope import SessionScope

if TYPE_CHECKING:  # rarely needed
    from nexus_context.conversation.compaction.run import FinishedCompaction, Plan
    from nexus_context.conversation.compaction.summarizer import Written

EXPLICIT_S = 60.0
"""Seconds that a model has for a summary that the user requested."""
IN_A_TURN_S = 30.0
"""Seconds that a model has while a turn waits. The client may end the wait earlier with an error."""


class Draft(msgspec.Struct, frozen=True):
    """A planned compaction that has no summary yet.

    `thread`, `compaction` and `positions` are those of the conversation when the compaction was planned.
    """

    task: SummaryTask
    thread: str | None
    compaction: str | None
    positions: tuple[int, ...]


class TurnCompaction(NamedTuple):
    """The outcome of a turn's compaction: the report for `metadata.compaction`, and whether anything
    changed.
    """

    report: dict[str, Any]
    compacted: bool


async def compact(scope: SessionScope, params: protocol.CompactParams) -> tuple[Receipt, protocol.TokenUsage]:
    """Compact the conversation on the user's request. CompactionError if that saves nothing."""
    draft = await scope.work(plan, params)
    async with _summary(scope, draft, EXPLICIT_S) as summary:
        receipt = await scope.work(apply, draft, summary)
        _reload_prompt(scope)
        return receipt, (await scope.work(usage.measure_scope)).usage


async def compact_turn(scope: SessionScope, context: AssembledContext) -> TurnCompaction:
    """Compact the conversation because the turn with this context reached the threshold."""
    conversation = scope.conversation
    previous_compaction = conversation.state.compaction
    try:
        draft = await scope.work(_plan_turn, context)
        async with _summary(scope, draft, IN_A_TURN_S) as summary:
            receipt = await scope.work(apply, draft, summary)
    except LedgerError as error:
        if conversation.state.compaction != previous_compaction:  # another window was faster
            _reload_prompt(scope)
            return TurnCompaction({}, compacted=True)
        # nothing has changed; the next turn is due again
        return TurnCompaction({"reached": False, "problem": str(error)}, compacted=False)
    except CompactionError as error:
        conversation.futile = True
        return TurnCompaction({"reached": False, "problem": str(error)}, compacted=False)
    _reload_prompt(scope)
    return TurnCompaction({"id": receipt.id, "receipt": receipt}, compacted=True)


# ---------------------------------------------------------------- plan


def plan(scope: SessionScope, params: protocol.CompactParams) -> Draft:
    """Decide which messages to replace. CompactionError if there is nothing to replace."""
    snapshot, conversation, ledger = scope.snapshot, scope.conversation, scope.ledger
    if ledger.store.head(ledger.workspace, conversation.session) is None:
        raise RequestError(
            f"There is no session {conversation.session!r} in {ledger.workspace}.", code="unknown-session"
        )
    if any(isinstance(pin, int) for pin in params.pins):  # they number the messages of the whole conversation
        scope.follow_all()
    scope.follow_to_compact()
    options = next_request.options_beside(snapshot, conversation, ledger)
    now = scope.client.now()
    request = Request(options=options)
    fixed, view, token_usage = costs.fitted_part(
        snapshot, conversation.manager, request, now=now, looking=True
    )
    compaction_plan = conversation.manager.plan_compaction(
        fixed.counter,
        Budget(
            _capacity(conversation, token_usage.available, fixed.counter),
            sum(row.tokens for row in fixed.before),
        ),
        settings=settings_of(snapshot.effective),
        reason="explicit",
        pins=params.pins,
        instructions=params.instructions,
        overflow=params.overflow,
    )
    task = SummaryTask(
        plan=compaction_plan,
        counter=fixed.counter,
        prompt=fixed.prompt.text,
        prompt_tokens=sum(fixed.prompt_tokens),
        view=view,
        limit=token_usage.limit,
    )
    return _draft(conversation, task)


def _plan_turn(scope: SessionScope, context: AssembledContext) -> Draft:
    """As `plan`, for a turn with this context. HeadMovedError if the conversation was compacted since."""
    snapshot, conversation, token_usage = scope.snapshot, scope.conversation, context.usage
    fixed = token_usage.total - context.view.tokens - token_usage.by_category().get("memory", 0)
    if fixed >= snapshot.effective.get("/compaction/threshold") * token_usage.available:
        raise CompactionError(texts.text("compaction_no_room").format(fixed=fixed), code="no-gain")
    previous_compaction = conversation.state.compaction
    scope.follow_to_compact()
    if conversation.state.compaction != previous_compaction:
        raise HeadMovedError(conversation.session)
    counter = models.model_of(snapshot, None)[1]
    compaction_plan = conversation.manager.plan_compaction(
        counter,
        Budget(_capacity(conversation, token_usage.available, counter), fixed),
        settings=settings_of(snapshot.effective),
        reason="token_limit",
    )
    task = SummaryTask(
        plan=compaction_plan,
        counter=counter,
        prompt=context.prompt.text,
        prompt_tokens=sum(context.prefix.prompt_tokens),
        view=context.view,
        limit=token_usage.limit,
    )
    return _draft(conversation, task)


def _capacity(conversation: Conversation, available: int, counter: TokenCounter) -> int:
    """The tokens that are available, as this counter would have to count them to agree with the provider."""
    return conversation.manager.correction.capacity(available, family_of_counter(counter).name)


def _draft(conversation: Conversation, task: SummaryTask) -> Draft:
    head = conversation.state.head
    thread = None if head is None else head.thread
    return Draft(task, thread, conversation.state.compaction, tuple(conversation.positions))


# ---------------------------------------------------------------- summarize


@asynccontextmanager
async def _summary(scope: SessionScope, draft: Draft, seconds: float) -> "AsyncIterator[Written | None]":
    """The model's summary; None if the embedded summarizer has to write it.

    The conversation is unlocked while the model writes. Until the block ends, nobody else requests a summary
    of it.
    """
    if not await model_summarizer.has_model(scope):
        yield None
        return
    conversation = scope.conversation
    async with AsyncExitStack() as alone:
        summary = None
        async with conversation.unlocked():
            await alone.enter_async_context(conversation.summarizing)
            if conversation.state.compaction == draft.compaction:
                summary = await model_summarizer.summarize(scope, draft.task, seconds=seconds)
        yield summary


# ---------------------------------------------------------------- apply → receipt


def apply(scope: SessionScope, draft: Draft, summary: "Written | None") -> Receipt:
    """Write the compaction with this summary. If `summary` is None, the embedded summarizer writes one.

    HeadMovedError if the conversation has changed in any other way than by appends. CompactionError if the
    summary saves nothing.
    """
    conversation, counter = scope.conversation, draft.task.counter
    scope.follow_to_compact()
    compaction_plan, positions = _with_appended(conversation, draft)
    result = _finish(compaction_plan, summary, counter, now=scope.client.now())
    preserved = (*compaction_plan.pinned, *range(compaction_plan.start, len(compaction_plan.messages)))
    _write(scope, result, [positions[index] for index in preserved], counter)
    return result.receipt


def _with_appended(conversation: Conversation, draft: Draft) -> tuple["Plan", tuple[int, ...]]:
    """The plan with the messages appended since, and the positions of all its messages.

    More of the conversation may be loaded by now than when it was planned.
    """
    now = _draft(conversation, draft.task)
    if (now.thread, now.compaction) != (draft.thread, draft.compaction):
        raise HeadMovedError(conversation.session)
    last_planned = max(draft.positions, default=-1)
    first_appended = next(
        (index for index, position in enumerate(now.positions) if position > last_planned), len(now.positions)
    )
    if first_appended == len(now.positions):
        return draft.task.plan, draft.positions
    history = conversation.manager.history
    sums = history.sums(draft.task.counter)
    extended = draft.task.plan.extended(history.messages[first_appended:], sums[-1] - sums[first_appended])
    return extended, (*draft.positions, *now.positions[first_appended:])


def _finish(
    plan: "Plan", summary: "Written | None", counter: TokenCounter, *, now: datetime
) -> "FinishedCompaction":
    failures: tuple[str, ...] = ()
    if summary is not None:
        try:
            return lazy.compaction_run.finish(plan, summary, counter=counter, made_at=now)
        except CompactionError as error:
            if summary.summarizer == lazy.extractive.NAME:
                raise
            failures = (*summary.failures, f"{summary.summarizer}: {error.reason}")
    embedded = lazy.extractive.extract(plan.request(), counter)
    embedded = msgspec.structs.replace(embedded, failures=failures)
    return lazy.compaction_run.finish(plan, embedded, counter=counter, made_at=now)


def _reload_prompt(scope: SessionScope) -> None:
    if scope.snapshot.effective.get("/compaction/reload_prompt"):
        scope.folder.reload.request("instructions")


def _write(
    scope: SessionScope, result: "FinishedCompaction", preserved: list[int], counter: TokenCounter
) -> None:
    """Write the compaction to the ledger, which the conversation in memory then follows.

    `preserved` are the positions of the messages behind the summary.
    """
    conversation, receipt, summary = scope.conversation, result.receipt, result.summary_message
    head = conversation.state.head
    assert head is not None  # noqa: S101 - there is something to compact
    new_compaction = NewCompaction(
        id=receipt.id,
        seq=head.seq,
        messages=head.messages,
        thread=head.thread,
        summary=Counted(summary, count_message(counter, content_of(summary))),
        counter=counter.name,
        kept=sync.ranges(preserved),
        receipt=msgspec.to_builtins(receipt),
    )
    try:
        scope.ledger.compact(conversation.session, new_compaction)
    except HeadMovedError:
        scope.follow_to_compact()  # the caller sees what the conversation is now
        raise
    with suppress(LedgerError):  # it is in force; the next request follows it
        scope.follow_to_compact()
