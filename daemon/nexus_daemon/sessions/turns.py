"""Run one chat turn: inputs → context → compaction, if it is due → result.

1. An assembled context is reused as long as nothing changed that it depends on, the minute included.
2. A turn that reaches the compaction threshold is compacted first, if the settings want that. A turn is a
   request with a message, or one with a body to send after a tool's result. A request that sets its own model
   or limits is not compacted, since it does not measure the conversation. A model and a window that the user
   picks in the editor are the conversation's own (`next_request`).
3. A compaction that did not bring the turn below the threshold is reported. None follows until a turn was
   below the threshold; after an undo, none follows until the user requests one.
4. The cache report compares with the last request that was made for a message or an event, since that is the
   one that was sent.
5. Memory (`turn_memory`) takes only the room that is left, and is never a reason to compact.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.reported_usage import Estimate
from nexus_context.conversation.tool_pairs import ends_with_result
from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_context.ledger.records import TurnFacts
from nexus_context.turn import models
from nexus_context.turn.context_json import context_json
from nexus_context.turn.last_message import takes_memory
from nexus_context.turn.models import model_of
from nexus_context.turn.prefix import compare
from nexus_context.turn.request import AssembledContext, Options, Request
from nexus_context.turn.reuse import assemble_cached
from nexus_daemon import protocol
from nexus_daemon.process import tracing
from nexus_daemon.sessions import dry_runs, next_request, results, sync, turn_memory, usage
from nexus_daemon.sessions.attachments import (
    NO_ATTACHMENTS,
    Attachments,
    read_attachments,
    report_attachments,
)
from nexus_daemon.sessions.compaction import TurnCompaction, compact_turn
from nexus_daemon.sessions.conversations import Conversation, RequestFacts
from nexus_daemon.sessions.scope import SessionScope
from nexus_daemon.sessions.turn_memory import TurnInputs, TurnMemory

if TYPE_CHECKING:
    from nexus_context.memory.knowledge import Passage
    from nexus_context.turn.git import GitState


class _Turn(NamedTuple):
    """A turn that is being assembled. The snapshot of `scope` has the model of the turn."""

    scope: SessionScope
    params: protocol.AssembleParams
    inputs: TurnInputs
    request: Request
    now: datetime
    began: float


class _Context(NamedTuple):
    """The context of a turn, made at this revision of the messages; `cached`: it was assembled before."""

    assembled: AssembledContext
    memory: TurnMemory
    revision: tuple[int, int]
    cached: bool


async def assemble(scope: SessionScope, params: protocol.AssembleParams) -> protocol.AssembledContext:
    """Answer `nexus/context/assemble`. The conversation changes only if the turn is compacted."""
    params = msgspec.structs.replace(params, session=scope.conversation.session)
    inputs = await _collect_inputs(scope, request_of(params), params, is_sent=True)
    return await assemble_with(scope, params, inputs)


async def assemble_with(
    scope: SessionScope, params: protocol.AssembleParams, inputs: TurnInputs
) -> protocol.AssembledContext:
    """Answer `nexus/context/assemble` with the given inputs."""
    result, turn, context = await scope.work(_assemble_unless_due, params, inputs)
    if result is not None:
        return result
    compaction = await compact_turn(turn.scope, context.assembled)
    return await turn.scope.work(_assemble_after, turn, context, compaction)


async def dry_run(
    scope: SessionScope, params: protocol.AssembleParams, messages: Sequence[Message] | None
) -> protocol.AssembledContext:
    """Return what `assemble` would answer, with an explanation. Nothing changes.

    `messages` are those of the conversation; None means those in the ledger.
    """
    params = msgspec.structs.replace(params, session=scope.conversation.session)
    inputs = await _collect_inputs(scope, request_of(params), params)
    if messages is not None:
        scope.conversation.manager.add(messages)
    return await scope.work(_assemble_dry, params, inputs, messages is None)


async def predict_usage(
    scope: SessionScope, next_turn: protocol.NextTurnParams, *, agent: str | None
) -> protocol.TokenUsage:
    """Predict the cost of the next turn without the user's message, as far as it is known."""
    params = protocol.AssembleParams(
        scope.folder.uri,
        message="",
        options=next_turn.options,
        session=scope.conversation.session,
        agent=agent,
        attachments=next_turn.attachments,
        files=next_turn.files,
        turn_tools=next_turn.turn_tools,
    )
    request = request_of(params)
    inputs = await _collect_inputs(scope, request, params)
    return await scope.work(usage.read_next_usage, request, inputs)


