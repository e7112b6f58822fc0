"""What is known of a session of another assistant."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from os.path import join
from typing import Any, TypeVar

import msgspec

from nexus_context.decoding import decoder_of
from nexus_context.files import Lines

MOST = 8 * 1024 * 1024  # bytes from the end of a file that are looked at
LONG_HEAD = 2 * 1024 * 1024  # bytes from its beginning, where a folder is sought
T = TypeVar("T")


class Usage(msgspec.Struct, frozen=True):
    """The tokens of one or more requests, each counted once, by the provider."""

    fresh: int = 0  # of the input, neither read from the cache nor written to it
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def sent(self) -> int:
        """The input, wherever it came from."""
        return self.fresh + self.cache_read + self.cache_write


class AssistantSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session, as the ends of its file or its row in a database say; None: they do not say.

    `id` is the program's own. `path` is the file that holds it. `folder` is where it works. `prompt` is a
    message of the user, or the title that the program shows. `last` is the usage of its last request, `total`
    that of all of them as the program sums them up, as is `cost_usd`. `window` is the size of the model's
    context window in tokens. Times are UTC, ISO 8601. `damaged` counts the lines that are not what this
    program writes, among those that were looked at.
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
    damaged: int = 0


class Place(msgspec.Struct, frozen=True):
    """Where assistants have their files: the user's home and the environment."""

    home: str
    environ: Mapping[str, str]


class SessionSource(msgspec.Struct, frozen=True):
    """Sessions that can be read. `stamp` changes whenever `read` gives something else."""

    path: str
    stamp: tuple[int, ...]
    read: Callable[[], list[AssistantSession]]


LARGEST_COUNT = 1 << 53
"""Tokens; a larger number cannot be JSON of JavaScript, and no column of a ledger holds one of 400 digits."""
MOST_DAMAGED = 10_000
"""Damaged lines of a file after which the rest is not read: it is no transcript."""


def is_within(folder: str | None, root: str | None) -> bool:
    """Whether a session's folder is a directory or inside it; True without one."""
    if root is None or folder == root:
        return True
    return folder is not None and folder.startswith(join(root, ""))


def read_file(
    path: str,
    folder: str | None,
    record_type: type[T],
    *,
    begin: Callable[[Iterable[T], str], AssistantSession | None],
    complete: Callable[[AssistantSession, Iterable[T]], AssistantSession],
) -> list[AssistantSession]:
    """The session of a file of records, a line each; none if it works elsewhere, or has no folder.

    `begin` gets the first records and the time of the file, `complete` those from the end on.
    """
    damaged: set[int] = set()
    try:
        lines = Lines(path, most=MOST)
        session = begin(records(lines.first, record_type, damaged), utc(lines.stamp[3]))
        if session is None and lines.stamp[2] > Lines.HEAD:  # the first records may hold what somebody pasted
            damaged.clear()
            lines = Lines(path, most=MOST, head=LONG_HEAD)
            session = begin(records(lines.first, record_type, damaged), utc(lines.stamp[3]))
        if session is None or not is_within(session.folder, folder):
            return []
        session = complete(session, records(lines, record_type, damaged))
    except OSError:  # it was removed
        return []
    return [msgspec.structs.replace(session, damaged=len(damaged))]


def records(lines: Iterable[bytes], kind: type[T], damaged: set[int]) -> Iterator[T]:
    """The lines that are records of a kind; `damaged` gets the hashes of the others."""
    decoder = decoder_of(kind)
    for line in lines:
        if not line.strip():
            continue
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            damaged.add(hash(line))
            if len(damaged) >= MOST_DAMAGED:
                return


def count(values: Mapping[str, Any], name: str) -> int:
    """A number of tokens; 0 for anything else, also for one that no provider can have counted."""
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= LARGEST_COUNT else 0


def decode_object(data: object) -> dict[str, Any]:
    """A JSON object; empty for anything else."""
    try:
        value = msgspec.json.decode(data) if isinstance(data, str | bytes) else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value.strip() else None


def utc(nanoseconds: int) -> str:
    """A file's time as the records of assistants write them."""
    time = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(time: Any) -> float:
    """The seconds since 1970 of a record's time; 0 if it has none."""
    try:
        return datetime.fromisoformat(time).timestamp() if isinstance(time, str) else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0
