"""A conversation in memory follows the ledger: what is there is read in, what is new is written there first.

1. Before each use the head is compared. What another window appended is read in; after anything else than
   appends the history is read again.
2. A message is in memory only after the ledger has it. What could not be written has changed nothing.
3. Of a long history only as much is read as the next request can send (`needed`), until all is needed: so
   many tokens that the cut lies within what is read, and the turn of the user that it lies in. A compaction
   reads as much as it looks at (`compaction.run`).
4. The work is bounded: whatever the conversation is, no more than MOST_READ tokens are read to find the
   beginning of a turn. Only who asks for all messages waits for all of them.

Everything here blocks on the disk: for worker threads, while the conversation is locked.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from math import ceil
from typing import Any

import msgspec

from nexus_context.assembly import costs
from nexus_context.budget import usage
from nexus_context.conversation.compaction.detection import READ_TOKENS
from nexus_context.conversation.history import NO_GAP, History
from nexus_context.conversation.message import Message, content_of
from nexus_context.conversation.window import LARGEST_NEW
from nexus_context.ledger import records
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import (
    Counted,
    Head,
    NewCompaction,
    NewTurn,
    Ranges,
    SessionOptions,
    StoredMessage,
)
from nexus_context.manager import ContextManager
from nexus_context.snapshot import Snapshot
from nexus_context.tokens import TokenCounter, count_message
from nexus_daemon.sessions.conversations import Answer, Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger

logger = logging.getLogger(__name__)

FRONT_CUTTING = ("oldest_first", "smart", "sliding", "recency", "simple")
"""Ways of cutting that send the beginning and the end of a history: what lies between need not be read."""
SPARE = 1.25
"""Times the tokens that a request can send are read."""
TRIES = 5
"""Times that it is read, each time twice as much: a turn, or results that are shortened, may reach further
back. What the user asked longer ago than that is not sent with what came of it.
"""
MOST_READ = 1_000_000
"""Tokens that are read at most to find where a turn begins, or those of one request where they are more."""
LEAST_READ = 8_000
"""Tokens that are read at least: what belongs together may be longer than a small window."""
LOOKED_BACK = 8  # turns in which the last query is looked for: compactions and undos are few


class Given(msgspec.Struct, frozen=True):
    """One turn as a client gives it. `parent`: see NewTurn."""

    messages: Sequence[Message]
    key: str | None = None
    parent: str | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None
    event: Any = None
    permissions: str | None = None


def needed(
    snapshot: Snapshot,
    *,
    model: str | None = None,
    strategy: str | None = None,
    max_tokens: int | None = None,
    reserve: int | None = None,
) -> int | None:
    """Tokens of history that a request with these options may look at; None: all."""
    get = snapshot.effective.get
    if (strategy or get("/context/truncation_strategy")) not in FRONT_CUTTING:
        return None
    limits, counter = costs.model_of(snapshot, model)
    reserved = (get("/context/reserve_tokens") if reserve is None else reserve) + get(
        "/context/reserve_tool_tokens"
    )
    limit = get("/context/max_tokens") if max_tokens is None else max_tokens
    available = usage(limits, counter, (), max_tokens=limit, reserved=reserved).available
    return max(int(SPARE * available), LEAST_READ)


def read_by_compaction(snapshot: Snapshot) -> int:
    """Tokens of history that a compaction looks at."""
    spent = needed(snapshot, strategy=FRONT_CUTTING[0])
    assert spent is not None  # noqa: S101 - this strategy never needs all
    return spent + max(spent, READ_TOKENS)  # what is kept, and what is replaced


def follow(
    conversation: Conversation,
    ledger: FolderLedger,
    snapshot: Snapshot,
    *,
    tokens: int | msgspec.UnsetType | None = msgspec.UNSET,
) -> None:
    """Read in what the ledger has more, or otherwise.

    `tokens`: so many from the end will do, by default as many as a compaction looks at; None: all.
    """
    if tokens is msgspec.UNSET:
        tokens = read_by_compaction(snapshot)
    head = ledger.store.head(ledger.workspace, conversation.session)
    known = conversation.head
    if head is None:
        if known is not None:
            conversation.forget()
        return
    if known is None or known.thread != head.thread:
        given_out = {} if known is not None else conversation.given_out
        conversation.forget()
        conversation.given_out = given_out
        _read(conversation, ledger, snapshot, tokens)
        return
    if known != head:
        news = ledger.store.since(ledger.workspace, conversation.session, known)
        if news is None:
            _read(conversation, ledger, snapshot, tokens)
            return
        added = [held for held in news if held.position < head.messages]  # a turn may have come since
        _take_in(conversation, added, head, costs.model_of(snapshot, None)[1])
    if not _is_enough(conversation, tokens):
        _read(conversation, ledger, snapshot, tokens)


def append(conversation: Conversation, ledger: FolderLedger, snapshot: Snapshot, given: Given) -> Answer:
    """Write a turn. A repeated key writes nothing; a parent that is not the last turn makes a fork.

    The conversation has been followed up to now.
    """
    known = conversation.answer_to(given.key, len(given.messages))
    if known is not None:
        return known
    counter = costs.model_of(snapshot, None)[1]
    head = conversation.head
    begins = head is None or not head.messages or given.parent is None
    opening = _counted(_opening(), counter) if begins else ()
    messages = _counted(given.messages, counter)
    record = conversation.record or {}
    turn = NewTurn(
        messages=messages,
        counter=counter.name,
        opening=opening[0] if opening else None,
        key=given.key,
        parent=_parent(conversation, ledger, given.parent),
        model=given.model or record.get("model") or None,
        toolset=tuple(record.get("tools", ())),
        permissions=snapshot.effective.get("/permissions/level"),
        event=given.event,
        context=conversation.record,
        options=_new_options(conversation, ledger),
    )
    done = ledger.append(conversation.session, turn)
    answer = Answer(done.session, done.turn, done.forked)
    if not done.forked:  # a fork may be renamed or deleted meanwhile: the ledger knows
        conversation.remember(given.key, answer, len(given.messages))
    if not done.repeated:
        _hand_over(conversation, ledger)
    if done.repeated or done.forked:
        return answer
    conversation.record = None
    conversation.options = None  # they are those of the ledger now
    if (head is None and not done.before.seq) or done.before == head:
        written = messages if done.before.messages else (*opening, *messages)
        made = History.restored(
            [one.message for one in written], [one.tokens for one in written], counter.name, NO_GAP
        )
        _extend(conversation, made, range(done.before.messages, done.head.messages), done.head, counter)
    else:
        follow(conversation, ledger, snapshot, tokens=conversation.loaded)
    return answer


def _new_options(conversation: Conversation, ledger: FolderLedger) -> SessionOptions | None:
    """What the turn was made with, where the ledger does not have it as the conversation's."""
    options = conversation.options
    return None if options == ledger.own_options(conversation.session) else options


