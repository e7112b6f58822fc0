"""Which bytes and texts a query matches; that it means the same as in the ledger, `tests/cli` says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.assistants.mirror.word_matcher import BLOCK, WordMatcher


def may_match(query: str, data: bytes, start: int = 0) -> bool:
    return WordMatcher(query).may_match(lambda at, size: data[at : at + size], start)


@pytest.mark.parametrize("at", [0, BLOCK - 3, BLOCK, BLOCK + 4, 2 * BLOCK - 1, 2 * BLOCK + 17])
def test_a_word_is_found_wherever_it_lies(at: int) -> None:
    data = b"-" * at + b"HarBour" + b"-" * (2 * BLOCK + 20 - at)
    assert may_match("harbour", data)
    assert not may_match("harbour gate", data)
    assert not may_match("harbour", data, start=at + 1)


@given(st.text(st.characters(categories=["Lu", "Ll", "Nd", "Lo"]), min_size=1, max_size=12), st.booleans())
def test_what_matches_may_match(word: str, ascii_only: bool) -> None:
    text = f"the {word}, here"
    if WordMatcher(word).matches(text):
        assert may_match(word, json.dumps({"text": text}, ensure_ascii=ascii_only).encode())


@pytest.mark.parametrize("query", ["", "-gate", "!"])
def test_without_a_word_nothing_matches(query: str) -> None:
    assert not WordMatcher(query).matches("a gate!")
    assert not may_match(query, b"a gate!")
