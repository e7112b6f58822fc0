"""One chat turn: assembled, or as it was assembled before; compacted first, where it is time for that.

1. What was assembled is given again while nothing changed that it depends on, the minute included.
2. A turn that reaches the compaction threshold is compacted first, if the settings want that: a request with
   a message, or a body to send after a tool's result. Not where the request sets its own model or limits:
   then it says nothing of the conversation.
3. A compaction that brought nothing, or not enough, is told and not tried again before a turn was below the
   threshold. One that the user took back is not made again before he asks.
4. The cache report compares with the last request that was made for a message: the one that was sent.
5. What the conversation is, the ledger says (`following`). A compaction is in force once it is written there.
6. What is remembered (`remembered`) takes only what room is left, and is no reason to compact.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context import assembly
from nexus_context.assembly import AssembledContext, costs
from nexus_context.conversation.compaction.detection import Reason, settings_of
from nexus_context.conversation.compaction.errors import CompactionError
from nexus_context.conversation.compaction.receipt import Receipt
from nexus_context.conversation.message import Message
from nexus_context.conversation.window import Budget
from nexus_context.ledger.errors import HeadMovedError, LedgerError
from nexus_context.prefix import compare
from nexus_context.prompt import texts
from nexus_context.snapshot import Snapshot
from nexus_context.tokens import TokenCounter
from nexus_daemon import following, protocol
from nexus_daemon.conversations import Conversation
from nexus_daemon.convert import Locator
from nexus_daemon.ledger import Book
from nexus_daemon.requests import remembered, wire

if TYPE_CHECKING:
    from nexus_context.conversation.compaction.run import CompactionResult, Plan
    from nexus_context.memory.knowledge import Passage

LARGEST_KEY = 64 * 1024
"""Bytes of a request as JSON that is looked up: comparing more costs as much as assembling."""
TRIES = 3
"""Times that a compaction is planned anew because another window went on with the conversation."""


def assemble(
    snapshot: Snapshot,
    conversation: Conversation,
    book: Book,
    params: protocol.AssembleParams,
    folder: str,
    locate: Locator,
    *,
    passages: "Sequence[Passage]" = (),
) -> tuple[protocol.Assembled, bool]:
    """The result, and whether the conversation was compacted for it. `passages` belong to the message."""
    began = time.perf_counter()
    now = datetime.now().astimezone()
    request = request_of(params)
    following.follow(conversation, book, snapshot, tokens=_needed(snapshot, request.options))
    gathered = partial(
        remembered.gathered, snapshot, conversation, book, request, agent=params.agent, passages=passages
    )
    found = gathered()
    context, cached = _assembled(snapshot, conversation, request, found, now)
    known: dict[str, Any] = {}
    compacted = False
    if _is_due(context, conversation, request):
        known["compaction"], compacted = _compact_if_it_helps(snapshot, conversation, book, context, now)
        if compacted:
            found = gathered()
            context, cached = _assembled(snapshot, conversation, request, found, now)
            conversation.futile = context.metadata.get("compactionReason") == "token_limit"
            known["compaction"]["reached"] = not conversation.futile
    counter = costs.model_of(snapshot, request.options.model)[1]
    known["cache"] = wire.cache_report(compare(conversation.last_prefix, context.prefix, counter), locate)
    known["cached"] = cached
    memory = context.metadata.get("memory", {})
    if found.asked:
        remembered.given_out(conversation, params.agent, memory.get("messages", ()))
    if found.failures:
        known["memory"] = memory | {"failures": list(found.failures)}
    known["contextJson"] = _record(snapshot, context)
    if request.message is not None:
        conversation.last_prefix = context.prefix
    conversation.record = known["contextJson"]
    known["assemblyMs"] = round((time.perf_counter() - began) * 1000, 3)
    result = wire.assembled(
        context,
        snapshot,
        params,
        folder,
        remembered.with_files(locate, found.items),
        metadata=context.metadata | known,
        parent_turn=conversation.last_turn,
    )
    return result, compacted


def compact(
    snapshot: Snapshot,
    conversation: Conversation,
    book: Book,
    *,
    pins: list[str | int] = [],  # noqa: B006 (never changed)
    instructions: str | None = None,
    overflow: bool = False,
    now: datetime,
) -> Receipt:
    """Compact the conversation because the user asks. Raises CompactionError where that brings nothing."""
    following.follow(conversation, book, snapshot)
    fixed = costs.fixed_part(snapshot, assembly.Request(), now=now)
    spent = assembly.usage_of(snapshot, conversation.manager, now=now)
    budget = Budget(spent.available, sum(row.tokens for row in fixed.before))
    result = _compacted(
        snapshot,
        conversation,
        book,
        fixed.counter,
        budget,
        reason="explicit",
        now=now,
        pins=pins,
        instructions=instructions,
        overflow=overflow,
    )
    conversation.kept_whole = False
    return result.receipt


def _compacted(
    snapshot: Snapshot,
    conversation: Conversation,
    book: Book,
    counter: TokenCounter,
    budget: Budget,
    *,
    reason: Reason,
    now: datetime,
    pins: list[str | int] = [],  # noqa: B006 (never changed)
    instructions: str | None = None,
    overflow: bool = False,
) -> "CompactionResult":
    """Plan a compaction and carry it out; planned anew if another window went on with the conversation.

    HeadMovedError if another window compacted it: what is due, and what numbers pin, was said of what it was.
    """
    tries, before = TRIES, conversation.compaction
    told_of_it = reason == "token_limit" or any(isinstance(pin, int) for pin in pins)
    while True:
        following.follow(conversation, book, snapshot)
        if told_of_it and conversation.compaction != before:
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
        tries -= 1
        try:
            return _carried_out(plan, conversation, book, counter, now)
        except HeadMovedError:
            if not tries:
                raise


def _carried_out(
    plan: "Plan", conversation: Conversation, book: Book, counter: TokenCounter, now: datetime
) -> "CompactionResult":
    """The compaction, written and in force. HeadMovedError if the conversation went on meanwhile."""
    from nexus_context.conversation.compaction.extractive import extract  # rarely needed
    from nexus_context.conversation.compaction.run import finish

    result = finish(plan, extract(plan.request(), counter), counter=counter, made_at=now)
    kept = (*plan.pinned, *range(plan.start, len(plan.messages)))
    asked = following.compaction_of(conversation, result.summary_message, kept, counter, result.receipt)
    done = book.compact(conversation.session, asked)
    conversation.manager.apply(result, counter)
    following.compacted(conversation, done, kept, result.receipt.id)
    return result


def _needed(snapshot: Snapshot, options: assembly.Options) -> int | None:
    """Tokens of history that the request may look at; None: all."""
    return following.needed(
        snapshot,
        model=options.model,
        strategy=options.truncation_strategy,
        max_tokens=options.max_context_tokens,
        reserve=options.reserve_tokens,
    )


def request_of(params: protocol.AssembleParams) -> assembly.Request:
    options = params.options or protocol.AssembleOptions()
    """What is asked for."""
    return assembly.Request(
        message=_message(params.message),
        event=params.event,
        format=params.format,
        session=params.session,
        options=assembly.Options(**msgspec.structs.asdict(options)),
    )


def _message(given: str | list[Any] | Message | None) -> Message | None:
    if given is None or isinstance(given, Message):
        return given
    return Message("user", given)


def _assembled(
    snapshot: Snapshot,
    conversation: Conversation,
    request: assembly.Request,
    found: remembered.Found,
    now: datetime,
) -> tuple[AssembledContext, bool]:
    """The context, and whether it was assembled before."""
    told = texts.moment(now, snapshot.effective.get("/context/datetime") or {})
    encoded = msgspec.json.encode(request)
    items = tuple(found.items)
    key = (snapshot.revision, conversation.manager.revision, tuple(told.values()), encoded, items)
    if len(encoded) <= LARGEST_KEY:
        known = conversation.assembled.get(key)
        if known is not None:
            return known, True
    context = assembly.assemble(snapshot, conversation.manager, request, now=now, memory=items)
    if len(encoded) <= LARGEST_KEY:
        conversation.assembled.put(key, context)
    return context, False


def _is_due(context: AssembledContext, conversation: Conversation, request: assembly.Request) -> bool:
    """Whether this request is a turn of the conversation, past the threshold, and a compaction may help."""
    options = request.options
    own = (options.model, options.max_context_tokens, options.reserve_tokens, options.truncation_strategy)
    goes_on = request.format != "neutral" and _awaits_answer(conversation)
    if own != (None, None, None, None) or not (request.message is not None or goes_on):
        return False
    if context.metadata.get("compactionReason") != "token_limit":
        conversation.futile = False
        return False
    return not conversation.futile and not conversation.kept_whole


def _awaits_answer(conversation: Conversation) -> bool:
    """Whether the last message is a tool's result: then the model is asked without a message of the user."""
    messages = conversation.manager.history.messages
    return bool(messages) and messages[-1].role == "tool"


