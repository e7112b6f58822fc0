"""Assembles one chat turn: from a folder's snapshot, a conversation and a request it makes what is sent to a
model, and its cost.

1. Five conceptual layers become three physical ones. Workspace and persona are the system prompt, the session
   is the history, and memory and event are the last user message (`memory_text` has the rules of its
   content). That message is stored as it was sent, so that each request begins with the bytes of the one
   before.
2. Equal inputs give equal bytes. The clock is one of the inputs.
3. Every token has a row, and the rows sum to the total.
4. Excess is cut from memory first, then from the history (`conversation/window`), never from the system
   prompt, the tools or the current message. A provider's body that is still too long is refused.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from nexus_context.config.merge import Effective
from nexus_context.conversation import tools as tool_sets
from nexus_context.conversation.agent_result import RequestBasis
from nexus_context.conversation.bodies.parameter_fields import checks_reasoning
from nexus_context.conversation.bound_thinking import (
    RequestSize,
    SentRequest,
    check_reasoning,
    without_lapsed,
)
from nexus_context.conversation.budget import TokenUsage, corrected
from nexus_context.conversation.compaction.detection import settings_of, should_compact
from nexus_context.conversation.frozen import Proposal
from nexus_context.conversation.message import Message, sent_message, without_preamble
from nexus_context.conversation.repair import Repair, quote_name
from nexus_context.conversation.sent_requests import AssembledRequest
from nexus_context.conversation.view import View, overflow
from nexus_context.folder.request_prompt import active_skills
from nexus_context.folder.snapshot import Snapshot
from nexus_context.memory.item import MemoryItem
from nexus_context.tokens import MinimalCounter, TokenCounter, complete, family_of_counter
from nexus_context.turn import costs, models, offered_tools
from nexus_context.turn.body import Reuse, body_of
from nexus_context.turn.costs import FixedPart
from nexus_context.turn.freezing import is_frozen
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.memory_text import place
from nexus_context.turn.prefix import Prefix, compare
from nexus_context.turn.request import AssembledContext, Options, Pending, PendingChange, Request, check
from nexus_context.turn.without_folder import without_folder


def assemble(
    snapshot: Snapshot | None,
    conversation: ContextManager,
    request: Request,
    *,
    now: datetime,
    memory: Sequence[MemoryItem] = (),
    counter: MinimalCounter | TokenCounter | None = None,
) -> AssembledContext:
    """Assemble one turn. `now` is a local time with its zone, and `memory` is put before the user's text.

    `counter` replaces the model's own counter. If `snapshot` is None, the prompt, tools and limits are those
    of the conversation. Raise RequestError for an unknown format or strategy, a provider's format without a
    model, a limit that is too small, and a parameter that is unknown or out of range. Raise
    ContextOverflowError if a provider's body does not fit the model.
    """
    with conversation.in_use:
        if snapshot is None:
            snapshot, request = without_folder(conversation, request)
            if request.options.model in (None, conversation.model):
                counter = counter or conversation.counter
        return _assembled(snapshot, conversation, request, now=now, memory=memory, counter=counter)


def _assembled(
    snapshot: Snapshot,
    conversation: ContextManager,
    request: Request,
    *,
    now: datetime,
    memory: Sequence[MemoryItem],
    counter: MinimalCounter | TokenCounter | None,
) -> AssembledContext:
    options = request.options
    model, _ = models.model_of(snapshot, options.model)
    request = check(request, model)
    parameters = costs.resolved_parameters(snapshot, request)
    counter = None if counter is None else complete(counter)
    bare, view, spent = costs.fitted_part(snapshot, conversation, request, counter=counter, now=now)
    fixed, memory_report = place(snapshot, request, bare, memory, view=view, room=spent.remaining, now=now)
    if memory_report is not None:
        spent = costs.spent(snapshot, fixed, view, options)
    settings = snapshot.effective
    prefix = _prefix(settings, fixed, view, fixed.current)
    fitted = _Fitted(fixed, view)
    if prefix.view is not view:
        view = prefix.view
        spent = costs.spent(snapshot, fixed, view, options)
    if (spent.over or view.excess_bytes) and request.format != "neutral":
        raise overflow(view, spent.available)
    lapsed = prefix.reasoning.lapsed
    reuse = Reuse(
        ttl=prefix.lifetime,
        replayed=is_frozen(snapshot),
        lapsed=lapsed,
    )
    usage = corrected(spent, conversation.correction, fixed.counter)
    answer_tokens = costs.answer_room(usage, model)
    rendered = body_of(
        request, fixed, view, parameters, folder=snapshot.folder, reuse=reuse, left=answer_tokens
    )
    rendered.repairs.extend(_not_sent(conversation, fixed))
    body = rendered.body
    if body is not None and request.format == "anthropic":
        thinking = msgspec.json.encode(body.get("thinking")).decode()
        prefix = msgspec.structs.replace(prefix, thinking=thinking)
    current = None if fixed.current is None else sent_message(fixed.current)
    size = RequestSize(
        fixed.counter, sum(row.tokens for row in fixed.before), spent.total, available=spent.available
    )
    metadata = _metadata(prefix, spent, fixed) | _advice(snapshot, conversation, spent, _Fitted(fixed, view))
    message = _appended_message(snapshot, fixed)
    sent_request = AssembledRequest(
        id=_request_id(prefix, conversation, current),
        sent=SentRequest(prefix.base, view, current, strict=checks_reasoning(model.given), size=size),
        message=message,
        proposal=Proposal(bare.start.frozen, bare.note.text),
        at=now,
        basis=RequestBasis(model.given or None, snapshot.role, prefix.tool_names, fixed.prompt.text),
    )
    conversation.requests.add(sent_request)
    metadata["activeSkills"] = _active_skills(snapshot, options)
    metadata |= rendered.report() | ({} if memory_report is None else {"memory": memory_report})
    return AssembledContext(
        prompt=fixed.prompt,
        view=view,
        current_message=current,
        turn_message=msgspec.structs.replace(message or Message("user"), answers=sent_request.id),
        sent_request=sent_request,
        tools=fixed.tools,
        parameters=parameters,
        model=model.given,
        provider=snapshot.effective.get("/provider/name"),
        usage=usage,
        budget=spent.budget(reserve_tools=snapshot.effective.get("/context/reserve_tool_tokens")),
        permissions=offered_tools.permissions(snapshot, options, fixed.left_out),
        workspace_path=snapshot.folder,
        session=request.session,
        metadata=metadata,
        problems=snapshot.problems,
        request=body,
        prefix=prefix,
        pending=_pending(snapshot, conversation, request, fitted, now=now),
    )


def _not_sent(conversation: ContextManager, fixed: FixedPart) -> list[Repair]:
    """What a program set on the conversation and the request does not have: the folder's is sent instead."""
    prompt, tools = conversation.prompt_and_tools
    repairs = []
    if prompt.strip() and prompt.strip() not in fixed.prompt.text:
        text = "The system prompt of the conversation is not sent: the folder's is."
        repairs.append(Repair("prompt-not-sent", f"{text} Pass it as additional_system_prompt."))
    names = {*map(tool_sets.name_of, fixed.tools), *fixed.left_out}
    missing = [name for name in map(tool_sets.name_of, tools) if name not in names]
    if missing:
        text = f"Tools of the conversation are not sent: {', '.join(map(quote_name, missing))}."
        repairs.append(Repair("tools-not-sent", f"{text} Pass them as additional_tools."))
    return repairs


