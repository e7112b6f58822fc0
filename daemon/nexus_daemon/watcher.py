"""One file watcher for all folders: what changed on disk → which paths to look at again.

1. Directories are watched, not files: an atomic save replaces the file that a watch would hold.
2. Only directories where configuration can live, each for itself and not what is below it. One that does
   not exist yet is covered by the nearest directory above it that does.
3. A directory that is deleted and made again is another one to the kernel, often with the old inode: when
   a watched one comes or goes, or the set of them differs by device and inode, all are watched anew.
4. The new watch stands before the old one ends, and the old one is given the turns to say what it has seen,
   however long other threads make it wait. So not everything is looked at again: only what is covered by
   another directory than before, and texts that changed shortly before somebody wanted them.
5. One watcher for all folders: the kernel's instances are few (128 on a usual Linux).
6. What cannot be watched is tried again, less and less often; only the first failure is a warning.
"""

import asyncio
import logging
import os
import stat
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

logger = logging.getLogger(__name__)

STEP_MS = 20
DEBOUNCE_MS = 80
CHECK_MS = 5_000
RECENT_S = 10.0  # longer than from reading a file to wanting it
LAST_STEPS = 9  # of a watch that is about to end: longer than what has been seen waits to be told
WATCHES_AT_MOST = 4  # at a time: one and those that are about to end
END_S = 1.0
RETRY_S = 1.0  # doubled after each failure
RETRY_AT_MOST_S = 60.0

MODIFIED = 2  # of watchfiles.Change, which is imported late
Identity = tuple[str, int, int]
Covering = Mapping[str, Identity]


