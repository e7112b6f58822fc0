"""Merged settings and where each value came from."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.config.check import CONFIG_SCHEMA, schema_text
from nexus_context.config.merge import BUILT_IN, ConfigLayer, Effective, deep_merge, merge
from nexus_context.config.schema import Config
from nexus_context.text.json import parse, pointer_text
from support.fixture import split_files


def layers_of(fixture: str) -> list[ConfigLayer]:
    """One layer for each file of a fixture: `//- /global` is the layer `global`."""
    return [
        ConfigLayer(path.strip("/"), parse(f"/{path.strip('/')}/config.json", text))
        for path, text in split_files(fixture)
    ]


def check(fixture: str, values: dict[str, Any], *chains: str) -> None:
    """What the layers set, and for each set pointer its chain: layer, text, `*` wins, `-` ignored."""
    effective = merge(layers_of(fixture))
    found = []
    for pointer, chain in effective.provenance.items():
        entries = [_entry(entry) for entry in chain if entry.layer != BUILT_IN]
        if entries:
            found.append(f"{pointer}: {', '.join(entries)}")
    assert found == list(chains)
    for pointer, value in values.items():
        assert effective.get(pointer) == value, pointer


def _entry(entry: Any) -> str:
    marked = entry.document.text[slice(*entry.span)]
    return f"{entry.layer} {marked}{'*' if entry.wins else ''}{'-' if entry.ignored else ''}"


def test_later_layers_extend_earlier_ones() -> None:
    check(
        """
        //- /global
        {"context": {"ancestor_depth": 1, "git": false}, "tools": {"disabled": ["a", "b"]}}
        //- /local
        {"context": {"ancestor_depth": 3}, "tools": {"disabled": ["c", "a"]}, "_comment": 1}
        """,
        {
            "/context/ancestor_depth": 3,
            "/context/git": False,
            "/tools/disabled": ["a", "b", "c"],
            "/tools/disabled/2": "c",
            "/tools/summary": False,
            "/provider/model": None,
            "/nothing/here": None,
            "/context/git/x": None,
        },
        "/context/ancestor_depth: global 1, local 3*",
        "/context/git: global false*",
        '/tools/disabled: global ["a", "b"]*, local ["c", "a"]*',
        '/tools/disabled/0: global "a"*, local "a"',
        '/tools/disabled/1: global "b"*',
        '/tools/disabled/2: local "c"*',
    )


def test_a_value_of_another_kind_wins_and_hides_what_came_before() -> None:
    check(
        """
        //- /global
        {"agents": {"a": {"tools": ["x"]}, "b": {"task": "t", "permissions": {"deny": ["y"]}}}}
        //- /ancestor:x
        {"agents": {"a": {"tools": null}, "b": null}}
        //- /local
        {"agents": {"a": {"tools": ["z"]}}}
        """,
        {"/agents/a/tools": ["z"], "/agents/b": None},
        '/agents/a/tools: global ["x"], ancestor:x null, local ["z"]*',
        '/agents/a/tools/0: local "z"*',
        '/agents/b/task: global "t"',
        '/agents/b/permissions/deny: global ["y"]',
        "/agents/b: ancestor:x null*",
    )


def test_names_are_escaped_in_pointers() -> None:
    check(
        '//- /local\n{"models": {"a/b~c": {"max_output": 5}}}',
        {"/models/a~1b~0c/max_output": 5},
        "/models/a~1b~0c/max_output: local 5*",
    )


def test_comments_and_schema_are_no_settings() -> None:
    check(
        '//- /local\n{"$schema": "x", "_comment": {}, "agents": {"_comment": 1}}',
        {"/agents": {}},
        '/agents: local {"_comment": 1}*',
    )


def test_dropped_values_keep_their_provenance() -> None:
    (layer,) = layers_of(
        '//- /local\n{"provider": {"headers": {"A": "b"}, "model": "m"}, "ledger": {"path": "p"}}'
    )
    dropped = frozenset({("provider", "headers"), ("ledger", "path")})
    effective = merge([ConfigLayer(layer.name, layer.document, dropped)])
    assert effective.values["provider"] == {"name": "editor", "headers": {}, "model": "m"}
    assert "ledger" not in effective.values
    assert [_entry(entry) for entry in effective.provenance["/provider/headers/A"]] == ['local "b"-']
    assert [_entry(entry) for entry in effective.provenance["/ledger/path"]] == ['local "p"-']


def test_defaults_are_complete_and_say_where_they_are() -> None:
    effective = merge([])
    assert Config.model_validate(effective.values) == Config()
    chain = effective.provenance["/context/ancestor_depth"]
    assert [(e.layer, e.path, e.value, e.wins) for e in chain] == [(BUILT_IN, CONFIG_SCHEMA, 2, True)]
    schema = schema_text(CONFIG_SCHEMA)
    assert schema[slice(*chain[0].span)] == "2"
    (item,) = effective.provenance["/context/instruction_files/2"]
    assert schema[slice(*item.span)] == '"CLAUDE.md"'


def test_defaults_of_named_entries() -> None:
    effective = merge(layers_of('//- /local\n{"agents": {"a/b": {"task": "t"}}}'))
    assert effective.values["agents"] == {"a/b": {"task": "t", "permissions": {"allow": [], "deny": []}}}
    (entry,) = effective.provenance["/agents/a~1b/permissions/deny"]
    assert (entry.layer, entry.value) == (BUILT_IN, [])
    assert entry.span.start < entry.span.end


def test_changing_the_result_does_not_change_the_defaults() -> None:
    merge([]).values["tools"]["disabled"].append("x")
    assert merge([]).get("/tools/disabled") == []


# --- properties ---

KEYS = st.sampled_from(["a", "b", "c/d"])
SCALARS = st.one_of(st.booleans(), st.integers(0, 2), st.sampled_from(["x", "y", 0.5]))
LISTS = st.lists(st.one_of(SCALARS, st.lists(SCALARS, max_size=1)), max_size=4)
# one kind of value for each name: that is what a schema asks for, and where merging is associative
TREES = st.fixed_dictionaries(
    {},
    optional={
        "scalar": SCALARS,
        "list": LISTS,
        "object": st.fixed_dictionaries(
            {},
            optional={"scalar": SCALARS, "list": LISTS, "deep": st.dictionaries(KEYS, SCALARS, max_size=2)},
        ),
    },
)
ANY = st.recursive(
    SCALARS | st.none() | LISTS, lambda child: st.dictionaries(KEYS, child, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(KEYS, ANY, max_size=3)


@given(TREES, TREES, TREES)
def test_deep_merge_is_associative(a: Any, b: Any, c: Any) -> None:
    assert _json(deep_merge(deep_merge(a, b), c)) == _json(deep_merge(a, deep_merge(b, c)))


@given(OBJECTS, OBJECTS)
def test_deep_merge_has_an_identity_and_changes_nothing(a: Any, b: Any) -> None:
    before = _json([a, b])
    assert deep_merge({}, a) == a == deep_merge(a, {})
    deep_merge(a, b)
    assert _json([a, b]) == before


@given(OBJECTS)
def test_deep_merge_is_idempotent(a: Any) -> None:
    assert _json(deep_merge(a, a)) == _json(a)


@given(st.lists(OBJECTS, max_size=4))
def test_merge_is_a_fold_of_deep_merge(values: list[Any]) -> None:
    folded: dict[str, Any] = {}
    for value in values:
        folded = deep_merge(folded, value)
    found = merge(
        [ConfigLayer(str(number), parse("/c", _json(value))) for number, value in enumerate(values)]
    )
    assert _json({key: found.values[key] for key in folded}) == _json(folded)


@given(st.lists(OBJECTS, max_size=4))
def test_every_value_has_a_winner_of_that_value(values: list[Any]) -> None:
    layers = [ConfigLayer(str(number), parse("/c", _json(value))) for number, value in enumerate(values)]
    effective = merge(layers)
    for pointer, value in _leaves(effective.values, ()):
        winners = [entry for entry in effective.provenance[pointer] if entry.wins]
        if isinstance(value, list):
            assert winners
            for index, item in enumerate(value):
                (winner,) = [e for e in effective.provenance[f"{pointer}/{index}"] if e.wins]
                assert _json(winner.value) == _json(item)
        else:
            assert [_json(entry.value) for entry in winners[-1:]] == [_json(value)]
            assert len(winners) == 1 or value == {}
    for chain in effective.provenance.values():
        for entry in chain:
            if entry.layer != BUILT_IN and entry.document is not None:
                raw = json.loads(entry.document.text[slice(*entry.span)])
                assert _json(raw) == _json(entry.value)


def _leaves(value: Any, pointer: tuple[str, ...]) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        return [leaf for key, child in value.items() for leaf in _leaves(child, (*pointer, key))]
    return [(pointer_text(pointer), value)] if pointer else []


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@pytest.mark.parametrize(("layers", "agents", "limit"), [(5, 7, 0.01), (1, 555, 0.1)])
def test_merging_takes_little_time(layers: int, agents: int, limit: float) -> None:
    """Under 1 ms for five files of 60 lines, 15 ms for one of 5,000; the bounds allow for a busy machine."""
    agent = {"cwd": "x", "role": "worker", "task": "t", "tools": ["a", "b"]}
    value = {f"a{number}": agent for number in range(agents)}
    text = json.dumps({"agents": value}, indent=2)
    parts = [ConfigLayer(str(number), parse(f"/{number}", text)) for number in range(layers)]
    assert min(_seconds(parts) for _ in range(3)) < limit


def _seconds(layers: list[ConfigLayer]) -> float:
    started = time.thread_time()
    assert isinstance(merge(layers), Effective)
    return time.thread_time() - started
