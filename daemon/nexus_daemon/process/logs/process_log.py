"""Set up the log of this process: the file, standard error, and the level that is recorded.

1. The file gets records of Nexus from `recorded_level` on. Standard error gets warnings, as long as somebody
   reads it. Both are written by threads.
2. If the file cannot be written (a full disk, a directory without permission), one warning says so on the
   other outputs. Records are dropped, and writing is tried again from time to time. The next line that can be
   written says how many records are missing.
3. Loggers of Nexus have the lowest level that is needed by the file, by standard error, or by a client with
   `$/setTrace` verbose (`want_debug`).
"""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nexus_daemon.process.logs.sink import Sink

if TYPE_CHECKING:  # needed when something is logged, not before the reply to `initialize`
    from nexus_daemon.process.logs.log_file import LogFile
    from nexus_daemon.process.logs.log_line import Entry

DEFAULT_LEVEL = logging.INFO
GATHER_S = 0.2
"""Seconds that a record waits for others, since the first ones come while an editor waits for diagnostics."""
LOOK_S = 2.0
"""Seconds between two reads of the requested level."""
RETRY_S = 30.0
"""Seconds between two tries to write a file that could not be written."""
CLOSE_S = 1.0
STDERR_LEVEL = logging.WARNING
LOGGERS = ("nexus_daemon", "nexus_context")

logger = logging.getLogger(__name__)

NOT_IN_FILE = {"is_for_file": False}
"""The `extra` of a record that is not written to the file."""

Concerned = Callable[[], int | None]


class FileHandler(logging.Handler):
    """Hands records to the thread that writes the file.

    `role` names the kind of this process in each line.
    """

    def __init__(self, role: str, environ: Mapping[str, str], concerned: Concerned) -> None:
        super().__init__(DEFAULT_LEVEL)
        self.process = f"{role}-{os.getpid()}"
        self._environ = environ
        self._concerned = concerned
        self._file: LogFile | None = None
        self._lost = 0
        self._failed_at: float | None = None
        self.has_failed = False
        self._sink: Sink[Entry] = Sink(
            "nexus-log", self._write, gather_s=GATHER_S, idle=self._look, idle_s=LOOK_S
        )

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "is_for_file", True):
            from nexus_daemon.process.logs.log_line import entry_of

            self._sink.put(entry_of(record, self._concerned()))

    def close(self) -> None:
        """Write the records that wait, for at most CLOSE_S."""
        self._sink.close(CLOSE_S)
        super().close()

    def _write(self, entries: "list[Entry]", dropped: int) -> None:
        from nexus_daemon.process.logs.location import log_directory
        from nexus_daemon.process.logs.log_file import LogFile
        from nexus_daemon.process.logs.log_line import Entry, line_of

        self._lost += dropped
        now = time.monotonic()
        if self._failed_at is not None and now - self._failed_at < RETRY_S:
            self._lost += len(entries)
            return
        try:
            if self._file is None:
                self._file = LogFile(log_directory(self._environ))
            lines = [line_of(entry, self.process) for entry in entries]
            if self._lost:
                text = f"{self._lost} earlier records are missing: they could not be written"
                lines.insert(0, line_of(Entry(time.time(), "WARNING", __name__, text), self.process))
            self._file.append("".join(lines).encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._lost += len(entries)
            self._failed_at = now
            self._report(error)
        else:
            self._lost, self._failed_at = 0, None
        self._look()

    def _report(self, error: OSError) -> None:
        """Report once that the log file cannot be written."""
        from nexus_daemon.process.logs.log_line import describe_exception

        if not self.has_failed:
            self.has_failed = True
            text = "the log cannot be written, and goes on without a file: %s"
            logger.warning(text, describe_exception(error), extra=NOT_IN_FILE)

    def _look(self) -> None:
        """Take over the level that is asked for."""
        from nexus_daemon.process.logs.location import log_directory, recorded_level

        try:
            directory = self._file.directory if self._file is not None else log_directory(self._environ)
        except OSError:  # there is none
            return
        recorded = recorded_level(directory)
        level = DEFAULT_LEVEL if recorded is None else recorded.number
        if level != self.level:
            self.setLevel(level)
            apply_levels()
            logger.info("the log has records from %s on", logging.getLevelName(level))


class StderrHandler(logging.Handler):
    """Writes warnings to standard error, with complete tracebacks.

    A thread writes them, since the write hangs if nobody reads standard error.
    """

    def __init__(self) -> None:
        super().__init__(STDERR_LEVEL)
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        self._sink: Sink[logging.LogRecord] = Sink("nexus-stderr", self._write)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()  # now: arguments may change
        record = logging.makeLogRecord(record.__dict__)
        record.msg, record.args = text, None
        self._sink.put(record)

    def close(self) -> None:
        """Write the records that wait. If nobody reads standard error, nothing more is written to it."""
        stream = sys.stderr
        if not self._sink.close(CLOSE_S):
            nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
            for name in ("stdout", "stderr"):
                if getattr(sys, name) is stream:  # its lock is held by the thread that hangs
                    setattr(sys, name, nowhere)
        super().close()

    def _write(self, records: list[logging.LogRecord], dropped: int) -> None:
        lines = [self.format(record) for record in records]
        if dropped:
            lines.append(f"WARNING {__name__}: {dropped} records are missing: standard error was not read")
        try:
            sys.stderr.write("".join(f"{line}\n" for line in lines))
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            pass  # closed, or none at all: there is nobody to tell


_debuggers: set[object] = set()


def want_debug(client: object, is_wanted: bool) -> None:
    """Say whether a client wants records of all levels. The loggers make them as long as one client does."""
    (_debuggers.add if is_wanted else _debuggers.discard)(client)
    apply_levels()


def apply_levels() -> None:
    """Set the loggers to the lowest level that a handler takes, or to DEBUG if a client wants all records."""
    levels = [handler.level for handler in logging.getLogger().handlers if isinstance(handler, FileHandler)]
    lowest = logging.DEBUG if _debuggers else min([logging.WARNING, *levels])
    for name in LOGGERS:
        logging.getLogger(name).setLevel(lowest)


@contextmanager
def logging_process(
    role: str, concerned: Concerned, *others: logging.Handler, to_stderr: bool = True
) -> Iterator[None]:
    """Log what this process does during the block. Use it on the event loop.

    `role` names the kind of the process. `concerned` returns the number of the connection that the running
    code works for. The handlers `others` get all records.
    """
    stderr = (StderrHandler(),) if to_stderr else ()
    handlers = (FileHandler(role, os.environ, concerned), *stderr, *others)
    root = logging.getLogger()
    for handler in handlers:
        root.addHandler(handler)
    apply_levels()
    try:
        yield
    finally:
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()
        _debuggers.clear()
