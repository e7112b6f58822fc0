"""Any sequence of changes by two writers, compared with a model in plain lists."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.conversation.message import Message
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Appended, Counted, NewCompaction, NewTurn
from nexus_context.ledger.store import Ledger
from support.ledgers import (
    FOLDER,
    ModelSession,
    ModelTurn,
    as_tuples,
    expected_history,
    in_force,
    ledger_in,
    messages_of,
    stack_of,
    words,
)

NAMES = ("main", "idea", "main (2)")
ROLES = ("user", "assistant", "tool", "user")


class World:
    """A ledger that two have open, and what must be in it. Numbers choose among whatever there is."""

    def __init__(self, ledgers: tuple[Ledger, Ledger]) -> None:
        self.ledgers = ledgers
        self.sessions: dict[str, ModelSession] = {}
        self.clock = itertools.count(1)
        self.words = itertools.count(1)

    # ------------------------------------------------------------ changes

    def append(self, who: Ledger, name: str, a: int, b: int) -> None:
        new = NewTurn(messages=self._said(a), counter="letters", toolset=("x",) * (b % 2), event={"n": b})
        self._appended(name, new, who.append(FOLDER, name, new))

    def keyed(self, who: Ledger, name: str, a: int, b: int) -> None:
        key = f"key {b % 3}"
        new = NewTurn(messages=self._said(a), counter="letters", key=key)
        known = self.sessions.get(name)
        if known is not None and key in known.keys and self._lives(known.keys[key]):
            new = msgspec.structs.replace(new, messages=tuple(known.keys[key].messages))
            answer = who.append(FOLDER, name, new)
            assert (answer.repeated, answer.turn) == (True, known.keys[key].id)
            return
        answer = who.append(FOLDER, name, new)
        self._appended(name, new, answer)
        self.sessions[name].keys[key] = self.sessions[answer.session].turns[-1]

    def stale(self, who: Ledger, name: str, a: int, b: int) -> None:
        """A turn behind one that is, or was, the last."""
        known = self.sessions.get(name)
        if known is None:
            return
        parents: list[ModelTurn | None] = [None, *known.turns]
        at = b % len(parents)
        parent = parents[at]
        new = NewTurn(messages=self._said(a), counter="other", parent=None if parent is None else parent.id)
        answer = who.append(FOLDER, name, new)
        assert answer.forked == (at < len(parents) - 1)
        if answer.forked:
            assert answer.session not in self.sessions
            self.sessions[answer.session] = ModelSession(
                known.turns[:at], forked_from=known, keys={}, before=[]
            )
        self._appended(answer.session, new, answer)

    def compact(self, who: Ledger, name: str, a: int, b: int) -> None:
        known = self.sessions.get(name)
        if known is None:
            return
        count = len(messages_of(known.turns))
        cuts = sorted({a % (count + 1), b % (count + 1), (a * b) % (count + 1)})
        kept = ((cuts[0], cuts[1]),) if len(cuts) > 1 else ()
        word = f"s{next(self.words)}"
        summary = Counted(Message("user", word), 5)
        new = NewCompaction(
            id=word, seq=len(known.turns), summary=summary, counter="letters", kept=kept, receipt={"a": a}
        )
        answer = who.compact(FOLDER, name, new)
        self._turn(known, ModelTurn("compaction", (summary,), word, kept), answer)

    def undo(self, who: Ledger, name: str, a: int, b: int) -> None:
        known = self.sessions.get(name)
        stack = stack_of(known.turns) if known else []
        if known is None or not stack:
            with pytest.raises(LedgerError, match=r"no compaction|no session"):
                who.undo(FOLDER, name)
            return
        wanted = stack[-1 - b % len(stack)]
        answer = who.undo(FOLDER, name, None if wanted == stack[-1] and a % 2 else wanted)
        undone = next(one for one in reversed(known.turns) if one.compaction == wanted)
        self._turn(known, ModelTurn("undo", undoes=undone), answer)

    def fork(self, who: Ledger, name: str, a: int, b: int) -> None:
        known, to = self.sessions.get(name), NAMES[a % len(NAMES)]
        if known is None or to in self.sessions:
            with pytest.raises(LedgerError) as caught:
                who.fork(FOLDER, name, to)
            assert caught.value.code == ("unknown-session" if known is None else "session-exists")
            return
        threads = [known.turns, *known.before]
        thread = threads[a % len(threads)]
        at = b % (len(thread) + 1)
        if thread is not known.turns and not at:
            return
        turns = list(thread[:at]) if at else list(known.turns)
        who.fork(FOLDER, name, to, turn=thread[at - 1].id if at else None)
        self.sessions[to] = ModelSession(turns, forked_from=known, keys={}, before=[])
        self._changed(self.sessions[to])

    def clear(self, who: Ledger, name: str, a: int, b: int) -> None:
        known = self.sessions.get(name)
        if known is not None:
            who.clear(FOLDER, name)
            known.before = [*known.before, known.turns]
            known.turns, known.keys = [], {}
            self._changed(known)

    def rename(self, who: Ledger, name: str, a: int, b: int) -> None:
        to = NAMES[a % len(NAMES)]
        if name in self.sessions and (to == name or to not in self.sessions):
            who.rename(FOLDER, name, to)
            known = self.sessions.pop(name)
            self.sessions[to] = known
            if to != name:
                self._changed(known)

    def delete(self, who: Ledger, name: str, a: int, b: int) -> None:
        if name in self.sessions:
            who.delete(FOLDER, name)
            gone = self.sessions.pop(name)
            for other in self.sessions.values():
                if other.forked_from is gone:
                    other.forked_from = None
                # what is shared belongs to the others: a fork of it may start there, and lists say so

    # ------------------------------------------------------------ comparison

    def check(self) -> None:
        order = sorted(self.sessions.items(), key=lambda each: -each[1].changed)
        names = {id(known): name for name, known in self.sessions.items()}
        for ledger in self.ledgers:
            assert [(one.name, one.forked_from) for one in ledger.sessions(FOLDER)] == [
                (name, names.get(id(known.forked_from))) for name, known in order
            ]
            for name, known in order:
                self._check_session(ledger, name, known.turns)

    def _check_session(self, ledger: Ledger, name: str, turns: list[ModelTurn]) -> None:
        found = ledger.history(FOLDER, name)
        assert found is not None
        every = messages_of(turns)
        force, undone = in_force(turns)
        last = turns[-1].id if turns else None
        assert as_tuples(found) == expected_history(turns)
        assert (found.compaction, found.undone) == (force.compaction if force else None, undone)
        head = found.head
        assert (head.turn, head.seq, head.messages) == (last, len(turns), len(every))
        assert head.tokens == sum(counted.tokens for _, counted in every)
        session = ledger.find(FOLDER, name)
        assert session is not None
        assert session.sent_tokens == sum(held.tokens for held in found.messages)
        assert ledger.head(FOLDER, name) == head
        read = list(ledger.turns(FOLDER, name))
        assert [(one.id, one.seq, one.type) for one in read] == [
            (one.id, seq, one.type) for seq, one in enumerate(turns, 1)
        ]
        assert [one.messages for one in read] == [one.read_messages() for one in turns]
        assert [one.compaction for one in read] == [
            one.undoes.compaction if one.undoes else one.compaction for one in turns
        ]
        assert list(ledger.turns(FOLDER, name, last=2)) == read[-2:]
        for limit in (0, 1, 25, 60, 10_000):
            check_limited(ledger, name, limit)

    # ------------------------------------------------------------ inside

    def _said(self, count: int) -> tuple[Counted, ...]:
        return tuple(
            Counted(Message(ROLES[(count + at) % 4], f"w{next(self.words)}"), 1 + (count * 7 + at) % 20)  # type: ignore[arg-type]
            for at in range(count % 4)
        )

    def _lives(self, turn: ModelTurn) -> bool:
        return any(
            turn in thread for known in self.sessions.values() for thread in (known.turns, *known.before)
        )

    def _appended(self, name: str, new: NewTurn, answer: Appended) -> None:
        known = self.sessions.setdefault(name, ModelSession([], keys={}, before=[]))
        assert answer.session == name
        self._turn(known, ModelTurn("query", new.messages), answer)

    def _turn(self, known: ModelSession, turn: ModelTurn, answer: Appended) -> None:
        assert (answer.before.seq, answer.head.seq) == (len(known.turns), len(known.turns) + 1)
        assert answer.before.turn == (known.turns[-1].id if known.turns else None)
        assert answer.head.turn == answer.turn
        turn.id = answer.turn
        known.turns.append(turn)
        self._changed(known)

    def _changed(self, known: ModelSession) -> None:
        known.changed = next(self.clock)


def check_limited(ledger: Ledger, name: str, limit: int) -> None:
    """A limited history is the whole one but for a gap, and says what is in the gap."""
    whole, part = ledger.history(FOLDER, name), ledger.history(FOLDER, name, tokens=limit)
    assert whole is not None and part is not None
    tail = len(part.messages) - part.lead
    assert whole.messages[: part.lead] == part.messages[: part.lead]
    assert whole.messages[len(whole.messages) - tail :] == part.messages[part.lead :]
    gap = whole.messages[part.lead : len(whole.messages) - tail]
    assert (part.gap_messages, part.gap_tokens) == (len(gap), sum(held.tokens for held in gap))
    assert not gap or sum(held.tokens for held in part.messages[part.lead :]) >= limit
    assert (part.head, part.compaction, part.undone) == (whole.head, whole.compaction, whole.undone)


def check_rows(path: str) -> None:
    """No row is left over, none is missing, and the index of words fits."""
    connection = apsw.Connection(path)

    def rows(sql: str) -> list[Any]:
        return connection.execute(sql).fetchall()

    assert rows("PRAGMA foreign_key_check") == []
    assert rows("SELECT id FROM thread WHERE session NOT IN (SELECT id FROM session)") == []
    turns = rows("SELECT id, base_seq, seq, base_messages, messages FROM thread")
    wanted = {(thread << 32) + seq for thread, base, last, _, _ in turns for seq in range(base + 1, last + 1)}
    held = {(thread << 32) + at for thread, _, _, base, end in turns for at in range(base, end)}
    assert {each for (each,) in rows("SELECT id FROM turn")} == wanted
    assert {each for (each,) in rows("SELECT id FROM message")} == held
    assert rows("SELECT turn FROM compaction EXCEPT SELECT id FROM turn WHERE type = 'compaction'") == []
    connection.execute("INSERT INTO found (found, rank) VALUES ('integrity-check', 1)")
    assert rows("PRAGMA integrity_check") == [("ok",)]
    connection.close()


CHANGES: tuple[Callable[..., None], ...] = (
    World.append,
    World.append,
    World.keyed,
    World.stale,
    World.compact,
    World.compact,
    World.undo,
    World.fork,
    World.fork,
    World.clear,
    World.rename,
    World.delete,
)

STEPS = st.lists(
    st.tuples(
        st.integers(0, len(CHANGES) - 1),
        st.integers(0, 1),
        st.integers(0, 2),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=40,
)


@contextmanager
def world() -> Iterator[tuple[World, str]]:
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "ledger.db")
        with ledger_in(path) as one, ledger_in(path) as other:
            yield World((one, other)), path


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_any_sequence_of_changes_gives_what_plain_lists_give(steps: list[tuple[int, ...]]) -> None:
    with world() as (made, path):
        for change, who, name, a, b in steps:
            CHANGES[change](made, made.ledgers[who], NAMES[name], a, b)
        made.check()
        check_rows(path)


def test_the_lists_themselves_are_right() -> None:
    one = ModelTurn("query", (Counted(Message("user", "w1"), 1), Counted(Message("assistant", "w2"), 1)))
    cut = ModelTurn("compaction", (Counted(Message("user", "s"), 1),), "s", ((1, 2),))
    two = ModelTurn("query", (Counted(Message("user", "w3"), 1),))
    back = ModelTurn("undo", undoes=cut)
    assert words([message for _, _, message in expected_history([one, cut, two])]) == "s w2 w3"
    assert words([message for _, _, message in expected_history([one, cut, two, back])]) == "w1 w2 w3"
