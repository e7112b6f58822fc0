"""The coalescing queue: one run at a time, no cause lost, nobody waits longer than for the last request."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_daemon.workspace.queue import CoalescingQueue, TaskQueue
from support.waiting import yield_to_loop

QUIET_S = 0.01


def check(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 10))


class Log:
    """A queue whose causes are sets of numbers, and the causes of its runs."""

    def __init__(self, *, quiet_s: float = 0.0, patience_s: float = 60.0) -> None:
        self.runs: list[frozenset[int]] = []
        self.queue: CoalescingQueue[frozenset[int]] = CoalescingQueue(
            self._begin, frozenset.union, quiet_s=quiet_s, patience_s=patience_s
        )
        self.requested = 0

    def _begin(self, cause: frozenset[int]) -> None:
        assert self.queue.is_running
        self.runs.append(cause)

    def request(self) -> None:
        self.queue.request(frozenset((self.requested,)))
        self.requested += 1


STEPS = st.lists(st.sampled_from(["request", "turn", "finish", "repeat", "wait"]), max_size=40)


@given(STEPS)
def test_every_cause_is_in_exactly_one_run_and_waiters_return_after_it(steps: list[str]) -> None:
    async def story() -> None:
        log, waiters = Log(), []
        for step in steps:
            before = len(log.runs)
            if step == "request":
                log.request()
                assert len(log.runs) == before
            elif step == "turn":
                await yield_to_loop()
            elif step == "wait":
                waiters.append((log.requested, asyncio.create_task(log.queue.settled())))
                await yield_to_loop()
            elif log.queue.is_running and step == "finish":
                log.queue.finish()
                assert len(log.runs) <= before + 1
            elif log.queue.is_running:
                log.queue.repeat(log.runs.pop())
                assert len(log.runs) == before
            await yield_to_loop()
            finished = len(log.runs) - log.queue.is_running
            contained = frozenset[int]().union(*log.runs[:finished])
            for number, waiter in waiters:
                assert waiter.done() == (contained >= set(range(number)))
        while log.queue.is_busy:
            await yield_to_loop()
            if log.queue.is_running:
                log.queue.finish()
        assert sorted(number for run in log.runs for number in run) == list(range(log.requested))
        await asyncio.gather(*(waiter for _, waiter in waiters))

    check(story)


def test_requests_before_the_next_turn_of_the_loop_are_one_run() -> None:
    async def story() -> None:
        log = Log()
        for _ in range(3):
            log.request()
        assert log.runs == []
        await yield_to_loop()
        assert log.runs == [{0, 1, 2}]

    check(story)


def test_what_is_requested_during_a_run_is_one_more_run() -> None:
    async def story() -> None:
        log = Log()
        log.request()
        await yield_to_loop()
        log.request()
        log.request()
        await yield_to_loop()
        assert log.runs == [{0}]
        log.queue.finish()
        assert log.runs == [{0}, {1, 2}]

    check(story)


def test_a_run_waits_for_quiet() -> None:
    async def story() -> None:
        log, since = Log(quiet_s=QUIET_S), time.monotonic()
        log.request()
        log.request()
        while not log.runs:
            await yield_to_loop()
        assert time.monotonic() - since >= QUIET_S
        assert log.runs == [{0, 1}]

    check(story)


def test_a_run_loses_patience_however_often_it_is_requested() -> None:
    async def story() -> None:
        patient, endless, since = Log(quiet_s=60.0, patience_s=QUIET_S), Log(quiet_s=60.0), time.monotonic()
        while not patient.runs:
            patient.request()
            endless.request()
            await yield_to_loop()
        assert time.monotonic() - since >= QUIET_S
        assert endless.runs == []

    check(story)


def test_a_request_at_once_waits_for_no_quiet() -> None:
    async def story() -> None:
        log = Log(quiet_s=60.0)
        log.request()
        log.queue.request(frozenset((7,)), at_once=True)
        await yield_to_loop()
        assert log.runs == [{0, 7}]

    check(story)


def test_a_cancelled_queue_begins_nothing_and_says_so_to_whoever_waits() -> None:
    async def story() -> None:
        log = Log()
        log.request()
        waiter = asyncio.create_task(log.queue.settled())
        await yield_to_loop()
        log.request()
        log.queue.cancel(LookupError)
        log.request()
        log.queue.finish()
        await yield_to_loop()
        assert log.runs == [{0}]
        for wait in (waiter, log.queue.settled()):
            with pytest.raises(LookupError):
                await wait

    check(story)


def test_a_task_that_fails_is_logged_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        runs: list[int] = []

        async def work(cause: int) -> None:
            runs.append(cause)
            if cause == 1:
                raise ValueError("a bug")

        queue = TaskQueue(work, max)
        for cause in (1, 2):
            queue.request(cause)
            await queue.settled()
        assert runs == [1, 2]
        assert [record.exc_info is not None for record in caplog.records] == [True]

    check(story)


def test_closing_waits_for_the_end_of_the_task() -> None:
    async def story() -> None:
        ended = asyncio.Event()

        async def work(_: None) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        queue: TaskQueue[None] = TaskQueue(work, lambda _, later: later)
        queue.request(None)
        while not queue.is_running:
            await yield_to_loop()
        await yield_to_loop()
        await queue.close()
        assert ended.is_set()

    check(story)
