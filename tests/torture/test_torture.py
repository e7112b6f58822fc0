"""The short form of the torture suite: each fault a few times. All of it is `python -m tests.torture`."""

import tempfile
from importlib import import_module

import pytest

from support.ledgers import DISK
from torture.__main__ import PAGES
from torture.figures import Figure, Outcome, summary, table

FAULTS = {  # how often each happens here
    "kills": 6,
    "power": 4,
    "crash": 24,
    "full": 1,
    "failing": 4,
    "readonly": 1,
    "windows": 100,
    "clock": 20,
    "newer": 1,
    "damage": 9,
    "watches": 60,
    "race": 300,
    "unread": 120,
    "starved": 5,
    "canaries": 60,
    "terminal": 50,
    "adversarial": 100,
    "imports": 60,
    "long": 8,
    "verified": 18,
    "typing_states": 100,
    "mutated": 200,
    "daemon_kills": 4,
    "elections": 4,
    "daemon_clients": 40,
    "mutated_frames": 100,
    "file_events": 1_000,
    "remade_folder": 10,
    "long_traffic": 8,
    "runtime_directory": 1,
}

RELAXED = {"adversarial": {"at_most_ms": 2_000.0}}  # of a machine that is busy with other tests


@pytest.mark.timeout(180)  # a busy machine
@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault in PAGES["durability"]:
        monkeypatch.setattr(tempfile, "tempdir", DISK)
    outcome = import_module(f"torture.{fault}").run(FAULTS[fault], **RELAXED.get(fault, {}))
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert outcome.good, f"\n{table([outcome])}"


@pytest.mark.parametrize(
    ("figure", "promise", "result"),
    [
        (Figure("lost", 0, at_most=0), "0", "pass"),
        (Figure("lost", 1, at_most=0), "0", "FAIL"),
        (Figure("ready", 2.1, "s", at_most=2), "≤ 2", "FAIL"),
        (Figure("control", 0, at_least=1), "≥ 1", "FAIL"),
        (Figure("turns", 9, at_least=10, at_most=10), "10", "FAIL"),
        (Figure("turns", 9), "", ""),
    ],
)
def test_promises(figure: Figure, promise: str, result: str) -> None:
    assert (figure.promise, figure.result) == (promise, result)


def test_an_outcome_is_good_if_no_promise_was_broken() -> None:
    kept = Figure("lost", 0, at_most=0)
    assert Outcome("a", (kept,)).good
    assert Outcome("a", skipped="no root").good
    assert not Outcome("a", (kept,), wrong=("something",)).good
    assert not Outcome("a", (kept, Figure("lost", 1, at_most=0))).good
    assert table([Outcome("a", (kept,)), Outcome("b", skipped="no root")]).splitlines()[2:] == [
        "| a     | lost               |      0 | 0       | pass    |",
        "| b     | not tried: no root |        |         |         |",
    ]


def test_a_summary_says_how_often_and_how_many_promises_were_kept() -> None:
    trials, kept = Figure("trials", 1_000), Figure("lost", 0, at_most=0)
    outcomes = [Outcome("a", (trials, kept, Figure("left", 1, at_most=0))), Outcome("b", skipped="no root")]
    assert summary(outcomes).splitlines()[2:] == [
        "| a | 1,000 trials | 1 of 2 |",
        "| b | not tried | 0 of 0 |",
    ]
