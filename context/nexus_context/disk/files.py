"""Reads files and lists directories: the only door to the disk for reading.

1. Only regular files are read; a FIFO, a device or a directory is reported, and never waited for.
2. No more than the limit is read, even from a file that grows meanwhile.
3. A file is decoded as UTF-8; any other encoding is reported, and what can be decoded is kept for display.
4. A file whose stamp is unchanged is not read again.
5. A file of a workspace is read at its resolved path, without following a link (`RealFiles`): a decision
   about that path holds for the text. The opened descriptor tells the kind, size and owner.
6. Other processes change the disk meanwhile, and any call may fail: that is a result, never an exception.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

import msgspec
from msgspec.structs import replace

from nexus_context.errors import Problem, Severity, Span

PROMPT_LIMIT = 1 << 20  # bytes of the largest instruction file or README
JSON_LIMIT = 4 << 20  # bytes of the largest configuration file
SETTLED_NS = 2_000_000_000
BOM = b"\xef\xbb\xbf"
SETTINGS = (".json", ".jsonc", ".json5", ".toml", ".yaml", ".yml", ".code-workspace")
"""What the names of files end with that are in no prompt: their line ends mean nothing."""
"""A file changed less than this before it was read may change again with the same time stamp (FAT: 2 s)."""

Status = Literal["loaded", "missing", "unreadable", "too-large", "invalid"]
Entry = Literal["file", "directory", "link", "other"]

_START = Span(0, 0)
_CHUNK = 1 << 20
_OPEN_FLAGS = os.O_RDONLY
for _flag in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):  # Windows has only the last
    _OPEN_FLAGS |= getattr(os, _flag, 0)
_BY_STEPS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
"""Whether a path can be opened directory by directory without following links; not on Windows."""

_LIST_FLAGS = _OPEN_FLAGS | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# permission to search a directory is enough to pass through it, where the system makes that distinction
_STEP_FLAGS = _LIST_FLAGS | getattr(os, "O_PATH", getattr(os, "O_SEARCH", 0))
_MOST_DIRECTORIES = 8  # kept open by one RealFiles
_ATTEMPTS = 3
_LINK_ON_THE_WAY = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK}
"""Errors of a step where there is now a link, or nothing; EMLINK: FreeBSD."""

MOVED = "layer.moved"
"""Code of the problem that a path leads elsewhere by the time its file is read."""

_UNREADABLE = {
    errno.EACCES: "no permission to read it; give this user read access (chmod u+r) or remove the file",
    errno.EPERM: "the system does not permit reading it; give this user read access or remove the file",
    errno.ELOOP: "its path is a loop of symbolic links; point the link at a real file or remove it",
    errno.ENAMETOOLONG: "its path is longer than the system allows; move the folder to a shorter path",
    errno.EIO: "the disk reported a read error; check the disk, then save the file again",
    errno.EMFILE: "this process has too many open files; raise the limit (ulimit -n) and restart",
    errno.ENFILE: "the system has too many open files; close some programs",
    errno.EAGAIN: "it has no data to read at once; replace it by an ordinary file",
}

KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

_BOMS = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


class FileRead(msgspec.Struct, frozen=True):
    """The result of reading one file.

    `text` is set if the file was loaded, and for an invalid file as far as it can be decoded. `stamp`
    identifies the content for caching. It holds device, inode, size, mtime_ns, ctime_ns and, last, 1 if the
    file had been at rest for `SETTLED_NS` when it was read, else 0. `owner` is the user id and the mode of
    the file, or None if no file was read. `real` is the resolved path at which the file was opened, or None
    if links were followed.
    """

    path: str
    status: Status
    text: str | None
    problems: tuple[Problem, ...] = ()
    stamp: tuple[int, ...] | None = None
    owner: tuple[int, int] | None = None
    real: str | None = None

    @property
    def moved(self) -> bool:
        """Whether the path led to another place by the time the file was opened."""
        return bool(self.problems) and self.problems[0].code == MOVED


class BytesRead(msgspec.Struct, frozen=True):
    """The result of reading the bytes of one file. `data` is set if the file was loaded."""

    path: str
    status: Status
    data: bytes | None
    problems: tuple[Problem, ...] = ()


def read_text(path: str, *, limit: int, previous: FileRead | None = None) -> FileRead:
    """Read a text file of at most `limit` bytes, following links. Never raises, whatever is at the path.

    Use this for files that the user or the installation names, and `RealFiles` for those of a workspace.
    `previous`, an earlier result for the same path, is returned as it is if the file is unchanged.
    """
    return _read_text(path, None, limit, previous, open_file=lambda: os.open(path, _OPEN_FLAGS))


class RealFiles:
    """Files of a workspace, each read at its resolved path.

    The caller resolves a path first (`real_path`) and decides by the resolved path whether it may be read.
    Another process can put a link anywhere on that path meanwhile. So each of its directories is opened from
    the one above it, and the file from the last, without following a link: what is read is what was decided
    about, or nothing.

    The most recent directories, at most _MOST_DIRECTORIES, stay open for the files in them until `close`. Not
    thread-safe.

    Where directories cannot be opened from one another (Windows), the file is opened by its path and read
    only if that path, resolved again, still leads to the opened file. Three changes at the right moments
    could deceive this; creating links there takes a privilege.
    """

    def __init__(self) -> None:
        self._directories: dict[str, int] = {}  # descriptors by path, the most recent one last

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the directories. They are opened again when they are needed."""
        for descriptor in self._directories.values():
            _close(descriptor)
        self._directories.clear()

    def read(self, path: str, real: str, *, limit: int, previous: FileRead | None = None) -> FileRead:
        """Read the file at `real`, which is `path` with its links resolved. All else is as in `read_text`.

        The result's `moved` is true if `real` is no longer a path without links: resolve the path again.
        """
        return _read_text(path, real, limit, previous, open_file=lambda: self._open(real, _OPEN_FLAGS))

    def list_directory(self, real: str, most: int | None = None) -> list[tuple[str, "Entry"]] | None:
        """List the directory at `real`, a path without links, as the function `list_directory` does."""
        try:
            if not _BY_STEPS:
                return list_directory(real, most) if real_path(real) == real else None
            descriptor = self._open(real, _LIST_FLAGS)
        except (OSError, ValueError):
            return None
        try:
            return list_directory(descriptor, most)
        finally:
            _close(descriptor)

    def _open(self, real: str, flags: int) -> int:
        """A descriptor of what is at a resolved path; _MovedError if that path is no longer without links."""
        try:
            return self._step(real, flags) if _BY_STEPS else _open_compared(real, flags)
        except OSError as error:
            if error.errno in _LINK_ON_THE_WAY:
                self.close()  # an open directory may have been moved away
                raise _MovedError(*error.args) from error
            raise

    def _step(self, real: str, flags: int) -> int:
        parent, _, name = real.removeprefix("/" if real.startswith("//") else "").rpartition("/")
        if not name:
            return os.open("/", flags)
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=self._directory(parent))

    def _directory(self, path: str) -> int:
        """The descriptor of a directory, from the nearest one above it that is open."""
        names: list[str] = []
        start = path
        while start not in self._directories and start:
            start, _, name = start.rpartition("/")
            names.append(name)
        if start not in self._directories:
            self._hold(start, os.open("/", _STEP_FLAGS))
        descriptor = self._directories[start] = self._directories.pop(start)  # now the most recent one
        while names:
            name = names.pop()
            start = f"{start}/{name}"
            descriptor = os.open(name, _STEP_FLAGS, dir_fd=descriptor)
            self._hold(start, descriptor)
        return descriptor

    def _hold(self, path: str, descriptor: int) -> None:
        while len(self._directories) >= _MOST_DIRECTORIES:
            _close(self._directories.pop(next(iter(self._directories))))
        self._directories[path] = descriptor


