"""Measures the daemon that all windows share, and commands beside it: `python -m benchmarks.windows`.

1. Memory: ten windows on one daemon (with their forwarders), beside ten processes that serve one window each.
   Pages that processes share count by their share.
2. Many clients at once: each sends requests at a fixed rate, whatever the replies take.
3. Commands, from their start to their end: without a daemon, and where one runs.
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from benchmarks.documents import config
from benchmarks.figures import Series
from benchmarks.lsp_client import Client, ServerError, request
from benchmarks.processes import proportional_mb
from benchmarks.servers import CONFIG, ROOT, Lane, Sandbox, end_shared_daemon, initialize_params

WINDOWS = 10
CLIENTS = 20
RATE = 50  # requests a second of each client
LASTING_S = 10.0
COMMANDS = 20  # runs of each command
SETTLE_S = 2.0
LINES = 60
EXAMPLE = ROOT / "examples/company/backend/auth-service"

MEMORY_MOST_RATIO = 0.25
REPLY_MOST_MS = 100.0
VERSION_MOST_MS = 60.0
CHECK_MOST_MS = 150.0
WARM_CHECK_MOST_MS = 60.0


class Row(msgspec.Struct, frozen=True):
    """One figure with its target, as a table shows it."""

    name: str
    value: str
    target: str
    passed: bool


def main() -> int:
    """Print the figures; 1 if one of them misses its target."""
    options = _options()
    command = tuple(shlex.split(options.nexus))
    steps: dict[str, Callable[[tuple[str, ...]], list[Row]]] = {
        "memory": _memory,
        "clients": _clients,
        "commands": _commands,
    }
    rows = [row for name, step in steps.items() if name in (options.only or steps) for row in step(command)]
    print("| | figure | target | |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.name} | {row.value} | {row.target} | {'pass' if row.passed else 'MISS'} |")
    return 0 if all(row.passed for row in rows) else 1


# ---------------------------------------------------------------- memory


def _memory(command: tuple[str, ...]) -> list[Row]:
    alone = _weigh(command, shared=False)
    shared = _weigh((*command, "--remote=auto"), shared=True)
    ratio = shared / alone
    return [
        Row(
            f"memory of {WINDOWS} windows on one daemon",
            f"{shared:.0f} MB, {ratio:.2f} × of {alone:.0f} MB in {WINDOWS} processes",
            f"≤ {MEMORY_MOST_RATIO:g} ×",
            ratio <= MEMORY_MOST_RATIO,
        )
    ]


def _weigh(command: tuple[str, ...], *, shared: bool) -> float:
    """The memory in MB of ten windows, each with a folder of its own and an open conversation."""
    with ExitStack() as stack:
        sandbox = _sandbox(stack)
        lane = Lane("nexus", "push", command)
        windows = []
        for number in range(WINDOWS):
            folder = _folder(sandbox, number)
            client = _window(stack, lane, sandbox, [folder])
            about = {"workspaceFolder": folder.as_uri()}
            client.request("nexus/context/assemble", about | {"message": "What is next?"})
            windows.append(client)
        time.sleep(SETTLE_S)
        processes = [client.process.pid for client in windows]
        if shared:
            stack.callback(end_shared_daemon, lane, sandbox)
            processes.append(_daemon(sandbox))
        return sum(map(proportional_mb, processes))


# ---------------------------------------------------------------- many clients


def _clients(command: tuple[str, ...]) -> list[Row]:
    with ExitStack() as stack:
        sandbox = _sandbox(stack)
        lane = Lane("nexus", "push", (*command, "--remote=auto"))
        stack.callback(end_shared_daemon, lane, sandbox)
        folder = _folder(sandbox, 0)
        clients = [_window(stack, lane, sandbox, [folder]) for _ in range(CLIENTS)]
        results: list[_Load] = []
        threads = [
            threading.Thread(target=lambda client=client: results.append(_load(client, folder)))
            for client in clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    waits = sorted(wait for result in results for wait in result.waits_ms)
    failures = sum(result.failures for result in results)
    p50, p99 = waits[len(waits) // 2], waits[-(-len(waits) * 99 // 100) - 1]
    return [
        Row(
            f"{CLIENTS} clients at {RATE} requests a second each, p99",
            f"{p99:.1f} ms (p50 {p50:.1f} ms, {len(waits):,} requests)",
            f"≤ {REPLY_MOST_MS:g} ms",
            p99 <= REPLY_MOST_MS,
        ),
        Row("errors and missing replies of these", f"{failures}", "0", failures == 0),
    ]


class _Load(msgspec.Struct):
    """What one client measured: milliseconds from when a request was due to its reply."""

    waits_ms: list[float] = []
    failures: int = 0


def _load(client: Client, folder: Path) -> _Load:
    """Send requests at a rate; one that had to wait for its predecessor counts from when it was due."""
    result = _Load()
    about = {"workspaceFolder": folder.as_uri()}
    methods = ("nexus/context/usage", "nexus/context/preview", "nexus/session/list", "nexus/tokens/count")
    began = time.perf_counter()
    for number in range(int(RATE * LASTING_S)):
        due = began + number / RATE
        time.sleep(max(due - time.perf_counter(), 0))
        method = methods[number % len(methods)]
        params = {"texts": [f"Text {number}"]} if method == "nexus/tokens/count" else about
        try:
            client.request(method, params)
        except (ServerError, TimeoutError, EOFError):
            result.failures += 1
            continue
        result.waits_ms.append((time.perf_counter() - due) * 1e3)
    return result


# ---------------------------------------------------------------- commands


def _commands(command: tuple[str, ...]) -> list[Row]:
    nexus = command[: command.index("serve")]
    check = [*nexus, "check", str(EXAMPLE)]
    with ExitStack() as stack:
        sandbox = _sandbox(stack)
        python = _time([sys.executable, "-c", "pass"], sandbox)
        version, cold = _time([*nexus, "--version"], sandbox), _time(check, sandbox)
        lane = Lane("nexus", "push", (*command, "--remote=auto"))
        stack.callback(end_shared_daemon, lane, sandbox)
        _window(stack, lane, sandbox, [_folder(sandbox, 0)])
        warm = _time(check, sandbox)
    rows = (
        ("python -c pass", python, None),
        ("nexus --version", version, VERSION_MOST_MS),
        ("nexus check of the example, no daemon", cold, CHECK_MOST_MS),
        ("nexus check of the example, in the daemon", warm, WARM_CHECK_MOST_MS),
    )
    return [
        Row(
            f"{name}, p50",
            f"{series.p50:.0f} ms (best {min(series.values):.0f} ms)",
            "" if most is None else f"≤ {most:g} ms",
            most is None or series.p50 <= most,
        )
        for name, series, most in rows
    ]


def _time(command: Sequence[str], sandbox: Sandbox) -> Series:
    values = []
    for number in range(COMMANDS + 1):
        began = time.perf_counter()
        subprocess.run(command, env=sandbox.environment, cwd=sandbox.root, capture_output=True, check=False)
        if number:  # the first one reads the files from the disk
            values.append((time.perf_counter() - began) * 1e3)
    return Series("command", "nexus", "ms", tuple(values))


# ---------------------------------------------------------------- windows


def _sandbox(stack: ExitStack) -> Sandbox:
    root = stack.enter_context(tempfile.TemporaryDirectory(prefix="nexus-bench-"))
    return Sandbox(Path(root), os.environ["PATH"])


def _folder(sandbox: Sandbox, number: int) -> Path:
    path = sandbox.root / "folders" / f"folder-{number:02}"
    (path / ".nexus3").mkdir(parents=True)
    (path / CONFIG).write_text(config(LINES, "schema").text, encoding="utf-8")
    (path / "NEXUS.md").write_text(f"# Folder {number}\n\nUse the style of this folder.\n" * 5)
    return path


def _window(stack: ExitStack, lane: Lane, sandbox: Sandbox, folders: list[Path]) -> Client:
    client = Client(lane.command, cwd=sandbox.root, env=sandbox.environment)
    stack.callback(client.kill)
    number = client.next_id()
    client.exchange(request(number, "initialize", initialize_params(lane, folders[0])), number)
    client.notify("initialized", {})
    client.request("nexus/context/usage", {"workspaceFolder": folders[0].as_uri()})
    return client


def _daemon(sandbox: Sandbox) -> int:
    """The process of the shared daemon of a sandbox."""
    (lock,) = Path(sandbox.environment["XDG_RUNTIME_DIR"], "nexus").glob("*.lock")
    return int(lock.read_text())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=("memory", "clients", "commands"))
    parser.add_argument(
        "--nexus", default=f"{Path(sys.executable).with_name('nexus')} serve", help="the daemon's command"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
