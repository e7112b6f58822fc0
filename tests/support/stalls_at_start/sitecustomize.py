"""Watches the event loops of daemons that tests start: Python imports this module before any of ours.

1. It is on the PYTHONPATH of the tests (`support/stall_rule.py`) and does nothing but where `NEXUS_STALLS`
   names a file. There every stall becomes a line: a process appends it at once, and may be killed afterwards.
2. Tests measure what start-up imports. So a process imports nothing more than this module, which imports
   nothing, until it imports the daemon's log. Nexus takes this directory off its search path where it lies in
   the working directory, hence the watchdog is loaded by its path.
3. A daemon is watched for as long as it logs, on the loop on which it does. What it imports before that
   delays nobody but its first client.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from support.stalls_at_start.stall_watchdog import Stall

LOG = "nexus_daemon.process.logs.process_log"


class LogFinder:
    """Finds the module of the daemon's log as Python does, once, and has it watch the loop."""

    @staticmethod
    def find_spec(name: str, path: "Sequence[str] | None", target: object = None) -> "ModuleSpec | None":
        if name != LOG:
            return None
        sys.meta_path.remove(LogFinder)
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_watch(module: "ModuleType") -> None:
            execute(module)
            watch_while_logging(module)

        spec.loader.exec_module = execute_and_watch  # type: ignore[method-assign]
        return spec


def watch_while_logging(process_log: "ModuleType") -> None:
    """Replace `logging_process` by one that watches the running loop during the block."""
    import asyncio
    from contextlib import contextmanager

    logging_process = process_log.logging_process

    @contextmanager
    def watched(*arguments: object, **options: object) -> "Iterator[None]":
        stop = load_watchdog().watch(asyncio.get_running_loop(), append_stall)
        try:
            with logging_process(*arguments, **options):
                yield
        finally:
            stop()

    process_log.logging_process = watched  # type: ignore[attr-defined]


def load_watchdog() -> "ModuleType":
    from importlib.machinery import SourceFileLoader
    from types import ModuleType

    watchdog = ModuleType("stall_watchdog")
    path = os.path.join(os.path.dirname(__file__), "stall_watchdog.py")
    SourceFileLoader(watchdog.__name__, path).exec_module(watchdog)
    return watchdog


def append_stall(stall: "Stall") -> None:
    """Append a stall to the file of the tests, with the command of this process."""
    import json  # with the first stall only

    command = " ".join(" ".join(sys.orig_argv).split())
    line = json.dumps([f"{os.getpid()}: {command}"[:200], *stall]) + "\n"
    descriptor = os.open(os.environ["NEXUS_STALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


if "NEXUS_STALLS" in os.environ:
    sys.meta_path.insert(0, LogFinder)