def _appended_message(snapshot: Snapshot, fixed: FixedPart) -> Message | None:
    """The current message as the conversation takes it: with its preamble, unless later requests lack it."""
    if fixed.current is None or is_frozen(snapshot):
        return fixed.current
    return without_preamble(fixed.current)


def _request_id(prefix: Prefix, conversation: ContextManager, current: Message | None) -> str:
    """Equal for equal requests of an unchanged conversation, so that equal inputs give equal bytes."""
    about = (prefix.base, prefix.format, conversation.revision, prefix.view.start, prefix.view.end)
    text = repr(current)  # no JSON: a text may have half a surrogate pair
    return sha256(f"{about}\0{text}".encode(errors="surrogatepass")).hexdigest()[:24]


class _Fitted(NamedTuple):
    """A request without its conversation, and the part of that which fits."""

    fixed: FixedPart
    view: View


class Measure(NamedTuple):
    """The cost of the next request, and its effect on the conversation.

    `wanted_percent` is how full the context would be if nothing were cut, in percent of the available tokens.
    `removed_messages` is the number of messages that are not sent. `compaction_reason` says why the
    conversation should be compacted now, or is None if it should not. `pending` is what changed since prompt
    and tools were sent, or None if nothing did.
    """

    usage: TokenUsage
    wanted_percent: float
    removed_messages: int
    compaction_reason: str | None
    pending: Pending | None = None


