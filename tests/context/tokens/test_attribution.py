"""Tokens shared among spans of a text: the rows sum to its count."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.tokens import ScaledCounter, SimpleTokenCounter, TiktokenCounter, TokenCounter, count_spans

CL100K = TiktokenCounter()
O200K = TiktokenCounter("o200k_base")


def check(text: str, counter: TokenCounter = CL100K) -> tuple[int, ...]:
    """Tokens of the spans that `|` divides `text` into."""
    cuts = [0]
    for part in text.split("|"):
        cuts.append(cuts[-1] + len(part))
    return count_spans(counter, text.replace("|", ""), cuts)


def test_spans() -> None:
    assert {text: check(text) for text in SPANS} == SPANS


SPANS = {
    "": (0,),
    "|": (0, 0),
    "hello| world": (1, 1),
    "hel|lo": (1, 0),
    "# A\ntext\n|## B\n|more\n": (5, 3, 2),
    "one two||three": (2, 0, 1),
}


class Unknown:
    """A counter of unknown make: a token for each word."""

    name = "words"
    exact = False

    def count(self, text: str) -> int:
        return len(text.split())

    def count_messages(self, messages: object) -> int:
        raise NotImplementedError


COUNTERS = (CL100K, O200K, ScaledCounter(O200K, 1.18), SimpleTokenCounter(), Unknown())

MARKDOWN = st.lists(
    st.sampled_from(
        (
            "# Title\n",
            "\n",
            "  code()\n",
            "/path\n",
            "- item, **bold**\r\n",
            "слово ",
            "中文。",
            "'ll",
            "\ud800",
            "  ",
        )
    )
    | st.text(max_size=20),
    max_size=60,
).map("".join)


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@given(data=st.data(), text=MARKDOWN, times=st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_rows_sum_to_the_count(counter: TokenCounter, data: st.DataObject, text: str, times: int) -> None:
    text *= times
    inner = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    rows = count_spans(counter, text, [0, *inner, len(text)])
    assert (sum(rows), len(rows)) == (counter.count(text), len(inner) + 1)
    assert all(row >= 0 for row in rows)


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
def test_many_cuts_in_one_endless_line(counter: TokenCounter) -> None:
    text = '{"key": "some value"}, ' * 8000
    rows = count_spans(counter, text, [*range(0, len(text), 46), len(text)])
    assert sum(rows) == counter.count(text)
    assert max(rows[:-1]) - min(rows[:-1]) <= 2


@pytest.mark.parametrize("cuts", [(), (0,), (1, 3), (0, 2), (0, 3, 2, 3), (0, 4)])
def test_wrong_cuts(cuts: Sequence[int]) -> None:
    with pytest.raises(ValueError, match="must ascend from 0 to 3"):
        count_spans(CL100K, "abc", cuts)
