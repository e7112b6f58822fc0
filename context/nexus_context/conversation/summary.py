"""A summary as a user message whose first line is a marker.

    [CONTEXT SUMMARY]
    when it was made and what it stands for
    ---
    the summary

Pins, which must stay verbatim, have a section of their own. Each is in a fence, so that it can be read back
and carried over when this summary is itself replaced.
"""

import re
from collections.abc import Iterable
from datetime import datetime

from nexus_context.conversation.message import Message, text_of
from nexus_context.prompt import texts

MARKER = "[CONTEXT SUMMARY]"
RULE = "\n---\n"

_FENCE = re.compile(r"^(`{3,})pinned\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_TICKS = re.compile(r"`{3,}")


def create_summary_message(
    summary_text: str, made_at: datetime | None = None, replaced: int | None = None, *, unread: int = 0
) -> Message:
    """The message that stands for `replaced` messages, `unread` of which the summarizer did not read.

    `made_at` is a local time, by default the present one. Without `replaced`, the message does not say for
    how many messages it stands.
    """
    made_at = made_at or datetime.now().astimezone()
    note = f" {texts.text('summary_unread').format(unread=unread)}" if unread else ""
    count = "" if replaced is None else f"{replaced} "
    content = texts.text("summary_message").format(
        made=f"{made_at:%Y-%m-%d %H:%M}", replaced=count, unread=note, summary=summary_text.strip()
    )
    return Message("user", content)


def is_summary(message: Message) -> bool:
    """Whether a message stands for earlier ones."""
    return message.role == "user" and text_of(message).startswith(MARKER)


def summary_of(message: Message) -> str:
    """The summary in a message from `create_summary_message`, without the introduction."""
    return text_of(message).partition(RULE)[2]


def unwrapped(message: Message) -> Message:
    """The message itself; a summary without its introduction."""
    return Message("user", summary_of(message)) if is_summary(message) else message


def pins_in(summary: str) -> tuple[str, ...]:
    """The pins of a summary."""
    return tuple(match[2] for match in _FENCE.finditer(summary))


def with_pins(summary: str, pins: Iterable[str]) -> str:
    """The summary with every pin verbatim: missing ones are added at the end."""
    missing = [pin for pin in dict.fromkeys(pins) if pin and pin not in summary]
    if not missing:
        return summary
    heading = texts.text("summary_pinned")
    headings = [] if heading in summary else [heading]
    return "\n\n".join([summary.rstrip(), *headings, *map(_fenced, missing)])


def without_pins(summary: str) -> str:
    """The summary without the section of pins."""
    heading = texts.text("summary_pinned")
    return _FENCE.sub("", summary).replace(heading, "").strip()


def _fenced(pin: str) -> str:
    longest = max((len(run) for run in _TICKS.findall(pin)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}pinned\n{pin}\n{ticks}"
