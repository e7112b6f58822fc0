"""Distributes events: keeps the newest events of each workspace, and calls subscribers with each new one.

1. The bus keeps at most MOST_EVENTS events and MOST_BYTES of a workspace, and drops the oldest first. Of all
   workspaces together it keeps at most MOST_BYTES_OF_ALL and MOST_WORKSPACES, and drops the workspaces whose
   last event is oldest.
2. A text longer than LONGEST_TEXT is shortened, with a mark. `data` larger than LARGEST_DATA is refused.
3. Publishing never touches the disk. Published events are gone when the process ends.
4. A subscriber that raises is logged and removed; the others go on.
"""

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.shortening import shorten_text
from nexus_context.errors import RequestError
from nexus_context.memory.events import Event

logger = logging.getLogger(__name__)

MOST_EVENTS = 1_000
"""Events of one workspace."""
MOST_BYTES = 8 * 1024 * 1024
"""Bytes of the events of one workspace, approximately."""
MOST_BYTES_OF_ALL = 32 * 1024 * 1024
"""Bytes of the events of all workspaces, approximately."""
MOST_WORKSPACES = 64
"""Workspaces whose events the bus has: the most recently active ones."""
LARGEST_DATA = 1024 * 1024
"""Bytes of the `data` of an event, as JSON."""
LONGEST_TEXT = 16_000
"""Characters of the text and of the arguments of an event; the ledger has the whole turn."""
_OVERHEAD = 300  # bytes of an event without its texts

Subscriber = Callable[[str, Event], None]


class EventPage(NamedTuple):
    """Some events of a workspace, oldest first. `more` is true if later events match, too.

    `missed` is true if events after the requested id have left the bus, or if the id is of an earlier
    process.
    """

    events: list[Event]
    missed: bool
    more: bool


class _Ring:
    """The events of one workspace with their sizes."""

    def __init__(self) -> None:
        self.events: deque[tuple[Event, int]] = deque()
        self.size = 0
        self.dropped = 0  # number of the last event that left

    def add(self, event: Event, size: int, most: int, most_bytes: int) -> None:
        self.events.append((event, size))
        self.size += size
        while len(self.events) > most or (self.size > most_bytes and len(self.events) > 1):
            self._drop()

    def _drop(self) -> None:
        event, size = self.events.popleft()
        self.size -= size
        self.dropped = event.number


