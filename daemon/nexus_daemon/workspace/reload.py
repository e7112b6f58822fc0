"""A single-flight queue for one folder's snapshot: what changed → one rebuild off the loop → swap.

1. `request(reason)` while nothing runs starts a rebuild; while one runs, it is noted.
2. Reasons that gather during a rebuild lead to one more, however many they are.
3. Requests are numbered. `settled()` waits for the rebuild that holds the last one before it, so that who
   follows an edit sees it, and not for what is typed meanwhile.
4. A rebuild that raises is a bug: it is logged, the old snapshot stays, and the queue goes on.
5. A rebuild has a deadline, and a newer request supersedes it (`nexus_context.deadline`, which also says
   when a long one lets others work). One that was superseded is made up for by the next, which no request
   supersedes: so somebody who types all the time sees the folder now and then. One that has run out of time
   is not tried again before the next request: the old snapshot stays, and `overdue` is told.
6. `cancel()` is the end: nothing is swapped in any more, and who waits is told that the folder is gone.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future

from nexus_context.deadline import LOAD_S, Deadline, LoadStopped, Turns
from nexus_context.errors import RequestError
from nexus_context.snapshot import Snapshot

logger = logging.getLogger(__name__)

Job = Callable[[Deadline], Snapshot]
Prepare = Callable[[Snapshot | None, frozenset[str] | None], Job | Snapshot]
Swap = Callable[[Snapshot | None, Snapshot, frozenset[str]], None]
Overdue = Callable[[LoadStopped], None]


class Reload:
    """The rebuild queue of one folder.

    `prepare` is called on the loop with the old snapshot and the only paths that changed since, None when
    anything may have. It takes what it needs of the daemon's state; the job that it returns runs in
    `executor`, unless it has the new snapshot at hand; `swap` is called on the loop with the old and the
    new snapshot, `overdue` where there is none for want of time. `stopped` is then why, until there is one.
    """

    def __init__(
        self,
        prepare: Prepare,
        swap: Swap,
        executor: Executor,
        turns: Turns | None = None,
        overdue: Overdue = lambda _: None,
    ) -> None:
        self.snapshot: Snapshot | None = None
        self.stopped: LoadStopped | None = None
        self.cancelled = False
        self._prepare = prepare
        self._swap = swap
        self._executor = executor
        self._turns = turns
        self._overdue = overdue
        self._deadline: Deadline | None = None  # of the rebuild in a thread
        self._may_supersede = True
        self._reasons: set[str] = set()
        self._changed: set[str] | None = None  # since the snapshot; None: anything may have
        self._asked = self._done = 0  # the last request, and the last one that a finished rebuild holds
        self._running = False
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def under_way(self) -> bool:
        """Whether another snapshot is on its way."""
        return self._running

    def request(self, reason: str, path: str | None = None) -> None:
        """Ask for a rebuild; returns at once. What is asked before the loop's next turn is one rebuild.

        `path` is the only one that changed, as far as this request knows.
        """
        if self.cancelled:
            return
        self._asked += 1
        if path is None:
            self._changed = None
        elif self._changed is not None:
            self._changed.add(path)
        self._reasons.add(reason)
        if not self._running:
            self._running = True
            asyncio.get_running_loop().call_soon(self._build)
        elif self._deadline is not None and self._may_supersede:
            self._deadline.supersede()

    async def settled(self) -> None:
        """Wait until the snapshot holds everything that was requested before this call.

        Raises
        ------
        RequestError
            When the queue is cancelled, before or meanwhile.

        """
        if self.cancelled:
            raise _removed()
        if self._done < self._asked:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((self._asked, waiter))
            await waiter

    def cancel(self) -> None:
        """Forget what was requested; a rebuild under way is not swapped in."""
        self.cancelled = True
        if self._deadline is not None:
            self._deadline.supersede()
        self._reasons.clear()
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(_removed())
        self._waiting.clear()

    def _build(self) -> None:
        if self.cancelled:
            return
        reasons, number, old = frozenset(self._reasons), self._asked, self.snapshot
        changed = None if self._changed is None else frozenset(self._changed)
        self._reasons.clear()
        self._changed = set()
        job: Future[Snapshot] = Future()
        try:
            prepared = self._prepare(old, changed)
            if not callable(prepared):
                job.set_result(prepared)
                self._built(old, reasons, number, job)
                return
            deadline = self._deadline = Deadline(LOAD_S, self._turns)
            job = self._executor.submit(_run, prepared, deadline)
        except Exception as error:  # noqa: BLE001 - a bug is logged where the job's own are
            job.set_exception(error)
        loop = asyncio.get_running_loop()

        def tell(_: Future[Snapshot]) -> None:  # in the worker's thread: a turn of the loop less than asyncio
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._built, old, reasons, number, job)

        job.add_done_callback(tell)

    def _built(
        self, old: Snapshot | None, reasons: frozenset[str], number: int, job: Future[Snapshot]
    ) -> None:
        if self.cancelled:
            return
        self._deadline, self._may_supersede = None, True
        try:
            new = self.snapshot = job.result()
            self.stopped = None
            self._swap(old, new, reasons)
        except LoadStopped as stopped:
            self._changed = None
            if stopped.superseded:
                self._may_supersede = False
                self._reasons |= reasons
                self._build()
                return
            self.stopped = stopped.with_traceback(None)  # whose frames hold all that was read
            self._overdue(stopped)
        except Exception:  # a bug in one rebuild must not end the folder
            self._changed = None  # the next one has to make up for this one
            logger.exception("rebuilding a folder failed; its last state stays")
        self._done = number
        while self._waiting and self._waiting[0][0] <= number:
            _, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
        self._running = bool(self._reasons)
        if self._running:
            self._build()


def _run(job: Job, deadline: Deadline) -> Snapshot:
    with deadline:
        return job(deadline)


def _removed() -> RequestError:
    return RequestError("The folder was removed from the workspace.", code="folder-removed")
