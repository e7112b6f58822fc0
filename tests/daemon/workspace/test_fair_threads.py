"""Windows and folders share the threads: one that floods or hangs delays no other."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context

import pytest

from nexus_daemon.workspace.fair_threads import (
    MOST_OF_FOLDER,
    MOST_OF_WINDOW,
    NOBODY,
    FairThreads,
    WorkOwner,
    work_for,
)
from nexus_daemon.workspace.workers import Workers
from support.waiting import block_until

TIMEOUT_S = 10.0


class Desk:
    """Threads, and jobs that hang until `go_on` is set."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(64)
        self.threads = FairThreads(self.pool)
        self.go_on = threading.Event()
        self.begun: list[WorkOwner] = []

    def submit(self, owner: WorkOwner, job: Callable[[], object]) -> "Future[object]":
        def submit() -> "Future[object]":
            work_for(owner)
            return self.threads.submit(job)

        return copy_context().run(submit)

    def hang(self, owner: WorkOwner) -> "Future[object]":
        def job() -> None:
            self.begun.append(owner)
            assert self.go_on.wait(TIMEOUT_S)

        return self.submit(owner, job)


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.go_on.set()
    desk.pool.shutdown()


ONE, TWO = "window one", "window two"


@pytest.mark.parametrize(
    ("floods", "quick", "goes_through"),
    [
        ([WorkOwner(ONE, "/a")], WorkOwner(TWO, "/a"), True),
        ([WorkOwner(ONE, "/a")], WorkOwner(ONE, "/b"), True),
        ([WorkOwner(ONE, "/a")], WorkOwner(ONE), True),
        ([WorkOwner(ONE, "/a")], NOBODY, True),
        ([WorkOwner(ONE, name) for name in ("/a", "/b", "/c")], WorkOwner(TWO, "/c"), True),
        ([NOBODY], WorkOwner(ONE, "/a"), True),
        ([WorkOwner(ONE, "/a")], WorkOwner(ONE, "/a"), False),
        ([WorkOwner(ONE, name) for name in ("/a", "/b", "/c")], WorkOwner(ONE, "/d"), False),
    ],
)
def test_who_waits_for_whom(
    desk: Desk, floods: list[WorkOwner], quick: WorkOwner, goes_through: bool
) -> None:
    """While 64 jobs of each owner hang, a quick job goes through, or waits for one of them."""
    hanging = [desk.hang(owner) for owner in floods for _ in range(64)]
    job = desk.submit(quick, threading.get_ident)
    if goes_through:
        job.result(TIMEOUT_S)
        assert not desk.go_on.is_set()
    else:
        assert not job.running()
    desk.go_on.set()
    for each in (*hanging, job):
        each.result(TIMEOUT_S)
    assert desk.threads.is_idle


def test_limits(desk: Desk) -> None:
    """A folder has its share of the window's threads, and the window its share of all."""
    jobs = [desk.hang(WorkOwner(ONE, name)) for name in ("/a", "/b", "/c") for _ in range(20)]
    block_until(lambda: len(desk.begun) == MOST_OF_WINDOW)
    assert [desk.begun.count(WorkOwner(ONE, name)) for name in ("/a", "/b", "/c")] == [
        MOST_OF_FOLDER,
        MOST_OF_WINDOW - MOST_OF_FOLDER,
        0,
    ]
    assert sum(job.running() for job in jobs) == MOST_OF_WINDOW


def test_the_folders_of_a_window_take_turns(desk: Desk) -> None:
    order: list[str] = []
    first = threading.Event()
    desk.submit(WorkOwner(ONE, "/x"), lambda: first.wait(TIMEOUT_S))
    for name in ("/x", "/y"):
        for _ in range(MOST_OF_FOLDER - (name == "/x")):
            desk.hang(WorkOwner(ONE, name))
    block_until(lambda: len(desk.begun) == MOST_OF_WINDOW - 1)
    for name in "aaabbb":
        desk.submit(WorkOwner(ONE, name), lambda name=name: order.append(name))  # type: ignore[misc]
    first.set()  # one thread is free: it does one job after the other
    block_until(lambda: len(order) == 6)
    assert order == list("ababab")


def test_a_cancelled_job_does_not_begin(desk: Desk) -> None:
    hanging = [desk.hang(WorkOwner(ONE, "/a")) for _ in range(MOST_OF_FOLDER)]
    waiting, last = (desk.hang(WorkOwner(ONE, "/a")) for _ in range(2))
    assert waiting.cancel()
    desk.go_on.set()
    for job in (*hanging, last):
        job.result(TIMEOUT_S)
    assert len(desk.begun) == MOST_OF_FOLDER + 1


def test_a_failure_frees_its_thread(desk: Desk) -> None:
    jobs = [desk.submit(WorkOwner(ONE, "/a"), lambda: 1 / 0) for _ in range(3 * MOST_OF_WINDOW)]
    for job in jobs:
        assert isinstance(job.exception(TIMEOUT_S), ZeroDivisionError)
    assert desk.submit(WorkOwner(ONE, "/a"), lambda: 5).result(TIMEOUT_S) == 5


def test_work_of_a_task_is_done_for_its_owner() -> None:
    """As in the daemon: each request is a task, and what it starts belongs to its window and folder."""
    go_on = threading.Event()

    async def request(workers: Workers, owner: WorkOwner, job: Callable[[], object]) -> object:
        work_for(owner)
        return await workers.run(job)

    async def run() -> None:
        workers = Workers(lambda: None)
        flood = [
            asyncio.create_task(request(workers, WorkOwner(ONE, "/a"), lambda: go_on.wait(TIMEOUT_S)))
            for _ in range(64)
        ]
        for owner in (WorkOwner(TWO, "/a"), WorkOwner(ONE, "/b")):
            assert await request(workers, owner, lambda: "quick") == "quick"
        assert not any(task.done() for task in flood)
        flood[-1].cancel()  # it still waits in its line
        await asyncio.wait([flood[-1]])
        go_on.set()
        assert await asyncio.gather(*flood[:-1]) == [True] * 63
        workers.close()

    asyncio.run(run())


def test_a_job_that_no_thread_takes_before_the_pool_ends_has_failed() -> None:
    """On a busy machine a short command ends before a thread began: who waits must not wait for ever."""
    go_on = threading.Event()
    pool = ThreadPoolExecutor(1)
    pool.submit(go_on.wait, TIMEOUT_S)
    waiting = FairThreads(pool).submit(lambda: "quick")
    pool.shutdown(wait=False, cancel_futures=True)
    assert str(waiting.exception(TIMEOUT_S)) == "the threads have ended"
    go_on.set()
