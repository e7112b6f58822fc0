"""Processes that write and read one ledger until they are killed or done.

1. A process is forked from a server that has imported everything and opened nothing: it starts in
   milliseconds.
2. It says what it did on a pipe, a line at a time, and only after the ledger's method has returned: `ack
   <session> <key> <seq>`. A line that was cut off by a kill was not said.
3. Nothing is caught but what the ledger promises to raise: any other exception ends the process with a
   traceback, and its exit code tells.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any

from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.store import Ledger
from torture.ledgers import MAIN, WORKSPACE, compaction, opened, parts_of, turn, words_of

CHUNK = 1 << 16  # bytes read from a pipe at once
IMPORTED = 5  # turns of one import
IMPORT_EVERY = 7  # writes
FORK_EVERY = 11
COMPACT_EVERY = 9
PATIENCE_S = 60.0

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torture.children", "nexus_context.ledger.opening"])


class Child:
    """A process and what it has said so far."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        reader, writer = _context.Pipe(duplex=False)
        self.process = _context.Process(target=_begin, args=(work, writer, *arguments), daemon=True)
        self.process.start()
        writer.close()
        self._reader = reader
        os.set_blocking(reader.fileno(), False)
        self._heard = b""

    def kill(self) -> None:
        """SIGKILL: the process does not get to do anything more."""
        self.signal(signal.SIGKILL)
        self.process.join()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.process.pid is not None and self.process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def hear(self) -> list[list[str]]:
        """Everything said so far, line by line, in words."""
        self._listen()
        return [line.decode().split() for line in self._heard.split(b"\n")[:-1]]

    def _listen(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while more := os.read(self._reader.fileno(), CHUNK):
                self._heard += more

    def finish(self, patience: float = PATIENCE_S) -> list[list[str]]:
        """Waits for the end, listening meanwhile; kills it if there is none."""
        until = time.monotonic() + patience
        while self.process.exitcode is None and time.monotonic() < until:
            self._listen()
            self.process.join(0.02)
        if self.process.exitcode is None:
            self.kill()
            return [*self.hear(), ["hung"]]
        said = self.hear()
        return said if self.process.exitcode == 0 else [*said, ["died", str(self.process.exitcode)]]

    def close(self) -> None:
        self.kill()
        self._reader.close()
        self.process.close()


@contextlib.contextmanager
def children() -> Iterator[Callable[..., Child]]:
    """Starts processes; none is left at the end."""
    started: list[Child] = []
    _start_server()

    def start(work: Callable[..., None], *arguments: Any) -> Child:
        started.append(Child(work, *arguments))
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            each.close()


def _start_server() -> None:
    """The server imports by PYTHONPATH, not by our own path."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _begin(work: Callable[..., None], writer: Connection, *arguments: Any) -> None:
    work(Voice(writer), *arguments)


class Voice:
    """What a child says, each line with one call of the system."""

    def __init__(self, writer: Connection) -> None:
        self._writer = writer  # keeps the descriptor open
        os.set_blocking(writer.fileno(), True)

    def say(self, *words: object) -> None:
        os.write(self._writer.fileno(), (" ".join(map(str, words)) + "\n").encode())


# ------------------------------------------------------------ what children do


def write_everything(voice: Voice, path: str, name: str) -> None:
    """Appends to the main session for ever, turns of all sizes; now and then imports, forks or compacts."""
    with opened(path) as ledger:
        voice.say("open", ledger.persists)
        number = 0
        while True:
            number += 1
            key = f"{name}-{number}"
            done = ledger.append(WORKSPACE, MAIN, turn(key, words=words_of(key), parts=parts_of(key)))
            voice.say("ack", done.session, key, done.head.seq)
            if number % IMPORT_EVERY == 0:
                turns = [turn(f"{key}-{part}") for part in range(IMPORTED)]
                ledger.import_turns(WORKSPACE, f"import-{key}", turns)
                voice.say("imported", f"import-{key}")
            if number % FORK_EVERY == 0:
                ledger.fork(WORKSPACE, MAIN, f"fork-{key}", turn=done.turn)
                voice.say("forked", f"fork-{key}", done.head.seq)
            if number % COMPACT_EVERY == 0:
                _compact(ledger, f"compaction-{key}", done.head.seq)


def _compact(ledger: Ledger, name: str, seq: int) -> None:
    """A compaction, and its undoing; the other writer may be quicker with both."""
    try:
        ledger.compact(WORKSPACE, MAIN, compaction(name, seq))
        ledger.undo(WORKSPACE, MAIN, name)
    except LedgerError as error:
        if error.code not in ("head-moved", "unknown-compaction"):
            raise


def write_turns(voice: Voice, path: str, name: str, first: int, count: int, pause: float = 0.0) -> None:
    """Appends `count` turns to the main session; says each, and at the end how long each took, in ms."""
    took = []
    with opened(path) as ledger:
        for number in range(first, first + count):
            key = f"{name}-{number}"
            started = time.perf_counter()
            try:
                done = ledger.append(WORKSPACE, MAIN, turn(key, words=24))
            except LedgerError as error:
                voice.say("refused", key, error.code, str(error))
                continue
            took.append(1e3 * (time.perf_counter() - started))
            voice.say("ack", done.session, key, done.head.seq)
            if pause:
                time.sleep(pause)
    for place in range(0, len(took), 100):
        voice.say("took", *(f"{each:.3f}" for each in took[place : place + 100]))


def read_everything(voice: Voice, path: str) -> None:
    """Reads for ever, and says what does not fit together."""
    seen = 0
    with opened(path) as ledger:
        while True:
            head = ledger.head(WORKSPACE, MAIN)
            last = [each.seq for each in ledger.turns(WORKSPACE, MAIN, last=5)] if head else []
            history = ledger.history(WORKSPACE, MAIN, tokens=200) if head else None
            if head and head.seq < seen:
                voice.say("wrong", "a reader saw", seen, "turns and then", head.seq)
            if last and (last != list(range(last[0], last[0] + len(last))) or (head and last[-1] < head.seq)):
                voice.say("wrong", "a reader saw the head at", head and head.seq, "and turns", last)
            if history and head and history.head.seq < head.seq:
                voice.say("wrong", "a reader saw a history older than the head")
            seen = head.seq if head else 0
            voice.say("read", seen)
