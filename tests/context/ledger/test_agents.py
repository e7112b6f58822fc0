"""Running agents in the ledger: unique names, stored parents, and removal with the parent."""

from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.ledger import agents
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import NewAgent
from nexus_context.ledger.store import Ledger
from support.ledgers import FOLDER, append, history, ledger_in, make_old, new_ledger

NAMES = ("a", "b", "c", "d")
MOST = 3
steps = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.sampled_from(NAMES), st.sampled_from((None, *NAMES))),
        st.tuples(st.just("end"), st.sampled_from(NAMES), st.none()),
    ),
    max_size=20,
)


def check(ledger: Ledger, *expected: tuple[str, str | None]) -> None:
    """These live, each with its parent, in the order in which they were started."""
    assert [(one.name, one.parent) for one in ledger.agents.running(FOLDER)] == list(expected)


def started(ledger: Ledger, name: str, parent: str | None = None, wanted: Any = None) -> str:
    try:
        ledger.agents.start(FOLDER, NewAgent(name, parent, wanted or {"id": name}, MOST))
    except LedgerError as error:
        return error.code
    return ""


def test_agents_live_until_they_are_ended(tmp_path: Path) -> None:
    with ledger_in(tmp_path / "ledger.db") as ledger:
        assert started(ledger, "a", wanted={"id": "a", "folder": "x/\udcff", "parameters": {"t": 0.5}}) == ""
        assert started(ledger, "b", "a") == ""
        append(ledger, "u1")
        assert (started(ledger, "a"), started(ledger, "x", "nobody")) == ("agent-exists", "unknown-agent")
        assert started(ledger, "c") == ""
        assert started(ledger, "d") == "agent-count"
        ledger.agents.start("/elsewhere", NewAgent("a", None, {}, MOST))
    with ledger_in(tmp_path / "ledger.db") as ledger:
        check(ledger, ("a", None), ("b", "a"), ("c", None))
        first = ledger.agents.running(FOLDER)[0]
        assert first.wanted == {"id": "a", "folder": "x/\udcff", "parameters": {"t": 0.5}}
        assert ledger.agents.end(FOLDER, "a") == ["b", "a"]
        assert ledger.agents.end(FOLDER, "a") == []
        check(ledger, ("c", None))
        assert started(ledger, "a") == ""
        assert ledger.agents.running(FOLDER)[-1].number > first.number
        assert history(ledger) == "u1"
        assert [one.name for one in ledger.agents.running("/elsewhere")] == ["a"]


@given(steps)
def test_the_ledger_keeps_what_a_tree_would(done: list[tuple[str, str, str | None]]) -> None:
    tree: dict[str, str | None] = {}
    with new_ledger() as ledger, ledger_in(ledger.location) as other:
        for number, (verb, name, parent) in enumerate(done):
            window = (ledger, other)[number % 2]
            if verb == "start":
                fits = name not in tree and (parent is None or parent in tree) and len(tree) < MOST
                assert (started(window, name, parent) == "") == fits
                if fits:
                    tree[name] = parent
            else:
                gone = window.agents.end(FOLDER, name)
                assert sorted(gone) == sorted(below(tree, name))
                assert all(tree[one] not in gone[: gone.index(one)] for one in gone)  # children first
                tree = {one: above for one, above in tree.items() if one not in gone}
            check(window, *tree.items())


def below(tree: dict[str, str | None], name: str) -> list[str]:
    """An agent, if it lives, and all below it."""
    found = [name] if name in tree else []
    for one in found:
        found += [child for child, above in tree.items() if above == one]
    return found


def test_a_ledger_of_the_version_before_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with ledger_in(path) as ledger:
        append(ledger, "u1 a1")
    make_old(path, 1)
    with ledger_in(path) as ledger:
        assert history(ledger) == "u1 a1"
        assert started(ledger, "a") == ""
        check(ledger, ("a", None))


def test_what_is_not_kept_is_said(tmp_path: Path) -> None:
    with (
        ledger_in(tmp_path / "ledger.db") as ledger,
        pytest.raises(LedgerError, match="started in another window"),
    ):
        ledger.agents.start(FOLDER, NewAgent("a", None, {}))
        ledger.agents.start(FOLDER, NewAgent("a", None, {}))


# ---------------------------------------------------------------- the names that there have been


def test_names_stay_known_with_whether_their_agent_lives(tmp_path: Path) -> None:
    with ledger_in(tmp_path / "ledger.db") as ledger:
        for name in ("Ärger", "b"):
            assert started(ledger, name) == ""
        assert started(ledger, "below", "b") == ""
        ledger.agents.start("/elsewhere", NewAgent("x", None, {}))
        ledger.agents.end(FOLDER, "b")
        ledger.agents.end(FOLDER, "Ärger")
        assert started(ledger, "ärger") == ""
    with ledger_in(tmp_path / "ledger.db") as ledger:
        names = {name: ledger.agents.names(FOLDER, name) for name in ("ÄRGER", "b", "Below", "x", "c", "")}
        assert names == {
            "ÄRGER": {"Ärger": False, "ärger": True},
            "b": {"b": False},
            "Below": {"below": False},
            "x": {},
            "c": {},
            "": {},
        }


def test_names_are_looked_up_by_an_index(tmp_path: Path) -> None:
    with ledger_in(tmp_path / "ledger.db") as ledger:
        started(ledger, "a")
    connection = apsw.Connection(str(tmp_path / "ledger.db"))
    plan = [row[-1] for row in connection.execute("EXPLAIN QUERY PLAN " + agents.NAMES, (FOLDER, "a"))]
    connection.close()
    assert len(plan) == 2
    assert all(step.startswith("SEARCH ") for step in plan), plan


def test_agents_of_the_version_before_are_known(tmp_path: Path) -> None:
    """Those that live: of a conversation nobody can tell whether an agent of ours or of a client's had it."""
    path = tmp_path / "ledger.db"
    with ledger_in(path) as ledger:
        started(ledger, "Ärger")
        ledger.create(FOLDER, "agent:gone", agent="gone")
        ledger.create(FOLDER, "agent:mine")
        ledger.create(FOLDER, "plan", agent="planner")
    make_old(path, 2)
    with ledger_in(path) as ledger:
        names = [ledger.agents.names(FOLDER, name) for name in ("ärger", "Gone", "mine", "planner")]
        assert names == [{"Ärger": True}, {}, {}, {}]
