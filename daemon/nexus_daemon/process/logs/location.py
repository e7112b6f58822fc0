"""Find the log's directory, and the level that processes write: the same for all processes of a state
directory.

1. The log is in $NEXUS_LOG, else in `logs` in $NEXUS_STATE, else in `nexus/logs` in the system's directory
   for user state, beside the ledger.
2. Processes write records from INFO on, unless the file `level` in that directory sets another level. This
   JSON file has a level and the time until which it holds. `nexus logs --record debug` writes it, and running
   processes notice it within seconds.
"""

import logging
import os
import time
from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from nexus_context.disk.user_state import state_directory
from nexus_context.text.decoding import decode_as
from nexus_daemon.process.state_files import write_file

NAME = "nexus.log"
LEVEL_FILE = "level"
Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[str, ...] = get_args(Level)
_LARGEST = 1024  # bytes of the file that are read


class RecordedLevel(msgspec.Struct, frozen=True):
    """The level of the records that processes write, until a time in seconds since 1970."""

    level: Level
    until: float

    @property
    def number(self) -> int:
        return logging.getLevelNamesMapping()[self.level.upper()]


def log_directory(environ: Mapping[str, str]) -> str:
    """Return the absolute path of the log's directory.

    NoStateDirectoryError if no variable says where it is.
    """
    if path := environ.get("NEXUS_LOG"):
        return os.path.abspath(path)
    return os.path.join(state_directory(environ), "logs")


def record_level(directory: str, level: Level, minutes: float) -> None:
    """Make all processes write records of this level for some minutes.

    OSError if the file cannot be written.
    """
    data = msgspec.json.encode(RecordedLevel(level, time.time() + minutes * 60))
    write_file(os.path.join(directory, LEVEL_FILE), data)


def recorded_level(directory: str) -> RecordedLevel | None:
    """Read the requested level. None if there is none, if it has expired, or if the file is not valid."""
    try:
        descriptor = os.open(os.path.join(directory, LEVEL_FILE), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        level = decode_as(os.read(descriptor, _LARGEST), RecordedLevel)
    except (OSError, msgspec.DecodeError):
        return None
    finally:
        os.close(descriptor)
    return level if level.until > time.time() else None
