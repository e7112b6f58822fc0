"""Watch files for all folders: changes on disk → paths to check again.

1. It watches directories, not files: an atomic save replaces the file that a watch would hold.
2. It watches only directories that can hold files that matter, and does not recurse. The nearest existing
   ancestor covers a directory that does not exist yet.
3. To the kernel, a directory that is deleted and created again is a new one, often with the old inode. When a
   watched directory appears or disappears, or the set of device and inode pairs changes, everything is
   watched anew.
4. The new watch is in place before the old one ends, and the old one reports what it has seen. So only two
   kinds of paths are checked again: those that another directory covers now, and texts that changed shortly
   before they began to matter.
5. All folders, and all subscribers, share one watcher, because the kernel has few instances (128 on a typical
   Linux). On Linux the old and the new watch share one instance, too (`inotify`).
6. Directories that cannot be watched are polled (`polling`). Watching is retried at growing intervals; only
   the first failure is a warning. A watch gets all its directories or fails: at the system's limit, the
   previous watch stays and the rest is polled. Network file systems are both watched and polled.
7. A system can lose reports, and some file systems that report too little are not on our list. So watched
   paths are also checked now and then: an unreported change is noticed within about a minute.
8. If the system says that it lost reports, or more come than are worth collecting, everything is watched
   anew. Then every path may have changed, which leads to one rescan.
9. `Watcher.freshness` says at any time how reliably changes are noticed (`Freshness`).
10. Network file systems are read only by threads of their own. If one hangs, everything else is watched as
    before.
11. While nothing changes, it costs one `stat` for each directory every CHECK_MS.
"""

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from nexus_context.folder.layers.walk import within
from nexus_daemon import workspace
from nexus_daemon.process import tracing
from nexus_daemon.workspace.polling import Poller
from nexus_daemon.workspace.watch_events import MODIFIED, DirectoryWatch, Watches
from nexus_daemon.workspace.watch_limits import Failure, explain
from nexus_daemon.workspace.watched_places import NOTHING, REMOTE_S, Identity, RemotePlaces, timed_look

logger = logging.getLogger(__name__)

CHECK_MS = 5_000  # between two looks at the directories
CHECK_REST = 1_000  # rest, as a multiple of the time a look took; 0.1 % of one thread
RECENT_S = 10.0  # longer than the time between reading a file and adding it to the paths
MOST_RECENT = 10_000  # changes that are remembered for so long
WATCHES_AT_MOST = 4  # at a time: the current one and those that are about to end
END_S = 1.0
VERIFY_S = 30.0  # between two checks of watched paths
VERIFY_REST = 500  # rest, as a multiple of the time a check took; 0.2 % of one thread
RETRY_S = 1.0  # doubled after each failure
RETRY_AT_MOST_S = 60.0

State = Literal["watched", "polled", "unknown"]


class Freshness(msgspec.Struct, frozen=True):
    """How changes of a set of files are noticed. The least certain file decides.

    `watched` means that the system reports changes. `polled` means that Nexus checks every `every` seconds.
    `unknown` means that changes after `since` (`time.time()`) may be unnoticed. `reasons` are clauses that
    say why files are not watched.
    """

    state: State
    since: float | None = None
    every: float | None = None
    reasons: tuple[str, ...] = ()


class Subscriber(NamedTuple):
    """One kind of paths, and the callbacks when some of them change, which run on the event loop.

    `list_paths` returns every path, existing or not, that matters now. `changed` gets the paths that may have
    changed, perhaps with others than those listed, or None if any path may have. `reread` gets paths in
    watched directories that changed before `list_paths` had them: only their text can differ. Without
    `reread`, `changed` gets every path once when it is watched.
    """

    list_paths: Callable[[], Iterable[str]]
    changed: Callable[[set[str] | None], None]
    reread: Callable[[set[str]], None] | None = None


