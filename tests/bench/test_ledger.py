"""The texts of `benchmarks/ledger`."""

import sys
from itertools import pairwise
from pathlib import Path

# a test's own folder is on the path, the repository's root need not be
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ledger import texts


def test_made_turns_are_the_same_each_time_and_no_two_messages_alike() -> None:
    turns = list(texts.made(50))
    assert turns == list(texts.made(50))
    said = [str(counted.message) for turn in turns for counted in turn.messages]
    assert len(set(said)) == len(said) == 50 * texts.TURN
    assert next(iter(texts.made(1, seed=7))) != turns[0]


def test_few_words_are_frequent_and_most_are_rare() -> None:
    said = [str(turn.messages[0].message.content) for turn in texts.made(400)]
    frequency: dict[str, int] = {}
    for text in said:
        for word in set(text.split()):
            frequency[word] = frequency.get(word, 0) + 1
    ordered = sorted(frequency.values(), reverse=True)
    assert ordered[0] > 0.8 * len(said)
    assert sum(times == 1 for times in ordered) > len(ordered) / 2
    assert all(a >= b for a, b in pairwise(ordered))


def test_queries_are_of_all_kinds_and_about_the_texts() -> None:
    said = [str(turn.messages[0].message.content) for turn in texts.made(100)]
    asked = texts.queries(said, 21)
    assert [query.kind for query in asked] == list(texts.KINDS) * 3
    whole = " ".join(said)
    for query in asked:
        first = query.text.strip('"*').split(" ")[0]
        assert (first in whole) is (query.kind != "unknown")


def test_pages_have_headings() -> None:
    page = next(texts.pages(1))
    assert page.startswith("# ")
    assert page.count("\n\n## ") >= 2
