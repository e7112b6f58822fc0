"""The stall watchdog: reports when an event loop was blocked, and by what.

1. A turn of the loop lasts from the return of `select` to its next call. A turn longer than the limit is a
   stall. Nothing is added to a turn but looks at two clocks: about 6 µs.
2. A thread takes samples of the stack of the loop's thread once a turn lasts more than half of the limit.
   While the loop waits in `select`, the thread waits, too: an idle process stays idle.
3. `kind` says why, so that a busy machine is told from our mistakes: `busy`, the loop's thread itself
   computed for as long as the limit (by its CPU time, without collections); `blocked`, it waited in a
   system call (a file, a pipe, a sleep) in most samples; `locked`, it waited for a lock, queue or future of
   Python in most samples; `collecting`, the garbage collector ran in it; `starved`, none of these: another
   thread or process had the interpreter or the processor.
4. A turn that does not end is reported when it has lasted `STUCK_S`, and again at its end.
5. Daemons import this module, too, by `sitecustomize` beside it: it imports nothing but Python's own modules.
"""

import gc
import os
import sys
import threading
import time
from asyncio import AbstractEventLoop
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, Literal, NamedTuple

LIMIT_MS = 50.0
STUCK_S = 5.0

_SAMPLES_PER_LIMIT = 5
_DEEPEST = 60  # frames of a sample, innermost first
_MOST_SAMPLES = 400
_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(os.uname().machine if hasattr(os, "uname") else "", "")
_RUNNING = "running"
_IMPORT = "<frozen importlib"
_IMPORT_CALL = "_find_and_load"  # one frame of an import is enough
_WAITS = ("Condition.wait", "Thread._wait_for_tstate_lock")  # what events, queues, futures and joins end in

Kind = Literal["busy", "blocked", "locked", "collecting", "starved"]
Place = tuple[str, int, str]
"""A frame: its file, line and function."""


class Stall(NamedTuple):
    """A turn of the loop that was too long; times in ms. `stack` is the most frequent, innermost first."""

    kind: Kind
    ms: float
    cpu_ms: float
    gc_ms: float
    samples: int
    stack: tuple[Place, ...]
    is_over: bool = True


Report = Callable[[Stall], None]


class _Sample:
    __slots__ = ("call", "stack")

    def __init__(self, stack: tuple[Place, ...], call: str) -> None:
        self.stack = stack
        self.call = call  # number of the system call that the thread is in, as Linux says


class _LoopWatch:
    """The turns of one loop. `select` runs in the loop's thread, everything else in the watchdog's."""

    def __init__(self, loop: AbstractEventLoop, limit_s: float, report: Report) -> None:
        self.limit_s = limit_s
        self.report = report
        self.thread = threading.get_ident()
        self.native = threading.get_native_id()
        self.since = 0.0  # when the turn began; 0 while the loop waits
        self.samples: list[_Sample] = []
        self.is_stuck = False
        self._cpu = 0
        self._gc_s = 0.0
        self._gc_began = 0.0
        self._selector: Any = loop._selector  # type: ignore[attr-defined]  # noqa: SLF001 - see `watch`
        self._select = self._selector.select
        self._selector.select = self.select
        self._loop = loop
        self._run_forever = loop.run_forever
        loop.run_forever = self.run  # type: ignore[method-assign]
        gc.callbacks.append(self._collecting)

    def select(self, timeout: float | None = None) -> Any:
        """End a turn, wait, and begin the next one."""
        self._end_long_turn()
        if self.samples:
            self.samples = []
        events = self._select(timeout)
        if self.thread != threading.get_ident():
            self.thread, self.native = threading.get_ident(), threading.get_native_id()
        self._gc_s, self.is_stuck = 0.0, False
        self._cpu = time.thread_time_ns()
        self.since = time.perf_counter()
        if _watchdog.is_asleep:
            _watchdog.wake()
        return events

    def run(self) -> None:
        """Run the loop; what its thread does between two runs belongs to no turn."""
        try:
            self._run_forever()
        finally:
            self._end_long_turn()

    def stop(self) -> None:
        self._selector.select = self._select
        self._loop.run_forever = self._run_forever  # type: ignore[method-assign]
        self.since = 0.0
        with suppress(ValueError):
            gc.callbacks.remove(self._collecting)

    def sample(self, now: float) -> None:
        """Note what the loop's thread does, if its turn is long."""
        since = self.since
        if not since or now - since < self.limit_s / 2 or len(self.samples) >= _MOST_SAMPLES:
            return
        call = _system_call(self.native)
        frame = sys._current_frames().get(self.thread)  # noqa: SLF001 - documented, for debuggers
        samples = self.samples
        if frame is None or self.since != since:
            return
        samples.append(_Sample(_stack_of(frame), call))
        if now - since >= STUCK_S and not self.is_stuck:
            self.is_stuck = True
            self.report(
                _stall(samples, now - since, cpu_s=0.0, gc_s=0.0, limit_s=self.limit_s, is_over=False)
            )

    def _end_long_turn(self) -> None:
        since, self.since = self.since, 0.0
        spent = time.perf_counter() - since
        if not since or spent < self.limit_s:
            return
        cpu = (time.thread_time_ns() - self._cpu) / 1e9
        self.report(
            _stall(self.samples, spent, cpu_s=cpu, gc_s=self._gc_s, limit_s=self.limit_s, is_over=True)
        )

    def _collecting(self, step: str, _: Mapping[str, int]) -> None:
        if threading.get_ident() == self.thread and self.since:
            if step == "start":
                self._gc_began = time.perf_counter()
            else:
                self._gc_s += time.perf_counter() - self._gc_began