class EventBus:
    """Keeps the newest events of each workspace. Any thread may use it."""

    def __init__(self, *, most: int = MOST_EVENTS, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._rings: dict[str, _Ring] = {}  # the last active one is the last
        self._run = secrets.token_hex(4)
        self._number = 0
        self._evicted = 0  # number of the last event of a workspace that left
        self._subscribers: list[Subscriber] = []
        self._lock = threading.Lock()

    @property
    def number(self) -> int:
        """The number of the newest event, or 0 if there was none."""
        return self._number

    def publish(self, workspace: str, events: Iterable[Event]) -> list[Event]:
        """Store events in this order and call the subscribers with each. Return the events with id, number
        and time.

        Raise RequestError, code `event-too-large`, if the `data` of an event is larger than LARGEST_DATA.
        Raise it with code `bad-event` if a value is not JSON. In both cases no event is published.
        """
        sized = [_sized(event) for event in events]
        now = time.time()
        batch: list[Event] = []
        with self._lock:
            ring = self._rings.pop(workspace, None) or _Ring()
            self._rings[workspace] = ring
            for event, size in sized:
                self._number += 1
                number = self._number
                stamped = msgspec.structs.replace(
                    event, id=f"{self._run}-{number}", number=number, at=event.at or now
                )
                ring.add(stamped, size, self._most, self._most_bytes)
                batch.append(stamped)
            self._make_room()
            subscribers = tuple(self._subscribers)
        for subscriber in subscribers:
            self._call(subscriber, workspace, batch)
        return batch

    def listen(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(workspace, event)` for each new event, in the publishing thread. Return a function
        that ends this; a subscriber that raises is removed, too.
        """
        with self._lock:
            self._subscribers.append(subscriber)
        return lambda: self._remove(subscriber)

    def events(self, workspace: str, *, session: str | None = None, after: int = 0) -> list[Event]:
        """Return the events of a workspace whose number is greater than `after`, oldest first. If `session`
        is not None, return only that session's.
        """
        with self._lock:
            ring = self._rings.get(workspace)
            newest = () if ring is None else tuple(event for event, _ in ring.events)
        return [event for event in newest if event.number > after and session in (None, event.session)]

    def page(
        self,
        workspace: str,
        *,
        since: str | None = None,
        limit: int,
        session: str | None = None,
        agent: str | None = None,
    ) -> EventPage:
        """Return the first `limit` events after the event with the id `since`. If `since` is None, return the
        newest `limit` events.

        With an `agent`, only its events and those of agents below it count. Raise RequestError, code
        `bad-event`, if `since` is not an event id.
        """
        run, number = (self._run, 0) if since is None else _parsed(since)
        with self._lock:
            ring = self._rings.get(workspace) or _Ring()
            dropped = max(ring.dropped, self._evicted)
        number, missed = (number, number < dropped) if run == self._run else (0, True)
        matching = [
            event
            for event in self.events(workspace, session=session, after=number)
            if agent is None or agent == event.agent or agent in event.above
        ]
        events = matching[-limit:] if since is None else matching[:limit]
        return EventPage(events, missed and since is not None, since is not None and len(matching) > limit)

    def _make_room(self) -> None:
        """Drop the events of the least recently active workspaces, never of the last one."""
        size = sum(ring.size for ring in self._rings.values())
        while len(self._rings) > 1 and (len(self._rings) > MOST_WORKSPACES or size > MOST_BYTES_OF_ALL):
            ring = self._rings.pop(next(iter(self._rings)))
            size -= ring.size
            self._evicted = max(self._evicted, ring.events[-1][0].number if ring.events else ring.dropped)

    def _call(self, subscriber: Subscriber, workspace: str, batch: Iterable[Event]) -> None:
        try:
            for event in batch:
                subscriber(workspace, event)
        except Exception:  # a subscriber must not stop who publishes, nor the other subscribers
            logger.exception("a subscriber of the event bus failed; it is removed")
            self._remove(subscriber)

    def _remove(self, subscriber: Subscriber) -> None:
        with self._lock:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)


def _sized(event: Event) -> tuple[Event, int]:
    """The event as the bus has it, with its size in bytes."""
    data = 0 if event.data is None else len(_encoded(event.data))
    if data > LARGEST_DATA:
        raise RequestError(
            f"data has {data:,} bytes as JSON; an event may have {LARGEST_DATA:,}. Put the rest into a file "
            "and name the file.",
            code="event-too-large",
        )
    arguments = b"" if event.arguments is None else _encoded(event.arguments)
    if len(arguments) > LONGEST_TEXT:
        short_arguments = shorten_text(arguments.decode("utf-8", "replace"), LONGEST_TEXT)
        event = msgspec.structs.replace(event, arguments=short_arguments)
    if len(event.text) > LONGEST_TEXT:
        event = msgspec.structs.replace(event, text=shorten_text(event.text, LONGEST_TEXT))
    return event, data + len(event.text) + min(len(arguments), LONGEST_TEXT) + _OVERHEAD


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"The event has a value that is not JSON: {error}.", code="bad-event") from None


def _parsed(event_id: str) -> tuple[str, int]:
    run, _, number = event_id.partition("-")
    if not (run and number.isascii() and number.isdigit() and len(number) < 20):
        raise RequestError(
            f"since is {event_id!r:.60}; it must be the id of an event, such as `7f3a9c21-12`.",
            code="bad-event",
        )
    return run, int(number)
