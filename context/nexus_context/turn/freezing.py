"""Decides what a request begins with: the prompt and tools that were sent before, or new ones.

A request begins with the frozen prompt and tools (`frozen.Frozen`), and its message says what changed, unless
one of the following rules applies. Then prompt and tools are rendered anew, and earlier notes are left out:

1. `first`: nothing was sent yet, or the state was dropped when the history was replaced (by a compaction or
   an undo).
2. `model`, `agent`: the request is for another model or another agent than the frozen state.
3. `refused`: a frozen tool may not be offered any more, because permissions and disabled tools take effect at
   once.
4. `tools`: the request itself brings a tool that is not frozen, or is frozen with another definition, so the
   model could not call it. Tools of skills in files do not count: a note mentions them, and they are offered
   when everything is rendered anew. A deferred tool that the model has found is added after the tools that
   were sent (`deferral`), and a note says what changed in the search tool's description.
5. `cut`: the cut moves in this request, so little of what was sent before can be reused anyway.
6. `cold`: the last request was made longer ago than a provider keeps what it caches (`context.cache_ttl`).
7. `short`: writing everything from the first change on again costs no more than sending the note: tokens x
   (write - read price) <= tokens of the note x write price.
8. `untold`: the newest message of the history is a user's without a note, so the change cannot be told.

Rules 6 and 7 do not apply if the history has reasoning that is bound to what precedes it. A request of
`nexus/session/rebase` drops the state (rule 1). The later requests of a turn, after a tool's result, have no
user's message. So a change during a turn is told with the message of the next turn.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from nexus_context.conversation.frozen import Change, Frozen, Rendered, changes_between, note_of
from nexus_context.conversation.tools import Filter, Tool, name_of, select, sent_fields, tool_rows
from nexus_context.folder.prompt.token_attribution import fragment_tokens
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import Lifetime, ModelLimits, TokenCounter
from nexus_context.turn.last_message import NO_NOTE, Note, takes_memory
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.prefix import first_difference
from nexus_context.turn.request import Request

Reason = Literal["first", "model", "agent", "refused", "tools", "cut", "cold", "short", "untold"]

LIFETIMES: dict[Lifetime, timedelta] = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
"""How long providers keep what they cache, by the setting `context.cache_ttl`."""

WRITE: dict[Lifetime, float] = {"5m": 1.25, "1h": 2.0}
READ = 0.1
"""Prices of a model without known prices, in parts of the input price: of a cache write, by lifetime, and of
a cache read.
"""


class Start(msgspec.Struct, frozen=True):
    """What a request begins with. `rendered` is its prompt and tools.

    `frozen` is the state that later requests continue from, or None if nothing is frozen. `changes` happened
    since prompt and tools were sent, and `untold` are those that no earlier note told. `reason` says why
    prompt and tools are rendered anew; it is None if they are sent as before.
    """

    rendered: Rendered
    frozen: Frozen | None = None
    changes: tuple[Change, ...] = ()
    untold: tuple[Change, ...] = ()
    note: Note = NO_NOTE
    reason: Reason | None = None


class Candidate(msgspec.Struct, frozen=True):
    """The request as it would be rendered now. `brought` are the names of the tools that the request itself
    brings.

    `search` is the name of its search tool, if tools are deferred. `revealed` are the names of its last
    tools, which may be added to those that were sent before.
    """

    rendered: Rendered
    model: ModelLimits
    counter: TokenCounter
    brought: Collection[str]
    rules: Filter
    search: str = ""
    revealed: Collection[str] = ()


def is_frozen(snapshot: Snapshot) -> bool:
    """Whether requests of this folder begin with the prompt and tools that were sent before
    (`context.replay`).
    """
    return bool(snapshot.effective.get("/context/replay") == "sent")


def start(
    snapshot: Snapshot,
    conversation: ContextManager,
    request: Request,
    candidate: Candidate,
    *,
    now: datetime | None,
    reason: Reason | None = None,
) -> Start:
    """Decide what a request begins with, by the rules above. With a `reason`, prompt and tools are rendered
    anew in any case.
    """
    frozen = _with_revealed(conversation.frozen, candidate)
    reason = reason or _reason_at_once(snapshot, frozen, candidate)
    if frozen is None or reason is not None:
        return _anew(snapshot, conversation, candidate, reason or "first")
    separator = str(snapshot.effective.get("/context/section_separator"))
    new_rendered, sent_tools = candidate.rendered, frozen.sent.tools
    changes = changes_between(frozen.sent, new_rendered, separator=separator, sent=sent_tools)
    untold = changes
    if frozen.told is not None:
        untold = changes_between(frozen.told, new_rendered, separator=separator, sent=sent_tools)
    if not changes and not untold:
        return Start(frozen.sent, frozen)
    reason = _reason_to_apply(snapshot, conversation, request, candidate, untold=untold, now=now)
    if reason is not None:
        return _anew(snapshot, conversation, candidate, reason)
    if not untold or now is None or not takes_memory(request):
        return Start(frozen.sent, frozen, changes=changes, untold=untold)
    told_frozen = msgspec.structs.replace(frozen, told=new_rendered)
    note = Note(note_of(untold), frozen.number)
    return Start(frozen.sent, told_frozen, changes=changes, untold=untold, note=note)


def _with_revealed(frozen: Frozen | None, candidate: Candidate) -> Frozen | None:
    """The state with the tools behind its own that were revealed since."""
    if frozen is None or not candidate.revealed:
        return frozen
    sent_names = {name_of(tool) for tool in frozen.sent.tools}
    tools = {name_of(tool): tool for tool in candidate.rendered.tools}
    revealed_tools = [tools[name] for name in candidate.revealed if name not in sent_names]
    if candidate.search not in sent_names or not revealed_tools:
        return frozen
    return msgspec.structs.replace(
        frozen,
        sent=_with_tools(frozen.sent, revealed_tools),
        told=None if frozen.told is None else _with_tools(frozen.told, revealed_tools),
    )


def _with_tools(rendered: Rendered, tools: Sequence[Tool]) -> Rendered:
    return Rendered(rendered.prompt, [*rendered.tools, *tools])


def _anew(snapshot: Snapshot, conversation: ContextManager, candidate: Candidate, reason: Reason) -> Start:
    number = conversation.history.note_number + 1
    model = candidate.model.given
    frozen = Frozen(number, model, snapshot.agent, candidate.rendered)
    return Start(candidate.rendered, frozen, reason=reason)


def _reason_at_once(snapshot: Snapshot, frozen: Frozen | None, candidate: Candidate) -> Reason | None:
    """Rules 1 to 4."""
    if frozen is None:
        return "first"
    if frozen.model != candidate.model.given:
        return "model"
    if frozen.agent != snapshot.agent:
        return "agent"
    offered = {name_of(tool): tool for tool in candidate.rendered.tools}
    earlier = {name_of(tool): tool for tool in frozen.sent.tools}
    gone = [tool for name, tool in earlier.items() if name not in offered]
    if gone and (select(gone, rules=candidate.rules).left_out or not candidate.model.can("tools")):
        return "refused"
    for name in candidate.brought:
        tool = offered.get(name)
        earlier_tool = earlier.get(name)
        if tool is None or earlier_tool == tool:
            continue
        if earlier_tool is None or (
            name != candidate.search and sent_fields(earlier_tool) != sent_fields(tool)
        ):
            return "tools"
    return None


def _reason_to_apply(
    snapshot: Snapshot,
    conversation: ContextManager,
    request: Request,
    candidate: Candidate,
    *,
    untold: tuple[Change, ...],
    now: datetime | None,
) -> Reason | None:
    """Rules 6 to 8."""
    history = conversation.history
    is_unanswered = request.message is None and bool(history.messages) and history.messages[-1].role == "user"
    if untold and is_unanswered and not takes_memory(request):
        return "untold"
    if history.opaque:
        return None
    last_request_at = conversation.last_request
    lifetime: Lifetime = snapshot.effective.get("/context/cache_ttl")
    if now is not None and last_request_at is not None and now - last_request_at > LIFETIMES[lifetime]:
        return "cold"
    return "short" if untold and _is_short(conversation, candidate, untold, lifetime) else None


def _is_short(
    conversation: ContextManager, candidate: Candidate, untold: tuple[Change, ...], lifetime: Lifetime
) -> bool:
    """Rule 7."""
    model, counter = candidate.model, candidate.counter
    write, read = model.write_price(lifetime), model.cached_input_price
    if write is None or read is None:
        write, read = WRITE[lifetime], READ
    frozen = conversation.frozen
    assert frozen is not None  # noqa: S101 - only called with one
    tokens = _tokens_from_change(frozen.sent, candidate.rendered, counter)
    tokens += conversation.history.tokens(counter)
    return tokens * (write - read) <= counter.count(note_of(untold)) * write


def _tokens_from_change(before: Rendered, now: Rendered, counter: TokenCounter) -> int:
    """Tokens of the tools and the prompt from the first difference on."""
    prompt_tokens = fragment_tokens(now.prompt, counter)
    if before.tools is not now.tools and list(before.tools) != list(now.tools):
        return sum(prompt_tokens) + sum(row.tokens for row in tool_rows(now.tools, counter))
    common_length = first_difference(before.prompt.text, now.prompt.text)
    return sum(
        tokens
        for fragment, tokens in zip(now.prompt.fragments, prompt_tokens, strict=True)
        if fragment.span.end > common_length
    )
