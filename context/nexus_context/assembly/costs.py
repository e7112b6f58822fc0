"""What a request costs without its conversation, and what is left for the conversation."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from nexus_context import parameters as parameter_layers
from nexus_context import tools as tool_sets
from nexus_context.assembly import freezing
from nexus_context.assembly.event_facts import event_zone
from nexus_context.assembly.freezing import Candidate, Reason, Start
from nexus_context.assembly.last_message import Note, current_message, git_text, head, takes_memory
from nexus_context.assembly.request import Options, Request
from nexus_context.budget import TokenUsage, UsagePart, UsageRow, history_rows, usage
from nexus_context.config.features import FEATURES, Feature
from nexus_context.config.merge import Effective
from nexus_context.config.patterns import Patterns
from nexus_context.config.picked_model import leaves_model_to_editor
from nexus_context.conversation.body_bytes import BODY_BYTES, within_bytes
from nexus_context.conversation.body_shape import AS_IT_IS, BodyShape, added_tokens
from nexus_context.conversation.message import GAP, Message, Preamble, sent_content, sent_message
from nexus_context.conversation.parameter_fields import takes_prefill, takes_system_messages
from nexus_context.conversation.parts import Provider
from nexus_context.conversation.repair import Repair
from nexus_context.conversation.times import TELL_AGAIN
from nexus_context.conversation.tool_pairs import ends_with_result
from nexus_context.conversation.truncation import Strategy
from nexus_context.conversation.view import View
from nexus_context.conversation.window import Budget, Policy
from nexus_context.errors import Span
from nexus_context.frozen import Rendered
from nexus_context.layers.model import GLOBAL
from nexus_context.manager import ContextManager
from nexus_context.parameters import Parameter
from nexus_context.prompt import texts
from nexus_context.prompt.render import Fragment, Prompt
from nexus_context.prompt.token_attribution import RowKey, fragment_tokens, row_key, tokens_by_part
from nexus_context.snapshot import Snapshot, active_skills, prompt_for
from nexus_context.tokens import (
    ModelLimits,
    TokenCounter,
    count_message,
    count_spans,
    counter_for,
    get_model_limits,
)
from nexus_context.tokens.estimates import is_estimated

SANDBOXED, WORKER = "sandboxed", "worker"
"""Permission levels that imply a sandbox; the second is narrower."""


ESTIMATE_MARGIN = 20
"""The part of an estimated input that stays free beside the answer: a twentieth."""

CHANGES = "changed instructions and tools"
"""Label of the row for a note in the current message."""
_NO_TOOLS = "{model} has no tools"
_PROVIDERS: dict[str, Provider] = {"anthropic": "anthropic", "openai-responses": "openai", "gemini": "gemini"}
"""Whose reasoning a format can have."""


class FixedPart(msgspec.Struct, frozen=True):
    """A request without its conversation. `before` and `after` are the rows around the history.

    `start` tells where prompt and tools are from; `answer` are the tokens of the answer where `max_tokens`
    sets them.
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

    @property
    def note(self) -> Note:
        """What the current message tells of changed instructions and tools."""
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
    """Prompt, tools and current message. `counter` replaces the model's own; `now` has a zone.

    Prompt and tools are those of the `conversation`'s requests before, if any (`freezing`); `reason`: they
    are rendered anew all the same.
    """
    if conversation is not None and now is not None and _goes_on_later(snapshot, request, conversation, now):
        request = msgspec.structs.replace(request, message=Message("user"))
    candidate, left_out = _candidate(snapshot, request, counter, now)
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
        before=(*_prompt_rows(prompt, prompt_tokens, counter), *tool_sets.tool_rows(tools, counter)),
        after=event_rows(snapshot, request, current, counter, now=now, shape=shape),
        start=start,
        shape=shape,
        answer=_answer_tokens(snapshot, request, model),
    )


def _goes_on_later(snapshot: Snapshot, request: Request, conversation: ContextManager, now: datetime) -> bool:
    """Whether a loop of tools goes on so late that it is told the time, in a message that is only facts."""
    last = conversation.last_request
    if request.message is not None or request.event is not None or last is None or now - last < TELL_AGAIN:
        return False
    is_loop = ends_with_result(conversation.history.messages)
    return is_loop and freezing.is_frozen(snapshot) and bool(head(snapshot, request, now=now))


