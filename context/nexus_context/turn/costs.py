"""Computes what a request costs without its conversation, and what is left for the conversation."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from nexus_context.config import parameters as parameter_layers
from nexus_context.config.parameters import Parameter
from nexus_context.config.picked_model import leaves_model_to_editor
from nexus_context.conversation import tools as tool_sets
from nexus_context.conversation.bodies.body_bytes import BODY_BYTES, within_bytes
from nexus_context.conversation.bodies.parameter_fields import takes_prefill, takes_system_messages
from nexus_context.conversation.body_shape import AS_IT_IS, BodyShape
from nexus_context.conversation.budget import TokenUsage, UsagePart, UsageRow, history_rows, usage
from nexus_context.conversation.frozen import Rendered
from nexus_context.conversation.message import Message, Preamble, sent_message
from nexus_context.conversation.parts import Provider
from nexus_context.conversation.times import TELL_AGAIN
from nexus_context.conversation.tool_pairs import ends_with_result
from nexus_context.conversation.truncation import Strategy
from nexus_context.conversation.view import View
from nexus_context.conversation.window import Budget, Policy
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.render import Prompt
from nexus_context.folder.prompt.token_attribution import fragment_tokens, tokens_by_part
from nexus_context.folder.request_prompt import prompt_for
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import ModelLimits, TokenCounter
from nexus_context.turn import freezing
from nexus_context.turn.deferral import Deferral, EarlierTools, Room, defer, unread
from nexus_context.turn.event_facts import event_zone
from nexus_context.turn.freezing import Candidate, Reason, Start
from nexus_context.turn.last_message import Note, current_message, head
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.models import model_of
from nexus_context.turn.offered_tools import OfferedTools, offered_tools
from nexus_context.turn.request import Options, Request
from nexus_context.turn.usage_rows import event_rows, prompt_rows

ESTIMATE_MARGIN = 20
"""The part of an estimated input that stays free beside the answer: a twentieth."""

_PROVIDERS: dict[str, Provider] = {"anthropic": "anthropic", "openai-responses": "openai", "gemini": "gemini"}
"""Whose reasoning a format can have."""


class FixedPart(msgspec.Struct, frozen=True):
    """A request without its conversation. `before` and `after` are the rows before and after the history.

    `start` says where prompt and tools come from. `answer` is the number of tokens that `max_tokens` sets for
    the answer, or 0. `deferred` are the tokens of tool definitions that the model gets only when it searches
    for them.
    """

    model: ModelLimits
    counter: TokenCounter
    prompt: Prompt
    prompt_tokens: tuple[int, ...]  # of each fragment
    tools: list[dict[str, Any]]
    left_out: dict[str, str]  # tools that are not offered, and why
    current: Message | None
    before: tuple[UsageRow, ...]
    after: tuple[UsageRow, ...]
    start: Start
    shape: BodyShape = AS_IT_IS
    answer: int = 0
    deferred: int = 0

    @property
    def note(self) -> Note:
        """The note in the current message that says which instructions and tools changed."""
        return self.start.note


def fixed_part(
    snapshot: Snapshot,
    request: Request,
    *,
    counter: TokenCounter | None = None,
    now: datetime | None,
    conversation: ContextManager | None = None,
    reason: Reason | None = None,
) -> FixedPart:
    """Render prompt, tools and current message of a request. `counter` replaces the model's own counter;
    `now` is a time with its zone.

    If the `conversation` has sent requests before, prompt and tools are the same as in these (`freezing`).
    With a `reason`, they are rendered anew.
    """
    if conversation is not None and now is not None and _goes_on_later(snapshot, request, conversation, now):
        request = msgspec.structs.replace(request, message=Message("user"))
    candidate, left_out, waiting = _candidate(snapshot, request, counter, now, conversation=conversation)
    model, counter = candidate.model, candidate.counter
    start = freezing.Start(candidate.rendered)
    if conversation is not None and freezing.is_frozen(snapshot):
        start = freezing.start(snapshot, conversation, request, candidate, now=now, reason=reason)
    prompt, tools = start.rendered.prompt, list(start.rendered.tools)
    prompt_tokens = fragment_tokens(prompt, counter)
    current = (
        current_message(snapshot, request, now=now, note=start.note) if now is not None else request.message
    )
    if current is None and conversation is not None and _must_go_on(snapshot, request, model, conversation):
        current = Message("user", texts.text("conversation_continues"), preamble=Preamble())  # no time
    revealed = () if conversation is None else conversation.history.revealed.names
    hidden = unread(tools, request.format, revealed)
    tool_rows = [
        msgspec.structs.replace(row, tokens=0) if row.label in hidden else row
        for row in tool_sets.tool_rows(tools, counter)
    ]
    number = 0 if start.frozen is None else start.frozen.number
    shape = _shape(snapshot, request, model, number)
    return FixedPart(
        model=model,
        counter=counter,
        prompt=prompt,
        prompt_tokens=prompt_tokens,
        tools=tools,
        left_out=left_out,
        current=current,
        before=(*prompt_rows(prompt, prompt_tokens, counter), *tool_rows),
        after=event_rows(snapshot, request, current, counter, now=now, shape=shape),
        start=start,
        shape=shape,
        answer=_answer_tokens(snapshot, request, model),
        deferred=sum(row.tokens for row in tool_sets.tool_rows(waiting, counter)),
    )


def _goes_on_later(snapshot: Snapshot, request: Request, conversation: ContextManager, now: datetime) -> bool:
    """Whether to tell the model the time, since its tools took long.

    The time is then sent in a message that holds only facts.
    """
    last_request_at = conversation.last_request
    if (
        request.message is not None
        or request.event is not None
        or last_request_at is None
        or now - last_request_at < TELL_AGAIN
    ):
        return False
    is_loop = ends_with_result(conversation.history.messages)
    return is_loop and freezing.is_frozen(snapshot) and bool(head(snapshot, request, now=now))


def _must_go_on(
    snapshot: Snapshot, request: Request, model: ModelLimits, conversation: ContextManager
) -> bool:
    """Whether a body must ask the model to continue.

    It must if the history ends with an answer and the model refuses that. The text is the turn's message, so
    that later requests have it, too.
    """
    messages = conversation.history.messages
    if not messages or messages[-1].role != "assistant" or messages[-1].tool_calls:
        return False
    if request.format == "anthropic" and takes_prefill(model.given):  # but not while it thinks
        thinking = resolved_parameters(snapshot, request).get("thinking")
        value = (thinking.value if thinking else None) or {}
        return bool(value.get("budget")) or value.get("level") not in (None, "off")
    return request.format in ("anthropic", "gemini")


def _answer_tokens(snapshot: Snapshot, request: Request, model: ModelLimits) -> int:
    """The tokens of an answer that a parameter asks for; 0 if none does."""
    parameter = resolved_parameters(snapshot, request).get("max_tokens")
    tokens: int = 0 if parameter is None else parameter.value or 0
    return min(tokens, model.max_output or tokens)


def answer_room(spent: TokenUsage, model: ModelLimits) -> int:
    """Return the tokens that the window has left for the answer. The result is at least 1, and at least the
    reserve if the window has that much left.

    If the tokens of the request are only an estimate, a share of them stays free.
    """
    window = model.context_window if model.known else spent.limit
    total, margin = spent.total, 0 if spent.exact else spent.total // ESTIMATE_MARGIN
    if spent.corrected is not None:
        total, margin = max(total, spent.corrected.total), 0
    return max(window - total - margin, min(spent.reserved, window - spent.total), 1)


def resolved_parameters(snapshot: Snapshot, request: Request) -> dict[str, Parameter]:
    """Return the model parameters of a request: name → parameter."""
    return parameter_layers.resolve(
        snapshot.effective,
        agent=request.agent_parameters,
        session=request.session_parameters,
        request=request.options.parameters,
    )


def _shape(snapshot: Snapshot, request: Request, model: ModelLimits, number: int) -> BodyShape:
    """How the body of a request has its messages; a program gets them as they are.

    A model of the editor takes no system message inside a conversation. Anthropic's newer models and OpenAI's
    do, the others get a marked text of the user.
    """
    form = request.format
    if form == "neutral":
        return BodyShape(number)
    provider = _PROVIDERS.get(form) if model.can("thinking") else None
    takes_systems = form != "gemini" and (form != "anthropic" or takes_system_messages(model.given))
    note = "{text}" if takes_systems else texts.text("system_note")
    if form == "openai" and leaves_model_to_editor(snapshot.effective):
        note = ""
    empty = texts.text("result_empty") if form.startswith("openai") else ""
    return BodyShape(number, form, note, provider, empty_result=empty)


def _candidate(
    snapshot: Snapshot,
    request: Request,
    counter: TokenCounter | None,
    now: datetime | None,
    *,
    conversation: ContextManager | None,
) -> tuple[Candidate, dict[str, str], Sequence[dict[str, Any]]]:
    """Prompt and tools as files, settings and the request are now; tools that are left out or deferred."""
    options = request.options
    model, exact = model_of(snapshot, options.model)
    counter = counter or exact
    offered = offered_tools(snapshot, options, model)
    deferral = _deferral(snapshot, request, offered, model, counter=counter, conversation=conversation)
    prompt = prompt_for(
        snapshot,
        model=options.model,
        additional=options.additional_system_prompt,
        now=now,
        timezone=event_zone(request.event),
        skip_skills=options.skip_skills,
        skill_filter=options.skill_filter,
        skills=options.skills,
        tools=[(tool_sets.name_of(tool), tool_sets.description_of(tool)) for tool in deferral.stable],
    )
    candidate = Candidate(
        Rendered(prompt, deferral.tools),
        model,
        counter,
        brought={*offered.brought, deferral.search},
        rules=offered.rules,
        search=deferral.search,
        revealed=deferral.revealed,
    )
    return candidate, offered.left_out, deferral.waiting


def _deferral(
    snapshot: Snapshot,
    request: Request,
    offered: OfferedTools,
    model: ModelLimits,
    *,
    counter: TokenCounter,
    conversation: ContextManager | None,
) -> Deferral:
    """Decide which of these tools the request sends."""
    options = request.options
    if not options.server_tools:
        return Deferral(offered.tools)
    earlier_tools = EarlierTools()
    if conversation is not None:
        frozen = conversation.frozen
        is_same = frozen is not None and frozen.model == model.given and freezing.is_frozen(snapshot)
        tools = frozen.sent.tools if frozen is not None and is_same else ()
        earlier_tools = EarlierTools(
            [tool_sets.name_of(tool) for tool in tools], conversation.history.revealed.names
        )
    room = Room(model, counter, available_tokens(snapshot, request, model))
    return defer(snapshot, offered.tools, options, room=room, sent=earlier_tools)


def fitted_part(
    snapshot: Snapshot,
    conversation: ContextManager,
    request: Request,
    *,
    now: datetime | None,
    counter: TokenCounter | None = None,
    looking: bool = False,
) -> tuple[FixedPart, View, TokenUsage]:
    """Return a request's fixed part, the part of the conversation that fits, and the cost of both.

    With `looking`, nothing is sent, so the conversation's cut does not move. If the cut moves, a changed
    prompt and changed tools are rendered anew.
    """
    fixed = fixed_part(snapshot, request, counter=counter, now=now, conversation=conversation)
    view, usage_of_all = fitted(snapshot, conversation, fixed, request.options, looking=looking)
    if view.moved and (fixed.start.changes or fixed.start.untold):
        fixed = fixed_part(
            snapshot, request, counter=counter, now=now, conversation=conversation, reason="cut"
        )
        view, usage_of_all = fitted(snapshot, conversation, fixed, request.options, looking=looking)
    return fixed, view, usage_of_all


def fitted(
    snapshot: Snapshot,
    conversation: ContextManager,
    fixed: FixedPart,
    options: Options,
    *,
    looking: bool = False,
) -> tuple[View, TokenUsage]:
    """Return the part of the conversation that fits beside the `fixed` part, and the cost of everything.

    With `looking`, nothing is sent, so the conversation's cut does not move.
    """
    get = snapshot.effective.get
    empty = empty_usage(snapshot, fixed, options)
    policy = Policy(
        strategy=cast("Strategy | None", options.truncation_strategy) or get("/context/truncation_strategy"),
        target=get("/context/truncation_target"),
        keep_recent_turns=get("/context/keep_recent_turns"),
        pin_first=get("/context/pin_first"),
        identifier_tokens=get("/context/identifier_tokens"),
    )
    view = conversation.view(
        fixed.counter,
        policy,
        Budget(empty.available, empty.total),
        limit=empty.limit - empty.reserved,
        looking=looking,
        shape=fixed.shape,
    )
    has_parts = fixed.current is not None and isinstance(fixed.current.content, list)
    if fixed.shape.format in BODY_BYTES and (conversation.history.images or has_parts):
        around = (
            fixed.prompt.text,
            fixed.tools,
            None if fixed.current is None else sent_message(fixed.current),
        )
        view = within_bytes(view, fixed.counter, form=fixed.shape.format, around=around)
    return view, spent(snapshot, fixed, view, options)


def empty_usage(snapshot: Snapshot, fixed: FixedPart, options: Options) -> TokenUsage:
    """Return the cost of everything except the conversation."""
    return _usage(snapshot, fixed, (*fixed.before, *fixed.after), options)


def spent(snapshot: Snapshot, fixed: FixedPart, view: View, options: Options) -> TokenUsage:
    """Return the cost of the whole request."""
    rows = (*fixed.before, *history_rows(view, fixed.counter), *fixed.after)
    return _usage(snapshot, fixed, rows, options)


def available_tokens(snapshot: Snapshot, request: Request, model: ModelLimits) -> int:
    """Return the number of tokens that a request may take."""
    answer = _answer_tokens(snapshot, request, model)
    limit, reserved = _limits(snapshot, request.options, model, answer)
    return model.available(limit, reserved)


def _limits(snapshot: Snapshot, options: Options, model: ModelLimits, answer: int) -> tuple[int | None, int]:
    """The configured limits: maximum tokens of the context, and reserved tokens."""
    get = snapshot.effective.get
    reserve = get("/context/reserve_tokens") if options.reserve_tokens is None else options.reserve_tokens
    limit = get("/context/max_tokens") if options.max_context_tokens is None else options.max_context_tokens
    # an answer of a set length must fit into the window, which may be larger than the limit
    outside = max(model.context_window - model.limit(limit), 0) if model.known else 0
    return limit, max(reserve, answer - outside) + get("/context/reserve_tool_tokens")


def _usage(snapshot: Snapshot, fixed: FixedPart, rows: Sequence[UsageRow], options: Options) -> TokenUsage:
    limit, reserved = _limits(snapshot, options, fixed.model, fixed.answer)
    parts = [
        UsagePart(part, tokens, fixed.counter.exact)
        for part, tokens in tokens_by_part(fixed.prompt, fixed.counter).items()
    ]
    spent = usage(fixed.model, fixed.counter, rows, max_tokens=limit, reserved=reserved, parts=parts)
    return msgspec.structs.replace(spent, deferred=fixed.deferred) if fixed.deferred else spent
