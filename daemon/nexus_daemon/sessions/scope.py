"""A conversation that a request has for itself, and what requests do with it: in a thread that may block."""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from nexus_context import assembly
from nexus_context import snapshot as snapshots
from nexus_context.conversation.compaction.receipt import Receipt
from nexus_context.errors import RequestError
from nexus_context.ledger.errors import LedgerError
from nexus_context.snapshot import LoadInputs, Snapshot
from nexus_daemon import protocol
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import compaction, next_request, sync, turn_memory
from nexus_daemon.sessions import usage as costs
from nexus_daemon.sessions.attachments import Attachments
from nexus_daemon.sessions.compaction import Steps
from nexus_daemon.sessions.conversations import Answer, Conversation, threshold_at
from nexus_daemon.sessions.ledger_writer import FolderLedger
from nexus_daemon.sessions.sync import Given
from nexus_daemon.workspace.folders import Folder

if TYPE_CHECKING:  # most conversations are of no agent
    from nexus_context.agents import Agent


class SessionScope(msgspec.Struct, frozen=True):
    """A conversation, locked, and what belongs to it. `agent` is whose snapshot it is; None: the folder's.

    The snapshot is that with the model of the conversation (`next_request`).
    """

    folder: Folder
    conversation: Conversation
    snapshot: Snapshot
    ledger: FolderLedger
    locate: Locator
    agent: "Agent | None" = None

    def follow(self) -> None:
        """Read in what other windows wrote, as far as the next request can send it."""
        tokens = sync.needed(self.snapshot)
        sync.follow(self.conversation, self.ledger, self.snapshot, tokens=tokens)

    def follow_all(self) -> None:
        sync.follow(self.conversation, self.ledger, self.snapshot, tokens=None)


class NextTurn(msgspec.Struct, frozen=True):
    """What is known of the next turn: a request with an empty message, what the editor attaches, whose it is.

    The options of the request hold for a conversation without a turn; else those of its last turn do.
    """

    request: assembly.Request
    attachments: Attachments
    agent: str


class Measured(msgspec.Struct, frozen=True):
    """What a conversation holds and costs; in percent how full the context would be, were nothing cut."""

    count: int
    usage: protocol.TokenUsage
    wanted: float


def measured(scope: SessionScope) -> Measured:
    scope.follow()
    return _measured(scope)


def usage(scope: SessionScope) -> protocol.TokenUsage:
    scope.follow()
    spent = _usage(scope)
    return costs.with_cache(spent, scope.snapshot, scope.conversation, scope.locate)


def next_usage(scope: SessionScope, next_turn: NextTurn) -> protocol.TokenUsage:
    """What the next request costs with all that is sent beside the user's message."""
    conversation = scope.conversation
    snapshot, options = next_request.expected(
        scope.snapshot, conversation, scope.ledger, next_turn.request.options
    )
    sync.follow(conversation, scope.ledger, snapshot, tokens=sync.needed(snapshot))
    request = msgspec.structs.replace(next_turn.request, options=options)
    remembered_items = turn_memory.gathered(
        snapshot, conversation, scope.ledger, request, agent=next_turn.agent, passages=()
    ).behind(next_turn.attachments.items)
    items = remembered_items.items
    locate = turn_memory.with_files(scope.locate, items)
    spent, _ = costs.measure(snapshot, conversation, locate, request, memory=items)
    return costs.with_cache(spent, snapshot, conversation, locate)


def append(scope: SessionScope, given: Given) -> tuple[Answer, Measured | None]:
    """What became of the turn, and what the conversation costs now; None where the turn went to a fork."""
    scope.follow()
    conversation = scope.conversation
    if scope.agent is not None and conversation.head is None and conversation.session == scope.agent.session:
        _begin(scope, scope.agent.id)
    if conversation.warned is None:  # what was reached before the daemon started was told then
        conversation.warned = threshold_at(_measured(scope).wanted)
    answer = sync.append(conversation, scope.ledger, scope.snapshot, given)
    return answer, _measured(scope) if answer.session == conversation.session else None