def _must_go_on(
    snapshot: Snapshot, request: Request, model: ModelLimits, conversation: ContextManager
) -> bool:
    """Whether a body must ask the model to continue: its history ends with an answer, and the model refuses
    that. The text is the turn's message, so that later requests have it, too.
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
    """The tokens that are left in the window for the answer; at least 1, and at least what is reserved.

    Where nobody counted these tokens exactly, a share of them stays free.
    """
    window = model.context_window if model.known else spent.limit
    total, margin = spent.total, 0 if spent.exact else spent.total // ESTIMATE_MARGIN
    if spent.corrected is not None:
        total, margin = max(total, spent.corrected.total), 0
    return max(window - total - margin, min(spent.reserved, window - spent.total), 1)


def resolved_parameters(snapshot: Snapshot, request: Request) -> dict[str, Parameter]:
    """The model parameters of a request, by name."""
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
    snapshot: Snapshot, request: Request, counter: TokenCounter | None, now: datetime | None
) -> tuple[Candidate, dict[str, str]]:
    """Prompt and tools as files, settings and the request are now, and the tools that are left out."""
    options = request.options
    model, exact = model_of(snapshot, options.model)
    active = active_skills(
        snapshot, options.skills, skip_skills=options.skip_skills, skill_filter=options.skill_filter
    )
    rules = _tool_rules(snapshot, options)
    own = [*_memory_tools(options), *_skill_tools(snapshot, options), *_agent_tools(snapshot, options)]
    selection = tool_sets.select(
        [tool for one in active for tool in one.skill.tools], own, options.additional_tools, rules=rules
    )
    if not model.can("tools"):
        selection = tool_sets.Selection([], _without_tools(selection, model))
    prompt = prompt_for(
        snapshot,
        model=options.model,
        additional=options.additional_system_prompt,
        now=now,
        timezone=event_zone(request.event),
        skip_skills=options.skip_skills,
        skill_filter=options.skill_filter,
        skills=options.skills,
        tools=[(tool_sets.name_of(tool), tool_sets.description_of(tool)) for tool in selection.tools],
    )
    brought = {tool_sets.name_of(tool) for tool in (*own, *options.additional_tools)}
    rendered = Rendered(prompt, selection.tools)
    return Candidate(rendered, model, counter or exact, brought=brought, rules=rules), selection.left_out


def fitted_part(
    snapshot: Snapshot,
    conversation: ContextManager,
    request: Request,
    *,
    now: datetime | None,
    counter: TokenCounter | None = None,
    looking: bool = False,
) -> tuple[FixedPart, View, TokenUsage]:
    """A request with the part of the conversation that fits. `looking`: nothing is sent.

    If the cut moves, changed prompts and tools are rendered anew.
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
    """The part of the conversation that fits, and the cost of everything. `looking`: nothing is sent."""
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
    if fixed.shape.format in BODY_BYTES and (conversation.history.images or _has_parts(fixed.current)):
        around = (
            fixed.prompt.text,
            fixed.tools,
            None if fixed.current is None else sent_message(fixed.current),
        )
        view = within_bytes(view, fixed.counter, form=fixed.shape.format, around=around)
    return view, spent(snapshot, fixed, view, options)


def _has_parts(message: Message | None) -> bool:
    return message is not None and isinstance(message.content, list)


def empty_usage(snapshot: Snapshot, fixed: FixedPart, options: Options) -> TokenUsage:
    """The cost of everything but the conversation."""
    return _usage(snapshot, fixed, (*fixed.before, *fixed.after), options)


def spent(snapshot: Snapshot, fixed: FixedPart, view: View, options: Options) -> TokenUsage:
    """The cost of everything."""
    rows = (*fixed.before, *history_rows(view, fixed.counter), *fixed.after)
    return _usage(snapshot, fixed, rows, options)


def model_of(snapshot: Snapshot, requested: str | None) -> tuple[ModelLimits, TokenCounter]:
    """The limits and the counter of the requested model, else of the configured one."""
    return model_in(snapshot.effective, requested)


def model_in(effective: Effective, requested: str | None = None) -> tuple[ModelLimits, TokenCounter]:
    """As `model_of`, for settings."""
    name = requested or effective.get("/provider/model")
    overrides = effective.get("/models") or {}
    return get_model_limits(name, overrides), counter_for(name, overrides)


def lacking(model: ModelLimits) -> list[Feature]:
    """The features that the model does not have."""
    return [feature for feature in FEATURES if not model.can(feature)]


