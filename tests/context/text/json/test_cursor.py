"""What stands around a place in JSON text that is being written; `$0` is the place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.text.json.cursor import CursorPlace, find_place


def place_at(text: str) -> CursorPlace | None:
    before, _, after = text.partition("$0")
    return find_place(before + after, len(before))


@pytest.mark.parametrize(
    ("text", "container", "key", "prefix"),
    [
        ("{$0}", (), None, ""),
        ('{"$0"}', (), None, ""),
        ('{"mo$0del"}', (), None, "mo"),
        ('{"mo$0', (), None, "mo"),
        ("{mo$0", (), None, "mo"),
        ('{"a": 1, "mo$0\n "b": 2}', (), None, "mo"),
        ('{"a": $0', (), "a", ""),
        ('{"a":$0}', (), "a", ""),
        ('{"a": "x$0"}', (), "a", "x"),
        ('{"a": tr$0}', (), "a", "tr"),
        ('{"a": {"b": [1, $0]}}', ("a", "b"), None, ""),
        ('{"a": [{"b": "$0', ("a", 0), "b", ""),
        ('{"a": [1, 2, {"b": 1, $0', ("a", 2), None, ""),
        ('{"a": {}, "b": {$0', ("b",), None, ""),
        ('{"a": {]}, $0', (), None, ""),
        ('{"a": 1 // x\n, $0', (), None, ""),
        ('{"a\\"b": $0', (), 'a"b', ""),
        ('{"a": "}", $0', (), None, ""),
    ],
)
def test_a_place_knows_its_path(text: str, container: tuple[str, ...], key: str | None, prefix: str) -> None:
    place = place_at(text)
    assert place is not None
    assert (place.container, place.key, place.prefix) == (container, key, prefix)


@pytest.mark.parametrize("text", ["$0", "{} $0", "{} // $0", "{ // a$0\n}", "{ /* $0 */ }", '"x$0"'])
def test_outside_and_in_comments_is_no_place(text: str) -> None:
    assert place_at(text) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"a": 1, $0, "b": {"c": 1}}', {"a", "b"}),
        ('{"a": 1, "x$0", "b": [{"c": 1}]}', {"a", "b"}),
        ('{"a": $0, "b": 2}', {"a", "b"}),
        ('{"o": {"a": 1, $0}, "b": 2}', {"a"}),
        ('{$0 "a": 1}', {"a"}),
        ('{"a": 1, /* "c": 1, */ $0 }', {"a"}),
    ],
)
def test_the_other_keys_of_the_object(text: str, names: set[str]) -> None:
    place = place_at(text)
    assert place is not None
    assert place.names == names


@pytest.mark.parametrize(
    ("text", "has_colon"),
    [
        ('{"m$0": 1}', True),
        ('{"m$0" : 1}', True),
        ('{"m$0"}', False),
        ('{"m$0", "b": 1}', False),
        ("{$0", False),
    ],
)
def test_a_key_may_have_its_colon(text: str, has_colon: bool) -> None:
    place = place_at(text)
    assert place is not None
    assert place.has_colon is has_colon


@given(st.text(alphabet='{}[]",:/*\\ \nab1', max_size=60), st.integers(0, 60))
def test_any_text_has_an_answer_within_it(text: str, offset: int) -> None:
    place = find_place(text, min(offset, len(text)))
    if place is not None:
        assert 0 <= place.written.start <= place.written.end <= len(text)
        assert place.written.start <= offset
