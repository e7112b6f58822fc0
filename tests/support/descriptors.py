"""What a process has open, on Linux."""

import contextlib
import os


def open_files(process_id: int | str = "self") -> dict[str, str]:
    """The descriptors of a process with what each leads to, but those that close meanwhile."""
    directory, targets = f"/proc/{process_id}/fd", dict[str, str]()
    for number in os.listdir(directory):
        with contextlib.suppress(FileNotFoundError):
            targets[number] = os.readlink(f"{directory}/{number}")
    return targets