def _compact_if_it_helps(
    snapshot: Snapshot, conversation: Conversation, book: Book, context: AssembledContext, now: datetime
) -> tuple[dict[str, Any], bool]:
    """What became of it, for `metadata.compaction`, and whether the conversation changed."""
    spent = context.usage
    fixed = spent.total - context.view.tokens - spent.by_category().get("memory", 0)
    threshold = snapshot.effective.get("/compaction/threshold")
    if fixed >= threshold * spent.available:
        conversation.futile = True
        return {"reached": False, "problem": texts.text("compaction_no_room").format(fixed=fixed)}, False
    counter = costs.model_of(snapshot, None)[1]
    budget, before = Budget(spent.available, fixed), conversation.compaction
    try:
        result = _compacted(snapshot, conversation, book, counter, budget, reason="token_limit", now=now)
    except LedgerError as error:
        if conversation.compaction != before:  # by another window: it is done
            return {}, True
        # nothing has changed; the next turn finds it due again
        return {"reached": False, "problem": str(error)}, False
    except CompactionError as error:
        conversation.futile = True
        return {"reached": False, "problem": str(error)}, False
    return {"id": result.receipt.id, "receipt": result.receipt}, True


def _record(snapshot: Snapshot, context: AssembledContext) -> dict[str, Any]:
    """What a ledger keeps of the context of a turn."""
    memory = context.metadata.get("memory")
    return {
        "revision": snapshot.revision,
        "model": context.model,
        "prefixHash": context.metadata["prefixHash"],
        "tokens": context.metadata["tokens"],
        "truncated": context.metadata["truncated"],
        "tools": list(context.prefix.tool_names),
        "parameters": {name: parameter.value for name, parameter in context.parameters.items()},
    } | ({} if memory is None else {"memory": memory})
