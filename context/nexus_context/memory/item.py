"""Defines one remembered item, which is put before the user's message."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from nexus_context.conversation.shortening import shorten_text
from nexus_context.errors import Span
from nexus_context.folder.prompt import texts

Source = Literal["instructions", "message", "memory", "event", "knowledge"]
ORDER: tuple[Source, ...] = Source.__args__  # type: ignore[attr-defined]
"""The order of items: attachments of the editor, messages of agents and L1, events, then knowledge
(SPEC §9).
"""

BASE: Mapping[Source, float] = {
    "instructions": 4.0,
    "message": 3.0,
    "memory": 2.0,
    "knowledge": 1.0,
    "event": 0.0,
}
"""Where the priorities of a source begin; they stay below that number plus 1.

A direct message always outranks other memory, whatever its own priority.
"""

LONGEST_ITEM = 2_000
"""Characters of one remembered message or summary."""


class MemoryItem(msgspec.Struct, frozen=True):
    """A remembered text that is put before the user's message.

    `label` names the row of its tokens for people. If there is not enough room, the items of the lowest
    `priority` are left out. `path` and `span` are its place in a file. Only a direct message has an `id`, by
    which it is marked as delivered once it is sent.
    """

    source: Source
    label: str
    text: str
    priority: float = 0.0
    path: str | None = None
    span: Span | None = None
    id: str | None = None


def brief(text: str, most: int = LONGEST_ITEM) -> str:
    """Strip the text and shorten it to about `most` characters. A mark shows where text is missing."""
    return shorten_text(text.strip(), most)


def line(name: str, **values: object) -> str:
    """Return the line `name` of `folder/prompt/texts/memory_lines.md`, filled in with these values. A model
    sees it.
    """
    return texts.table("memory_lines")[name].format(**values)
