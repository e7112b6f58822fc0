"""Times that a model is told: when a session began, and when the user wrote a message."""

from datetime import datetime

import msgspec

from nexus_context.conversation.message import Message, Preamble
from nexus_context.conversation.summary import is_summary
from nexus_context.prompt import texts


def local_time() -> datetime:
    """The computer's local time with its zone."""
    return datetime.now().astimezone()


def opening_message(started: datetime) -> Message:
    """The message with the time at which a session began."""
    return Message("user", texts.text("session_started").format(started=f"{started:%Y-%m-%d %H:%M}"))


def is_opening(message: Message) -> bool:
    """Whether a message is `opening_message` at some time."""
    begin, end = texts.text("session_started").split("{started}")
    content = message.content
    return (
        message.role == "user"
        and isinstance(content, str)
        and content.startswith(begin)
        and content.endswith(end)
    )


def with_time(message: Message, now: datetime) -> Message:
    """A user message with the time before its text, unless it has a preamble; others as they are.

    A message without a content only names the request that is answered: it is not sent.
    """
    has_time = message.preamble is not None or message.content is msgspec.UNSET
    if message.role != "user" or has_time or is_summary(message):
        return message
    time = texts.text("event_time").format(**texts.moment(now, {}))
    return msgspec.structs.replace(message, preamble=Preamble(time))
