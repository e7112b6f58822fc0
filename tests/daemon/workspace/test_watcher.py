"""The watcher: which directories it watches, and that no change is lost between two watches."""

import asyncio
import ctypes
import os
import shutil
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nexus_daemon import workspace
from nexus_daemon.workspace import polling, watched_places, watcher
from nexus_daemon.workspace.watch_events import Changes
from nexus_daemon.workspace.watch_limits import Failure
from nexus_daemon.workspace.watched_places import covering
from nexus_daemon.workspace.watcher import Freshness, Subscriber, Watcher
from support.fixture import write_file
from support.waiting import wait_until
from support.watches import ObservedWatches, PlayedWatch

TIMEOUT_S = 10.0


@pytest.fixture(autouse=True, params=["of the system", "portable"])
def kind_of_watches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything holds on Linux and, by the watches of other systems, there as well."""
    if request.param == "portable":
        monkeypatch.setattr(watcher, "new_watches", lambda: workspace.portable_watches.PortableWatches())


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
    """The directories that are watched for paths below a root, with /a/b as the deepest one that exists."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_text("")
    found = covering(os.path.dirname(tmp_path / path) for path in paths)
    assert sorted({os.path.relpath(path, tmp_path) for path, _, _ in found.values()}) == watched


def test_a_directory_that_is_made_again_is_another(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a")]
    (tmp_path / "a").mkdir()
    before = covering(paths)
    (tmp_path / "a").rename(tmp_path / "kept")
    (tmp_path / "a").mkdir()
    assert covering(paths) != before


class Watched:
    """A running watcher over `wanted`, and what it told."""

    def __init__(self, wanted: set[str]) -> None:
        self.wanted = wanted
        self.told: list[set[str] | None] = []
        self._news = asyncio.Event()
        self.executor = ThreadPoolExecutor(2)
        self.reread: list[set[str]] = []
        self.report: Callable[[Watched], None] = lambda _: None
        self.on_change: Callable[[], None] | None = None
        self.watcher = Watcher(
            Subscriber(lambda: self.wanted, self._changed, self._reread),
            executor=self.executor,
            report=lambda: self.report(self),
        )

    def _changed(self, paths: set[str] | None) -> None:
        if self.on_change is not None:
            self.on_change()
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

    async def until_state(self, path: Path, state: str) -> None:
        """Wait until changes of a path are noticed in this way."""
        await wait_until(lambda: self.watcher.freshness([str(path)]).state == state)

    def has(self, path: Path) -> bool:
        return any(paths is not None and str(path) in paths for paths in self.told)


def watch(
    wanted: set[str],
    story: Callable[[Watched], Awaitable[None]],
    *,
    report: Callable[[Watched], None] = lambda _: None,
    stands: bool = True,
) -> None:
    async def run() -> None:
        watched = Watched(wanted)
        watched.report = report
        watched.watcher.start()
        watched.watcher.start()
        try:
            if stands:
                await watched.stands()
            else:
                await watched.until(lambda: bool(watched.told))
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
    monkeypatch.setattr("nexus_daemon.workspace.watcher.RECENT_S", 0.0)

    one, two = tmp_path / "one", tmp_path / "two"

    async def story(watched: Watched) -> None:
        for file in (two, one):
            file.write_text("1")
            await watched.until(lambda file=file: watched.has(file))  # type: ignore[misc]
        watched.wanted = {str(one), str(two)}
        watched.watcher.refresh()
        await watched.until_state(two, "watched")
        assert watched.reread == []

    watch({str(one)}, story)


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
def test_no_change_is_lost_while_other_threads_keep_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a C extension does that is being loaded."""
    watches = ObservedWatches(monkeypatch)
    sleep = ctypes.PyDLL(None).usleep
    file = tmp_path / "file"

    async def story(watched: Watched) -> None:
        loop = asyncio.get_running_loop()

        def hold() -> None:
            file.write_text(str(watches.tries))
            thread = threading.Thread(target=sleep, args=(int(HOLD_S * 1e6),))
            loop.call_soon_threadsafe(thread.start)  # once the watch stands

        watches.before_open = hold
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
    monkeypatch.setattr("nexus_daemon.workspace.watcher.RETRY_S", 0.05)
    caplog.set_level("DEBUG", "nexus_daemon")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = tmp_path / "one" / "file", tmp_path / "two" / "file"
    watches, failing = ObservedWatches(monkeypatch), threading.Event()

    def fail() -> None:
        if failing.is_set():
            raise OSError(28, "no more watches")

    watches.before_open = fail

    async def story(watched: Watched) -> None:
        failing.set()
        watched.wanted = {str(one), str(two)}
        watched.watcher.refresh()
        await wait_until(lambda: caplog.records)
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
            most = max(most, len(watched.watcher.watched))
        assert 1 < most <= 4

    watch({str(tmp_path / "file")}, story)


def test_nothing_to_watch_is_no_error(tmp_path: Path) -> None:
    async def run() -> None:
        watched = Watched(set())
        watched.watcher.refresh()
        watched.watcher.start()
        try:
            assert watched.watcher.freshness([]).state == "watched"
            watched.wanted = {str(tmp_path / "file")}  # it waits for something to watch
            watched.watcher.refresh()
            await watched.until_state(tmp_path / "file", "watched")
            assert watched.watcher.failure is None
        finally:
            await asyncio.wait_for(watched.watcher.close(), TIMEOUT_S)

    asyncio.run(run())


def test_a_watcher_that_fails_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nexus_daemon.workspace.watcher.RETRY_S", 0.01)
    caplog.set_level("DEBUG", "nexus_daemon")
    failures = iter([OSError("no more watches"), RuntimeError("gone"), OSError("still")])
    real = covering

    def failing(paths: object) -> object:
        for failure in failures:
            raise failure
        return real([str(tmp_path / "file")])

    monkeypatch.setattr("nexus_daemon.workspace.watched_places.covering", failing)

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
        failed = asyncio.Event()

        def fail() -> None:
            watched.on_change = None
            failed.set()
            raise ZeroDivisionError

        watched.on_change = fail
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
        await watched.until_state(tmp_path / "one" / "file", "watched")

        def slow(paths: object) -> object:
            found = real(paths)  # type: ignore[arg-type]
            begun.set()
            assert go_on.wait(TIMEOUT_S)
            return found

        monkeypatch.setattr("nexus_daemon.workspace.watched_places.covering", slow)
        watched.watcher.refresh()
        assert await asyncio.to_thread(begun.wait, TIMEOUT_S)
        watched.wanted = {str(tmp_path / "two" / "file")}
        watched.watcher.refresh()
        go_on.set()
        await watched.stands(tmp_path / "two" / "file")

    watch({str(tmp_path / "one" / "file")}, story)


class Limit(ObservedWatches):
    """A system whose watches are used up while `reached`; else the real one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.reached = True
        self.before_open = self._refuse
        monkeypatch.setattr("nexus_daemon.workspace.watcher.RETRY_S", 0.05)
        monkeypatch.setattr("nexus_daemon.workspace.watcher.RETRY_AT_MOST_S", 0.1)
        monkeypatch.setattr("nexus_daemon.workspace.watcher.CHECK_MS", 200)
        monkeypatch.setattr("nexus_daemon.workspace.polling.POLL_S", 0.02)
        monkeypatch.setattr("nexus_daemon.workspace.polling.REST", 1)
        for module in (workspace.inotify, workspace.portable_watches):
            for name, value in {"IDLE_S": 0.2, "IDLE_MS": 200}.items():
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, value)

    def _refuse(self) -> None:
        if self.reached:
            raise OSError("OS file watch limit reached.")


