"""Share threads among requests so that no window and no folder can use them up.

1. Work has an owner: a window (its connection) and one of its folders. An owner has at most MOST_OF_FOLDER
   threads, a window MOST_OF_WINDOW. There are enough threads for many windows that use their limit.
2. Work beyond these limits waits in a line of its owner. So slow work, and work that never ends, delays only
   later work of the same folder in the same window, or at worst of the same window.
3. The lines of a window take turns; each is first come, first served.
4. Work without an owner (announcements, vocabularies) counts as that of one more window.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

MOST_THREADS = 128
MOST_OF_WINDOW = 8
MOST_OF_FOLDER = 4


class WorkOwner(NamedTuple):
    """The window and folder that work belongs to. `folder` is None for work that belongs to no folder.

    Both are None for work without an owner.
    """

    window: object = None
    folder: str | None = None


NOBODY = WorkOwner()
_owner: ContextVar[WorkOwner] = ContextVar("owner", default=NOBODY)


def work_for(owner: WorkOwner) -> None:
    """Make `owner` the owner of the current task's work from now on."""
    _owner.set(owner)


class _Job(NamedTuple):
    future: "Future[Any]"
    run: Callable[[], Any]
    owner: WorkOwner


class FairThreads(Executor):
    """A thread pool with a line for each owner (see the module). Any thread may use it."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._running: Counter[object] = Counter()  # by owner, and by window
        self._lines: OrderedDict[WorkOwner, deque[_Job]] = OrderedDict()

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self._running and not self._lines

    def submit(self, run: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Run a function in a thread, for the owner of the current task."""
        return self.submit_for(_owner.get(), partial(run, *args, **kwargs))

    def submit_for(self, owner: WorkOwner, run: Callable[[], T]) -> "Future[T]":
        """Run a function in a thread, for the given owner."""
        job = _Job(Future(), run, owner)
        with self._lock:
            self._lines.setdefault(job.owner, deque()).append(job)
            self._start_all(job.owner.window)
        return job.future

    def _start_all(self, window: object) -> None:
        """Start what may start now of a window's jobs."""
        while self._running[_Window(window)] < MOST_OF_WINDOW:
            owners = (owner for owner in self._lines if owner.window is window)
            owner = next((owner for owner in owners if self._running[owner] < MOST_OF_FOLDER), None)
            if owner is None:
                return
            line = self._lines[owner]
            job = line.popleft()
            if line:
                self._lines.move_to_end(owner)
            else:
                del self._lines[owner]
            if job.future.set_running_or_notify_cancel():
                self._start(job)

    def _start(self, job: _Job) -> None:
        try:
            started = self._pool.submit(self._run, job)
        except RuntimeError as error:  # the pool has ended
            job.future.set_exception(error)
        else:
            started.add_done_callback(partial(_fail_if_dropped, job))
            self._running[job.owner] += 1
            self._running[_Window(job.owner.window)] += 1

    def _run(self, job: _Job) -> None:
        try:
            result = job.run()
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            self._finish(job)
            job.future.set_exception(error)
        else:
            self._finish(job)
            job.future.set_result(result)

    def _finish(self, job: _Job) -> None:
        owner, window = job.owner, _Window(job.owner.window)
        with self._lock:
            for key in (owner, window):
                self._running[key] -= 1
                if not self._running[key]:
                    del self._running[key]
            self._start_all(owner.window)


def _fail_if_dropped(job: _Job, started: "Future[None]") -> None:
    """Tell who waits for a job that the pool ended before a thread took it.

    The pool calls this while it ends, so it starts nothing.
    """
    if started.cancelled():
        job.future.set_exception(RuntimeError("the threads have ended"))


class FolderThreads(Executor):
    """Gives one folder at most MOST_OF_FOLDER threads of a pool. Further work of the folder waits."""

    def __init__(self, pool: Executor) -> None:
        self._threads = FairThreads(pool)

    def submit(self, run: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        return self._threads.submit_for(NOBODY, partial(run, *args, **kwargs))


class _Window(NamedTuple):
    """The key of all work of a window."""

    window: object
