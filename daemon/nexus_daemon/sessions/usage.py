"""What a conversation costs now, and how much of its last request the next one could reuse."""

import logging
from collections.abc import Sequence
from datetime import datetime

import msgspec

from nexus_context import assembly
from nexus_context.errors import RequestError
from nexus_context.memory.item import MemoryItem
from nexus_context.prefix import compare
from nexus_context.snapshot import Snapshot
from nexus_context.tokens import get_token_counter, is_loaded
from nexus_daemon import protocol, results
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import next_request, sync
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger

logger = logging.getLogger(__name__)


def measure(
    snapshot: Snapshot,
    conversation: Conversation,
    locate: Locator,
    request: assembly.Request,
    *,
    memory: Sequence[MemoryItem] = (),
) -> tuple[protocol.TokenUsage, float]:
    """Usage, and how full the context is before anything is cut, in percent."""
    now = datetime.now().astimezone()
    measure = assembly.measure(snapshot, conversation.manager, request=request, now=now, memory=memory)
    return results.measured(measure, locate, conversation.positions), measure.wanted_percent


def with_cache(
    usage: protocol.TokenUsage, snapshot: Snapshot, conversation: Conversation, locate: Locator
) -> protocol.TokenUsage:
    """The usage with a cache report: what an edit breaks, before it is paid for.

    There is no report before the first request, nor where a request like the last one is no longer possible.
    """
    before, options = conversation.last_prefix, conversation.last_options
    if before is None or options is None:
        return usage
    try:
        prefix = assembly.prefix_of(snapshot, conversation.manager, options, now=datetime.now().astimezone())
    except RequestError:  # a skill that the request named is gone
        return usage
    report = compare(before, prefix, assembly.model_of(snapshot, options.model)[1])
    return msgspec.structs.replace(usage, cache=results.cache_report(report, locate))


def current_usage(
    snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger | None, locate: Locator
) -> protocol.TokenUsage:
    """The usage for a notification: identical to the result of `nexus/context/usage`.

    It is exact where the vocabulary is in memory, else a labelled estimate: a notification loads none.
    """
    snapshot = next_request.snapshot_for(snapshot, conversation, ledger)
    if ledger is not None:
        tokens = sync.needed(snapshot)
        try:
            sync.follow(conversation, ledger, snapshot, tokens=tokens)
        except RequestError as error:  # the usage is then that of the messages in memory
            logger.warning("%s", error)
    options = next_request.besides(snapshot, conversation, ledger)
    limits, _ = assembly.model_of(snapshot, None)
    counter = None if is_loaded(limits.encoding) else get_token_counter(use_tiktoken=False)
    request = assembly.Request(options=options)
    measure = assembly.measure(snapshot, conversation.manager, request=request, counter=counter)
    usage = results.measured(measure, locate, conversation.positions)
    return with_cache(usage, snapshot, conversation, locate)
