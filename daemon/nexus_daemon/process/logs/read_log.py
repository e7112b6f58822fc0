"""Read the log: its last lines, and the lines that are appended later, across rotation.

1. Lines come in the order in which they were written, from the oldest file on. Text that is not a line of the
   log (the rest of a line whose beginning is lost) is skipped.
2. A follower keeps the file open that it reads. When another file has that file's name, the follower reads
   the open file to its end, then the files that came in between, then the new one.
"""

import io
import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from nexus_daemon.process.logs.location import NAME
from nexus_daemon.process.logs.log_file import KEPT, rotated
from nexus_daemon.process.logs.log_line import read_line

_CHUNK = 256 * 1024  # bytes
_LONGEST_LINE = 256 * 1024  # bytes; a longer one is not a line of the log

Signature = tuple[int, int, int, int]
Line = dict[str, Any]
"""The parts of a line (`read_line`), with `text`, the line itself."""


class Follower:
    """Reads the log in a directory, from the oldest file on. The files need not exist yet.

    OSError if a file cannot be read.
    """

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, NAME)
        self._file: io.FileIO | None = None
        self._older: set[Signature] = set()  # of the files before the open one
        self._rest = b""

    def read(self) -> Iterator[Line]:
        """Yield the lines that were appended since the last call. The first call yields all lines."""
        if self._file is None and not self._open(KEPT):
            return
        while True:
            yield from self._read_open()
            number = self._number()
            if number == 0:
                return
            yield from self._read_open()  # what was appended before the file was renamed
            self.close()
            if not self._open(KEPT if number is None else number - 1):
                return

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file, self._rest = None, b""

    def _read_open(self) -> Iterator[Line]:
        assert self._file is not None  # noqa: S101 - opened by `read`
        while data := self._file.read(_CHUNK):
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                text = line.decode("utf-8", "replace")
                parts = read_line(text)
                if parts is not None:
                    yield {**parts, "text": text}
            if len(self._rest) > _LONGEST_LINE:
                self._rest = b""

    def _open(self, number: int) -> bool:
        """Open the oldest file from a number on that was not read yet."""
        for file_number in range(number, -1, -1):
            path = rotated(self._path, file_number)
            try:
                if _signature(os.stat(path)) in self._older:
                    continue
                self._file = io.FileIO(path)
            except FileNotFoundError:
                continue
            return True
        return False

    def _number(self) -> int | None:
        """Return the number of the open file; 0 is the current log. None if the file is gone."""
        assert self._file is not None  # noqa: S101 - opened by `read`
        mine = os.fstat(self._file.fileno())
        older: set[Signature] = set()
        for number in range(KEPT, -1, -1):
            try:
                info = os.stat(rotated(self._path, number))
            except FileNotFoundError:
                continue
            if os.path.samestat(info, mine):
                self._older = older
                return number
            older.add(_signature(info))
        return None


def _signature(info: os.stat_result) -> Signature:
    """Return a signature that tells a finished file from others, even from a later one with its inode."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def last_lines(follower: Follower, count: int, takes: Callable[[Line], bool] = bool) -> list[Line]:
    """Return the last `count` lines that `takes` accepts, of those that the follower has not read yet."""
    return list(deque(filter(takes, follower.read()), maxlen=count))
