"""Keep a conversation in memory equal to the ledger: read what others wrote, write its own turns there first.

1. Before each use the heads are compared. What another window appended is read; after any other change the
   history is read again.
2. A message is in memory only after the ledger has it. A failed write changes nothing.
3. If a history is long, only as much of it is read as the next request can send (`tokens_to_send`). The cut,
   and the user's turn that contains it, are within what is read. A compaction reads as much as it needs.
4. The first turn of a conversation is preceded by the message that tells when it began. `open_conversation`
   puts this message into memory until the turn is written, so that the first request has it, too.
5. A user message is written with the preamble that its request had (`Message.preamble`). The prompt and tools
   that later requests begin with (`frozen`) are written in the same transaction.
6. A turn whose answer came with a compaction by the provider's server is written with that compaction; the
   history is read again then.
7. A turn is written with its provider's usage and our estimate of the same request, if there is one. All such
   reports together correct the totals of the conversation (`tokens.correction`).
8. The work is bounded: no more than MOST_READ tokens are read to find the beginning of a turn. Only requests
   for all messages read all of them.

Everything here blocks on the disk: call it in worker threads, while the conversation is locked.
"""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from math import ceil
from typing import Any

import msgspec
from msgspec.structs import replace

from nexus_context.conversation.agent_result import AgentResult, TurnOutcome
from nexus_context.conversation.budget import usage
from nexus_context.conversation.compaction.detection import READ_TOKENS
from nexus_context.conversation.compaction.server import SplitTurn
from nexus_context.conversation.frozen import frozen_of, frozen_text, settled
from nexus_context.conversation.half_pairs import whole_message
from nexus_context.conversation.history import NO_GAP, History
from nexus_context.conversation.message import Message, sent_content
from nexus_context.conversation.reported_usage import Estimate, report_of
from nexus_context.conversation.sent_requests import AssembledRequest
from nexus_context.conversation.times import opening_message
from nexus_context.conversation.window import LARGEST_NEW
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger import records
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import (
    Counted,
    Head,
    NewTurn,
    Ranges,
    ServerCompaction,
    SessionOptions,
    StoredMessage,
    StoredState,
    TurnFacts,
    turn_facts,
)
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.tokens.correction import UsageReport
from nexus_context.turn import models, offered_tools
from nexus_context.turn.request import Options
from nexus_daemon.process import lazy
from nexus_daemon.sessions.conversations import Answer, Conversation, RequestFacts
from nexus_daemon.sessions.ledger_writer import FolderLedger

logger = logging.getLogger(__name__)

FRONT_CUTTING = ("oldest_first", "smart", "sliding", "recency", "simple")
"""Strategies that send the beginning and the end of a history: the middle need not be read."""
SPARE = 1.25
"""Factor between the tokens that a request can send and those that are read for it."""
TRIES = 5
"""Number of reads, each twice as long as the one before: a turn, or results that get shortened, may reach
further back. A question further back than that is not sent with its answer.
"""
MOST_READ = 1_000_000
"""Tokens to read at most for the beginning of a turn; a request that sends more reads those."""
LEAST_READ = 8_000
"""Tokens to read at least: messages that belong together may exceed a small window."""
PARENT_TURNS = 8  # turns to search for the last query: compactions and undos are few


class TurnInput(msgspec.Struct, frozen=True):
    """One turn as a client appends it.

    `parent` is as in NewTurn. If `model` or `event` is None, that of the request is stored. `answered` is the
    id of the request that the turn answers; if it is None, the request is found by the messages.
    """

    result: AgentResult
    key: str | None = None
    parent: str | msgspec.UnsetType | None = msgspec.UNSET
    model: str | None = None
    event: Any = None
    answered: str | None = None


def tokens_to_send(
    snapshot: Snapshot,
    *,
    model: str | None = None,
    strategy: str | None = None,
    max_tokens: int | None = None,
    reserve: int | None = None,
) -> int | None:
    """Return how many tokens of history a request with these options can send. None means all."""
    get = snapshot.effective.get
    if (strategy or get("/context/truncation_strategy")) not in FRONT_CUTTING:
        return None
    limits, counter = models.model_of(snapshot, model)
    reserved = (get("/context/reserve_tokens") if reserve is None else reserve) + get(
        "/context/reserve_tool_tokens"
    )
    limit = get("/context/max_tokens") if max_tokens is None else max_tokens
    available = usage(limits, counter, (), max_tokens=limit, reserved=reserved).available
    return max(int(SPARE * available), LEAST_READ)


