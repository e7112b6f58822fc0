"""What the next request of a conversation could reuse of its last: what an edit breaks, before it is paid."""

from datetime import datetime

import msgspec

from nexus_context.assembly import model_of, prefix_of
from nexus_context.errors import RequestError
from nexus_context.prefix import compare
from nexus_context.snapshot import Snapshot
from nexus_daemon import protocol
from nexus_daemon.api import results
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions.conversations import Conversation


def with_cache(
    spent: protocol.TokenUsage, snapshot: Snapshot, conversation: Conversation, locate: Locator
) -> protocol.TokenUsage:
    """The usage with a cache report; as it is where no request was made yet, or none like the last can be."""
    before, options = conversation.last_prefix, conversation.last_options
    if before is None or options is None:
        return spent
    try:
        now = prefix_of(snapshot, conversation.manager, options, now=datetime.now().astimezone())
    except RequestError:  # a skill that it named is gone
        return spent
    report = compare(before, now, model_of(snapshot, options.model)[1])
    return msgspec.structs.replace(spent, cache=results.cache_report(report, locate))
