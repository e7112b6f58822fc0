"""Turn what the ledger stores into events of the bus: turns with their parts, compactions, messages of
agents.

1. A turn becomes the events of its messages, then one `turn`. Messages that extend the turn later become
   events in the same way.
2. What this process wrote is published at once. What another process wrote is published when it is noticed:
   the newest MOST_TURNS turns of a session, and MOST_MESSAGES messages.
3. A turn in the conversation `agent:x` belongs to the live agent `x`, and to the agents above it. A turn in
   any other conversation belongs to `main`.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_daemon.process import lazy

if TYPE_CHECKING:
    from nexus_context.conversation.message import Message
    from nexus_context.ledger.records import DirectMessage, Head
    from nexus_context.ledger.store import Ledger
    from nexus_context.memory.events import Event

Reason = Literal[
    "created", "parameters", "appended", "compacted", "undone", "cleared", "renamed", "deleted", "forked"
]
"""How a conversation changed."""

SESSION = "agent:"
"""Prefix of the name of an agent's conversation."""
MOST_TURNS = 50
MOST_MESSAGES = 100
_MESSAGE_FIELDS = ("id", "source", "target", "content", "priority", "node", "task")


def turn_events(messages: "Iterable[Message]", *, session: str, turn: str) -> "Iterator[Event]":
    """Yield the events of a turn, then the event that the ledger has the turn."""
    messages = tuple(messages)
    for event in lazy.events.events_of(messages, session=session):
        yield msgspec.structs.replace(event, turn=turn)
    data = {"turn": turn, "messages": len(messages)}
    yield lazy.events.Event(action="turn", data=data, session=session, turn=turn)


def compaction_event(session: str, turn: str, reason: str) -> "Event":
    """Build the event that a conversation was compacted, or that a compaction was undone."""
    data = {"turn": turn, "reason": reason}
    return lazy.events.Event(action="compaction", data=data, session=session, turn=turn)


def message_event(message: "DirectMessage") -> "Event":
    """Build the event that an agent wrote to another."""
    values = {name: getattr(message, name) for name in _MESSAGE_FIELDS}
    data = {name: value for name, value in values.items() if value is not None}
    return lazy.events.Event(action="node.message", data=data)


def stored_events(
    ledger: "Ledger", workspace: str, session: str, *, after: "Head | None", until: "Head | None"
) -> "Iterator[Event]":
    """Yield the events of the newest turns of a session after the head `after`, up to `until` or the end.

    For a turn that was extended since `after`, only the events of its new messages are included.
    """
    agent, *ancestors = lineage(ledger, workspace, session)
    head = ledger.head(workspace, session)
    until = until or head
    if head is None or until is None:
        return
    seen_seq, seen_messages = (0, 0) if after is None else (after.seq, after.messages)
    first_seq = max(seen_seq, until.seq - MOST_TURNS + 1, 1)
    for turn in ledger.turns(workspace, session, last=head.seq - first_seq + 1):
        if turn.seq > until.seq:
            break
        messages = turn.messages[max(seen_messages - turn.first, 0) : until.messages - turn.first]
        if turn.seq <= seen_seq and not messages:
            continue
        if turn.type == "query":
            events = turn_events(messages, session=session, turn=turn.id)
        else:
            reason = "compacted" if turn.type == "compaction" else "undone"
            events = iter((compaction_event(session, turn.id, reason),))
        for event in events:
            yield msgspec.structs.replace(event, agent=agent, above=tuple(ancestors))


def lineage(ledger: "Ledger", workspace: str, session: str) -> tuple[str, ...]:
    """Return the live agent that a session belongs to, and the agents above it, as names. At least `main`."""
    name = session.removeprefix(SESSION) if session.startswith(SESSION) else ""
    parents = {agent.name: agent.parent for agent in ledger.agents.running(workspace)} if name else {}
    names: list[str] = []
    ancestor: str | None = name
    while ancestor in parents and ancestor not in names:
        names.append(ancestor)
        ancestor = parents[ancestor]
    return (*names, MAIN)
