"""Collects remembered items for a turn: defines the sources, and `gather`, which queries all of them.

1. A message that is in the history (`Query.history`) is not remembered again, and no item occurs twice.
2. If the query has a session, L1 to L3 and events come from that session only. L4, knowledge and direct
   messages do not.
3. Items come in their final order: direct messages, L1 and requested other levels, events, knowledge (SPEC
   §9). Within a source, the newest items have the highest priority; for knowledge, the best passages have it.
4. A failing source does not affect the others; its failure is reported.
5. Every source is optional. For example, there are events and knowledge without a ledger.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import Span
from nexus_context.ledger.records import DirectMessage
from nexus_context.ledger.store import Ledger
from nexus_context.memory import node_messages
from nexus_context.memory.bus import EventBus
from nexus_context.memory.events import MESSAGE_ACTIONS, Event, memory_messages, message_of
from nexus_context.memory.item import BASE, ORDER, MemoryItem, brief, line
from nexus_context.memory.levels import Level, Levels, MemorySettings
from nexus_context.memory.working import Entry
from nexus_context.tokens.estimates import json_text

MOST_EVENTS = 12
"""Events in one turn."""
LONGEST_EVENT = 400
"""Characters of an event in one turn."""
RECORDS = ("turn", "compaction")
"""Kinds of events that say that the ledger has something: for clients, not for models."""
FOUND = 5
"""Messages of other sessions in one turn, where L4 is requested."""
SHOWN = 100
"""Newest messages of the history that events and L1 are compared with; for each message of L1 four more."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn passes to all sources. `now` is in seconds since the epoch."""

    workspace: str  # absolute real path of the folder
    now: float
    session: str | None = None
    agent: str | None = None  # the receiver of direct messages
    node: str | None = None
    events_after: int = 0  # number of the newest event that the session's last turn had
    text: str = ""  # the user's present message
    history: Sequence[Message] = ()  # the messages of the history that are sent
    settings: MemorySettings = MemorySettings()


class Source(Protocol):
    """A source of remembered items. Its methods may block on the disk."""

    @property
    def name(self) -> str:
        """The source's name for people."""
        ...

    def items(self, query: Query) -> Iterable[MemoryItem]:
        """Return the items that the source remembers for this turn, in their final order."""
        ...


class PassageLike(Protocol):
    """A passage of a file that a search returned."""

    @property
    def path(self) -> str: ...

    @property
    def heading(self) -> str | None: ...

    @property
    def text(self) -> str: ...

    @property
    def span(self) -> Span | None: ...

    @property
    def matched_by(self) -> Sequence[str]: ...


class GatheredItems(NamedTuple):
    """The items of all sources, and a sentence about each source that failed."""

    items: list[MemoryItem]
    failures: list[str]


def gather(sources: Iterable[Source], query: Query) -> GatheredItems:
    """Query all sources. This may block on the disk, so call it in a worker thread."""
    collected: list[MemoryItem] = []
    failures: list[str] = []
    for source in sources:
        try:
            collected += source.items(query)
        except Exception as error:  # noqa: BLE001 - a source may be anybody's
            failures.append(f"{source.name}: {str(error) or type(error).__name__}")
    keys: set[str] = set()
    items: list[MemoryItem] = []
    for item in sorted(collected, key=lambda candidate: ORDER.index(candidate.source)):
        key = item.id or item.text
        if key not in keys:
            items.append(item)
        keys.add(key)
    return GatheredItems(items, failures)


class MemorySource:
    """Remembers the levels of a ledger named by `include`: by default only L1. Models read the other levels
    with tools.
    """

    name = "memory"

    def __init__(self, levels: Levels, *, include: Sequence[Level] = ("L1",)) -> None:
        self._levels = levels
        self._include = include

    def items(self, query: Query) -> list[MemoryItem]:
        """Return the entries of L4, L3, L2 and L1 in this order. Later items have a higher priority, so the
        newest of L1 has the highest.
        """
        found_items = [
            (level, entry) for level in LEVELS if level in self._include for entry in self._of(level, query)
        ]
        return [
            MemoryItem(
                "memory", f"{level}: {entry.session}, turn {entry.seq}", entry.text, BASE["memory"] + share
            )
            for (level, entry), share in zip(found_items, _shares(len(found_items)), strict=True)
        ]

    def _of(self, level: Level, query: Query) -> list[Entry]:
        levels, limits = self._levels, query.settings
        where, session = query.workspace, query.session
        if level == "L4":
            hits = levels.across(where, query.text, limit=FOUND, results=False) if query.text.strip() else []
            return [hit for hit in reversed(hits) if hit.session != session]
        if level == "L3":
            history = _text(query.history)
            return [
                summary
                for summary in levels.summaries(where, session, limit=limits.l3_limit)
                if summary.text[:_TOLD_BY] not in history
            ]
        if level == "L2":
            beside = self._of("L1", query) if "L1" in self._include else []
            history = "\n".join([_text(query.history), *(beside_entry.text for beside_entry in beside)])
            entries = levels.important(where, session, limit=limits.l2_limit)
            return [candidate for candidate in entries if not _is_in_history(candidate.text, history)]
        in_history = _texts_by_role(query.history[-SHOWN - 4 * limits.l1_messages :])
        newest = levels.newest(where, session, limit=limits.l1_messages)
        return [entry for entry, message in newest if (message.role, text_of(message)) not in in_history]


class DirectSource:
    """Remembers the direct messages in a ledger that wait for the query's agent."""

    name = "messages"

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def items(self, query: Query) -> list[MemoryItem]:
        if query.agent is None:
            return []
        found_items = node_messages.inbox(
            self._ledger, query.workspace, query.agent, now=query.now, node=query.node
        )
        return node_messages.items(found_items)


