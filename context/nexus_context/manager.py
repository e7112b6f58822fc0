"""The conversation of one session: what `messages` holds is what the model sees."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from nexus_context.conversation.message import Message, content_of
from nexus_context.prompt import texts
from nexus_context.tokens import TokenCounter, count_message


class ContextManager:
    """The messages of one session and their token counts, each counted once for each counter in use.

    Not safe for several threads at once: the caller keeps the order of changes.
    """

    def __init__(self, *, started: datetime | None = None) -> None:
        """`started`, a local time, opens the session with a message that says when it began."""
        self._messages: list[Message] = []
        self._encoded: list[msgspec.Raw] = []
        self._counts: list[int] = []
        self._total = 0
        self._counter = ""
        if started is not None:
            began = texts.text("session_started").format(started=f"{started:%Y-%m-%d %H:%M}")
            self._messages.append(Message("user", began))

    @property
    def messages(self) -> list[Message]:
        """A copy of the messages, oldest first."""
        return list(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, messages: Iterable[Message]) -> None:
        self._messages.extend(messages)

    def clear_messages(self) -> None:
        self._messages.clear()
        self._encoded.clear()
        self._counts.clear()
        self._total = 0

    @property
    def all_encoded(self) -> bool:
        """Whether `encoded` has nothing left to do."""
        return len(self._encoded) == len(self._messages)

    def encoded(self) -> list[msgspec.Raw]:
        """The messages as JSON, oldest first. Each is encoded once: a long history is sent often."""
        fresh = self._messages[len(self._encoded) :]
        self._encoded += [msgspec.Raw(msgspec.json.encode(message)) for message in fresh]
        return list(self._encoded)

    def history_tokens(self, counter: TokenCounter) -> int:
        """Tokens of all messages. Only messages that this counter has not seen yet are counted."""
        if counter.name != self._counter:
            self._counts.clear()
            self._total = 0
            self._counter = counter.name
        for message in self._messages[len(self._counts) :]:
            tokens = count_message(counter, content_of(message), message.tool_calls)
            self._counts.append(tokens)
            self._total += tokens
        return self._total
