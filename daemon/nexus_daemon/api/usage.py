"""What a context costs now, as a notification tells it: the same as who asks is answered."""

import logging

from nexus_context import assembly
from nexus_context.errors import RequestError
from nexus_context.snapshot import Snapshot
from nexus_context.tokens import get_token_counter, is_loaded
from nexus_daemon import protocol
from nexus_daemon.api import cache_usage, results
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import next_request, sync
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger

logger = logging.getLogger(__name__)


def usage_now(
    snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger | None, locate: Locator
) -> protocol.TokenUsage:
    """Exact where the vocabulary is in memory; else an estimate, labelled: a notification loads none."""
    snapshot = next_request.snapshot_for(snapshot, conversation, ledger)
    if ledger is not None:
        tokens = sync.needed(snapshot)
        try:
            sync.follow(conversation, ledger, snapshot, tokens=tokens)
        except RequestError as error:  # what is in memory is told
            logger.warning("%s", error)
    options = next_request.besides(snapshot, conversation, ledger)
    limits, _ = assembly.model_of(snapshot, None)
    counter = None if is_loaded(limits.encoding) else get_token_counter(use_tiktoken=False)
    request = assembly.Request(options=options)
    measured = assembly.measure(snapshot, conversation.manager, request=request, counter=counter)
    usage = results.measured(measured, locate, conversation.positions)
    return cache_usage.with_cache(usage, snapshot, conversation, locate)
