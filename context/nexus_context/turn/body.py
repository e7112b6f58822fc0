"""Renders the body of a request to a provider, for all formats of an assembled turn except `neutral`."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from nexus_context.config.parameters import Parameter
from nexus_context.conversation.bodies import formats, parameter_fields
from nexus_context.conversation.bodies.breakpoints import MINIMUM, Cache
from nexus_context.conversation.bodies.model_features import adapted
from nexus_context.conversation.lost_fields import lost_fields
from nexus_context.conversation.message import Message, changes_apart, content_of, sent_message
from nexus_context.conversation.repair import Repair
from nexus_context.conversation.view import View
from nexus_context.tokens import Lifetime, count_message
from nexus_context.turn import models
from nexus_context.turn.costs import FixedPart
from nexus_context.turn.request import Request

MOST_REPAIRS = 100
DEFAULT_MAX_OUTPUT = 4_096  # tokens; for a model whose own limit is unknown


class Reuse(NamedTuple):
    """What a request shares with the requests before and after it.

    `ttl` is how long Anthropic keeps what it caches. `replayed` is true if the next request will have the
    current message exactly as it is sent now. `lapsed` are the indexes of messages whose reasoning must not
    be sent (`bound_thinking`), among the sound messages of the view.
    """

    ttl: Lifetime = "5m"
    replayed: bool = True
    lapsed: Sequence[int] = ()


class RenderedBody(NamedTuple):
    """The provider's body, descriptions of what the body cannot hold (`unsent`), and all repairs."""

    body: dict[str, Any] | None
    unsent: list[str]
    repairs: list[Repair]

    def report(self) -> dict[str, Any]:
        """Return the metadata about what is not sent, or is sent in another form than it is stored.

        `renamedTools` maps the name of a tool in the body, which the calls of an answer use, to its original
        name. Of the other repairs only the first MOST_REPAIRS are listed, because a broken history can have
        thousands.
        """
        renamed = [repair for repair in self.repairs if repair.kind == "tool-renamed"]
        repairs = [repair for repair in self.repairs if repair.kind != "tool-renamed"]
        if renamed:
            text = f"{len(renamed):,} tool names that the provider rejects are replaced: see renamedTools."
            repairs.insert(0, msgspec.structs.replace(renamed[0], text=text) if renamed[1:] else renamed[0])
        more = len(repairs) - MOST_REPAIRS
        if more > 0:
            repairs[MOST_REPAIRS:] = [Repair("more", f"{more:,} more repairs are not listed.")]
        names = {repair.sent: repair.given for repair in renamed}
        fields = {"unsent": self.unsent, "repairs": repairs, "renamedTools": names}
        return {name: value for name, value in fields.items() if value}


def body_of(
    request: Request,
    fixed: FixedPart,
    view: View,
    parameters: Mapping[str, Parameter],
    *,
    folder: str,
    reuse: Reuse,
    left: int,
) -> RenderedBody:
    """Render the provider's body. Also report what is left out and what is sent in another form.

    `left` is the number of tokens of the window that an answer may take if `max_tokens` is not set.
    """
    if request.format == "neutral":
        return RenderedBody(None, [], [*view.left_out(), *view.sound_messages().repairs])
    model = fixed.model
    values = {name: parameter.value for name, parameter in parameters.items()}
    history, repairs, origins = view.sound_messages()
    notes = view.notes_apart() if fixed.shape.note else {}
    history, origins, sizes, places = _with_notes_apart(
        history, origins, notes, sizes=view.sizes(fixed.counter), fixed=fixed
    )
    current = _current(fixed)
    messages, feature_repairs = adapted([*history, *current], models.lacking(model), model.given)
    cache = _cache(fixed, sizes, (len(history), len(current)), reuse)
    fields, unsent = _fields(request.format, values, fixed, left)
    if request.format == "anthropic":
        body, format_repairs = formats.anthropic(
            model.given,
            fixed.prompt.text,
            messages,
            fixed.tools,
            settings=fields,
            cache=cache,
            lapsed=[places[index] for index in reuse.lapsed],
        )
    elif request.format == "gemini":
        unnamed = formats.unnamed_calls(repairs)
        repairs = formats.without_naming(repairs, unnamed)
        body, format_repairs = formats.gemini(
            model.given, fixed.prompt.text, messages, fixed.tools, settings=fields, unnamed=unnamed
        )
    else:
        key = hashlib.sha256(f"{folder}\0{request.session}".encode()).hexdigest()[:32]
        write = formats.openai if request.format == "openai" else formats.openai_responses
        body, format_repairs = write(
            model.given, fixed.prompt.text, messages, fixed.tools, settings=fields, cache_key=key, cache=cache
        )
    placed = (_with_index(repair, origins) for repair in (*feature_repairs, *format_repairs))
    lost = lost_fields([*view.messages(), *current], request.format)
    repairs = [*models.left_out_features(model, fixed.left_out, values), *view.left_out(), *repairs, *lost]
    return RenderedBody(body, [f"parameter {name}" for name in unsent], [*repairs, *placed])