def test_without_watches_files_are_polled_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every change is told, the state says how, the failure is reported once, and so is that it is over."""
    caplog.set_level("DEBUG", "nexus_daemon")
    limit = Limit(monkeypatch)
    file = tmp_path / "a" / "file"
    reports: list[bool] = []

    async def story(watched: Watched) -> None:
        for text in ("1", "22", "333"):
            assert watched.watcher.freshness([str(file)]).state == "polled"
            watched.told.clear()
            write_file(file, text)
            await watched.until(lambda: watched.has(file))
        (reason,) = watched.watcher.freshness([str(file)]).reasons
        assert reason.startswith("no file watches are left for this user")
        limit.reached = False
        await watched.until_state(file, "watched")
        file.write_text("4444")
        await watched.until(lambda: watched.has(file))
        await wait_until(lambda: len(reports) >= 2)
        assert reports == [True, False]
        assert watched.watcher.freshness([str(file)]).reasons == ()

    def report(watched: Watched) -> None:
        reports.append(watched.watcher.failure is not None)

    watch({str(file)}, story, report=report, stands=False)
    assert [each.levelname for each in caplog.records if "failed" in each.message].count("WARNING") == 1
    assert limit.tries > 1


def test_at_the_limit_what_is_watched_stays_so_and_the_rest_is_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = Limit(monkeypatch)
    limit.reached = False
    one, two = tmp_path / "one" / "file", tmp_path / "two" / "file"
    for each in (one, two):
        each.parent.mkdir()

    async def story(watched: Watched) -> None:
        limit.reached = True
        watched.wanted = {str(one), str(two)}
        watched.watcher.refresh()
        await watched.until_state(two, "polled")
        assert watched.watcher.freshness([str(one)]).state == "watched"
        assert watched.watcher.freshness([str(one), str(two)]).state == "polled"
        for number in range(3):
            watched.told.clear()
            for each in (one, two):
                each.write_text("x" * number)
            await watched.until(lambda: watched.has(one) and watched.has(two))
        shutil.rmtree(one.parent)
        await watched.until_state(one, "polled")  # the directory that was watched has gone
        watched.told.clear()
        write_file(one, "made again")
        await watched.until(lambda: watched.has(one))
        watched.told.clear()
        limit.reached = False
        await watched.until_state(one, "watched")
        await watched.until_state(two, "watched")
        await watched.until(lambda: watched.has(two))  # what changed since the last look is not known
        watched.told.clear()
        write_file(one, "watched again")
        await watched.until(lambda: watched.has(one))

    watch({str(one)}, story)


def test_at_the_limit_a_directory_that_was_made_again_is_not_called_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have the old inode, but the system's watch of it has ended."""
    limit, gone = Limit(monkeypatch), asyncio.Event()

    async def play(_: PlayedWatch) -> AsyncGenerator[Changes | None, None]:
        yield ()
        await gone.wait()
        yield {(3, str(tmp_path))}
        await asyncio.Event().wait()

    opens = limit.open
    monkeypatch.setattr(limit, "open", lambda names: opens(names) if gone.is_set() else PlayedWatch(play))
    monkeypatch.setattr("nexus_daemon.workspace.watcher.END_S", 0.1)
    file = tmp_path / "file"

    async def story(watched: Watched) -> None:
        assert watched.watcher.freshness([str(file)]).state == "watched"
        gone.set()
        await watched.until_state(file, "polled")
        assert limit.tries > 0
        limit.reached = False
        await watched.until_state(file, "watched")

    watch({str(file)}, story)