class _MovedError(OSError):
    """A resolved path is no longer without links."""


def read_bytes(path: str, *, limit: int) -> BytesRead:
    """Read a file of at most `limit` bytes that need not be text. Never raises."""
    try:
        contents = _contents(path, os.stat(path), limit, lambda: os.open(path, _OPEN_FLAGS))
    except ValueError:
        contents = _failed(path, "unreadable", "layer.unreadable", f"Cannot read the file: {_BAD_PATH}.")
    except OSError as error:
        contents = _refused(path, error)
    if isinstance(contents, FileRead):
        return BytesRead(path, contents.status, None, contents.problems)
    return BytesRead(path, "loaded", contents[0])


_BAD_PATH = "its path contains a character that no file name can contain; rename it"


def decode(path: str, data: bytes) -> FileRead:
    """Decode a file's bytes by the rules for all files of a layer.

    A UTF-8 byte order mark is dropped with a warning; offsets count from after it. Bytes that are not UTF-8
    and NULs make the file invalid. Line ends stay as they are. Those other than LF get a hint in files that
    can be in a prompt.
    """
    encoding = foreign_encoding(data)
    if encoding:
        message = f"The file is encoded in {encoding.upper()}, not UTF-8. Save it as UTF-8."
        text = data.decode(encoding, "replace").removeprefix("\ufeff")
        return _with_problems(path, text, "invalid", [_problem(path, "layer.encoding", message)])
    return decode_utf8(path, data)


