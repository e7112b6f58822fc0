"""The poller: every change is reported, as the path that a folder knows, and its cost is bounded."""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_daemon.workspace import polling
from nexus_daemon.workspace.polling import Poller
from support.waiting import wait_until

TIMEOUT_S = 10.0

Story = Callable[["Polled"], Awaitable[None]]


class Polled:
    """A running poller, and what it reported."""

    def __init__(self) -> None:
        self.reports: list[set[str]] = []
        self.executor = ThreadPoolExecutor(2)
        self.poller = Poller(self.reports.append, self.executor)

    async def until(self, done: Callable[[], bool]) -> None:
        await wait_until(done)

    async def reported(self, *paths: str) -> None:
        """Wait until these paths are reported together; then forget every report."""
        await self.until(lambda: set(paths) in self.reports)
        self.reports.clear()


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "POLL_S", 0.01)
    monkeypatch.setattr(polling, "REST", 1)


def check(paths: set[str], story: Story) -> None:
    """Tell a story about a poller of some paths."""

    async def run() -> None:
        polled = Polled()
        polled.poller.pause_s = 0.01
        await polled.poller.take(paths)
        try:
            await story(polled)
        finally:
            await asyncio.wait_for(polled.poller.close(), TIMEOUT_S)

    asyncio.run(run())


def test_every_kind_of_change_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "a" / "file"

    async def story(polled: Polled) -> None:
        for change in (
            lambda: file.parent.mkdir(),
            lambda: file.write_text("1"),
            lambda: file.write_text("23"),
            lambda: file.chmod(0o600),
            lambda: (tmp_path / "other").write_text("45"),
            lambda: (tmp_path / "other").replace(file),
            lambda: file.rename(tmp_path / "other"),
            lambda: file.symlink_to(tmp_path / "other"),
            lambda: (tmp_path / "other").write_text("through the link"),
            lambda: file.unlink(),
        ):
            before = polling.read_stamp(str(file))
            change()
            if polling.read_stamp(str(file)) != before:
                await polled.reported(str(file))
        assert not file.exists()

    check({str(file)}, story)


def test_a_directory_reports_what_changed_in_it(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")

    async def story(polled: Polled) -> None:
        (tmp_path / "two").write_text("2")
        await polled.reported(str(tmp_path / "two"))
        (tmp_path / "one").unlink()
        await polled.reported(str(tmp_path / "one"))
        (tmp_path / "two").unlink()
        tmp_path.rmdir()
        await polled.until(lambda: any(f"{tmp_path}{os.sep}" in paths for paths in polled.reports))

    check({f"{tmp_path}{os.sep}"}, story)


def test_a_second_change_within_a_step_of_the_clock_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one leaves the same stamp: the file is reported again when it is settled."""
    monkeypatch.setattr(polling, "SETTLED_NS", 200_000_000)
    file, later = tmp_path / "file", tmp_path / "later"
    file.write_text("0")

    async def story(polled: Polled) -> None:
        file.write_text("1")
        await polled.reported(str(file))  # and is read by somebody
        await polled.reported(str(file))  # and is read again, whatever was written meanwhile
        later.write_text("1")
        await polled.until(lambda: polled.reports.count({str(later)}) == 2)
        assert polled.reports == [{str(later)}] * 2  # the first file was read again once

    check({str(file), str(later)}, story)


def test_what_is_not_polled_any_more_is_not_reported(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"

    async def story(polled: Polled) -> None:
        await polled.poller.take({str(two)})
        one.write_text("1")
        two.write_text("1")
        await polled.reported(str(two))
        await polled.poller.take(set())
        two.write_text("22")
        assert list(polled.poller.paths) == []
        await polled.poller.take({str(one)})
        one.write_text("22")
        await polled.until(lambda: bool(polled.reports))
        assert polled.reports == [{str(one)}]

    check({str(one), str(two)}, story)


def test_the_cost_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a look the poller rests a multiple of the time that it took: a slow disk is looked at seldom."""
    monkeypatch.setattr(polling, "REST", 50)
    clock = SimpleNamespace(now=0.0, time=time.time)
    clock.monotonic = lambda: clock.now

    def slow(paths: object) -> dict[str, tuple[object, ...]]:
        clock.now += 4.0
        return {str(tmp_path): ()}

    async def story(polled: Polled) -> None:
        monkeypatch.setattr(polling, "time", clock)
        monkeypatch.setattr(polling, "read_stamps", slow)
        monkeypatch.setattr(polling, "MOST_S", 1000.0)
        await polled.until(lambda: clock.now > 0)
        await polled.until(lambda: polled.poller.pause_s == 50 * 4.0)
        assert clock.now == 4.0
        monkeypatch.setattr(polling, "MOST_S", 0.01)  # once a look took very long, looks go on
        await polled.poller.look()
        assert polled.poller.pause_s == 0.01

    check({str(tmp_path)}, story)


def test_a_bug_in_a_look_or_a_listener_does_not_end_the_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file, real = tmp_path / "file", polling.read_stamps
    failures = iter([ZeroDivisionError("a bug")])

    def failing(paths: tuple[str, ...]) -> object:
        for failure in failures:
            raise failure
        return real(paths)

    async def story(polled: Polled) -> None:
        monkeypatch.setattr(polling, "read_stamps", failing)
        await polled.until(lambda: bool(caplog.records))
        file.write_text("1")
        await polled.reported(str(file))

    check({str(file)}, story)
    assert "ZeroDivisionError" in caplog.text


def test_a_look_that_hangs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "LATE_S", 0.05)
    go_on, real = threading.Event(), polling.read_stamps
    began = time.time()

    def hanging(paths: tuple[str, ...]) -> object:
        assert go_on.wait(TIMEOUT_S)
        return real(paths)

    async def story(polled: Polled) -> None:
        assert polled.poller.hanging_since is None
        monkeypatch.setattr(polling, "read_stamps", hanging)
        await polled.until(lambda: polled.poller.hanging_since is not None)
        since: Any = polled.poller.hanging_since
        assert began <= since <= time.time()
        go_on.set()
        await polled.until(lambda: polled.poller.hanging_since is None)

    check({str(tmp_path / "file")}, story)