def tokens_to_compact(snapshot: Snapshot) -> int:
    """Return how many tokens of history a compaction reads."""
    preserved = tokens_to_send(snapshot, strategy=FRONT_CUTTING[0])
    assert preserved is not None  # noqa: S101 - this strategy never needs all
    return preserved + max(preserved, READ_TOKENS)  # READ_TOKENS: of the replaced messages


def follow(
    conversation: Conversation, ledger: FolderLedger, snapshot: Snapshot, *, tokens: int | None
) -> None:
    """Read what the ledger has, with at least the last `tokens` of the history loaded; None means all of
    it.
    """
    stored_state = ledger.store.state(ledger.workspace, conversation.session)
    head = None if stored_state is None else stored_state.head
    _follow(conversation, ledger, snapshot, stored_state, tokens=tokens)
    if conversation.state.head != head:  # a turn has come meanwhile
        stored_state = ledger.store.state(ledger.workspace, conversation.session)
    anchor, parameters = (
        (None, {}) if stored_state is None else (stored_state.anchor, stored_state.parameters)
    )
    conversation.state = replace(conversation.state, anchor=anchor, parameters=parameters)
    _correct(conversation, ledger, snapshot)


def _follow(
    conversation: Conversation,
    ledger: FolderLedger,
    snapshot: Snapshot,
    stored: StoredState | None,
    *,
    tokens: int | None,
) -> None:
    head, last_head = None if stored is None else stored.head, conversation.state.head
    if head is None or not head.messages:
        if last_head is not None and (head is None or last_head.thread != head.thread):
            conversation.forget()
        opening = conversation.opening
        if head != conversation.state.head:
            _read(conversation, ledger, snapshot, tokens)
            if opening is not None:
                _put_opening(conversation, opening)
        return
    if last_head is None or last_head.thread != head.thread or conversation.opening is not None:
        if last_head is not None and last_head.thread != head.thread:  # else it belongs to the turn under way
            conversation.forget()
        _read(conversation, ledger, snapshot, tokens)
        return
    if last_head != head:
        news = ledger.store.since(ledger.workspace, conversation.session, last_head)
        if news is None:
            _read(conversation, ledger, snapshot, tokens)
            return
        added = [stored for stored in news if stored.position < head.messages]  # a turn may have come since
        _take_in(conversation, added, head, models.model_of(snapshot, None)[1])
    _freeze(conversation, None if stored is None else stored.frozen)
    loaded = conversation.state.loaded
    if loaded is not None and (tokens is None or tokens > loaded):
        _read(conversation, ledger, snapshot, tokens)


