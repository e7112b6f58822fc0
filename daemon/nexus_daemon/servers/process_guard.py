"""End the servers of a daemon that was killed: a process that outlives the daemon for a moment does it.

1. The guard reads process groups from its standard input, and ends those that are left when the input closes:
   nothing else tells that a process was killed with SIGKILL.
2. The guard is started with the first server and imports next to nothing. It is in a session of its own, so a
   signal that ends the daemon's process group does not end the guard.
"""

import contextlib
import subprocess
import sys
import threading

_SCRIPT = """
import os, signal, sys, time
groups = set()
for line in sys.stdin:
    sign, number = line[0], int(line[1:])
    groups.add(number) if sign == "+" else groups.discard(number)
for number, wait in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 0.0)):
    for group in groups:
        try:
            os.killpg(group, number)
        except OSError:
            pass
    if groups:
        time.sleep(wait)
"""


class ProcessGuard:
    """The guard of this process. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._groups: set[int] = set()
        self._is_closed = False

    def add(self, group: int) -> None:
        """Have the guard end this process group when this process is gone.

        OSError if the guard cannot start.
        """
        with self._lock:
            self._groups.add(group)
            if self._is_closed:
                return
            if self._process is None or self._process.poll() is not None:
                self._process = _start()
                for other_group in self._groups - {group}:
                    self._tell(f"+{other_group}\n")
            self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Take note that the process group has ended."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """End the guard, which ends the groups that are left."""
        with self._lock:
            process, self._process, self._is_closed = self._process, None, True
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
            threading.Thread(target=process.wait, daemon=True, name="nexus-guard").start()

    def _tell(self, line: str) -> None:
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.write(line)
                process.stdin.flush()


def _start() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
