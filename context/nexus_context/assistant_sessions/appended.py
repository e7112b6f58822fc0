"""The lines that another program appends to a file, each read once.

1. A call reads from where the last one ended. A file whose stamp is unchanged is not opened.
2. A line that has no end yet waits for it.
3. Reading starts over if the file is another one (inode), is shorter than what was read, or has other bytes:
   the first HEAD and the last END of those that were read are compared.
4. A line of more than LONGEST bytes is left out and counted; its bytes are not kept.
5. A file that is larger than `whole` is read from `tail` bytes before its end on, from the next line.
"""

from collections.abc import Iterator

from nexus_context import files

HEAD, END = 512, 128  # bytes by which a rewritten file is recognized
LONGEST = 32 * 1024 * 1024  # bytes of a line; a transcript has images as base64
BLOCK = 4 * 1024 * 1024
WHOLE = 48 * 1024 * 1024  # bytes of a file that is read from its beginning
TAIL = 6 * 1024 * 1024


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
        self._end = b""  # the last bytes that were read
        self._offset = 0  # of what was read
        self._rest = bytearray()  # of the line whose end has not come
        self._is_skipping = False  # whether the line is too long, or its beginning was not read

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
                start = self._offset
                stamp, block = files.read_range(self.path, start, BLOCK)
                if stamp[:2] != (self._stamp or stamp)[:2]:
                    self._stamp = None  # replaced while it was read: the next call starts over
                    return
                self._stamp, self._offset = stamp, start + len(block)
                self._end = (self._end + block[-END:])[-END:]
                yield from self._complete(block)
                if len(block) < BLOCK:
                    return
        except OSError:  # removed, or no longer readable
            self._stamp = None

    def _must_restart(self, stamp: tuple[int, ...]) -> bool:
        before = self._stamp
        if not self.restarts or before is None or before[:2] != stamp[:2] or stamp[2] < self._offset:
            return True
        start = self._offset - len(self._end)
        return (
            files.read_range(self.path, 0, len(self._head))[1] != self._head
            or files.read_range(self.path, start, len(self._end))[1] != self._end
        )

    def _restart(self, stamp: tuple[int, ...]) -> None:
        self.restarts += 1
        self.long_lines = 0
        size = stamp[2]
        self.skipped_bytes = self._offset = max(size - self._tail, 0) if size > self._whole else 0
        self._is_skipping = self._offset > 0
        self._rest.clear()
        self._end = b""
        self._stamp = stamp
        self._head = files.read_range(self.path, 0, HEAD)[1]

    def _complete(self, block: bytes) -> Iterator[bytes]:
        first, *lines = block.split(b"\n")
        if not lines:
            self._hold(first)
            return
        if self._is_skipping:
            self._is_skipping = False
        else:
            yield bytes(self._rest) + first if self._rest else first
        self._rest.clear()
        last = lines.pop()
        yield from lines
        self._hold(last)

    def _hold(self, piece: bytes) -> None:
        if self._is_skipping:
            return
        self._rest += piece
        if len(self._rest) > LONGEST:
            self._rest.clear()
            self._is_skipping = True
            self.long_lines += 1
