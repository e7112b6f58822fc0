"""The folder table: folder URI → snapshot and conversations; the innermost folder of a URI."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

import msgspec

from nexus_context import snapshot as snapshots
from nexus_context.errors import RequestError
from nexus_context.prompt.environment import Environment
from nexus_context.snapshot import Snapshot
from nexus_daemon import convert
from nexus_daemon.conversations import Conversations
from nexus_daemon.reload import Prepare, Reload


class Surroundings(msgspec.Struct, frozen=True):
    """What a folder's snapshot depends on besides files: read once, when the daemon starts."""

    nexus_home: str
    user_home: str
    environment: Environment
    environ: Mapping[str, str]


class Folder:
    """One workspace folder. `listed` is false for the folder of a lone file that a client opened.

    `overlays` are the unsaved texts that the snapshot, or the one that is being made, was made with.
    """

    def __init__(self, uri: str, path: str, *, name: str, listed: bool) -> None:
        self.uri = uri
        self.path = path
        self.name = name
        self.listed = listed
        self.conversations = Conversations()
        self.watched: frozenset[str] = frozenset()
        self.overlays: Mapping[str, str] = {}
        self.reload: Reload

    @property
    def snapshot(self) -> Snapshot | None:
        return self.reload.snapshot

    async def current(self) -> Snapshot:
        """The snapshot with every change that was noticed so far."""
        await self.reload.settled()
        if self.reload.snapshot is None:
            raise RequestError(
                f"The folder {self.uri} could not be read; the daemon's log says why.",
                code="folder-unreadable",
            )
        return self.reload.snapshot

    def cares_about(self, path: str) -> bool:
        """Whether a change of `path` can change this folder's snapshot."""
        return self.reload.snapshot is None or path in self.watched


OnSwap = Callable[[Folder, Snapshot | None, Snapshot, frozenset[str]], None]


class FolderTable:
    """Every folder of this daemon. Lives on the event loop."""

    def __init__(self, surroundings: Surroundings, executor: Executor, on_swap: OnSwap) -> None:
        self.surroundings = surroundings
        self.overlays: dict[str, str] = {}
        self._executor = executor
        self._on_swap = on_swap
        self._folders: dict[str, Folder] = {}

    def __iter__(self) -> Iterator[Folder]:
        return iter(self._folders.values())

    def __len__(self) -> int:
        return len(self._folders)

    def add(self, uri: str, *, name: str = "", listed: bool = True) -> Folder | None:
        """Take a folder in and start reading it; None when the URI is not a file URI. Known ones stay."""
        known = self._folders.get(_key(uri))
        if known is not None:
            known.listed = known.listed or listed
            return known
        path = convert.uri_to_path(uri)
        if path is None:
            return None
        folder = Folder(uri, path, name=name or Path(path).name, listed=listed)
        folder.reload = Reload(self._preparer(folder), self._swapper(folder), self._executor)
        self._folders[_key(uri)] = folder
        folder.reload.request("folder")
        return folder

    def remove(self, uri: str) -> Folder | None:
        folder = self._folders.pop(_key(uri), None)
        if folder is not None:
            folder.reload.cancel()
        return folder

    def get(self, uri: str) -> Folder | None:
        return self._folders.get(_key(uri))

    def at(self, uri: str) -> Folder:
        """The folder with this URI, or the innermost one that contains it."""
        exact = self._folders.get(_key(uri))
        if exact is not None:
            return exact
        path = convert.uri_to_path(uri)
        inside = [f for f in self._folders.values() if path is not None and _contains(f.path, path)]
        if inside:
            return max(inside, key=lambda f: len(f.path))
        known = ", ".join(f.uri for f in self._folders.values()) or "none"
        raise RequestError(
            f"{uri} is in no workspace folder. Known folders: {known}. Add the folder to the workspace.",
            code="unknown-folder",
        )

    def containing(self, path: str) -> Folder | None:
        """The innermost folder that contains a path."""
        inside = [f for f in self._folders.values() if _contains(f.path, path)]
        return max(inside, key=lambda f: len(f.path)) if inside else None

    def reading(self, path: str) -> Iterator[Folder]:
        """The folders whose snapshot depends on a path, the innermost that contain it first."""
        caring = [folder for folder in self._folders.values() if folder.cares_about(path)]
        yield from sorted(
            caring, key=lambda folder: len(folder.path) * _contains(folder.path, path), reverse=True
        )

    def set_overlay(self, path: str, text: str | None, reason: str) -> None:
        """Set or drop the unsaved text of a file, and rebuild the folders that read it."""
        if text is None:
            self.overlays.pop(path, None)
        else:
            self.overlays[path] = text
        for folder in self.reading(path):
            folder.reload.request(reason, path)

    def changed(self, path: str, reason: str) -> None:
        """A file changed on disk: rebuild the folders that read it."""
        for folder in self.reading(path):
            folder.reload.request(reason)

    def _preparer(self, folder: Folder) -> Prepare:
        around = self.surroundings

        def prepare(previous: Snapshot | None, changed: frozenset[str] | None) -> Callable[[], Snapshot]:
            folder.overlays = dict(self.overlays)
            return partial(
                snapshots.load,
                folder.path,
                home=around.nexus_home,
                user_home=around.user_home,
                environment=around.environment,
                overlays=folder.overlays,
                environ=around.environ,
                previous=previous,
                changed=changed,
            )

        return prepare

    def _swapper(self, folder: Folder) -> Callable[[Snapshot | None, Snapshot, frozenset[str]], None]:
        def swap(old: Snapshot | None, new: Snapshot, reasons: frozenset[str]) -> None:
            folder.watched = frozenset(new.layers.watch)
            self._on_swap(folder, old, new, reasons)

        return swap


def _key(uri: str) -> str:
    """One spelling for the URIs of one folder: clients differ in escapes and in a last slash."""
    path = convert.uri_to_path(uri)
    return uri.rstrip("/") if path is None else path


def _contains(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
