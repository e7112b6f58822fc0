"""The daemon that all windows share beside processes of their own and an echo; commands."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from benchmarks.documents import config
from benchmarks.lsp_client import FrameReader, ServerError, request
from benchmarks.processes import proportional_mb
from benchmarks.promises import ROOT, Measured, Promise, Run, Series, milliseconds, promises, take_turns
from benchmarks.servers import CONFIG, NEXUS, SHARED, Lane, initialize_params, started

WINDOWS = 10
CLIENTS = 20
SHARE = 0.5  # of its capacity, at which the waits of a server are measured
LASTING_S = 2.0  # of each turn with many clients
SETTLE_S = 2.0
ECHO = f"an echo on pygls, {CLIENTS} clients"
BARE = "python -c pass"


# ---------------------------------------------------------------- memory


@promises(Promise(f"memory of {WINDOWS} windows on one daemon", 0.22, f"{WINDOWS} processes", unit="MB"))
def memory(run: Run) -> Iterator[Measured]:
    """Ten windows, each with a folder and a conversation; pages that processes share count by their share."""
    separate = _weigh(run, Lane(NEXUS))
    yield f"memory of {WINDOWS} windows on one daemon", _weigh(run, Lane(SHARED)), separate


def _weigh(run: Run, lane: Lane) -> float:
    with ExitStack() as stack:
        processes = []
        for number in range(WINDOWS):
            folder = _folder(run, number)
            client, _ = stack.enter_context(started(lane, run, folder))
            params = {"workspaceFolder": folder.as_uri(), "message": "What is next?"}
            client.request("nexus/context/assemble", params)
            processes.append(client.process.pid)
        time.sleep(SETTLE_S)
        if lane.server == SHARED:
            (lock,) = Path(run.environ["XDG_RUNTIME_DIR"], "nexus").glob("*.lock")
            processes.append(int(lock.read_text()))
        return sum(map(proportional_mb, processes))


# ---------------------------------------------------------------- many clients


@promises(
    Promise(f"requests a second of {CLIENTS} clients", 0.4, ECHO, unit="/s", at_least=True),
    Promise(f"wait at {SHARE:.0%} of the capacity", 3.0, ECHO, "p99"),
    Promise("requests without a reply", 0, unit=""),
)
def clients(run: Run) -> Iterator[Measured]:
    """Many clients on a server's socket: first each sends as fast as replies come, then all at a fixed rate.

    Both servers get the same requests and reply as they must; a wait counts from when a request was due.
    """
    folder = _folder(run, 0)
    with ExitStack() as stack:
        stack.enter_context(started(Lane(SHARED), run, folder))
        (path,) = Path(run.environ["XDG_RUNTIME_DIR"], "nexus").glob("*.sock")
        crowds = {
            "nexus": Crowd(stack, path, folder),
            "echo": Crowd(stack, _start_echo(stack, run), folder, "echo"),
        }
        rounds = run.pick(full=5, quick=2)
        steps = {name: crowd.measure_capacity for name, crowd in crowds.items()}
        capacity = take_turns(steps, rounds)
        yield f"requests a second of {CLIENTS} clients", capacity["nexus"], capacity["echo"]
        loads = {
            name: partial(crowd.load, SHARE * capacity[name].at("p50")) for name, crowd in crowds.items()
        }
        take_turns(loads, rounds)
    nexus, echo = (Series(crowd.waits_ms) for crowd in crowds.values())
    yield f"wait at {SHARE:.0%} of the capacity", nexus, echo
    yield "requests without a reply", crowds["nexus"].failures
    run.note(
        "Twenty clients, ms of wait", "nexus", p50=nexus.at("p50"), p99=nexus.at("p99"), n=len(nexus.values)
    )
    run.note("Twenty clients, ms of wait", "echo", p50=echo.at("p50"), p99=echo.at("p99"), n=len(echo.values))


class Crowd:
    """Clients of one server, each a thread with a connection of its own."""

    METHODS = ("nexus/context/usage", "nexus/context/preview", "nexus/session/list", "nexus/tokens/count")

    def __init__(self, stack: ExitStack, path: Path, folder: Path, method: str = "") -> None:
        self._connections = [Connection(stack, path, folder) for _ in range(CLIENTS)]
        self._about = {"workspaceFolder": folder.as_uri()}
        self._method = method
        self.waits_ms: list[float] = []
        self.failures = 0

    def measure_capacity(self) -> float:
        """Replies a second when each client sends as soon as it has its reply."""
        counts: list[int] = []
        until = time.perf_counter() + LASTING_S

        def send(connection: "Connection") -> None:
            count = 0
            while time.perf_counter() < until:
                count += self._exchange(connection, count)
            counts.append(count)

        self._with_all(send)
        return sum(counts) / LASTING_S

    def load(self, rate: float) -> float:
        """Send `rate` requests a second; one that had to wait for another counts from when it was due."""
        period = CLIENTS / rate
        began = time.perf_counter()

        def send(connection: "Connection") -> None:
            for number in range(int(LASTING_S / period)):
                due = began + (number + self._connections.index(connection) / CLIENTS) * period
                time.sleep(max(due - time.perf_counter(), 0))
                if self._exchange(connection, number):
                    self.waits_ms.append((time.perf_counter() - due) * 1e3)

        self._with_all(send)
        return 0.0

    def _exchange(self, connection: "Connection", number: int) -> bool:
        method = self.METHODS[number % len(self.METHODS)]
        params = {"texts": [f"Text {number}"]} if method == "nexus/tokens/count" else self._about
        is_answered = connection.exchange(self._method or method, params)
        self.failures += not is_answered
        return is_answered

    def _with_all(self, send: Callable[["Connection"], None]) -> None:
        threads = [threading.Thread(target=send, args=(connection,)) for connection in self._connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class Connection:
    """A client on a server's socket."""

    def __init__(self, stack: ExitStack, path: Path, folder: Path) -> None:
        self._socket = stack.enter_context(socket.socket(socket.AF_UNIX))
        self._socket.connect(str(path))
        self._reader = FrameReader(self._socket.fileno(), reuse=True)
        self._number = 0
        if not self.exchange("initialize", initialize_params(folder)):
            raise ServerError("refuses to initialize")

    def exchange(self, method: str, params: dict[str, Any]) -> bool:
        """Send a request and wait for its reply; whether that is a result."""
        self._number += 1
        self._socket.sendall(request(self._number, method, params))
        while True:
            message = msgspec.json.decode(self._reader.read(time.perf_counter() + 30).body)
            if message.get("id") == self._number and "method" not in message:
                return "result" in message


