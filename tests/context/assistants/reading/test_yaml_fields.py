"""YAML of front matter: what is read, within bounds, and the short way for simple lines."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.assistants.reading.yaml_fields import UnreadableError, read_fields

BOMB = "a: &a [1]\n" + "".join(
    f"{new}: &{new} [{f'*{old}, ' * 4}]\n" for old, new in itertools.pairwise("abcdefghi")
)


def values_of(text: str) -> dict[str, Any] | None:
    """The fields of a text; None if it cannot be read."""
    try:
        return read_fields(text).values
    except UnreadableError:
        return None


@given(st.text(alphabet="ab :#-_'\"[]{},&*!|>%@`\\\n?~ü\t1.", max_size=40).map(lambda text: f"name: a{text}"))
def test_simple_lines_are_read_as_the_library_reads_them(text: str) -> None:
    assert values_of(text) == values_of(f"# the short way knows no comments\n{text}")


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "a: " + "[" * 100 + "]" * 100,
        "a: " + "x" * 70_000,
        "a: *none",
        "a: 'open",
        "a: b\n---\nc: d",
        "a: &a [*a]",
    ],
)
def test_what_is_too_much_cannot_be_read(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_fields(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("name: n\ndescription: Use when: it\n", None),
        ("name: n\ndescription: Uses C#\n", {"name": "n", "description": "Uses C#"}),
        ("true: x", {"True": "x"}),
        ("a: null\nb: 0x1F\nc: 1.5\nd: no", {"a": None, "b": 31, "c": 1.5, "d": "no"}),
        ("- a", {}),
        ("", {}),
    ],
)
def test_the_fields_of_a_text(text: str, values: dict[str, Any] | None) -> None:
    assert values_of(text) == values
