"""The rebuild queue: one at a time, nothing lost, nothing waited for twice."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from nexus_context.disk import deadline as deadlines
from nexus_context.disk.deadline import Deadline, LoadStopped
from nexus_context.errors import RequestError
from nexus_daemon.workspace import reload as reloads_module
from nexus_daemon.workspace.reload import Reload, Swap
from support.waiting import wait_until, yield_to_loop

Log = list[tuple[Any, Any, list[str]]]


class Build:
    """A queue over numbers instead of snapshots; a build waits until `gate` is open."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Semaphore(0)
        self.fail = False
        self.text = "0"
        self.running = self.most = 0
        self.log: Log = []
        self.on_swap: Callable[[], None] | None = None
        self.reload: Any = Reload(self._prepare, self._swap, executor)

    def _prepare(self, previous: Any, changed: frozenset[str] | None) -> Callable[[Deadline], Any]:
        text = self.text

        def job(deadline: Deadline) -> Any:
            self.running += 1
            self.most = max(self.most, self.running)
            self.started.release()
            assert self.gate.wait(10)
            self.running -= 1
            if self.fail:
                raise ZeroDivisionError
            return text

        return job

    def _swap(self, swap: Swap) -> None:
        if self.on_swap is not None:
            self.on_swap()
        self.log.append((swap.old, swap.new, sorted(swap.reasons)))

    async def begun(self) -> None:
        """Wait until one more build has begun."""
        assert await asyncio.to_thread(self.started.acquire, timeout=10)


def check(story: Callable[[Build], Awaitable[None]]) -> Log:
    """Tell a story about a queue; the swaps in order: old, new, reasons."""

    async def run() -> Log:
        with ThreadPoolExecutor(2) as executor:
            build = Build(executor)
            await story(build)
            build.gate.set()
            if not build.reload.cancelled:
                await asyncio.wait_for(build.reload.settled(), 10)
            assert build.most <= 1
            return build.log

    return asyncio.run(run())


def test_what_gathers_during_a_build_leads_to_one_more() -> None:
    async def story(build: Build) -> None:
        build.gate.clear()
        build.reload.request("folder")
        await build.begun()
        for number in range(5):
            build.text = str(number)
            build.reload.request("config" if number % 2 else "mcp")
        build.gate.set()

    assert check(story) == [(None, "0", ["folder"]), ("0", "4", ["config", "mcp"])]


def test_nothing_is_built_before_the_loop_runs() -> None:
    async def story(build: Build) -> None:
        build.reload.request("a")
        build.reload.request("b")
        build.text = "later"

    assert check(story) == [(None, "later", ["a", "b"])]


def test_settled_waits_for_what_was_asked_before_and_no_longer() -> None:
    async def story(build: Build) -> None:
        await build.reload.settled()
        assert build.reload.snapshot is None
        build.gate.clear()
        build.reload.request("a")
        await build.begun()
        early = asyncio.ensure_future(build.reload.settled())
        await yield_to_loop()
        build.text = "1"
        build.reload.request("b")
        late = asyncio.ensure_future(build.reload.settled())
        await yield_to_loop()
        assert not early.done()
        build.on_swap = build.gate.clear
        build.gate.set()
        await asyncio.wait_for(early, 10)
        now: Any = build.reload.snapshot
        assert (now, late.done()) == ("0", False)
        build.gate.set()
        await asyncio.wait_for(late, 10)
        assert build.reload.snapshot == "1"

    assert len(check(story)) == 2


def test_a_waiter_that_gives_up_is_forgotten() -> None:
    async def story(build: Build) -> None:
        build.reload.request("a")
        waiting = asyncio.ensure_future(build.reload.settled())
        await yield_to_loop()
        waiting.cancel()
        await asyncio.wait_for(build.reload.settled(), 10)
        assert waiting.cancelled()

    assert len(check(story)) == 1


def test_what_a_failed_build_missed_the_next_makes_up_for() -> None:
    seen: list[frozenset[str] | None] = []

    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:

            def prepare(_: Any, changed: frozenset[str] | None) -> Callable[[Deadline], Any]:
                seen.append(changed)
                if changed is not None and "/bad" in changed:
                    raise ZeroDivisionError
                return lambda _: "snapshot"

            reload: Any = Reload(prepare, lambda *_: None, executor)
            for path in (None, "/bad", "/a", "/b"):
                reload.request("config", path)
                await asyncio.wait_for(reload.settled(), 10)

    asyncio.run(run())
    assert seen == [None, frozenset({"/bad"}), None, frozenset({"/b"})]


def test_a_build_that_fails_keeps_the_last_state() -> None:
    async def story(build: Build) -> None:
        build.reload.request("a")
        await build.reload.settled()
        build.fail = True
        build.reload.request("b")
        await build.reload.settled()
        assert build.reload.snapshot == "0"
        build.fail, build.text = False, "2"
        build.reload.request("c")

    assert check(story) == [(None, "0", ["a"]), ("0", "2", ["c"])]


def test_a_swap_that_fails_does_not_end_the_queue() -> None:
    async def story(build: Build) -> None:
        def fail() -> None:
            raise ZeroDivisionError

        build.on_swap = fail
        build.reload.request("a")
        await build.reload.settled()
        build.on_swap = None
        build.reload.request("b")

    assert [reasons for _, _, reasons in check(story)] == [["b"]]


