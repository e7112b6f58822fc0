"""Limits how long the load of a folder may work, and lets long loads take turns.

1. A load checks its deadline before each file that it reads, parses or checks, and between steps. The work
   between two checks is bounded by the size of one file.
2. A load ends after some seconds of work, or because a newer one supersedes it. A superseded load continues
   for PATIENCE_S: most finish by then, and their result counts.
3. A load that has computed for QUICK_S takes turns with all others that have, first come, first served. So a
   quick load has the interpreter almost to itself. Waiting does not count as work.
4. `LoadStopped` ends a load. Like `asyncio.CancelledError` it is not an `Exception`, so that code which
   contains the failures of one file does not catch it.
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
LONGEST_TURN_S = 0.5  # ten turns


class LoadStopped(BaseException):
    """Raised if a load must stop before it is complete. `path` is what it would have processed next.

    `superseded` is true if a newer load replaces it, and false if it has used up its `seconds` of work.
    """

    def __init__(self, path: str, *, superseded: bool, seconds: float) -> None:
        super().__init__(f"the load was stopped before {path}")
        self.path = path
        self.superseded = superseded
        self.seconds = seconds


class Turns:
    """Lets one load at a time continue, in the order of their requests.

    A load that keeps its turn for LONGEST_TURN_S is waiting for something, such as a disk that does not
    respond: the next one takes over.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[tuple[object, threading.Event]] = deque()
        self._owner: object | None = None
        self._since = 0.0

    def take(self, owner: object) -> None:
        """Wait until it is the turn of `owner`, a load."""
        turn = threading.Event()
        with self._lock:
            if self._owner is None:
                self._pass_to(owner)
                return
            self._waiting.append((owner, turn))
        while not turn.wait(LONGEST_TURN_S):
            with self._lock:
                is_next = not turn.is_set() and self._waiting[0][0] is owner
                if is_next and time.monotonic() - self._since >= LONGEST_TURN_S:
                    self._waiting.popleft()
                    self._pass_to(owner)
                    return

    def give(self, owner: object) -> None:
        """Pass the turn of `owner` to the next load that waits.

        Nothing happens if another load has taken over.
        """
        with self._lock:
            if self._owner is not owner:
                return
            if not self._waiting:
                self._owner = None
                return
            next_owner, turn = self._waiting.popleft()
            self._pass_to(next_owner)
            turn.set()

    def _pass_to(self, owner: object) -> None:
        self._owner, self._since = owner, time.monotonic()


class Deadline:
    """Tells one load when to stop: after so many seconds of work, or soon after it is superseded.

    The load's thread calls `check` within `with deadline:`. Any thread may supersede the load. `turns` are
    shared with other loads.
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
            self._turns.give(self)
            self._turn_ends = None

    def supersede(self) -> None:
        """Let this load end soon, as a newer one is requested."""
        self._superseded.set()

    def check(self, path: str) -> None:
        """Raise LoadStopped if the load has to end. Otherwise wait while it is the turn of another load.

        `path` is what the load would process next.
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
            turns.give(self)
        turns.take(self)
        began = self._clock()
        self._started += began - now
        self._turn_ends = began + TURN_S
