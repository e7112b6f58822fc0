"""One chat turn: a folder's snapshot, a conversation and a request → what a model is sent, and its cost.

1. Five conceptual layers become three physical ones: workspace and persona are the system prompt, the
   session is the history, memory and event are the last user message. What changes per turn is only
   there, so that the prefix that providers cache stays the same.
2. Equal inputs give equal bytes; the clock is an argument.
3. Every token has a row, and the rows sum to the total.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from nexus_context import parameters as parameter_layers
from nexus_context import tools as tool_sets
from nexus_context.budget import TokenUsage, UsageRow, usage
from nexus_context.conversation import formats, settings
from nexus_context.conversation.message import Message, content_of
from nexus_context.errors import Problem, RequestError, Span
from nexus_context.manager import ContextManager
from nexus_context.parameters import Parameter
from nexus_context.prompt import texts
from nexus_context.prompt.render import Fragment, Prompt
from nexus_context.snapshot import Snapshot, prompt_for
from nexus_context.tokens import ModelLimits, TokenCounter, count_message, count_spans, counter_for, resolve

Format = Literal["neutral", "openai", "anthropic"]
FORMATS: tuple[Format, ...] = ("neutral", "openai", "anthropic")
DEFAULT_MAX_OUTPUT = 4_096  # tokens; for a model whose own limit is not known


class Options(msgspec.Struct, frozen=True):
    """What one request changes; None keeps what the configuration says. Token limits are in tokens."""

    model: str | None = None
    parameters: Mapping[str, Any] = {}
    additional_system_prompt: str | None = None
    additional_tools: Sequence[dict[str, Any]] = ()
    disabled_tools: Sequence[str] = ()
    max_context_tokens: int | None = None
    reserve_tokens: int | None = None


class Request(msgspec.Struct, frozen=True):
    """One turn to assemble. `event` may hold platform, actions and hook data; `format` one of FORMATS."""

    message: Message | None = None
    event: Mapping[str, Any] | None = None
    format: str = "neutral"
    options: Options = Options()


class AssembledContext(msgspec.Struct, frozen=True):
    """What a model is sent. `request` is the provider's body for the formats openai and anthropic.

    `metadata.unsent` says what of the parameters and the history that body cannot hold, if anything.
    """

    prompt: Prompt
    history: list[Message]
    current_message: Message | None
    tools: list[dict[str, Any]]
    parameters: dict[str, Parameter]
    model: str
    provider: str
    usage: TokenUsage
    metadata: dict[str, Any]
    problems: tuple[Problem, ...]
    request: dict[str, Any] | None


def assemble(
    snapshot: Snapshot, conversation: ContextManager, request: Request, *, now: datetime
) -> AssembledContext:
    """Assemble one turn. `now` is a local time with its zone.

    Raises RequestError for an unknown format, a format of a provider without a model, a limit that is too
    small and a parameter that does not exist or is out of range.
    """
    options = request.options
    model, counter = model_of(snapshot, options.model)
    _check(request, model)
    prompt = prompt_for(snapshot, model=options.model, additional=options.additional_system_prompt, now=now)
    disabled = (*snapshot.effective.get("/tools/disabled"), *options.disabled_tools)
    tools = tool_sets.select(options.additional_tools, disabled=disabled)
    parameters = parameter_layers.resolve(snapshot.effective, options.parameters)
    current = current_message(snapshot, request, now=now)
    rows = [
        *system_rows(prompt, counter),
        *_tool_rows(tools, counter),
        *_history_rows(conversation, counter),
        *_event_rows(current, counter),
    ]
    spent = _usage(snapshot, model, counter, rows, options)
    history = conversation.messages
    sent = [*history, *([current] if current else [])]
    body, unsent = _body(request.format, model, prompt, sent, tools, parameters)
    return AssembledContext(
        prompt=prompt,
        history=history,
        current_message=current,
        tools=tools,
        parameters=parameters,
        model=model.given,
        provider=snapshot.effective.get("/provider/name"),
        usage=spent,
        metadata=_metadata(prompt, tools, spent) | ({"unsent": unsent} if unsent else {}),
        problems=snapshot.problems,
        request=body,
    )


def usage_of(
    snapshot: Snapshot,
    conversation: ContextManager,
    *,
    counter: TokenCounter | None = None,
    now: datetime | None = None,
) -> TokenUsage:
    """What the next request would cost before its own message. `counter` replaces the model's own.

    `now`, a local time with its zone, counts only with `datetime.placement = system`.
    """
    model, exact = model_of(snapshot, None)
    used = counter or exact
    rows = [*system_rows(prompt_for(snapshot, now=now), used), *_history_rows(conversation, used)]
    return _usage(snapshot, model, used, rows, Options())


def model_of(snapshot: Snapshot, requested: str | None) -> tuple[ModelLimits, TokenCounter]:
    """The limits and the counter of the requested model, else of the configured one."""
    name = requested or snapshot.effective.get("/provider/model")
    overrides = snapshot.effective.get("/models") or {}
    return resolve(name, overrides), counter_for(name, overrides)


def system_rows(prompt: Prompt, counter: TokenCounter) -> list[UsageRow]:
    """A row for each file of each layer and for each further section, in the order of the prompt."""
    cuts = [0, *(fragment.span.end for fragment in prompt.fragments)]
    counts = count_spans(counter, prompt.text, cuts) if prompt.fragments else ()
    tokens: dict[tuple[str, str | None, str, str | None], int] = {}
    sources: dict[tuple[str, str | None, str, str | None], list[Fragment]] = {}
    for fragment, count in zip(prompt.fragments, counts, strict=True):
        key = (fragment.section, fragment.layer, fragment.title, fragment.path if fragment.layer else None)
        tokens[key] = tokens.get(key, 0) + count
        sources.setdefault(key, []).append(fragment)
    return [
        UsageRow("system", key[2], count, counter.exact, *_source(sources[key]))
        for key, count in tokens.items()
    ]


def _check(request: Request, model: ModelLimits) -> None:
    """RequestError for what no context can be assembled from."""
    if request.format not in FORMATS:
        raise RequestError(
            f"Unknown format {request.format!r}. Known formats: {', '.join(FORMATS)}.", code="unknown-format"
        )
    if request.format != "neutral" and not model.given:
        raise RequestError(
            f"A body in the format {request.format} names a model, and none is set. Set provider.model in "
            "config.json, or options.model of the request.",
            code="no-model",
        )
    for name, given, least in (
        ("maxContextTokens", request.options.max_context_tokens, 1),
        ("reserveTokens", request.options.reserve_tokens, 0),
    ):
        if given is not None and given < least:
            raise RequestError(f"{name} is {given}; it must be at least {least}.", code="bad-option")


def _source(fragments: Sequence[Fragment]) -> tuple[str | None, Span | None]:
    """The file that the first of the fragments with a text of their own came from, and the range in it."""
    first = next((one for one in fragments if one.source.start < one.source.end), fragments[0])
    if first.path is None:
        return None, None
    mine = [one.source for one in fragments if one.path == first.path]
    return first.path, Span(min(span.start for span in mine), max(span.end for span in mine))


def current_message(snapshot: Snapshot, request: Request, *, now: datetime) -> Message | None:
    """The last user message: what is true now, then what the user says. None when there is neither."""
    message = request.message
    if message is None and request.event is None:
        return None
    lines = [*_time_lines(snapshot, now), *_event_lines(request.event or {})]
    head = "\n".join(lines)
    if message is None:
        return Message("user", head)
    if not head:
        return message
    said = content_of(message)
    content = f"{head}\n\n{said}" if isinstance(said, str) else [{"type": "text", "text": head}, *said]
    return msgspec.structs.replace(message, content=content)


def _tool_rows(tools: Sequence[dict[str, Any]], counter: TokenCounter) -> list[UsageRow]:
    return [
        UsageRow(
            "tools", tool_sets.name_of(tool), counter.count(msgspec.json.encode(tool).decode()), counter.exact
        )
        for tool in tools
    ]


def _history_rows(conversation: ContextManager, counter: TokenCounter) -> list[UsageRow]:
    count = len(conversation)
    if not count:
        return []
    label = "1 message" if count == 1 else f"{count} messages"
    return [UsageRow("history", label, conversation.history_tokens(counter), counter.exact)]


def _event_rows(current: Message | None, counter: TokenCounter) -> list[UsageRow]:
    if current is None:
        return []
    tokens = count_message(counter, content_of(current), current.tool_calls)
    return [UsageRow("event", "current message", tokens, counter.exact)]


def _usage(
    snapshot: Snapshot, model: ModelLimits, counter: TokenCounter, rows: list[UsageRow], options: Options
) -> TokenUsage:
    get = snapshot.effective.get
    reserve = get("/context/reserve_tokens") if options.reserve_tokens is None else options.reserve_tokens
    limit = get("/context/max_tokens") if options.max_context_tokens is None else options.max_context_tokens
    reserved = reserve + get("/context/reserve_tool_tokens")
    return usage(model, counter, rows, max_tokens=limit, reserved=reserved)


def _metadata(prompt: Prompt, tools: Sequence[dict[str, Any]], spent: TokenUsage) -> dict[str, Any]:
    """Sums by category; of the part that stays the same each turn, its tokens and a hash of its start."""
    sums = spent.by_category()
    stable = b"\0".join([msgspec.json.encode(tools), prompt.text.encode()])
    return {
        "tokens": sums,
        "stablePrefixTokens": spent.total - sums.get("event", 0) - sums.get("memory", 0),
        "prefixHash": hashlib.sha256(stable).hexdigest(),
    }


def _time_lines(snapshot: Snapshot, now: datetime) -> list[str]:
    settings = snapshot.effective.get("/context/datetime") or {}
    if settings.get("placement", "event") != "event":
        return []
    return [texts.text("event_time").format(**texts.moment(now, settings))]


def _event_lines(event: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, value in event.items():
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        lines.append(f"{key}: {shown}")
    return lines


def _body(
    form: str,
    model: ModelLimits,
    prompt: Prompt,
    messages: list[Message],
    tools: list[dict[str, Any]],
    parameters: Mapping[str, Parameter],
) -> tuple[dict[str, Any] | None, list[str]]:
    """The provider's body, and in words what it cannot hold of the parameters and the history."""
    values = {name: parameter.value for name, parameter in parameters.items()}
    thinks = not model.known or not {"thinking", "reasoning"}.isdisjoint(model.supports)
    if form == "openai":
        fields, unsent = settings.openai(values, thinks=thinks)
        body, left_out = formats.openai(model.given, prompt.text, messages, tools, fields)
    elif form == "anthropic":
        most = model.max_output or DEFAULT_MAX_OUTPUT
        fields, unsent = settings.anthropic(values, max_output=most, thinks=thinks)
        body, left_out = formats.anthropic(model.given, prompt.text, messages, tools, fields)
    else:
        return None, []
    return body, [*(f"parameter {name}" for name in unsent), *left_out]
