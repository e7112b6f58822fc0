"""What the process of a daemon holds, by Linux's `/proc`."""

import os
from pathlib import Path
from typing import NamedTuple

_WATCH = "inotify wd:"


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


def _watches(entry: Path) -> int:
    try:
        return entry.read_text().count(_WATCH)
    except OSError:  # the descriptor was closed meanwhile
        return 0