def _hand_over(conversation: Conversation, ledger: FolderLedger) -> None:
    """The conversation went on: the messages of agents that were given out wait no more."""
    ids = [each for sent in conversation.given_out.values() for each in sent]
    conversation.given_out = {}
    if ids:
        try:
            ledger.delivered(ids)
        except LedgerError as error:  # they come again rather than never
            logger.warning("messages of agents are not marked as delivered: %s", error)


def compaction_of(
    conversation: Conversation, summary: Message, kept: Iterable[int], counter: TokenCounter, receipt: Any
) -> NewCompaction:
    """What the ledger is to write of a compaction that keeps the messages of these positions."""
    head = conversation.head
    assert head is not None  # noqa: S101 - there is something to compact
    return NewCompaction(
        id=receipt.id,
        seq=head.seq,
        thread=head.thread,
        summary=Counted(summary, count_message(counter, content_of(summary))),
        counter=counter.name,
        kept=ranges(kept),
        receipt=msgspec.to_builtins(receipt),
    )


def compacted(
    conversation: Conversation, done: records.Appended, kept: Iterable[int], compaction: str
) -> None:
    """The ledger has written it: the summary comes first, then what is kept, by its positions."""
    conversation.positions = [done.before.messages, *kept]
    conversation.head = done.head
    conversation.compaction = compaction
    conversation.loaded = None
    conversation.changed()


def ranges(positions: Iterable[int]) -> Ranges:
    """Ascending positions as half-open ranges."""
    found: list[tuple[int, int]] = []
    for position in positions:
        if found and found[-1][1] == position:
            found[-1] = (found[-1][0], position + 1)
        else:
            found.append((position, position + 1))
    return tuple(found)


