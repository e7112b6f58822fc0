"""Creates and delivers direct messages (`node.message`) from one agent to another in a workspace.

1. The highest priority comes first, then the earliest message.
2. A message expires `ttl` seconds after it was made; an expired one is never delivered.
3. A message waits until its agent's model was sent it, and it is marked as delivered. Reading the inbox does
   not mark it.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict, Unpack
from uuid import uuid4

import msgspec

from nexus_context.errors import RequestError
from nexus_context.ledger.records import DirectMessage
from nexus_context.ledger.store import Ledger
from nexus_context.memory.item import BASE, MemoryItem, line

DEFAULT_PRIORITY = 0.5
LONGEST_CONTENT = 16_000
"""Characters of a direct message: it takes room in the receiver's context and should be brief."""
MOST_DELIVERED = 20
"""Messages that one turn delivers; the others wait for the next turn."""
_JUST_BELOW = 0.999


class MessageOptions(TypedDict, total=False):
    """The optional fields of a direct message. `ttl` is in seconds."""

    priority: float
    ttl: float | None
    node: str | None
    task: str | None
    metadata: Any
    session: str | None
    id: str | None


def make(
    *, workspace: str, source: str, target: str, content: str, now: float, **options: Unpack[MessageOptions]
) -> DirectMessage:
    """Create a direct message. `now` is in seconds since the epoch; a new id is made if `id` is not set.

    Raise RequestError, code `bad-message`, which names the invalid field.
    """
    for name, text in (("workspace", workspace), ("source", source), ("target", target)):
        _check_text(name, text)
    for name in ("node", "task", "session", "id"):
        if options.get(name) is not None:
            _check_text(name, options.get(name))
    _check_text("content", content)
    if len(content) > LONGEST_CONTENT:
        raise _bad(
            f"content has {len(content):,} characters; a message may have {LONGEST_CONTENT:,}. Put the rest "
            "into a file and name the file."
        )
    priority, ttl = options.get("priority", DEFAULT_PRIORITY), options.get("ttl")
    if not _is_number(priority) or not 0 <= priority <= 1:
        raise _bad(f"priority is {priority!r}; it must be a number from 0 to 1.")
    if ttl is not None and (not _is_number(ttl) or ttl <= 0):
        raise _bad(f"ttl is {ttl!r}; it must be a number of seconds above 0, or omitted.")
    return DirectMessage(
        id=options.get("id") or uuid4().hex,
        workspace=workspace,
        source=source,
        target=target,
        content=content,
        created=now,
        node=options.get("node"),
        priority=float(priority),
        ttl=None if ttl is None else float(ttl),
        task=options.get("task"),
        metadata=_copied(options.get("metadata")),
        session=options.get("session"),
    )


def inbox(
    ledger: Ledger, workspace: str, agent: str, *, now: float, node: str | None = None
) -> list[DirectMessage]:
    """Return the messages that wait for an agent, in the order of delivery."""
    return waiting(ledger.messages.inbox(workspace, agent, now=now, node=node, limit=MOST_DELIVERED), now=now)


def waiting(messages: Iterable[DirectMessage], *, now: float) -> list[DirectMessage]:
    """Return the messages that have not expired, in the order of rule 1. `messages` must be in order of
    arrival.
    """
    return sorted(
        (message for message in messages if not is_expired(message, now=now)),
        key=lambda message: -message.priority,
    )


def is_expired(message: DirectMessage, *, now: float) -> bool:
    """Whether the message has expired at `now`, in seconds since the epoch."""
    return message.ttl is not None and now >= message.created + message.ttl


def items(messages: Sequence[DirectMessage]) -> list[MemoryItem]:
    """Convert messages to items for their agent's context, in the same order."""
    return [
        MemoryItem(
            "message",
            f"message from {message.source}",
            rendered(message),
            BASE["message"] + message.priority * _JUST_BELOW,
            id=message.id,
        )
        for message in messages
    ]


def rendered(message: DirectMessage) -> str:
    """Render a message for the agent: sender, task, priority and content."""
    head = [line("from", source=message.source)]
    if message.task is not None:
        head.append(line("task", task=message.task))
    if message.priority != DEFAULT_PRIORITY:
        head.append(line("priority", priority=f"{message.priority:g}"))
    return f"{', '.join(head)}:\n{message.content.strip()}"


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise _bad(f"{name} is of type {type(value).__name__}; it must be a string.")
    if not value.strip():
        raise _bad(f"{name} is empty; it must contain text.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _copied(metadata: Any) -> Any:
    if metadata is None:
        return None
    try:
        return msgspec.json.decode(msgspec.json.encode(metadata))
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise _bad(f"metadata is not a JSON value: {error}.") from None


def _bad(message: str) -> RequestError:
    return RequestError(message, code="bad-message")
