"""Where remembered items come from: each source, the order, and no repetitions."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import pytest

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.summary import create_summary_message
from nexus_context.errors import RequestError, Span
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.store import Ledger
from nexus_context.memory import node_messages
from nexus_context.memory.bus import EventBus
from nexus_context.memory.events import Event, events_of, memory_messages, message_of
from nexus_context.memory.item import MemoryItem
from nexus_context.memory.levels import Levels, MemorySettings
from nexus_context.memory.sources import (
    DirectSource,
    EventSource,
    KnowledgeSource,
    MemorySource,
    Query,
    Source,
    gather,
)
from support.ledgers import turn_of

FOLDER = "/home/a"


class Found(NamedTuple):
    path: str
    heading: str
    text: str
    span: Span | None = None
    score: float = 1.0
    tokens: int = 1
    matched_by: tuple[str, ...] = ("words",)


def append(ledger: Ledger, session: str, *messages: Message) -> None:
    ledger.append(FOLDER, session, turn_of(*messages))


def check(sources: Iterable[Source], expected: list[str], **asked: Any) -> list[MemoryItem]:
    """The gathered items: `source: text`, in order."""
    given: dict[str, Any] = {"workspace": FOLDER, "now": 0.0, "session": "main", "agent": "me"}
    query = Query(**given | asked)
    items, failures = gather(sources, query)
    assert [f"{item.source}: {item.text}" for item in items] == expected
    assert failures == []
    return items


CONVERTED = [
    (Event(action="thinking", text="Hm."), Message("assistant", "Hm.")),
    (Event(action="execute", text="Read x."), Message("user", "Read x.")),
    (Event(action="tool_call", tool="read"), Message("assistant", "[Calling read()]")),
    (
        Event(action="tool_call", tool="read", arguments={"path": "x"}),
        Message("assistant", '[Calling read({"path":"x"})]'),
    ),
    (Event(action="tool_result", text="long " * 999), None),
    (Event(action="node.message"), None),
]


@pytest.mark.parametrize(("event", "message"), CONVERTED)
def test_events_as_messages(event: Event, message: Message | None) -> None:
    assert message_of(event) == message


def test_messages_as_events() -> None:
    messages = [
        Message("system", "Be brief."),
        Message("user", "[Session started: 2026-11-20 12:00 (local)]"),
        create_summary_message("All of it.", datetime(2026, 11, 20), 3),
        Message("user", [{"type": "text", "text": "Read x."}]),
        Message("assistant", "I read.", (ToolCall("1", "read", '{"path": "x"}'), ToolCall("2", "ls"))),
        Message("tool", "content", tool_call_id="1", name="read"),
        Message("assistant", None),
    ]
    made = list(events_of(messages, session="main", agent="me"))
    assert [(each.action, each.text or each.tool) for each in made] == [
        ("execute", "Read x."),
        ("thinking", "I read."),
        ("tool_call", "read"),
        ("tool_call", "ls"),
        ("tool_result", "content"),
    ]
    assert {(each.session, each.agent) for each in made} == {("main", "me")}
    assert [(each.role, each.content) for each in memory_messages(messages)] == [
        ("user", "Read x."),
        ("assistant", "I read."),
        ("assistant", '[Calling read({"path": "x"})]'),
        ("assistant", "[Calling ls()]"),
    ]


def test_everything_in_its_order(ledger: Ledger) -> None:
    append(ledger, "main", Message("user", "Never push."))
    append(ledger, "other", Message("user", "Always deploy with helm."))
    ledger.messages.send(
        node_messages.make(workspace=FOLDER, source="boss", target="me", content="Hurry.", now=0)
    )
    bus = EventBus()
    bus.publish(FOLDER, [Event(action="thinking", text="Hm.", session="main", agent="me")])
    passages = [Found("/d/a.md", "Top", "Best."), Found("/d/b.md", "", "Next.", Span(3, 8))]
    sources: list[Source] = [
        KnowledgeSource(lambda text: passages if text == "Deploy helm" else []),
        EventSource(bus),
        MemorySource(Levels(ledger), include=("L1", "L4")),
        DirectSource(ledger),
    ]
    items = check(
        sources,
        [
            "message: From boss:\nHurry.",
            "memory: user: Always «deploy» with «helm».",
            "memory: user: Never push.",
            "event: assistant: Hm.",
            "knowledge: /d/a.md › Top\nBest.",
            "knowledge: /d/b.md\nNext.",
        ],
        text="Deploy helm",
    )
    by_priority = sorted(items, key=lambda item: -item.priority)
    assert [item.text[:9] for item in by_priority] == [
        "From boss",
        "user: Nev",
        "user: Alw",
        "/d/a.md ›",
        "/d/b.md\nN",
        "assistant",
    ]
    assert [(item.label, item.path, item.span) for item in items[-2:]] == [
        ("/d/a.md › Top", "/d/a.md", None),
        ("/d/b.md", "/d/b.md", Span(3, 8)),
    ]
    silent = ["message: From boss:\nHurry.", "memory: user: Never push.", "event: assistant: Hm."]
    check(sources, silent, text=" ")


def test_nothing_without_sources() -> None:
    check([], [])
    empty: list[Source] = [EventSource(EventBus()), KnowledgeSource(lambda _: [])]
    check(empty, [], text="Why?", session=None, agent=None)


def test_what_the_history_shows_is_not_remembered_beside_it(ledger: Ledger) -> None:
    said = [Message("user", "Never push."), Message("assistant", "Understood."), Message("user", "Why?")]
    append(ledger, "main", *said)
    bus = EventBus()
    for turn in ledger.turns(FOLDER, "main"):
        bus.publish(FOLDER, events_of(turn.messages, session="main"))
    levels = Levels(ledger)
    every = MemorySource(levels, include=("L1", "L2"))
    check([every, EventSource(bus)], [], history=said)
    check([every], ["memory: user: Never push."], history=said[1:])
    check([MemorySource(levels)], ["memory: user: Never push."], history=said[1:])
    check([EventSource(bus)], ["event: user: Never push."], history=said[1:])


def test_levels_and_events_stay_in_the_session(ledger: Ledger) -> None:
    bus = EventBus()
    for session in ("main", "other"):
        append(ledger, session, Message("user", f"Never push to {session}."))
        bus.publish(FOLDER, [Event(action="execute", text=session, session=session)])
    bus.publish("/home/b", [Event(action="execute", text="away", session="main")])
    levels = Levels(ledger)
    check([EventSource(bus)], ["event: user: other"], session="other")
    check([EventSource(bus)], ["event: user: main", "event: user: other"], session=None)
    for include in (("L1",), ("L2",)):
        check([MemorySource(levels, include=include)], ["memory: user: Never push to main."])
    check([MemorySource(levels)], [], session="nobody")
    check([MemorySource(levels)], [], settings=MemorySettings(l1_messages=0))


def test_a_source_that_fails_takes_nothing_with_it() -> None:
    def broken(_: str) -> list[Found]:
        raise LedgerError("The disk failed.", code="ledger-io")

    query = Query(workspace=FOLDER, now=0, text="Why?")
    items, failures = gather(
        [KnowledgeSource(broken), KnowledgeSource(lambda _: [Found("/a.md", "", "Here.")])], query
    )
    assert ([item.text for item in items], failures) == (["/a.md\nHere."], ["knowledge: The disk failed."])
    assert issubclass(LedgerError, RequestError)


THOUGHT = {"action": "thinking", "text": "Hm."}
VISIBLE: list[tuple[dict[str, Any], list[str]]] = [
    (THOUGHT | {"agent": "me", "session": "main"}, ["event: assistant: Hm."]),
    (THOUGHT | {"agent": "me"}, ["event: assistant: Hm."]),
    (THOUGHT | {"agent": "me", "session": "other"}, []),
    (THOUGHT | {"agent": "me", "session": "main", "turn": "t-1"}, []),
    (THOUGHT | {"agent": "helper", "session": "main"}, []),
    (THOUGHT | {"agent": "boss", "session": "main", "above": ("main",)}, []),
    (
        THOUGHT | {"agent": "helper", "session": "agent:helper", "above": ("me", "main"), "turn": "t-1"},
        ["event: helper (assistant): Hm."],
    ),
    ({"action": "build", "agent": "me", "data": {"content": "It fails."}}, ["event: [build] It fails."]),
    ({"action": "build", "agent": "me", "data": [1, {"a": None}]}, ['event: [build] [1,{"a":null}]']),
    (
        {"action": "build", "agent": "helper", "above": ("me",), "data": "red"},
        ["event: helper [build] red"],
    ),
    (
        {"action": "node.message", "agent": "a", "above": ("me",), "data": {"target": "b", "content": "Go."}},
        ["event: a to b: Go."],
    ),
    ({"action": "node.message", "agent": "a", "above": ("me",), "data": {"target": "me"}}, []),
    ({"action": "node.message", "agent": "me", "data": {"target": "b", "content": "Go."}}, []),
    ({"action": "turn", "agent": "a", "above": ("me",), "data": {"messages": 2}}, []),
    ({"action": "tool_result", "text": "long", "agent": "me"}, []),
]


@pytest.mark.parametrize(("fields", "expected"), VISIBLE)
def test_an_agent_sees_itself_and_those_below_it(fields: dict[str, Any], expected: list[str]) -> None:
    bus = EventBus()
    bus.publish(FOLDER, [Event(**fields)])
    check([EventSource(bus)], expected)


def test_events_of_a_turn_are_bounded() -> None:
    bus = EventBus()
    bus.publish(FOLDER, [Event(action="report", data="x" * 1_000_000) for _ in range(20)])
    short = f"event: [report] {'x' * 267} [… 999600 characters left out …] {'x' * 133}"
    check([EventSource(bus, most=1)], [short])
    check([EventSource(bus, most=0)], [])
    check([EventSource(bus)], [], events_after=bus.number)
    bus.publish(FOLDER, [Event(action="report", data=str(number)) for number in range(100)])
    check([EventSource(bus)], [f"event: [report] {number}" for number in range(88, 100)])
