"""A long result is shortened to its limit: beginning, marker and end, never longer than before."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.shortening import LEAST, shorten_message
from nexus_context.tokens import SimpleTokenCounter, TiktokenCounter, TokenCounter
from support.histories import IMAGE

SIMPLE = SimpleTokenCounter()
TEXTS = st.lists(
    st.tuples(st.sampled_from(["word ", "\n", "日本語", "щука ", "{}", "🎉"]), st.integers(1, 400)),
    max_size=8,
).map(lambda runs: "".join(text * many for text, many in runs))


def check(content: Any, limit: int, counter: TokenCounter = SIMPLE) -> str:
    """The text of a shortened result, after what holds of every one."""
    message = Message("tool", content, tool_call_id="c1", name="run", meta={"is_error": True})
    before = counter.count_messages([message])
    made, tokens = shorten_message(message, before, limit, counter)
    assert tokens == counter.count_messages([made]) <= before
    assert (made.tool_call_id, made.name, made.meta) == ("c1", "run", {"is_error": True})
    assert shorten_message(message, before, limit, counter) == (made, tokens)
    if before <= max(limit, LEAST):
        assert made is message
    else:
        assert tokens <= max(limit, LEAST)
    return text_of(made)


def test_beginning_marker_and_end() -> None:
    text = check("first\n" + "line\n" * 4_000 + "exit code 1", 200)
    assert text.startswith("first\nline\n")
    assert text.endswith("line\nexit code 1")
    assert text.count("left out here") == 1
    assert SIMPLE.count(text) > 150  # the limit is used


def test_what_fits_stays_as_it_is() -> None:
    assert check("short", 200) == "short"
    assert check("x" * 4 * (LEAST - 4), 1) == "x" * 4 * (LEAST - 4)


@pytest.mark.parametrize("limit", [-1, 0, 1, LEAST, 100])
def test_never_shorter_than_the_marker(limit: int) -> None:
    assert "left out here" in check("x" * 5_000, limit)


def test_the_marker_says_how_much_is_left_out() -> None:
    text = check("x" * 40_000, 1_000)
    (said,) = [int(word) for word in text.split() if word.isdigit()]
    assert abs(said + SIMPLE.count(text) - 10_000) < 60


def test_text_beside_images_is_there_once() -> None:
    text = check([{"type": "text", "text": "Result: 42"}, *[IMAGE] * 20], 1_000)
    assert text.count("Result: 42") == 1
    assert check([IMAGE] * 20, 100).strip().startswith("[…")


@pytest.mark.parametrize("counter", [SIMPLE, TiktokenCounter("o200k_base")], ids=lambda counter: counter.name)
def test_a_megabyte_of_anything(counter: TokenCounter) -> None:
    for text in ("x" * 1_000_000, "日本語" * 300_000, "word " * 200_000, "x" * 1_000 + "日" * 500_000):
        assert len(check(text, 2_000, counter)) > 1_000


@given(TEXTS, st.integers(0, 900))
def test_any_text(text: str, limit: int) -> None:
    made = check(text, limit)
    if made != text:
        head, _, end = made.partition("\n[…")
        assert text.startswith(head)
        assert text.endswith(end.partition("…]\n")[2])


@given(st.lists(st.just(IMAGE) | TEXTS.map(lambda text: {"type": "text", "text": text}), max_size=6))
def test_any_parts(parts: list[Any]) -> None:
    check(parts, 200)
