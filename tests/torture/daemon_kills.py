"""kill -9 of the shared daemon under load, while windows write to one session and reconnect.

1. Several windows append turns as fast as they are confirmed, each turn with a key of its own, through real
   forwarders. At random moments the daemon is killed; every so often it is told to end (SIGTERM) instead.
2. A window gives up on nothing: a turn without a confirmation is sent again with its key, by the forwarder,
   and where two daemons died with it, by the window itself.
3. In the end every confirmed turn is in the ledger once, in the order of its window; no process of a daemon
   is left but the one that serves; a newcomer is served at once.
"""

import contextlib
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from nexus_daemon.shared import client
from nexus_daemon.shared.tracker import RESTARTED
from support.client import ReplyError
from support.editor import Editor
from support.shared import SharedHome, shared_home
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong, p95

NAME = "kill -9 of the shared daemon"
WINDOWS = 3
LATEST_KILL_S = 0.6  # after a daemon serves
TERM_EVERY = 5
NEXT_S = 30.0


class Writer:
    """A window that appends turns until it is told to stop."""

    def __init__(self, home: SharedHome, root: Path, name: str) -> None:
        self.name = name
        self.confirmed: list[str] = []
        self.waits: list[float] = []
        self.failure = ""
        self._stopped = threading.Event()
        self._root = root
        self._window: Editor = home.window()
        self._window.hello(root)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        try:
            while not self._stopped.is_set():
                text = f"{self.name}-{number}"
                started = time.monotonic()
                self._append(text)
                self.waits.append(time.monotonic() - started)
                self.confirmed.append(text)
                number += 1
        except Exception as error:  # noqa: BLE001 - the outcome says so
            self.failure = f"{self.name}: {error!r} after {number} turns; {self._window.stderr[-500:]}"

    def _append(self, text: str) -> None:
        """Append a turn under its key, as often as the reply is that its daemons died."""
        message = {"role": "user", "content": text}
        while True:
            try:
                self._window.ask("session/append", self._root, messages=[message], idempotencyKey=text)
            except ReplyError as error:
                if error.error["data"]["code"] != RESTARTED:
                    raise
            else:
                return

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(NEXT_S)
        self._window.kill()


def run(kills: int, seed: int = 1) -> Outcome:
    """So many ends of a daemon."""
    watch, dice, wrong = Watch(), dice_of(seed), list[str]()
    with tempfile.TemporaryDirectory() as directory, shared_home(Path(directory, "home")) as home:
        root = Path(directory, "work")
        root.mkdir()
        writers = [Writer(home, root, f"w{number}") for number in range(WINDOWS)]
        pids: set[int] = set()
        for number in range(kills):
            pid = _serving(home, pids, writers, dice)
            if pid is None:
                wrong.append(f"no daemon serves after end {number}")
                break
            pids.add(pid)
            os.kill(pid, signal.SIGTERM if number % TERM_EVERY == TERM_EVERY - 1 else signal.SIGKILL)
        for writer in writers:
            writer.stop()
        wrong += [writer.failure for writer in writers if writer.failure]
        with home.window() as newcomer:
            watch_newcomer = Watch()
            newcomer.hello(root)
            turns = _turns(newcomer, root)
            seconds = watch_newcomer.seconds
        lost, doubled, disordered = _compare(writers, turns)
        left = [pid for pid in daemons(home) if pid != home.pid()]
    waits = [wait for writer in writers for wait in writer.waits]
    figures = (
        Figure("ends of the daemon", len(pids)),
        Figure("confirmed turns", sum(len(writer.confirmed) for writer in writers), at_least=len(pids)),
        Figure("of them lost", lost, at_most=0),
        Figure("of them twice", doubled, at_most=0),
        Figure("out of order", disordered, at_most=0),
        Figure("longest wait of a window", max(waits, default=0.0), "s", at_most=NEXT_S),
        Figure("95 % of waits", p95(waits) * 1000, "ms"),
        Figure("processes left over", len(left), at_most=0),
        Figure("a newcomer is served after", seconds, "s", at_most=10),
        nothing_wrong(wrong),
    )
    return Outcome(NAME, figures, tuple(wrong), seconds=watch.seconds)


def _serving(home: SharedHome, before: set[int], writers: list[Writer], dice: random.Random) -> int | None:
    """The process of a daemon that serves, a random while after it confirmed a turn."""
    deadline = time.monotonic() + NEXT_S
    while time.monotonic() < deadline:
        pid = client.lock_owner(home.place)
        if pid is not None and pid not in before:
            # now and then before it has served anybody
            if dice.random() < 0.2:
                time.sleep(dice.uniform(0, 0.1))
                return pid
            count = sum(len(writer.confirmed) for writer in writers)
            while sum(len(writer.confirmed) for writer in writers) == count:
                if time.monotonic() > deadline or client.lock_owner(home.place) != pid:
                    break
                time.sleep(0.005)
            else:
                time.sleep(dice.uniform(0, LATEST_KILL_S))
                return pid
        time.sleep(0.005)
    return None


def _turns(window: Editor, root: Path) -> list[str]:
    messages = window.ask("session/messages", root)["messages"]
    return [one["content"] for one in messages if one["role"] == "user"]


def _compare(writers: list[Writer], turns: list[str]) -> tuple[int, int, int]:
    """The confirmed turns that are lost, twice and out of the order of their window."""
    lost = doubled = disordered = 0
    for writer in writers:
        own = [text for text in turns if text.startswith(f"{writer.name}-")]
        lost += len(set(writer.confirmed) - set(own))
        doubled += len(own) - len(set(own))
        numbers = [int(text.partition("-")[2]) for text in own]
        disordered += numbers != sorted(numbers)
    return lost, doubled, disordered


def daemons(home: SharedHome) -> list[int]:
    """The processes of daemons of this home that live."""
    listed = subprocess.run(["pgrep", "-x", "nexusd"], capture_output=True, text=True, check=False)
    pids = []
    for pid in map(int, listed.stdout.split()):
        with contextlib.suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if f"XDG_RUNTIME_DIR={home.runtime}".encode() in variables:
                pids.append(pid)
    return pids