def _fields(
    form: str, values: Mapping[str, Any], fixed: FixedPart, left: int
) -> tuple[parameter_fields.Settings, list[str]]:
    """The model parameters as fields of a body, and what is not sent."""
    model = fixed.model
    thinks, limit = model.can("thinking"), model.max_output
    match form:
        case "openai":
            tools = bool(fixed.tools)
            return parameter_fields.openai(values, thinks=thinks, model=model.given, tools=tools, limit=limit)
        case "openai-responses":
            return parameter_fields.openai_responses(values, thinks=thinks, model=model.given, limit=limit)
        case "gemini":
            return parameter_fields.gemini(values, thinks=thinks, model=model.given, limit=limit)
    return parameter_fields.anthropic(
        values,
        max_output=min(limit or DEFAULT_MAX_OUTPUT, left),
        thinks=thinks,
        model=model.given,
        limit=limit,
    )


def _with_index(repair: Repair, origins: Sequence[int]) -> Repair:
    """The repair with the index that its message had among history and current message before repairs."""
    index = repair.index
    if index is None:
        return repair
    index_after_history = (origins[-1] + 1 if origins else 0) + index - len(origins)
    return msgspec.structs.replace(
        repair, index=origins[index] if index < len(origins) else index_after_history
    )


_Notes = Mapping[int, tuple[Message, Message]]
"""By the index of its message: a note on changed instructions, and the rest of the message."""


class _Apart(NamedTuple):
    """The messages of a history with each note on changed instructions as a system message.

    `sizes` are None if repairs changed the number of messages: then they are estimated. `places` has the new
    index of each message.
    """

    messages: list[Message]
    origins: Sequence[int]
    sizes: list[int] | None
    places: Sequence[int]


def _with_notes_apart(
    history: list[Message], origins: Sequence[int], notes: _Notes, *, sizes: list[int], fixed: FixedPart
) -> _Apart:
    has_sizes = len(sizes) == len(history)
    if not notes:
        return _Apart(history, origins, sizes if has_sizes else None, range(len(history)))
    messages: list[Message] = []
    each_origin: list[int] = []
    each_size: list[int] = []
    places = []
    for message, origin in zip(history, origins, strict=True):
        size, part = sizes[origin], message
        if origin in notes and message.role == "user":
            note, part = notes[origin]
            tokens = count_message(fixed.counter, fixed.shape.note.format(text=content_of(note)))
            messages.append(note)
            each_origin.append(origin)
            each_size.append(tokens)
            size = max(size - tokens, 0)
        places.append(len(messages))
        messages.append(part)
        each_origin.append(origin)
        each_size.append(size)
    return _Apart(messages, each_origin, each_size if has_sizes else None, places)


def _current(fixed: FixedPart) -> Sequence[Message]:
    """The current message as it is sent, after its note; empty without one."""
    if fixed.current is None:
        return ()
    apart = changes_apart(fixed.current) if fixed.shape.note else None
    return apart or (sent_message(fixed.current),)


def _cache(fixed: FixedPart, sizes: Sequence[int] | None, counts: tuple[int, int], reuse: Reuse) -> Cache:
    """The input of caching; `counts` are the messages of the history and those after it."""
    history, current = counts
    current_tokens = [sum(row.tokens for row in fixed.after)] if current else []
    current_tokens = [0] * (current - 1) + current_tokens  # the note counts with its message
    return Cache(
        stable=history + current if reuse.replayed else history,
        minimum=fixed.model.cache_minimum or MINIMUM,
        tools=sum(row.tokens for row in fixed.before if row.category == "tools"),
        system=sum(row.tokens for row in fixed.before if row.category == "system"),
        messages=None if sizes is None else [*sizes, *current_tokens],
        ttl=reuse.ttl,
    )
