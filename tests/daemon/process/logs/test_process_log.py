"""The log of a process: written by threads, for all levels that are wanted, and harmless when it fails."""

import io
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nexus_daemon.process.logs import process_log
from nexus_daemon.process.logs.location import Level, log_directory, record_level, recorded_level
from nexus_daemon.process.logs.process_log import FileHandler, StderrHandler, apply_levels, want_debug
from nexus_daemon.process.logs.read_log import Follower
from nexus_daemon.process.logs.sink import MOST, Sink
from support.waiting import TIMEOUT_S, block_until, pass_time

logger = logging.getLogger("nexus_daemon.test")


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    before = [(name, logging.getLogger(name).level) for name in process_log.LOGGERS]
    yield
    for name, level in before:
        logging.getLogger(name).setLevel(level)


class Others(logging.Handler):
    """What other handlers than that of the file get."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def logged_to(directory: Path) -> Iterator[tuple[FileHandler, Others]]:
    """Log to a directory; at the end everything is written."""
    handler, others = FileHandler("test", {"NEXUS_LOG": str(directory)}, lambda: None), Others()
    root = logging.getLogger()
    for each in (handler, others):
        root.addHandler(each)
    apply_levels()
    try:
        yield handler, others
    finally:
        root.removeHandler(handler)
        root.removeHandler(others)
        handler._sink.close(TIMEOUT_S)  # noqa: SLF001 - a process that ends waits less
        handler.close()
        others.close()


def messages(directory: Path) -> list[str]:
    follower = Follower(str(directory))
    try:
        return [f"{line['level']} {line['message']}" for line in follower.read()]
    finally:
        follower.close()


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        (None, ["INFO a", "WARNING a", "ERROR a"]),
        ("debug", ["DEBUG a", "INFO a", "WARNING a", "ERROR a"]),
        ("warning", ["WARNING a", "ERROR a"]),
        ("error", ["ERROR a"]),
    ],
)
def test_the_level_that_is_asked_for(tmp_path: Path, level: Level | None, lines: list[str]) -> None:
    """What is in the log after one record of each level, if this level is asked for."""
    if level is not None:
        record_level(str(tmp_path), level, minutes=1)
    with logged_to(tmp_path) as (handler, _):
        handler._look()  # noqa: SLF001 - as its thread does every few seconds
        for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
            logger.log(number, "a")
    assert [line for line in messages(tmp_path) if line.endswith(" a")] == lines


def test_the_level_holds_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_level(str(tmp_path), "debug", minutes=2)
    level = recorded_level(str(tmp_path))
    assert level is not None
    assert level.number == logging.DEBUG
    pass_time(monkeypatch, 121)
    assert recorded_level(str(tmp_path)) is None


@pytest.mark.parametrize("text", ["", "{}", '{"level": "loud", "until": 9e99}', "x" * 5000])
def test_a_level_that_is_not_valid_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "level").write_text(text, encoding="utf-8")
    assert recorded_level(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("environ", "directory"),
    [
        ({"NEXUS_LOG": "/a", "NEXUS_STATE": "/b"}, "/a"),
        ({"NEXUS_LOG": "", "NEXUS_STATE": "/b"}, "/b/logs"),
    ],
)
def test_where_the_log_is(environ: dict[str, str], directory: str) -> None:
    assert log_directory(environ) == directory


def test_a_client_that_wants_everything_lowers_the_level_for_nobody_else(tmp_path: Path) -> None:
    client = object()
    with logged_to(tmp_path) as (_, others):
        want_debug(client, True)
        logger.debug("all")
        want_debug(client, False)
        logger.debug("none")
    assert (others.messages, messages(tmp_path)) == (["all"], [])


def test_a_log_that_cannot_be_written_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_log, "RETRY_S", 0.0)
    blocked = tmp_path / "blocked"
    blocked.write_text("no directory", encoding="utf-8")
    with logged_to(blocked / "logs") as (_, others):
        for number in range(3):
            logger.warning("record %d", number)
        block_until(lambda: len(others.messages) == 4)
        blocked.unlink()
        logger.warning("written")
    said = "the log cannot be written, and goes on without a file: NotADirectoryError: Not a directory: "
    reports = [message for message in others.messages if message.startswith("the log")]
    assert reports == [f"{said}{blocked / 'logs'}"] or reports == [f"{said}{blocked}/logs/nexus.log"]
    missing, written = messages(blocked / "logs")
    assert missing.endswith("earlier records are missing: they could not be written")
    assert written == "WARNING written"


def test_nobody_waits_for_a_reader_of_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    is_writing, may_go_on = threading.Event(), threading.Event()

    class Unread(io.StringIO):
        def write(self, text: str) -> int:
            is_writing.set()
            may_go_on.wait(10)
            return super().write(text)

    stream = Unread()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(process_log, "CLOSE_S", 0.01)
    handler = StderrHandler()
    for number in range(100):
        handler.handle(logging.LogRecord("a", logging.WARNING, "", 0, "line %d", (number,), None))
        assert is_writing.wait(10)  # hence with the first line alone
    handler.close()
    assert sys.stderr is not stream  # what hangs there is not flushed when the process ends
    sys.stderr.close()
    may_go_on.set()
    assert handler._sink.close(10)  # noqa: SLF001 - its thread must end before `sys.stderr` is another one
    assert stream.getvalue() == "WARNING a: line 0\n"


def test_what_is_too_much_is_counted() -> None:
    batches: list[tuple[int, int]] = []
    may_go_on = threading.Event()

    def write(items: list[int], dropped: int) -> None:
        may_go_on.wait(10)
        batches.append((len(items), dropped))

    sink = Sink("test", write)
    for number in range(MOST + 5_000):
        sink.put(number)
    may_go_on.set()
    assert sink.close(10)
    assert sum(items + dropped for items, dropped in batches) == MOST + 5_000
    assert sum(dropped for _, dropped in batches) >= 4_000


def test_every_process_logs_its_own_number(tmp_path: Path) -> None:
    with logged_to(tmp_path):
        logger.warning("a")
    follower = Follower(str(tmp_path))
    assert [line["process"] for line in follower.read()] == [f"test-{os.getpid()}"]
    follower.close()
