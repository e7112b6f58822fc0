"""A single-flight queue for one folder's snapshot: what changed → one rebuild off the loop → swap.

1. `request(reason)` while nothing runs starts a rebuild; while one runs, it is noted.
2. Reasons that gather during a rebuild lead to one more, however many they are.
3. `settled()` waits until no rebuild is under way or noted, so that a request that follows an edit sees it.
4. A rebuild that raises is a bug: it is logged, the old snapshot stays, and the queue goes on.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor

from nexus_context.snapshot import Snapshot

logger = logging.getLogger(__name__)

Prepare = Callable[[Snapshot | None, frozenset[str] | None], Callable[[], Snapshot]]
Swap = Callable[[Snapshot | None, Snapshot, frozenset[str]], None]


class Reload:
    """The rebuild queue of one folder.

    `prepare` is called on the loop with the old snapshot and the only paths that can have changed since
    (None: any), and takes what it needs of the daemon's state; the job that it returns runs in `executor`; `swap` is called on the loop with the old and the new snapshot.
    """

    def __init__(self, prepare: Prepare, swap: Swap, executor: Executor) -> None:
        self.snapshot: Snapshot | None = None
        self._prepare = prepare
        self._swap = swap
        self._executor = executor
        self._reasons: set[str] = set()
        self._changed: set[str] | None = None  # None: anything may have
        self._task: asyncio.Task[None] | None = None

    def request(self, reason: str, path: str | None = None) -> None:
        """Ask for a rebuild; returns at once. `path` is the one file that changed, None: look at everything."""
        self._changed = self._changed | {path} if self._changed is not None and path is not None else None
        self._reasons.add(reason)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def settled(self) -> None:
        """Wait until the snapshot holds everything that was requested before this call."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def cancel(self) -> None:
        """Forget what was requested; a rebuild under way is not swapped in."""
        self._reasons.clear()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._reasons:
                reasons = frozenset(self._reasons)
                self._reasons.clear()
                changed = None if self._changed is None else frozenset(self._changed)
                self._changed = set()
                old = self.snapshot
                try:
                    new = await loop.run_in_executor(self._executor, self._prepare(old, changed))
                    self.snapshot = new
                    self._swap(old, new, reasons)
                except Exception:  # a bug in one rebuild must not end the folder
                    self._changed = None
                    logger.exception("rebuilding a folder failed; its last state stays")
        finally:
            self._task = None
