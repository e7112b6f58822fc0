"""One chat turn: assembled, or as it was assembled before; compacted first, where it is time for that.

1. What was assembled is given again while nothing changed that it depends on, the minute included.
2. A turn that reaches the compaction threshold is compacted first, if the settings want that: a request with
   a message, or a body to send after a tool's result. Not where the request sets its own model or limits:
   then it says nothing of the conversation. A model and a window that the user picks in the editor are the
   conversation's own (`next_request`).
3. A compaction that brought nothing, or not enough, is told and not tried again before a turn was below the
   threshold. One that the user took back is not made again before he asks.
4. The cache report compares with the last request that was made for a message: the one that was sent.
5. What the conversation is, the ledger says (`following`). A compaction is in force once it is written there.
6. What is remembered (`memory_messages`) takes only what room is left, and is no reason to compact.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context import assembly
from nexus_context.assembly import AssembledContext, costs
from nexus_context.conversation.message import Message
from nexus_context.layers.agent_definitions import MAIN
from nexus_context.prefix import compare
from nexus_context.prompt import texts
from nexus_context.snapshot import Snapshot
from nexus_daemon import protocol, results
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import next_request, sync, turn_memory
from nexus_daemon.sessions.attachments import NONE as NO_ATTACHMENTS
from nexus_daemon.sessions.attachments import Attachments, report_attachments
from nexus_daemon.sessions.compaction import Steps, compact_if_it_helps
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger

if TYPE_CHECKING:
    from nexus_context.agents import Agent
    from nexus_context.assembly.git import GitState
    from nexus_context.memory.knowledge import Passage

LARGEST_KEY = 64 * 1024
"""Bytes of a request as JSON that is looked up: comparing more costs as much as assembling."""


def assemble(
    snapshot: Snapshot,
    conversation: Conversation,
    ledger: FolderLedger,
    params: protocol.AssembleParams,
    folder: str,
    locate: Locator,
    *,
    passages: "Sequence[Passage]" = (),
    attachments: Attachments = NO_ATTACHMENTS,
    git: "GitState | None" = None,
    agent: "Agent | None" = None,
) -> Steps[tuple[protocol.AssembledContext, bool]]:
    """The result, and whether the conversation was compacted for it. `passages` belong to the message.

    `git` is the state of the snapshot's folder. In steps, as a compaction needs a summary (`compacting`).
    """
    began = time.perf_counter()
    now = datetime.now().astimezone()
    request = request_of(params, git, {} if agent is None else agent.parameters)
    if request.message is not None:
        snapshot = next_request.snapshot_for_turn(snapshot, conversation, ledger, request.options, agent)
    request = next_request.without_repetition(request, snapshot)
    sync.follow(conversation, ledger, snapshot, tokens=_needed(snapshot, request.options))
    whose = params.agent or (MAIN if agent is None else agent.id)
    gathered = partial(
        turn_memory.gathered, snapshot, conversation, ledger, request, agent=whose, passages=passages
    )
    found = gathered().behind(attachments.items)
    context, cached = _assembled(snapshot, conversation, request, found, now)
    known: dict[str, Any] = {}
    compacted = False
    if _is_due(context, conversation, request):
        before = conversation.manager.revision
        known["compaction"], compacted = yield from compact_if_it_helps(
            snapshot, conversation, ledger, context, now
        )
        if conversation.manager.revision != before:
            found = gathered().behind(attachments.items)
            context, cached = _assembled(snapshot, conversation, request, found, now)
        if compacted:
            conversation.futile = context.metadata.get("compactionReason") == "token_limit"
            known["compaction"]["reached"] = not conversation.futile
    counter = costs.model_of(snapshot, request.options.model)[1]
    known["cache"] = results.cache_report(compare(conversation.last_prefix, context.prefix, counter), locate)
    known["cached"] = cached
    memory = context.metadata.get("memory", {})
    if found.asked:
        turn_memory.given_out(conversation, whose, memory.get("messages", ()))
    known |= report_attachments(attachments, memory)
    if found.failures:
        known["memory"] = memory | {"failures": list(found.failures)}
    known["contextJson"] = _record(snapshot, context)
    if request.message is not None:
        conversation.last_prefix, conversation.last_options = context.prefix, request.options
    if _is_turn(request, conversation):
        conversation.record = known["contextJson"]
    known["assemblyMs"] = round((time.perf_counter() - began) * 1000, 3)
    result = results.assembled(
        context,
        snapshot,
        params,
        folder,
        turn_memory.with_files(locate, found.items),
        metadata=context.metadata | known,
        parent_turn=conversation.last_turn,
        positions=conversation.positions,
    )
    return result, compacted


def _needed(snapshot: Snapshot, options: assembly.Options) -> int | None:
    """Tokens of history that the request may look at; None: all."""
    return sync.needed(
        snapshot,
        model=options.model,
        strategy=options.truncation_strategy,
        max_tokens=options.max_context_tokens,
        reserve=options.reserve_tokens,
    )


def request_of(
    params: protocol.AssembleParams,
    git: "GitState | None" = None,
    agent_parameters: Mapping[str, Any] = {},
) -> assembly.Request:
    """What is asked for."""
    options = params.options or protocol.AssembleOptions()
    return assembly.Request(
        message=_message(params.message),
        event=params.event,
        format=params.format,
        session=params.session or "main",
        agent_parameters=agent_parameters,
        options=assembly.Options(**msgspec.structs.asdict(options)),
        git=git,
    )


def _message(given: str | list[Any] | Message | None) -> Message | None:
    if given is None or isinstance(given, Message):
        return given
    return Message("user", given)


def _assembled(
    snapshot: Snapshot,
    conversation: Conversation,
    request: assembly.Request,
    found: turn_memory.Found,
    now: datetime,
) -> tuple[AssembledContext, bool]:
    """The context, and whether it was assembled before."""
    told = texts.moment(now, snapshot.effective.get("/context/datetime") or {})
    encoded = msgspec.json.encode(request)
    items = tuple(found.items)
    seen = (snapshot.agent, snapshot.revision, snapshot.choice)
    key = (*seen, conversation.manager.revision, tuple(told.values()), encoded, items)
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
    own = options.model, options.max_context_tokens, options.reserve_tokens, options.truncation_strategy
    if any(option is not None for option in own):
        return False
    if not _is_turn(request, conversation):
        return False
    if context.metadata.get("compactionReason") != "token_limit":
        conversation.futile = False
        return False
    return not conversation.futile and not conversation.kept_whole


def _is_turn(request: assembly.Request, conversation: Conversation) -> bool:
    """Whether it is one that a model is to answer, and not a look at what it would be."""
    goes_on = request.format != "neutral" and _awaits_answer(conversation)
    return request.message is not None or goes_on


def _awaits_answer(conversation: Conversation) -> bool:
    """Whether the last message is a tool's result: then the model is asked without a message of the user."""
    messages = conversation.manager.history.messages
    return bool(messages) and messages[-1].role == "tool"


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