def left_out_features(
    model: ModelLimits, left_out: Mapping[str, str], parameters: Mapping[str, Any]
) -> list[Repair]:
    """What a body leaves out because the model lacks the feature: tool definitions and a thinking budget."""
    repairs = []
    reason = _NO_TOOLS.format(model=model.given)
    names = [name for name, why in left_out.items() if why == reason]
    if names:
        text = f"{model.given} has no tools: {len(names)} tool definitions are left out."
        repairs.append(Repair("tools-unsupported", text))
    thinking = parameters.get("thinking") or {}
    wants = thinking.get("budget") is not None or thinking.get("level") not in (None, "off")
    if wants and not model.can("thinking"):
        repairs.append(
            Repair("thinking-unsupported", f"{model.given} has no thinking: the setting is left out.")
        )
    return repairs


def system_rows(prompt: Prompt, counter: TokenCounter) -> list[UsageRow]:
    """A row for each file of each layer and for each other section, in the order of the prompt."""
    return _prompt_rows(prompt, fragment_tokens(prompt, counter), counter)


def permissions(snapshot: Snapshot, options: Options, left_out: Mapping[str, str]) -> dict[str, Any]:
    """What the model's tools may do: the level, patterns of what is allowed and denied, and what is approved.

    `left_out` are the tools that are not offered.
    """
    get = snapshot.effective.get
    granted = {name: get(f"/permissions/{name}") for name in ("level", "allow", "deny")}
    if options.permissions is not None:
        granted["narrowedTo"] = list(options.permissions)
    approved = _approved(snapshot, options, left_out)
    return granted | {"preapproved": approved} if approved else granted


def _approved(snapshot: Snapshot, options: Options, left_out: Mapping[str, str]) -> list[str]:
    """The tools of active skills that may run without confirmation, as the skills write them.

    Only the user's own skills count: a workspace may narrow permissions, not widen them. Empty in a sandbox;
    disabled tools are left out.
    """
    rules = _tool_rules(snapshot, options)
    if rules.sandbox or rules.only is not None:
        return []
    active = active_skills(
        snapshot, options.skills, skip_skills=options.skip_skills, skill_filter=options.skill_filter
    )
    named = dict.fromkeys(tool for one in active if one.layer == GLOBAL for tool in one.skill.allowed_tools)
    off = Patterns((*rules.disabled, *rules.deny))
    names = {tool: tool.partition("(")[0] for tool in named}
    return [tool for tool, name in names.items() if name not in left_out and not off.matches(name)]


def _without_tools(selection: tool_sets.Selection, model: ModelLimits) -> dict[str, str]:
    """Why each tool is left out, for a model that has no tools."""
    reason = _NO_TOOLS.format(model=model.given)
    return selection.left_out | {tool_sets.name_of(tool): reason for tool in selection.tools}


def _memory_tools(options: Options) -> list[dict[str, Any]]:
    if not options.memory_tools:
        return []
    from nexus_context.memory.queries import definitions  # rarely needed

    return definitions()


def _skill_tools(snapshot: Snapshot, options: Options) -> list[dict[str, Any]]:
    if not options.skill_tools:
        return []
    from nexus_context.assembly.skill_tool import definitions  # rarely needed

    return definitions(snapshot, skip_skills=options.skip_skills, skill_filter=options.skill_filter)


def _agent_tools(snapshot: Snapshot, options: Options) -> list[dict[str, Any]]:
    if not options.agent_tools:
        return []
    from nexus_context.prompt.agent_tools import definitions  # rarely needed

    return definitions(snapshot.contents.grant)


def offered_agent_tools(snapshot: Snapshot, options: Options) -> tool_sets.Selection:
    """The agent tools that the agent of a snapshot is offered, whether or not these options ask for them."""
    options = msgspec.structs.replace(options, agent_tools=True)
    return tool_sets.select(_agent_tools(snapshot, options), rules=_tool_rules(snapshot, options))


def _tool_rules(snapshot: Snapshot, options: Options) -> tool_sets.Filter:
    get = snapshot.effective.get
    level, grant = get("/permissions/level"), snapshot.contents.grant
    return tool_sets.Filter(
        disabled=(*get("/tools/disabled"), *options.disabled_tools),
        deny=tuple(get("/permissions/deny")),
        allow=tuple(get("/permissions/allow")),
        strict=grant is not None and grant.strict,
        only=None if options.permissions is None else tuple(options.permissions),
        sandbox=bool(options.sandbox) or level in (SANDBOXED, WORKER),
        inside=level == WORKER,
        named=() if grant is None else grant.tools,
    )


