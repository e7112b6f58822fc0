"""Watches on Linux: one inotify instance, bursts, directories that come and go; no change is lost."""

import asyncio
import contextlib
import math
import os
import shutil
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from nexus_daemon.workspace import inotify, watcher
from nexus_daemon.workspace.watcher import Subscriber, Watcher
from support.descriptors import open_files
from support.fixture import write_file
from support.waiting import wait_until
from support.watches import ObservedWatches

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is a part of Linux")

BURST = 50_000


class Watched:
    """A watcher over `paths`, and what it reported."""

    def __init__(self, paths: set[str]) -> None:
        self.paths = paths
        self.reported: list[set[str] | None] = []
        self.watcher = Watcher(
            Subscriber(lambda: self.paths, self.reported.append, lambda _: None),
            executor=ThreadPoolExecutor(2),
        )

    def has(self, path: Path) -> bool:
        return any(paths is None or str(path) in paths for paths in self.reported)

    async def write(self, path: Path, text: str) -> None:
        """Write a file, and wait until the change is reported."""
        self.reported.clear()
        write_file(path, text)
        await wait_until(lambda: self.has(path))


def check(paths: set[Path], story: Callable[[Watched], Awaitable[None]]) -> None:
    """Tell a story of a watcher that watches the directories of some paths."""

    async def run() -> None:
        watched = Watched({str(path) for path in paths})
        watched.watcher.start()
        try:
            await wait_until(lambda: watched.reported)
            assert watched.reported == [None]
            watched.reported.clear()
            await story(watched)
        finally:
            await watched.watcher.close()
        await wait_until(lambda: instances() == [])

    assert instances() == []
    asyncio.run(run())


earlier: set[str] = set()
"""Descriptors of instances that other tests of this process have left."""


