"""Watch which sessions of other assistants change, for the windows that want to know.

1. Only windows whose client asked for it are served. If there is none, nothing is listed, read or watched.
   The same holds for a folder whose setting `views.conversations` is off, or which is not loaded yet.
2. The daemon's one watcher watches the directories where sessions of a window's folder may appear or change.
   Its reports are collected for COLLECT_S. Then the folder's sessions are listed in a thread, and the ends of
   files that changed are read. Such a look takes at most a tenth of the time. If it finds other paths to
   watch, another look follows.
3. A file of a sub-agent of Claude Code belongs to its session.
4. A session that does not change for LIVE_S is no longer live, which is announced, too. One timer waits for
   the first session to reach that time; no file is read for that.
"""

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import sep
from os.path import dirname, join
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.folder.layers.walk import within
from nexus_context.folder.snapshot import LoadInputs

if TYPE_CHECKING:  # most windows want no sessions
    from nexus_context.assistants.sessions.session_types import Place

logger = logging.getLogger(__name__)

COLLECT_S = 0.3
AFTER_S = 0.05  # by which the timer is late, so that the time of the session is over
_ANY = "-"  # names any file of a directory that is watched
MOST_AGENTS = 3  # sessions of a folder whose sub-agents are watched
MOST_FILES = 20  # sessions of a folder that are watched by name, for file systems that have to be polled
REST = 10  # rest after a look, as a multiple of the time that it took

_Key = tuple[str, str]
"""An assistant and a session's id."""


class WatchedFolder(NamedTuple):
    """A folder of a window whose sessions are watched, and whether they may be read (`Place`)."""

    uri: str
    path: str
    home: str
    environ: tuple[tuple[str, str], ...]
    reads_conversations: bool = True

    @classmethod
    def of(cls, uri: str, path: str, inputs: LoadInputs, *, reads_conversations: bool) -> "WatchedFolder":
        """Build the folder of a client with these inputs."""
        home, environ = str(inputs.user_home), tuple(inputs.environ.items())
        return cls(uri, path, home, environ, reads_conversations=reads_conversations)

    @property
    def place(self) -> "Place":
        """The home and variables that say where the user's assistants have their files."""
        from nexus_context.assistants.sessions.session_types import Place  # most windows want no sessions

        return Place(self.home, dict(self.environ), self.reads_conversations)


class SessionChange(NamedTuple):
    """A session that `appeared` or `changed` in a folder, or is `idle`, which means no longer live.

    `changes_views` says that `nexus/view/list` may answer otherwise now: the session began or stopped to run
    in the folder, or has another model than before.
    """

    folder: WatchedFolder
    assistant: str
    id: str
    reason: str
    changes_views: bool


class _Listing(NamedTuple):
    """The sessions of a folder: when each changed, its model, and the paths to watch for all of them.

    `live_until` has seconds since 1970.
    """

    changed: dict[_Key, str]
    models: dict[_Key, str | None]
    live_until: dict[_Key, float]
    paths: frozenset[str]


