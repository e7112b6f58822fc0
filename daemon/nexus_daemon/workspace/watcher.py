"""One file watcher for all folders: changes on disk → paths to check again.

1. It watches directories, not files: an atomic save replaces the file that a watch would hold.
2. It watches only directories that can hold configuration, and does not recurse. The nearest existing
   ancestor covers a directory that does not exist yet.
3. To the kernel, a directory that is deleted and created again is a new one, often with the old inode. When a
   watched directory appears or disappears, or the set of device and inode pairs changes, everything is
   watched anew.
4. The new watch starts before the old one ends, and the old one gets enough turns to report what it has seen,
   however long other threads delay it. So only two kinds of paths are checked again: those that another
   directory covers now, and texts that changed shortly before somebody needed them.
5. All folders share one watcher because the kernel has few instances (128 on a typical Linux).
6. What cannot be watched is polled (`polling`). Watching is retried at growing intervals; only the first
   failure is a warning. A watch gets all its directories or fails: at the system's limit, the previous watch
   stays and the rest is polled. Network file systems are both watched and polled.
7. A system can lose reports, and some file systems that report too little are not on our list. So watched
   paths are also checked now and then: an unreported change is noticed within about a minute.
8. `Watcher.freshness` says at any time how reliably changes are noticed (`Freshness`).
"""

import asyncio
import contextlib
import logging
import os
import stat
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from nexus_context.layers.walk import within
from nexus_daemon import lazy
from nexus_daemon.workspace.polling import Poller
from nexus_daemon.workspace.watch_limits import Failure, explain, network_devices, unlisted

logger = logging.getLogger(__name__)

STEP_MS = 20
DEBOUNCE_MS = 80
CHECK_MS = 5_000
RECENT_S = 10.0  # longer than the time between reading a file and adding it to the paths
LAST_STEPS = 9  # steps of a watch that is about to end: enough to report what it has seen
WATCHES_AT_MOST = 4  # at a time: the current one and those that are about to end
END_S = 1.0
VERIFY_S = 30.0  # between two checks of watched paths
VERIFY_REST = 500  # rest, as a multiple of the time a check took; 0.2 % of one thread
RETRY_S = 1.0  # doubled after each failure
RETRY_AT_MOST_S = 60.0

MODIFIED = 2  # of watchfiles.Change, which is imported late
Identity = tuple[str, int, int]
Covering = Mapping[str, Identity]
State = Literal["watched", "polled", "unknown"]
_STATES: tuple[State, ...] = ("watched", "polled", "unknown")  # from most to least certain


class Freshness(msgspec.Struct, frozen=True):
    """How changes of a set of files are noticed; the least certain file counts.

    `watched`: the system reports changes. `polled`: Nexus checks every `every` seconds. `unknown`: changes
    after `since` (`time.time()`) may be unnoticed. `reasons` are clauses that say why files are not watched.
    """

    state: State
    since: float | None = None
    every: float | None = None
    reasons: tuple[str, ...] = ()


def least_certain(several: Iterable[Freshness]) -> Freshness:
    """Combine the freshness of several sets of files into one."""
    ordered = sorted(several, key=lambda one: _STATES.index(one.state), reverse=True)
    if not ordered:
        return Freshness("watched")
    return Freshness(
        state=ordered[0].state,
        since=min((one.since for one in ordered if one.since is not None), default=None),
        every=max((one.every for one in ordered if one.every is not None), default=None),
        reasons=tuple(dict.fromkeys(reason for one in ordered for reason in one.reasons)),
    )


