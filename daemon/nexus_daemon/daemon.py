"""What all connections of one daemon share: folders, clients, the watcher, worker threads."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

from nexus_context import assembly
from nexus_context.manager import ContextManager
from nexus_context.snapshot import Snapshot
from nexus_context.tokens import get_token_counter, is_loaded, loaded_encodings
from nexus_daemon import protocol
from nexus_daemon.convert import Locator
from nexus_daemon.folders import Folder, FolderTable, Surroundings
from nexus_daemon.requests import wire
from nexus_daemon.watcher import Watcher

WORKERS = 16
NEXUS_DIRECTORY = ".nexus3"
REASONS = ("folder", "layers", "config", "mcp", "instructions", "disk", "session", "tokens")
"""What can move a context; of several at once the first is told."""

T = TypeVar("T")


class Client(Protocol):
    """What the daemon needs of a connection."""

    @property
    def position_encoding(self) -> str: ...

    def swap(self, folder: Folder, snapshot: Snapshot | None) -> None: ...

    def notify(self, method: str, params: Any) -> None: ...


class Daemon:
    """The state behind every connection. Lives on the event loop; slow work goes to its threads."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.executor = ThreadPoolExecutor(WORKERS, thread_name_prefix="nexus")
        self.folders = FolderTable(surroundings, self.executor, self._swapped)
        self.watcher = Watcher(self._watched_paths, self._disk_changed)
        self.clients: set[Client] = set()
        self.started = time.monotonic()
        self._reasons: dict[Folder, str] = {}
        self._telling: set[Folder] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def work(self, job: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Run `job` in a worker thread. Where it was the first to count, estimates become exact: tell so."""
        known = loaded_encodings()
        result = await asyncio.get_running_loop().run_in_executor(
            self.executor, partial(job, *args, **kwargs)
        )
        if loaded_encodings() != known:
            for folder in self.folders:
                self.announce(folder, "tokens")
        return result

    def announce(self, folder: Folder, reason: str) -> None:
        """Tell every client what the folder's context costs now; several reasons in a row are told once."""
        self._reasons[folder] = reason
        if folder not in self._telling:
            self._telling.add(folder)
            task = asyncio.get_running_loop().create_task(self._tell(folder))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def add_folder(self, uri: str, *, name: str, listed: bool) -> None:
        """Take a folder in; its first snapshot is read at once."""
        self.folders.add(uri, name=name, listed=listed)

    def remove_folder(self, uri: str) -> None:
        folder = self.folders.remove(uri)
        if folder is not None:
            for client in self.clients:
                client.swap(folder, None)
            self.watcher.refresh()

    async def close(self) -> None:
        """End the watcher and the threads; a thread that hangs on a file system is not waited for."""
        for folder in self.folders:
            folder.reload.cancel()
        for task in self._tasks:
            task.cancel()
        await self.watcher.close()
        self.executor.shutdown(wait=False, cancel_futures=True)

    def _swapped(self, folder: Folder, old: Snapshot | None, new: Snapshot, reasons: frozenset[str]) -> None:
        for client in self.clients:
            client.swap(folder, new)
        if old is None or old.layers.watch != new.layers.watch:
            self.watcher.refresh()
        if old is None or old.revision != new.revision:
            self.announce(folder, min(reasons, key=REASONS.index))
        self.watcher.start()

    async def _tell(self, folder: Folder) -> None:
        try:
            while folder in self._reasons:
                reason = self._reasons.pop(folder)
                snapshot = await folder.current()
                conversation = folder.conversations.peek("main")
                for client in tuple(self.clients):
                    locate = Locator(snapshot.layers, client.position_encoding)
                    async with conversation.lock:
                        usage = await self.work(_usage_now, snapshot, conversation.manager, locate)
                    client.notify(
                        "nexus/context/didChange",
                        protocol.ContextDidChange(folder.uri, snapshot.revision, reason, usage),
                    )
        finally:
            self._telling.discard(folder)

    def _watched_paths(self) -> Iterator[str]:
        for folder in self.folders:
            yield os.path.join(folder.path, NEXUS_DIRECTORY)
            yield from folder.watched

    def _disk_changed(self, paths: set[str] | None) -> None:
        for folder in self.folders:
            if paths is None:
                folder.reload.request("disk")
                continue
            for path in paths:
                if folder.cares_about(path):
                    folder.reload.request("disk")
                    break


def _usage_now(snapshot: Snapshot, manager: ContextManager, locate: Locator) -> protocol.TokenUsage:
    """Exact where the vocabulary is in memory; else an estimate, labelled: a notification loads none."""
    limits, _ = assembly.model_of(snapshot, None)
    counter = None if is_loaded(limits.encoding) else get_token_counter(use_tiktoken=False)
    return wire.usage(assembly.usage_of(snapshot, manager, counter=counter), locate)