def test_watching_is_not_tried_again_before_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much changes meanwhile: each try costs a call of the system for every directory."""
    limit = Limit(monkeypatch)
    monkeypatch.setattr("nexus_daemon.workspace.watcher.RETRY_S", 60.0)
    monkeypatch.setattr("nexus_daemon.workspace.watcher.RETRY_AT_MOST_S", 60.0)
    file = tmp_path / "file"

    async def story(watched: Watched) -> None:
        for number in range(5):
            watched.told.clear()
            file.write_text("x" * number)
            watched.watcher.refresh()
            await watched.until(lambda: watched.has(file))
        assert limit.tries == 1

    watch({str(file)}, story, stands=False)


def test_a_watch_that_ends_is_polled_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, broken = Limit(monkeypatch), asyncio.Event()
    file = tmp_path / "file"

    async def play(_: PlayedWatch) -> AsyncGenerator[Changes | None, None]:
        yield ()
        await broken.wait()
        raise ZeroDivisionError

    opens = limit.open
    monkeypatch.setattr(limit, "open", lambda names: opens(names) if broken.is_set() else PlayedWatch(play))

    async def story(watched: Watched) -> None:
        states: list[str] = []
        watched.report = lambda watched: states.append(watched.watcher.freshness([str(file)]).state)
        broken.set()
        await watched.until_state(file, "polled")
        assert states == ["unknown"]  # when it failed
        await watched.until(lambda: watched.has(file))  # what changed between the two is not known
        watched.told.clear()
        file.write_text("1")
        await watched.until(lambda: watched.has(file))

    watch({str(file)}, story)


def test_a_directory_that_may_not_be_listed_is_polled_and_the_others_are_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Limit(monkeypatch).reached = False
    shut, open_ = tmp_path / "shut" / "file", tmp_path / "open" / "file"
    for each in (shut, open_):
        each.parent.mkdir()
    closed = {str(shut.parent)}
    monkeypatch.setattr(os, "access", lambda path, mode: path not in closed)  # root may list everything

    async def story(watched: Watched) -> None:
        await watched.until_state(shut, "polled")
        assert watched.watcher.freshness([str(open_)]).state == "watched"
        assert watched.watcher.freshness([str(shut)]).reasons == (
            f"you may not list the directory {shut.parent}",
        )
        assert watched.watcher.failure is None
        shut.write_text("1")
        await watched.until(lambda: watched.has(shut))
        closed.clear()
        await watched.until_state(shut, "watched")

    watch({str(shut), str(open_)}, story)
    assert [each.message for each in caplog.records].count(
        f"you may not list the directory {shut.parent}; files there are polled"
    ) == 1


def test_a_network_file_system_is_watched_and_polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine changes is noticed at once, what another one does by looking."""
    limit = Limit(monkeypatch)
    limit.reached = False
    failure = Failure("file systems of type nfs4 do not report changes by other machines")
    monkeypatch.setattr(watched_places, "network_devices", lambda: {tmp_path.stat().st_dev: failure})
    file = tmp_path / "file"

    async def story(watched: Watched) -> None:
        state = watched.watcher.freshness([str(file)])
        assert (state.state, state.reasons) == ("polled", (failure.reason,))
        file.write_text("1")
        await watched.until(lambda: watched.has(file))
        assert watched.watcher.watched == (frozenset({str(tmp_path)}),)
        limit.opened[-1].end()  # what another machine changes is not reported
        file.write_text("22")
        watched.told.clear()
        file.write_text("333")
        await watched.until(lambda: watched.has(file))

    watch({str(file)}, story)