class AssistantWatch:
    """Finds changed sessions. Use it on the event loop; `read` runs a job that reads files in a thread.

    `list_folders` returns the folders of windows that want news. `announce` gets the news. `refresh` makes
    the watcher list its paths again.
    """

    def __init__(
        self,
        list_folders: Callable[[], Iterable[WatchedFolder]],
        read: Callable[..., Awaitable[Any]],
        announce: Callable[[SessionChange], None],
        refresh: Callable[[], None],
    ) -> None:
        self._list_folders = list_folders
        self._read = read
        self._announce = announce
        self._refresh = refresh
        self._listings: dict[WatchedFolder, _Listing] = {}
        self._live: dict[WatchedFolder, set[_Key]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_stale = False

    def paths(self) -> Iterator[str]:
        """Yield the paths to watch now."""
        for listing in self._listings.values():
            yield from listing.paths

    def changed(self, paths: set[str] | None) -> None:
        """Look for changed sessions if these paths concern them.

        None means that any path may have changed.
        """
        if self._listings and (paths is None or any(map(self.matters, paths))):
            self.look()

    def look(self) -> None:
        """Compare the sessions with those of the last look, soon. Further calls before that do nothing."""
        self._is_stale = True
        if self._task is None and (self._listings or any(True for _ in self._list_folders())):
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """End the work under way."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def matters(self, path: str) -> bool:
        """Whether a path is below a directory of sessions, or above it, such as a directory that was just
        created.
        """
        roots = (root for folder in self._listings for root in _roots(folder.place))
        return any(within(path, root) or within(root, path) for root in roots)

    async def _run(self) -> None:
        loop, pause_s = asyncio.get_running_loop(), COLLECT_S
        try:
            while self._is_stale:
                await asyncio.sleep(pause_s)
                self._is_stale = False
                began = loop.time()
                await self._compare()
                pause_s = max(COLLECT_S, REST * (loop.time() - began))
        except Exception:  # a session that cannot be read must not end the following of others
            logger.exception("the sessions of assistants cannot be listed")
        finally:
            self._task = None

    async def _compare(self) -> None:
        folders = tuple(dict.fromkeys(self._list_folders()))
        previous_listings = self._listings
        current_listings: dict[WatchedFolder, _Listing] = {}
        for folder in folders:
            current_listings[folder] = await self._read(_listing, folder)
        self._listings = current_listings
        if {watched_folder: listing.paths for watched_folder, listing in previous_listings.items()} != {
            watched_folder: listing.paths for watched_folder, listing in current_listings.items()
        }:
            self._refresh()
            self._is_stale = True  # what changes before the new watches are up is found by one more look
        for folder, listing in current_listings.items():
            if folder not in previous_listings:
                continue
            previous_changed, previous_models = (
                previous_listings[folder].changed,
                previous_listings[folder].models,
            )
            for key, changed in listing.changed.items():
                if previous_changed.get(key) != changed:
                    reason = "changed" if key in previous_changed else "appeared"
                    is_running = key in self._live.get(folder, ())
                    changes_views = not is_running or previous_models.get(key) != listing.models[key]
                    self._announce(SessionChange(folder, *key, reason=reason, changes_views=changes_views))
        self._announce_idle()

    def _announce_idle(self) -> None:
        """Announce the sessions that are live no more, and do so again when the next one is not."""
        now, previous_live = time.time(), self._live
        self._live = {
            folder: {key for key, until in listing.live_until.items() if now <= until}
            for folder, listing in self._listings.items()
        }
        ends = [self._listings[folder].live_until[key] for folder, keys in self._live.items() for key in keys]
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if ends:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(ends) - now + AFTER_S, self._announce_idle)
        for folder, keys in self._live.items():
            for key in previous_live.get(folder, set()) - keys:
                self._announce(SessionChange(folder, *key, reason="idle", changes_views=True))


class SessionNews:
    """Makes `fileno` readable when sessions of a folder may have changed, so a thread can wait for that.

    It runs the daemon's watcher in a thread, for a process that has no event loop.
    """

    def __init__(self, folder: WatchedFolder) -> None:
        self._folder = folder
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._followed: tuple[str, ...] = ()
        self._refresh: Callable[[], object] = lambda: None
        threading.Thread(target=asyncio.run, args=(self._run(),), name="nexus-news", daemon=True).start()

    def fileno(self) -> int:
        """Return a descriptor that can be read once sessions may have changed."""
        return self._reader.fileno()

    def clear(self) -> None:
        """Reset `fileno`: it can be read again after the next change."""
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass

    def follow(self, paths: tuple[str, ...]) -> None:
        """Watch these paths, too, which are those of the session that is shown."""
        if paths != self._followed:
            self._followed = paths
            self._refresh()

    async def _run(self) -> None:
        from nexus_daemon.workspace.watcher import Subscriber, Watcher  # it imports this package

        executor = ThreadPoolExecutor(2, "nexus-news")

        async def read(job: Callable[..., Any], *args: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(executor, partial(job, *args))

        watch = AssistantWatch(
            lambda: (self._folder,), read, lambda _: self._wake(), lambda: watcher.refresh()
        )

        def changed(paths: set[str] | None) -> None:
            watch.changed(paths)
            if paths is None or any(map(watch.matters, paths)):
                self._wake()

        def followed_changed(paths: set[str] | None) -> None:
            directories = {dirname(path) for path in self._followed}
            if paths is None or not directories.isdisjoint(map(dirname, paths)):
                self._wake()

        subscriber = Subscriber(watch.paths, changed)
        followed = Subscriber(lambda: self._followed, followed_changed)
        watcher = Watcher(subscriber, followed, executor=executor)
        self._refresh = partial(asyncio.get_running_loop().call_soon_threadsafe, watcher.refresh)
        watcher.start()
        watch.look()
        await asyncio.Event().wait()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is awake already
            self._writer.send(b"x")


def _listing(folder: WatchedFolder) -> _Listing:
    """The sessions of a folder now. Reads the disk."""
    # for windows that want sessions
    from nexus_context.assistants.programs import readable_programs
    from nexus_context.assistants.tracking import find_sessions
    from nexus_context.assistants.tracking.followers import live_until
    from nexus_context.disk import files

    place = folder.place
    programs = readable_programs(place)
    changed: dict[_Key, str] = {}
    models: dict[_Key, str | None] = {}
    ends: dict[_Key, float] = {}
    paths = {
        join(path, _ANY) if path.endswith(sep) else path
        for program in programs.values()
        for path in program.sessions.watched(place, folder.path)
    }
    for number, session in enumerate(find_sessions(place, folder.path).sessions):
        program, marks = programs[session.assistant].sessions, [session.changed]
        if not program.shares_file:
            marks.append(repr(files.file_stamp(session.path)))
            if number < MOST_FILES:
                paths.add(session.path)
        if program.agents_directory is not None and number < MOST_AGENTS:
            agents = program.agents_directory(session.path)
            entries = files.list_directory(agents) or ()
            marks += (repr(files.file_stamp(join(agents, name))) for name, _ in entries)
            paths.add(join(agents, _ANY))
        key = session.assistant, session.id
        changed[key], models[key], ends[key] = repr(marks), session.model, live_until(session)
    return _Listing(changed, models, ends, frozenset(paths))


def _roots(place: "Place") -> Iterator[str]:
    """The directories that hold the sessions of a user."""
    from nexus_context.assistants.programs import readable_programs

    return (program.sessions.root_of(place) for program in readable_programs(place).values())