class Watcher:
    """Watches directories for all folders. Lives on the event loop; reads the disk in `executor`.

    `list_paths` returns every path, existing or not, that matters now. The watcher calls `changed` on the
    loop with the paths that may have changed, or with None if any path may have. It calls `reread` with paths
    in watched directories that changed before `list_paths` had them: only their text can differ. It calls
    `report` when `failure` is set or cleared.
    """

    def __init__(
        self,
        list_paths: Callable[[], Iterable[str]],
        changed: Callable[[set[str] | None], None],
        executor: Executor,
        *,
        reread: Callable[[set[str]], None],
        report: Callable[[], None] = lambda: None,
    ) -> None:
        self._list_paths = list_paths
        self._changed = changed
        self._reread = reread
        self._report = report
        self._executor = executor
        self._task: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()
        self._poller = Poller(self._poll_changed, executor)
        self._verifier = Poller(self._poll_changed, executor, least_s=VERIFY_S, rest=VERIFY_REST)
        self.failure: Failure | None = None
        """Why the last watch failed, until a watch has worked for a while."""
        self._failures = 0
        self._retry_at = 0.0  # by the loop's clock
        self._recent: dict[str, float] = {}  # recently changed paths and directories, and when they changed
        self._moved: dict[str, float] = {}  # watched directories that appeared or disappeared: `time.time()`
        self._look = _Look({}, {}, frozenset())  # what is watched or polled now
        self._logged: set[Failure] = set()
        self._listed_at = time.time()  # when `list_paths` was last called
        self._waiting: dict[str, float] = {}  # paths that no directory covers yet, and since when
        self._watch: _Watch | None = None
        self._unproven: _Watch | None = None  # the newest watch, until it has worked for a while
        self._watches: dict[asyncio.Task[None], _Watch] = {}  # oldest first

    def start(self) -> None:
        """Begin watching; later calls do nothing."""
        if self._task is None:
            self._asked.set()
            self._task = asyncio.get_running_loop().create_task(self._run())

    def refresh(self) -> None:
        """List the paths again, check the new ones, and watch their directories."""
        self._asked.set()

    def freshness(self, paths: Iterable[str]) -> Freshness:
        """How changes of these paths are noticed now."""
        since: list[float] = []
        reasons: dict[str, None] = {}
        polled, hanging_since = self._poller.paths, self._poller.hanging_since
        polls = False
        for path in paths:
            directory = self._look.covering.get(path)
            if path in polled:
                polls = True
                failure = self.failure
                if directory is not None:
                    failure = self._look.unwatchable.get(directory, failure)
                if failure is not None:
                    reasons[failure.reason] = None
            elif directory is None or self._watch is None or directory not in self._watch.directories:
                since.append(self._waiting.get(path, self._listed_at))
            else:
                since += [at for gone, at in self._moved.items() if within(directory[0], gone)]
        if polls and hanging_since is not None:
            since.append(hanging_since)
            reasons["reading the files hangs, as on a network file system whose server is gone"] = None
        if since:
            return Freshness("unknown", since=min(since), reasons=tuple(reasons))
        if polls:
            return Freshness("polled", every=self._poller.pause_s, reasons=tuple(reasons))
        return Freshness("watched")

    @property
    def watched(self) -> tuple[frozenset[str], ...]:
        """The directories of each watch that has not ended: the oldest watch first, the one in force last."""
        return tuple(frozenset(path for path, *_ in each.directories) for each in self._watches.values())

    async def close(self) -> None:
        """Stop watching and wait until it has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._poller.close()
        await self._verifier.close()
        for watch in self._watches.values():
            watch.stop.set()
        if self._watches:
            _, late = await asyncio.wait(self._watches, timeout=END_S)
            for task in late:
                task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            pause = max(self._retry_at - loop.time(), 0.0) or CHECK_MS / 1000
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(pause, CHECK_MS / 1000)):
                    await self._asked.wait()
            self._asked.clear()
            try:
                await self._renew()
            except Exception as error:  # noqa: BLE001 - a file system that cannot be watched must not end the daemon
                self._failed(error)

    async def _renew(self) -> None:
        """Watch or poll the current paths, and report those that were covered differently before."""
        moved, before = dict(self._moved), self._look
        paths, self._listed_at = tuple(self._list_paths()), time.time()
        new = (path for path in paths if path not in before.covering)
        self._waiting = {path: self._waiting.get(path, self._listed_at) for path in new}
        look = await asyncio.get_running_loop().run_in_executor(self._executor, partial(_look, paths))
        old = self._watch
        watched_before = frozenset[Identity]() if old is None else old.directories
        directories = frozenset(look.covering.values()) - look.unlisted
        if old is None or moved or directories != old.directories:
            began = await self._begin(directories)
            if not began and self._watch is not None:
                self._watch.forget(moved)
        watched = frozenset[Identity]() if self._watch is None else self._watch.directories
        polled = {path for path in paths if look.is_polled(path, watched)}
        others = polled ^ set(self._poller.paths)
        await self._poller.take(polled)
        await self._verifier.take(set(paths) - polled)
        news = {path for path, directory in look.covering.items() if before.covering.get(path) != directory}
        added = {
            path for path in news if path not in before.covering and look.covering[path] in watched_before
        }
        added -= polled
        unseen = (news | others & set(paths)) - added
        unseen |= {path for path, at in look.covering.items() if any(within(at[0], gone) for gone in moved)}
        self._look, self._waiting = look, {}
        for failure in set(look.unwatchable.values()) - self._logged:
            self._logged.add(failure)
            logger.warning("%s; files there are polled", failure.reason)
        self._moved = {gone: at for gone, at in self._moved.items() if moved.get(gone) != at}
        if old is None and self._watch is not None:
            self._tell(self._changed, None)
            return
        if unseen:
            self._tell(self._changed, unseen)
        if late := (added - unseen) & self._recent.keys():
            self._tell(self._reread, late)

    async def _begin(self, directories: frozenset[Identity]) -> bool:
        """Watch these directories. False if that fails or just failed; the previous watch continues then."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._retry_at:
            return False
        while len(self._watches) >= WATCHES_AT_MOST:
            await asyncio.wait([next(iter(self._watches))])
        awatch = await loop.run_in_executor(self._executor, _import_awatch)
        before, self._watch = self._watch, None
        if directories:
            self._watch = self._unproven = watch = _Watch(awatch, directories)
            task = loop.create_task(self._follow(watch))
            self._watches[task] = watch
            task.add_done_callback(self._watches.pop)
            await asyncio.sleep(0)  # the watch is in place as soon as its generator has started
            if task.done():
                self._watch = before
                return False
        if before is not None:
            before.stop.soon()
        return True

    async def _follow(self, watch: "_Watch") -> None:
        """Report what a watch sees until it ends."""
        names = {path for path, _, _ in watch.directories}
        try:
            async for changes in watch.events:
                if watch is self._unproven:
                    self._proved()
                if changes:
                    self._note(path for _, path in changes)
                    self._tell(self._changed, {path for _, path in changes})
                # perhaps a new directory with the old name and the old inode
                moved = (path for kind, path in changes if kind != MODIFIED and path in names)
                self._moved |= dict.fromkeys(moved, time.time())
                self.refresh()
        except Exception as error:  # noqa: BLE001 - as above
            if watch is self._watch:
                self._watch = None
            else:  # its last events are lost
                self._tell(self._changed, None)
            self._failed(error)
            self.refresh()

    def _note(self, paths: Iterable[str]) -> None:
        now = asyncio.get_running_loop().time()
        for path in paths:
            for one in (path, os.path.join(os.path.dirname(path), "")):
                self._recent.pop(one, None)  # keeps the oldest first
                self._recent[one] = now
        while self._recent and now - next(iter(self._recent.values())) > RECENT_S:
            del self._recent[next(iter(self._recent))]

    def _poll_changed(self, paths: set[str]) -> None:
        self._tell(self._changed, paths)
        self.refresh()

    def _failed(self, error: Exception) -> None:
        """Poll after a failed watch, and schedule the next try after a pause that doubles each time."""
        failure = explain(error)
        vanished = isinstance(error, FileNotFoundError)  # a directory disappeared before its watch started
        level = logging.DEBUG if self._failures or vanished else logging.WARNING
        wait = min(RETRY_S * 2**self._failures, RETRY_AT_MOST_S)
        self._failures = min(self._failures + 1, 30)
        self._unproven, self._retry_at = None, asyncio.get_running_loop().time() + wait
        text = f"watching files failed, polling them until it works: {failure.reason}. {failure.advice}"
        logger.log(level, text.rstrip())
        first = self.failure is None
        if not vanished:
            self.failure = failure
            if first:
                self._report()

    def _proved(self) -> None:
        """Clear earlier failures once a watch has worked for a while."""
        self._unproven, self._failures = None, 0
        if self.failure is not None:
            self.failure = None
            logger.info("files are watched again")
            self._report()

    def _tell(self, listener: Callable[[Any], None], paths: set[str] | None) -> None:
        try:
            listener(paths)
        except Exception:  # a bug of a listener must not end the watch
            logger.exception("handling a change on disk failed")


