"""Appends a turn, together with the compaction that a provider's server made in its answer, in one
transaction.

The compaction's receipt says what it did to the history of the session to which the turn was written. That
session may be a fork.
"""

from datetime import datetime

import apsw
import msgspec

from nexus_context.conversation.compaction.server import ServerSizes, opaque_receipt
from nexus_context.conversation.history import History
from nexus_context.ledger import read_history, turn_writer
from nexus_context.ledger.records import Appended, NewCompaction, NewTurn


def append(connection: apsw.Connection, workspace: str, session: str, turn: NewTurn) -> Appended:
    appended = turn_writer.append(connection, workspace, session, turn)
    compaction = turn.compaction
    if compaction is None or appended.repeated:
        return appended
    history = read_history.history(connection, workspace, appended.session, tokens=0)
    assert history is not None  # noqa: S101 - the turn was written to it
    count = len(history.messages) + history.gap_messages
    tokens_before = sum(stored.tokens for stored in history.messages) + history.gap_tokens
    kept_messages = turn.messages[len(turn.messages) - compaction.kept :]
    end = appended.head.messages
    beginning = history.messages[: history.lead] if history.gap_messages else history.messages
    leading_messages = [beginning[at] for at in History(stored.message for stored in beginning).leading]
    leading_messages = [stored for stored in leading_messages if stored.position < end - len(kept_messages)]
    tokens_after = (
        compaction.summary.tokens
        + sum(stored.tokens for stored in leading_messages)
        + sum(stored.tokens for stored in kept_messages)
    )
    receipt = opaque_receipt(
        compaction.id,
        compaction.summary.message,
        ServerSizes(count - len(leading_messages) - len(kept_messages), tokens_before, tokens_after),
        made_at=datetime.now().astimezone(),
    )
    ranges = [(stored.position, stored.position + 1) for stored in leading_messages]
    new_compaction = NewCompaction(
        id=compaction.id,
        seq=appended.head.seq,
        messages=end,
        summary=compaction.summary,
        counter=turn.counter,
        kept=(*ranges, *(((end - len(kept_messages), end),) if kept_messages else ())),
        receipt=msgspec.to_builtins(receipt),
        thread=appended.head.thread,
    )
    compacted = turn_writer.compact(connection, workspace, appended.session, new_compaction)
    return msgspec.structs.replace(appended, head=compacted.head)
