"""Patterns of names set beside each other."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.config import patterns
from nexus_context.config.patterns import Patterns, covered, matches, overlap

PATTERN = st.text("ab.*?[]!", min_size=1, max_size=6)
NAME = st.text("ab.[]!", max_size=6)


@settings(max_examples=500)
@given(st.lists(PATTERN, max_size=5), PATTERN)
def test_those_that_begin_alike_are_enough(wide: list[str], other: str) -> None:
    known = Patterns(wide)
    assert known.meet(other) is any(overlap(other, one) for one in wide)
    assert known.cover(other) is covered(other, wide)
    named = known.naming(other)
    assert (named is not None) is matches(other, wide)
    assert named is None or (named in wide and fnmatchcase(other, named))


@settings(max_examples=500)
@given(PATTERN, PATTERN, NAME)
def test_a_name_that_both_mean(one: str, other: str, name: str) -> None:
    both = fnmatchcase(name, one) and fnmatchcase(name, other)
    assert not both or overlap(one, other)


def test_a_bracket_that_is_no_set() -> None:
    assert overlap("[!]x", "[*")
    assert not overlap("[!]x", "a*")


@pytest.mark.parametrize("other", ["s77.read", "s77.r*", "s9*", "t1.read", "t*"])
def test_only_those_that_begin_alike_are_looked_at(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def counted(one: str, two: str) -> bool:
        looked.append(two)
        return overlap(one, two)

    monkeypatch.setattr(patterns, "overlap", counted)
    known = Patterns(f"s{number}.*" for number in range(1000))
    assert known.meet(other) is other.startswith("s")
    assert len(looked) <= 1
