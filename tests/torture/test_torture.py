"""The short form of the torture suite: each fault a few times. All of it is `python -m tests.torture`."""

from collections.abc import Callable

import pytest

from torture import clock, crash, damage, failing, full, kills, newer, power, readonly, watches, windows
from torture.figures import Figure, Outcome, table

FAULTS: dict[str, tuple[Callable[[int], Outcome], int]] = {
    "kills": (kills.run, 6),
    "power": (power.run, 4),
    "crash": (crash.run, 24),
    "full": (full.run, 1),
    "failing": (failing.run, 4),
    "readonly": (readonly.run, 1),
    "windows": (windows.run, 100),
    "clock": (clock.run, 20),
    "newer": (newer.run, 1),
    "damage": (damage.run, 9),
    "watches": (watches.run, 60),
}


@pytest.mark.timeout(180)  # a busy machine
@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str) -> None:
    run, count = FAULTS[fault]
    outcome = run(count)
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