def request_of(
    params: protocol.AssembleParams,
    git: "GitState | None" = None,
    agent_parameters: Mapping[str, Any] = {},
) -> Request:
    """Convert the parameters to the library's request."""
    options = params.options or protocol.AssembleOptions()
    message = params.message
    if message is not None and not isinstance(message, Message):
        message = Message("user", message)
    return Request(
        message=message,
        event=params.event,
        format=params.format,
        session=params.session or "main",
        agent_parameters=agent_parameters,
        options=_library_options(options),
        git=git,
    )


def _library_options(options: protocol.AssembleOptions) -> Options:
    """The library's options; the tools of MCP servers are an input of the turn."""
    values = msgspec.structs.asdict(options)
    del values["mcp_tools"]
    return Options(**values)


# ---------------------------------------------------------------- inputs, while the conversation stays locked


async def _collect_inputs(
    scope: SessionScope, request: Request, params: protocol.AssembleParams, *, is_sent: bool = False
) -> TurnInputs:
    """Read the inputs of a turn; `params` are those of `request`. One that is sent starts MCP servers."""
    passages, git, attachments, server_tools = await asyncio.gather(
        _search_knowledge(scope, request, remembers=_remembers(params)),
        _read_git(scope, request),
        _read_attachments(scope, params.attachments, params.files),
        _list_server_tools(scope, params.options, starts=is_sent),
    )
    agent = params.agent or (MAIN if scope.agent is None else scope.agent.id)
    return TurnInputs(
        agent=agent,
        node=params.node,
        passages=passages,
        git=git,
        attachments=attachments,
        tools=params.turn_tools,
        server_tools=server_tools,
    )


async def _list_server_tools(
    scope: SessionScope, options: protocol.AssembleOptions | None, *, starts: bool
) -> list[dict[str, Any]]:
    """The tools of the folder's MCP servers, if the client wants to run them."""
    if options is None or not options.mcp_tools or not scope.snapshot.layers.servers:
        return []
    offered = await scope.client.daemon.servers.offered(scope.folder, scope.snapshot, starts=starts)
    return [tool.definition for tool in offered]


def _remembers(params: protocol.AssembleParams) -> bool:
    """Whether what is remembered goes before the message of the turn."""
    return params.dry_run is None or params.dry_run.memory


async def _search_knowledge(scope: SessionScope, request: Request, *, remembers: bool) -> "Sequence[Passage]":
    text = "" if request.message is None else text_of(request.message)
    if not text or not takes_memory(request) or not remembers:
        return ()
    _, counter = model_of(scope.snapshot, request.options.model)
    with scope.client.daemon.workers.counting():
        return await scope.folder.knowledge.query(text, counter)


async def _read_git(scope: SessionScope, request: Request) -> "GitState | None":
    """The state of the folder's working tree, unless the turn does not report it."""
    reports_git = takes_memory(request) and "git" not in (request.event or {})
    if not reports_git or not scope.snapshot.effective.get("/context/git"):
        return None
    folder = scope.snapshot.folder
    return await scope.client.daemon.git.state(
        folder, trusted=scope.client.folders.trusts(folder), environ=scope.client.folders.load_inputs.environ
    )


async def _read_attachments(
    scope: SessionScope, attachments: Sequence[protocol.Attachment], files: Sequence[str]
) -> Attachments:
    if not attachments and not scope.snapshot.contents.conditional:
        return NO_ATTACHMENTS
    overlays = dict(scope.client.folders.overlays)
    return await scope.client.daemon.workers.run(
        read_attachments, scope.snapshot, attachments, overlays=overlays, files=files
    )


# ---------------------------------------------------------------- in a worker thread