class _Watchdog:
    """The thread that takes the samples, for all loops of the process."""

    def __init__(self) -> None:
        self.loops: list[_LoopWatch] = []
        self.is_asleep = False
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def wake(self) -> None:
        self.is_asleep = False
        self._awake.set()

    def add(self, loop: _LoopWatch) -> None:
        with self._starting:
            self.loops = [*self.loops, loop]
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="nexus-stalls", daemon=True)
                self._thread.start()
        self.wake()

    def remove(self, loop: _LoopWatch) -> None:
        with self._starting:
            self.loops = [each for each in self.loops if each is not loop]

    def _run(self) -> None:
        while True:
            loops = self.loops
            if not any(loop.since for loop in loops):
                self._awake.clear()
                self.is_asleep = True
                if not any(loop.since for loop in loops):  # a turn that began meanwhile does not wake
                    self._awake.wait()
                self.is_asleep = False
                continue
            time.sleep(min(loop.limit_s for loop in loops) / _SAMPLES_PER_LIMIT)
            now = time.perf_counter()
            for loop in loops:
                loop.sample(now)


_watchdog = _Watchdog()


def watch(loop: AbstractEventLoop, report: Report, *, limit_ms: float = LIMIT_MS) -> Callable[[], None]:
    """Report the stalls of a loop from now on; returns what ends it. Called in the loop's thread.

    `report` is called in the loop's thread, and in another one for a turn that does not end. A loop without
    a selector (uvloop) is not watched. Of a loop that runs already, the end of this run is not noticed.
    """
    if not hasattr(getattr(loop, "_selector", None), "select"):
        return lambda: None
    loop_watch = _LoopWatch(loop, limit_ms / 1000, report)
    _watchdog.add(loop_watch)

    def stop() -> None:
        loop_watch.stop()
        _watchdog.remove(loop_watch)

    return stop


def _stall(
    samples: list[_Sample], spent_s: float, *, cpu_s: float, gc_s: float, limit_s: float, is_over: bool
) -> Stall:
    samples = list(samples)
    stacks = Counter(sample.stack for sample in samples)
    stack = stacks.most_common(1)[0][0] if stacks else ()
    return Stall(
        kind=_kind(samples, cpu_s=cpu_s - gc_s, gc_s=gc_s, limit_s=limit_s),
        ms=round(spent_s * 1000, 1),
        cpu_ms=round(cpu_s * 1000, 1),
        gc_ms=round(gc_s * 1000, 1),
        samples=len(samples),
        stack=stack,
        is_over=is_over,
    )


def _kind(samples: list[_Sample], *, cpu_s: float, gc_s: float, limit_s: float) -> Kind:
    if cpu_s >= limit_s:
        return "busy"
    calls = sum(sample.call not in (_RUNNING, _FUTEX, "") for sample in samples)
    if calls >= 2 and calls * 2 >= len(samples):
        return "blocked"
    waits = sum(_waits(sample.stack) for sample in samples)
    if waits >= 2 and waits * 2 >= len(samples):
        return "locked"
    return "collecting" if gc_s >= limit_s / 2 else "starved"


def _waits(stack: tuple[Place, ...]) -> bool:
    """Whether a stack waits for another thread; for a new thread to begin, it waits for the processor."""
    starts = any(function == "Thread.start" for _, _, function in stack[:4])
    return bool(stack) and stack[0][2] in _WAITS and not starts


def _stack_of(frame: FrameType | None) -> tuple[Place, ...]:
    places: list[Place] = []
    while frame is not None and len(places) < _DEEPEST:
        code = frame.f_code
        if code.co_filename.startswith(_IMPORT) and code.co_qualname != _IMPORT_CALL:
            frame = frame.f_back
            continue
        places.append((code.co_filename, frame.f_lineno, code.co_qualname))
        frame = frame.f_back
    return tuple(places)


def _system_call(native: int) -> str:
    """The number of the system call that a thread is in, `running` if it is in none; empty if unknown."""
    try:
        with open(f"/proc/self/task/{native}/syscall", encoding="ascii") as file:
            return file.read(16).split(" ", 1)[0].strip()
    except OSError:
        return ""
