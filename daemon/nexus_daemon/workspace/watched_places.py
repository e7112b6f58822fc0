"""Find the directories to watch for a list of paths, and those that cannot be watched reliably.

1. A path is watched through its directory, or else through the nearest existing ancestor of that.
2. Directories on network file systems are read by a thread of their own. While a file system hangs, its
   directories are left out, and everything else is read as before.
3. All of it blocks: call it in worker threads.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Executor, Future
from typing import NamedTuple

from nexus_context.folder.layers.walk import within
from nexus_daemon.workspace.watch_limits import Failure, network_devices, network_mounts, unlisted

REMOTE_S = 2.0  # for which network file systems are waited for
Identity = tuple[str, int, int]
"""A directory, as (path, device, inode)."""


class Look(NamedTuple):
    """The result of a look at the disk: the paths, and their directories as they are now.

    `places` maps the directories of the paths, existing or not, to the directories that are watched for them.
    """

    paths: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()  # the directories of the paths
    remote: frozenset[str] = frozenset()  # those of them on network file systems
    places: Mapping[str, Identity] = {}
    unwatchable: Mapping[Identity, Failure] = {}  # directories that cannot be watched at all or not reliably
    unlisted: frozenset[Identity] = frozenset()  # the ones that cannot be watched at all
    parents: frozenset[str] = frozenset()  # of the paths, at any depth

    def directory(self, path: str) -> Identity | None:
        """Return the directory that is watched for a path. None if the path is not one of `paths`."""
        return self.places.get(os.path.dirname(path)) if path in self.paths else None

    def is_remote(self, path: str) -> bool:
        """Whether a path is on a network file system."""
        return os.path.dirname(path) in self.remote

    def is_polled(self, path: str, watched: Collection[Identity]) -> bool:
        directory = self.directory(path)
        return directory is None or directory not in watched or directory in self.unwatchable


NOTHING = Look()


class RemotePlaces:
    """Reads the places of directories on network file systems, in one thread at a time."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._reading: Future[tuple[dict[str, Identity], dict[str, Failure]]] | None = None

    def read(self, names: set[str]) -> tuple[dict[str, Identity], dict[str, Failure]]:
        """Return the directories to watch for `names`, and those that cannot be listed.

        Both empty while a read hangs.
        """
        if not names or (self._reading is not None and not self._reading.done()):
            return {}, {}
        reading = self._reading = self._reading or self._executor.submit(_read_places, names)
        try:
            places, closed = reading.result(REMOTE_S)
        except TimeoutError:
            return {}, {}
        finally:
            if reading.done():  # a late answer may be of other names: the next look reads again
                self._reading = None
        return {name: identity for name, identity in places.items() if name in names}, closed


def _read_places(names: Iterable[str]) -> tuple[dict[str, Identity], dict[str, Failure]]:
    """The directories to watch for some directories, and those of them that cannot be watched."""
    places = covering(names)
    return places, unlisted({directory for directory, *_ in places.values()})


def _look(paths: frozenset[str], previous_look: Look, remote_places: RemotePlaces) -> Look:
    """Read which directories to watch. Returns `previous_look` itself if nothing is different."""
    names = {os.path.dirname(path) for path in paths} if paths != previous_look.paths else previous_look.names
    mounts = network_mounts()
    remote = frozenset(name for name in names if any(within(name, mount) for mount in mounts))
    places, closed = _read_places(names - remote)
    remote_directories, remote_closed = remote_places.read(set(remote))
    places, closed = places | remote_directories, closed | remote_closed
    directories, network = frozenset(places.values()), network_devices()
    failures = (
        (directory, closed.get(directory[0]) or network.get(directory[1])) for directory in directories
    )
    unwatchable = {directory: failure for directory, failure in failures if failure is not None}
    if (paths, places, unwatchable, remote) == (
        previous_look.paths,
        previous_look.places,
        previous_look.unwatchable,
        previous_look.remote,
    ):
        return previous_look
    return Look(
        paths=paths,
        names=frozenset(names),
        places=places,
        remote=remote,
        unwatchable=unwatchable,
        unlisted=frozenset(directory for directory in directories if directory[0] in closed),
        parents=_parents(names),
    )


def timed_look(paths: frozenset[str], previous_look: Look, remote_places: RemotePlaces) -> tuple[Look, float]:
    """Look at the disk. Return the result and the processor time that it took, in seconds."""
    began = time.thread_time()
    return _look(paths, previous_look, remote_places), time.thread_time() - began


def _parents(directories: Iterable[str]) -> frozenset[str]:
    parents: set[str] = set()
    for directory in directories:
        while directory not in parents:
            parents.add(directory)
            directory = os.path.dirname(directory)
    return frozenset(parents)


def covering(names: Iterable[str]) -> dict[str, Identity]:
    """Return the directory to watch for each directory: itself, or else its nearest existing ancestor."""
    identities: dict[str, Identity | None] = {}
    covered: dict[str, Identity] = {}
    for name in names:
        directory = name
        while True:
            if directory not in identities:
                identities[directory] = _identity(directory)
            identity = identities[directory]
            if identity is not None or os.path.dirname(directory) == directory:
                break
            directory = os.path.dirname(directory)
        if identity is not None:
            covered[name] = identity
    return covered


def _identity(directory: str) -> Identity | None:
    try:
        status = os.stat(directory)
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    return directory, status.st_dev, status.st_ino