def test_what_the_system_does_not_report_is_noticed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its queue overflows, or on a file system that nobody knows to say too little."""
    monkeypatch.setattr(watcher, "VERIFY_S", 0.05)

    async def deaf(watch: PlayedWatch) -> AsyncGenerator[Changes | None, None]:
        while not watch.ended:
            await asyncio.sleep(0.01)
            yield ()

    watches = ObservedWatches(monkeypatch)
    monkeypatch.setattr(watches, "open", lambda _: PlayedWatch(deaf))
    file = tmp_path / "a" / "file"

    async def story(watched: Watched) -> None:
        for text in ("1", "22"):
            write_file(file, text)
            await watched.until(lambda: watched.has(file))
            assert watched.watcher.freshness([str(file)]).state == "watched"
            watched.told.clear()

    watch({str(file)}, story)


def test_what_is_not_watched_yet_is_unknown_since_it_was_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, real = threading.Event(), threading.Event(), covering
    one, two = tmp_path / "one" / "file", tmp_path / "two" / "file"

    async def story(watched: Watched) -> None:
        def hanging(paths: object) -> object:
            begun.set()
            assert go_on.wait(TIMEOUT_S)
            return real(paths)  # type: ignore[arg-type]

        monkeypatch.setattr("nexus_daemon.workspace.watched_places.covering", hanging)
        began = time.time()
        watched.wanted = {str(one), str(two)}
        watched.watcher.refresh()
        assert await asyncio.to_thread(begun.wait, TIMEOUT_S)
        unknown = watched.watcher.freshness([str(one), str(two)])
        assert unknown.state == "unknown"
        assert unknown.since is not None and began <= unknown.since <= time.time()
        assert watched.watcher.freshness([str(one)]).state == "watched"
        go_on.set()
        await watched.until_state(two, "watched")

    watch({str(one)}, story)


def test_the_state_before_the_start() -> None:
    began = time.time()
    idle = Watched({"/a"}).watcher.freshness(["/a"])
    assert idle.state == "unknown" and idle.since is not None and began <= idle.since <= time.time()
    assert Watched(set()).watcher.freshness([]) == Freshness("watched")


def test_what_is_polled_is_unknown_while_a_look_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a network file system whose server has gone."""
    Limit(monkeypatch)
    monkeypatch.setattr("nexus_daemon.workspace.polling.LATE_S", 0.05)
    go_on, real, began = threading.Event(), polling.read_stamps, time.time()

    def hanging(paths: Any) -> Any:
        assert go_on.wait(TIMEOUT_S)
        return real(paths)

    file = tmp_path / "file"

    async def story(watched: Watched) -> None:
        monkeypatch.setattr(polling, "read_stamps", hanging)
        await watched.until_state(file, "unknown")
        unknown = watched.watcher.freshness([str(file)])
        assert unknown.since is not None and began <= unknown.since <= time.time()
        assert "hangs" in unknown.reasons[-1]
        go_on.set()
        await watched.until_state(file, "polled")

    watch({str(file)}, story, stands=False)
