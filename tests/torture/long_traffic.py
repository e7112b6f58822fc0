"""Hours of work, compressed: memory, descriptors, threads and watches of the shared daemon stay as they are.

1. A window stays; others come and go, in order or killed. Their users type, chat, read conversations, start
   agents, publish events, change files and folders, and run commands, as fast as the daemon answers.
2. What the daemon holds is measured every second. In the last quarter the median must be what it was in the
   second one, but for a small growth: the ledger's file and its caches grow with it.
3. When all windows but the first have left, the daemon has as many connections, descriptors and watches as
   when it had only this one before.
4. The log has no error.
"""

import contextlib
import random
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from support.client import ReplyError
from support.editor import Editor
from support.shared import SharedHome, shared_home
from support.waiting import block_until
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong
from torture.resources import MORE_DESCRIPTORS, Resources, resources_of, settled_resources
from torture.traffic import ACTIONS, Desk, make_folder

NAME = "long traffic"
USERS = 3
FOLDERS = 4
SAMPLE_S = 0.5
LEAST_SAMPLES = 240  # with fewer the caches are still filling: too short for a verdict
LEAVE_S = 20.0
COLLECT_S = 6.0  # after the last window has left; see `listener.COLLECT_S`
REPLY_S = 20.0
MORE_PERCENT = 8.0  # memory, from the second to the last quarter
MORE_THREADS = 16  # pools fill up to their busiest moment; a leak is one a window, thus hundreds
MORE_WATCHES = 4


class _Run(NamedTuple):
    """What came of the traffic."""

    samples: list[Resources]
    seconds: float
    before: Resources  # with one window
    after: Resources
    survived: bool


class User:
    """A thread that works in one window after another until it is stopped."""

    def __init__(self, home: SharedHome, roots: Sequence[Path], dice: random.Random) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self._home = home
        self._roots = roots
        self._dice = dice
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(LEAVE_S)
        if self._thread.is_alive():
            self.failures.append("a window hangs")

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with self._home.window() as window:
                    self._work(window)
            except Exception as error:  # noqa: BLE001 - the outcome says so
                self.failures.append(f"{type(error).__name__}: {str(error)[:400]}")
                time.sleep(0.1)

    def _work(self, window: Editor) -> None:
        """Use one window for a while."""
        roots = self._dice.sample(self._roots, self._dice.randint(1, len(self._roots)))
        window.hello(*roots)
        desk = Desk(window, self._home, roots, self._dice)
        actions, weights = list(ACTIONS), list(ACTIONS.values())
        self.counts["windows"] += 1
        for _ in range(self._dice.randint(10, 60)):
            if self._stopped.is_set():
                break
            action = self._dice.choices(actions, weights)[0]
            with contextlib.suppress(
                ReplyError
            ):  # another window has deleted or changed it; the log has bugs
                action(desk)
            self.counts[action.__name__] += 1
        self.counts["requests"] += desk.requests
        if self._dice.random() < 0.7:
            window.stop()


def run(seconds: int, seed: int = 1) -> Outcome:
    """Traffic for so many seconds."""
    watch, wrong, counts = Watch(), list[str](), Counter[str]()
    with (
        tempfile.TemporaryDirectory() as directory,
        shared_home(Path(directory, "home"), has_own_log=True) as home,
    ):
        roots = [Path(directory, f"work{number}") for number in range(FOLDERS)]
        for root in roots:
            make_folder(root)
        with home.window() as window:
            window.hello(roots[0])
            outcome = _traffic(home, window, roots, seconds, dice_of(seed), counts, wrong)
            window.stop()
        wrong += home.logged_errors()
    return Outcome(
        NAME, (*_figures(outcome, counts), nothing_wrong(wrong)), tuple(wrong), seconds=watch.seconds
    )


def _traffic(
    home: SharedHome,
    window: Editor,
    roots: Sequence[Path],
    seconds: int,
    dice: random.Random,
    counts: Counter[str],
    wrong: list[str],
) -> _Run:
    pid = home.pid()
    assert pid is not None
    window.ask("context/usage", roots[0])
    before, samples = resources_of(pid), list[Resources]()
    users = [User(home, roots, dice_of(dice.random())) for _ in range(USERS)]
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        time.sleep(SAMPLE_S)
        samples.append(resources_of(pid))
        window.ask("context/usage", roots[0])
        window.received.clear()
        window.unread.clear()
    lasted_s = time.monotonic() - begun
    for user in users:
        user.stop()
        wrong += user.failures
        counts += user.counts
    block_until(lambda: window.request("nexus/status", {})["connections"] == 1, LEAVE_S)
    time.sleep(COLLECT_S)
    return _Run(samples, lasted_s, before, settled_resources(pid, before, LEAVE_S), home.pid() == pid)


def _figures(run: _Run, counts: Counter[str]) -> tuple[Figure, ...]:
    quarter = len(run.samples) // 4
    second, last = run.samples[quarter : 2 * quarter], run.samples[-quarter:]

    def growth(name: str) -> float:
        """By how much the median of the last quarter exceeds that of the second."""
        first, then = (
            statistics.median(float(getattr(one, name)) for one in part) for part in (second, last)
        )
        return then - first

    memory = statistics.median(one.resident for one in second)
    is_long = len(run.samples) >= LEAST_SAMPLES
    return (
        Figure("minutes", run.seconds / 60),
        Figure("windows", counts["windows"], at_least=1),
        Figure("requests", counts["requests"], at_least=1),
        Figure("turns", counts["chat"]),
        Figure("commands", counts["run_command"]),
        Figure("the daemon lives", int(run.survived), at_least=1),
        Figure("memory in the second quarter", memory / 1e6, "MB"),
        Figure(
            "more in the last quarter",
            growth("resident") / memory * 100,
            "%",
            at_most=MORE_PERCENT if is_long else None,
        ),
        Figure("more descriptors", growth("descriptors"), at_most=MORE_DESCRIPTORS if is_long else None),
        Figure("more threads", growth("threads"), at_most=MORE_THREADS if is_long else None),
        Figure("more watches", growth("watches"), at_most=MORE_WATCHES if is_long else None),
        Figure(
            "descriptors left over in the end",
            run.after.descriptors - run.before.descriptors,
            at_most=2 * MORE_DESCRIPTORS,
        ),
        Figure("watches left over in the end", run.after.watches - run.before.watches, at_most=0),
        Figure("memory in the end", run.after.resident / 1e6, "MB"),
    )
