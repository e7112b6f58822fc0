"""The texts and promises of `benchmarks/ledger`."""

import sys
from itertools import pairwise
from pathlib import Path

# a test's own folder is on the path, the repository's root need not be
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.conversation.speed import Times
from benchmarks.ledger import targets, texts
from benchmarks.ledger.measures import Appending, Importing, Searching
from benchmarks.ledger.runner import MADE, Outcome


def times(p95: float) -> Times:
    return Times(10, 1_000.0, p95, 1_000.0, 2 * p95)


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


def test_promises() -> None:
    outcome = Outcome(
        imports={MADE: Importing(100_000, 10.0, 2, 1)},
        appending=Appending(times(20_001), times(1), times(1), times(1)),
        searches={MADE: Searching(120_000, times(49_000), {}, times(1))},
    )
    found = {verdict.promise: (verdict.value, verdict.result) for verdict in targets.verdicts(outcome)}
    assert found == {
        "append a turn, durable, p95": (20.001, "MISS"),
        "open a session, ledger and all, median": (None, "not run"),
        "resume the window of 100,000 messages after open, median": (None, "not run"),
        "search 120,000 messages, made text, p95": (49.0, "pass"),
        "knowledge query, p95": (None, "not run"),
    }
