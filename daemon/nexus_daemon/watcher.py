"""One file watcher for all folders: what changed on disk → which paths to look at again.

1. Directories are watched, not files: an atomic save replaces the file that a watch would hold.
2. Only directories where configuration can live, each for itself and not what is below it. One that does
   not exist yet is covered by the nearest directory above it that does.
3. A directory that is deleted and made again is another one to the kernel, often with the old inode: when
   a watched one comes or goes, or the set of them differs by device and inode, all are watched anew.
4. Whatever happens between two watches is found by looking once more at everything after the switch.
5. One watcher for all folders: the kernel's instances are few (128 on a usual Linux).
6. What cannot be watched is tried again, less and less often; only the first failure is a warning.
"""

import asyncio
import logging
import os
import stat
from collections.abc import AsyncGenerator, Callable, Iterable
from concurrent.futures import Executor
from typing import Any

logger = logging.getLogger(__name__)

STEP_MS = 20
DEBOUNCE_MS = 80
CHECK_MS = 5_000
RETRY_S = 1.0  # doubled after each failure
RETRY_AT_MOST_S = 60.0

MODIFIED = 2  # of watchfiles.Change, which is imported late
Identity = tuple[str, int, int]


class Watcher:
    """Watches directories for all folders. Lives on the event loop; the disk is looked at in `executor`.

    `wanted` gives every path, existing or not, that matters now; `changed` is called on the loop with the
    paths that moved, or with None when anything may have.
    """

    def __init__(
        self,
        wanted: Callable[[], Iterable[str]],
        changed: Callable[[set[str] | None], None],
        executor: Executor,
    ) -> None:
        self._wanted = wanted
        self._changed = changed
        self._executor = executor
        self._task: asyncio.Task[None] | None = None
        self._comparing: asyncio.Task[None] | None = None
        self._again = False
        self._failures = 0
        self._stop = asyncio.Event()
        self._watched: frozenset[Identity] = frozenset()

    def start(self) -> None:
        """Begin watching; later calls do nothing."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def refresh(self) -> None:
        """The wanted paths may have changed: watch anew if their directories differ from the watched ones."""
        self._again = True
        if self._task is not None and self._comparing is None:
            self._comparing = asyncio.get_running_loop().create_task(self._compare())

    async def close(self) -> None:
        """End watching and wait for it."""
        self._stop.set()
        tasks = [task for task in (self._task, self._comparing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._watch()
            except Exception as error:  # noqa: BLE001 - a file system that cannot be watched must not end the daemon
                level = logging.DEBUG if self._failures else logging.WARNING
                wait = min(RETRY_S * 2**self._failures, RETRY_AT_MOST_S)
                self._failures = min(self._failures + 1, 30)
                logger.log(level, "watching files failed (%r); trying again and again", error)
                await asyncio.sleep(wait)

    async def _watch(self) -> None:
        self._stop = stop = asyncio.Event()
        self._watched = await self._directories()
        if not self._watched:
            await stop.wait()
            return
        loop = asyncio.get_running_loop()
        awatch = await loop.run_in_executor(self._executor, _import_awatch)
        events = awatch(
            *(path for path, _, _ in self._watched),
            watch_filter=None,
            step=STEP_MS,
            debounce=DEBOUNCE_MS,
            rust_timeout=CHECK_MS,
            yield_on_timeout=True,
            stop_event=stop,
            recursive=False,
            ignore_permission_denied=True,
        )
        names = {path for path, _, _ in self._watched}
        batch = asyncio.ensure_future(anext(events, None))
        try:
            await asyncio.sleep(0)  # the watch stands as soon as the generator has begun
            self._tell(None)
            self.refresh()  # what is wanted may have changed while the directories were looked up
            while (changes := await batch) is not None:
                self._failures = 0
                batch = asyncio.ensure_future(anext(events, None))
                if changes:
                    self._tell({path for _, path in changes})
                if any(kind != MODIFIED and path in names for kind, path in changes):
                    stop.set()  # perhaps another directory under the old name, with the old inode
                self.refresh()
        finally:
            await _end(events, batch, stop)

    def _tell(self, paths: set[str] | None) -> None:
        try:
            self._changed(paths)
        except Exception:  # a bug of a listener must not end the watch
            logger.exception("what follows from a change on disk failed")

    async def _compare(self) -> None:
        try:
            while self._again:
                self._again = False
                if await self._directories() != self._watched:
                    self._stop.set()
        except Exception:  # the next change asks again
            logger.debug("looking up the watched directories failed", exc_info=True)
        finally:
            self._comparing = None

    async def _directories(self) -> frozenset[Identity]:
        wanted = tuple(self._wanted())
        return await asyncio.get_running_loop().run_in_executor(self._executor, directories, wanted)


def _import_awatch() -> Any:
    from watchfiles import awatch  # 60 ms that neither the first diagnostics nor the loop must wait for

    return awatch


async def _end(events: AsyncGenerator[Any, None], batch: asyncio.Future[Any], stop: asyncio.Event) -> None:
    """End a watch and its thread, also where it was left by an exception."""
    stop.set()
    batch.cancel()
    await asyncio.wait([batch])
    if not batch.cancelled():
        batch.exception()  # looked at, else asyncio complains
    await events.aclose()


def directories(paths: Iterable[str]) -> frozenset[Identity]:
    """The directories to watch for `paths`: each one's own, else the nearest above it that exists.

    A path that ends with a separator stands for whatever is in that directory.
    """
    found: dict[str, Identity | None] = {}
    for path in paths:
        directory = os.path.dirname(path)
        while True:
            if directory not in found:
                found[directory] = _identity(directory)
            if found[directory] is not None or os.path.dirname(directory) == directory:
                break
            directory = os.path.dirname(directory)
    return frozenset(identity for identity in found.values() if identity is not None)


def _identity(directory: str) -> Identity | None:
    try:
        status = os.stat(directory)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    return directory, status.st_dev, status.st_ino
