"""What an agent was granted in place of its folder's settings, and what became of those."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nexus_context.config.merge import ConfigLayer, Effective, Provenance, merge, replaced
from nexus_context.text.json import parse
from support.fixture import split_files, write_fixture
from support.pools import pool_of

MODEL, ALLOW, DENY = "/provider/model", "/permissions/allow", "/permissions/deny"
SETTINGS = (MODEL, "/permissions/level", ALLOW, DENY)


def check(fixture: str, settings: dict[str, Any], *chains: str) -> None:
    """The chains of all that is replaced, and of what is in it: layer, value, `*` wins, `-` ignored."""
    found = replaced(folder(fixture), "agent", settings)
    shown = [
        f"{at}: {', '.join(map(_entry, chain))}"
        for at, chain in sorted(found.provenance.items())
        if at.startswith(tuple(settings))
    ]
    assert shown == list(chains)
    assert [found.get(pointer) for pointer in settings] == list(settings.values())


def folder(fixture: str) -> Effective:
    """The settings of a folder; `drop` in a layer's name: it may not set the level of its permissions."""
    level = frozenset({("permissions", "level")})
    return merge(
        [
            ConfigLayer(
                path.strip("/"), parse(f"{path}/config.json", text), level if "drop" in path else frozenset()
            )
            for path, text in split_files(fixture)
        ]
    )


def _entry(entry: Provenance) -> str:
    if entry.document is not None:
        assert parse("/item", entry.document.text[slice(*entry.span)]).value == entry.value
    return f"{entry.layer} {entry.value}{'*' if entry.wins else ''}{'-' if entry.ignored else ''}"


LAYERS = """
//- /ancestor:company
{"provider": {"model": "gpt-4o"}, "permissions": {"allow": ["fs.*", "net.get"]}}
//- /local
{"provider": {"model": "gpt-4.1"}, "permissions": {"allow": ["fs.read"]}}
"""


def test_overridden_values_stay_in_the_chain() -> None:
    check(
        LAYERS,
        {MODEL: "gpt-4o-mini"},
        "/provider/model: ancestor:company gpt-4o, local gpt-4.1, agent gpt-4o-mini*",
    )


def test_remaining_items_keep_their_place_and_all_others_join_the_list() -> None:
    check(
        LAYERS,
        {ALLOW: ["tickets.*", "fs.read"]},
        "/permissions/allow: ancestor:company ['fs.*', 'net.get'], ancestor:company fs.*, "
        "ancestor:company net.get, local ['fs.read'], agent ['tickets.*', 'fs.read']*",
        "/permissions/allow/0: agent tickets.**",
        "/permissions/allow/1: local fs.read, agent fs.read*",
    )


def test_a_list_that_grew_keeps_its_items() -> None:
    check(
        '//- /global\n{"permissions": {"deny": ["a"]}}\n//- /local\n{"permissions": {"deny": ["b", "a"]}}',
        {DENY: ["b", "a", "c"]},
        "/permissions/deny: global ['a'], local ['b', 'a'], agent ['b', 'a', 'c']*",
        "/permissions/deny/0: local b, agent b*",
        "/permissions/deny/1: global a, local a, agent a*",
        "/permissions/deny/2: agent c*",
    )


def test_nothing_is_left_of_a_list_but_where_it_was() -> None:
    check(
        '//- /local\n{"permissions": {"deny": ["a"]}}',
        {DENY: []},
        "/permissions/deny: local ['a'], local a, agent []*",
    )


def test_what_a_layer_may_not_set_stays_ignored_and_a_default_stays_a_default() -> None:
    check(
        '//- /drop\n{"permissions": {"level": "yolo"}}',
        {"/permissions/level": "worker", ALLOW: ["fs.read"]},
        "/permissions/allow: built-in [], agent ['fs.read']*",
        "/permissions/allow/0: agent fs.read*",
        "/permissions/level: built-in trusted, drop yolo-, agent worker*",
    )