def _start_echo(stack: ExitStack, run: Run) -> Path:
    path = run.root / "echo.sock"
    command = [sys.executable, "-m", "benchmarks.echo_server", str(path)]
    process = subprocess.Popen(command, cwd=ROOT, env=run.environ)
    stack.callback(process.wait)
    stack.callback(process.kill)
    while not path.exists() and process.poll() is None:
        time.sleep(0.05)
    return path


# ---------------------------------------------------------------- commands


@promises(
    Promise("nexus --version", 2.0, BARE),
    Promise("nexus check of a small folder, no daemon", 7.0, BARE),
    Promise("nexus check of a small folder, in the daemon", 2.5, BARE),
)
def commands(run: Run) -> Iterator[Measured]:
    """Commands from their start to their end, beside an interpreter that does nothing."""
    rounds = run.pick(full=30, quick=8)
    bare = [sys.executable, "-c", "pass"]
    folder = run.folder(
        "small", {CONFIG: '{"provider": {"model": "gpt-4o"}}', "NEXUS.md": "Answer briefly.\n"}
    )
    check = [*run.nexus, "check", str(folder)]
    alone = take_turns(
        _timers(run, {BARE: bare, "version": [*run.nexus, "--version"], "check": check}), rounds
    )
    yield "nexus --version", alone["version"], alone[BARE]
    yield "nexus check of a small folder, no daemon", alone["check"], alone[BARE]
    with started(Lane(SHARED), run, folder):
        turns = take_turns(_timers(run, {BARE: bare, "check": check}), rounds)
    yield "nexus check of a small folder, in the daemon", turns["check"], turns[BARE]


def _timers(run: Run, named: dict[str, Sequence[str]]) -> dict[str, Callable[[], float]]:
    return {name: partial(milliseconds, partial(run.execute, command)) for name, command in named.items()}


def _folder(run: Run, number: int) -> Path:
    rules = f"# Folder {number}\n\nUse the style of this folder.\n" * 5
    return run.folder(f"folder-{number:02}", {CONFIG: config(60, "schema").text, "NEXUS.md": rules})
