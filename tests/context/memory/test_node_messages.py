"""Direct messages: an error names an invalid field, and each agent gets its messages once and in order."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.errors import RequestError
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import DirectMessage
from nexus_context.memory import node_messages
from nexus_context.memory.bus import EventBus
from nexus_context.memory.events import Event
from nexus_context.memory.sources import DirectSource, EventSource, Query, Source, gather

NOW = 1_800_000_000.0
FOLDER = "/home/a"


def made(content: str = "Look at it.", **fields: Any) -> DirectMessage:
    given: dict[str, Any] = {
        "workspace": FOLDER,
        "source": "boss",
        "target": "worker",
        "now": NOW,
        "content": content,
    }
    return node_messages.make(**given | fields)


def check(
    sent: list[DirectMessage], expected: list[str], tmp_path: Path, *, now: float = NOW, **to: Any
) -> None:
    """The delivered messages, from a ledger and from a bus without one."""
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    bus = EventBus()
    for message in sent:
        ledger.messages.send(message)
        bus.publish(message.workspace, [Event(action="node.message", direct=message)])
    given: dict[str, Any] = {"workspace": FOLDER, "agent": "worker", "now": now}
    asked = Query(**given | to)
    both: list[Source] = [DirectSource(ledger), EventSource(bus)]
    for sources in (both[:1], both[1:], both):
        items, failures = gather(sources, asked)
        assert ([item.text.partition("\n")[2] for item in items], failures) == (expected, [])
        assert {item.source for item in items} <= {"message"}
    ledger.close()


def test_the_most_important_comes_first_then_the_oldest(tmp_path: Path) -> None:
    sent = [made("a"), made("b", priority=0.9), made("c"), made("d", priority=1), made("e", priority=0)]
    check(sent, ["d", "b", "a", "c", "e"], tmp_path)


def test_a_clock_set_back_changes_no_order(tmp_path: Path) -> None:
    check([made("a"), made("b", now=NOW - 3600)], ["a", "b"], tmp_path)


def test_what_is_expired_is_never_delivered(tmp_path: Path) -> None:
    sent = [made("a", ttl=10), made("b", ttl=10.5), made("c")]
    check(sent, ["b", "c"], tmp_path, now=NOW + 10)


def test_each_gets_its_own(tmp_path: Path) -> None:
    sent = [
        made("a"),
        made("b", target="other"),
        made("c", workspace="/home/b"),
        made("d", node="n1"),
        made("e", node="n2"),
    ]
    check(sent, ["a", "d"], tmp_path, node="n1")
    check(sent, ["b"], tmp_path, agent="other")
    check(sent, [], tmp_path, agent=None)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"content": " \n"}, "content is empty"),
        ({"content": 7}, "content is of type int"),
        ({"content": "x" * 16_001}, "content has 16,001 characters"),
        ({"source": ""}, "source is empty"),
        ({"target": None}, "target is of type NoneType"),
        ({"workspace": ""}, "workspace is empty"),
        ({"node": ""}, "node is empty"),
        ({"task": 3}, "task is of type int"),
        ({"priority": 1.1}, "priority is 1.1; it must be a number from 0 to 1"),
        ({"priority": -0.1}, "priority is -0.1"),
        ({"priority": float("nan")}, "priority is nan"),
        ({"priority": True}, "priority is True"),
        ({"priority": "high"}, "priority is 'high'"),
        ({"ttl": 0}, "ttl is 0; it must be a number of seconds above 0"),
        ({"ttl": -1}, "ttl is -1"),
        ({"ttl": float("inf")}, "ttl is inf"),
        ({"metadata": {1, 2} and object()}, "metadata is not a JSON value"),
    ],
)
def test_what_cannot_be_is_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(RequestError, match=named.replace("(", r"\(")) as failed:
        made(**fields)
    assert failed.value.code == "bad-message"


def test_what_the_agent_reads() -> None:
    assert node_messages.rendered(made(" Look at it.\n")) == "From boss:\nLook at it."
    urgent = made("Stop.", priority=0.8, task="t-1")
    assert node_messages.rendered(urgent) == "From boss, task t-1, priority 0.8:\nStop."


def test_what_was_delivered_waits_no_more(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    message = made(metadata={"reason": "handoff"})
    ledger.messages.send(message)
    ledger.messages.send(message)  # tried again
    assert node_messages.inbox(ledger, FOLDER, "worker", now=NOW) == [message]
    ledger.messages.delivered([message.id])
    ledger.messages.send(message)
    assert node_messages.inbox(ledger, FOLDER, "worker", now=NOW) == []
    ledger.close()


def files_hold(tmp_path: Path, words: str) -> bool:
    return any(words.encode() in each.read_bytes() for each in tmp_path.iterdir())


def test_what_is_done_with_says_nothing_any_more(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    read, expired = made("SecretOne", metadata="SecretTwo"), made("SecretThree", ttl=5)
    other, waiting = made("Other", ttl=5, target="other"), made("Waiting", now=NOW + 5)
    for message in (read, expired, other):
        ledger.messages.send(message)
    ledger.messages.delivered([read.id])
    ledger.messages.send(waiting)
    ledger.messages.send(expired)  # tried again
    assert node_messages.inbox(ledger, FOLDER, "worker", now=NOW) == [waiting]
    assert node_messages.inbox(ledger, FOLDER, "other", now=NOW) == [other]
    ledger.close()
    assert not files_hold(tmp_path, "Secret")


def test_a_deleted_session_takes_its_messages_with_it(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    gone, stays, elsewhere = (
        made("SecretWord", session="a"),
        made("b", session="b"),
        made("c", session="a", workspace="/home/b"),
    )
    for message in (gone, stays, elsewhere):
        ledger.messages.send(message)
    ledger.create(FOLDER, "a")
    ledger.delete(FOLDER, "a")
    assert node_messages.inbox(ledger, FOLDER, "worker", now=NOW) == [stays]
    assert node_messages.inbox(ledger, "/home/b", "worker", now=NOW) == [elsewhere]
    ledger.close()
    assert not files_hold(tmp_path, "SecretWord")


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 0.2, 0.5, 1]), st.none() | st.sampled_from([1, 5, 60])), max_size=12
    ),
    st.integers(0, 90),
)
def test_order_and_expiry_of_any_messages(given: list[tuple[float, float | None]], later: int) -> None:
    sent = [made(str(number), priority=priority, ttl=ttl) for number, (priority, ttl) in enumerate(given)]
    waiting = node_messages.waiting(sent, now=NOW + later)
    assert {one.content for one in waiting} == {
        one.content for one in sent if one.ttl is None or later < one.ttl
    }
    order = [(-one.priority, int(one.content)) for one in waiting]
    assert order == sorted(order)
    priorities = [item.priority for item in node_messages.items(waiting)]
    assert priorities == sorted(priorities, reverse=True)
    assert all(3 <= priority < 4 for priority in priorities)