def test_cancel_forgets_a_build_under_way() -> None:
    async def story(build: Build) -> None:
        build.gate.clear()
        build.reload.request("a")
        await build.begun()
        build.reload.request("b")
        waiting = asyncio.ensure_future(build.reload.settled())
        await yield_to_loop()
        build.reload.cancel()
        build.gate.set()
        for late in (waiting, build.reload.settled()):
            with pytest.raises(RequestError) as failed:
                await asyncio.wait_for(late, 10)
            assert failed.value.code == "folder-removed"
        build.reload.request("c")
        assert build.reload.snapshot is None

    assert check(story) == []


def test_cancel_in_the_moment_of_the_first_request() -> None:
    async def story(build: Build) -> None:
        build.reload.request("a")
        waiting = asyncio.ensure_future(build.reload.settled())
        build.reload.cancel()
        with pytest.raises(RequestError, match="was removed"):
            await asyncio.wait_for(waiting, 10)

    assert check(story) == []


def test_a_build_knows_the_only_paths_that_changed() -> None:
    """What was edited in the editor is looked at alone; a change on disk means looking at everything."""
    seen: list[frozenset[str] | None] = []

    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:

            def prepare(_: Any, changed: frozenset[str] | None) -> Callable[[Deadline], Any]:
                seen.append(changed)
                return lambda _: "snapshot"

            reload: Any = Reload(prepare, lambda *_: None, executor)
            for requests in ([("folder", None)], [("config", "/a")], [("config", "/a"), ("mcp", "/b")]):
                for reason, path in requests:
                    reload.request(reason, path)
                await reload.settled()
            reload.request("config", "/a")
            reload.request("disk")
            await reload.settled()

    asyncio.run(run())
    assert seen == [None, frozenset({"/a"}), frozenset({"/a", "/b"}), None]


def stopping(stops: list[LoadStopped], log: list[str]) -> Callable[[Deadline], Any]:
    """A job that asks again and again whether it has to end."""

    def job(deadline: Deadline) -> Any:
        log.append("begun")
        for _ in range(10_000):
            try:
                deadline.check("/big")
            except LoadStopped as stopped:
                stops.append(stopped)
                raise
            threading.Event().wait(0.001)
        return "never"

    return job


def test_a_build_that_is_superseded_ends_and_the_next_holds_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "PATIENCE_S", 0.0)
    stops: list[LoadStopped] = []
    log: list[str] = []
    seen: list[Any] = []

    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:
            jobs = [stopping(stops, log), lambda _: "snapshot"]

            def prepare(_: Any, changed: frozenset[str] | None) -> Any:
                seen.append(changed)
                return jobs.pop(0)

            reload: Any = Reload(
                prepare, lambda swap: seen.append((swap.new, sorted(swap.reasons))), executor
            )
            reload.request("folder")
            await wait_until(lambda: log)
            reload.request("config", "/a")
            await asyncio.wait_for(reload.settled(), 10)
            assert (reload.snapshot, reload.stopped) == ("snapshot", None)

    asyncio.run(run())
    assert [one.superseded for one in stops] == [True]
    assert seen == [None, None, ("snapshot", ["config", "folder"])]


def test_what_makes_up_for_a_superseded_build_is_not_superseded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who types all the time sees the folder all the same."""
    monkeypatch.setattr(deadlines, "PATIENCE_S", 0.0)
    stops: list[LoadStopped] = []
    log: list[str] = []
    reloads: list[Any] = []

    def second(deadline: Deadline) -> Any:
        reloads[0].loop.call_soon_threadsafe(reloads[0].request, "typed", "/a")
        for _ in range(50):
            threading.Event().wait(0.001)
            deadline.check("/big")
        return "second"

    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:
            jobs = [stopping(stops, log), second, lambda _: "third"]
            swaps: list[Any] = []
            reload: Any = Reload(lambda *_: jobs.pop(0), lambda swap: swaps.append(swap.new), executor)
            reload.loop = asyncio.get_running_loop()
            reloads.append(reload)
            reload.request("folder")
            await wait_until(lambda: log)
            reload.request("typed", "/a")
            await asyncio.wait_for(reload.settled(), 10)
            await asyncio.wait_for(reload.settled(), 10)
            assert swaps == ["second", "third"]

    asyncio.run(run())
    assert len(stops) == 1


def test_a_build_out_of_time_keeps_the_last_state_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[LoadStopped] = []
    told: list[LoadStopped] = []

    async def run() -> None:
        with ThreadPoolExecutor(1) as executor:
            jobs = [lambda _: "first", stopping(stops, []), lambda _: "third"]
            seen: list[Any] = []

            def prepare(_: Any, changed: frozenset[str] | None) -> Any:
                seen.append(changed)
                return jobs.pop(0)

            reload: Any = Reload(prepare, lambda *_: None, executor, on_overdue=told.append)
            reload.request("folder")
            await asyncio.wait_for(reload.settled(), 10)
            monkeypatch.setattr(reloads_module, "LOAD_S", 0.02)
            reload.request("config", "/a")
            await asyncio.wait_for(reload.settled(), 10)
            assert (reload.snapshot, reload.stopped) == ("first", told[0])
            assert (told[0].path, told[0].superseded, told[0].seconds) == ("/big", False, 0.02)
            assert told[0].__traceback__ is None  # through it all that the load has read would stay
            reload.request("config", "/b")
            await asyncio.wait_for(reload.settled(), 10)
            assert (reload.snapshot, reload.stopped) == ("third", None)
            assert seen == [None, frozenset({"/a"}), None]  # the last one makes up for what was given up

    asyncio.run(run())
    assert told == stops
