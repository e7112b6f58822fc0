"""The rule that no test may block an event loop of the daemon: what counts, and whose fault it is.

1. Every loop of this process is watched, and every daemon that a test starts as a process: it inherits
   `variables`, by which it watches itself (`stalls_at_start/sitecustomize.py`) and appends its stalls to a
   file, which is read when the test ends. A daemon that ignores PYTHONPATH (`python -I`) is not watched.
2. A stall fails the test if the loop's thread computed for 50 ms (`busy`), or waited for a system call
   (`blocked`) or a lock (`locked`). On a busy machine threads wait for the interpreter or the processor:
   that is `starved`, and fails nothing. So does a collection of garbage, of which tests make more than
   daemons.
3. It is the daemon's if the innermost frame that belongs to the daemon or to a test is the daemon's.
4. `ALLOWED` names the functions that may block, each with its reason.
5. Stalls are reported from 50 ms on; a test fails from FAILS_MS on, since tests share two cores with others,
   and the same work takes up to three times as long there. A busy turn is measured by what it computed: for
   the rest of its time it waited for the processor.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nexus_daemon.process.logs.log_line import short_path
from support.stalls_at_start.stall_watchdog import Stall, watch

AT_START = str(Path(__file__).parent / "stalls_at_start")
"""The directory from which Python imports `sitecustomize` in a process that tests start."""
FAILS_MS = 150
COUNTED = ("busy", "blocked", "locked")
ALLOWED = {
    "Writer.messages": "the client of a test in process reads its frames on the daemon's loop",
    "Connection.start": "imports the daemon behind the reply to `initialize`: there is one client, and "
    "nothing can be answered before",
}
_FROM_TESTS = ("tests/", "support/")

_stalls: list[Stall] = []


def watch_loops() -> None:
    """Watch every event loop that this process makes from now on."""
    new_event_loop = asyncio.events.new_event_loop

    def new_watched_loop() -> asyncio.AbstractEventLoop:
        loop = new_event_loop()
        stop, close = watch(loop, _stalls.append), loop.close

        def close_watched() -> None:
            stop()
            close()

        loop.close = close_watched  # type: ignore[method-assign]
        return loop

    asyncio.events.new_event_loop = new_watched_loop


class ReportFile:
    """The file to which processes that tests start append their stalls; it need not exist yet."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._offset = 0

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The variables with which a process watches itself; its PYTHONPATH goes on as in `environ`."""
        paths = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path != AT_START]
        return {
            "NEXUS_STALLS": self.path,
            "PYTHONPATH": os.pathsep.join([AT_START, *filter(None, paths)]),
        }

    def read(self) -> Iterator[tuple[str, Stall]]:
        """The stalls that were appended since the last call, each with the process that it is of."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                lines = file.read()
        except FileNotFoundError:
            return
        lines = lines[: lines.rfind(b"\n") + 1]
        self._offset += len(lines)
        for line in lines.splitlines():
            process, *fields = json.loads(line)
            stall = Stall(*fields)
            yield process, stall._replace(stack=tuple((file, row, name) for file, row, name in stall.stack))


def stalls_in(reports: ReportFile) -> Iterator[str]:
    """The stalls of the daemon since the last call, in this process and in others, in words."""
    own, _stalls[:] = list(_stalls), []
    if sys.gettrace() is None:  # coverage takes time, too
        yield from (describe(stall) for stall in own if fails(stall))
    yield from (f"{process}: {describe(stall)}" for process, stall in reports.read() if fails(stall))


def fails(stall: Stall) -> bool:
    """Whether a stall fails the test in which it was reported."""
    frames = [(f"{_place(file)}:{line}", function) for file, line, function in stall.stack]
    return is_long(stall.kind, stall.ms, stall.cpu_ms) and is_fault(stall.kind, frames)


def describe(stall: Stall) -> str:
    """A stall in words, with its stack: a line for each frame, innermost first."""
    state = "was blocked for" if stall.is_over else "is still blocked after"
    times = f"{stall.cpu_ms:.0f} ms computing, {stall.gc_ms:.0f} ms collecting garbage"
    lines = [
        f"stall: the event loop {state} {stall.ms:.0f} ms ({stall.kind}; {times}; {stall.samples} samples)"
    ]
    return "\n".join(
        (*lines, *(f"  {short_path(file)}:{line} {function}" for file, line, function in stall.stack))
    )


def is_long(kind: str, ms: float, cpu_ms: float) -> bool:
    """Whether a turn of `ms`, in which its thread computed for `cpu_ms`, is too long for a test."""
    return (cpu_ms if kind == "busy" else ms) >= FAILS_MS


def is_fault(kind: str, frames: Sequence[Sequence[str]]) -> bool:
    """Whether a stall with these frames (place and function, innermost first) fails a test."""
    if kind not in COUNTED or any(function in ALLOWED for _, function in frames):
        return False
    for place, _ in frames:
        if place.startswith(_FROM_TESTS) or os.path.basename(place).startswith("test_"):
            return False
        if place.startswith("nexus_daemon/"):
            return True
    return False


def _place(file: str) -> Any:
    return f"tests/{os.path.basename(file)}" if f"{os.sep}tests{os.sep}" in file else short_path(file)
