"""What agents do, as events and as messages; a bus that keeps the newest events.

1. Conversion (SPEC §9): thinking → assistant; execute → user; tool call → one line of the assistant. A tool's
   result is left out, since it would repeat large outputs.
2. A ledger's turn becomes events: the user's messages are `execute`, an assistant's `thinking`, each of its
   calls `tool_call`, a tool's answer `tool_result`.
3. The bus keeps the newest events of each workspace, within limits. It never writes to the disk.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.shorten_result import shorten_text
from nexus_context.conversation.summary import is_summary
from nexus_context.ledger.records import DirectMessage, Turn
from nexus_context.memory.item import line
from nexus_context.prompt import texts
from nexus_context.tokens.estimates import json_text

Action = Literal["thinking", "execute", "tool_call", "tool_result", "node.message"]

MOST_EVENTS = 1_000
"""Events of one workspace that are kept."""
MOST_WORKSPACES = 64
"""Workspaces whose events are kept: the most recently active ones."""
LONGEST_ARGUMENTS = 200
"""Characters of a call's arguments in a message."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an agent did in a session.

    `text` is the thought, the request or the result. A call has `tool` and `arguments`, a message `direct`.
    """

    action: Action
    text: str = ""
    tool: str | None = None
    arguments: Any = None
    direct: DirectMessage | None = None
    session: str | None = None
    agent: str | None = None


class EventBus:
    """The newest events of each workspace, and the listeners. For use by any thread."""

    def __init__(self, *, most: int = MOST_EVENTS) -> None:
        self._most = most
        self._kept: dict[str, deque[Event]] = {}
        self._listeners: list[Callable[[str, Event], None]] = []
        self._lock = threading.Lock()

    def publish(self, workspace: str, events: Iterable[Event]) -> None:
        """Keep events, in this order, and notify the listeners."""
        batch = tuple(events)
        with self._lock:
            events_kept = self._kept.pop(workspace, None) or deque(maxlen=self._most)
            events_kept.extend(batch)
            self._kept[workspace] = events_kept  # the last used one is the last
            if len(self._kept) > MOST_WORKSPACES:
                del self._kept[next(iter(self._kept))]
            listeners = tuple(self._listeners)
        for event in batch:
            for listener in listeners:
                listener(workspace, event)

    def listen(self, listener: Callable[[str, Event], None]) -> Callable[[], None]:
        """Call `listener(workspace, event)` in the publishing thread until the returned function is
        called.
        """
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    def events(self, workspace: str, *, session: str | None = None) -> list[Event]:
        """The kept events of a workspace, oldest first; with a session, only that session's."""
        with self._lock:
            newest = tuple(self._kept.get(workspace, ()))
        return [one for one in newest if session is None or one.session == session]

    def replay(
        self, workspace: str, session: str, turns: Iterable[Turn], *, agent: str | None = None
    ) -> None:
        """Publish the events of a ledger's turns."""
        for turn in turns:
            if turn.type == "query":
                self.publish(workspace, events_of(turn.messages, session=session, agent=agent))

    def forget(self, workspace: str, ids: Iterable[str]) -> None:
        """Drop delivered direct messages."""
        gone = frozenset(ids)
        with self._lock:
            newest = self._kept.get(workspace)
            if newest is not None and gone:
                left = [one for one in newest if one.direct is None or one.direct.id not in gone]
                self._kept[workspace] = deque(left, maxlen=self._most)


def events_of(
    messages: Iterable[Message], *, session: str | None = None, agent: str | None = None
) -> Iterator[Event]:
    """The events of messages of the conversation; system messages and summaries have none."""
    opening = texts.text("session_started").partition("{")[0]
    for message in messages:
        text = text_of(message).strip()
        if message.role == "system" or is_summary(message) or text.startswith(opening):
            continue
        if message.role == "tool":
            yield Event(action="tool_result", text=text, tool=message.name, session=session, agent=agent)
        elif text:
            action: Action = "execute" if message.role == "user" else "thinking"
            yield Event(action=action, text=text, session=session, agent=agent)
        for call in message.tool_calls:
            yield Event(
                action="tool_call", tool=call.name, arguments=call.arguments, session=session, agent=agent
            )


def message_of(event: Event) -> Message | None:
    """The event as a message; None for what memory leaves out, and for a direct message."""
    if event.action == "thinking":
        return Message("assistant", event.text)
    if event.action == "execute":
        return Message("user", event.text)
    if event.action == "tool_call":
        arguments = "" if event.arguments in (None, {}, "") else json_text(event.arguments)
        short_arguments = shorten_text(arguments, LONGEST_ARGUMENTS)
        return Message("assistant", line("call", tool=event.tool, arguments=short_arguments))
    return None


def memory_messages(messages: Iterable[Message]) -> list[Message]:
    """The messages as memory has them: converted, without what it leaves out."""
    converted = (message_of(event) for event in events_of(messages))
    return [message for message in converted if message is not None]
