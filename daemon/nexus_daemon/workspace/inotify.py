"""Watch files on Linux: one inotify instance for all directories of this process.

1. A `Watch` gets all its directories or fails. Watches that overlap in time share the kernel's watches of the
   directories that both have. So a new one replaces an old one without a second instance and without losing
   an event.
2. Events are read when they come: an idle instance costs nothing. They are collected until none has come for
   STEP_S, for DEBOUNCE_S at most, and reported as a set.
3. The kernel's queue is limited (fs.inotify.max_queued_events). If it overflows, or more than MOST_CHANGES
   are collected, the set is dropped and `None` is reported instead: once, after QUIET_S without an event or
   after PATIENCE_S. So a burst of any size takes little memory and leads to one rescan.
4. When a directory is deleted, the kernel ends its watch. When a directory is moved, the kernel would report
   changes under the old path. Both are reported as a deletion of the directory, whose path is then watched
   anew.
5. To close an instance, the kernel waits until no processor uses its watches: 20 ms, on a busy machine almost
   a second. So a thread closes it.
"""

import asyncio
import contextlib
import ctypes
import os
import struct
import threading
from collections.abc import AsyncGenerator, Collection, Iterable
from typing import Any

from nexus_daemon.workspace.watch_events import ADDED, DELETED, MODIFIED, Changes

STEP_S = 0.02
DEBOUNCE_S = 0.08
QUIET_S = 0.25
PATIENCE_S = 5.0
MOST_CHANGES = 10_000
IDLE_S = 5.0
"""Seconds without an event after which an empty set is reported, which says that the watch works."""

_READ_SIZE = 32 * 1024  # bytes: about a thousand events, which take a few milliseconds
_HEADER = struct.Struct("iIII")  # watch descriptor, mask, cookie, length of the name

_MODIFY, _ATTRIB = 0x2, 0x4
_MOVED_FROM, _MOVED_TO = 0x40, 0x80
_CREATE, _DELETE = 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_ONLY_DIRECTORIES = 0x0100_0000
_ENTRIES = _MODIFY | _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_GONE = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _IGNORED
_MASK = _ENTRIES | _DELETE_SELF | _MOVE_SELF | _ONLY_DIRECTORIES


class Watch:
    """A watch of some directories. It collects changes from its construction on; `Inotify.open` returns it.

    `_descriptors` are the kernel's watch descriptors of its directories.
    """

    def __init__(self, instance: "Inotify", descriptors: Collection[int]) -> None:
        self._instance = instance
        self._descriptors = descriptors
        self._changes: set[tuple[int, str]] = set()
        self._overflowed = self._ends = False
        self._count = 0  # events so far
        self._news = asyncio.Event()

    async def events(self) -> AsyncGenerator[Changes | None, None]:
        """Yield sets of changes until the watch ends, as `watch_events.DirectoryWatch.events` describes."""
        self._instance.listen()
        try:
            while not self._ends or self._news.is_set():
                try:
                    async with asyncio.timeout(IDLE_S):
                        await self._news.wait()
                except TimeoutError:
                    yield frozenset()
                    continue
                await self._until_quiet()
                self._news.clear()
                changes, self._changes = self._changes, set()
                if self._overflowed:
                    self._overflowed = False
                    yield None
                elif changes:
                    yield changes
        finally:
            self.end()

    @property
    def pending(self) -> int:
        """Return the number of collected changes."""
        return len(self._changes)

    async def _until_quiet(self) -> None:
        """Wait for the end of a burst, for a limited time."""
        loop = asyncio.get_running_loop()
        began, count = loop.time(), -1
        while not self._ends and count != self._count:
            pause_s, most_s = (QUIET_S, PATIENCE_S) if self._overflowed else (STEP_S, DEBOUNCE_S)
            if loop.time() - began + pause_s > most_s:
                return
            count = self._count
            await asyncio.sleep(pause_s)

    def take(self, kind: int, path: str) -> None:
        """Collect a change."""
        self._count += 1
        if not self._overflowed:
            self._changes.add((kind, path))
            if len(self._changes) > MOST_CHANGES:
                self.overflow()
        self._news.set()

    def overflow(self) -> None:
        """Drop the collected changes, since some were lost: `None` is reported instead."""
        self._count += 1
        self._overflowed = True
        self._changes = set()
        self._news.set()

    def end_soon(self) -> None:
        """End the watch. `events` still yields what has happened until now."""
        self._instance.read()
        self.end()

    def end(self) -> None:
        """End the watch."""
        if not self._ends:
            self._ends = True
            self._instance.release(self, self._descriptors)
            if not self._news.is_set():
                self._news.set()


