"""A turn that goes on: its later messages extend it while it is the last one, and nothing else is touched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from nexus_context.conversation.agent_result import ProviderUsage, TurnOutcome
from nexus_context.conversation.message import Message
from nexus_context.ledger import chain
from nexus_context.ledger.records import Appended, Counted, Head, NewCompaction, NewTurn
from nexus_context.ledger.store import Ledger
from nexus_context.ledger.turn_writer import MOST_EXTENDED
from nexus_context.memory.working import WorkingMemory
from support.ledgers import FOLDER, append, compaction, history, ledger_in, turn, words


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path / "ledger.db") as opened:
        yield opened
        result = opened.upkeep.verify()
        assert result.sound, result


def extend(ledger: Ledger, what: str, last: Appended | Head | None, **about: Any) -> Appended:
    head = last.head if isinstance(last, Appended) else last
    return append(ledger, what, extends=head, **about)


def turns(ledger: Ledger, session: str = "main") -> list[str]:
    return [words(one.messages) for one in ledger.turns(FOLDER, session)]


def test_messages_extend_the_last_turn(ledger: Ledger) -> None:
    append(ledger, "u1 a1")
    first = append(ledger, "u2", model="one", toolset=("look",), context={"system": "s"})
    second = extend(ledger, "a2:20 t2", first, model="two")
    third = extend(ledger, "a3", second, outcome=TurnOutcome(ProviderUsage(7, 1)))
    assert (second.turn, second.before, third.turn) == (first.turn, first.head, first.turn)
    assert third.head == Head(first.head.thread, first.turn, 2, messages=6, tokens=70)
    assert ledger.head(FOLDER, "main") == third.head
    assert history(ledger) == "u1 a1 u2 a2 t2 a3"
    one = list(ledger.turns(FOLDER, "main"))[-1]
    assert words(one.messages) == "u2 a2 t2 a3"
    assert (one.first, one.tokens, one.counts) == (2, 50, (10, 20, 10, 10))
    assert (one.model, one.toolset, one.context) == ("two", ("look",), {"system": "s"})
    assert one.outcome == TurnOutcome(ProviderUsage(7, 1))
    assert [hit.seq for hit in ledger.pages.search("a3")] == [2]
    append(ledger, "u4")
    assert turns(ledger) == ["u1 a1", "u2 a2 t2 a3", "u4"]
    stored = ledger.since(FOLDER, "main", second.head)
    assert words(stored) == "a3 u4"


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (lambda ledger: append(ledger, "u2"), ["u1", "u2", "a1"]),
        (lambda ledger: ledger.compact(FOLDER, "main", compaction("s", 1)), ["u1", "s", "a1"]),
        (lambda ledger: ledger.clear(FOLDER, "main"), ["a1"]),
        (lambda ledger: ledger.fork(FOLDER, "main", "fork"), ["u1", "a1"]),
        (lambda ledger: append(ledger, "a0", extends=ledger.head(FOLDER, "main")), ["u1 a0", "a1"]),
        (lambda ledger: ledger.delete(FOLDER, "main"), ["a1"]),
        (lambda ledger: ledger.rename(FOLDER, "main", "other"), ["a1"]),
    ],
    ids=["appended", "compacted", "cleared", "forked", "extended", "deleted", "renamed"],
)
def test_what_somebody_wrote_in_between_begins_a_new_turn(
    ledger: Ledger, between: Any, expected: list[str]
) -> None:
    first = append(ledger, "u1")
    between(ledger)
    extend(ledger, "a1", first)
    assert turns(ledger) == expected


def test_a_fork_keeps_the_turn_that_it_shares(ledger: Ledger) -> None:
    first = append(ledger, "u1")
    append(ledger, "u2")
    ledger.fork(FOLDER, "main", "fork", turn=first.turn)
    extended = append(ledger, "a1", "fork", extends=ledger.head(FOLDER, "fork"))
    append(ledger, "t1", "fork", extends=extended.head)  # it is the fork's own turn
    assert turns(ledger) == ["u1", "u2"]
    assert turns(ledger, "fork") == ["u1", "a1 t1"]


def test_a_fork_before_the_turn_does_not_end_it(ledger: Ledger) -> None:
    first = append(ledger, "u1")
    second = append(ledger, "u2")
    ledger.fork(FOLDER, "main", "fork", turn=first.turn)
    extend(ledger, "a2", second)
    assert (turns(ledger), turns(ledger, "fork")) == (["u1", "u2 a2"], ["u1"])


def test_a_compaction_keeps_what_extended_the_turn_since_it_was_planned(ledger: Ledger) -> None:
    first = append(ledger, "u1 a1")
    planned = NewCompaction(
        id="s",
        seq=first.head.seq,
        messages=first.head.messages,
        summary=turn("u9").messages[0],
        counter="letters",
        kept=((0, 1),),
        receipt={},
    )
    extend(ledger, "t1 a2", first)
    append(ledger, "u3")
    ledger.compact(FOLDER, "main", planned)
    assert history(ledger) == "u9 u1 t1 a2 u3"
    ledger.undo(FOLDER, "main")
    assert history(ledger) == "u1 a1 t1 a2 u3"


def test_a_long_turn_goes_on_in_another_one(ledger: Ledger) -> None:
    last = append(ledger, "u1")
    for _ in range(MOST_EXTENDED + 1):
        last = extend(ledger, "a1", last)
    assert [len(one.messages) for one in ledger.turns(FOLDER, "main")] == [MOST_EXTENDED, 2]


def test_a_turn_that_is_not_what_was_written_is_not_written_again(tmp_path: Path) -> None:
    """Its sum would cover the change: nobody could find it."""
    with ledger_in(tmp_path / "damaged.db") as ledger:
        first = append(ledger, "u1", model="m")
        other = apsw.Connection(str(tmp_path / "damaged.db"))
        other.execute("UPDATE turn SET model = 'x'")
        other.close()
        extend(ledger, "a1", first)
        assert turns(ledger) == ["u1", "a1"]
        assert [one.broken for one in ledger.upkeep.verify().sessions] == [1]


def test_the_sum_of_an_extended_turn_covers_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "changed.db"
    with ledger_in(path) as ledger:
        extend(ledger, "a1", append(ledger, "u1"))
        append(ledger, "u2")
    connection = apsw.Connection(str(path))
    (sound,) = chain.verify(connection)
    connection.execute("UPDATE counter SET name = 'another'")  # a checksum of a row does not cover it
    (changed,) = chain.verify(connection)
    connection.close()
    assert (sound.broken, changed.broken, changed.reason) == (None, 1, "it is not what was written")


def test_working_memory_hears_what_extends_a_turn(ledger: Ledger) -> None:
    last = append(ledger, "u1")
    memory = WorkingMemory(last.head.thread)
    assert memory.follow(ledger, FOLDER, "main", last.head)
    for number in range(3):
        rule = (Counted(Message("user", f"Never do {number}."), 5),)
        turn = NewTurn(messages=rule, counter="letters", extends=last.head)
        last = ledger.append(FOLDER, "main", turn)
        for _ in range(2):  # nothing is heard twice
            assert memory.follow(ledger, FOLDER, "main", last.head)
    fresh = WorkingMemory(last.head.thread)
    assert fresh.follow(ledger, FOLDER, "main", last.head)
    assert memory.entries("main", 9) == fresh.entries("main", 9)
    assert "Never do 2." in memory.entries("main", 9)[0].text
