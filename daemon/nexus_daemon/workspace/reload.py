"""Rebuild one folder's snapshot: what changed → one rebuild off the event loop → swap.

1. A `CoalescingQueue` runs the rebuilds: one at a time, and one more for everything requested meanwhile.
   `settled()` waits for the rebuild that contains the last request, so a request after an edit sees the edit.
2. A rebuild that raises is a bug: it is logged, the old snapshot stays, and the queue continues.
3. A rebuild has a deadline, and a newer request supersedes it (`disk.deadline`, which also says when a long
   rebuild lets others work). The rebuild after a superseded one cannot be superseded, so constant typing
   still produces a snapshot now and then. A rebuild that ran out of time is not repeated before the next
   request: the old snapshot stays, and `on_overdue` is called.
4. After `cancel()` nothing is swapped in. Waiting callers get an error that says that the folder was removed.
"""

import contextlib
import logging
from asyncio import get_running_loop
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial

import msgspec

from nexus_context.disk.deadline import LOAD_S, Deadline, LoadStopped, Turns
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import Snapshot
from nexus_daemon.process import tracing
from nexus_daemon.workspace.queue import CoalescingQueue

logger = logging.getLogger(__name__)

Job = Callable[[Deadline], Snapshot]
Prepare = Callable[[Snapshot | None, frozenset[str] | None], Job | Snapshot]
OnSwap = Callable[["Swap"], None]
OnOverdue = Callable[[LoadStopped], None]
ShowWork = Callable[[], contextlib.AbstractContextManager[object]]


class Swap(msgspec.Struct, frozen=True):
    """A change of a folder's snapshot from `old` to `new`. `old` is None if `new` is the first one."""

    old: Snapshot | None
    new: Snapshot
    reasons: frozenset[str]

    @property
    def moves_files(self) -> bool:
        """Whether the folder now reads files in other places than before."""
        return self.old is None or self.old.layers.watch != self.new.layers.watch


class _Change(msgspec.Struct, frozen=True):
    """Why a rebuild is requested, and the only paths that changed; None: any may have."""

    reasons: frozenset[str]
    paths: frozenset[str] | None

    def merge(self, later: "_Change") -> "_Change":
        is_known = self.paths is not None and later.paths is not None
        paths = self.paths | later.paths if is_known else None  # type: ignore[operator]
        return _Change(self.reasons | later.reasons, paths)


class Reload:
    """The rebuilds of one folder.

    All callbacks run on the event loop. `prepare` gets the old snapshot and the only paths that changed
    since, or None if any may have. It copies what it needs of the daemon's state and returns a job for
    `executor`, or the new snapshot if no work is needed. `on_swap` gets each new snapshot. `on_overdue` is
    called if a rebuild ran out of time; `stopped` then says why, until a rebuild succeeds. `show_work`
    returns a context for as long as a thread rebuilds.
    """

    def __init__(
        self,
        prepare: Prepare,
        on_swap: OnSwap,
        executor: Executor,
        *,
        turns: Turns | None = None,
        on_overdue: OnOverdue = lambda _: None,
        show_work: ShowWork = contextlib.nullcontext,
    ) -> None:
        self.snapshot: Snapshot | None = None
        self.stopped: LoadStopped | None = None
        self._prepare = prepare
        self._on_swap = on_swap
        self._executor = executor
        self._turns = turns
        self._on_overdue = on_overdue
        self._show_work = show_work
        self._shown = contextlib.ExitStack()  # closed when the rebuild under way is over
        self._queue: CoalescingQueue[_Change] = CoalescingQueue(self._build, _Change.merge)
        self._deadline: Deadline | None = None  # of the rebuild in a thread
        self._may_supersede = True
        self._is_incomplete = True  # whether the snapshot may lack changes of earlier requests

    @property
    def cancelled(self) -> bool:
        return self._queue.is_cancelled

    @property
    def under_way(self) -> bool:
        """Whether a rebuild is running or requested."""
        return self._queue.is_busy

    def request(self, reason: str, path: str | None = None) -> None:
        """Request a rebuild and return at once. Requests before the event loop's next turn share one rebuild.

        `path` is the only path that changed, as far as this request knows; None means that any path may have.
        """
        tracing.mark("change", reason=reason)
        paths = None if path is None else frozenset((path,))
        self._queue.request(_Change(frozenset((reason,)), paths))
        if self._deadline is not None and self._may_supersede:
            self._deadline.supersede()

    async def settled(self) -> None:
        """Wait until the snapshot contains everything that was requested before this call.

        RequestError if the folder was removed before or is removed meanwhile.
        """
        with tracing.phase("wait for load"):
            await self._queue.settled()

    def cancel(self) -> None:
        """Drop all requests. A rebuild under way is not swapped in."""
        if self._deadline is not None:
            self._deadline.supersede()
        self._shown.close()
        self._queue.cancel(_removed)

    def _build(self, change: _Change) -> None:
        previous_snapshot = self.snapshot
        paths = None if self._is_incomplete else change.paths
        self._is_incomplete = False
        job: Future[Snapshot] = Future()
        reload_span = tracing.begin("reload", reasons=sorted(change.reasons))
        try:
            prepared = self._prepare(previous_snapshot, paths)
            if not callable(prepared):
                job.set_result(prepared)
                tracing.end(reload_span)
                self._finish_build(previous_snapshot, change, job)
                return
            deadline = self._deadline = Deadline(LOAD_S, self._turns)
            self._shown.enter_context(self._show_work())
            with tracing.within(reload_span):
                job = self._executor.submit(tracing.carry(partial(_run, prepared, deadline), "load"))
        except Exception as error:  # noqa: BLE001 - `_finish_build` logs it like the job's own bugs
            job.set_exception(error)
        loop = get_running_loop()

        # runs in the worker's thread, which saves a turn of the loop compared to asyncio
        def finish_in_loop(_: Future[Snapshot]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(finish_build)

        def finish_build() -> None:
            tracing.end(reload_span)
            self._finish_build(previous_snapshot, change, job)

        job.add_done_callback(finish_in_loop)

    def _finish_build(
        self, previous_snapshot: Snapshot | None, change: _Change, job: Future[Snapshot]
    ) -> None:
        self._shown.close()
        if self.cancelled:
            return
        self._deadline, self._may_supersede = None, True
        try:
            snapshot = self.snapshot = job.result()
            self.stopped = None
            self._on_swap(Swap(previous_snapshot, snapshot, change.reasons))
        except LoadStopped as stopped:
            self._is_incomplete = True
            if stopped.superseded:
                self._may_supersede = False
                self._queue.repeat(change)
                return
            self.stopped = stopped.with_traceback(None)  # its frames would retain everything that was read
            self._on_overdue(stopped)
        except Exception:  # a bug in one rebuild must not end the folder
            self._is_incomplete = True
            logger.exception("rebuilding a folder failed; its last snapshot stays")
        self._queue.finish()


def _run(job: Job, deadline: Deadline) -> Snapshot:
    with deadline:
        return job(deadline)


def _removed() -> RequestError:
    return RequestError("The folder was removed from the workspace.", code="folder-removed")