def append(
    conversation: Conversation,
    ledger: FolderLedger,
    snapshot: Snapshot,
    turn_input: TurnInput,
    *,
    now: datetime,
    estimate: Estimate | None = None,
) -> Answer:
    """Write a turn. A repeated key writes nothing; a parent that is not the last turn makes a fork.

    Call `follow` before. `now` is the client's local time. `estimate` counts the tokens of a request that was
    assembled elsewhere.
    """
    answer = conversation.answer_for(turn_input.key, len(turn_input.result.messages))
    if answer is not None:
        return answer
    counter = models.model_of(snapshot, None)[1]
    head = conversation.state.head
    begins = head is None or not head.messages or turn_input.parent is None
    conversation_opening = conversation.opening
    request = answered_request(conversation, turn_input)
    report = _report(conversation, snapshot, turn_input, estimate)
    opening = _counted([conversation_opening or opening_message(now)], counter) if begins else ()
    sent_messages: Sequence[Message] = tuple(map(whole_message, turn_input.result.messages))
    answered = turn_input.answered
    if request is not None:
        sent_messages, answered = _as_sent(request.message, sent_messages), request.id
    bound = conversation.turn.requests.bind(sent_messages, conversation.manager.history, answered)
    split = bound.split
    messages = _counted(split.messages, counter)
    last_frozen = conversation.manager.frozen
    frozen = settled(last_frozen, None if request is None else request.proposal, split.messages)
    turn = NewTurn(
        messages=messages,
        counter=counter.name,
        opening=opening[0] if opening else None,
        key=turn_input.key,
        parent=_parent(conversation, ledger, turn_input.parent),
        options=_new_options(conversation, ledger),
        frozen=msgspec.UNSET if frozen is last_frozen else frozen_text(frozen),
        compaction=_server_compaction(split, counter),
        report=report,
        **_facts(conversation, snapshot, turn_input),
    )
    appended = ledger.append(conversation.session, turn)
    answer = Answer(appended.session, appended.turn, appended.forked)
    if not appended.forked:  # a fork may be renamed or deleted meanwhile: the ledger has its name
        conversation.add_answer(turn_input.key, answer, len(turn_input.result.messages))
    if not appended.repeated:
        _mark_delivered(conversation, ledger)
    if appended.repeated or appended.forked:
        return answer
    conversation.turn.facts.pop("" if request is None else request.id, None)
    conversation.state = replace(conversation.state, anchor=report or conversation.state.anchor)
    conversation.turn.options = None  # they are those of the ledger now
    follows = (head is None and not appended.before.seq) or appended.before == head
    if follows and split.summary is None:
        written = (
            messages
            if appended.before.messages or conversation_opening is not None
            else (*opening, *messages)
        )
        conversation.opening = None
        history = History.restored(
            [counted_message.message for counted_message in written],
            [counted_message.tokens for counted_message in written],
            counter.name,
            NO_GAP,
        )
        positions = range(appended.head.messages - len(written), appended.head.messages)
        _extend(conversation, history, positions, head=appended.head, counter=counter)
        conversation.turn.requests.settle(bound)
    else:
        follow(conversation, ledger, snapshot, tokens=conversation.state.loaded)
    if split.summary is None:  # else the history was replaced
        conversation.manager.freeze(
            frozen, at=None if request is None or request.proposal is None else request.at
        )
    stored_state = ledger.store.state(ledger.workspace, conversation.session)
    conversation.state = replace(
        conversation.state, frozen=None if stored_state is None else stored_state.frozen
    )
    _correct(conversation, ledger, snapshot)
    return answer


def answered_request(conversation: Conversation, turn_input: TurnInput) -> AssembledRequest | None:
    """Find the request of this window that a turn answers. None if there is none or it is forgotten."""
    history = conversation.manager.history
    return conversation.turn.requests.answered_by(turn_input.result.messages, history, turn_input.answered)


def open_conversation(conversation: Conversation, now: datetime) -> None:
    """Begin a conversation that has no message, for its first request.

    It keeps the time `now` as its beginning.
    """
    head = conversation.state.head
    if conversation.opening is None and (head is None or not head.messages):
        _put_opening(conversation, opening_message(now))


def _put_opening(conversation: Conversation, opening: Message) -> None:
    conversation.manager.clear_messages()
    conversation.manager.add([opening])
    conversation.opening = opening
    conversation.positions = [0]
    conversation.assembled.invalidate()


