"""Work that nobody waits for ends soon, wherever it is; other work of its thread and its ledger goes on."""

import threading
from collections.abc import Callable, Iterator

import pytest

from nexus_context.assistants.importing import jsonl
from nexus_context.conversation.message import Message
from nexus_context.disk.cancellation import WorkCancelled, cancellable
from nexus_context.disk.cancellation import check as check_point
from nexus_context.ledger import open_ledger
from nexus_context.ledger.store import Ledger
from nexus_context.tokens import get_token_counter
from support.ledgers import turn_of

TURNS = 300


class After:
    """Whether work is cancelled: from the `count`-th question on."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.questions = 0

    def __call__(self) -> bool:
        self.questions += 1
        return self.questions >= self.count


def check(job: Callable[[], object]) -> None:
    """A job ends at its first check and at a later one, and completes if it is not cancelled."""
    never = After(1_000_000_000)
    with cancellable(never):
        expected = job()
    assert never.questions > 1
    for count in (1, never.questions // 2, never.questions):
        with cancellable(After(count)), pytest.raises(WorkCancelled):
            job()
    assert job() == expected


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    ledger = open_ledger(str(tmp_path_factory.mktemp("ledger") / "ledger.db"))
    for number in range(TURNS):
        text = f"The number {number} is red and green. " * 20
        ledger.append("/a", "main", turn_of(*[Message("user", text)] * 4))
    yield ledger
    ledger.close()


def test_an_export(ledger: Ledger) -> None:
    check(lambda: "".join(jsonl.lines("main", ledger.turns("/a", "main"))))


def test_a_search(ledger: Ledger) -> None:
    check(lambda: ledger.pages.search("red green number"))


def test_the_count_of_a_long_text() -> None:
    counter = get_token_counter(encoding="o200k_base")
    text = " ".join(f"word{number % 5_000}" for number in range(150_000))
    check(lambda: counter.count(text))


def test_checks_outside_of_such_work() -> None:
    check_point()
    with cancellable(lambda: False):
        check_point()
        with cancellable(lambda: True), pytest.raises(WorkCancelled):
            check_point()
        check_point()


def test_another_thread_is_not_affected() -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            check_point()
        except WorkCancelled as error:
            failures.append(error)

    with cancellable(lambda: True):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert failures == []