def all_messages(scope: SessionScope) -> list[msgspec.Raw]:
    scope.follow_all()
    return scope.conversation.manager.encoded_in_pieces()


def page(scope: SessionScope, limit: int | None, before: int | None) -> tuple[list[msgspec.Raw], int | None]:
    """The last messages before a position, and the position of the first of them if there are more."""
    scope.follow()
    first, last = _bounds(scope.conversation, limit, before)
    gap = scope.conversation.manager.history.gap
    if gap.messages and first <= gap.lead:
        scope.follow_all()
        first, last = _bounds(scope.conversation, limit, before)
    shown = scope.conversation.manager.history.encoded_slice(first, last)
    return shown, scope.conversation.positions[first] if 0 < first < last else None


def clear(scope: SessionScope) -> protocol.TokenUsage:
    scope.follow()
    known = scope.conversation.head is not None
    head = scope.ledger.clear(scope.conversation.session).head if known else None
    scope.conversation.forget()
    scope.conversation.head = head
    return _usage(scope)


def compact(scope: SessionScope, asked: protocol.CompactParams) -> Steps[tuple[Receipt, protocol.TokenUsage]]:
    session = scope.conversation.session
    if scope.ledger.store.head(scope.ledger.workspace, session) is None:
        raise RequestError(
            f"There is no session {session!r} in {scope.ledger.workspace}.", code="unknown-session"
        )
    if any(isinstance(pin, int) for pin in asked.pins):  # they count messages of the whole conversation
        scope.follow_all()
    receipt = yield from compaction.compact(
        scope.snapshot,
        scope.conversation,
        scope.ledger,
        pins=asked.pins,
        instructions=asked.instructions,
        overflow=asked.overflow,
        now=datetime.now().astimezone(),
    )
    return receipt, _usage(scope)


def undo(scope: SessionScope, compaction: str | None) -> protocol.TokenUsage:
    scope.ledger.undo(scope.conversation.session, compaction)
    return usage(scope)


def export(scope: SessionScope, form: str) -> str:
    from nexus_context.ledger import jsonl, markdown  # rarely needed

    write = {"jsonl": jsonl.lines, "markdown": markdown.pieces}.get(form)
    if write is None:
        raise RequestError(f"Unknown format {form!r}. Known formats: jsonl, markdown.", code="unknown-format")
    session = scope.conversation.session
    return "".join(write(session, scope.ledger.store.turns(scope.ledger.workspace, session)))


def snapshot_of_nothing(inputs: LoadInputs) -> Snapshot:
    """The settings where no folder is open: the user's own."""
    return snapshots.load(inputs.user_home, inputs)


def _begin(scope: SessionScope, agent: str) -> None:
    """Begin an agent's conversation in its name, unless another window just did."""
    try:
        scope.ledger.create(scope.conversation.session, agent)
    except LedgerError as error:
        if error.code != "session-exists":
            raise
    scope.follow()


def _usage(scope: SessionScope) -> protocol.TokenUsage:
    return _measured(scope).usage


def _measured(scope: SessionScope) -> Measured:
    conversation = scope.conversation
    options = next_request.besides(scope.snapshot, conversation, scope.ledger)
    request = assembly.Request(options=options)
    spent, wanted = costs.measure(scope.snapshot, conversation, scope.locate, request)
    return Measured(len(conversation.manager), spent, wanted)


def _bounds(conversation: Conversation, limit: int | None, before: int | None) -> tuple[int, int]:
    """The indexes of a page. After a compaction the summary stands first, whatever its position is."""
    positions: Sequence[int] = conversation.positions
    least = 0 if conversation.compaction is None else 1
    last = len(positions)
    if before is not None:
        last = bisect_left(positions, before, lo=least)
        if least and before == positions[0]:
            last = 0
    return max(0, last - limit) if limit is not None else 0, last
