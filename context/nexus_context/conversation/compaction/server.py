"""Takes a compaction that a provider's server made out of the answer that it came with.

1. A readable or encrypted `compaction` part in an assistant's message counts. Of several in one turn the last
   one counts, because it replaces the others, too. A failed one stays where it is.
2. The turn is stored without the compaction, and a compaction follows the turn. Its summary is an assistant's
   message with the part alone. The rest of the answer, and later messages of the turn, are kept.
3. The parts before it in its answer become a message of their own, because the compaction replaces them. If
   one of them marks the place of a tool call, they stay with the rest, because the call's result is kept.
4. If nothing remains of a message, the message is left out.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.compaction.receipt import Lost, Receipt
from nexus_context.conversation.message import Message
from nexus_context.conversation.parts import compaction_in
from nexus_context.conversation.summary import server_compaction

LONGEST_TEXT = 20_000
"""Characters of a compaction's text in its receipt; the summary has all of it."""


class SplitTurn(NamedTuple):
    """The messages of a turn without compactions. If there was one, `summary` replaces all messages before
    the last `kept` messages.
    """

    messages: Sequence[Message]
    summary: Message | None = None
    kept: int = 0


class ServerSizes(NamedTuple):
    """How a compaction changed the history: the number of replaced messages, and the tokens before and after
    it.
    """

    replaced: int
    before: int
    after: int


def split_turn(messages: Sequence[Message]) -> SplitTurn:
    """Take the compactions by servers out of the messages of a turn."""
    if not any(message.content.__class__ is list and _places(message) for message in messages):
        return SplitTurn(messages)
    remaining: list[Message] = []
    summary, kept_start = None, 0
    for message in messages:
        places = _places(message)
        if not places:
            remaining.append(message)
            continue
        content: list[Any] = message.content  # type: ignore[assignment]  # it has parts
        summary = Message("assistant", [content[places[-1]]])
        parts_before, parts_behind = _parts_around(content, places)
        if parts_before:
            remaining.append(msgspec.structs.replace(message, content=parts_before, tool_calls=()))
        kept_start = len(remaining)
        if parts_behind or message.tool_calls:
            remaining.append(msgspec.structs.replace(message, content=parts_behind or None))
    return SplitTurn(tuple(remaining), summary, len(remaining) - kept_start)


def opaque_receipt(compaction: str, summary: Message, sizes: ServerSizes, *, made_at: datetime) -> Receipt:
    """Make the receipt of a compaction by a server. `made_at` is a local time."""
    part = server_compaction(summary)
    assert part is not None  # noqa: S101 - `split_turn` made the summary
    text = part.text.strip()
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]} […]"
    return Receipt(
        id=compaction,
        reason="provider",
        summarizer=part.provider,
        replaced_messages=sizes.replaced,
        tokens_before=sizes.before,
        tokens_after=sizes.after,
        created=made_at.isoformat(timespec="seconds"),
        lost=Lost(),
        opaque=True,
        text=text or msgspec.UNSET,
    )


def _places(message: Message) -> list[int]:
    """The indexes of the compactions in a message."""
    content = message.content
    if message.role != "assistant" or not isinstance(content, list):
        return []
    return [
        at
        for at, part in enumerate(content)
        if part.__class__ is dict and part.get("type") == "compaction" and compaction_in(part) is not None
    ]


def _parts_around(content: list[Any], places: list[int]) -> tuple[list[Any], list[Any]]:
    """The parts before the last compaction, and those behind it."""
    parts_before = [part for at, part in enumerate(content[: places[-1]]) if at not in places]
    parts_behind = content[places[-1] + 1 :]
    if any(isinstance(part, dict) and part.get("type") == "tool_call" for part in parts_before):
        return [], [*parts_before, *parts_behind]
    return parts_before, parts_behind