def usage_of(
    snapshot: Snapshot,
    conversation: ContextManager,
    *,
    counter: MinimalCounter | TokenCounter | None = None,
    now: datetime | None = None,
) -> TokenUsage:
    """Measure what the next request costs without a new message. `counter` replaces the model's own counter.

    `now` is a local time with its zone. It matters only if `datetime.placement` is `system`.
    """
    return measure(snapshot, conversation, counter=counter, now=now).usage


def measure(
    snapshot: Snapshot,
    conversation: ContextManager,
    *,
    request: Request | None = None,
    counter: MinimalCounter | TokenCounter | None = None,
    now: datetime | None = None,
    memory: Sequence[MemoryItem] = (),
) -> Measure:
    """Measure the next request as `usage_of` does, and its effect on the conversation.

    `request` is what is known of the next request. `memory` is counted as if `assemble` put it before the
    message; this requires `now`.
    """
    request = request or Request()
    counter = None if counter is None else complete(counter)
    bare, view, spent = costs.fitted_part(
        snapshot, conversation, request, counter=counter, now=now, looking=True
    )
    fixed = bare
    if now is not None and memory:
        fixed, _ = place(snapshot, request, bare, memory, view=view, room=spent.remaining, now=now)
        spent = costs.spent(snapshot, fixed, view, request.options)
    percent = _demand_percent(spent, _Fitted(fixed, view), conversation)
    reason = _compaction_reason(snapshot, conversation, percent)
    spent = corrected(spent, conversation.correction, fixed.counter)
    pending = _pending(snapshot, conversation, request, _Fitted(fixed, view), now=now)
    return Measure(spent, percent, view.removed, reason, pending=pending)


def prefix_of(
    snapshot: Snapshot,
    conversation: ContextManager,
    options: Options,
    *,
    now: datetime,
    form: str = "neutral",
) -> Prefix:
    """Return what a request with these options, in the format `form`, would begin with. Nothing is sent, and
    the conversation's cut does not move.

    Raise RequestError for an active skill that does not exist or is left out.
    """
    request = Request(options=options, format=form)
    fixed, view, _ = costs.fitted_part(snapshot, conversation, request, now=now, looking=True)
    return _prefix(snapshot.effective, fixed, view, None)


def view_of(snapshot: Snapshot, conversation: ContextManager, options: Options, *, now: datetime) -> View:
    """Return the part of the conversation that a request with these options would send. Nothing is sent, and
    the conversation's cut does not move.
    """
    return costs.fitted_part(snapshot, conversation, Request(options=options), now=now, looking=True)[1]


def _pending(
    snapshot: Snapshot,
    conversation: ContextManager,
    request: Request,
    fitted: _Fitted,
    *,
    now: datetime | None,
) -> Pending | None:
    """The changes since prompt and tools were sent, and the cost of rendering them anew."""
    fixed, view = fitted
    start, counter = fixed.start, fixed.counter
    if not start.changes and not start.untold:
        return None
    settings = snapshot.effective
    anew = costs.fixed_part(
        snapshot, request, counter=counter, now=now, conversation=conversation, reason="cut"
    )
    broke = compare(_prefix(settings, fixed, view, None), _prefix(settings, anew, view, None), counter).broke
    untold = {(change.is_tool, change.label, change.path) for change in start.untold}
    changes = start.changes or start.untold  # taken back: what notes said must be told otherwise
    return Pending(
        changes=tuple(
            PendingChange(
                change.kind,
                change.label,
                counter.count(change.text),
                told=(change.is_tool, change.label, change.path) not in untold,
                path=change.path,
                is_tool=change.is_tool,
            )
            for change in changes
        ),
        tokens=0 if broke is None else broke.tokens,
        cost=None if broke is None else broke.cost,
        loses_reasoning=conversation.history.opaque > 0,
    )


