"""The event bus: bounded in number and bytes, in order, and unharmed by its subscribers."""

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.errors import RequestError
from nexus_context.memory import bus as buses
from nexus_context.memory.bus import EventBus
from nexus_context.memory.events import Event, data_of, from_data

FOLDER = "/home/a"


def check(
    events: list[Event],
    expected: list[str],
    *,
    missed: bool = False,
    more: bool = False,
    since: int | None = None,
    bus: EventBus | None = None,
    **options: Any,
) -> None:
    """The texts of the page after the event of number `since`."""
    bus = bus or EventBus()
    published = bus.publish(FOLDER, events)
    run = published[0].id.partition("-")[0] if published else ""
    page = bus.page(FOLDER, since=None if since is None else f"{run}-{since}", **{"limit": 100} | options)
    assert [event.text for event in page.events] == expected
    assert (page.missed, page.more) == (missed, more)


def thoughts(count: int, **fields: Any) -> list[Event]:
    return [Event(action="thinking", text=str(number), **fields) for number in range(1, count + 1)]


def test_the_newest_come_without_an_id_and_the_next_after_one() -> None:
    check(thoughts(5), ["4", "5"], limit=2)
    check(thoughts(5), ["3", "4"], limit=2, since=2, more=True)
    check(thoughts(5), ["3", "4", "5"], since=2)
    check(thoughts(5), [], since=5)
    check([], [])


def test_a_bus_is_bounded() -> None:
    check(thoughts(5), ["3", "4", "5"], bus=EventBus(most=3))
    check(thoughts(5), ["3", "4", "5"], bus=EventBus(most=3), since=2)
    check(thoughts(5), ["3", "4", "5"], bus=EventBus(most=3), since=1, missed=True)
    check(thoughts(5), ["4", "5"], bus=EventBus(most_bytes=700))
    check(thoughts(2), ["2"], bus=EventBus(most_bytes=1))


def test_a_hundred_thousand_events_leave_a_thousand() -> None:
    bus = EventBus()
    assert len(bus.publish(FOLDER, thoughts(100_000))) == 100_000
    events = bus.events(FOLDER)
    assert (len(events), events[0].text, events[-1].text) == (1_000, "99001", "100000")


def test_large_events_push_out_the_oldest() -> None:
    bus = EventBus()
    data = "x" * (buses.LARGEST_DATA - 2)
    for number in range(20):
        bus.publish(FOLDER, [Event(action="report", text=str(number), data=data)])
    assert [event.text for event in bus.events(FOLDER)] == [str(number) for number in range(13, 20)]
    for number in range(6):
        for _ in range(7):
            bus.publish(f"/home/{number}", [Event(action="report", data=data)])
    assert [len(bus.events(f"/home/{number}")) for number in range(6)] == [0, 0, 7, 7, 7, 7]
    page = bus.page(FOLDER, since=bus.events("/home/5")[0].id, limit=1)
    assert (page.events, page.missed) == ([], False)


def test_an_event_that_is_too_large_is_refused_with_all_of_its_batch() -> None:
    bus = EventBus()
    batch = [*thoughts(1), Event(action="report", data="x" * (buses.LARGEST_DATA - 1))]
    with pytest.raises(RequestError) as refusal:
        bus.publish(FOLDER, batch)
    assert (refusal.value.code, bus.events(FOLDER), bus.number) == ("event-too-large", [], 0)
    assert str(refusal.value) == (
        "data has 1,048,577 bytes as JSON; an event may have 1,048,576. Put the rest into a file and name "
        "the file."
    )


def test_what_a_turn_has_is_shortened_with_a_mark() -> None:
    bus = EventBus()
    (result,) = bus.publish(FOLDER, [Event(action="tool_result", text="x" * 1_000_000)])
    assert result.text == f"{'x' * 10_667} [… 984000 characters left out …] {'x' * 5_333}"
    (call,) = bus.publish(FOLDER, [Event(action="tool_call", tool="w", arguments={"text": "x" * 1_000_000})])
    assert len(call.arguments) < 16_100


def test_a_workspace_that_is_not_active_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buses, "MOST_WORKSPACES", 2)
    bus = EventBus()
    for workspace in "abac":
        bus.publish(workspace, thoughts(1))
    assert [len(bus.events(workspace)) for workspace in "abc"] == [2, 0, 1]


