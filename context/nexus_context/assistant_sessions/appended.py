"""The lines that another program appends to a file: in pieces of bounded size, or each once as it comes.

1. A line that has no end yet waits for it. One of more than `longest` bytes is left out, and its bytes are
   not kept.
2. A file is another one, or was rewritten, if its first HEAD bytes differ, or the HEAD bytes before the place
   where reading resumes. Reading starts over then, as it does if the file is shorter or has another inode.
3. `AppendedLines` does not open a file whose stamp is unchanged. It reads a file that is larger than `whole`
   from `tail` bytes before its end on, from the next line.
"""

import hashlib
from collections.abc import Iterator

import msgspec

from nexus_context import files

HEAD = 512  # bytes by which a file is recognized
LONGEST = 32 * 1024 * 1024  # bytes of a line; a transcript has images as base64
BLOCK = 4 * 1024 * 1024
WHOLE = 48 * 1024 * 1024  # bytes of a file that is read from its beginning
TAIL = 6 * 1024 * 1024


class LinePiece(msgspec.Struct, frozen=True):
    """Complete lines of a file, and the `rest` behind them, whose end has not come.

    `end` is the offset behind the lines, and `before` are the HEAD bytes before it. `is_last`: the file ended
    behind the rest. `is_too_long`: there is a line instead that is too long, and nothing is kept of it.
    """

    lines: list[bytes]
    rest: bytes
    end: int
    before: bytes
    stamp: tuple[int, ...]
    is_last: bool
    is_too_long: bool = False


def read_lines(path: str, start: int, size: int, longest: int) -> LinePiece:
    """The lines from an offset on, about `size` bytes of them. OSError if the file cannot be read."""
    stamp, data = files.read_range(path, start, size)
    while len(data) == size and b"\n" not in data and size < longest:
        size = min(4 * size, longest)
        stamp, data = files.read_range(path, start, size)
    is_last, end = len(data) < size, start
    lines = data.split(b"\n")
    rest = lines.pop()
    if is_last or lines:
        length = len(data) - len(rest)
        before, end = data[max(length - HEAD, 0) : length], start + length
        return LinePiece(lines, rest, end, before, stamp=stamp, is_last=is_last)
    before = b""
    while b"\n" not in data and data:
        end += len(data)
        before = (before + data)[-HEAD:]
        data = files.read_range(path, end, BLOCK)[1]
    rest_of_line = data[: data.find(b"\n") + 1]
    before, end = (before + rest_of_line)[-HEAD:], end + len(rest_of_line)
    return LinePiece([], b"", end, before, stamp=stamp, is_last=not data, is_too_long=True)


def mark_of(path: str, offset: int) -> str:
    """What identifies a file up to an offset (rule 2). OSError if the file cannot be read."""
    _, head = files.read_range(path, 0, min(HEAD, offset))
    _, before = files.read_range(path, max(offset - HEAD, 0), min(HEAD, offset))
    return hashlib.blake2b(head + b"\0" + before, digest_size=16).hexdigest()


class AppendedLines:
    """The lines of a file that grows. `restarts` counts how often reading began, the first time included."""

    def __init__(self, path: str, *, whole: int | None = None, tail: int | None = None) -> None:
        self.path = path
        self.restarts = 0
        self.skipped_bytes = 0
        """Bytes before the place where reading began."""
        self.long_lines = 0
        self._whole = WHOLE if whole is None else whole
        self._tail = TAIL if tail is None else tail
        self._stamp: tuple[int, ...] | None = None
        self._head = b""
        self._before = b""  # what was read last
        self._offset = 0  # behind that
        self._is_inside = False  # whether the offset is in a line whose beginning is not read

    @property
    def stamp(self) -> tuple[int, ...] | None:
        """The stamp of the file when it was read last; None before, and if there is no file."""
        return self._stamp

    def has_changed(self) -> bool:
        """Whether there is anything new; one `stat`."""
        return files.file_stamp(self.path) != self._stamp

    def read(self) -> Iterator[bytes]:
        """The complete lines since the last call; none if the file is gone.

        `restarts` changes before the first line if reading starts over.
        """
        stamp = files.file_stamp(self.path)
        if stamp is None or stamp == self._stamp:
            self._stamp = stamp
            return
        try:
            if self._must_restart(stamp):
                self._restart(stamp)
            while True:
                piece = read_lines(self.path, self._offset, BLOCK, LONGEST)
                if piece.stamp[:2] != (self._stamp or stamp)[:2]:
                    self._stamp = None  # replaced while it was read: the next call starts over
                    return
                self._stamp = piece.stamp
                yield from self._complete(piece)
                if piece.is_last:
                    return
        except OSError:  # removed, or no longer readable
            self._stamp = None

    def _must_restart(self, stamp: tuple[int, ...]) -> bool:
        before = self._stamp
        if not self.restarts or before is None or before[:2] != stamp[:2] or stamp[2] < self._offset:
            return True
        start = self._offset - len(self._before)
        return (
            files.read_range(self.path, 0, len(self._head))[1] != self._head
            or files.read_range(self.path, start, len(self._before))[1] != self._before
        )

    def _restart(self, stamp: tuple[int, ...]) -> None:
        self.restarts += 1
        self.long_lines = 0
        size = stamp[2]
        self.skipped_bytes = self._offset = max(size - self._tail, 0) if size > self._whole else 0
        self._is_inside = self._offset > 0
        self._before = b""
        self._stamp = stamp
        self._head = files.read_range(self.path, 0, HEAD)[1]

    def _complete(self, piece: LinePiece) -> Iterator[bytes]:
        """The lines of the next piece, which are read with it."""
        lines = iter(piece.lines)
        if piece.end != self._offset:
            if not self._is_inside:
                self.long_lines += piece.is_too_long
            elif piece.lines:
                next(lines)
            # of a line that is too long the end has perhaps not come
            self._is_inside = piece.is_too_long and piece.is_last
            self._offset = piece.end
            self._before = (self._before + piece.before)[-HEAD:]
        return lines
