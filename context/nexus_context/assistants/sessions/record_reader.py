"""Reads the records that another program appends to a file: each once, as they come, or since the last
compaction.

1. A line without an end is read once its end has come, or at once if it is a whole JSON object. A line of
   more than `longest` bytes is left out, and its bytes are not kept.
2. A file was replaced or rewritten if its first HEAD bytes differ, or the HEAD bytes before the place where
   reading resumes. Then reading starts over; it also does if the file is shorter or has another inode.
3. A file whose stamp is unchanged is not opened. If a file is larger than `whole`, only its last TAIL bytes
   are read, from the next line on.
4. Lines that are not JSON objects are counted, and so are things of kinds that Nexus does not know.
"""

import functools
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypedDict, TypeVar

import msgspec

from nexus_context.assistants.reading.record_values import decode_value
from nexus_context.assistants.sessions.record import SessionRecord, count_kinds
from nexus_context.disk import files
from nexus_context.text.decoding import decoder_of

HEAD = 512  # bytes by which a file is recognized
LONGEST = 32 * 1024 * 1024  # bytes of a line; a transcript has images as base64
BLOCK = 4 * 1024 * 1024
WHOLE = 48 * 1024 * 1024  # bytes of a file that is read from its beginning
TAIL = 6 * 1024 * 1024

R = TypeVar("R", bound=SessionRecord)
_decode = msgspec.json.Decoder().decode


class LinePiece(msgspec.Struct, frozen=True):
    """Complete lines of a file. `rest` is the beginning of the next line, whose end is not there yet.

    `end` is the offset behind the lines, and `before` has the HEAD bytes before it. `is_last` is true if the
    file ends behind `rest`. `is_too_long` is true if there is only a line that is too long; nothing is kept
    of that.
    """

    lines: list[bytes]
    rest: bytes
    end: int
    before: bytes
    stamp: tuple[int, ...]
    is_last: bool
    is_too_long: bool = False


def read_lines(path: str, start: int, size: int, longest: int) -> LinePiece:
    """Read complete lines from an offset on, about `size` bytes, and at most `longest` bytes of one line.
    Raise OSError if the file cannot be read.
    """
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


def read_marked(path: str, record_type: type[R], marks: Sequence[bytes]) -> Iterator[R]:
    """Yield the records whose lines contain one of the marks. Raise OSError if the file cannot be read."""
    position, is_last = 0, False
    while not is_last:
        piece = read_lines(path, position, BLOCK, LONGEST)
        for line in piece.lines:
            if any(mark in line for mark in marks):
                record = decode_line(line, record_type)
                if record is not None:
                    yield record
        position, is_last = piece.end, piece.is_last


def mark_of(path: str, offset: int) -> str:
    """Return a text that identifies a file up to an offset (rule 2). Raise OSError if the file cannot be
    read.
    """
    return _digest(*_ends(path, offset))


def decode_line(line: bytes, record_type: type[R]) -> R | None:
    """Decode the record in a line, None if it has none. Half a surrogate pair and bytes that are not UTF-8
    are accepted.
    """
    value: Any
    try:
        value = _decoder_of(record_type.FIELDS).decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decode_value(line.decode(errors="replace"))[0] if line.lstrip()[:1] == b"{" else None
    return record_type(value) if isinstance(value, dict) else None


@functools.cache
def _decoder_of(fields: tuple[str, ...]) -> "msgspec.json.Decoder[Any]":
    make: Any = TypedDict  # with names that are known only here
    return decoder_of(make("Fields", dict.fromkeys(fields, Any), total=False) if fields else dict[str, Any])


def records_since_compaction(path: str, record_type: type[R], most: int) -> list[R]:
    """Read the record of the last compaction and those after it, at most the last `most` bytes of a file.

    Raise OSError if the file cannot be read.
    """
    records: list[R] = []
    for line in files.Lines(path, most=most):
        record = decode_line(line, record_type)
        if record is None:
            continue
        records.append(record)
        if any(mark in line for mark in record_type.COMPACTION_MARKS) and records[-1].is_compaction:
            break
    return records[::-1]


def last_compaction(path: str, record_type: type[R], most: int) -> R | None:
    """Find the record of the last compaction in the last `most` bytes of a file, else None. No other record
    is decoded.
    """
    for line in files.Lines(path, most=most):
        if any(mark in line for mark in record_type.COMPACTION_MARKS):
            record = decode_line(line, record_type)
            if record is not None and record.is_compaction:
                return record
    return None


class ResumePoint(msgspec.Struct, frozen=True):
    """A place where reading resumes. `mark` identifies the file up to `offset`, as `mark_of` does."""

    offset: int = 0
    mark: str = ""


