"""Direct messages (`node.message`): from one agent to another, in one workspace.

1. The highest priority first, then in the order in which they came.
2. From `ttl` seconds after it was made a message is expired: it is never given to anybody.
3. A message waits until it is marked as delivered: when it was sent to its agent's model, not when it was
   looked at.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from nexus_context.errors import RequestError
from nexus_context.ledger.records import DirectMessage
from nexus_context.ledger.store import Ledger
from nexus_context.memory.item import BASE, Item, line

DEFAULT_PRIORITY = 0.5
LONGEST_CONTENT = 16_000
"""Characters of a direct message: it stands in the context of whoever gets it, and should be brief."""
MOST_DELIVERED = 20
"""Messages that one turn delivers; the others wait for the next."""
_JUST_BELOW = 0.999


def make(
    *,
    workspace: str,
    source: str,
    target: str,
    content: str,
    now: float,
    priority: float = DEFAULT_PRIORITY,
    ttl: float | None = None,
    node: str | None = None,
    task: str | None = None,
    metadata: Any = None,
    session: str | None = None,
    id: str | None = None,  # noqa: A002 (the field's name)
) -> DirectMessage:
    """A message with a new id, unless one is given. `now` is in seconds since the epoch, `ttl` in seconds.

    Raises RequestError, code `bad-message`, which names the field that cannot be.
    """
    for name, text in (("workspace", workspace), ("source", source), ("target", target)):
        _check_text(name, text)
    for name, optional in (("node", node), ("task", task), ("session", session), ("id", id)):
        if optional is not None:
            _check_text(name, optional)
    _check_text("content", content)
    if len(content) > LONGEST_CONTENT:
        raise _bad(
            f"content has {len(content):,} characters; a message may have {LONGEST_CONTENT:,}. Put the rest "
            "into a file and name it."
        )
    if not _is_number(priority) or not 0 <= priority <= 1:
        raise _bad(f"priority is {priority!r}; it must be a number from 0 to 1.")
    if ttl is not None and (not _is_number(ttl) or ttl <= 0):
        raise _bad(f"ttl is {ttl!r}; it must be a number of seconds above 0, or left out.")
    return DirectMessage(
        id=id or uuid4().hex,
        workspace=workspace,
        source=source,
        target=target,
        content=content,
        created=now,
        node=node,
        priority=float(priority),
        ttl=None if ttl is None else float(ttl),
        task=task,
        metadata=_copied(metadata),
        session=session,
    )


def inbox(
    ledger: Ledger, workspace: str, agent: str, *, now: float, node: str | None = None
) -> list[DirectMessage]:
    """What waits for an agent, in the order of delivery."""
    return waiting(ledger.inbox(workspace, agent, now=now, node=node, limit=MOST_DELIVERED), now=now)


def waiting(messages: Iterable[DirectMessage], *, now: float) -> list[DirectMessage]:
    """Those that have not expired, as rule 1 says; `messages` are in the order in which they came."""
    return sorted((one for one in messages if not is_expired(one, now=now)), key=lambda one: -one.priority)


def is_expired(message: DirectMessage, *, now: float) -> bool:
    """Whether its time is over at `now`, in seconds since the epoch."""
    return message.ttl is not None and now >= message.created + message.ttl


def items(messages: Sequence[DirectMessage]) -> list[Item]:
    """The messages for their agent's context, in the order that they have."""
    return [
        Item(
            "message",
            f"message from {one.source}",
            rendered(one),
            BASE["message"] + one.priority * _JUST_BELOW,
            id=one.id,
        )
        for one in messages
    ]


def rendered(message: DirectMessage) -> str:
    """What the agent reads: who it is from, for which task, how urgent it is, and what it says."""
    said = [line("from", source=message.source)]
    if message.task is not None:
        said.append(line("task", task=message.task))
    if message.priority != DEFAULT_PRIORITY:
        said.append(line("priority", priority=f"{message.priority:g}"))
    return f"{', '.join(said)}:\n{message.content.strip()}"


def _check_text(name: str, given: Any) -> None:
    if not isinstance(given, str):
        raise _bad(f"{name} is of the type {type(given).__name__}; it must be a text.")
    if not given.strip():
        raise _bad(f"{name} is empty; it must say something.")


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)


def _copied(metadata: Any) -> Any:
    if metadata is None:
        return None
    try:
        return msgspec.json.decode(msgspec.json.encode(metadata))
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise _bad(f"metadata is no JSON value: {error}.") from None


def _bad(message: str) -> RequestError:
    return RequestError(message, code="bad-message")
