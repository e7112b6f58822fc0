"""What usages in transcripts say about our counts: once a conversation, and near the truth."""

import random
from pathlib import Path
from typing import Any

import pytest

from nexus_context.assistants.mirror import mirror_files, session_writer
from nexus_context.ledger.store import Ledger
from nexus_context.tokens import count_message, counter_for
from nexus_context.tokens.accuracy import measure_accuracy
from support.assistant_logs import MODEL, ClaudeLog, use

COUNTER = counter_for(MODEL)
PROMPT = 17_000  # tokens that the program sends besides; nobody here knows them


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


class Talk:
    """A session whose provider counts `factor` times what we count."""

    def __init__(self, home: Path, name: str, factor: float, seed: int = 0) -> None:
        self.log = ClaudeLog(home, name)
        self._factor, self._random = factor, random.Random(seed)  # noqa: S311 - not a secret
        self.sent = self._calls = 0

    def more(self, steps: int, words: int = 400) -> None:
        for _ in range(steps):
            self._calls += 1
            call = f"{self.log.name}-c{self._calls}"
            self.log.answer(use(call, path="a"), sent=PROMPT + round(self._factor * self.sent))
            text = " ".join(self._random.choice(("gate", "harbour", "is_open", "42")) for _ in range(words))
            self.log.result(call, text)
            calls: Any = [type("Call", (), {"name": "Read", "arguments": {"path": "a"}})()]
            self.sent += count_message(COUNTER, None, calls) + count_message(COUNTER, text)

    def begin(self, steps: int, words: int = 400) -> "Talk":
        self.log.user("Go.")
        self.sent += count_message(COUNTER, "Go.")
        self.more(steps, words)
        return self


def run(ledger: Ledger, home: Path) -> None:
    mirror_files(ledger, str(home), {})


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.13, 1.4])
def test_the_factor_of_the_provider_is_found(ledger: Ledger, home: Path, factor: float) -> None:
    for number in range(9):
        Talk(home, f"s{number}", factor, seed=number).begin(12)
    run(ledger, home)
    learned = ledger.usage.correction("claude").factor
    assert learned is not None
    assert abs(learned - 1000 * factor) <= 3
    (accuracy,) = measure_accuracy(ledger.usage.reports())
    assert (accuracy.conversations, accuracy.requests, accuracy.since is None) == (9, 9, False)
    assert accuracy.corrected.median <= 3
    assert abs(accuracy.uncorrected.median - abs(1000 / factor - 1000)) <= 5


def test_a_conversation_counts_once(ledger: Ledger, home: Path) -> None:
    talk = Talk(home, "s1", 1.2).begin(12)
    run(ledger, home)
    assert len(ledger.usage.reports()) == 1
    talk.more(12)
    run(ledger, home)
    run(ledger, home)
    assert len(ledger.usage.reports()) == 1
    back = talk.log.last
    talk.more(3)
    run(ledger, home)
    talk.log.user("Another way.", parent=back)  # goes on in a fork, with the same requests
    talk.more(12)
    run(ledger, home)
    assert len(ledger.sessions()) == 2
    assert len(ledger.usage.reports()) == 1


def test_a_short_conversation_counts_when_it_has_grown(ledger: Ledger, home: Path) -> None:
    talk = Talk(home, "s1", 1.2).begin(2, words=10)
    run(ledger, home)
    assert ledger.usage.reports() == []
    talk.more(12)
    run(ledger, home)
    (dated,) = ledger.usage.reports()
    assert abs(dated.report.ratio - 1200) <= 3


def test_what_a_compaction_cut_is_not_taken_for_growth(ledger: Ledger, home: Path) -> None:
    talk = Talk(home, "s1", 1.2).begin(12)
    talk.sent = 500
    talk.more(2, words=50)
    run(ledger, home)
    (dated,) = ledger.usage.reports()
    assert abs(dated.report.ratio - 1200) <= 3


def test_only_so_many_are_counted_in_a_run(
    ledger: Ledger, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_writer, "MOST_MEASURED", 2)
    for number in range(4):
        Talk(home, f"s{number}", 1.2, seed=number).begin(12)
    run(ledger, home)
    assert len(ledger.usage.reports()) == 2


def test_no_text_is_in_a_report(ledger: Ledger, home: Path) -> None:
    Talk(home, "s1", 1.2).begin(12)
    run(ledger, home)
    (dated,) = ledger.usage.reports()
    assert (dated.report.family, dated.report.anchors) == ("claude", False)
