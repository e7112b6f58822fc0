"""The only door to the disk for reading.

1. What is read is a regular file; a FIFO, a device or a directory is reported and never waited for.
2. No more than the limit is read, even of a file that grows meanwhile.
3. A file is decoded as UTF-8; whatever else it is, is said, and what can be shown of it is kept.
4. A file whose stamp is unchanged is not read again.
"""

import errno
import os
import re
import stat
import time
from itertools import islice
from typing import Literal

import msgspec
from msgspec.structs import replace

from nexus_context.encoding import foreign_encoding
from nexus_context.errors import Problem, Severity, Span

PROMPT_LIMIT = 1 << 20  # bytes of the largest instruction file or README
JSON_LIMIT = 4 << 20  # bytes of the largest configuration file
SETTLED_NS = 2_000_000_000
"""A file changed less than this before it was read may change again with the same time stamp (FAT: 2 s)."""

Status = Literal["loaded", "missing", "unreadable", "too-large", "invalid"]
Entry = Literal["file", "directory", "link", "other"]

_START = Span(0, 0)
_CHUNK = 1 << 20
_OPEN_FLAGS = os.O_RDONLY
for _flag in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):  # Windows has only the last
    _OPEN_FLAGS |= getattr(os, _flag, 0)
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

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class FileRead(msgspec.Struct, frozen=True):
    """What came of reading one file.

    `text` is there for loaded files, and for invalid ones as far as it can be shown. `stamp` identifies
    the content for caching: device, inode, size, mtime_ns, ctime_ns, and last 1 if the file had been at
    rest for `SETTLED_NS` when it was read, else 0. `owner` is the user id and the mode of the file that was
    read; None where no file was.
    """

    path: str
    status: Status
    text: str | None
    problems: tuple[Problem, ...] = ()
    stamp: tuple[int, ...] | None = None
    owner: tuple[int, int] | None = None


class BytesRead(msgspec.Struct, frozen=True):
    """What came of reading one file as it is. `data` is there for loaded files."""

    path: str
    status: Status
    data: bytes | None
    problems: tuple[Problem, ...] = ()


def read_text(path: str, *, limit: int, previous: FileRead | None = None) -> FileRead:
    """Read a file of at most `limit` bytes; never raises for anything that the path may be.

    `previous`, an earlier result for the same path, is returned as is when the file is unchanged.
    """
    try:
        read = _read(path, limit, previous)
    except ValueError:  # a NUL or a lone surrogate: no such path can exist
        read = _failed(path, "unreadable", "layer.unreadable", f"Cannot read the file: {_BAD_PATH}.")
    except OSError as error:
        read = _refused(path, error)
    if previous is not None and _same(previous, read):  # but it may have come to rest by now
        return previous if previous.stamp == read.stamp else replace(previous, stamp=read.stamp)
    return read


def read_bytes(path: str, *, limit: int) -> BytesRead:
    """Read a file of at most `limit` bytes as it is, for what is not known to be text; never raises."""
    try:
        found = _contents(path, os.stat(path), limit)
    except ValueError:
        found = _failed(path, "unreadable", "layer.unreadable", f"Cannot read the file: {_BAD_PATH}.")
    except OSError as error:
        found = _refused(path, error)
    if isinstance(found, FileRead):
        return BytesRead(path, found.status, None, found.problems)
    return BytesRead(path, "loaded", found[0])


_BAD_PATH = "its path holds a character that no file name can hold; rename it"


def decode(path: str, data: bytes) -> FileRead:
    """Decode a file's bytes by the rules for all files of a layer.

    A UTF-8 byte order mark is dropped with a warning; offsets count from after it. Bytes that are not
    UTF-8 and NUL make the file invalid. Line ends are kept; other than LF they are hinted at.
    """
    encoding = foreign_encoding(data)
    if encoding:
        message = f"The file is encoded in {encoding.upper()}, not UTF-8. Save it as UTF-8."
        text = data.decode(encoding, "replace").removeprefix("\ufeff")
        return _with_problems(path, text, "invalid", [_problem(path, "layer.encoding", message)])
    return decode_utf8(path, data)