def _prompt_rows(prompt: Prompt, counts: Sequence[int], counter: TokenCounter) -> list[UsageRow]:
    tokens: dict[RowKey, int] = {}
    sources: dict[RowKey, list[Fragment]] = {}
    for fragment, count in zip(prompt.fragments, counts, strict=True):
        key = row_key(fragment)
        tokens[key] = tokens.get(key, 0) + count
        sources.setdefault(key, []).append(fragment)
    return [_system_row(key, count, counter, sources[key]) for key, count in tokens.items()]


def _system_row(key: RowKey, tokens: int, counter: TokenCounter, fragments: Sequence[Fragment]) -> UsageRow:
    path, span = _source(fragments)
    return UsageRow("system", key[2], tokens, counter.exact, path=path, span=span)


def _source(fragments: Sequence[Fragment]) -> tuple[str | None, Span | None]:
    """The file of the first fragment with a source text, and the range of that file's fragments in it."""
    first = next((one for one in fragments if one.source.start < one.source.end), fragments[0])
    if first.path is None:
        return None, None
    mine = [one.source for one in fragments if one.path == first.path]
    return first.path, Span(min(span.start for span in mine), max(span.end for span in mine))


def event_rows(
    snapshot: Snapshot,
    request: Request,
    current: Message | None,
    counter: TokenCounter,
    *,
    now: datetime | None,
    shape: BodyShape,
    memory: int = 0,
) -> tuple[UsageRow, ...]:
    """The rows of the last message: git's state, the note on changes, the rest without tokens of `memory`.

    Memory has its own rows. A note that is a message of its own costs what that adds.
    """
    if current is None:
        return ()
    content = sent_content(current)
    git = 0 if now is None else _git_tokens(snapshot, request, content, counter, now=now)
    changes = _note_tokens(current, content, counter)
    tokens = count_message(counter, content, current.tool_calls, current.role) - memory - git - changes
    images = isinstance(content, list) and any(isinstance(one, dict) and is_estimated(one) for one in content)
    added = added_tokens(current, counter, shape) if changes or current.name else 0
    parts = (("git state", git), (CHANGES, changes + added if changes else 0))
    part_rows = (UsageRow("event", label, size, counter.exact) for label, size in parts if size)
    is_empty = request.message is not None and request.message.content == ""
    label = "current message (still empty)" if is_empty else "current message"
    tokens += 0 if changes else added
    return (*part_rows, UsageRow("event", label, tokens, counter.exact and not images))


def _note_tokens(current: Message, content: Any, counter: TokenCounter) -> int:
    """Tokens of what the message tells of changed instructions and tools."""
    preamble = current.preamble
    if preamble is None or not preamble.changes:
        return 0
    text = content if isinstance(content, str) else content[0]["text"]
    start = len(preamble.text) - len(preamble.changes)
    end = min(len(preamble.text) + len(GAP), len(text))
    return count_spans(counter, text, [0, start, end, len(text)])[1]


def _git_tokens(
    snapshot: Snapshot, request: Request, content: Any, counter: TokenCounter, *, now: datetime
) -> int:
    """Tokens of git's state, which ends the head of the message."""
    text_of_git = git_text(snapshot, request) if takes_memory(request) else ""
    if not text_of_git:
        return 0
    text = content if isinstance(content, str) else content[0]["text"]
    end = len(head(snapshot, request, now=now))
    return count_spans(counter, text, [0, end - len(text_of_git), end, len(text)])[1]


def _usage(snapshot: Snapshot, fixed: FixedPart, rows: Sequence[UsageRow], options: Options) -> TokenUsage:
    get = snapshot.effective.get
    reserve = get("/context/reserve_tokens") if options.reserve_tokens is None else options.reserve_tokens
    limit = get("/context/max_tokens") if options.max_context_tokens is None else options.max_context_tokens
    # an answer of a set length must fit into the window, which may be larger than the limit
    outside = max(fixed.model.context_window - fixed.model.limit(limit), 0) if fixed.model.known else 0
    reserved = max(reserve, fixed.answer - outside) + get("/context/reserve_tool_tokens")
    parts = [
        UsagePart(part, tokens, fixed.counter.exact)
        for part, tokens in tokens_by_part(fixed.prompt, fixed.counter).items()
    ]
    return usage(fixed.model, fixed.counter, rows, max_tokens=limit, reserved=reserved, parts=parts)
