"""What is told of the ledger: every change once, in order, as that of whoever made it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_context.conversation.message import Message
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import (
    Counted,
    DirectMessage,
    Head,
    NewAgent,
    NewCompaction,
    NewTurn,
    Session,
    Turn,
)
from nexus_context.ledger.sqlite_tables import MessageTable
from nexus_context.memory import node_messages
from nexus_daemon.sessions.ledger_events import MOST_TURNS
from nexus_daemon.sessions.ledger_writer import FolderLedger, LedgerWriter
from nexus_daemon.sessions.session_changes import Change, differences


class Process:
    """One process with its writer and the ledger of /a; `told` returns what changed since the last call."""

    def __init__(self, state: Path) -> None:
        self._told: list[Change] = []
        self.messages: list[tuple[str, str]] = []
        self.listed = 0
        self.ledger_writer = LedgerWriter(
            {"NEXUS_STATE": str(state)}, self._told.append, lambda *message: self.messages.append(message)
        )
        self.ledger: FolderLedger = self.ledger_writer.write(
            lambda: self.ledger_writer.open("/a", path=None, url=None)
        ).for_client("me")

    def told(self) -> list[str]:
        """Each change as text, with who made it where that is known."""
        self.ledger_writer.write(self.ledger_writer.look)
        shown = [
            " ".join(filter(None, (str(one.by or "other"), one.reason, one.session, one.former)))
            for one in self._told
        ]
        self._told.clear()
        return shown

    def extend(self, text: str) -> None:
        messages = (Counted(Message("assistant", text), 1),)
        extends = self.ledger.store.head("/a", "main")
        self.ledger.append("main", NewTurn(messages=messages, counter="c", extends=extends))

    def say(self, session: str = "main", *, parent: str | None = None, text: str = "x") -> str:
        turn = NewTurn(messages=(Counted(Message("user", text), 1),), counter="c")
        if parent is not None:
            turn = NewTurn(messages=turn.messages, counter="c", parent=parent)
        return self.ledger.append(session, turn).turn

    def compact(self) -> None:
        head = self.ledger.store.head("/a", "main")
        assert head is not None
        summary = Counted(Message("user", "s"), 1)
        self.ledger.compact(
            "main",
            NewCompaction(id=f"c{head.seq}", seq=head.seq, summary=summary, counter="c", kept=(), receipt={}),
        )


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Process, Process]]:
    processes = Process(tmp_path), Process(tmp_path)
    yield processes
    for process in processes:
        ended = process.ledger_writer.close()
        if ended is not None:
            ended.result()


def check(pair: tuple[Process, Process], *changes: str) -> None:
    """The first process has made these changes: it is told that, and the other one the same of another."""
    one, two = pair
    assert one.told() == [f"me {change}" for change in changes]
    latest = {change.split()[1]: change for change in changes}  # between two looks only what is now is seen
    assert sorted(two.told()) == sorted(f"other {change}" for change in latest.values())
    assert one.ledger_writer.heads == two.ledger_writer.heads
    assert one.told() == two.told() == []


def test_every_change_is_told_to_both(pair: tuple[Process, Process]) -> None:
    one, _ = pair
    one.ledger.create("main", None, {})
    check(pair, "created main")
    first = one.say()
    check(pair, "appended main")
    one.compact()
    check(pair, "compacted main")
    one.ledger.undo("main", None)
    check(pair, "undone main")
    one.ledger.fork("main", "side", first)
    check(pair, "forked side")
    one.ledger.rename("side", "aside")
    check(pair, "renamed aside side")
    one.ledger.clear("main")
    check(pair, "cleared main")
    one.ledger.delete("main")
    check(pair, "deleted main")


def test_an_append_to_a_new_session_begins_it(pair: tuple[Process, Process]) -> None:
    one, two = pair
    one.say()
    assert one.told() == ["me created main", "me appended main"]
    assert two.told() == ["other created main", "other appended main"]


def test_a_late_append_is_a_fork(pair: tuple[Process, Process]) -> None:
    one, two = pair
    first = one.say()
    two.say()
    assert one.told() == ["me created main", "me appended main", "other appended main"]
    assert two.told() == ["other created main", "other appended main", "me appended main"]
    one.say(parent=first)
    assert one.told() == ["me forked main (2)"]
    assert two.told() == ["other forked main (2)"]


def test_what_another_wrote_before_is_told_before(pair: tuple[Process, Process]) -> None:
    one, two = pair
    one.say()
    two.told()
    one.say()
    two.say()
    assert two.told() == ["other appended main", "me appended main"]
    assert one.told() == ["me created main", "me appended main", "me appended main", "other appended main"]


def test_what_fails_is_not_told(pair: tuple[Process, Process]) -> None:
    one, two = pair
    for wrong in (
        lambda: one.ledger.delete("x"),
        lambda: one.ledger.fork("x", "y", None),
        lambda: one.ledger.rename("x", "y"),
        lambda: one.ledger.undo("x", None),
    ):
        with pytest.raises(LedgerError, match="no session 'x'"):
            wrong()
    assert one.told() == two.told() == []


def test_a_new_session_of_another_process_is_told_with_what_came_last(pair: tuple[Process, Process]) -> None:
    one, two = pair
    one.say()
    one.compact()
    assert two.told() == ["other created main", "other compacted main"]


def test_names_are_known_without_reading(pair: tuple[Process, Process]) -> None:
    one, two = pair
    one.say("b")
    one.say("a")
    assert (one.ledger_writer.names("/a"), two.ledger_writer.names("/a")) == (["a", "b"], [])
    two.told()
    assert (two.ledger_writer.names("/a"), two.ledger_writer.names("/other")) == (["a", "b"], [])


def test_what_could_not_be_read_is_told_at_the_next_look(
    pair: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair
    for name in ("a", "b", "c"):
        one.say(name)
    two.told()
    for name in ("a", "b", "c"):
        one.say(name)
    assert two.ledger_writer.store is not None
    read = two.ledger_writer.store.turns

    def failing(workspace: str, session: str, **limits: int) -> Iterator[Turn]:
        if session == "b":
            raise LedgerError("The disk failed.", code="ledger-io")
        return read(workspace, session, **limits)

    monkeypatch.setattr(two.ledger_writer.store, "turns", failing)
    for _ in range(2):
        with pytest.raises(LedgerError, match="disk failed"):
            two.told()
    monkeypatch.undo()
    assert sorted(two.told()) == [f"other appended {name}" for name in ("a", "b", "c")]
    assert two.told() == []


def published(process: Process) -> list[str]:
    """`agent kind text` of the events of a process since the last call, after a look at the ledger."""
    process.ledger_writer.write(process.ledger_writer.look)
    bus = process.ledger_writer.bus
    events = bus.events("/a", after=process.listed)
    process.listed = bus.number
    return [f"{one.agent} {one.action} {one.text or one.data.get('content', '')}".strip() for one in events]


def test_what_another_process_writes_is_published_once(pair: tuple[Process, Process]) -> None:
    one, two = pair
    turn = ["main execute x", "main turn"]
    one.say()
    assert published(one) == published(two) == turn
    for process in (one, two, one):  # the second one writes behind what it has not seen
        process.say()
    assert published(one) == published(two) == turn * 3
    one.compact()
    one.ledger.undo("main", None)
    assert published(one) == published(two) == ["main compaction"] * 2
    one.ledger.rename("main", "renamed")
    one.ledger.fork("renamed", "fork", None)
    one.ledger.clear("fork")
    assert published(one) == published(two) == []


def test_what_extends_a_turn_is_told_and_published_once(pair: tuple[Process, Process]) -> None:
    one, two = pair
    one.ledger.create("main", None, {})
    one.say(text="ask")
    said = ["main execute ask", "main turn"]
    assert (published(one), published(two)) == (said, said)
    one.told(), two.told()
    one.extend("answer")
    check(pair, "appended main")
    expected = ["main thinking answer", "main turn"]
    assert published(one) == published(two) == expected
    two.extend("more")
    one.extend("still more")  # behind what it has not seen
    expected = ["main thinking more", "main turn", "main thinking still more", "main turn"]
    assert published(one) == expected
    assert [each for each in published(two) if "thinking" in each] == expected[::2]
    one.compact()
    assert published(one) == published(two) == ["main compaction"]


def test_of_many_turns_of_another_process_the_newest_are_published(pair: tuple[Process, Process]) -> None:
    one, two = pair
    texts = [str(number) for number in range(MOST_TURNS + 5)]
    for text in texts:
        one.say(text=text)
    assert [each for each in published(two) if "execute" in each] == [
        f"main execute {text}" for text in texts[5:]
    ]


def test_a_turn_of_another_process_is_of_its_agent(pair: tuple[Process, Process]) -> None:
    one, two = pair
    for name, parent in (("boss", None), ("hand", "boss")):
        one.ledger.start_agent(NewAgent(name, parent, {}))
    one.say("agent:hand")
    one.say("agent:gone")
    two.ledger_writer.write(two.ledger_writer.look)
    events = two.ledger_writer.bus.events("/a")
    lineages = {event.session: (event.agent, event.above) for event in events}
    assert lineages == {"agent:hand": ("hand", ("boss", "main")), "agent:gone": ("main", ())}


def test_direct_messages_of_another_process_are_published_and_reported(pair: tuple[Process, Process]) -> None:
    one, two = pair

    def message(content: str, workspace: str = "/a") -> DirectMessage:
        return node_messages.make(
            workspace=workspace, source="main", target="hand", content=content, now=time.time()
        )

    one.ledger.send(message("one"))
    two.ledger.send(message("two"))
    assert published(one) == ["main node.message one", "main node.message two"]
    assert published(two) == ["main node.message two", "main node.message one"]
    two.ledger.store.messages.send(message("three", "/elsewhere"))
    two.ledger.send(message("four"))
    assert published(one) == published(two) == ["main node.message four"]
    assert one.messages == two.messages == [("/a", "hand")] * 3


def test_events_that_fail_hold_up_no_change(
    pair: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = pair
    one.say()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(two.ledger_writer.bus, "publish", fail)
    assert two.told() == ["other created main", "other appended main"]
    assert "an event was not published" in caplog.text


def test_messages_that_cannot_be_read_hold_up_no_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> int:
        raise LedgerError("The disk failed.", code="ledger-io")

    monkeypatch.setattr(MessageTable, "newest", fail)
    process = Process(tmp_path)
    process.say()
    monkeypatch.undo()
    assert process.told() == ["me created main", "me appended main"]
    ended = process.ledger_writer.close()
    assert ended is not None
    ended.result()


HEAD = Head("t1", "t1.3", 3, 5)


def session(name: str, head: Head, *, forked_from: str | None = None) -> Session:
    return Session("/a", name, head, "", "", forked_from=forked_from)


@pytest.mark.parametrize(
    ("known", "now", "found"),
    [
        ({}, [], []),
        ({"a": HEAD}, [session("a", HEAD)], []),
        ({"a": HEAD}, [session("a", Head("t1", "t1.4", 4, 6))], [("a", "appended", "t1.4", None)]),
        ({"a": HEAD}, [session("a", Head("t1", "t1.3", 3, 6))], [("a", "appended", "t1.3", None)]),
        ({"a": HEAD}, [session("a", Head("t2"))], [("a", "cleared", None, None)]),
        ({"a": HEAD}, [session("b", HEAD)], [("b", "renamed", "t1.3", "a")]),
        ({"a": HEAD}, [], [("a", "deleted", None, None)]),
        ({}, [session("b", HEAD, forked_from="a")], [("b", "forked", "t1.3", None)]),
        (
            {"a": HEAD, "b": Head("t2")},
            [session("b", HEAD), session("c", Head("t3"))],
            [("b", "cleared", "t1.3", None), ("c", "created", None, None), ("a", "deleted", None, None)],
        ),
    ],
)
def test_differences(known: dict[str, Head], now: list[Session], found: list[tuple[object, ...]]) -> None:
    changes = differences("/a", known, {one.name: one for one in now})
    assert sorted((one.session, one.reason, one.turn, one.former) for one in changes) == sorted(found)


def test_a_write_that_a_move_overtakes_fails_alone(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.say(text="begins")
    ledger = Path(process.ledger.store.location)
    process.ledger_writer.submit(lambda: time.sleep(0.2))  # so that the next two wait behind each other

    def move() -> None:
        with process.ledger.store._database.writing() as connection:  # type: ignore[attr-defined]  # noqa: SLF001
            connection.execute("UPDATE session SET changed = changed")
            ledger.rename(tmp_path / "elsewhere.db")

    overtaken = process.ledger_writer.submit(move)
    behind = process.ledger_writer.submit(lambda: process.ledger.store.sessions("/a"))
    with pytest.raises(LedgerError) as error:
        overtaken.result()
    assert (error.value.code, behind.result()) == ("ledger-moved", [])
    process.ledger_writer.close()
