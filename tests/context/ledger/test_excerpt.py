"""A page of a conversation has every turn and message: compacted, undone, forked or cleared."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.conversation.message import Message
from nexus_context.ledger import excerpt as excerpts
from nexus_context.ledger import rows
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Counted, Excerpt, NewTurn, StoredMessage
from nexus_context.ledger.store import Ledger
from support.ledgers import (
    FOLDER,
    ModelTurn,
    append,
    compaction,
    expected_history,
    messages_of,
    new_ledger,
    turn,
    words,
)


def check(page: Excerpt | None) -> list[str]:
    """The page in lines: `[first, end) of messages`, then each turn with its messages in it."""
    assert page is not None
    lines = [f"[{page.first}, {page.end}) of {page.messages}{'' if page.current else ' cleared'}"]
    for one in page.page:
        line = f"{one.seq} {one.type} at {one.first}: {words(one.stored)}"
        parts = [f"{name} {list(value)}" for name in ("kept", "folded") if (value := getattr(one, name))]
        lines.append(" ".join([line, *parts]))
    return lines


def conversation(ledger: Ledger) -> None:
    """Two compactions, one that was taken back between them, and a turn behind each."""
    append(ledger, "u1 a1")
    append(ledger, "u2 a2 u3")
    ledger.compact(FOLDER, "main", compaction("c1", 2, (3, 4)))
    append(ledger, "u4")
    ledger.compact(FOLDER, "main", compaction("c2", 4))
    ledger.undo(FOLDER, "main")
    append(ledger, "u5")
    ledger.compact(FOLDER, "main", compaction("c3", 7, (8, 9)))


FIRST_TURNS = ["1 query at 0: u1 a1", "2 query at 2: u2 a2 u3"]
FIRST_COMPACTION = "3 compaction at 5: c1 kept [(3, 4)] folded [(0, 3), (4, 5)]"
MIDDLE = ["4 query at 6: u4", "5 compaction at 7: c2 folded [(3, 4), (5, 7)]", "6 undo at 8: "]
LAST = ["7 query at 8: u5", "8 compaction at 9: c3 kept [(8, 9)] folded [(3, 4), (5, 7)]"]


@pytest.mark.parametrize(
    ("where", "lines"),
    [
        ({}, ["[0, 10) of 10", *FIRST_TURNS, FIRST_COMPACTION, *MIDDLE, *LAST]),
        ({"limit": 2}, ["[8, 10) of 10", *LAST]),
        ({"limit": 3, "before": 8}, ["[5, 8) of 10", FIRST_COMPACTION, *MIDDLE]),
        ({"limit": 3, "before": 4}, ["[1, 4) of 10", "1 query at 0: a1", "2 query at 2: u2 a2"]),
        ({"limit": 2, "first": 3}, ["[3, 5) of 10", "2 query at 2: a2 u3"]),
        ({"first": 4, "before": 6}, ["[4, 6) of 10", "2 query at 2: u3", FIRST_COMPACTION]),
        ({"first": 10}, ["[10, 10) of 10"]),
        ({"first": 99}, ["[10, 10) of 10"]),
        ({"before": 0}, ["[0, 0) of 10"]),
        ({"first": -5, "limit": 1}, ["[0, 1) of 10", "1 query at 0: u1"]),
    ],
)
def test_a_page_is_a_range_of_messages_in_their_turns(where: dict[str, Any], lines: list[str]) -> None:
    with new_ledger() as ledger:
        conversation(ledger)
        assert check(ledger.pages.excerpt(FOLDER, "main", **{"limit": 100, **where})) == lines


def test_an_undo_at_the_end_is_there_also_where_nothing_follows() -> None:
    with new_ledger() as ledger:
        append(ledger, "u1")
        ledger.compact(FOLDER, "main", compaction("c1", 1))
        ledger.undo(FOLDER, "main")
        last = ["2 compaction at 1: c1 folded [(0, 1)]", "3 undo at 2: "]
        assert check(ledger.pages.excerpt(FOLDER, "main", limit=1)) == ["[1, 2) of 2", *last]
        assert check(ledger.pages.excerpt(FOLDER, "main", first=2, limit=9)) == ["[2, 2) of 2", last[1]]


def test_a_fork_shows_what_it_shares_and_goes_on() -> None:
    with new_ledger() as ledger:
        append(ledger, "u1 a1")
        second = append(ledger, "u2")
        append(ledger, "u3")
        ledger.fork(FOLDER, "main", "fork", turn=second.turn)
        append(ledger, "u4", "fork")
        page = ledger.pages.excerpt(FOLDER, "fork", limit=9)
        assert check(page) == [
            "[0, 4) of 4",
            "1 query at 0: u1 a1",
            "2 query at 2: u2",
            "3 query at 3: u4",
        ]
        assert page is not None
        assert page.page[1].id == second.turn
        shared = ledger.pages.excerpt(FOLDER, "fork", thread=second.turn.rpartition("-")[0], limit=1)
        assert check(shared) == ["[3, 4) of 4", "3 query at 3: u4"]


def test_what_was_cleared_is_read_by_its_thread() -> None:
    with new_ledger() as ledger:
        old = append(ledger, "u1 a1").head.thread
        ledger.clear(FOLDER, "main")
        assert check(ledger.pages.excerpt(FOLDER, "main", limit=9)) == ["[0, 0) of 0"]
        append(ledger, "u2")
        assert check(ledger.pages.excerpt(FOLDER, "main", limit=9)) == ["[0, 1) of 1", "1 query at 0: u2"]
        cleared = ["[0, 2) of 2 cleared", "1 query at 0: u1 a1"]
        assert check(ledger.pages.excerpt(FOLDER, "main", thread=old, limit=9)) == cleared
        append(ledger, "u9", "other")
        with pytest.raises(LedgerError, match=r"'other' has no turns of the thread") as caught:
            ledger.pages.excerpt(FOLDER, "other", thread=old, limit=9)
        assert caught.value.code == "unknown-turn"


def test_a_conversation_that_is_not_there_has_no_page() -> None:
    with new_ledger() as ledger:
        assert ledger.pages.excerpt(FOLDER, "main", limit=9) is None


@pytest.mark.parametrize(
    ("where", "messages"), [({}, [2, 3]), ({"first": 0}, [0, 1]), ({"before": 3}, [1, 2])]
)
def test_a_page_of_long_messages_is_short(
    where: dict[str, Any], messages: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excerpts, "CHARACTERS", 15)
    with new_ledger() as ledger:
        long = tuple(Counted(Message("user", "é" * 4), 1) for _ in range(4))  # 8 bytes each
        ledger.append(FOLDER, "main", NewTurn(messages=long, counter="letters"))
        page = ledger.pages.excerpt(FOLDER, "main", limit=9, **where)
        assert page is not None
        assert [held.position for held in page.page[0].stored] == messages


@pytest.mark.parametrize("where", [{}, {"first": 1_000}, {"before": 1_000}])
def test_of_a_long_conversation_only_the_page_is_read(
    where: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    read_messages = rows.read_messages

    def counting(found: list[Any], counters: dict[int, str]) -> list[StoredMessage]:
        read.append(len(found))
        return read_messages(found, counters)

    with new_ledger() as ledger:
        append(ledger, " ".join(f"u{number}" for number in range(2_000)))
        monkeypatch.setattr(excerpts, "read_messages", counting)
        page = ledger.pages.excerpt(FOLDER, "main", limit=7, **where)
        assert page is not None
        assert (read, page.end - page.first) == ([7], 7)


# ---------------------------------------------------------------- any conversation, any pages


Step = Callable[[Ledger, list[ModelTurn]], None]


def _say(count: int) -> Step:
    def step(ledger: Ledger, turns: list[ModelTurn]) -> None:
        new = turn(" ".join(f"u{number}" for number in range(count)))
        append(ledger, " ".join(f"u{number}" for number in range(count)))
        turns.append(ModelTurn("query", new.messages))

    return step


def _compact(a: int, b: int) -> Step:
    def step(ledger: Ledger, turns: list[ModelTurn]) -> None:
        if not turns:
            return
        count = len(messages_of(turns))
        first, end = sorted((a % (count + 1), b % (count + 1)))
        kept = ((first, end),) if first < end else ()
        name = f"c{len(turns)}"
        new = compaction(name, len(turns), *kept)
        ledger.compact(FOLDER, "main", new)
        turns.append(ModelTurn("compaction", (new.summary,), name, kept))

    return step


def _undo(ledger: Ledger, turns: list[ModelTurn]) -> None:
    try:
        ledger.undo(FOLDER, "main")
    except LedgerError:
        return
    undone: list[ModelTurn] = []
    for one in turns:
        if one.type == "compaction":
            undone.append(one)
        elif one.undoes is not None:
            undone.remove(one.undoes)
    turns.append(ModelTurn("undo", undoes=undone[-1]))


STEPS = st.lists(
    st.one_of(
        st.integers(1, 3).map(_say),
        st.builds(_compact, st.integers(0, 50), st.integers(0, 50)),
        st.just(_undo),
    ),
    min_size=1,
    max_size=12,
)


@given(steps=STEPS, limit=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_pages_from_the_end_and_from_the_beginning_hold_every_turn_and_message_once(
    steps: list[Step], limit: int
) -> None:
    turns: list[ModelTurn] = []
    with new_ledger() as ledger:
        for step in steps:
            step(ledger, turns)
        whole = ledger.pages.excerpt(FOLDER, "main", limit=1_000)
        if whole is None:
            assert turns == []
            return
        assert [one.type for one in whole.page] == [one.type for one in turns]
        for number, (shown, model) in enumerate(zip(whole.page, turns, strict=True)):
            if model.type == "compaction":
                before = {position for position, _, _ in expected_history(turns[:number])}
                kept = {at for first, end in model.kept for at in range(first, end)}
                folded = [at for first, end in shown.folded for at in range(first, end)]
                assert folded == sorted(before - kept)
        forwards: list[Excerpt] = []
        backwards: list[Excerpt] = []
        first = 0
        while first < whole.messages:
            page = ledger.pages.excerpt(FOLDER, "main", first=first, limit=limit)
            assert page is not None
            forwards.append(page)
            first = page.end
        before_position = whole.messages
        while before_position > 0:
            page = ledger.pages.excerpt(FOLDER, "main", before=before_position, limit=limit)
            assert page is not None
            backwards.insert(0, page)
            before_position = page.first
        for pages in (forwards, backwards):
            held = [each.position for page in pages for one in page.page for each in one.stored]
            assert held == list(range(whole.messages))
            empty = [one.seq for page in pages for one in page.page if not one.messages]
            assert empty == [one.seq for one in whole.page if not one.messages]
