"""Do the work of `nexus/session/*` requests on a locked conversation. All of it blocks: call it in worker
threads.
"""

from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from nexus_context.assistants.importing import jsonl
from nexus_context.errors import RequestError
from nexus_context.ledger import markdown
from nexus_context.ledger.errors import LedgerError
from nexus_daemon import protocol
from nexus_daemon.sessions import sync, usage
from nexus_daemon.sessions.budget_warning import threshold_at
from nexus_daemon.sessions.conversations import Answer, Conversation
from nexus_daemon.sessions.scope import SessionScope
from nexus_daemon.sessions.session_names import find_session
from nexus_daemon.sessions.sync import TurnInput
from nexus_daemon.sessions.usage import Measured

if TYPE_CHECKING:
    from nexus_context.ledger.records import Session
    from nexus_daemon.sessions.ledger_writer import FolderLedger


def append(scope: SessionScope, turn_input: TurnInput) -> tuple[Answer, Measured | None]:
    """Append a turn. Return the outcome and what the conversation costs now.

    The cost is None if the turn forked the conversation.
    """
    scope.follow()
    conversation, agent = scope.conversation, scope.agent
    if agent is not None and conversation.state.head is None and conversation.session == agent.session:
        _begin(scope, agent.id)
    if conversation.warned is None:  # the user was warned of it before the daemon started
        conversation.warned = threshold_at(usage.measure_scope(scope).percent)
    estimate = None
    if turn_input.result.usage is not None and sync.facts_of(conversation, turn_input) is None:
        estimate = usage.estimate_request(scope)
    answer = sync.append(
        conversation, scope.ledger, scope.snapshot, turn_input, now=scope.client.now(), estimate=estimate
    )
    return answer, usage.measure_scope(scope) if answer.session == conversation.session else None


def read_messages(scope: SessionScope) -> list[msgspec.Raw]:
    """Return all messages since the last compaction, as JSON."""
    scope.follow_all()
    return (
        []
        if scope.conversation.opening is not None
        else scope.conversation.manager.history.encoded_in_pieces()
    )


def read_page(
    scope: SessionScope, limit: int | None, before: int | None
) -> tuple[list[msgspec.Raw], int | None]:
    """Return the last messages before a position, and the position of the first of them if there are more."""
    scope.follow()
    conversation = scope.conversation
    if conversation.opening is not None:
        return [], None
    first_index, end_index = _bounds(conversation, limit, before)
    gap = conversation.manager.history.gap
    if gap.messages and first_index <= gap.lead:
        scope.follow_all()
        first_index, end_index = _bounds(conversation, limit, before)
    messages = conversation.manager.history.encoded_slice(first_index, end_index)
    return messages, conversation.positions[first_index] if 0 < first_index < end_index else None


def clear(scope: SessionScope) -> protocol.TokenUsage:
    """Clear the conversation, and return what it still costs."""
    scope.follow()
    conversation = scope.conversation
    if conversation.state.head is not None:
        scope.ledger.clear(conversation.session)
    conversation.forget()
    scope.follow()
    return usage.measure_scope(scope).usage


def undo_compaction(scope: SessionScope, compaction: str | None) -> protocol.TokenUsage:
    """Undo a compaction and those after it. None means the last one."""
    scope.ledger.undo(scope.conversation.session, compaction)
    return usage.read_usage(scope)


def fork(scope: SessionScope, to: str, turn: str | int | None) -> "Session":
    """Create a conversation that shares the turns up to `turn`.

    RequestError with the code unknown-turn if there is none.
    """
    ledger, session = scope.ledger, scope.conversation.session
    return ledger.fork(session, to, _turn_id(ledger, session, turn) if isinstance(turn, int) else turn)


def _turn_id(ledger: "FolderLedger", session: str, number: int) -> str:
    turns = find_session(ledger.store, ledger.workspace, session).head.seq
    if not 1 <= number <= turns:
        count = "1 turn" if turns == 1 else f"{turns:,} turns"
        raise LedgerError(
            f"The session {session!r} has {count}; there is no turn {number}.", code="unknown-turn"
        )
    return next(iter(ledger.store.turns(ledger.workspace, session, last=turns - number + 1))).id


def render_anew(scope: SessionScope) -> protocol.TokenUsage:
    """Make the next request begin with the current system prompt and tools, and return the usage."""
    scope.ledger.render_anew(scope.conversation.session)
    scope.conversation.drop_proposals()
    return usage.read_usage(scope)


def export(scope: SessionScope, form: str) -> str:
    """Return the whole conversation as text. `form` is `jsonl` or `markdown`."""
    if form not in ("jsonl", "markdown"):
        raise RequestError(f"Unknown format {form!r}. Known formats: jsonl, markdown.", code="unknown-format")
    session, ledger = scope.conversation.session, scope.ledger
    turns = ledger.store.turns(ledger.workspace, session)
    if form == "markdown":
        return "".join(markdown.pieces(session, turns))
    return "".join(jsonl.lines(session, turns, ledger.parameters(session)))


def _begin(scope: SessionScope, agent: str) -> None:
    """Begin an agent's conversation in its name, unless another window just did.

    What the turn under way was made with stays.
    """
    try:
        scope.ledger.create(scope.conversation.session, agent, {})
    except LedgerError as error:
        if error.code != "session-exists":
            raise
    scope.follow()


def _bounds(conversation: Conversation, limit: int | None, before: int | None) -> tuple[int, int]:
    """The indexes of a page. After a compaction the summary comes first, whatever its position is."""
    positions = conversation.positions
    least = 0 if conversation.state.compaction is None else 1
    end_index = len(positions)
    if before is not None:
        end_index = bisect_left(positions, before, lo=least)
        if least and before == positions[0]:
            end_index = 0
    return max(0, end_index - limit) if limit is not None else 0, end_index
