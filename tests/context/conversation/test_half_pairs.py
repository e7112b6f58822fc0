"""Half surrogate pairs are replaced, however deep the value is that has them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.half_pairs import without_halves

TEXTS = st.text(st.characters(codec="utf-16", exclude_categories=[]), max_size=6) | st.sampled_from(
    ["\ud83d", "a\ude00", "\ud83d\ude00"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_is_what_its_json_says_with_its_halves_replaced(value: Any) -> None:
    whole = without_halves(value)
    text = json.dumps(whole, ensure_ascii=False)
    text.encode()  # nothing is half
    plain = json.dumps(value, ensure_ascii=False)
    if plain.isascii() or not any("\ud800" <= character <= "\udfff" for character in plain):
        assert whole == value


@pytest.mark.parametrize("wrap", [lambda item: [item], lambda item: {"a": item}])
def test_depth_costs_no_stack(wrap: Any) -> None:
    value: Any = "\ud83d"
    for _ in range(5_000):
        value = wrap(value)
    whole = without_halves(value)
    while not isinstance(whole, str):
        (whole,) = whole if isinstance(whole, list) else whole.values()
    assert whole == "\ufffd"
