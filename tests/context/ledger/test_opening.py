"""The opening message of a session is stored once, whichever writer is first."""

from pathlib import Path

import pytest

from nexus_context.conversation.message import Message
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewTurn
from nexus_context.ledger.store import Ledger


def check(ledger: Ledger, session: str, *contents: str) -> None:
    history = ledger.history("/a", session)
    assert history is not None
    assert [held.message.content for held in history.messages] == list(contents)
    assert [held.position for held in history.messages] == list(range(len(contents)))
    assert history.head.tokens == sum(held.tokens for held in history.messages)


def turn(content: str, *, opening: str = "began", **more: str | None) -> NewTurn:
    return NewTurn(
        messages=(Counted(Message("user", content), 2),),
        counter="c",
        opening=Counted(Message("user", opening), 3),
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(environ={"NEXUS_STATE": str(tmp_path)})


def test_two_writers_that_both_begin_a_session(ledger: Ledger, tmp_path: Path) -> None:
    other = open_ledger(environ={"NEXUS_STATE": str(tmp_path)})
    first = ledger.append("/a", "main", turn("one", opening="began first"))
    second = other.append("/a", "main", turn("two", opening="began second"))
    assert (first.head.messages, second.before, second.head.messages) == (2, first.head, 3)
    check(ledger, "main", "began first", "one", "two")
    other.close()
    ledger.close()


def test_a_thread_that_is_empty_again_is_opened_again(ledger: Ledger) -> None:
    ledger.create("/a", "main")
    ledger.append("/a", "main", turn("one"))
    check(ledger, "main", "began", "one")
    ledger.clear("/a", "main")
    ledger.append("/a", "main", turn("two", opening="anew", key="k"))
    ledger.append("/a", "main", turn("two", opening="anew", key="k"))
    check(ledger, "main", "anew", "two")
    ledger.close()


def test_a_fork_is_opened_where_it_shares_nothing(ledger: Ledger) -> None:
    seen = ledger.append("/a", "main", turn("one")).turn
    ledger.append("/a", "main", turn("two"))
    assert ledger.append("/a", "main", turn("late", parent=None)).session == "main (2)"
    assert ledger.append("/a", "main", turn("late", parent=seen)).session == "main (3)"
    check(ledger, "main (2)", "began", "late")
    check(ledger, "main (3)", "began", "one", "late")
    ledger.close()