def _as_sent(sent_message: Message | None, messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of a turn. The user's message gets the preamble that it was sent with.

    A client appends either the user's message or the sent one. A turn that began with an event, without a
    user's message, gets the sent message.
    """
    if sent_message is None or sent_message.preamble is None:
        return messages
    for index, message in enumerate(messages):
        if message.role == "user" and message.preamble is None:
            content = message.content
            if content in (sent_message.content, sent_content(sent_message)):
                merged = replace(message, content=sent_message.content, preamble=sent_message.preamble)
                return [*messages[:index], merged, *messages[index + 1 :]]
            return messages
    return messages if sent_message.content else [sent_message, *messages]


def _facts(conversation: Conversation, snapshot: Snapshot, turn_input: TurnInput) -> dict[str, Any]:
    """Return the facts of a turn: of its last request, unless the client sent other values."""
    request_facts = facts_of(conversation, turn_input)
    facts = (
        request_facts.facts
        if request_facts
        else TurnFacts(role=snapshot.role, permissions=offered_tools.permissions(snapshot, Options(), {}))
    )
    outcome = turn_input.result.outcome
    return turn_facts(facts) | {
        "model": turn_input.model or facts.model,
        "event": facts.event if turn_input.event is None else turn_input.event,
        "outcome": None if outcome == TurnOutcome() else outcome,
    }


def facts_of(conversation: Conversation, turn_input: TurnInput) -> RequestFacts | None:
    """Return the facts of the request that a turn answers. None if they are not known."""
    request = answered_request(conversation, turn_input)
    return None if request is None else conversation.turn.facts.get(request.id)


def _report(
    conversation: Conversation, snapshot: Snapshot, turn_input: TurnInput, estimate: Estimate | None
) -> UsageReport | None:
    """Report the provider's count of the turn's last request beside our estimate of it."""
    request_facts = facts_of(conversation, turn_input)
    usage, estimate = turn_input.result.usage, request_facts.estimate if request_facts else estimate
    if usage is None or estimate is None:
        return None
    model = None if request_facts is None else request_facts.facts.model
    limits, counter = models.model_of(snapshot, turn_input.model or model)
    if limits.family.name != estimate.family:  # another model answered
        return None
    messages = turn_input.result.messages
    tokens = [counted_message.tokens for counted_message in _counted(messages, counter)]
    return report_of(usage, estimate, messages, tokens, correction=conversation.manager.correction)


def _correct(conversation: Conversation, ledger: FolderLedger, snapshot: Snapshot) -> None:
    """Correct the conversation's totals by what providers counted."""
    family = models.model_of(snapshot, None)[0].family.name
    anchor = conversation.state.anchor
    anchor = anchor if anchor is not None and anchor.family == family else None
    correction = ledger.correction(family)
    if correction.anchor is not anchor:
        correction = replace(correction, anchor=anchor)
    conversation.manager.correction = correction


def _server_compaction(split: SplitTurn, counter: TokenCounter) -> ServerCompaction | None:
    """The compaction by the provider's server that came with a turn."""
    if split.summary is None:
        return None
    return ServerCompaction(lazy.compaction_run.new_id(), _counted([split.summary], counter)[0], split.kept)


def _new_options(conversation: Conversation, ledger: FolderLedger) -> SessionOptions | None:
    """The options of the turn; None if the ledger has them as the conversation's already."""
    options = conversation.turn.options
    return None if options == ledger.session_options(conversation.session) else options


def _mark_delivered(conversation: Conversation, ledger: FolderLedger) -> None:
    """Mark the agents' messages that this turn handed out as delivered."""
    turn = conversation.turn
    ids = [message_id for message_ids in turn.handed_out.values() for message_id in message_ids]
    turn.handed_out = {}
    conversation.last_event = max(conversation.last_event, turn.handed_out_event)
    if ids:
        try:
            ledger.delivered(ids)
        except LedgerError as error:  # better handed out twice than never
            logger.warning("messages of agents are not marked as delivered: %s", error)


def ranges(positions: Iterable[int]) -> Ranges:
    """Join ascending positions to half-open ranges."""
    half_open: list[tuple[int, int]] = []
    for position in positions:
        if half_open and half_open[-1][1] == position:
            half_open[-1] = (half_open[-1][0], position + 1)
        else:
            half_open.append((position, position + 1))
    return tuple(half_open)


def _read(conversation: Conversation, ledger: FolderLedger, snapshot: Snapshot, tokens: int | None) -> None:
    """Read the history, or its last `tokens`."""
    previous_state = conversation.state
    history = _load(conversation, ledger, models.model_of(snapshot, None)[1], tokens)
    if history is None:
        conversation.forget()
        return
    is_other = (history.compaction, history.undone) != (previous_state.compaction, previous_state.undone)
    if is_other:
        conversation.drop_proposals()
    if is_other or previous_state.head is None:
        conversation.changed()
    if previous_state.head is None and history.messages:
        conversation.warned = None


def _load(
    conversation: Conversation, ledger: FolderLedger, counter: TokenCounter, tokens: int | None
) -> records.StoredHistory | None:
    """Load the history, or its last `tokens`; None if there is none. A state is replaced as a whole."""
    stored_state = ledger.store.state(ledger.workspace, conversation.session)
    text = None if stored_state is None else stored_state.frozen
    for attempt in range(TRIES):
        limit = None if tokens is None else min(tokens << attempt, max(tokens, MOST_READ))
        history = ledger.store.history(ledger.workspace, conversation.session, tokens=limit)
        if history is None:
            break
        conversation.manager.restore(
            [stored_message.message for stored_message in history.messages],
            tokens=[_tokens(stored_message, counter) for stored_message in history.messages],
            counter=counter.name,
            lead=history.lead,
            gap_messages=history.gap_messages,
            gap_tokens=history.gap_tokens,
        )
        conversation.positions = [stored_message.position for stored_message in history.messages]
        conversation.manager.freeze(frozen_of(text), at=_written(history))
        conversation.state = replace(
            conversation.state,
            head=history.head,
            compaction=history.compaction,
            undone=history.undone,
            loaded=tokens if history.gap_messages else None,
            frozen=text,
        )
        conversation.opening = None
        if tokens is None or limit == max(tokens, MOST_READ):
            break
        if _covers(conversation.manager.history, counter, ceil(tokens / SPARE)):
            break
    return history


def _written(history: records.StoredHistory) -> datetime | None:
    """When the last request of a history was made, as far as we know: when its session was last written."""
    with suppress(ValueError):  # a damaged row
        return datetime.fromisoformat(history.updated).astimezone() if history.messages else None
    return None


def _freeze(conversation: Conversation, text: str | None) -> None:
    """Begin the next requests as the ledger says, if another window changed that."""
    if text != conversation.state.frozen:
        conversation.state = replace(conversation.state, frozen=text)
        conversation.manager.freeze(frozen_of(text), at=None)


def _covers(history: History, counter: TokenCounter, available: int) -> bool:
    """Whether some loaded turn of the user, with all behind it, exceeds what fits.

    Then the same messages are sent as if all were loaded. A tool's result counts as long as it is after
    shortening.
    """
    if not history.gap.messages:
        return True
    sums, longest, total = history.sums(counter), int(available * LARGEST_NEW), 0
    turns = {start for start in history.grouping.turns if start >= history.least_start}
    for index in range(len(history) - 1, history.gap.lead - 1, -1):
        tokens = sums[index + 1] - sums[index]
        total += min(tokens, longest) if history.messages[index].role == "tool" else tokens
        if total > available and index in turns:
            return True
    return False


def _take_in(
    conversation: Conversation, new_messages: Sequence[StoredMessage], head: Head, counter: TokenCounter
) -> None:
    """Add messages that another window appended."""
    history = History.restored(
        [stored_message.message for stored_message in new_messages],
        [_tokens(stored_message, counter) for stored_message in new_messages],
        counter.name,
        NO_GAP,
    )
    _extend(
        conversation,
        history,
        [stored_message.position for stored_message in new_messages],
        head=head,
        counter=counter,
    )


def _extend(
    conversation: Conversation,
    history: History,
    positions: Iterable[int],
    *,
    head: Head,
    counter: TokenCounter,
) -> None:
    """Add messages that the ledger has and `counter` has counted."""
    conversation.manager.history.sums(counter)  # so that nothing is counted twice
    conversation.manager.append_stored(history)
    conversation.positions.extend(positions)
    conversation.state = replace(conversation.state, head=head)
    conversation.assembled.invalidate()


def _parent(
    conversation: Conversation, ledger: FolderLedger, parent: str | msgspec.UnsetType | None
) -> str | msgspec.UnsetType | None:
    """The parent, or the last turn if only compactions and undos came since."""
    last_turn = conversation.last_turn
    if not isinstance(parent, str) or parent == last_turn:
        return parent
    for turn in reversed(list(ledger.store.turns(ledger.workspace, conversation.session, last=PARENT_TURNS))):
        if turn.type == "query":
            return last_turn if turn.id == parent else parent
    return parent


def _counted(messages: Iterable[Message], counter: TokenCounter) -> tuple[Counted, ...]:
    history = History(messages)
    return tuple(
        Counted(message, after - before)
        for message, (before, after) in zip(history.messages, pairwise(history.sums(counter)), strict=True)
    )


def _tokens(stored_message: StoredMessage, counter: TokenCounter) -> int:
    if stored_message.counter == counter.name:
        return stored_message.tokens
    return count_message(
        counter,
        sent_content(stored_message.message),
        stored_message.message.tool_calls,
        stored_message.message.role,
    )
