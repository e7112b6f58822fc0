"""Poll paths for changes on disk, if directories cannot be watched.

1. A poll compares a stamp of each path with the previous one: type, device, inode, size and times. A path
   that ends with a separator stands for every entry of that directory.
2. A second change within one tick of the file system's clock leaves the stamp unchanged. So a path that
   changed less than `SETTLED_NS` before a poll is reported once more when it has settled.
3. The cost is bounded: the poller rests a multiple of the time that a poll took, so more paths or a slower
   disk mean fewer polls. It rests at most a minute, so every change is noticed.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Executor
from functools import partial

from nexus_context.disk.files import SETTLED_NS

logger = logging.getLogger(__name__)

POLL_S = 1.0  # least pause between two polls
REST = 50  # rest, as a multiple of the time a poll took; 2 % of one thread
MOST_S = 60.0  # longest pause between two polls, however long they take
LATE_S = 10.0  # a poll that takes longer hangs, as on a network file system whose server is gone

Stamp = tuple[object, ...]
Names = dict[str, Stamp]  # the entries of a directory


class Poller:
    """Polls paths. Use it on the event loop; it reads the disk in `executor`.

    It calls `changed` on the event loop with the paths that differ from the previous poll. Between two polls
    it pauses for at least `least_s` seconds and for `rest` times the duration of a poll.
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
        self._looking: float | None = None  # when the poll under way began (time.time())
        self.pause_s = self._least_s
        """Seconds between two polls."""

    @property
    def paths(self) -> Collection[str]:
        """The paths that are polled."""
        return self._stamps.keys()

    @property
    def hanging_since(self) -> float | None:
        """The time (`time.time()`) when the poll that hangs began. None if no poll hangs."""
        late = self._looking is not None and time.time() - self._looking > LATE_S
        return self._looking if late else None

    async def take(self, paths: Collection[str]) -> None:
        """Poll only these paths from now on. Every change after the return is noticed."""
        added = [path for path in paths if path not in self._stamps]
        stamps = {path: stamp for path, stamp in self._stamps.items() if path in paths}
        self._stamps = stamps
        if added:
            loop = asyncio.get_running_loop()
            stamps |= await loop.run_in_executor(self._executor, partial(read_stamps, added))
        if stamps and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop polling, without waiting for a poll that hangs."""
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
                except Exception:  # a bug must not end the polling
                    logger.exception("polling files failed; trying again")
        finally:
            self._task = None

    async def look(self) -> None:
        """Compare all paths with the previous poll, and report those that changed."""
        previous_stamps, started = dict(self._stamps), time.monotonic()
        self._looking = time.time()
        try:
            work = partial(read_stamps, tuple(previous_stamps))
            current_stamps = await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._looking = None
        self.pause_s = max(self._least_s, min(self._rest * (time.monotonic() - started), MOST_S))
        changed: set[str] = set()
        for path, stamp in current_stamps.items():
            previous_stamp = previous_stamps[path]
            if self._stamps.get(path) is previous_stamp:  # else `take` dropped or replaced it meanwhile
                self._stamps[path] = stamp
                changed |= _changes(path, previous_stamp, stamp)
        if changed:
            try:
                self._changed(changed)
            except Exception:  # a bug of a listener must not end the polling
                logger.exception("handling a change on disk failed")


def _changes(path: str, previous: Stamp | Names, current: Stamp | Names) -> set[str]:
    if previous == current:
        return set()
    if isinstance(previous, dict) and isinstance(current, dict):
        names = previous.keys() | current.keys()
        return {path + name for name in names if previous.get(name) != current.get(name)}
    return {path}


def read_stamps(paths: Iterable[str]) -> dict[str, Stamp | Names]:
    """Return the current stamps of the paths. Never raises, whatever the paths are."""
    return {path: _names(path) if path.endswith(os.sep) else read_stamp(path) for path in paths}


def _names(directory: str) -> Stamp | Names:
    try:
        with os.scandir(directory) as entries:
            return {entry.name: read_stamp(entry.path) for entry in entries}
    except (OSError, ValueError) as error:
        return (repr(error),)


def read_stamp(path: str) -> Stamp:
    """Return the current stamp of a path. Equal stamps mean that nothing changed, once it has settled."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return (repr(error),)
    times = status.st_mtime_ns, status.st_ctime_ns
    settled = time.time_ns() - max(times) > SETTLED_NS
    return status.st_mode, status.st_dev, status.st_ino, status.st_size, *times, settled
