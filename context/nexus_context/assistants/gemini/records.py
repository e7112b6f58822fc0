"""Names the parts of a record of Gemini CLI: a message, the session's first words, or a change; the format is
that of 0.61.0.

1. A message has an `id` and is written again as it grows; the last record of it counts.
2. `{"$set": {"messages": […]}}` replaces all messages. `{"$rewindTo": id}` takes back the message with this
   id and those behind it.
3. The summary that a compression leaves contains SNAPSHOT.
"""

from typing import Any

from nexus_context.assistants.reading.record_values import field, objects_in, text_in
from nexus_context.assistants.sessions.record import SessionRecord

COMMANDS = ("/", "?")
"""How a message begins that is a command, which no model gets."""
ADDED = ("<session_context>", "<hook_context>")
"""How a message begins that is the program's own."""
SNAPSHOT = "<state_snapshot>"
"""In the summary that a compression leaves."""
UNSENT = frozenset({"info", "error", "warning"})
"""Messages that are for the user only."""
_KINDS = UNSENT | {"user", "gemini"}


class GeminiRecord(SessionRecord):
    """A line of a session's file."""

    __slots__ = ()

    @property
    def unknown(self) -> tuple[str, ...]:
        if not any(key in self.value for key in ("id", "sessionId", "$set", "$rewindTo")):
            return (str(next(iter(self.value), "")),)
        kinds = (text_in(message, "type") for message in self.messages or ())
        return tuple(f"message/{kind}" for kind in kinds if kind not in _KINDS)

    @property
    def name(self) -> str | None:
        """The id of the message that the record is; None if it is no message."""
        return text_in(self.value, "id")

    @property
    def session(self) -> str | None:
        return text_in(self.value, "sessionId")

    @property
    def replaces_all(self) -> bool:
        """Whether the messages in the record replace all messages before it."""
        return isinstance(field(self.value, "$set", "messages"), list)

    @property
    def rewinds(self) -> bool:
        """Whether the record takes back earlier messages."""
        return "$rewindTo" in self.value

    @property
    def messages(self) -> list[dict[str, Any]] | None:
        """The messages in the record that have an id. None if the record is no message and lists none."""
        if self.name is not None:
            return [self.value]
        message_list = (
            field(self.value, "$set", "messages") if self.replaces_all else self.value.get("messages")
        )
        if not isinstance(message_list, list):
            return None
        return [message for message in objects_in(message_list) if text_in(message, "id") is not None]