def _read(conversation: Conversation, ledger: FolderLedger, snapshot: Snapshot, tokens: int | None) -> None:
    """Read the history, or as much of it as is needed."""
    first = conversation.head is None
    history = _held(conversation, ledger, costs.model_of(snapshot, None)[1], tokens)
    if history is None:
        conversation.forget()
        return
    other = history.compaction != conversation.compaction or history.undone != conversation.kept_whole
    conversation.compaction = history.compaction
    conversation.kept_whole = history.undone
    conversation.loaded = tokens if history.gap_messages else None
    if other or first:
        conversation.changed()
    if first and history.messages:
        conversation.warned = None


def _held(
    conversation: Conversation, ledger: FolderLedger, counter: TokenCounter, tokens: int | None
) -> records.StoredHistory | None:
    """Let the manager hold the history, or as much of it as is needed; None where there is none."""
    for more in range(TRIES):
        wanted = None if tokens is None else min(tokens << more, max(tokens, MOST_READ))
        history = ledger.store.history(ledger.workspace, conversation.session, tokens=wanted)
        if history is None:
            break
        conversation.manager.restore(
            [held.message for held in history.messages],
            tokens=[_tokens(held, counter) for held in history.messages],
            counter=counter.name,
            lead=history.lead,
            gap_messages=history.gap_messages,
            gap_tokens=history.gap_tokens,
        )
        conversation.positions = [held.position for held in history.messages]
        conversation.head = history.head
        if tokens is None or wanted == max(tokens, MOST_READ):
            break
        if _covers(conversation.manager.history, counter, ceil(tokens / SPARE)):
            break
    return history


def _covers(history: History, counter: TokenCounter, available: int) -> bool:
    """Whether a turn of the user that is loaded, with all behind it, is more than fits: then what is sent of
    the history is what would be sent of all. Of a result counts what is kept of one that is too long.
    """
    if not history.gap.messages:
        return True
    sums, longest, total = history.sums(counter), int(available * LARGEST_NEW), 0
    turns = {at for at in history.grouping.turns if at >= history.least_start}
    for at in range(len(history) - 1, history.gap.lead - 1, -1):
        tokens = sums[at + 1] - sums[at]
        total += min(tokens, longest) if history.messages[at].role == "tool" else tokens
        if total > available and at in turns:
            return True
    return False


def _is_enough(conversation: Conversation, tokens: int | None) -> bool:
    loaded = conversation.loaded
    return loaded is None or (tokens is not None and tokens <= loaded)


def _take_in(
    conversation: Conversation, news: Sequence[StoredMessage], head: Head, counter: TokenCounter
) -> None:
    """Messages that came from elsewhere."""
    counted = History.restored(
        [held.message for held in news], [_tokens(held, counter) for held in news], counter.name, NO_GAP
    )
    _extend(conversation, counted, [held.position for held in news], head, counter)


def _extend(
    conversation: Conversation,
    counted: History,
    positions: Iterable[int],
    head: Head,
    counter: TokenCounter,
) -> None:
    """Messages that the ledger has and `counter` has counted."""
    history = conversation.manager.history
    history.sums(counter)  # else what is counted would be counted again
    history.take_over(counted, 0)
    conversation.positions.extend(positions)
    conversation.head = head
    conversation.assembled.invalidate()


def _parent(
    conversation: Conversation, ledger: FolderLedger, parent: str | msgspec.UnsetType | None
) -> str | msgspec.UnsetType | None:
    """The parent; the last turn, where nothing but compactions and undos came since."""
    last = conversation.last_turn
    if not isinstance(parent, str) or parent == last:
        return parent
    for turn in reversed(list(ledger.store.turns(ledger.workspace, conversation.session, last=LOOKED_BACK))):
        if turn.type == "query":
            return last if turn.id == parent else parent
    return parent


def _counted(messages: Iterable[Message], counter: TokenCounter) -> tuple[Counted, ...]:
    counted = History(messages)
    return tuple(
        Counted(message, after - before)
        for message, (before, after) in zip(counted.messages, pairwise(counted.sums(counter)), strict=True)
    )


def _opening() -> list[Message]:
    """The message that says when a session began."""
    return ContextManager(started=datetime.now().astimezone()).history.messages


def _tokens(held: StoredMessage, counter: TokenCounter) -> int:
    if held.counter == counter.name:
        return held.tokens
    return count_message(counter, content_of(held.message), held.message.tool_calls)
