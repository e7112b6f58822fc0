"""The rule that no test may block an event loop of the daemon: what counts, and whose fault it is.

1. Every loop of this process is watched, and every daemon that a test starts as a process (`NEXUS_DEBUG`),
   whose stalls are read from the log when the test ends.
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
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from nexus_daemon.logs import stalls
from nexus_daemon.logs.log_line import short_path
from nexus_daemon.logs.read_log import Follower

FAILS_MS = 150
_TIMES = re.compile(r"(\d+) ms \((\w+); (\d+) ms computing")
COUNTED = ("busy", "blocked", "locked")
ALLOWED = {
    "Writer.messages": "the client of a test in process reads its frames on the daemon's loop",
    "Connection.start": "imports the daemon behind the reply to `initialize`: there is one client, and "
    "nothing can be answered before",
}
_FROM_TESTS = ("tests/", "support/")

_stalls: list[stalls.Stall] = []


def watch_loops() -> None:
    """Watch every event loop that this process makes from now on."""
    new_event_loop = asyncio.events.new_event_loop

    def new_watched_loop() -> asyncio.AbstractEventLoop:
        loop = new_event_loop()
        stop, close = stalls.watch(loop, _stalls.append), loop.close

        def close_watched() -> None:
            stop()
            close()

        loop.close = close_watched  # type: ignore[method-assign]
        return loop

    asyncio.events.new_event_loop = new_watched_loop


def stalls_in(follower: Follower) -> Iterator[str]:
    """The stalls of the daemon since the last call, in this process and in others, in words."""
    own, _stalls[:] = list(_stalls), []
    if sys.gettrace() is None:  # coverage takes time, too
        long = (stall for stall in own if is_long(stall.kind, stall.ms, stall.cpu_ms))
        yield from (stalls.describe(stall) for stall in long if is_fault(stall.kind, _frames(stall)))
    for line in follower.read():
        if line["message"].startswith("stall: "):
            head, *frames = line["message"].split("\n")
            places = [tuple(frame.strip().split(" ", 1)) for frame in frames]
            times = _TIMES.search(head)
            counts = times is None or is_long(times[2], float(times[1]), float(times[3]))
            if counts and is_fault(head.partition("(")[2].partition(";")[0], places):
                yield f"{line['process']}: {line['message']}"


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


def _frames(stall: stalls.Stall) -> list[tuple[str, str]]:
    return [(f"{_place(file)}:{line}", function) for file, line, function in stall.stack]


def _place(file: str) -> Any:
    return f"tests/{os.path.basename(file)}" if f"{os.sep}tests{os.sep}" in file else short_path(file)