def decode_utf8(path: str, data: bytes) -> FileRead:
    """As `decode`, for what is known to be in no other encoding, such as the text of an open document."""
    problems = []
    skipped = 3 if data.startswith(b"\xef\xbb\xbf") else 0
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
        message = f"The file holds {text.count(chr(0))} NUL characters (U+0000): it is no text. Remove them."
        problems.append(_problem(path, "layer.nul", message, span=Span(at, at + 1)))
    return _with_problems(path, text, status, problems)


def trusted_directory(path: str) -> str | None:
    """Reason why a directory must not be entered, or None.

    Trusted is what belongs to this process's user or to root, and is not writable for everyone unless
    sticky. A symbolic link must itself belong to one of the two. Where users have no numbers (Windows),
    every existing directory is trusted.
    """
    reason = _distrust(path, sticky_helps=True)
    if reason is None and not is_dir(path):
        return "is not a directory"
    return reason


def trusted_file(path: str) -> str | None:
    """Reason why a file must not be believed, or None: for files in a shared directory such as /tmp."""
    return _distrust(path, sticky_helps=False)


def trusted_read(read: FileRead) -> str | None:
    """Reason why the file that was read must not be believed, or None; as `trusted_file`.

    It is about the file that was opened, whatever stands at its path now. Unsaved text of a file that does
    not exist is the user's own.
    """
    if read.owner is None:
        reason = trusted_file(read.path)
        return None if reason == _MISSING else reason
    if not _has_users():
        return None
    try:
        link = os.lstat(read.path)
    except (OSError, ValueError):
        return "was replaced while it was read"
    if stat.S_ISLNK(link.st_mode) and (reason := _foreign(link.st_uid, "the symbolic link ")):
        return reason
    uid, mode = read.owner
    return _foreign(uid) or (_OPEN_TO_ALL if mode & stat.S_IWOTH else None)


def shared_directory(path: str) -> bool:
    """Whether everyone may put files into a directory, and only their owners may remove them (/tmp)."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return _has_users() and bool(mode & stat.S_IWOTH and mode & stat.S_ISVTX)


def owned_alike(path: str, other: str) -> bool:
    """Whether two directories have one owner, and not everyone may write to the first."""
    try:
        one, two = os.stat(path), os.stat(other)
    except (OSError, ValueError):
        return False
    return one.st_uid == two.st_uid and not one.st_mode & stat.S_IWOTH


def real_path(path: str) -> str:
    """The path with symbolic links resolved as far as it exists; ValueError for an impossible path."""
    return os.path.realpath(path)


def is_link(path: str) -> bool:
    """Whether the path is a symbolic link; False for an impossible path."""
    return os.path.islink(path)


def is_dir(path: str) -> bool:
    """Whether the path is a directory; False for an impossible path."""
    return os.path.isdir(path)


def exists(path: str) -> bool:
    """Whether the path is there, if only as a dangling symbolic link; False for an impossible path."""
    return os.path.lexists(path)


def list_directory(path: str, most: int | None = None) -> list[tuple[str, Entry]]:
    """Names in a directory (of `most` of them), sorted, with what each is; none where it cannot be listed."""
    try:
        with os.scandir(path) as found:
            return sorted((each.name, _entry(each)) for each in islice(found, most))
    except (OSError, ValueError):
        return []


def which(command: str, *, search: str | None = None) -> str | None:
    """Absolute path of a command found on `search` (default: PATH), or None.

    A relative path is not found: what it means would depend on the process's working directory.
    """
    import shutil  # not at import: it brings the archive modules along

    try:
        found = shutil.which(command, path=search)
    except ValueError:
        return None
    return found if found and os.path.isabs(found) else None


def _entry(found: os.DirEntry[str]) -> Entry:
    if found.is_symlink():
        return "link"
    return "file" if found.is_file() else "directory" if found.is_dir() else "other"


def _read(path: str, limit: int, previous: FileRead | None) -> FileRead:
    before = os.stat(path)
    # the last number says whether the other five can be relied on
    if previous is not None and previous.stamp and previous.stamp == (*_identity(before), 1):
        return previous
    found = _contents(path, before, limit)
    if isinstance(found, FileRead):
        return found
    data, opened, stamp = found
    return replace(decode(path, data), stamp=stamp, owner=(opened.st_uid, opened.st_mode))


def _contents(
    path: str, before: os.stat_result, limit: int
) -> FileRead | tuple[bytes, os.stat_result, tuple[int, ...]]:
    """The bytes of a regular file, its state when it was opened, and its stamp; or why there are none."""
    if not stat.S_ISREG(before.st_mode):
        return _not_a_file(path, before.st_mode)
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            return _not_a_file(path, opened.st_mode)
        stamp = (*_identity(opened), int(time.time_ns() - opened.st_mtime_ns > SETTLED_NS))
        if opened.st_size > limit:
            return _too_large(path, f"{opened.st_size:,} bytes", limit, stamp)
        data = _read_at_most(descriptor, limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        return _too_large(path, f"more than {limit:,} bytes", limit, stamp)
    return data, opened, stamp


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
    """Whether nothing but the stamp's last number differs."""
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