def test_what_is_the_same_keeps_its_provenance() -> None:
    before = folder(LAYERS)
    assert replaced(before, "agent", {MODEL: "gpt-4.1", ALLOW: before.get(ALLOW)}) is before
    after = replaced(before, "agent", {MODEL: "gpt-4.1", DENY: ["x"]})
    assert after.provenance[MODEL] is before.provenance[MODEL]


def test_an_agent_sees_what_its_folder_says_beside_what_it_was_granted(tmp_path: Path) -> None:
    fixture = write_fixture(
        """
        //- /home/co/.nexus3/config.json
        {"provider": {"model": "gpt-4o"}, "permissions": {"allow": ["fs.*"]}}
        //- /home/co/a/.nexus3/config.json
        {"provider": {"model": "gpt-4.1"}}
        """,
        tmp_path,
    )
    pool = pool_of(fixture, "/home/co")
    agent = pool.spawn("t", "a", model="gpt-4o-mini", permissions={"allow": ["fs.read"]})
    chains = agent.snapshot.effective.provenance
    assert [[_entry(entry) for entry in chains[pointer]] for pointer in (MODEL, ALLOW)] == [
        ["ancestor:co gpt-4o", "local gpt-4.1", "agent gpt-4o-mini*"],
        ["ancestor:co ['fs.*']", "ancestor:co fs.*", "agent ['fs.read']*"],
    ]


# --- properties ---

PATTERNS = st.lists(st.sampled_from(["a", "b", "c", "d*"]), max_size=4)
LAYER = st.fixed_dictionaries(
    {},
    optional={
        "provider": st.fixed_dictionaries({}, optional={"model": st.sampled_from(["x", "y", None])}),
        "permissions": st.fixed_dictionaries({}, optional={"allow": PATTERNS, "deny": PATTERNS}),
    },
)
APART = st.lists(st.sampled_from(["a", "b", "c", "e"]), max_size=4, unique=True)
GRANTED = st.fixed_dictionaries({}, optional={MODEL: st.sampled_from(["x", "z"]), ALLOW: APART, DENY: APART})


@given(st.lists(LAYER, max_size=3), GRANTED, GRANTED)
def test_one_entry_wins_and_none_is_lost(
    values: list[dict[str, Any]], settings: dict[str, Any], again: dict[str, Any]
) -> None:
    """Also below another agent's settings, as where one is granted more than once."""
    effective = merge(
        [ConfigLayer(str(number), parse("/c", json.dumps(value))) for number, value in enumerate(values)]
    )
    for granted in (settings, again):
        before, effective = effective, replaced(effective, "agent", granted)
        for pointer in granted:
            if before.get(pointer) != granted[pointer]:
                check_chains(effective, pointer)
        assert _entries(before) <= _entries(effective)
        assert {at: chain for at, chain in effective.provenance.items() if not at.startswith(SETTINGS)} == {
            at: chain for at, chain in before.provenance.items() if not at.startswith(SETTINGS)
        }


def check_chains(effective: Effective, pointer: str) -> None:
    """A value and each of its items has one winner, of that value and at the end; no item's chain is over."""
    value = effective.get(pointer)
    items = value if isinstance(value, list) else []
    places = {pointer: value, **{f"{pointer}/{index}": item for index, item in enumerate(items)}}
    chains = {at: chain for at, chain in effective.provenance.items() if at.startswith(pointer)}
    assert {at: [(e.layer, e.value) for e in chain if e.wins] for at, chain in chains.items()} == {
        at: [("agent", item)] for at, item in places.items()
    }
    assert all(chain[-1].wins for chain in chains.values())
    for index, item in enumerate(items):
        assert {entry.value for entry in effective.provenance[f"{pointer}/{index}"]} == {item}


def _entries(effective: Effective) -> Counter[tuple[Any, ...]]:
    """What every layer set where in its own file, with the setting that it is listed under."""
    return Counter(
        (entry.layer, id(entry.document), entry.pointer, json.dumps(entry.value), entry.ignored)
        for chain in effective.provenance.values()
        for entry in chain
    )