class Inotify:
    """The one inotify instance of a watcher. It exists while there is a watch.

    Call `open` in a thread, one call at a time, and everything else on the event loop. The lock is never held
    during a system call that reads a directory, which may hang.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._create: Any = library.inotify_init1  # AttributeError if the system has none
        self._add: Any = library.inotify_add_watch
        self._remove: Any = library.inotify_rm_watch
        self._instance: int | None = None  # its file descriptor
        self._watches: dict[int, dict[Watch, str]] = {}  # by the kernel's descriptor: watch → directory
        self._opening = False
        self._unused: set[int] = set()  # descriptors to remove once `open` is done
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None  # which reads the events
        self._thread = 0  # of the loop

    def open(self, directories: Iterable[str]) -> Watch:
        """Watch directories. Raise OSError if one of them cannot be watched; then none of them is."""
        with self._lock:
            self._opening = True
            if self._instance is None:
                self._instance = _checked(self._create(os.O_NONBLOCK | os.O_CLOEXEC))
            instance = self._instance
        added: dict[int, str] = {}
        watch = Watch(self, added.keys())
        try:
            for directory in directories:
                descriptor = _checked(self._add(instance, os.fsencode(directory), _MASK), directory)
                added[descriptor] = directory
                with self._lock:
                    self._watches.setdefault(descriptor, {})[watch] = directory
        except BaseException:
            self.release(watch, added)
            raise
        finally:
            with self._lock:
                self._opening = False
                self._remove_unused()
        return watch

    def listen(self) -> None:
        """Read events on the running loop from now on."""
        if self._loop is None and self._instance is not None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
            self._loop.add_reader(self._instance, self.read)

    def read(self) -> None:
        """Read events, and pass them to their watches. The rest is read at the loop's next turn."""
        if self._instance is not None:
            with contextlib.suppress(BlockingIOError, InterruptedError):
                self._pass_on(os.read(self._instance, _READ_SIZE))

    def release(self, watch: Watch, descriptors: Iterable[int]) -> None:
        """Remove a watch, and the kernel's watches that no other watch uses."""
        with self._lock:
            for descriptor in descriptors:
                watches = self._watches.get(descriptor, {})
                watches.pop(watch, None)
                if not watches and self._watches.pop(descriptor, None) is not None:
                    self._unused.add(descriptor)
            if not self._opening:
                self._remove_unused()

    def _remove_unused(self) -> None:
        instance = self._instance
        if instance is None:
            return
        if not self._watches:  # which removes all
            loop, self._instance, self._loop = self._loop, None, None
            if loop is None or loop.is_closed():
                os.close(instance)
            elif threading.get_ident() == self._thread:
                _close(loop, instance)
            else:
                loop.call_soon_threadsafe(_close, loop, instance)
        else:
            for descriptor in self._unused - self._watches.keys():
                self._remove(instance, descriptor)  # fails if the kernel has ended it, which is as good
        self._unused.clear()

    def _pass_on(self, data: bytes) -> None:
        offset = 0
        while offset < len(data):
            descriptor, mask, _, size = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size + size
            if mask & _OVERFLOW:
                for watch in {watch for watches in self._watches.values() for watch in watches}:
                    watch.overflow()
                continue
            name = os.fsdecode(data[offset - size : offset].rstrip(b"\0"))
            for watch, directory in tuple(self._watches.get(descriptor, {}).items()):
                if mask & _GONE:
                    watch.take(DELETED, directory)
                else:
                    watch.take(_kind(mask), os.path.join(directory, name) if name else directory)
            if mask & _IGNORED:
                with self._lock:
                    self._watches.pop(descriptor, None)


def _checked(result: int, path: str | None = None) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


def _close(loop: asyncio.AbstractEventLoop, instance: int) -> None:
    loop.remove_reader(instance)
    threading.Thread(target=os.close, args=(instance,), name="nexus-inotify", daemon=True).start()


def _kind(mask: int) -> int:
    if mask & (_CREATE | _MOVED_TO):
        return ADDED
    return DELETED if mask & (_DELETE | _MOVED_FROM) else MODIFIED