class EventSource:
    """Remembers recent events of a bus, and the direct messages on the bus for the query's agent.

    1. An agent sees its own events in this session, those of no session, and all events of agents below it.
       It never sees another agent's.
    2. Of its own events, those that the ledger has are part of its history (L1), and are left out. Tool
       results are always left out, and so is what says only that something was recorded.
    3. The newest `most` come with a turn, each shortened to LONGEST_EVENT characters with a mark.
    """

    name = "events"

    def __init__(self, bus: EventBus, *, most: int = MOST_EVENTS) -> None:
        self._bus = bus
        self._most = most

    def items(self, query: Query) -> list[MemoryItem]:
        in_history = _texts_by_role(query.history[-SHOWN:])
        lines: list[tuple[str, str]] = []
        for event in self._bus.events(query.workspace, after=query.events_after):
            text = _event_line(event, query, in_history) if is_visible(event, query) else None
            if text is not None:
                lines.append((event.agent or event.action, text))
        lines = lines[-self._most :] if self._most else []
        return node_messages.items(self.direct_messages(query)) + [
            MemoryItem("event", f"event: {who}", text, BASE["event"] + share)
            for (who, text), share in zip(lines, _shares(len(lines)), strict=True)
        ]

    def direct_messages(self, query: Query) -> list[DirectMessage]:
        """Return the direct messages for the query's agent, in the order of delivery."""
        events = self._bus.events(query.workspace, after=query.events_after)
        addressed = [
            event.direct
            for event in events
            if event.direct is not None and event.direct.target == query.agent
        ]
        own_messages = [
            message for message in addressed if query.node is None or message.node in (None, query.node)
        ]
        return node_messages.waiting(own_messages, now=query.now)[: node_messages.MOST_DELIVERED]


def is_visible(event: Event, query: Query) -> bool:
    """Whether the query's agent may see an event in its session (EventSource, rules 1 and 2)."""
    if query.agent is not None and query.agent in event.above:
        return True
    if None not in (query.agent, event.agent) and query.agent != event.agent:
        return False
    return event.turn is None and (query.session is None or event.session in (None, query.session))


def _event_line(event: Event, query: Query, in_history: set[tuple[str, str]]) -> str | None:
    """Render an event for the model; None if the model reads nothing of it."""
    is_from_other = event.agent is not None and query.agent is not None and event.agent != query.agent
    if event.action in MESSAGE_ACTIONS:
        message = message_of(event)
        if message is None or (message.role, text_of(message)) in in_history:
            return None
        text = brief(text_of(message), LONGEST_EVENT)
        role = message.role
        return (
            line("did", agent=event.agent, role=role, text=text)
            if is_from_other
            else line("said", role=role, text=text)
        )
    if event.data is None or event.action in RECORDS:
        return None
    values = event.data if isinstance(event.data, dict) else {}
    content = values.get("content")
    text = brief(content if isinstance(content, str) else json_text(event.data), LONGEST_EVENT)
    if event.action == "node.message":
        target = values.get("target")
        return (
            line("sent", agent=event.agent, target=target, text=text)
            if is_from_other and target != query.agent
            else None
        )
    form = "reported_by" if is_from_other else "reported"
    return line(form, kind=event.action, agent=event.agent, text=text)


class KnowledgeSource:
    """Remembers passages of files. `find` searches them for the user's message and returns the best passage
    first.
    """

    name = "knowledge"

    def __init__(self, find: Callable[[str], Iterable[PassageLike]]) -> None:
        self._find = find

    def items(self, query: Query) -> list[MemoryItem]:
        return passage_items(self._find(query.text)) if query.text.strip() else []


def passage_items(passages: Iterable[PassageLike]) -> list[MemoryItem]:
    """Convert passages to items. `passages` must be sorted best first; each item begins with a line that
    names file and heading.
    """
    ranked = list(passages)
    return [
        MemoryItem(
            "knowledge",
            _label(passage),
            f"{_passage_line(passage)}\n{passage.text.strip()}",
            BASE["knowledge"] + share,
            path=passage.path,
            span=passage.span,
        )
        for passage, share in zip(ranked, reversed(_shares(len(ranked))), strict=True)
    ]


LEVELS: tuple[Level, ...] = ("L4", "L3", "L2", "L1")
_TOLD_BY = 150  # characters of a sentence that identify it


def _label(passage: PassageLike) -> str:
    """The passage's name for people; it says how a passage was found if its meaning counted."""
    label = passage.path if not passage.heading else f"{passage.path} › {passage.heading}"
    return f"{label} (by {' and '.join(passage.matched_by)})" if "meaning" in passage.matched_by else label


def _passage_line(passage: PassageLike) -> str:
    if passage.heading:
        return line("passage_under", path=passage.path, heading=passage.heading)
    return line("passage", path=passage.path)


def _shares(count: int) -> list[float]:
    """`count` priorities, ascending, above 0 and below 1."""
    return [(index + 1) / (count + 1) for index in range(count)]


def _texts_by_role(messages: Iterable[Message]) -> set[tuple[str, str]]:
    """Roles and texts of the messages, as memory has them."""
    return {(message.role, text_of(message)) for message in memory_messages(messages)}


def _text(messages: Iterable[Message]) -> str:
    return "\n".join(map(text_of, messages))


def _is_in_history(entry: str, history: str) -> bool:
    """Whether the history contains every message of an exchange."""
    openings = tuple(line("said", role=role, text="") for role in ("user", "assistant"))
    spoken = [
        entry_line.partition(": ")[2] for entry_line in entry.splitlines() if entry_line.startswith(openings)
    ]
    return bool(spoken) and all(entry_line[:_TOLD_BY] in history for entry_line in spoken)
