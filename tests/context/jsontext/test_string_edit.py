"""What is typed inside a string: the document that is made without reading says what reading says."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexus_context.config.check import check_config, text_fits
from nexus_context.jsontext import parse, retyped
from nexus_context.layers.text_reader import check_settings
from support.documents import observed

AGENTS = '{"agents": {"a": {"role": "worker", "task": "dig", "tasks": 1}}, "b": ["x y", "dig"]}'
PIECES = [
    *'{}[],:"',
    '"agents": {"a": {"task": "dig", "role": "worker"}}',
    '"agents": {"a": {"tasks": "dig"}}',
    '"permissions": {"level": "yolo"}',
    '"context": {"sections": [{"name": "a b"}, {"name": "a b"}]}',
    '"provider": {"model": "m", "headers": {"x": "y"}}',
    '"role": "dig"',
    "\n",
    ' "dig"',
    "'dig",
    "dig",
    '"a\\u0062c"',
    "/* dig",
    "// x",
    "1",
    "  ",
]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join) | st.just(AGENTS)
TYPED = st.sampled_from([*"ax1 .!?-_é*/#:;,'\"\\{}[]\n", "dig", "  ", "", "*/"])
Keys = list[tuple[float, int, str]]


def pressed(text: str, key: tuple[float, int, str]) -> str:
    where, gone, come = key
    at = int(where * len(text))
    return text[:at] + come + text[at + gone :]


def check(text: str, keys: Keys) -> int:
    """How many of these keys needed no reading; what was made for them is as if it had been read."""
    document, short = parse("/f", text), 0
    problems = check_settings(document)
    for key in keys:
        text = pressed(text, key)
        made = retyped(document, text, problems)
        document, problems = parse("/f", text), check_settings(parse("/f", text))
        if made is None:
            continue
        short += 1
        assert observed(made.document) == observed(document), text
        assert made.document.value == document.value
        if text_fits(made.pointer, made.text):
            assert made.problems == problems, text
        document = made.document
    return short


@given(TEXTS, st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2), TYPED), max_size=4))
@example(AGENTS, [(0.6, 0, "x")])
@example('{"b": "dig" "dig"', [(0.4, 0, "x"), (0.4, 1, "")])
def test_it_is_what_reading_gives(text: str, keys: Keys) -> None:
    check(text, keys)


@given(st.lists(st.tuples(st.sampled_from([0.5, 0.515, 0.53]), st.integers(0, 1), TYPED), max_size=8))
def test_typing_on_in_one_place(keys: Keys) -> None:
    check(AGENTS, keys)


@pytest.mark.parametrize(
    ("text", "at", "gone", "come", "taken"),
    [
        ('{"a": "dig"}', 8, 0, "x", True),
        ('{"a": "dig"}', 7, 3, "", True),
        ('{"a": ""}', 7, 0, "x", True),
        ('["dig", "dug",]', 10, 1, "i", True),
        ('"dig"', 1, 0, "é", True),
        # not in a string, in a key, or in one that is not as it is written
        ('{"a": 12}', 7, 0, "3", False),
        ('{"abc": "dig"}', 3, 0, "x", False),
        ('{"a": "d\\tig"}', 8, 0, "x", False),
        # what ends it, or means something
        ('{"a": "dig"}', 8, 0, '"', False),
        ('{"a": "dig"}', 8, 0, "\\", False),
        ('{"a": "dig"}', 8, 0, "\n", False),
        ('{"a": "dig"}', 8, 0, "*/", False),
        # a member that a later one replaces; a problem that lies on the string
        ('{"a": "dig", "a": "dug"}', 8, 0, "x", False),
        ('{"a": "dig" "dug" 1}', 14, 0, "x", False),
    ],
)
def test_which_changes_are_taken(text: str, at: int, gone: int, come: str, taken: bool) -> None:
    document = parse("/f", text)
    made = retyped(document, text[:at] + come + text[at + gone :], document.problems)
    assert (made is not None) is taken


@pytest.mark.parametrize(
    ("pointer", "text", "fits"),
    [
        (("agents", "a", "task"), "dig", True),
        (("agents", "a", "role"), "worker", True),
        (("agents", "a", "role"), "diger", False),
        (("agents", "a", "tasks"), "dig", False),  # nothing is known of it
        (("provider", "model"), "dig", False),  # others look at it, too
        ((), "dig", False),
    ],
)
def test_which_texts_change_nothing(pointer: tuple[Any, ...], text: str, fits: bool) -> None:
    assert text_fits(pointer, text) is fits


def test_a_long_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"a": "' + "x" * 5_000 + '"}'
    assert retyped(parse("/f", text), text.replace("xx", "x", 1), ()) is None


def test_sections_that_are_looked_at_are_named() -> None:
    """One problem for each that advice has, all of them in its sections."""
    text = (
        '{"context": {"max_tokens": 1, "datetime": {"timezone": "Berln"}, "sections": [{"name": "a"},'
        '{"name": "a"}]}, "compaction": {"threshold": 0.2, "target": 0.5}, "ledger": {"path": "/x", '
        '"url": "u"}, "provider": {"api_key_env": "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz"}}'
    )
    document = parse("/f", text)
    found = {problem.code for problem in check_config(document)}
    assert found >= {"config.budget", "config.timezone", "config.section-name", "config.compaction"}
    assert found >= {"config.ledger", "config.secret"}