class RecordReader(Generic[R]):
    """Reads the records of a file that grows, each once.

    `restarts` counts how often reading began at the beginning. The first time counts, too, unless there is a
    place to `resume`.
    """

    def __init__(
        self,
        path: str,
        record_type: type[R],
        *,
        resume: ResumePoint | None = None,
        whole: int | None = None,
        longest: int | None = None,
    ) -> None:
        self.path = path
        self.restarts = 0
        self.end = 0
        """The offset behind the last record."""
        self.skipped_bytes = 0
        """Bytes before the place where reading began."""
        self.long_lines = 0
        self.damaged = 0
        """Lines that are no JSON objects."""
        self.first_damaged: int | None = None
        """The offset of the first line that is damaged or too long."""
        self.unknown: Counter[str] = Counter()
        """How many things are of a kind that Nexus does not know."""
        self._record_type = record_type
        self._whole = WHOLE if whole is None else whole
        self._longest = LONGEST if longest is None else longest
        self._stamp: tuple[int, ...] | None = None
        self._identity: tuple[int, ...] | None = None  # of the file; none before it is read
        self._point = resume or ResumePoint()
        self._head = b""
        self._before = b""  # HEAD bytes before the point
        self._is_inside = False  # whether the point is in a line whose beginning is not read

    @property
    def stamp(self) -> tuple[int, ...] | None:
        """The stamp of the file when it was last read to its end. None before that, and if the file is
        gone.
        """
        return self._stamp

    @property
    def offset(self) -> int:
        """The offset where reading resumes, behind the last complete line."""
        return self._point.offset

    def has_changed(self) -> bool:
        """Whether the file has changed since it was read. This costs one `stat`."""
        return files.file_stamp(self.path) != self._stamp

    def read(self) -> Iterator[R]:
        """Yield the records since the last call, none if the file is gone. Raise OSError if it cannot be
        read.

        If reading starts over, `restarts` changes before the first record.
        """
        stamp = files.file_stamp(self.path)
        if stamp is None or stamp == self._stamp:
            self._stamp = stamp
            self._identity = () if stamp is None else self._identity
            return
        self._stamp = None
        if self._must_restart(stamp):
            self._restart(stamp)
        while True:
            piece = read_lines(self.path, self._point.offset, BLOCK, self._longest)
            if piece.stamp[:2] != stamp[:2]:  # replaced while it was read: the next call starts over
                return
            yield from self._records(piece)
            if piece.is_last:
                self._stamp = piece.stamp
                return

    def _must_restart(self, stamp: tuple[int, ...]) -> bool:
        offset, mark = self._point.offset, self._point.mark
        if not mark or self._identity not in (None, stamp[:2]) or stamp[2] < offset:
            return True
        self._identity = stamp[:2]
        self._head, self._before = _ends(self.path, offset)
        return _digest(self._head, self._before) != mark

    def _restart(self, stamp: tuple[int, ...]) -> None:
        self.restarts += 1
        self.long_lines = self.damaged = 0
        self.first_damaged = None
        self.unknown = Counter()
        start = max(stamp[2] - TAIL, 0) if stamp[2] > self._whole else 0
        self.skipped_bytes = self.end = start
        self._is_inside = start > 0
        self._identity = stamp[:2]
        self._head, self._before = _ends(self.path, start)
        self._move(start, b"")

    def _records(self, piece: LinePiece) -> Iterator[R]:
        """The records of the next piece. Its lines are read with it, whoever stops here."""
        end, before = piece.end, piece.before
        start, is_inside = self._point.offset, self._is_inside
        rest = _whole_object(piece.rest) if piece.is_last and not (is_inside and not piece.lines) else None
        if rest is not None:
            end, before = end + len(piece.rest), before + piece.rest
        if piece.end != start:
            # of a line that is too long the end has perhaps not come
            self._is_inside = piece.is_too_long and piece.is_last
        self._move(end, before)
        if piece.is_too_long and not is_inside:
            self.long_lines += 1
            self._note_damage(start)
        position = start
        for line in piece.lines:
            line_start, position = position, position + len(line) + 1
            if is_inside:
                is_inside = False
                continue
            record = decode_line(line, self._record_type)
            if record is not None:
                yield self._noted(record, position)
            elif line.strip():
                self.damaged += 1
                self._note_damage(line_start)
        if rest is not None:
            yield self._noted(self._record_type(rest), end)

    def _noted(self, record: R, end: int) -> R:
        self.end = end
        unknown = record.unknown
        if unknown:
            count_kinds(self.unknown, unknown)
        return record

    def _note_damage(self, offset: int) -> None:
        if self.first_damaged is None:
            self.first_damaged = offset

    def _move(self, offset: int, before: bytes) -> None:
        """Move the point to an offset; `before` are the last bytes before it."""
        self._before = (self._before + before)[-HEAD:]
        if len(self._head) < min(HEAD, offset):
            self._head = files.read_range(self.path, 0, min(HEAD, offset))[1]
        self._point = ResumePoint(offset, _digest(self._head, self._before))


def _ends(path: str, offset: int) -> tuple[bytes, bytes]:
    """The HEAD bytes at the beginning of what is before an offset, and those at its end."""
    size = min(HEAD, offset)
    _, head = files.read_range(path, 0, size)
    return head, files.read_range(path, offset - size, size)[1]


def _digest(head: bytes, before: bytes) -> str:
    return hashlib.blake2b(head + b"\0" + before, digest_size=16).hexdigest()


def _whole_object(line: bytes) -> dict[str, Any] | None:
    """The object that a line without an end is; more may come if it is none."""
    try:
        value = _decode(line) if line.rstrip()[-1:] == b"}" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