def _assemble_unless_due(
    scope: SessionScope, params: protocol.AssembleParams, inputs: TurnInputs
) -> tuple[protocol.AssembledContext | None, _Turn, _Context]:
    """The result; None if the turn has to be compacted first."""
    turn = _begin(scope, params, inputs)
    context = _assemble(turn)
    result = None if _is_due(turn, context.assembled) else _result(turn, context)
    return result, turn, context


def _assemble_dry(
    scope: SessionScope, params: protocol.AssembleParams, inputs: TurnInputs, is_stored: bool
) -> protocol.AssembledContext:
    turn = _begin(scope, params, inputs, is_dry=True, is_stored=is_stored)
    context = _assemble(turn)
    result = _result(turn, context)
    conversation, model = scope.conversation, turn.request.options.model
    return msgspec.structs.replace(
        result,
        agent=None if scope.agent is None else scope.agent.id,
        request_id=None,
        explanation=dry_runs.explain(
            context.assembled,
            scope.snapshot,
            turn_memory.locator_of(scope.locate, context.memory.items),
            model=model,
            positions=conversation.positions,
            is_own=scope.ledger.session_options(conversation.session) is not None,
        ),
    )


def _assemble_after(
    scope: SessionScope, turn: _Turn, context: _Context, compaction: TurnCompaction
) -> protocol.AssembledContext:
    """The result of a turn after its compaction, whatever became of that."""
    conversation = scope.conversation
    if conversation.manager.revision != context.revision:
        context = _assemble(turn)
    report = compaction.report
    if compaction.compacted:
        conversation.futile = context.assembled.metadata.get("compactionReason") == "token_limit"
        report["reached"] = not conversation.futile
    return _result(turn, context, compaction=report)


def _begin(
    scope: SessionScope,
    params: protocol.AssembleParams,
    inputs: TurnInputs,
    *,
    is_dry: bool = False,
    is_stored: bool = True,
) -> _Turn:
    """Apply the request's picks, and read the turns that other windows wrote.

    A dry run picks nothing; a conversation that is not stored has no other windows.
    """
    began, now = time.perf_counter(), scope.client.now()
    request = request_of(params, inputs.git, {} if scope.agent is None else scope.agent.parameters)
    if request.message is not None and not is_dry:
        snapshot = next_request.snapshot_for_turn(scope, request.options)
        scope = msgspec.structs.replace(scope, snapshot=snapshot)
    request = next_request.without_repetition(request, scope.snapshot)
    options = next_request.with_turn_tools(request.options, inputs.tools)
    options = msgspec.structs.replace(options, server_tools=inputs.server_tools, tool_format=request.format)
    request = msgspec.structs.replace(request, options=options)
    tokens = sync.tokens_to_send(
        scope.snapshot,
        model=options.model,
        strategy=options.truncation_strategy,
        max_tokens=options.max_context_tokens,
        reserve=options.reserve_tokens,
    )
    if is_stored:
        sync.follow(scope.conversation, scope.ledger, scope.snapshot, tokens=tokens)
    frozen = scope.conversation.manager.frozen
    brings = options.additional_tools or options.server_tools
    if is_dry and frozen is not None and not brings:  # those of the last request
        options = msgspec.structs.replace(options, additional_tools=frozen.latest.tools)
        request = msgspec.structs.replace(request, options=options)
    request = msgspec.structs.replace(request, session_parameters=scope.conversation.state.parameters)
    return _Turn(scope, params, inputs, request, now=now, began=began)


def _assemble(turn: _Turn) -> _Context:
    snapshot, conversation, request = turn.scope.snapshot, turn.scope.conversation, turn.request
    messages = conversation.stored
    is_dry = turn.params.dry_run is not None
    if takes_memory(request) and not is_dry:
        sync.open_conversation(conversation, turn.now)
        messages = conversation.manager
    memory = turn_memory.gather(turn.scope, request, turn.inputs) if _remembers(turn.params) else TurnMemory()
    revision = conversation.manager.revision
    with tracing.span("assemble"):
        assembled, cached = assemble_cached(
            conversation.assembled,
            snapshot,
            messages,
            request,
            now=turn.now,
            memory=memory.items,
            versions=(turn.scope.folder.number,),  # each window counts its revisions by itself
        )
    return _Context(assembled, memory, revision, cached=cached)


