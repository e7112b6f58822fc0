"""Run one job at a time for everything that is requested, after rust-analyzer's `op_queue.rs`.

1. `request(cause)` while the queue is idle schedules a run. It begins after `quiet_s` seconds without another
   request, at most `patience_s` seconds after the first one. If `quiet_s` is 0, it begins at the event loop's
   next turn.
2. Causes that are requested before a run begins are merged into one.
3. Requests during a run lead to one more run, however many there were.
4. `settled()` waits for the run that contains the last request before the call, not for later requests.
5. After `cancel()` no run begins.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Generic, TypeVar

Cause = TypeVar("Cause")

logger = logging.getLogger(__name__)


class CoalescingQueue(Generic[Cause]):
    """A queue whose runs begin with `begin(cause)` and end when `finish()` is called.

    Use it on the event loop.

    `merge` combines the causes of an earlier and a later request.
    """

    def __init__(
        self,
        begin: Callable[[Cause], None],
        merge: Callable[[Cause, Cause], Cause],
        *,
        quiet_s: float = 0.0,
        patience_s: float = math.inf,
    ) -> None:
        self.is_running = False
        self.is_cancelled = False
        self._begin_run = begin
        self._merge = merge
        self._quiet_s = quiet_s
        self._patience_s = patience_s
        self._pending: tuple[Cause] | None = None  # not in a run yet
        self._since = 0.0  # when the first of the pending causes was requested, by the loop's clock
        self._at_once = False
        self._timer: asyncio.Handle | None = None
        self._requested = self._running = self._done = 0  # numbers of requests
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._cancellation: Callable[[], Exception] = asyncio.InvalidStateError

    @property
    def is_busy(self) -> bool:
        """Whether a run is under way or will begin."""
        return self.is_running or self._pending is not None

    def request(self, cause: Cause, *, at_once: bool = False) -> None:
        """Request a run and return at once. With `at_once`, the run does not wait for quiet."""
        if self.is_cancelled:
            return
        self._requested += 1
        self._at_once |= at_once
        if self._pending is None:
            self._pending, self._since = (cause,), asyncio.get_running_loop().time()
        else:
            self._pending = (self._merge(self._pending[0], cause),)
        if not self.is_running:
            self._schedule()

    def finish(self) -> None:
        """End the run that is under way, and begin or schedule the next one."""
        if self.is_cancelled:
            return
        self.is_running, self._done = False, self._running
        while self._waiters and self._waiters[0][0] <= self._done:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
        if self._pending is not None and not self.is_running:
            self._begin() if self._quiet_s == 0.0 else self._schedule()

    def repeat(self, cause: Cause) -> None:
        """Start the run that is under way again, with all causes that were requested since."""
        if self._pending is not None:
            cause = self._merge(cause, self._pending[0])
        self._start(cause)

    async def settled(self) -> None:
        """Wait for the run that contains everything that was requested before this call.

        If the queue is cancelled, before or meanwhile, raise the error that was given to `cancel`.
        """
        if self.is_cancelled:
            raise self._cancellation()
        if self._done < self._requested:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append((self._requested, waiter))
            await waiter

    def cancel(self, error: Callable[[], Exception] = asyncio.InvalidStateError) -> None:
        """Begin no more runs. Calls of `settled` that wait for a run raise `error()`."""
        self.is_cancelled, self._cancellation = True, error
        self._pending = None
        if self._timer is not None:
            self._timer.cancel()
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error())
        self._waiters.clear()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        timer, now = self._timer, loop.time()
        if timer is not None and not (isinstance(timer, asyncio.TimerHandle) and timer.when() > now):
            return  # it is due: one that requests at every turn of the loop must not hold it up
        if timer is not None:
            timer.cancel()
        if self._quiet_s == 0.0 or self._at_once:
            self._timer = loop.call_soon(self._begin)
        else:
            patience_s = max(self._since + self._patience_s - now, 0.0)
            self._timer = loop.call_later(min(self._quiet_s, patience_s), self._begin)

    def _begin(self) -> None:
        self._timer = None
        if self._pending is not None and not self.is_cancelled:
            self._start(self._pending[0])

    def _start(self, cause: Cause) -> None:
        self._pending, self._at_once = None, False
        self.is_running, self._running = True, self._requested
        self._begin_run(cause)


class TaskQueue(CoalescingQueue[Cause]):
    """A queue whose runs each run `work(cause)` in a task. An exception of it is logged as a bug."""

    def __init__(
        self,
        work: Callable[[Cause], Coroutine[Any, Any, None]],
        merge: Callable[[Cause, Cause], Cause],
        *,
        quiet_s: float = 0.0,
        patience_s: float = math.inf,
    ) -> None:
        super().__init__(self._begin_task, merge, quiet_s=quiet_s, patience_s=patience_s)
        self._work = work
        self._task: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Cancel the queue and the run that is under way, and wait for its end."""
        self.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def stop(self) -> None:
        """Cancel the queue and the run that is under way."""
        self.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin_task(self, cause: Cause) -> None:
        # in a context of its own: several requests may share a run, which is the work of none of them
        self._task = asyncio.get_running_loop().create_task(self._run(cause), context=Context())

    async def _run(self, cause: Cause) -> None:
        try:
            await self._work(cause)
        except Exception:  # a bug in one run must not end the queue
            logger.exception("a run of %s failed", self._work)
        finally:
            self._task = None
            self.finish()