def _prefix(settings: Effective, fixed: FixedPart, view: View, message: Message | None) -> Prefix:
    tools = tuple(map(msgspec.json.encode, fixed.tools))
    fixed_hash = sha256(b"\0".join([*tools, fixed.prompt.text.encode()])).hexdigest()
    base = f"{fixed.model.given}:{fixed_hash}"
    reasoning = check_reasoning(base, view, strict=checks_reasoning(fixed.model.given))
    if fixed.shape.provider == "anthropic" and reasoning.lapsed:
        view = without_lapsed(view, reasoning, fixed.counter)
    return Prefix(
        model=fixed.model,
        tools=tools,
        tool_names=tuple(map(tool_sets.name_of, fixed.tools)),
        tool_tokens=tuple(row.tokens for row in fixed.before if row.category == "tools"),
        prompt=fixed.prompt,
        prompt_tokens=fixed.prompt_tokens,
        view=view,
        ending=() if message is None else (sent_message(message),),
        fixed_hash=fixed_hash,
        base=base,
        lifetime=settings.get("/context/cache_ttl"),
        reasoning=reasoning,
        format=fixed.shape.format,
    )


def _metadata(prefix: Prefix, spent: TokenUsage, fixed: FixedPart) -> dict[str, Any]:
    """Sums by category; the part that stays the same each turn; what was left out, and why."""
    view = prefix.view
    metadata: dict[str, Any] = {
        "tokens": spent.by_category(),
        "stablePrefixTokens": prefix.tokens,
        "prefixHash": prefix.fixed_hash,
        "truncated": view.truncated,
    }
    if view.truncated:
        metadata["truncation"] = {
            "strategy": view.strategy,
            "removedMessages": view.removed,
            "removedTokens": view.original_tokens - view.tokens,
            "originalTokens": view.original_tokens,
            "finalTokens": view.tokens,
            "keptFromStart": view.head,
            "identifierTokens": view.note_tokens,
            "shortened": list(view.shortened),
        }
        if view.history.gap.messages:  # not read for this request; their tokens were counted once
            metadata["truncation"]["unreadMessages"] = view.history.gap.messages
    if fixed.left_out:
        metadata["toolsLeftOut"] = fixed.left_out
    return metadata


def _advice(
    snapshot: Snapshot, conversation: ContextManager, spent: TokenUsage, fitted: _Fitted
) -> dict[str, Any]:
    """Whether the conversation should be compacted, and why."""
    percent = _demand_percent(spent, fitted, conversation)
    reason = _compaction_reason(snapshot, conversation, percent)
    advice = {"wantedPercent": percent, "shouldCompact": reason is not None}
    return advice | ({"compactionReason": reason} if reason else {})


def _compaction_reason(snapshot: Snapshot, conversation: ContextManager, percent: float) -> str | None:
    return should_compact(
        settings_of(snapshot.effective),
        percent=percent,
        messages=len(conversation),
        tool_calls=conversation.history.tool_calls,
    )


def _active_skills(snapshot: Snapshot, options: Options) -> list[str]:
    """Names of the skills whose text is in the prompt, in its order."""
    active = active_skills(
        snapshot, options.skills, skip_skills=options.skip_skills, skill_filter=options.skill_filter
    )
    return [layer_skill.skill.name for layer_skill in active]


def _demand_percent(spent: TokenUsage, fitted: _Fitted, conversation: ContextManager) -> float:
    """What there was to send before any cut for this request, in percent of what is available.

    Corrected by what the provider counted: a compaction that is due at 80 % must not wait until the window is
    full. Memory does not count: it gives way by itself, so it is no reason to compact.
    """
    counter, view = fitted.fixed.counter, fitted.view
    demand = spent.total - view.tokens + view.uncut_tokens - spent.by_category().get("memory", 0)
    reported = conversation.correction.total(demand, family_of_counter(counter).name)
    demand = demand if reported is None else reported
    return round(100 * demand / spent.available, 1) if spent.available else 100.0
