"""An edited text: reusing runs of the text before gives the same as parsing it anew."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.config import fast_check
from nexus_context.config.check import check_config
from nexus_context.jsontext import JsonDocument, document, parse
from nexus_context.jsontext.runs import DEEPEST, Run, RunReader, TextChange, difference
from support.documents import observed, runs_of_any_size

Edit = tuple[float, int, str]
"""Where in the text, from 0 to 1; how many characters are removed; what is inserted."""


def edited(text: str, edit: Edit) -> str:
    where, removed, added = edit
    at = int(where * len(text))
    return text[:at] + added + text[at + removed :]


def check(text: str, edits: list[Edit], *, short: int = 0) -> JsonDocument:
    """The document after the edits, each parsed with the help of the one before."""
    with runs_of_any_size(short):
        found = parse("/f", text)
        check_config(found)
        for edit in edits:
            text = edited(text, edit)
            found = parse("/f", text, found)
            assert observed(found) == observed(parse("/f", text)), text
    return found


SETTINGS: dict[str, Any] = {
    "context": {"max_tokens": 9000, "reserve_tokens": 9000, "datetime": {"timezone": "Europe/Berlin"}},
    "agents": {
        "a": {"role": "worker", "task": "Look"},
        "b": {"role": "worker", "tasks": 1},
        "_comment": {"x": 1},
        "c": {"role": "wrker", "permissions": {"level": "trusted"}},
        "d": {},
    },
    "models": {"m": {"context_window": 8000}, "n": {"context_window": -1}},
    "instruction_files": ["A.md", 3, [1, {"x": [2, [], {}]}]],
}
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=20,
)
LAYOUTS = st.sampled_from(
    [{}, {"indent": 2}, {"separators": (" , ", " : ")}, {"indent": "\t", "ensure_ascii": False}]
)
TYPED = st.sampled_from(
    [
        *('"', ",", ":", "{", "}", "[", "]", " ", "\n", "\r\n", "1", "-", ".", "e", "'", "x", "\\", "/", "_"),
        *("", "", "", ",,", "//", "/*", '"a": 1,', '"a": {"b": 2}', "[1, 2]", '"x\\ud800"', "é", "1e999"),
        *('"agents": {', '"role": "worker",', "NaN", '"_comment'),
    ]
)
EDITS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0, 0, 1, 1, 2, 9]), TYPED), max_size=6)


@settings(deadline=None, max_examples=200)
@given(st.just(SETTINGS) | VALUES.map(lambda value: SETTINGS | {"agents": value}), LAYOUTS, EDITS)
def test_edits_of_settings(value: Any, layout: dict[str, Any], edits: list[Edit]) -> None:
    check(json.dumps(value, **layout), edits)


@settings(deadline=None, max_examples=200)
@given(VALUES, LAYOUTS, EDITS, st.integers(0, 40))
def test_edits_of_any_value(value: Any, layout: dict[str, Any], edits: list[Edit], short: int) -> None:
    check(json.dumps({"a": value, "b": [value, 1]}, **layout), edits, short=short)


@settings(deadline=None)
@given(VALUES, LAYOUTS, st.floats(0, 1), TYPED.filter(bool), st.lists(st.floats(0, 1), max_size=6))
def test_typing_in_several_places_of_a_broken_text(
    value: Any, layout: dict[str, Any], broken: float, with_: str, typed: list[float]
) -> None:
    text = edited(json.dumps({"a": value, "b": {"c": [value]}}, **layout), (broken, 0, with_))
    check(text, [(where, removed, "x" * (1 - removed)) for where in typed for removed in (0, 1)])


@pytest.mark.parametrize(
    ("text", "edits"),
    [
        ('{"a": 1, "b": 2, "c": 3}', [(7 / 24, 0, "2")]),  # a number grows at a run's end
        ('{"a": 1, "b": 2, "c": 3}', [(7 / 24, 1, "")]),  # the comma after a run is removed
        (
            '{"a": 1, "b": 2, "c": 3}',
            [(9 / 24, 0, '"c": 9, ')],
        ),  # a name that a run has is inserted before it
        ('{"a": [1, 2, 3], "b": 2}', [(6 / 24, 1, "{")]),  # the same text in a container of another kind
        ('{"a": [1, 2, 3], "b": 2}', [(7 / 24, 0, "0, ")]),  # later items have other indices
        ('[{"a": 1}, {"a": 2}]', [(0, 1, ""), (0, 0, "["), (1, 0, "]"), (1, 0, "x")]),
        ('{"a": {"b": 1}}', [(0, 99, ""), (0, 0, "{"), (1, 0, '"a"'), (1, 0, ": 1"), (1, 0, "}")]),
    ],
)
def test_edits_at_the_borders(text: str, edits: list[Edit]) -> None:
    check(text, edits)


@pytest.mark.parametrize(
    ("at", "run", "names", "reused"),
    [
        (1, Run('"a": 1', {"a": 1}, 1), {}, True),
        (1, Run('"a": 1', {"a": 1}, 1), {"a": 0}, False),
        (1, Run('"a": 2', {"a": 2}, 1), {}, False),
        (9, Run('"b": ', {"b": 0}, 1), {}, False),
    ],
)
def test_a_run_is_reused_only_where_it_stands(at: int, run: Run, names: dict[str, int], reused: bool) -> None:
    reader = RunReader('{"a": 1, "b": 2}', {at: run})
    assert (reader.read(at, is_object=True, names=names, depth=1) == (at, run)) is reused


def test_brackets_around_a_run_make_it_too_deep() -> None:
    text = '{"a": ' + "[" * (DEEPEST - 3) + "1, 2" + "]" * (DEEPEST - 3) + ', "b": 1}'
    found = check(text, [(6 / len(text), 0, "["), (6 / len(text), 0, "["), (6 / len(text), 0, "[")])
    assert [problem.code for problem in found.problems] == ["json.too-deep"]


@given(st.text("ab", max_size=12), st.text("ab", max_size=12))
def test_the_difference_makes_the_one_text_the_other(old: str, new: str) -> None:
    start, old_end, new_end = difference(old, new)
    assert start <= old_end and start <= new_end
    assert old[:start] + new[start:new_end] + old[old_end:] == new
    # and nothing else differs
    assert old[start : start + 1] != new[start : start + 1] or start in (old_end, new_end)


def test_the_difference_of_a_keystroke() -> None:
    assert difference("abcd", "abxcd") == TextChange(2, 2, 3)
    assert difference("abcd", "abcd") == TextChange(4, 4, 4)


def large(error: str) -> str:
    agents = {f"agent-{number}": {"role": "worker", "task": f"Part {number}."} for number in range(1500)}
    return json.dumps({"agents": agents, "models": {}}, indent=2).replace('"Part 700."', error)


@pytest.mark.parametrize("error", ['"Part 700."', '"Part 700.",', '"Part 700.", "tasks": 1'])
def test_untouched_values_are_the_same_objects(error: str) -> None:
    """Not only equal: a checker that accepted one of them need not check it again."""
    text = large(error)
    found = parse("/f", text)
    for where in ("Part 300.", "Part 1200."):
        before = found
        text = text.replace(where, where + "!")
        found = parse("/f", text, before)
        same = [
            name
            for name in found.value["agents"]
            if found.value["agents"][name] is before.value["agents"][name]
        ]
        assert len(same) > 1450
        assert observed_quickly(found) == observed_quickly(parse("/f", text))


def observed_quickly(found: JsonDocument) -> list[Any]:
    return [found.value, found.problems, check_config(found), found.span(("agents", "agent-1400", "task"))]


def test_a_keystroke_costs_what_it_changes() -> None:
    text = large('"Part 700.",')

    def seconds(before: JsonDocument | None) -> float:
        times = []
        for number in range(15):
            typed = text.replace("Part 900.", f"Part 900.{'x' * (number % 2)}")
            started = time.thread_time()
            found = parse("/f", typed, before)
            check_config(found)
            times.append(time.thread_time() - started)
            before = found if before else None
        return min(times)

    anew = seconds(None)
    assert seconds(parse("/f", text)) < anew / 2


def test_runs_stay_few() -> None:
    """Edits in many places leave ever more runs; at some point the text is parsed anew."""
    text = large('"Part 700.",')
    found = parse("/f", text)
    for number in range(0, 1400, 9):
        text = text.replace(f"Part {number}.", f"Part {number}?")
        found = parse("/f", text, found)
        assert len(found.runs()) < document.MOST_RUNS + 20
    assert observed_quickly(found) == observed_quickly(parse("/f", text))


def test_the_notes_stay_small() -> None:
    agents = {
        f"agent-{number}": {"role": "worker", "task": "x" * 40} for number in range(2 * fast_check.MANY)
    }
    text = json.dumps({"agents": agents}, indent=2)
    found = parse("/f", text)
    for number in range(10 * fast_check.MANY):
        found = parse("/f", text.replace('"role"', f'"_comment": {number}, "role"', 1), found)
        check_config(found)
    (accepted,) = found.notes.values()
    assert 2 * fast_check.MANY <= len(accepted) <= 6 * fast_check.MANY