def test_a_subscriber_that_fails_is_removed_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    bus, heard = EventBus(), list[str]()

    def fail(_: str, event: Event) -> None:
        heard.append(f"fails at {event.text}")
        raise ValueError("gone")

    bus.listen(fail)
    end = bus.listen(lambda workspace, event: heard.append(f"{workspace} {event.text}"))
    with caplog.at_level(logging.ERROR):
        bus.publish("a", thoughts(2))
        bus.publish("a", thoughts(1))
    end()
    end()
    bus.publish("a", thoughts(1))
    assert heard == ["fails at 1", "a 1", "a 2", "a 1"]
    assert [record.getMessage() for record in caplog.records] == [
        "a subscriber of the event bus failed; it is removed"
    ]
    assert len(bus.events("a")) == 4


@pytest.mark.parametrize("text", ["", "x", "1", "7f-", "7f-1x", "7f-²", "7f-" + "9" * 30])
def test_what_is_not_an_id(text: str) -> None:
    with pytest.raises(RequestError) as refusal:
        EventBus().page(FOLDER, since=text, limit=1)
    assert refusal.value.code == "bad-event"


def test_an_id_of_an_earlier_process_lists_all_and_says_so() -> None:
    bus = EventBus()
    bus.publish(FOLDER, thoughts(2))
    page = bus.page(FOLDER, since="00000000-7", limit=10)
    assert ([event.text for event in page.events], page.missed) == (["1", "2"], True)


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["1", "1", "1"]),
    ({"session": "main"}, ["1"]),
    ({"agent": "main"}, ["1", "1", "1"]),
    ({"agent": "boss"}, ["1", "1"]),
    ({"agent": "worker"}, ["1"]),
    ({"agent": "worker", "session": "main"}, []),
    ({"agent": "nobody"}, []),
]


@pytest.mark.parametrize(("options", "expected"), FILTERS)
def test_an_agent_lists_itself_and_those_below_it(options: dict[str, Any], expected: list[str]) -> None:
    events = [
        *thoughts(1, agent="main", session="main"),
        *thoughts(1, agent="boss", session="agent:boss", above=("main",)),
        *thoughts(1, agent="worker", session="agent:worker", above=("boss", "main")),
    ]
    check(events, expected, **options)


DATA: list[tuple[str, Any]] = [
    ("execute", {"content": "Read x."}),
    ("thinking", {"content": "Hm.", "more": [1]}),
    ("tool_call", {"tool": "read", "arguments": {"path": "x"}}),
    ("build", None),
    ("build", ["red", 1.5]),
]


@pytest.mark.parametrize(("action", "data"), DATA)
def test_data_comes_back_as_it_was_published(action: str, data: Any) -> None:
    assert data_of(from_data(action, data)) == data


@pytest.mark.parametrize(
    ("action", "data", "field"),
    [("thinking", {}, "content"), ("execute", "Hm.", "content"), ("tool_call", {"tool": 1}, "tool")],
)
def test_data_that_lacks_a_field(action: str, data: Any, field: str) -> None:
    with pytest.raises(RequestError) as refusal:
        from_data(action, data)
    assert str(refusal.value) == (
        f"data of an event of the kind {action} must be an object with the text `{field}`."
    )


@given(st.lists(st.integers(0, 30), max_size=20), st.integers(1, 8), st.integers(1, 5))
def test_pages_together_are_what_the_bus_has(sizes: list[int], most: int, limit: int) -> None:
    bus = EventBus(most=most)
    first = bus.publish(FOLDER, thoughts(1))[0].id
    for size in sizes:
        bus.publish(FOLDER, thoughts(size))
    events: list[Event] = []
    since, more = first, True
    while more:
        page = bus.page(FOLDER, since=since, limit=limit)
        events += page.events
        since, more = (page.events[-1].id if page.events else since), page.more
    assert events == bus.events(FOLDER, after=1)
    numbers = [event.number for event in bus.events(FOLDER)]
    assert numbers == list(range(bus.number - len(numbers) + 1, bus.number + 1))
    assert len(numbers) == min(most, bus.number)
