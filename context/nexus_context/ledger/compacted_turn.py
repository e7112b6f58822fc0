"""Appends a turn with the compaction by the provider's server that came with its answer, in one transaction.

Its receipt says what it did to the history of the session that the turn was written to, maybe a fork.
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
    before = sum(one.tokens for one in history.messages) + history.gap_tokens
    kept = turn.messages[len(turn.messages) - compaction.kept :]
    end = appended.head.messages
    beginning = history.messages[: history.lead] if history.gap_messages else history.messages
    leading = [beginning[at] for at in History(one.message for one in beginning).leading]
    leading = [one for one in leading if one.position < end - len(kept)]
    after = compaction.summary.tokens + sum(one.tokens for one in leading) + sum(one.tokens for one in kept)
    receipt = opaque_receipt(
        compaction.id,
        compaction.summary.message,
        ServerSizes(count - len(leading) - len(kept), before, after),
        made_at=datetime.now().astimezone(),
    )
    ranges = [(one.position, one.position + 1) for one in leading]
    new_compaction = NewCompaction(
        id=compaction.id,
        seq=appended.head.seq,
        messages=end,
        summary=compaction.summary,
        counter=turn.counter,
        kept=(*ranges, *(((end - len(kept), end),) if kept else ())),
        receipt=msgspec.to_builtins(receipt),
        thread=appended.head.thread,
    )
    compacted = turn_writer.compact(connection, workspace, appended.session, new_compaction)
    return msgspec.structs.replace(appended, head=compacted.head)
