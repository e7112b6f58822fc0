"""Defines what is known of a session of another assistant."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from os.path import join
from typing import TypeVar

import msgspec

from nexus_context.assistants.sessions.record import SessionRecord
from nexus_context.assistants.sessions.record_reader import decode_line
from nexus_context.config.conversations import NOT_READ
from nexus_context.disk.files import Lines

MOST = 8 * 1024 * 1024  # bytes from the end of a file that are looked at
LONG_HEAD = 2 * 1024 * 1024  # bytes from its beginning, where a folder is sought
R = TypeVar("R", bound=SessionRecord)


class Usage(msgspec.Struct, frozen=True):
    """The tokens of one or more requests as the provider counted them. Each token is in one of the
    figures.
    """

    fresh: int = 0  # of the input, neither read from the cache nor written to it
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def sent(self) -> int:
        """All input tokens, cached or not."""
        return self.fresh + self.cache_read + self.cache_write


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages, figure by figure."""
    fresh = read = write = output = 0
    for usage in usages:
        fresh += usage.fresh
        read += usage.cache_read
        write += usage.cache_write
        output += usage.output
    return Usage(fresh=fresh, cache_read=read, cache_write=write, output=output)


def subtract_usage(first: Usage, second: Usage) -> Usage:
    """Subtract each figure of the second usage from the first. A figure is 0 where the second is larger."""
    return Usage(
        fresh=max(first.fresh - second.fresh, 0),
        cache_read=max(first.cache_read - second.cache_read, 0),
        cache_write=max(first.cache_write - second.cache_write, 0),
        output=max(first.output - second.output, 0),
    )


def larger_window(size: int | None, sent_tokens: int) -> int | None:
    """Return `size`, the size of a window in tokens, or a larger size if that does not hold `sent_tokens`.
    None if `size` is None.
    """
    if size is None or sent_tokens <= size:
        return size
    return next(
        (window_size for window_size in (1_000_000, 2_000_000) if sent_tokens <= window_size), sent_tokens
    )


class AssistantSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session, read from both ends of its file or from its row in a database. A field is None if it is
    not stated there.

    `id` is the program's own. `path` is the file that holds the session, `folder` where it works. `prompt` is
    a message of the user, or the title that the program shows. `last` is the usage of the last request;
    `total` and `cost_usd` are the program's own sums of all requests. `window` is the size of the model's
    context window in tokens. `parent` is the session that started this one as a sub-agent, `fork_of` the one
    that it was forked from. Times are UTC, ISO 8601. `damaged` counts lines that are not what this program
    writes, among those that were read. `lacks` says what `cost_usd` does not include.
    """

    assistant: str
    id: str
    path: str
    folder: str | None
    prompt: str | None = None
    model: str | None = None
    version: str | None = None
    started: str | None = None
    changed: str
    last: Usage | None = None
    total: Usage | None = None
    window: int | None = None
    cost_usd: float | None = None
    parent: str | None = None
    fork_of: str | None = None
    damaged: int = 0
    lacks: tuple[str, ...] = ()


class Place(msgspec.Struct, frozen=True):
    """Where assistants have their files: the user's home and the environment variables.

    `reads_conversations` is true if the user lets Nexus list and open the files of sessions. `not_read` is
    the sentence that tells people that this is off.
    """

    home: str
    environ: Mapping[str, str]
    reads_conversations: bool = True
    not_read: str = NOT_READ


class SessionSource(msgspec.Struct, frozen=True):
    """A place that sessions can be read from. `stamp` changes whenever `read` would return something else."""

    path: str
    stamp: tuple[int, ...]
    read: Callable[[], list[AssistantSession]]


MOST_DAMAGED = 10_000
"""Damaged lines of a file after which the rest is not read: it is no transcript."""


class FolderScope(msgspec.Struct, frozen=True):
    """Folders that are asked for: `folder` with everything inside it, and each of `parents` without what else
    is inside it.
    """

    folder: str
    parents: tuple[str, ...] = ()


Folders = str | FolderScope | None
"""The folders whose sessions are meant: one with those inside it, also with its parents, or all."""


def is_within(folder: str | None, root: Folders) -> bool:
    """Whether a session's folder is `root` or inside it, or is one of the `parents` of a FolderScope. True if
    `root` is None.
    """
    if isinstance(root, FolderScope):
        return folder in root.parents or is_within(folder, root.folder)
    if root is None or folder == root:
        return True
    return folder is not None and folder.startswith(join(root, ""))


def read_file(
    path: str,
    folder: Folders,
    record_type: type[R],
    *,
    begin: Callable[[Iterable[R], str], AssistantSession | None],
    complete: Callable[[AssistantSession, Iterable[R]], AssistantSession],
    mark: re.Pattern[bytes] | None = None,
    moves: bool = False,
) -> list[AssistantSession]:
    """Read the session of a file of records. Empty if it works in another folder, or if the file is missing.

    Raise OSError if the file cannot be read.

    `begin` gets the first records and the time of the file. `complete` gets records from the end of the file
    on: the last one and those whose line has the `mark`, or all without a `mark`. With `moves`, the last
    records may name another folder.
    """
    damaged: set[int] = set()
    try:
        lines = Lines(path, most=MOST)
        session = begin(records(lines.first, record_type, damaged), utc(lines.stamp[3]))
        if session is None and lines.stamp[2] > Lines.HEAD:  # the first records may hold what somebody pasted
            damaged.clear()
            lines = Lines(path, most=MOST, head=LONG_HEAD)
            session = begin(records(lines.first, record_type, damaged), utc(lines.stamp[3]))
        if session is None or not (moves or is_within(session.folder, folder)):
            return []
        session = complete(session, records(lines, record_type, damaged, mark))
        if moves and not is_within(session.folder, folder):
            return []
    except FileNotFoundError:  # it was removed
        return []
    return [msgspec.structs.replace(session, damaged=len(damaged))]


def records(
    lines: Iterable[bytes], record_type: type[R], damaged: set[int], mark: re.Pattern[bytes] | None = None
) -> Iterator[R]:
    """Yield the records among lines; the hashes of other lines are added to `damaged`.

    With a `mark`, lines behind the first record are skipped if they lack it: decoding lines is most of the
    work.
    """
    is_first = True
    for line in lines:
        if mark is not None and not is_first and line[:1] == b"{" and not mark.search(line):
            continue
        record = decode_line(line, record_type)
        is_first &= record is None
        if record is not None:
            yield record
        elif line.strip():
            damaged.add(hash(line))
            if len(damaged) >= MOST_DAMAGED:
                return


LATEST_S = 253_402_300_799
"""The end of the year 9999, in seconds since 1970."""


def utc(nanoseconds: int) -> str:
    """Write a file's time as the records of assistants do, in ISO 8601. A time after the year 9999 becomes
    the end of that year.
    """
    time = datetime.fromtimestamp(min(nanoseconds / 1e9, LATEST_S), UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