class Watcher:
    """Watches directories for all folders. Use it on the event loop; it reads the disk in `executor`.

    It calls `report` when `failure` is set or cleared.
    """

    def __init__(
        self, *subscribers: Subscriber, executor: Executor, report: Callable[[], None] = lambda: None
    ) -> None:
        self._subscribers = subscribers
        self._listed = tuple(frozenset[str]() for _ in subscribers)  # the paths of each, as looked at
        self._watches_type: Watches | None = None
        self._report = report
        self._executor = executor
        self._task: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()
        self._poller = Poller(self._poll_changed, executor)
        self._remote_poller = Poller(self._poll_changed, executor)
        self._remote_is_behind = False  # whether it lacks paths
        self._taking: asyncio.Task[None] | None = None  # while the remote poller reads new paths
        self._remote_places = RemotePlaces(executor)
        self._verifier = Poller(self._poll_changed, executor, least_s=VERIFY_S, rest=VERIFY_REST)
        self.failure: Failure | None = None
        """Why the last watch failed, until a watch has worked for a while."""
        self._failures = 0
        self._retry_at = 0.0  # by the loop's clock
        self._recent: dict[str, float] = {}  # recently changed paths and directories, and when they changed
        self._moved: dict[str, float] = {}  # watched directories that appeared or disappeared: `time.time()`
        self._recent_until = 0.0  # while too much changes, everything counts as recently changed
        self._look_s = 0.0  # how long the last look took
        self._lost_events = False  # since the last look
        self._look = NOTHING  # what is watched or polled now
        self._logged: set[Failure] = set()
        self._listed_at = time.time()  # when `list_paths` was last called
        self._waiting: dict[str, float] = {}  # since when paths wait for a look
        self._watch: _Watch | None = None
        self._unproven: _Watch | None = None  # the newest watch, until it has worked for a while
        self._watches: dict[asyncio.Task[None], _Watch] = {}  # oldest first

    def start(self) -> None:
        """Begin watching. Later calls do nothing."""
        if self._task is None:
            self._asked.set()
            self._task = asyncio.get_running_loop().create_task(self._run())

    def refresh(self) -> None:
        """List the paths again, check the new ones, and watch their directories."""
        self._asked.set()

    def freshness(self, paths: Iterable[str]) -> Freshness:
        """Return how changes of these paths are noticed now."""
        since: list[float] = []
        reasons: dict[str, None] = {}
        pollers: set[Poller] = set()
        for path in paths:
            directory = self._look.directory(path)
            poller = next((candidate for candidate in self._pollers if path in candidate.paths), None)
            if poller is not None:
                pollers.add(poller)
                failure = self.failure
                if directory is not None:
                    failure = self._look.unwatchable.get(directory, failure)
                if failure is not None:
                    reasons[failure.reason] = None
            elif directory is None or self._watch is None or directory not in self._watch.directories:
                since.append(self._waiting.get(path, self._listed_at))
            else:
                since += [
                    moved_at
                    for moved_path, moved_at in self._moved.items()
                    if within(directory[0], moved_path)
                ]
        hanging = [poller.hanging_since for poller in pollers if poller.hanging_since is not None]
        if hanging:
            since += hanging
            reasons["reading the files hangs, as on a network file system whose server is gone"] = None
        if since:
            return Freshness("unknown", since=min(since), reasons=tuple(reasons))
        if pollers:
            return Freshness(
                "polled", every=max(poller.pause_s for poller in pollers), reasons=tuple(reasons)
            )
        return Freshness("watched")

    @property
    def _pollers(self) -> tuple[Poller, Poller]:
        return self._poller, self._remote_poller

    @property
    def watched(self) -> tuple[frozenset[str], ...]:
        """Return the directories of each watch that has not ended: the oldest watch first, the one in force
        last.
        """
        return tuple(frozenset(path for path, *_ in watch.directories) for watch in self._watches.values())

    async def close(self) -> None:
        """Stop watching and wait until it has ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._taking is not None:
            self._taking.cancel()
        for poller in self._pollers:
            await poller.close()
        await self._verifier.close()
        for watch in self._watches.values():
            watch.watch.end()
        if self._watches:
            _, late = await asyncio.wait(self._watches, timeout=END_S)
            for task in late:
                task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            check_pause_s = max(CHECK_MS / 1000, min(CHECK_REST * self._look_s, VERIFY_S))
            pause = max(self._retry_at - loop.time(), 0.0) or check_pause_s
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(pause, check_pause_s)):
                    await self._asked.wait()
            self._asked.clear()
            try:
                await self._renew()
            except Exception as error:  # noqa: BLE001 - a file system that cannot be watched must not end the daemon
                self._failed(error)

    async def _renew(self) -> None:
        """Watch or poll the current paths, and report those that were covered differently before."""
        moved, previous_look, previous_listed, previous_watch = (
            dict(self._moved),
            self._look,
            self._listed,
            self._watch,
        )
        listed = tuple(frozenset(subscriber.list_paths()) for subscriber in self._subscribers)
        paths, self._listed_at = frozenset[str]().union(*listed), time.time()
        new_paths = paths if paths != previous_look.paths else ()
        self._waiting = {path: self._waiting.get(path, self._listed_at) for path in new_paths}
        loop = asyncio.get_running_loop()
        look_at = partial(timed_look, paths, previous_look, self._remote_places)
        look, self._look_s = await loop.run_in_executor(self._executor, look_at)
        watched_before = frozenset[Identity]() if previous_watch is None else previous_watch.directories
        directories = frozenset(look.places.values()) - look.unlisted
        is_same = look is previous_look and listed == previous_listed and not moved
        is_same &= not self._lost_events and not self._remote_is_behind
        if is_same and directories == watched_before and self._watch is previous_watch and not self._waiting:
            return
        lost_events, self._lost_events = self._lost_events, False
        if previous_watch is None or moved or lost_events or directories != previous_watch.directories:
            began = await self._begin(directories)
            if not began and self._watch is not None:
                self._watch.forget((os.sep,) if lost_events else moved)
        watched = frozenset[Identity]() if self._watch is None else self._watch.directories
        polled = {path for path in paths if look.is_polled(path, watched)}
        switched_paths = polled ^ {path for poller in self._pollers for path in poller.paths}
        remote = {path for path in polled if look.is_remote(path)}
        await self._poller.take(polled - remote)
        await self._take_remote(remote)
        await self._verifier.take(paths - polled)
        self._look, self._listed, self._waiting = look, listed, {}
        for failure in set(look.unwatchable.values()) - self._logged:
            self._logged.add(failure)
            logger.warning("%s; files there are polled", failure.reason)
        self._moved = {
            moved_path: moved_at
            for moved_path, moved_at in self._moved.items()
            if moved.get(moved_path) != moved_at
        }
        everything = lost_events or (previous_watch is None and self._watch is not None)
        for subscriber, now, then in zip(self._subscribers, listed, previous_listed, strict=True):
            if everything:
                self._tell(subscriber.changed, None)
                continue
            new_coverage = {
                path
                for path in now
                if path not in then or previous_look.directory(path) != look.directory(path)
            }
            added = {
                path for path in new_coverage if path not in then and look.directory(path) in watched_before
            }
            added -= polled
            unseen = (new_coverage | switched_paths & now) - added
            unseen |= {path for path in now if moved and _is_within(look.directory(path), moved)}
            self._tell_news(subscriber, unseen, added - unseen)

    async def _take_remote(self, paths: set[str]) -> None:
        """Poll paths on network file systems, without waiting for one that hangs."""
        self._remote_is_behind = self._taking is not None  # then the next look tries again
        if self._remote_is_behind or paths == set(self._remote_poller.paths):
            return

        async def take() -> None:
            await self._remote_poller.take(paths)
            self._taking = None
            if self._remote_is_behind:
                self.refresh()

        taking = self._taking = asyncio.get_running_loop().create_task(take())
        await asyncio.wait([taking], timeout=REMOTE_S)
        if not taking.done():  # what changes until then is not noticed
            taking.add_done_callback(lambda done: None if done.cancelled() else self._poll_changed(paths))

    def _tell_news(self, subscriber: Subscriber, unseen: set[str], added: set[str]) -> None:
        """Report paths that were not watched, and paths that were, but that the subscriber did not list."""
        if subscriber.reread is None:
            unseen |= added
        if unseen:
            self._tell(subscriber.changed, unseen)
        everything = asyncio.get_running_loop().time() < self._recent_until
        late = added if everything else added & self._recent.keys()
        if late and subscriber.reread is not None:
            self._tell(subscriber.reread, late)

    async def _begin(self, directories: frozenset[Identity]) -> bool:
        """Watch these directories. False if that fails or just failed; the previous watch continues then."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._retry_at:
            return False
        while len(self._watches) >= WATCHES_AT_MOST:
            await asyncio.wait([next(iter(self._watches))])
        previous_watch, self._watch = self._watch, None
        if directories:
            try:
                watch_handle = await self._opened([path for path, _, _ in directories])
            except Exception as error:  # noqa: BLE001 - as above
                self._watch = previous_watch
                self._failed(error)
                return False
            self._watch = self._unproven = watch = _Watch(watch_handle, directories)
            task = loop.create_task(self._follow(watch))
            self._watches[task] = watch
            task.add_done_callback(self._watches.pop)
            await asyncio.sleep(0)  # a portable watch is in place as soon as its generator has started
            if task.done():
                self._watch = previous_watch
                return False
        if previous_watch is not None:
            previous_watch.watch.end_soon()
        return True

    async def _opened(self, directories: list[str]) -> DirectoryWatch:
        """Watch directories. If that is cancelled meanwhile, the watch ends as soon as it is there."""
        opening = self._executor.submit(self._open, directories)
        try:
            return await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_end_opened)
            raise

    def _open(self, directories: Iterable[str]) -> DirectoryWatch:
        """Watch directories; in a thread, one call at a time."""
        if self._watches_type is None:
            self._watches_type = new_watches()
        return self._watches_type.open(directories)

    async def _follow(self, watch: "_Watch") -> None:
        """Report what a watch sees until it ends."""
        names = {path for path, _, _ in watch.directories}
        try:
            async for changes in watch.watch.events():
                if watch is self._unproven:
                    self._proved()
                if changes is None:
                    self._recent_until = asyncio.get_running_loop().time() + RECENT_S
                    self._lost_events = True
                    self.refresh()
                    continue
                if changes:
                    self._note(path for _, path in changes)
                    self._tell_all({path for _, path in changes})
                created = {path for kind, path in changes if kind != MODIFIED}
                # perhaps a new directory with the old name and the old inode
                self._moved |= dict.fromkeys(created & names, time.time())
                if created & self._look.parents or created & names:
                    self.refresh()
        except Exception as error:  # noqa: BLE001 - as above
            if watch is self._watch:
                self._watch = None
            else:  # its last events are lost
                self._tell_all(None)
            self._failed(error)
            self.refresh()

    def _note(self, paths: Iterable[str]) -> None:
        now = asyncio.get_running_loop().time()
        for path in paths:
            for recent_path in (path, os.path.join(os.path.dirname(path), "")):
                self._recent.pop(recent_path, None)  # keeps the oldest first
                self._recent[recent_path] = now
        if len(self._recent) > MOST_RECENT:
            self._recent.clear()
            self._recent_until = now + RECENT_S
        while self._recent and now - next(iter(self._recent.values())) > RECENT_S:
            del self._recent[next(iter(self._recent))]

    def _poll_changed(self, paths: set[str]) -> None:
        self._tell_all(paths)
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
        is_first = self.failure is None
        if not vanished:
            self.failure = failure
            if is_first:
                self._report()

    def _proved(self) -> None:
        """Clear earlier failures once a watch has worked for a while."""
        self._unproven, self._failures = None, 0
        if self.failure is not None:
            self.failure = None
            logger.info("files are watched again")
            self._report()

    def _tell_all(self, paths: set[str] | None) -> None:
        for subscriber in self._subscribers:
            self._tell(subscriber.changed, paths)

    def _tell(self, listener: Callable[[Any], None], paths: set[str] | None) -> None:
        try:
            with tracing.span("watcher", paths=None if paths is None else len(paths)):
                listener(paths)
        except Exception:  # a bug of a listener must not end the watch
            logger.exception("handling a change on disk failed")


def _end_opened(opening: "Future[DirectoryWatch]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().end()


class _Watch:
    """A watch and its directories."""

    def __init__(self, watch: DirectoryWatch, directories: frozenset[Identity]) -> None:
        self.watch = watch
        self.directories = directories

    def forget(self, moved: Collection[str]) -> None:
        """Drop directories that appeared or disappeared, and those below them."""
        self.directories = frozenset(
            directory
            for directory in self.directories
            if not any(within(directory[0], moved_path) for moved_path in moved)
        )


def new_watches() -> Watches:
    """Return the system's way to watch directories. Call it in a worker thread, since its import is slow."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # a C library without inotify
            return workspace.inotify.Inotify()
    return workspace.portable_watches.PortableWatches()


def _is_within(directory: Identity | None, parents: Iterable[str]) -> bool:
    return directory is not None and any(within(directory[0], parent) for parent in parents)