def decode_utf8(path: str, data: bytes) -> FileRead:
    """Decode bytes that can only be UTF-8, such as the text of an open document.

    See `decode` for the rules.
    """
    problems = []
    skipped = len(BOM) if data.startswith(BOM) else 0
    if skipped:
        message = "The file starts with a byte order mark. Save it as UTF-8 without BOM."
        problems.append(_problem(path, "layer.bom", message, severity=Severity.WARNING))
        data = data[skipped:]
    status: Status = "loaded"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        status = "invalid"
        at = len(data[: error.start].decode("utf-8"))
        text = data.decode("utf-8", "replace")
        message = (
            f"The file is not UTF-8: byte 0x{data[error.start]:02X} at byte {error.start + skipped} "
            f"({error.reason}). Save the file as UTF-8."
        )
        problems.append(_problem(path, "layer.encoding", message, span=Span(at, at + 1)))
    at = text.find("\0")
    if at >= 0:
        status = "invalid"
        message = f"The file holds {text.count(chr(0))} NUL characters (U+0000): it is not text. Remove them."
        problems.append(_problem(path, "layer.nul", message, span=Span(at, at + 1)))
    return _with_problems(path, text, status, problems)


def real_path(path: str) -> str:
    """Return the path with symbolic links resolved, as far as it exists.

    ValueError if no file can have this path. If another process changes a link meanwhile, the result may
    never have been true: see `RealFiles`.
    """
    for _ in range(_ATTEMPTS):
        try:
            return os.path.realpath(path)
        except OSError:  # a link on the way has been replaced
            continue
    return os.path.normpath(path)


def is_link(path: str) -> bool:
    """Whether the path is a symbolic link. False if no file can have this path."""
    return os.path.islink(path)


def is_dir(path: str) -> bool:
    """Whether the path is a directory. False if no file can have this path."""
    return os.path.isdir(path)


def exists(path: str) -> bool:
    """Whether the path exists, if only as a dangling symbolic link. False if no file can have this path."""
    return os.path.lexists(path)


def file_stamp(path: str) -> tuple[int, ...] | None:
    """Return a stamp that changes when the file is replaced or written. None if there is no regular file.

    Links are followed.
    """
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return _identity(info) if stat.S_ISREG(info.st_mode) else None


def is_executable(path: str) -> bool:
    """Whether the path, with links followed, is a regular file that its owner may execute."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and bool(mode & stat.S_IXUSR)


def list_directory(path: str | int, most: int | None = None) -> list[tuple[str, Entry]] | None:
    """Return the sorted names in a directory with the kind of each. None if it cannot be listed.

    `path` may be a descriptor. With `most`, no more entries than that are read.
    """
    try:
        with os.scandir(path) as entries:
            return sorted((entry.name, _kind(entry)) for entry in islice(entries, most))
    except (OSError, ValueError):
        return None


class Lines:
    """Reads the lines of a file that another program may be writing, without the middle of a long file.

    `first` holds the complete lines in the first `head` bytes of the file. Iteration yields complete lines
    backwards from the end of the file, without the text after the last line end. It goes back at most `most`
    bytes, and so ends at a line that is longer. OSError if there is no regular file.
    """

    HEAD = 64 * 1024
    BLOCK = 64 * 1024

    def __init__(self, path: str, *, most: int, head: int = HEAD) -> None:
        self._path = path
        self._most = most
        descriptor, self.stamp = _open_regular(self._path)
        try:
            data = _read_at_most(descriptor, head)
        finally:
            _close(descriptor)
        self.first = data.split(b"\n")[:-1]
        self._is_whole = len(data) < head

    def __iter__(self) -> Iterator[bytes]:
        if self._is_whole:
            yield from reversed(self.first)
            return
        descriptor, _ = _open_regular(self._path)
        try:
            end = os.fstat(descriptor).st_size
            least = max(end - self._most, 0)
            line_pieces: list[bytes] = []  # pieces of the line whose start comes next, the last one first
            is_complete = False  # whether its end is in the file
            while end > least:
                start = max(end - self.BLOCK, least)
                os.lseek(descriptor, start, os.SEEK_SET)
                *pieces, last_piece = _read_at_most(descriptor, end - start).split(b"\n")[::-1]
                for piece in pieces:
                    line_pieces.append(piece)
                    if is_complete:
                        yield b"".join(reversed(line_pieces)) if len(line_pieces) > 1 else piece
                    line_pieces, is_complete = [], True
                line_pieces.append(last_piece)
                end = start
            if is_complete and not end:
                yield b"".join(reversed(line_pieces))
        finally:
            _close(descriptor)


def read_range(path: str, start: int, size: int) -> tuple[tuple[int, ...], bytes]:
    """Return the stamp of a regular file and at most `size` bytes of it from offset `start` on.

    OSError for other files.
    """
    descriptor, stamp = _open_regular(path)
    try:
        os.lseek(descriptor, start, os.SEEK_SET)
        return stamp, _read_at_most(descriptor, size)
    finally:
        _close(descriptor)


def _open_regular(path: str) -> tuple[int, tuple[int, ...]]:
    """Open a file; returns a descriptor of its text, decompressed if need be, and the file's stamp."""
    descriptor = os.open(path, _OPEN_FLAGS)
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        _close(descriptor)
        raise OSError(errno.EINVAL, "This is not a regular file", path)
    stamp = _identity(info)
    if path.endswith(".zst"):
        from nexus_context.disk import zstd  # few files are

        descriptor = zstd.open_text(descriptor, stamp, path)
    return descriptor, stamp


