"""Tells a model the time: when a session began, when the user wrote a message, and when a loop of tools goes
on later.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from nexus_context.conversation.message import Message, Preamble
from nexus_context.conversation.summary import is_summary
from nexus_context.folder.prompt import texts

TELL_AGAIN = timedelta(hours=1)
"""A loop of tools that goes on so much later is told the time: its user's message says an old one."""


def local_time() -> datetime:
    """Return the computer's local time with its zone."""
    return datetime.now().astimezone()


def opening_message(started: datetime) -> Message:
    """Return the message that says when a session began."""
    return Message("user", texts.text("session_started").format(started=f"{started:%Y-%m-%d %H:%M}"))


def is_opening(message: Message) -> bool:
    """Whether a message is an `opening_message`, at whatever time."""
    begin, end = texts.text("session_started").split("{started}")
    content = message.content
    return (
        message.role == "user"
        and isinstance(content, str)
        and content.startswith(begin)
        and content.endswith(end)
    )


def with_times(
    messages: Iterable[Message], now: datetime, last_told: datetime | None
) -> tuple[tuple[Message, ...], datetime | None]:
    """Put the time before the text of messages. Also return when a model was last told the time.

    A user message gets the time unless it has a preamble. A tool's result gets it if the model was last told
    the time at least TELL_AGAIN ago, or not since the session was read (`last_told` is None). A user message
    without a content is not sent and gets none: it only names the request that is answered.
    """
    timed: list[Message] = []
    for message in messages:
        is_due = message.role == "tool" and (last_told is None or now - last_told >= TELL_AGAIN)
        if message.role == "user" and not is_summary(message) and message.content is not msgspec.UNSET:
            is_due, last_told = message.preamble is None, now
        if is_due:
            last_told, time = now, texts.text("event_time").format(**texts.moment(now, {}))
            message = msgspec.structs.replace(message, preamble=Preamble(time))
        timed.append(message)
    return tuple(timed), last_told