class Watcher:
    """Watches directories for all folders. Lives on the event loop; the disk is looked at in `executor`.

    `wanted` gives every path, existing or not, that matters now; `changed` is called on the loop with the
    paths that may have changed, or with None when anything may have. `reread` is called with paths that were
    not wanted when they changed, in directories that were watched: of these only the text can be another.
    """

    def __init__(
        self,
        wanted: Callable[[], Iterable[str]],
        changed: Callable[[set[str] | None], None],
        executor: Executor,
        *,
        reread: Callable[[set[str]], None],
    ) -> None:
        self._wanted = wanted
        self._changed = changed
        self._reread = reread
        self._executor = executor
        self._task: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()
        self._failures = 0
        self._recent: dict[str, float] = {}  # when paths changed lately, and something in directories
        self._moved: set[str] = set()  # watched directories that came or went
        self._covering: Covering = {}  # as it is watched
        self._watch: _Watch | None = None
        self._watches: dict[asyncio.Task[None], _Watch] = {}  # the oldest first

    def start(self) -> None:
        """Begin watching; later calls do nothing."""
        if self._task is None:
            self._asked.set()
            self._task = asyncio.get_running_loop().create_task(self._run())

    def refresh(self) -> None:
        """The wanted paths may have changed: look at those that are new, and watch their directories."""
        self._asked.set()

    async def close(self) -> None:
        """End watching and wait for it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for watch in self._watches.values():
            watch.stop.set()
        if self._watches:
            _, late = await asyncio.wait(self._watches, timeout=END_S)
            for task in late:
                task.cancel()

    async def _run(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            try:
                await self._renew()
            except _NotBegunError:  # why was said
                continue
            except Exception as error:  # noqa: BLE001 - a file system that cannot be watched must not end the daemon
                self._failed(error)

    async def _renew(self) -> None:
        """Watch what is wanted now, and tell of what was not watched as it is now."""
        moved, self._moved = self._moved, set()
        try:
            wanted = tuple(self._wanted())
            look = partial(_looked, wanted, self._covering, self._watch, moved)
            look_up = asyncio.get_running_loop().run_in_executor
            covering, unseen, added = await look_up(self._executor, look)
            directories = frozenset(covering.values())
            watch = self._watch
            stood = watch is not None and not moved and directories == watch.directories
            if not stood:
                stood = await self._begin(directories)
        except BaseException:
            self._moved |= moved
            raise
        self._covering = covering
        if covering and (unseen or not stood):
            self._tell(self._changed, unseen if stood else None)
        if stood and (late := added & self._recent.keys()):
            self._tell(self._reread, late)

    async def _begin(self, directories: frozenset[Identity]) -> bool:
        """Watch these directories; whether there was a watch until now, which goes on for a while."""
        loop = asyncio.get_running_loop()
        while len(self._watches) >= WATCHES_AT_MOST:
            await asyncio.wait([next(iter(self._watches))])
        awatch = await loop.run_in_executor(self._executor, _import_awatch)
        before, self._watch = self._watch, None
        if directories:
            self._watch = watch = _Watch(awatch, directories)
            task = loop.create_task(self._follow(watch))
            self._watches[task] = watch
            task.add_done_callback(self._watches.pop)
            await asyncio.sleep(0)  # it stands as soon as its generator has begun
            if task.done() and before is not None:  # it does not; what is watched stays so
                self._watch = before
                raise _NotBegunError
        if before is not None:
            before.stop.soon()
        return before is not None

    async def _follow(self, watch: "_Watch") -> None:
        """Tell what a watch sees, until it ends."""
        names = {path for path, _, _ in watch.directories}
        try:
            async for changes in watch.events:
                if not watch.proven:
                    watch.proven, self._failures = True, 0
                if changes:
                    self._note(path for _, path in changes)
                    self._tell(self._changed, {path for _, path in changes})
                # perhaps another directory under the old name, with the old inode
                self._moved |= {path for kind, path in changes if kind != MODIFIED and path in names}
                self.refresh()
        except Exception as error:  # noqa: BLE001 - as above
            if watch is self._watch:
                self._watch = None
            else:  # what it has seen last is not known
                self._tell(self._changed, None)
            self._failed(error)

    def _note(self, paths: Iterable[str]) -> None:
        now = asyncio.get_running_loop().time()
        for path in paths:
            for one in (path, os.path.join(os.path.dirname(path), "")):
                self._recent.pop(one, None)  # the oldest stand first
                self._recent[one] = now
        while self._recent and now - next(iter(self._recent.values())) > RECENT_S:
            del self._recent[next(iter(self._recent))]

    def _failed(self, error: Exception) -> None:
        level = logging.DEBUG if self._failures else logging.WARNING
        wait = min(RETRY_S * 2**self._failures, RETRY_AT_MOST_S)
        self._failures = min(self._failures + 1, 30)
        logger.log(level, "watching files failed (%r); trying again and again", error)
        asyncio.get_running_loop().call_later(wait, self.refresh)

    def _tell(self, listener: Callable[[Any], None], paths: set[str] | None) -> None:
        try:
            listener(paths)
        except Exception:  # a bug of a listener must not end the watch
            logger.exception("what follows from a change on disk failed")


class _NotBegunError(Exception):
    """A new watch failed in its first step; the old one goes on."""


class _Stop:
    """The end of a watch, for which its thread asks once a step."""

    def __init__(self) -> None:
        self._left: int | None = None

    def set(self) -> None:
        """End it now; what it has not told is lost."""
        self._left = 0

    def soon(self) -> None:
        """End it when it has told what it has seen."""
        self._left = LAST_STEPS if self._left is None else self._left

    def is_set(self) -> bool:
        if self._left:
            self._left -= 1
            return False
        return self._left == 0


class _Watch:
    """One watch of a set of directories."""

    def __init__(self, awatch: Any, directories: frozenset[Identity]) -> None:
        self.directories = directories
        self.proven = False  # whether it has worked for a while
        self.stop = _Stop()
        self.events: AsyncGenerator[Collection[tuple[int, str]], None] = awatch(
            *(path for path, _, _ in directories),
            watch_filter=None,
            step=STEP_MS,
            debounce=DEBOUNCE_MS,
            rust_timeout=CHECK_MS,
            yield_on_timeout=True,
            stop_event=self.stop,
            recursive=False,
            ignore_permission_denied=True,
        )


def _import_awatch() -> Any:
    from watchfiles import awatch  # 60 ms that neither the first diagnostics nor the loop must wait for

    return awatch


def _looked(
    paths: Collection[str], before: Covering, watch: _Watch | None, moved: Collection[str]
) -> tuple[dict[str, Identity], set[str], set[str]]:
    """What covers the paths, those of them that may have changed unseen, and those that are new otherwise.

    Unseen is what happened where a directory was not watched, or is in, or is, one that has `moved`.
    """
    now = covering(paths)
    news = {path: directory for path, directory in now.items() if before.get(path) != directory}
    watched = frozenset[Identity]() if watch is None else watch.directories
    added = {path for path, directory in news.items() if path not in before and directory in watched}
    unseen = news.keys() - added
    for gone in moved:
        below = gone.rstrip(os.sep) + os.sep
        unseen |= {path for path, (at, _, _) in now.items() if at == gone or at.startswith(below)}
    return now, unseen, added - unseen


def covering(paths: Iterable[str]) -> dict[str, Identity]:
    """The directory to watch for each path: its own, else the nearest above it that exists.

    A path that ends with a separator stands for whatever is in that directory.
    """
    found: dict[str, Identity | None] = {}
    covered: dict[str, Identity] = {}
    for path in paths:
        directory = os.path.dirname(path)
        while True:
            if directory not in found:
                found[directory] = _identity(directory)
            identity = found[directory]
            if identity is not None or os.path.dirname(directory) == directory:
                break
            directory = os.path.dirname(directory)
        if identity is not None:
            covered[path] = identity
    return covered


def _identity(directory: str) -> Identity | None:
    try:
        status = os.stat(directory)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    return directory, status.st_dev, status.st_ino