class _Stop:
    """The end of a watch; its thread checks `is_set` once per step."""

    def __init__(self) -> None:
        self._left: int | None = None

    def set(self) -> None:
        """End the watch now; events that it has not reported are lost."""
        self._left = 0

    def soon(self) -> None:
        """End the watch once it has reported what it has seen."""
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
            ignore_permission_denied=False,  # True would also hide that the system's limit is reached
        )

    def forget(self, moved: Collection[str]) -> None:
        """Drop directories that appeared or disappeared, and those below them."""
        self.directories = frozenset(
            one for one in self.directories if not any(within(one[0], gone) for gone in moved)
        )


def _import_awatch() -> Any:
    """Import `awatch` in a worker thread: the import is too slow for the loop."""
    return lazy.watchfiles.awatch


class _Look(NamedTuple):
    """The directories of the paths as they are now."""

    covering: Covering
    unwatchable: Mapping[Identity, Failure]  # directories that cannot be watched at all or not reliably
    unlisted: frozenset[Identity]  # the ones that cannot be watched at all

    def is_polled(self, path: str, watched: Collection[Identity]) -> bool:
        directory = self.covering.get(path)
        return directory is None or directory not in watched or directory in self.unwatchable


def _look(paths: Collection[str]) -> _Look:
    now = covering(paths)
    directories = frozenset(now.values())
    closed, network = unlisted(path for path, _, _ in directories), network_devices()
    failures = ((one, closed.get(one[0]) or network.get(one[1])) for one in directories)
    return _Look(
        now,
        {directory: failure for directory, failure in failures if failure is not None},
        frozenset(directory for directory in directories if directory[0] in closed),
    )


def covering(paths: Iterable[str]) -> dict[str, Identity]:
    """The directory to watch for each path: its own, else the nearest existing ancestor.

    A path that ends with a separator stands for every entry of that directory.
    """
    identities: dict[str, Identity | None] = {}
    covered: dict[str, Identity] = {}
    for path in paths:
        directory = os.path.dirname(path)
        while True:
            if directory not in identities:
                identities[directory] = _identity(directory)
            identity = identities[directory]
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
