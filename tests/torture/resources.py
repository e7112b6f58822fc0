"""What the process of a daemon holds, by Linux's `/proc`."""

import os
import time
from pathlib import Path
from typing import NamedTuple

MORE_DESCRIPTORS = 12
"""Those of SQLite, three for each thread that has not read the ledger before, and no more."""

_WATCH = "inotify wd:"
_PAUSE_S = 0.2


class Resources(NamedTuple):
    """Resident bytes, open descriptors, threads, and the kernel's watches of directories."""

    resident: int
    descriptors: int
    threads: int
    watches: int


def resources_of(pid: int) -> Resources:
    """What a process holds now."""
    process = Path(f"/proc/{pid}")
    pages = int((process / "statm").read_text().split()[1])
    return Resources(
        resident=pages * os.sysconf("SC_PAGE_SIZE"),
        descriptors=len(os.listdir(process / "fd")),
        threads=len(os.listdir(process / "task")),
        watches=sum(_watches(entry) for entry in (process / "fdinfo").iterdir()),
    )


def settled_resources(pid: int, before: Resources, patience_s: float) -> Resources:
    """What a process holds once it has no more watches than before, or when that takes too long."""
    deadline = time.monotonic() + patience_s
    while (now := resources_of(pid)).watches > before.watches and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    return now


def _watches(entry: Path) -> int:
    try:
        return entry.read_text().count(_WATCH)
    except OSError:  # the descriptor was closed meanwhile
        return 0
