"""Patterns of names: a list of them says what `fnmatch` says of each, in steps that can be counted."""

import re
import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nexus_context.config.patterns import MOST_STEPS, WORD, Patterns, literally

PATTERN = st.text("ab.*?[]!-", min_size=1, max_size=8)
NAME = st.text("abc.[]!-*?", max_size=8)
NAMES = st.lists(NAME, max_size=4)


@pytest.mark.parametrize(
    ("patterns", "name", "named"),
    [
        (["fs.read", "fs.*"], "fs.read", "fs.read"),
        (["fs.*", "*"], "fs.read", "fs.*"),
        (["fs.?"], "fs.read", None),
        (["a**b*"], "ab", "a**b*"),
        (["*a*b"], "xaxbxb", "*a*b"),
        (["[!a-c]x"], "dx", "[!a-c]x"),
        (["[!a-c]x"], "bx", None),
        (["[]]"], "]", "[]]"),
        (["[a"], "[a", "[a"),
        ([""], "", ""),
        ([], "", None),
        (["*é?"], "caféx", "*é?"),
    ],
)
def test_which_one_stands_for_a_name(patterns: list[str], name: str, named: str | None) -> None:
    """Which of the patterns, the first in their order, stands for a name."""
    assert Patterns(patterns).naming(name) == named


# fnmatch leaves empty ranges out and then takes a "!" that stood behind them for a negation
EMPTY_FIRST = re.compile(r"\[(?:.-.)+!")


@settings(max_examples=2000)
@given(st.lists(PATTERN, max_size=5), NAMES)
def test_a_list_says_what_fnmatch_says(patterns: list[str], names: list[str]) -> None:
    assume(not any(map(EMPTY_FIRST.search, patterns)))
    known = Patterns(patterns)
    for name in names:
        named = known.naming(name)
        assert (named is not None) is any(fnmatchcase(name, one) for one in patterns)
        assert named is None or (named in patterns and fnmatchcase(name, named))
    fitting = {one for one in patterns if any(fnmatchcase(name, one) for name in names)}
    assert known.fitting(names) == fitting


@settings(max_examples=1000)
@given(st.lists(PATTERN, max_size=5), PATTERN, NAME)
def test_what_is_covered_is_matched(wide: list[str], narrow: str, name: str) -> None:
    if Patterns(wide).cover(narrow) and fnmatchcase(name, narrow):
        assert any(fnmatchcase(name, one) for one in wide)


@pytest.mark.parametrize("wide", ["a\0*", "a\0\0*"])
def test_what_a_star_stands_for_is_not_covered_by_a_character(wide: str) -> None:
    assert not Patterns([wide]).cover("a*")
    assert Patterns([wide]).cover("a\0\0b")


@settings(max_examples=1000)
@given(st.lists(PATTERN, max_size=5), PATTERN)
def test_a_list_meets_what_one_of_it_meets(patterns: list[str], other: str) -> None:
    known = Patterns(patterns)
    assert known.meet(other) is any(Patterns([one]).meet(other) for one in patterns)
    assert known.cover(other) is any(Patterns([one]).cover(other) for one in patterns)


@settings(max_examples=1000)
@given(PATTERN, PATTERN, NAME)
def test_a_name_that_both_mean(one: str, other: str, name: str) -> None:
    if fnmatchcase(name, one) and fnmatchcase(name, other):
        assert Patterns([one]).meet(other)


@settings(max_examples=1000)
@given(st.text("ab*?", max_size=6), st.text("ab*?", max_size=6))
def test_patterns_meet_where_some_name_matches_both(one: str, other: str) -> None:
    assert Patterns([one]).meet(other) is _meet(one, other)


@given(NAME, NAME)
def test_a_name_as_a_pattern(name: str, other: str) -> None:
    assert Patterns([literally(name)]).matches(other) is (name == other)


def test_comparing_two_lists_takes_characters_times_words() -> None:
    known = Patterns(f"*{number:07}" for number in range(1000))
    for number in range(100):
        known.meet(f"?{number:07}*")
    words = 1 + 1000 * (7 + 2) // WORD
    assert known.steps == 100 * 9 * words


def test_beyond_the_limit_nothing_is_covered_and_all_may_meet() -> None:
    known = Patterns([f"*{number:07}" for number in range(1000)])
    assert (known.cover("a0000001"), known.meet("a*b")) == (True, False)
    known.steps = MOST_STEPS
    assert (known.cover("a0000001"), known.meet("a*b")) == (False, True)
    assert known.cover("*0000001")  # what is in the list takes no step
    assert (known.matches("a0000001"), known.matches("b")) == (True, False)


@pytest.mark.parametrize(
    ("patterns", "others"),
    [
        (["*a" * 16_000], ["a*" * 16_000 + "b"]),
        (["*a" * 128] * 1000, ["a*" * 127 + "b"] * 1000),
        ([f"*{n}" + "a*" * 60 for n in range(1000)], [f"{n}*" + "*a" * 60 + "b" for n in range(1000)]),
        (["?" * 250 + str(n) for n in range(1000)], ["*" + "?" * 250 + str(n) for n in range(1000)]),
    ],
)
def test_no_two_lists_take_long(patterns: list[str], others: list[str]) -> None:
    """As a rule 0.05 s; a comparison in pairs took minutes."""
    known, started = Patterns(patterns), time.thread_time()
    for other in others:
        known.meet(other)
        known.cover(other)
    assert time.thread_time() - started < 5
    assert known.steps <= MOST_STEPS


def _meet(one: str, other: str) -> bool:
    """Whether some name matches both, by trying one character of one of them at a time."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return _meet(one[1:], other) or _meet(one, other[1:])
    if other[0] == "*":
        return _meet(other, one)
    return (one[0] == other[0] or "?" in (one[0], other[0])) and _meet(one[1:], other[1:])
