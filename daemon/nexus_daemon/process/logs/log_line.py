"""Write a record as one line of the log, and parse such a line.

    2026-11-23T13:48:10.123Z WARNING stdio-4711 [2] nexus_daemon.windows.daemon: the message

1. The process id and, in brackets, the connection that the record concerns are numbers. The rest is the
   record's.
2. A line is valid UTF-8 without control characters; a line end in a message is `␊`.
3. Secrets are covered as in conversations (`nexus_context.text.redact`); the user's home directory is `~`.
4. Records of other packages may quote anything, so a line has only their first line, without its arguments.
5. For an exception the line has its type, the functions it passed, and its text if that is written for users:
   that of an error of Nexus, or of the system. Texts of other exceptions may quote the user. They are left
   out, also if a message contains them.
6. A line has at most `LONGEST` characters of a message.
"""

import logging
import os
import re
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import msgspec

from nexus_context.errors import NexusError
from nexus_context.text.visible import visible_line

LONGEST = 8_000
"""The most characters of a message."""
LINE_END = "␊"
_OURS = ("nexus_daemon", "nexus_context")
_FRAMES = 30  # innermost frames of a traceback
_CAUSES = 4

LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (?P<level>[A-Z]+) (?P<process>[a-z]+-\d+) "
    r"(?:\[(?P<connection>\d+)\] )?(?P<logger>[\w.]+): (?P<message>.*)"
)


class Entry(msgspec.Struct, frozen=True):
    """A record on its way to the file. It is immutable, and keeps no other objects alive."""

    created: float  # seconds since 1970
    level: str
    logger: str
    message: str
    connection: int | None = None
    traceback: tuple[str, ...] = ()


def entry_of(record: logging.LogRecord, connection: int | None = None) -> Entry:
    """Build the entry of a record. Exceptions are already without private text; `line_of` covers the rest."""
    error = record.exc_info[1] if record.exc_info else None
    return Entry(
        record.created,
        record.levelname,
        record.name,
        _message(record),
        connection=connection,
        traceback=() if error is None else tuple(_traceback_lines(error)),
    )


def line_of(entry: Entry, process: str) -> str:
    """Return the line of an entry with its line end. Secrets and the home directory are covered."""
    from nexus_context.text.redact import redact_message  # its patterns are needed with the first line only

    text = "\n".join((entry.message, *entry.traceback))
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text) - LONGEST:,} more characters)"
    text = visible_line(shorten_home(redact_message(text)))
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(entry.created))
    millis = int(entry.created * 1000) % 1000
    connection = "" if entry.connection is None else f"[{entry.connection}] "
    return f"{moment}.{millis:03}Z {entry.level} {process} {connection}{entry.logger}: {text}\n"


def read_line(line: str) -> dict[str, Any] | None:
    """Parse a line of the log into its parts, by name. None if the text is not a line of the log."""
    match = LINE.fullmatch(line.rstrip("\n"))
    if match is None:
        return None
    parts: dict[str, Any] = match.groupdict()
    connection = parts["connection"]
    message = parts["message"].replace(LINE_END, "\n")
    return parts | {"message": message, "connection": None if connection is None else int(connection)}


def shorten_home(text: str) -> str:
    """Replace the user's home directory in a text with `~`."""
    home = os.path.expanduser("~")
    if len(home) <= 1 or not os.path.isabs(home):
        return text
    return re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)


def describe_exception(error: BaseException) -> str:
    """Describe an exception without text that may quote the user."""
    kind = type(error).__name__
    if isinstance(error, NexusError):
        return f"{kind}: {error}"
    if isinstance(error, OSError) and error.strerror:
        file_name = f": {error.filename}" if isinstance(error.filename, str) else ""
        return f"{kind}: {error.strerror}{file_name}"
    return kind


def _message(record: logging.LogRecord) -> str:
    if not record.name.startswith(_OURS):
        return str(record.msg).partition("\n")[0]
    args = record.args
    if isinstance(args, tuple):
        args = tuple(
            describe_argument(argument) if isinstance(argument, BaseException) else argument
            for argument in args
        )
    try:
        return str(record.msg) % args if args else str(record.msg)
    except Exception:  # noqa: BLE001 - a wrong format must not lose the record
        return str(record.msg)


def describe_argument(error: BaseException) -> str:
    """Describe an exception that is an argument of a message. An error of Nexus keeps its whole text."""
    return str(error) if isinstance(error, NexusError) else describe_exception(error)


def _traceback_lines(error: BaseException) -> Iterator[str]:
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return
        yield describe_exception(cause)
        yield from (f"  {frame}" for frame in _frames(cause.__traceback__))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
        if cause is not None:
            yield "after"


def _frames(trace: TracebackType | None) -> list[str]:
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{short_path(code.co_filename)}:{trace.tb_lineno} {code.co_qualname}")
        trace = trace.tb_next
    return frames[-_FRAMES:]


def short_path(path: str) -> str:
    """Shorten a source file's path to begin at its package: `nexus_daemon/windows/daemon.py`,
    `asyncio/events.py`.
    """
    parts = path.replace(os.sep, "/").split("/")
    for index in range(len(parts) - 2, -1, -1):
        if parts[index] in ("nexus_daemon", "nexus_context", "site-packages") or parts[index].startswith(
            "python3"
        ):
            start = index if parts[index].startswith("nexus") else index + 1
            return "/".join(parts[start:])
    return "/".join(parts[-2:])