def list_as_stored(path: str, most: int) -> list[tuple[str, Entry]]:
    """Return up to `most` names in a directory with their kinds, in the order of the file system.

    Empty if the directory cannot be listed.
    """
    try:
        with os.scandir(path) as entries:
            return [(entry.name, _kind(entry)) for entry in islice(entries, most)]
    except (OSError, ValueError):
        return []


def which(command: str, *, search: str | None = None) -> str | None:
    """Return the absolute path of a command found on `search` (default: PATH), or None.

    None also if it is found at a relative path, which would depend on the process's working directory.
    """
    import shutil  # not at import: it brings the archive modules along

    try:
        path = shutil.which(command, path=search)
    except (OSError, ValueError):
        return None
    return path if path and os.path.isabs(path) else None


def _kind(entry: os.DirEntry[str]) -> Entry:
    try:
        if entry.is_symlink():
            return "link"
        return "file" if entry.is_file() else "directory" if entry.is_dir() else "other"
    except OSError:  # it has been removed
        return "other"


def _read_text(
    path: str, real: str | None, limit: int, previous: FileRead | None, open_file: Callable[[], int]
) -> FileRead:
    try:
        read = _read(path, real, limit, previous, open_file=open_file)
    except ValueError:  # a NUL or a lone surrogate: no such path can exist
        read = _failed(path, "unreadable", "layer.unreadable", f"Cannot read the file: {_BAD_PATH}.")
    except _MovedError:
        read = _moved(path)
    except OSError as error:
        read = _refused(path, error)
    if read is previous:
        return read
    if real is not None:
        read = replace(read, real=real)
    if previous is not None and _same(previous, read):  # but it may be at rest by now
        return previous if previous.stamp == read.stamp else replace(previous, stamp=read.stamp)
    return read


def _read(
    path: str, real: str | None, limit: int, previous: FileRead | None, open_file: Callable[[], int]
) -> FileRead:
    status = os.stat(path)
    # the last number says whether the other five are reliable; a file at another real path does not count
    if (
        previous is not None
        and previous.stamp
        and previous.stamp == (*_identity(status), 1)
        and real in (None, previous.real)
    ):
        return previous
    contents = _contents(path, status, limit, open_file)
    if isinstance(contents, FileRead):
        return contents
    data, opened, stamp = contents
    return replace(decode(path, data), stamp=stamp, owner=(opened.st_uid, opened.st_mode))


def _contents(
    path: str, status: os.stat_result, limit: int, open_file: Callable[[], int]
) -> FileRead | tuple[bytes, os.stat_result, tuple[int, ...]]:
    """The bytes of a regular file, its state when it was opened, and its stamp; or the reason for none."""
    if not stat.S_ISREG(status.st_mode):  # a device is not even opened
        return _not_a_file(path, status.st_mode)
    descriptor = open_file()
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            return _not_a_file(path, opened.st_mode)
        stamp = (*_identity(opened), int(time.time_ns() - opened.st_mtime_ns > SETTLED_NS))
        if opened.st_size > limit:
            return _too_large(path, f"{opened.st_size:,} bytes", limit, stamp)
        data = _read_at_most(descriptor, limit + 1)
    finally:
        _close(descriptor)
    if len(data) > limit:
        return _too_large(path, f"more than {limit:,} bytes", limit, stamp)
    return data, opened, stamp