@pytest.fixture(autouse=True)
def _events_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is noticed is noticed by events, not by looks now and then."""
    monkeypatch.setattr(watcher, "CHECK_MS", 60_000)
    monkeypatch.setattr(watcher, "VERIFY_S", 60.0)
    monkeypatch.setattr(inotify, "PATIENCE_S", math.inf)  # a burst takes as long as the machine does
    earlier.update(descriptors())


def descriptors() -> list[str]:
    """The descriptors of this process that are inotify instances."""
    return [number for number, target in open_files().items() if target == "anon_inode:inotify"]


def instances() -> list[int]:
    """The number of directories that each inotify instance of this test watches."""
    counts = []
    for each in descriptors():
        with contextlib.suppress(FileNotFoundError):  # it has been closed meanwhile
            if each not in earlier:
                counts.append(Path(f"/proc/self/fdinfo/{each}").read_text().count("inotify wd:"))
    return counts


def test_one_instance_also_while_a_watch_replaces_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watches = ObservedWatches(monkeypatch)
    counts: list[list[int]] = []
    opens = watches.open

    def open_and_count(directories: list[str]) -> object:
        watch = opens(directories)
        counts.append(instances())
        return watch

    monkeypatch.setattr(watches, "open", open_and_count)
    files = [tmp_path / str(number) / "file" for number in range(6)]
    for file in files:
        file.parent.mkdir()

    async def story(watched: Watched) -> None:
        for end in range(2, 7):
            watched.paths = {str(file) for file in files[:end]}
            watched.watcher.refresh()
            await wait_until(partial(watched.has, files[end - 1]))
        watched.paths = {str(files[5])}
        watched.watcher.refresh()
        await wait_until(lambda: instances() == [1])
        await watched.write(files[5], "still watched")

    check({files[0]}, story)
    # one descriptor in each; of the last exchange, the six of the watch before
    assert counts == [[1], [2], [3], [4], [5], [6], [6]]


def test_a_burst_that_overflows_the_queue_leads_to_one_rescan(tmp_path: Path) -> None:
    """Also what was lost with it is noticed: a directory that was deleted and created again."""
    file, other = tmp_path / "a" / "file", tmp_path / "b" / "file"
    for path in (file, other):
        path.parent.mkdir()

    async def story(watched: Watched) -> None:
        noise = [tmp_path / "a" / name for name in ("x", "y")]
        for path in noise:
            path.touch()
        await wait_until(lambda: watched.has(noise[1]))
        watched.reported.clear()
        for number in range(BURST):  # the loop cannot read meanwhile; equal events in a row would be merged
            os.utime(noise[number % 2])
        shutil.rmtree(other.parent)
        other.parent.mkdir()
        await wait_until(lambda: None in watched.reported)
        await watched.write(file, "1")
        assert None not in watched.reported
        await watched.write(other, "1")
        assert None not in watched.reported

    check({file, other}, story)


def test_a_burst_of_many_files_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify, "MOST_CHANGES", 100)
    watches = ObservedWatches(monkeypatch)

    async def story(watched: Watched) -> None:
        sizes: set[int] = set()
        for number in range(3_000):
            (tmp_path / str(number)).touch()
            if number % 10 == 0:
                await asyncio.sleep(0)
                sizes |= {watch.pending for watch in watches.opened if isinstance(watch, inotify.Watch)}
        await wait_until(lambda: None in watched.reported)
        assert max(sizes) <= 100
        await watched.write(tmp_path / "file", "1")
        assert watched.reported.count(None) == 0

    check({tmp_path / "file"}, story)


def test_a_burst_while_the_loop_reads_leads_to_one_rescan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "MOST_CHANGES", 100)

    async def story(watched: Watched) -> None:
        for number in range(20_000):
            (tmp_path / str(number % 500)).touch()
            if number % 100 == 0:  # the burst goes on with each turn of the loop, however slow the machine is
                assert None not in watched.reported
                await asyncio.sleep(0)
        await wait_until(lambda: None in watched.reported)
        await watched.write(tmp_path / "file", "1")
        assert None not in watched.reported

    check({tmp_path / "file"}, story)


def test_a_directory_that_is_deleted_and_made_again_in_a_loop(tmp_path: Path) -> None:
    file = tmp_path / "a" / ".nexus3" / "file"
    file.parent.mkdir(parents=True)

    def rebuild() -> None:
        for number in range(200):
            shutil.rmtree(tmp_path / "a")
            file.parent.mkdir(parents=True)
            file.write_text(str(number))

    async def story(watched: Watched) -> None:
        await asyncio.to_thread(rebuild)
        await wait_until(lambda: watched.has(file))
        await wait_until(lambda: watched.watcher.freshness([str(file)]).state == "watched")
        await watched.write(file, "written again")
        assert await wait_until(lambda: instances() == [1])

    check({file}, story)


def test_a_directory_that_is_moved_away_is_watched_in_its_new_form(tmp_path: Path) -> None:
    file = tmp_path / "a" / "file"
    file.parent.mkdir()

    async def story(watched: Watched) -> None:
        file.parent.rename(tmp_path / "b")
        file.parent.mkdir()
        await wait_until(lambda: watched.has(file))
        await watched.write(file, "1")
        watched.reported.clear()
        (tmp_path / "b" / "file").write_text("of another directory now")
        (tmp_path / "b" / "file").rename(file)
        await wait_until(lambda: watched.has(file))

    check({file}, story)


def test_a_watch_that_is_opened_too_late_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher is closed while a thread still opens its watch."""
    watches, begun, go_on = ObservedWatches(monkeypatch), threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert go_on.wait(10)

    async def run() -> None:
        watched = Watched({str(tmp_path / "file")})
        watches.before_open = hold
        watched.watcher.start()
        await wait_until(begun.is_set)
        await watched.watcher.close()
        go_on.set()
        await wait_until(lambda: watches.opened)
        await wait_until(lambda: instances() == [])

    asyncio.run(run())


def test_the_loop_does_not_wait_until_the_kernel_has_closed_the_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close, closers, go_on = os.close, list[str](), threading.Event()

    def slow_close(descriptor: int) -> None:
        closers.append(threading.current_thread().name)
        assert go_on.wait(10)
        close(descriptor)

    async def run() -> None:
        watches = inotify.Inotify()
        watch = watches.open([str(tmp_path)])
        watches.listen()
        monkeypatch.setattr(os, "close", slow_close)
        watch.end()
        await wait_until(lambda: closers)
        assert closers == ["nexus-inotify"]
        go_on.set()
        await wait_until(lambda: instances() == [])
        monkeypatch.undo()

    asyncio.run(run())


def test_a_refused_directory_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    watches = inotify.Inotify()
    with pytest.raises(FileNotFoundError) as error:
        watches.open([str(tmp_path / "a"), str(tmp_path / "missing")])
    assert (error.value.filename, instances()) == (str(tmp_path / "missing"), [])
