"""The watcher: which directories it watches, and that no change is lost between two watches."""

import asyncio
import ctypes
import os
import shutil
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon import watcher
from nexus_daemon.watcher import Watcher, covering

TIMEOUT_S = 10.0


def check(root: Path, *paths: str) -> list[str]:
    """The directories that are watched for paths below a root, with /a/b as the deepest one that exists."""
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "file").write_text("")
    found = covering(str(root / path) for path in paths)
    return sorted({os.path.relpath(path, root) for path, _, _ in found.values()})


@pytest.mark.parametrize(
    ("paths", "watched"),
    [
        ([], []),
        (["a/file"], ["a"]),
        (["a/missing"], ["a"]),
        (["a/b"], ["a"]),
        (["a/b/c/d/e"], ["a/b"]),
        (["a/b/x", "a/b/y", "a/x"], ["a", "a/b"]),
        (["x/y/z"], ["."]),
        (["a/file/below"], ["a"]),
    ],
)
def test_the_nearest_directory_that_exists(tmp_path: Path, paths: list[str], watched: list[str]) -> None:
    assert check(tmp_path, *paths) == watched


def test_a_directory_that_is_made_again_is_another(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a" / "file")]
    (tmp_path / "a").mkdir()
    before = covering(paths)
    (tmp_path / "a").rename(tmp_path / "kept")
    (tmp_path / "a").mkdir()
    assert covering(paths) != before
    assert covering(["/"])["/"] == covering(["/etc"])["/etc"]


class Watched:
    """A running watcher over `wanted`, and what it told."""

    def __init__(self, wanted: set[str]) -> None:
        self.wanted = wanted
        self.told: list[set[str] | None] = []
        self._news = asyncio.Event()
        self.executor = ThreadPoolExecutor(2)
        self.reread: list[set[str]] = []
        self.watcher = Watcher(lambda: self.wanted, self._changed, self.executor, reread=self._reread)

    def _changed(self, paths: set[str] | None) -> None:
        self.told.append(paths)
        self._news.set()

    def _reread(self, paths: set[str]) -> None:
        self.reread.append(paths)
        self._news.set()

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not done():
                self._news.clear()
                await self._news.wait()

    async def stands(self, path: Path | None = None) -> None:
        """Wait until a path is watched: what may have changed before is told then, at first of everything."""
        await self.until(lambda: None in self.told or (path is not None and self.has(path)))
        self.told.clear()

    def has(self, path: Path) -> bool:
        return any(paths is not None and str(path) in paths for paths in self.told)


def watch(wanted: set[str], story: Callable[[Watched], Awaitable[None]]) -> None:
    async def run() -> None:
        watched = Watched(wanted)
        watched.watcher.start()
        watched.watcher.start()
        try:
            await watched.stands()
            await story(watched)
        finally:
            await asyncio.wait_for(watched.watcher.close(), TIMEOUT_S)

    asyncio.run(run())


def test_changes_are_told_by_path(tmp_path: Path) -> None:
    async def story(watched: Watched) -> None:
        for change in (
            lambda: (tmp_path / "file").write_text("1"),
            lambda: (tmp_path / "file").write_text("2"),
            lambda: (tmp_path / "file").unlink(),
        ):
            watched.told.clear()
            change()
            await watched.until(lambda: watched.has(tmp_path / "file"))

    watch({str(tmp_path / "file")}, story)


def test_what_is_below_is_not_watched(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()

    async def story(watched: Watched) -> None:
        (tmp_path / "below" / "other").write_text("1")
        (tmp_path / "file").write_text("1")
        await watched.until(lambda: watched.has(tmp_path / "file"))
        assert not watched.has(tmp_path / "below" / "other")

    watch({str(tmp_path / "file")}, story)


def test_a_directory_that_appears_is_watched_from_then_on(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "file"

    async def story(watched: Watched) -> None:
        for _ in range(2):
            file.parent.mkdir(parents=True)
            await watched.stands(file)
            file.write_text("1")
            await watched.stands(file)
            shutil.rmtree(tmp_path / "a")
            await watched.stands(file)

    watch({str(file)}, story)


def test_refresh_watches_what_is_wanted_now(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()

    async def story(watched: Watched) -> None:
        watched.wanted = {str(tmp_path / "two" / "file")}
        watched.watcher.refresh()
        watched.watcher.refresh()
        await watched.stands(tmp_path / "two" / "file")
        (tmp_path / "two" / "file").write_text("1")
        await watched.until(lambda: watched.has(tmp_path / "two" / "file"))

    watch({str(tmp_path / "one" / "file")}, story)


def test_only_what_was_not_watched_is_looked_at_again(tmp_path: Path) -> None:
    """With many folders open, one more is no reason to read all of them again."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, beside, two = (tmp_path / name for name in ("one/file", "one/beside", "two/file"))

    async def story(watched: Watched) -> None:
        watched.wanted = {str(one), str(beside)}
        watched.watcher.refresh()
        watched.wanted = {str(one), str(beside), str(two)}
        watched.watcher.refresh()
        await watched.until(lambda: watched.has(two))
        assert (watched.reread, watched.told) == ([], [{str(two)}])

    watch({str(one)}, story)


def test_what_changed_before_it_was_wanted_is_read_again(tmp_path: Path) -> None:
    """Between the moment when a file is read and the one when it is known to matter."""
    one, two, below = tmp_path / "one", tmp_path / "two", tmp_path / "three"

    async def story(watched: Watched) -> None:
        for file in (two, below):
            file.write_text("1")
            await watched.until(lambda file=file: watched.has(file))  # type: ignore[misc]
        watched.wanted = {str(one), str(two), f"{tmp_path}{os.sep}", str(tmp_path / "other")}
        watched.watcher.refresh()
        await watched.until(lambda: bool(watched.reread))
        assert watched.reread == [{str(two), f"{tmp_path}{os.sep}"}]

    watch({str(one)}, story)


def test_what_changed_long_ago_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory in which files come and go all day takes no more and more memory."""
    monkeypatch.setattr("nexus_daemon.watcher.RECENT_S", 0.0)

    async def story(watched: Watched) -> None:
        for number in range(100):
            watched.watcher._note([str(tmp_path / str(number))])
            await asyncio.sleep(0)
        assert len(watched.watcher._recent) <= 4

    watch({str(tmp_path / "file")}, story)


def test_no_change_is_lost_while_the_watch_is_another(tmp_path: Path) -> None:
    file = tmp_path / "file"

    async def story(watched: Watched) -> None:
        for number in range(12):
            (tmp_path / str(number)).mkdir()
            watched.wanted = {str(file), *(str(tmp_path / str(each) / "file") for each in range(number + 1))}
            watched.told.clear()
            watched.watcher.refresh()
            for _ in range(number):  # at another moment of the exchange each time
                await asyncio.sleep(0.001)
            file.write_text(str(number))
            await watched.until(lambda: watched.has(file))

    watch({str(file)}, story)


HOLD_S = 0.35
"""Longer than a watch takes to tell what it has seen."""


@pytest.mark.skipif(os.name != "posix", reason="holds the interpreter by a call of the C library")
def test_no_change_is_lost_while_other_threads_keep_the_interpreter(tmp_path: Path) -> None:
    """As a C extension does that is being loaded."""
    sleep = ctypes.PyDLL(None).usleep
    file = tmp_path / "file"

    async def story(watched: Watched) -> None:
        begin = watched.watcher._begin

        async def held(directories: Any) -> bool:
            file.write_text(str(directories))
            stood = await begin(directories)
            threading.Thread(target=sleep, args=(int(HOLD_S * 1e6),)).start()
            return stood

        watched.watcher._begin = held  # type: ignore[method-assign]
        for number in range(3):
            (tmp_path / str(number)).mkdir()
            watched.wanted = {*watched.wanted, str(tmp_path / str(number) / "file")}
            watched.told.clear()
            watched.watcher.refresh()
            await watched.until(lambda: watched.has(file))

    watch({str(file)}, story)


def test_a_watch_that_cannot_begin_leaves_the_one_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where the kernel gives no more: what is watched is not given up for what cannot be."""
    monkeypatch.setattr("nexus_daemon.watcher.RETRY_S", 0.05)
    caplog.set_level("DEBUG", "nexus_daemon")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = tmp_path / "one" / "file", tmp_path / "two" / "file"
    failing = threading.Event()
    real = watcher._import_awatch()

    def awatch(*paths: str, **options: Any) -> Any:
        if failing.is_set():
            raise OSError(28, "no more watches")
        return real(*paths, **options)

    async def begun(*paths: str, **options: Any) -> Any:
        async for changes in awatch(*paths, **options):
            yield changes

    monkeypatch.setattr("nexus_daemon.watcher._import_awatch", lambda: begun)

    async def story(watched: Watched) -> None:
        failing.set()
        watched.wanted = {str(one), str(two)}
        watched.watcher.refresh()
        async with asyncio.timeout(TIMEOUT_S):
            while not caplog.records:
                await asyncio.sleep(0.01)
        one.write_text("1")
        await watched.until(lambda: watched.has(one))
        assert None not in watched.told
        failing.clear()
        await watched.until(lambda: watched.has(two))
        two.write_text("1")
        await watched.until(lambda: watched.has(two))
        assert sum(record.levelname == "WARNING" for record in caplog.records) == 1

    watch({str(one)}, story)


def test_few_watches_at_a_time(tmp_path: Path) -> None:
    """The kernel gives a user only so many, and each editor and build tool wants some."""

    async def story(watched: Watched) -> None:
        most = 0
        for number in range(20):
            (tmp_path / str(number)).mkdir()
            last = tmp_path / str(number) / "file"
            watched.wanted = {*watched.wanted, str(last)}
            watched.watcher.refresh()
            await watched.until(lambda last=last: watched.has(last))  # type: ignore[misc]
            most = max(most, len(watched.watcher._watches))
        assert 1 < most <= 4

    watch({str(tmp_path / "file")}, story)


def test_nothing_to_watch_is_no_error() -> None:
    async def run() -> None:
        watched = Watched(set())
        watched.watcher.refresh()
        watched.watcher.start()
        await asyncio.sleep(0)
        await asyncio.wait_for(watched.watcher.close(), TIMEOUT_S)

    asyncio.run(run())


def test_a_watcher_that_fails_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nexus_daemon.watcher.RETRY_S", 0.01)
    caplog.set_level("DEBUG", "nexus_daemon")
    failures = iter([OSError("no more watches"), RuntimeError("gone"), OSError("still")])
    real = covering

    def failing(paths: object) -> object:
        for failure in failures:
            raise failure
        return real([str(tmp_path / "file")])

    monkeypatch.setattr("nexus_daemon.watcher.covering", failing)

    async def story(watched: Watched) -> None:
        (tmp_path / "file").write_text("1")
        await watched.until(lambda: watched.has(tmp_path / "file"))

    watch({str(tmp_path / "file")}, story)
    assert [record.levelname for record in caplog.records if "failed" in record.message] == [
        "WARNING",
        "DEBUG",
        "DEBUG",
    ]


def test_a_listener_that_fails_does_not_end_the_watch(tmp_path: Path) -> None:
    async def story(watched: Watched) -> None:
        changed, failed = watched.watcher._changed, asyncio.Event()

        def fail(_: set[str] | None) -> None:
            watched.watcher._changed = changed
            failed.set()
            raise ZeroDivisionError

        watched.watcher._changed = fail
        (tmp_path / "file").write_text("1")
        await asyncio.wait_for(failed.wait(), TIMEOUT_S)
        (tmp_path / "file").write_text("2")
        await watched.until(lambda: watched.has(tmp_path / "file"))

    watch({str(tmp_path / "file")}, story)


def test_what_is_wanted_while_it_compares_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    real, begun, go_on = covering, threading.Event(), threading.Event()

    async def story(watched: Watched) -> None:
        await asyncio.sleep(0.1)  # what the watch itself compares after it stands

        def slow(paths: object) -> object:
            found = real(paths)  # type: ignore[arg-type]
            begun.set()
            assert go_on.wait(TIMEOUT_S)
            return found

        monkeypatch.setattr("nexus_daemon.watcher.covering", slow)
        watched.watcher.refresh()
        assert await asyncio.to_thread(begun.wait, TIMEOUT_S)
        watched.wanted = {str(tmp_path / "two" / "file")}
        watched.watcher.refresh()
        go_on.set()
        await watched.stands(tmp_path / "two" / "file")

    watch({str(tmp_path / "one" / "file")}, story)