def _is_due(turn: _Turn, context: AssembledContext) -> bool:
    """Whether this turn has to be compacted first, and a compaction may help."""
    conversation, options = turn.scope.conversation, turn.request.options
    limits = options.model, options.max_context_tokens, options.reserve_tokens, options.truncation_strategy
    if any(limit is not None for limit in limits):
        return False
    if not _is_turn(turn.request, conversation):
        return False
    if context.metadata.get("compactionReason") != "token_limit":
        conversation.futile = False
        return False
    return not conversation.futile and not conversation.state.undone


def _is_turn(request: Request, conversation: Conversation) -> bool:
    """Whether a model is to answer the request: it has a message, or a body behind a tool's result."""
    goes_on = request.format != "neutral" and _goes_on(request, conversation)
    return request.message is not None or goes_on


def _goes_on(request: Request, conversation: Conversation) -> bool:
    """Whether the request is behind a tool's result."""
    return request.message is None and ends_with_result(conversation.manager.history.messages)


def _result(
    turn: _Turn, context: _Context, *, compaction: dict[str, Any] | None = None
) -> protocol.AssembledContext:
    """The result of the request. Unless it is a dry run, what was sent is recorded for the next turn."""
    scope, request, inputs, memory = turn.scope, turn.request, turn.inputs, context.memory
    conversation, assembled = scope.conversation, context.assembled
    memory_report = assembled.metadata.get("memory", {})
    attachments = report_attachments(inputs.attachments, memory_report)
    locate = turn_memory.locator_of(scope.locate, memory.items)
    counter = models.model_of(scope.snapshot, request.options.model)[1]
    cache = compare(conversation.last_prefix, assembled.prefix, counter)
    attached = [*attachments.get("instructions", ()), *attachments.get("attachments", ())]
    record = context_json(scope.snapshot, assembled, request, now=turn.now, attachments=attached)
    if turn.params.dry_run is None:
        _record(turn, context, record)
    metadata = dict(assembled.metadata)
    if compaction is not None:
        metadata["compaction"] = compaction
    metadata["cache"] = results.cache_report(cache, scope.locate)
    metadata |= attachments
    if memory.failures:
        metadata["memory"] = memory_report | {"failures": list(memory.failures)}
    metadata["contextJson"] = record
    if turn.params.dry_run is None:  # two dry runs of the same turn are equal
        metadata["cached"] = context.cached
        metadata["assemblyMs"] = round((time.perf_counter() - turn.began) * 1000, 3)
    result = results.assembled(
        assembled,
        scope.snapshot,
        turn.params,
        locate,
        folder=scope.folder.uri,
        metadata=metadata,
        positions=conversation.positions,
    )
    return msgspec.structs.replace(result, parent_turn=conversation.last_turn)


def _record(turn: _Turn, context: _Context, record: Any) -> None:
    """Keep what was sent, for the next turn and for the append of this one; `record` is stored with it."""
    scope, request, inputs, memory = turn.scope, turn.request, turn.inputs, context.memory
    conversation, assembled = scope.conversation, context.assembled
    if memory.searched or memory.events:
        sent_ids = assembled.metadata.get("memory", {}).get("messages", ())
        turn_memory.hand_out(conversation, inputs.agent, sent_ids, memory.events)
    if request.message is not None or takes_memory(request):
        options = next_request.without_turn_tools(request.options, inputs.tools)
        conversation.last_prefix, conversation.last_options = assembled.prefix, options
        conversation.last_turn_tools = inputs.tools
    if not (takes_memory(request) or _goes_on(request, conversation)):  # nobody sends it
        conversation.manager.requests.add(assembled.sent_request._replace(proposal=None))
    if _is_turn(request, conversation):
        family, total = assembled.prefix.model.family.name, assembled.usage.total
        facts = TurnFacts(
            model=assembled.model or None,
            role=scope.snapshot.role,
            toolset=assembled.prefix.tool_names,
            permissions=assembled.permissions,
            event=request.event,
            context=record,
        )
        conversation.note_facts(assembled.sent_request.id, RequestFacts(facts, Estimate(family, total)))
