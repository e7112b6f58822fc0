"""Represents a summary as a user message whose first line is a marker.

    [CONTEXT SUMMARY]
    when it was made and what it stands for
    ---
    the summary

A message is a summary if its `meta` has the mark `isCompactSummary`, as in Claude Code. Its text does not
matter, because users write whatever they like. The ledger adds the mark to summaries that earlier versions
stored without it, and importers add it to those of other programs. An assistant's message that holds only a
compaction by a provider's server is a summary, too.

Pins, which must stay verbatim, have a section of their own. Each is in a fence, so that it can be read back
and carried over when this summary is itself replaced.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from nexus_context.conversation.message import Message, text_of, text_part
from nexus_context.conversation.parts import (
    PROVIDER_NAMES,
    CompactionPart,
    ThinkingPart,
    compaction_in,
    read_part,
)
from nexus_context.folder.prompt import texts

MARKER = "[CONTEXT SUMMARY]"
RULE = "\n---\n"
FOREIGN_OPENINGS = (
    "This session is being continued from a previous conversation",  # Claude Code
    "Another language model started to solve this problem and produced a summary",  # Codex
    "I spoke to you previously about a number of things.",  # aider
)
"""How the summaries of other programs begin: this is left out."""
SUMMARY_META = {"isCompactSummary": True}
"""The `meta` of a message that replaced older ones."""

_FENCE = re.compile(r"^(`{3,})pinned\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_TICKS = re.compile(r"`{3,}")
_WRAPPER = re.compile(r"</?summary>|^[ \t]*Summary:[ \t]*$", re.MULTILINE)
_CONTINUE = re.compile(
    r"^(?:Please continue the conversation from where we left|Continue the conversation from where it left"
    r"|If you need specific details from before compaction)[^\n]*$",
    re.MULTILINE,
)


def create_summary_message(
    summary_text: str, made_at: datetime | None = None, replaced: int | None = None, *, unread: int = 0
) -> Message:
    """Create the message that replaces `replaced` messages, of which the summarizer did not read `unread`.

    `made_at` is a local time, or None for the present. If `replaced` is None, the message does not say how
    many messages it replaces.
    """
    made_at = made_at or datetime.now().astimezone()
    note = f" {texts.text('summary_unread').format(unread=unread)}" if unread else ""
    count = "" if replaced is None else f"{replaced} "
    content = texts.text("summary_message").format(
        made=f"{made_at:%Y-%m-%d %H:%M}", replaced=count, unread=note, summary=summary_text.strip()
    )
    return as_summary(Message("user", content))


def as_summary(message: Message) -> Message:
    """Return the message with the mark of a summary. It is the same object if it already is a summary."""
    if is_summary(message):
        return message
    meta = message.meta if isinstance(message.meta, dict) else {}
    return msgspec.structs.replace(message, meta=meta | SUMMARY_META)


def is_summary(message: Message) -> bool:
    """Whether a message replaces earlier messages."""
    if message.role == "assistant":
        return server_compaction(message) is not None
    meta = message.meta
    return message.role == "user" and isinstance(meta, dict) and meta.get("isCompactSummary") is True


def server_compaction(message: Message) -> CompactionPart | None:
    """Return the compaction by a provider's server that is the only content of a message. Return None for any
    other message.
    """
    content = message.content
    if message.role != "assistant" or not isinstance(content, list) or len(content) != 1:
        return None
    return None if message.tool_calls else compaction_in(content[0])


def compaction_text(compaction: CompactionPart) -> str:
    """Return a compaction's text for other providers. If it has none, return a sentence that says so."""
    name, summary = PROVIDER_NAMES[compaction.provider], compaction.text.strip()
    if not summary:
        return texts.text("compaction_opaque").format(provider=name)
    return texts.text("compaction_text").format(provider=name, summary=summary)


def summary_of(message: Message) -> str:
    """Return the summary in a message, without its introduction. The message must be a summary
    (`is_summary`).

    If only a provider can read it, return a sentence that says so.
    """
    compaction = server_compaction(message)
    if compaction is not None:
        return compaction.text.strip() or compaction_text(compaction)
    text = text_of(message)
    return text.partition(RULE)[2] if text.startswith(MARKER) else _foreign_summary(text)


def _foreign_summary(text: str) -> str:
    """Strip introduction, reasoning and last instruction from another program's summary."""
    for opening in FOREIGN_OPENINGS:
        if text.startswith(opening):
            introduction, _, remainder = text.partition("\n")
            text = remainder or introduction.partition(":")[2]
            break
    text = text.strip()
    for begin, end in (("<analysis>", "</analysis>"), ("Analysis:", "\nSummary:")):
        if text.startswith(begin) and end in text:
            text = text.partition(end)[2]
    text = _WRAPPER.sub("", text)
    return _CONTINUE.sub("", text).strip()


def readable(message: Message) -> Message:
    """Return the message in a form that every provider can read.

    A compaction by a provider's server becomes a user's message, or a text among other parts. Reasoning that
    only its provider can read is left out.
    """
    compaction = server_compaction(message)
    if compaction is not None:
        return Message("user", compaction_text(compaction))
    content = message.content
    if not isinstance(content, list):
        return message
    readable_parts = [text for part in content for text in _readable_part(part)]
    return message if readable_parts == content else msgspec.structs.replace(message, content=readable_parts)


def _readable_part(part: Any) -> list[Any]:
    match read_part(part):
        case CompactionPart(_, own) as compaction:
            return [] if own is None else [text_part(compaction_text(compaction))]
        case ThinkingPart():
            return []
    return [part]


def unwrapped(message: Message) -> Message:
    """Return a summary as a user message without its introduction. Return any other message unchanged."""
    return Message("user", summary_of(message)) if is_summary(message) else message


def pins_in(summary: str) -> tuple[str, ...]:
    """Return the pins of a summary."""
    return tuple(match[2] for match in _FENCE.finditer(summary))


def with_pins(summary: str, pins: Iterable[str]) -> str:
    """Return the summary with every pin verbatim. Pins that it does not contain are added at the end."""
    missing = [pin for pin in dict.fromkeys(pins) if pin and pin not in summary]
    if not missing:
        return summary
    heading = texts.text("summary_pinned")
    headings = [] if heading in summary else [heading]
    return "\n\n".join([summary.rstrip(), *headings, *map(_fenced, missing)])


def without_pins(summary: str) -> str:
    """Return the summary without the section of pins."""
    heading = texts.text("summary_pinned")
    return _FENCE.sub("", summary).replace(heading, "").strip()


def _fenced(pin: str) -> str:
    longest = max((len(run) for run in _TICKS.findall(pin)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}pinned\n{pin}\n{ticks}"
