"""What stands around a place in TOML text that is being written; `$0` is the place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.assistants.reading.toml_cursor import find_place


@pytest.mark.parametrize(
    ("text", "container", "key", "prefix"),
    [
        ("mo$0", (), None, "mo"),
        ("mo$0del = 1", (), None, "mo"),
        ("$0", (), None, ""),
        ("a = 1\n$0", (), None, ""),
        ("[a.b]\nc$0", ("a", "b"), None, "c"),
        ('[a."b c"]\nc$0', ("a", "b c"), None, "c"),
        ("[[a]]\nb = 1\nc$0", ("a",), None, "c"),
        ("a.b$0", ("a",), None, "b"),
        ('model = "g$0', (), "model", "g"),
        ('model = "g$0"', (), "model", "g"),
        ("[a]\nb.c = $0", ("a", "b"), "c", ""),
        ('[a]\nb = ["x", "y$0', ("a", "b"), None, "y"),
        ('b = [\n "x",\n "y$0"]', ("b",), None, "y"),
        ("b = { c$0 }", ("b",), None, "c"),
        ("b = { c = 1, d$0 }", ("b",), None, "d"),
    ],
)
def test_a_place_knows_its_path(text: str, container: tuple[str, ...], key: str | None, prefix: str) -> None:
    place = find_place(text.replace("$0", ""), text.index("$0"))
    assert place is not None
    assert (place.container, place.key, place.prefix) == (container, key, prefix)


@pytest.mark.parametrize("text", ["# x$0", "[a$0]", "a = 1 # x$0"])
def test_comments_and_headers_are_no_place(text: str) -> None:
    assert find_place(text.replace("$0", ""), text.index("$0")) is None


def test_the_other_keys_of_the_table() -> None:
    text = "top = 1\n[a]\nb = 1\n$0\nc = 2\n[d]\ne = 1"
    place = find_place(text.replace("$0", ""), text.index("$0"))
    assert place is not None
    assert place.names == {"b", "c"}


@given(st.text(alphabet="[]{}=\"',.# \nab1", max_size=60), st.integers(0, 60))
def test_any_text_has_an_answer_within_it(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    place = find_place(text, offset)
    if place is not None:
        assert 0 <= place.written.start <= offset <= place.written.end <= len(text)