def _open_compared(real: str, flags: int) -> int:
    """Open a resolved path where directories cannot be opened from one another."""
    descriptor = os.open(real, flags)
    try:
        if (
            real_path(real) == real
            and os.path.samestat(os.lstat(real), os.fstat(descriptor))
            and real_path(real) == real
        ):
            return descriptor
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except BaseException:
        _close(descriptor)
        raise


def _close(descriptor: int) -> None:
    """Close what was only read: an error loses nothing."""
    try:
        os.close(descriptor)
    except OSError:
        return


def _read_at_most(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(descriptor, min(_CHUNK, size - len(data)))
        if not chunk:
            break
        data += chunk
    return bytes(data)


def _identity(info: os.stat_result) -> tuple[int, ...]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _same(previous: FileRead, read: FileRead) -> bool:
    """Whether only the stamp's last number differs."""
    return previous == replace(read, stamp=previous.stamp) and (
        (previous.stamp or ())[:-1] == (read.stamp or ())[:-1]
    )


def _refused(path: str, error: OSError) -> FileRead:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return FileRead(path, "missing", None)
    cause = _UNREADABLE.get(error.errno or 0)
    if cause is None:
        cause = f"{error.strerror or 'unknown error'}; check that it is an ordinary, readable file"
    return _failed(path, "unreadable", "layer.unreadable", f"Cannot read the file: {cause}.")


def _moved(path: str) -> FileRead:
    try:
        os.stat(path)
    except OSError as error:  # it has been removed, or is a loop of links now
        return _refused(path, error)
    message = (
        "Cannot read the file: its path was changed while it was read. Wait until the program that changes "
        "it is done, then save the file again."
    )
    return _failed(path, "unreadable", MOVED, message)


def _not_a_file(path: str, mode: int) -> FileRead:
    kind = next((name for test, name in KINDS if test(mode)), "not an ordinary file")
    message = f"A file is expected here, this is {kind}. Replace it by an ordinary file or remove it."
    return _failed(path, "unreadable", "layer.not-a-file", message)


def _too_large(path: str, size: str, limit: int, stamp: tuple[int, ...]) -> FileRead:
    message = f"The file is too large: {size}, and at most {limit:,} bytes are read. Make it shorter."
    return _failed(path, "too-large", "layer.too-large", message, stamp=stamp)


def _failed(
    path: str, status: Status, code: str, message: str, stamp: tuple[int, ...] | None = None
) -> FileRead:
    return FileRead(path, status, None, (_problem(path, code, message),), stamp=stamp)


def _problem(
    path: str, code: str, message: str, *, span: Span = _START, severity: Severity = Severity.ERROR
) -> Problem:
    return Problem(path, span, code, severity, message=message)


def _with_problems(path: str, text: str, status: Status, problems: list[Problem]) -> FileRead:
    end = re.search(r"\r\n?", text)
    if end and not path.endswith(SETTINGS):
        name = "CRLF" if end.group() == "\r\n" else "CR"
        message = f"Lines end with {name}, which become LF in the prompt. Save with LF to see the same."
        problems.append(
            _problem(path, "layer.line-endings", message, span=Span(*end.span()), severity=Severity.HINT)
        )
    return FileRead(path, status, text, tuple(problems))


def foreign_encoding(data: bytes) -> str | None:
    """Return the encoding of UTF-16 or UTF-32 bytes, and None for others.

    It is recognized by a byte order mark, or by NULs in every other byte, or in three of four bytes.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return encoding
    sample = data[:4096]
    if b"\0" not in sample or len(data) % 2:
        return None
    # text in any language has spaces, digits and brackets: NULs are common on one side, absent on the other
    empty = [not any(sample[at::4]) for at in range(4)]
    if len(data) % 4 == 0 and len(sample) >= 4 and sum(empty) == 3 and (empty[1] and empty[2]):
        return "utf-32-be" if empty[0] else "utf-32-le"
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd * 2 >= half and not even:
        return "utf-16-le"
    if even * 2 >= half and not odd:
        return "utf-16-be"
    return None