def _not_a_file(path: str, mode: int) -> FileRead:
    kind = next((name for test, name in _KINDS if test(mode)), "not an ordinary file")
    message = f"A file is expected here, this is {kind}. Replace it by an ordinary file or remove it."
    return _failed(path, "unreadable", "layer.not-a-file", message)


def _too_large(path: str, size: str, limit: int, stamp: tuple[int, ...]) -> FileRead:
    message = f"The file is too large: {size}, and at most {limit:,} bytes are read. Make it shorter."
    return _failed(path, "too-large", "layer.too-large", message, stamp)


def _failed(
    path: str, status: Status, code: str, message: str, stamp: tuple[int, ...] | None = None
) -> FileRead:
    return FileRead(path, status, None, (_problem(path, code, message),), stamp)


def _problem(
    path: str, code: str, message: str, *, span: Span = _START, severity: Severity = Severity.ERROR
) -> Problem:
    return Problem(path, span, code, severity, message)


def _with_problems(path: str, text: str, status: Status, problems: list[Problem]) -> FileRead:
    end = re.search(r"\r\n?", text)
    if end:
        name = "CRLF" if end.group() == "\r\n" else "CR"
        message = f"Lines end with {name}, which the prompt is given as LF. Save with LF to see the same."
        problems.append(
            _problem(path, "layer.line-endings", message, span=Span(*end.span()), severity=Severity.HINT)
        )
    return FileRead(path, status, text, tuple(problems))


def _distrust(path: str, *, sticky_helps: bool) -> str | None:
    try:
        link, info = os.lstat(path), os.stat(path)
    except FileNotFoundError:
        return _MISSING
    except (OSError, ValueError) as error:
        return f"cannot be examined ({getattr(error, 'strerror', None) or 'impossible path'})"
    if not _has_users():
        return None
    for each, what in ((link, "the symbolic link "), (info, "")):
        if reason := _foreign(each.st_uid, what if each.st_ino != info.st_ino else ""):
            return reason
    if info.st_mode & stat.S_IWOTH and not (sticky_helps and info.st_mode & stat.S_ISVTX):
        return _OPEN_TO_ALL + (" and not sticky" if sticky_helps else "")
    return None


def _foreign(uid: int, what: str = "") -> str | None:
    return None if uid in (os.geteuid(), 0) else f"{what}belongs to another user (uid {uid})"


def _has_users() -> bool:
    """Whether users have numbers here; not on Windows."""
    return hasattr(os, "geteuid")


_MISSING = "does not exist"
_OPEN_TO_ALL = "is writable for everyone"
