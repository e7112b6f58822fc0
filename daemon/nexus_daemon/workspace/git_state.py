"""Read the state of git for chat turns: in threads, cached for a moment.

1. In a folder that its client does not trust no process is started: only files are read (`git.read`).
2. In a trusted folder git is run, once at a time for a folder and an environment. A turn waits for
   PATIENCE_S. After that it gets the cached state if that is not older than CACHED_S, else the state that
   reading files tells. Git goes on until LOOK_S, for the next turn.
3. A state is used again for FRESH_S: turns come in bursts.
4. Git runs in threads of its own, MOST_AT_ONCE of them, so that many folders on a slow disk delay nothing
   else. A turn that finds no free thread gets the state that reading files tells.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nexus_daemon.process import lazy

if TYPE_CHECKING:  # the first diagnostics need not wait for it
    from nexus_context.turn.git import GitState

PATIENCE_S = 0.15
FRESH_S = 1.0
CACHED_S = 60.0
LOOK_S = 10.0
MOST_FOLDERS = 200
MOST_AT_ONCE = 4


_Key = tuple[str, frozenset[tuple[str, str]]]
"""A folder and the environment that git is run with."""


class _Cached(NamedTuple):
    state: "GitState | None"
    at: float  # monotonic seconds


class WorkingTrees:
    """Reads the git working trees of all folders. Use it on the event loop; files are read in `executor`."""

    def __init__(self, executor: Executor) -> None:
        self.patience_s = PATIENCE_S
        self._executor = executor
        self._gits = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="nexus-git")
        self._cache: OrderedDict[_Key, _Cached] = OrderedDict()
        self._runs: dict[_Key, asyncio.Future[GitState | None]] = {}
        self._stop = threading.Event()

    async def state(self, folder: str, *, trusted: bool, environ: Mapping[str, str]) -> "GitState | None":
        """Return the state of the working tree that contains the absolute path `folder`.

        None if there is none.

        `environ` is the environment of the client, in which git is found and run.
        """
        if not trusted or self._stop.is_set():
            return await self._read(folder)
        key = folder, frozenset(environ.items())
        cached = self._cache.get(key)
        if cached is not None and time.monotonic() - cached.at < FRESH_S:
            return cached.state
        running = self._runs.get(key)
        if running is None:
            look = partial(_look, folder, environ=environ, stopped=self._stop.is_set)
            running = self._runs[key] = asyncio.get_running_loop().run_in_executor(self._gits, look)
            running.add_done_callback(partial(self._on_state, key))
        await asyncio.wait([running], timeout=self.patience_s)
        if running.done():
            return running.result()
        return _while_slow(await self._read(folder), cached)

    def close(self) -> None:
        """Stop git and its threads."""
        self._stop.set()
        self._gits.shutdown(wait=False, cancel_futures=True)

    def _read(self, folder: str) -> "asyncio.Future[GitState | None]":
        return asyncio.get_running_loop().run_in_executor(self._executor, partial(_read, folder))

    def _on_state(self, key: "_Key", running: "asyncio.Future[GitState | None]") -> None:
        del self._runs[key]
        if running.cancelled() or running.exception() is not None:
            return
        state = running.result()
        if state is None or not state.slow:
            self._cache[key] = _Cached(state, time.monotonic())
            self._cache.move_to_end(key)
        while len(self._cache) > MOST_FOLDERS:
            self._cache.popitem(last=False)


def _while_slow(read_state: "GitState | None", cached: _Cached | None) -> "GitState | None":
    """The state to use while git still runs: the cached one, if it is recent and of the same commit."""
    if (
        read_state is None
        or cached is None
        or cached.state is None
        or time.monotonic() - cached.at > CACHED_S
    ):
        return None if read_state is None else msgspec.structs.replace(read_state, slow=True)
    is_same_commit = (read_state.branch, read_state.commit, read_state.operation) == (
        cached.state.branch,
        cached.state.commit,
        cached.state.operation,
    )
    return cached.state if is_same_commit else msgspec.structs.replace(read_state, slow=True)


def _read(folder: str) -> "GitState | None":
    repository = lazy.git.find(folder)
    return None if repository is None else lazy.git.read(repository)


def _look(folder: str, *, environ: Mapping[str, str], stopped: Callable[[], bool]) -> "GitState | None":
    return lazy.git.look(folder, environ=environ, timeout_s=LOOK_S, stopped=stopped)
