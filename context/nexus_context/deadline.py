"""When a load has to end, and when it has to let others work.

1. A load asks at each check point: before each file that is read, parsed or checked, and between steps.
   Its work between two of them is bounded by the size of one file.
2. A load ends after some seconds of work, or because a newer one supersedes it. One that is superseded goes
   on for PATIENCE_S: most are done by then, and what they found counts.
3. A load that has computed for QUICK_S takes turns with all others that have, one at a time, in the order in
   which they came: so one that is quick has the interpreter almost to itself. Waiting is no work.
4. What ends a load is `LoadStopped`. It is no `Exception`, as `asyncio.CancelledError` is none: whoever
   contains the failures of one file must not contain this.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Self

LOAD_S = 30.0
"""The seconds of work that a daemon gives the load of one folder."""
PATIENCE_S = 1.0
QUICK_S = 0.05  # of a thread's own computing
TURN_S = 0.05


class LoadStopped(BaseException):
    """A load was ended before it was done. `path` is what was to be looked at next.

    `superseded`: a newer one is wanted; else it has taken all of its `seconds`.
    """

    def __init__(self, path: str, *, superseded: bool, seconds: float) -> None:
        super().__init__(f"the load was stopped before {path}")
        self.path = path
        self.superseded = superseded
        self.seconds = seconds


class Turns:
    """Lets one thread at a time go on, in the order in which they asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._taken = False

    def take(self) -> None:
        """Wait for a turn."""
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            turn = threading.Event()
            self._waiting.append(turn)
        turn.wait()

    def give(self) -> None:
        """End one's turn: the next one that waits has it."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False


class Deadline:
    """The end of one load, after so many seconds of work. Any thread may supersede the load.

    One thread asks, within `with deadline:`. `turns` are those that it shares with other loads.
    """

    def __init__(
        self, seconds: float, turns: Turns | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._turns = turns
        self._clock = clock
        self._started = clock()  # and later by as much as it has waited
        self._turn_ends: float | None = None  # None: it has no turn
        self._computed = 0.0  # by this thread before the load
        self._superseded = threading.Event()

    def __enter__(self) -> Self:
        self._started = self._clock()
        self._computed = time.thread_time()
        return self

    def __exit__(self, *_: object) -> None:
        if self._turns is not None and self._turn_ends is not None:
            self._turns.give()
            self._turn_ends = None

    def supersede(self) -> None:
        """A newer load is wanted: let this one end soon."""
        self._superseded.set()

    def check(self, path: str) -> None:
        """Raise LoadStopped if the load has to end; `path` is what it would look at next.

        Waits where it is the turn of others.
        """
        now = self._clock()
        past = now - self._started
        superseded = self._superseded.is_set() and past > PATIENCE_S
        if superseded or past > self._seconds:
            raise LoadStopped(path, superseded=superseded, seconds=self._seconds)
        if self._turns is not None:
            self._take_turn(self._turns, now)

    def _take_turn(self, turns: Turns, now: float) -> None:
        if self._turn_ends is None:
            if time.thread_time() - self._computed < QUICK_S:
                return
        elif now < self._turn_ends:
            return
        else:
            turns.give()
        turns.take()
        began = self._clock()
        self._started += began - now
        self._turn_ends = began + TURN_S
