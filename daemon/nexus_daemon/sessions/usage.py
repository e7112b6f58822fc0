"""Measure what a conversation's next request costs, and how much of its last one it could reuse."""

import logging
from collections.abc import Sequence
from datetime import datetime

import msgspec

from nexus_context.conversation.reported_usage import Estimate
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import Snapshot
from nexus_context.memory.item import MemoryItem
from nexus_context.tokens import get_token_counter, is_loaded
from nexus_context.turn import assembly
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.models import model_of
from nexus_context.turn.prefix import compare
from nexus_context.turn.request import Request
from nexus_daemon import protocol
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import next_request, results, sync, turn_memory
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger
from nexus_daemon.sessions.scope import SessionScope

logger = logging.getLogger(__name__)


class Measured(msgspec.Struct, frozen=True):
    """The number of messages and the cost of a conversation.

    `percent` is the share of the budget before any cut.
    """

    count: int
    usage: protocol.TokenUsage
    percent: float


def measure(scope: SessionScope) -> Measured:
    """Read what other windows wrote, then measure the conversation."""
    scope.follow()
    return measure_scope(scope)


def measure_scope(scope: SessionScope) -> Measured:
    """Measure the messages and tokens of the conversation in memory."""
    conversation = scope.conversation
    options = next_request.options_of_look(scope.snapshot, conversation, scope.ledger)
    messages = conversation.stored
    token_usage, percent = _measure(scope, Request(options=options), scope.locate, messages)
    return Measured(len(messages), token_usage, percent)


def estimate_request(scope: SessionScope) -> Estimate:
    """Estimate the tokens of the conversation's request, for a turn that was assembled elsewhere."""
    family = model_of(scope.snapshot, None)[0].family.name
    return Estimate(family, measure_scope(scope).usage.total, begun=True, prompt_known=False)


def read_usage(scope: SessionScope) -> protocol.TokenUsage:
    """Read what other windows wrote, then return the usage with a cache report."""
    token_usage = measure(scope).usage
    return with_cache(token_usage, scope.snapshot, scope.conversation, scope.locate, now=scope.client.now())


def read_next_usage(
    scope: SessionScope, request: Request, inputs: turn_memory.TurnInputs
) -> protocol.TokenUsage:
    """Measure the next turn, with everything that is sent beside the user's message.

    If the conversation has no turn, the options of `request` apply, else those of its last turn.
    """
    snapshot, options = next_request.expected(scope, request.options)
    scope = msgspec.structs.replace(scope, snapshot=snapshot)
    scope.follow()
    manager = scope.conversation.manager
    if not len(manager):  # the turn begins with the message that the conversation will begin with
        manager = ContextManager(started=scope.client.now())
    options = next_request.with_turn_tools(options, inputs.tools)
    last_options = scope.conversation.last_options
    form = "neutral" if last_options is None else last_options.tool_format
    options = msgspec.structs.replace(options, server_tools=inputs.server_tools, tool_format=form)
    request = msgspec.structs.replace(request, options=options, git=inputs.git)
    memory = turn_memory.gather(scope, request, inputs)
    locate = turn_memory.locator_of(scope.locate, memory.items)
    token_usage, _ = _measure(scope, request, locate, manager, memory=memory.items)
    now = scope.client.now()
    return with_cache(token_usage, snapshot, scope.conversation, locate, now=now, inputs=inputs)


def current_usage(
    snapshot: Snapshot,
    conversation: Conversation,
    ledger: FolderLedger | None,
    locate: Locator,
    *,
    now: datetime,
) -> protocol.TokenUsage:
    """Return the usage for a notification. It equals the result of `nexus/context/usage`.

    It is exact if the vocabulary is in memory, else a labelled estimate, since a notification loads no
    vocabulary.
    """
    snapshot = next_request.snapshot_for(snapshot, conversation, ledger)
    if ledger is not None:
        try:
            sync.follow(conversation, ledger, snapshot, tokens=sync.tokens_to_send(snapshot))
        except RequestError as error:  # the usage is then that of the messages in memory
            if error.code != "ledger-closed":  # else the daemon ends, and nobody asks any more
                logger.warning("%s", error)
    options = next_request.options_of_look(snapshot, conversation, ledger)
    limits, _ = model_of(snapshot, None)
    counter = None if is_loaded(limits.encoding) else get_token_counter(use_tiktoken=False)
    request = Request(options=options)
    measured = assembly.measure(snapshot, conversation.stored, request=request, counter=counter, now=now)
    token_usage = results.measured(measured, locate, conversation.positions)
    return with_cache(token_usage, snapshot, conversation, locate, now=now)


def with_cache(
    usage: protocol.TokenUsage,
    snapshot: Snapshot,
    conversation: Conversation,
    locate: Locator,
    *,
    now: datetime,
    inputs: turn_memory.TurnInputs | None = None,
) -> protocol.TokenUsage:
    """Add a cache report to a usage: what an edit breaks, before it is paid for.

    There is no report before the first request, nor if a request like the last one is no longer possible.
    `inputs` are those of the next turn, whose tools count; None means that the tools of the last turn do.
    """
    last_prefix, options = conversation.last_prefix, conversation.last_options
    if last_prefix is None or options is None:
        return usage
    tools = conversation.last_turn_tools
    if inputs is not None:
        tools = inputs.tools
        options = msgspec.structs.replace(options, server_tools=inputs.server_tools)
    options = next_request.with_turn_tools(options, tools)
    try:
        form = last_prefix.format or "neutral"
        prefix = assembly.prefix_of(snapshot, conversation.manager, options, now=now, form=form)
    except RequestError:  # a skill that the request named is gone
        return usage
    report = compare(last_prefix, prefix, model_of(snapshot, options.model)[1])
    return msgspec.structs.replace(usage, cache=results.cache_report(report, locate))


def _measure(
    scope: SessionScope,
    request: Request,
    locate: Locator,
    messages: ContextManager,
    *,
    memory: Sequence[MemoryItem] = (),
) -> tuple[protocol.TokenUsage, float]:
    """The usage, and how full the context is before anything is cut, in percent."""
    now = scope.client.now()
    measured = assembly.measure(scope.snapshot, messages, request=request, now=now, memory=memory)
    positions = scope.conversation.positions or (0,)  # of the opening, before the first turn
    return results.measured(measured, locate, positions), measured.wanted_percent
