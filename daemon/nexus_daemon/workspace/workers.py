"""Run slow work of one daemon in worker threads, off the event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from nexus_context.disk.cancellation import cancellable
from nexus_context.disk.deadline import Turns
from nexus_context.tokens import loaded_encodings
from nexus_daemon.process import tracing
from nexus_daemon.workspace.fair_threads import MOST_THREADS, FairThreads
from nexus_daemon.workspace.malloc_arenas import limit_arenas

MOST_LOADS = 64
"""Threads that load folders, their agents and knowledge bases.

A folder uses at most one of them for each, so that a slow folder delays neither other folders nor requests.
"""

T = TypeVar("T")


class Workers:
    """The threads for requests and for loads (`loads`). Use it on the event loop.

    `requests` shares its threads fairly among windows and folders (`fair_threads`), and `run` uses it.
    `executor` is for the few jobs of the daemon itself. `on_vocabulary` is called after work that loaded a
    vocabulary, since estimates are exact from then on.
    """

    def __init__(self, on_vocabulary: Callable[[], None]) -> None:
        limit_arenas()
        self.executor = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="nexus")
        self.requests = FairThreads(self.executor)
        self.loads = ThreadPoolExecutor(MOST_LOADS, thread_name_prefix="nexus-load")
        self.turns = Turns()
        self._on_vocabulary = on_vocabulary
        self._jobs: set[asyncio.Future[Any]] = set()

    async def run(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run `job` in a worker thread and return its result. If cancelled, wait until the thread has ended.

        The job runs in a copy of the caller's context, so its log records go to the same client. A lock that
        is held around the call stays held while the thread still works.
        """
        with self.counting():
            carried = tracing.carry(partial(job, *args, **kwargs), "worker")
            return await self.result_of(self.requests.submit(carried))

    async def read(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run a job that changes nothing, as `run` does.

        After a cancellation the job ends soon (`cancellation`).
        """
        cancelled = threading.Event()
        with self.counting():
            carried = tracing.carry(partial(_read, cancelled, partial(job, *args, **kwargs)), "worker")
            pending = self.requests.submit(carried)
            return await self.result_of(pending, cancelled)

    async def load(self, job: Callable[[], T]) -> T:
        """Run a job that loads a folder's files, as `run` does, in the threads for loads.

        The caller runs at most one at a time for a folder.
        """
        with self.counting():
            return await self.result_of(self.loads.submit(tracing.carry(job, "load")))

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Call `on_vocabulary` at the end of the block if a vocabulary was loaded during it."""
        previous_encodings = loaded_encodings()
        try:
            yield
        finally:
            if loaded_encodings() != previous_encodings:
                self._on_vocabulary()

    async def result_of(self, pending: Future[T], cancelled_event: threading.Event | None = None) -> T:
        """Return the result of a job in a thread.

        If cancelled, set `cancelled_event` and wait until the thread has ended.
        """
        future = asyncio.wrap_future(pending)
        self._jobs.add(future)
        future.add_done_callback(self._jobs.discard)
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                cancelled = error
                pending.cancel()  # a job that waits for a free thread need not begin
                if cancelled_event is not None:
                    cancelled_event.set()
        if cancelled is not None:
            if not future.cancelled():
                future.exception()  # retrieved, else asyncio complains
            raise cancelled
        return future.result()

    def cancel_jobs(self) -> None:
        """Cancel every job that a caller waits for."""
        for job in self._jobs:
            job.cancel()

    def close(self) -> None:
        """End the threads, without waiting for one that hangs on a file system."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.loads.shutdown(wait=False, cancel_futures=True)


def _read(cancelled: threading.Event, job: Callable[[], T]) -> T:
    with cancellable(cancelled.is_set):
        return job()
