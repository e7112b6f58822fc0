"""What git says of the folders in which turns are assembled: asked for in threads, remembered for a moment.

1. In a folder that its client does not trust no process is started: files are read, that is all (`git.read`).
2. Elsewhere git is asked once at a time for a folder. A turn waits for PATIENCE_S, then it is told what was
   known REMEMBERED_S ago or less, else what reading files says; git goes on until LOOK_S, for the next turn.
3. What was found counts for FRESH_S: turns come in bursts.
4. Git is waited for in threads of its own, MOST_AT_ONCE of them: many folders on a slow disk hold up nothing
   else. Who finds none free is told what reading files says.
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

from nexus_daemon import lazy

if TYPE_CHECKING:  # the first diagnostics need not wait for it
    from nexus_context.assembly.git import GitState

PATIENCE_S = 0.15
FRESH_S = 1.0
REMEMBERED_S = 60.0
LOOK_S = 10.0
MOST_FOLDERS = 200
MOST_AT_ONCE = 4


class _Known(NamedTuple):
    state: "GitState | None"
    at: float  # monotonic seconds


class WorkingTrees:
    """The git working trees of all folders. Lives on the event loop; files are read in `executor`."""

    def __init__(self, executor: Executor, environ: Mapping[str, str]) -> None:
        self._executor = executor
        self._gits = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="nexus-git")
        self._environ = environ
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._looks: dict[str, asyncio.Future[GitState | None]] = {}
        self._stop = threading.Event()

    async def state(self, folder: str, *, trusted: bool) -> "GitState | None":
        """The state of the working tree that an absolute path is in; None where there is none."""
        if not trusted or self._stop.is_set():
            return await self._read(folder)
        known = self._known.get(folder)
        if known is not None and time.monotonic() - known.at < FRESH_S:
            return known.state
        looking = self._looks.get(folder)
        if looking is None:
            look = partial(_look, folder, environ=self._environ, stopped=self._stop.is_set)
            looking = self._looks[folder] = asyncio.get_running_loop().run_in_executor(self._gits, look)
            looking.add_done_callback(partial(self._looked, folder))
        await asyncio.wait([looking], timeout=PATIENCE_S)
        if looking.done():
            return looking.result()
        return _told(await self._read(folder), known)

    def close(self) -> None:
        """End what is under way."""
        self._stop.set()
        self._gits.shutdown(wait=False, cancel_futures=True)

    def _read(self, folder: str) -> "asyncio.Future[GitState | None]":
        return asyncio.get_running_loop().run_in_executor(self._executor, partial(_read, folder))

    def _looked(self, folder: str, looking: "asyncio.Future[GitState | None]") -> None:
        del self._looks[folder]
        if looking.cancelled() or looking.exception() is not None:
            return
        state = looking.result()
        if state is None or not state.slow:
            self._known[folder] = _Known(state, time.monotonic())
            self._known.move_to_end(folder)
        while len(self._known) > MOST_FOLDERS:
            self._known.popitem(last=False)


def _told(read: "GitState | None", known: _Known | None) -> "GitState | None":
    """What is told while git is still looking: what it said last, if not long ago and of the same commit."""
    if read is None or known is None or known.state is None or time.monotonic() - known.at > REMEMBERED_S:
        return None if read is None else msgspec.structs.replace(read, slow=True)
    same = (read.branch, read.commit, read.operation) == (
        known.state.branch,
        known.state.commit,
        known.state.operation,
    )
    return known.state if same else msgspec.structs.replace(read, slow=True)


def _read(folder: str) -> "GitState | None":
    repository = lazy.git.find(folder)
    return None if repository is None else lazy.git.read(repository)


def _look(folder: str, *, environ: Mapping[str, str], stopped: Callable[[], bool]) -> "GitState | None":
    return lazy.git.look(folder, environ=environ, timeout_s=LOOK_S, stopped=stopped)
