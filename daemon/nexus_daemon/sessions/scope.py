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
from nexus_daemon.api import cache_usage, context
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import compaction, next_request, sync, turn_memory
from nexus_daemon.sessions.attachments import Attachments
from nexus_daemon.sessions.compaction import Steps
from nexus_daemon.sessions.conversations import Answer, Conversation, threshold_at
from nexus_daemon.sessions.ledger_writer import Book
from nexus_daemon.sessions.sync import Given
from nexus_daemon.workspace.folders import Folder

if TYPE_CHECKING:  # most conversations are of no agent
    from nexus_context.agents import Agent


class Used(msgspec.Struct, frozen=True):
    """A conversation, locked, and what belongs to it. `agent` is whose snapshot it is; None: the folder's.

    The snapshot is that with the model of the conversation (`next_request`).
    """

    folder: Folder
    conversation: Conversation
    snapshot: Snapshot
    book: Book
    locate: Locator
    agent: "Agent | None" = None

    def follow(self) -> None:
        """Read in what other windows wrote, as far as the next request can send it."""
        tokens = sync.needed(self.snapshot)
        sync.follow(self.conversation, self.book, self.snapshot, tokens=tokens)

    def follow_all(self) -> None:
        sync.follow(self.conversation, self.book, self.snapshot, tokens=None)


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


def measured(used: Used) -> Measured:
    used.follow()
    return _measured(used)


def usage(used: Used) -> protocol.TokenUsage:
    used.follow()
    spent = _usage(used)
    return cache_usage.with_cache(spent, used.snapshot, used.conversation, used.locate)


def next_usage(used: Used, next_turn: NextTurn) -> protocol.TokenUsage:
    """What the next request costs with all that is sent beside the user's message."""
    conversation = used.conversation
    snapshot, options = next_request.expected(
        used.snapshot, conversation, used.book, next_turn.request.options
    )
    sync.follow(conversation, used.book, snapshot, tokens=sync.needed(snapshot))
    request = msgspec.structs.replace(next_turn.request, options=options)
    remembered_items = turn_memory.gathered(
        snapshot, conversation, used.book, request, agent=next_turn.agent, passages=()
    ).behind(next_turn.attachments.items)
    items = remembered_items.items
    locate = turn_memory.with_files(used.locate, items)
    spent, _ = context.measure(snapshot, conversation, locate, request, items)
    return cache_usage.with_cache(spent, snapshot, conversation, locate)


def append(used: Used, given: Given) -> tuple[Answer, Measured | None]:
    """What became of the turn, and what the conversation costs now; None where the turn went to a fork."""
    used.follow()
    conversation = used.conversation
    if used.agent is not None and conversation.head is None and conversation.session == used.agent.session:
        _begin(used, used.agent.id)
    if conversation.warned is None:  # what was reached before the daemon started was told then
        conversation.warned = threshold_at(_measured(used).wanted)
    answer = sync.append(conversation, used.book, used.snapshot, given)
    return answer, _measured(used) if answer.session == conversation.session else None


def all_messages(used: Used) -> list[msgspec.Raw]:
    used.follow_all()
    return used.conversation.manager.encoded_in_pieces()


def page(used: Used, limit: int | None, before: int | None) -> tuple[list[msgspec.Raw], int | None]:
    """The last messages before a position, and the position of the first of them if there are more."""
    used.follow()
    first, last = _bounds(used.conversation, limit, before)
    gap = used.conversation.manager.history.gap
    if gap.messages and first <= gap.lead:
        used.follow_all()
        first, last = _bounds(used.conversation, limit, before)
    shown = used.conversation.manager.history.encoded_slice(first, last)
    return shown, used.conversation.positions[first] if 0 < first < last else None


def clear(used: Used) -> protocol.TokenUsage:
    used.follow()
    known = used.conversation.head is not None
    head = used.book.clear(used.conversation.session).head if known else None
    used.conversation.forget()
    used.conversation.head = head
    return _usage(used)


def compact(used: Used, asked: protocol.CompactParams) -> Steps[tuple[Receipt, protocol.TokenUsage]]:
    session = used.conversation.session
    if used.book.ledger.head(used.book.workspace, session) is None:
        raise RequestError(
            f"There is no session {session!r} in {used.book.workspace}.", code="unknown-session"
        )
    if any(isinstance(pin, int) for pin in asked.pins):  # they count messages of the whole conversation
        used.follow_all()
    receipt = yield from compaction.compact(
        used.snapshot,
        used.conversation,
        used.book,
        pins=asked.pins,
        instructions=asked.instructions,
        overflow=asked.overflow,
        now=datetime.now().astimezone(),
    )
    return receipt, _usage(used)


def undo(used: Used, compaction: str | None) -> protocol.TokenUsage:
    used.book.undo(used.conversation.session, compaction)
    return usage(used)


def export(used: Used, form: str) -> str:
    from nexus_context.ledger import jsonl, markdown  # rarely needed

    write = {"jsonl": jsonl.lines, "markdown": markdown.pieces}.get(form)
    if write is None:
        raise RequestError(f"Unknown format {form!r}. Known formats: jsonl, markdown.", code="unknown-format")
    session = used.conversation.session
    return "".join(write(session, used.book.ledger.turns(used.book.workspace, session)))


def snapshot_of_nothing(inputs: LoadInputs) -> Snapshot:
    """The settings where no folder is open: the user's own."""
    return snapshots.load(inputs.user_home, inputs)


def _begin(used: Used, agent: str) -> None:
    """Begin an agent's conversation in its name, unless another window just did."""
    try:
        used.book.create(used.conversation.session, agent)
    except LedgerError as error:
        if error.code != "session-exists":
            raise
    used.follow()


def _usage(used: Used) -> protocol.TokenUsage:
    return _measured(used).usage


def _measured(used: Used) -> Measured:
    conversation = used.conversation
    options = next_request.besides(used.snapshot, conversation, used.book)
    request = assembly.Request(options=options)
    spent, wanted = context.measure(used.snapshot, conversation, used.locate, request)
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
