"""Which of some paths changed on disk, by looking again and again: for directories that cannot be watched.

1. A look compares a stamp of each path with the one before: type, device, inode, size and times. A path that
   ends with a separator stands for whatever is in that directory.
2. Within a step of the file system's clock a second change leaves the same stamp. So a path that had changed
   less than `SETTLED_NS` before a look is reported once more when it has settled.
3. The cost is bounded: after a look the poller rests a multiple of the time that the look took, so that more
   paths, or a slower disk, are looked at less often. It rests a minute at most: what changed is noticed.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Executor
from functools import partial

from nexus_context.files import SETTLED_NS

logger = logging.getLogger(__name__)

POLL_S = 1.0  # at least, between two looks
REST = 50  # times as long as a look took; 2 % of one thread
MOST_S = 60.0  # between two looks, however long one took
LATE_S = 10.0  # a look that takes longer than this hangs, as on a network file system whose server has gone

Stamp = tuple[object, ...]
Names = dict[str, Stamp]  # what is in a directory


class Poller:
    """Looks at paths again and again. Lives on the event loop; the disk is looked at in `executor`.

    `changed` is called on the loop with the paths that are others than at the look before. Between two looks
    are `least_s` seconds or more, and `rest` times as long as a look takes.
    """

    def __init__(
        self,
        changed: Callable[[set[str]], None],
        executor: Executor,
        *,
        least_s: float | None = None,
        rest: float | None = None,
    ) -> None:
        self._changed = changed
        self._least_s = POLL_S if least_s is None else least_s
        self._rest = REST if rest is None else rest
        self._executor = executor
        self._stamps: dict[str, Stamp | Names] = {}
        self._task: asyncio.Task[None] | None = None
        self._looking: float | None = None  # since when (time.time())
        self.pause_s = self._least_s
        """How long the poller rests between two looks, in seconds."""

    @property
    def paths(self) -> Collection[str]:
        """The paths that are looked at."""
        return self._stamps.keys()

    @property
    def hanging_since(self) -> float | None:
        """When the look that hangs began, by `time.time()`; None while looks come back."""
        late = self._looking is not None and time.time() - self._looking > LATE_S
        return self._looking if late else None

    async def take(self, paths: Collection[str]) -> None:
        """Look at these paths from now on; any change after this returns is noticed."""
        added = [path for path in paths if path not in self._stamps]
        stamps = {path: stamp for path, stamp in self._stamps.items() if path in paths}
        self._stamps = stamps
        if added:
            loop = asyncio.get_running_loop()
            stamps |= await loop.run_in_executor(self._executor, partial(read_stamps, added))
        if stamps and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """End looking; a look that hangs is not waited for."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        try:
            while self._stamps:
                await asyncio.sleep(self.pause_s)
                try:
                    await self.look()
                except Exception:  # a bug must not end the looks
                    logger.exception("looking at files failed; it is tried again")
        finally:
            self._task = None

    async def look(self) -> None:
        """Compare all paths with the look before, and report those that differ."""
        before, started = dict(self._stamps), time.monotonic()
        self._looking = time.time()
        try:
            work = partial(read_stamps, tuple(before))
            now = await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._looking = None
        self.pause_s = max(self._least_s, min(self._rest * (time.monotonic() - started), MOST_S))
        changed: set[str] = set()
        for path, stamp in now.items():
            if self._stamps.get(path) is before[path]:  # else it was let go of meanwhile
                self._stamps[path] = stamp
                changed |= _changes(path, before[path], stamp)
        if changed:
            try:
                self._changed(changed)
            except Exception:  # a bug of a listener must not end the looks
                logger.exception("what follows from a change on disk failed")


def _changes(path: str, before: Stamp | Names, now: Stamp | Names) -> set[str]:
    if before == now:
        return set()
    if isinstance(before, dict) and isinstance(now, dict):
        names = before.keys() | now.keys()
        return {path + name for name in names if before.get(name) != now.get(name)}
    return {path}


def read_stamps(paths: Iterable[str]) -> dict[str, Stamp | Names]:
    """What the paths are like now; nothing that they may be raises."""
    return {path: _names(path) if path.endswith(os.sep) else read_stamp(path) for path in paths}


def _names(directory: str) -> Stamp | Names:
    try:
        with os.scandir(directory) as entries:
            return {entry.name: read_stamp(entry.path) for entry in entries}
    except (OSError, ValueError) as error:
        return (repr(error),)


def read_stamp(path: str) -> Stamp:
    """What a path is like now; equal stamps mean that nothing changed, once it is settled."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return (repr(error),)
    times = status.st_mtime_ns, status.st_ctime_ns
    settled = time.time_ns() - max(times) > SETTLED_NS
    return status.st_mode, status.st_dev, status.st_ino, status.st_size, *times, settled
