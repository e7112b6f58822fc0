"""The stall watchdog: what blocked the loop, for how long, and whose fault it is."""

import asyncio
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import nexus_context
import nexus_daemon
from support.editor import Editor
from support.shared import shared_home
from support.stall_rule import ReportFile, describe, is_fault, is_long, stalls_in
from support.stalls_at_start import stall_watchdog
from support.stalls_at_start.stall_watchdog import Stall, watch
from support.waiting import block_until, wait_until

SHORT_MS = 20.0
BLOCKED = """
import time
from nexus_daemon.lsp.documents import OpenDocuments
open_document = OpenDocuments.open
def block_and_open(*arguments):
    time.sleep(0.5)
    return open_document(*arguments)
OpenDocuments.open = block_and_open
"""
"""Has a daemon block its loop when a client opens a document."""


def check(block: Callable[[], object], *, limit_ms: float = SHORT_MS) -> list[Stall]:
    """Block a loop once; its stalls."""
    stalls: list[Stall] = []

    async def run() -> None:
        stop = watch(asyncio.get_running_loop(), stalls.append, limit_ms=limit_ms)
        await asyncio.sleep(0)
        block()
        await asyncio.sleep(0)
        stop()
        block()  # not watched any more
        await asyncio.sleep(0)

    asyncio.run(run())
    return stalls


def compute(seconds: float = 0.06) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def sleep() -> None:
    time.sleep(0.3)


def lock() -> None:
    release = threading.Event()
    threading.Timer(0.3, release.set).start()
    release.wait()


@pytest.mark.parametrize(("block", "kind"), [(compute, "busy"), (sleep, "blocked"), (lock, "locked")])
def test_why_the_loop_was_blocked(block: Callable[[], object], kind: str) -> None:
    for _ in range(5):  # on a machine that is busy itself, the thread may have waited for a processor
        (stall,) = check(block)
        if stall.kind != "starved":
            break
    assert (stall.kind, stall.is_over) == (kind, True)
    assert stall.ms >= 50
    functions = [function for _, _, function in stall.stack]
    assert block.__name__ in functions[:4]
    assert functions.index(block.__name__) < functions.index("check.<locals>.run")


def test_what_is_short_is_not_reported() -> None:
    assert check(lambda: None, limit_ms=5_000) == []


def test_what_the_thread_does_between_two_runs_of_its_loop_is_not_blocking() -> None:
    stalls: list[Stall] = []

    async def run(block: Callable[[], object]) -> None:
        await asyncio.sleep(0)
        block()

    with asyncio.Runner() as runner:
        stop = watch(runner.get_loop(), stalls.append, limit_ms=SHORT_MS)
        runner.run(run(lambda: None))
        compute()
        runner.run(run(lambda: None))
        assert stalls == []
        runner.run(run(compute))  # the last turn of a run counts
        assert [stall.kind for stall in stalls] == ["busy"]
        stop()


def test_waiting_is_not_blocking() -> None:
    stalls: list[Stall] = []

    async def run() -> None:
        stop = watch(asyncio.get_running_loop(), stalls.append, limit_ms=SHORT_MS)
        await asyncio.gather(asyncio.sleep(0.1), asyncio.to_thread(time.sleep, 0.1))
        stop()

    asyncio.run(run())
    assert [stall for stall in stalls if stall.kind != "starved"] == []


def test_a_loop_that_hangs_is_reported_while_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall_watchdog, "STUCK_S", 0.05)
    is_reported = threading.Event()

    def report(stall: Stall) -> None:
        stalls.append(stall)
        is_reported.set()

    stalls: list[Stall] = []

    async def run() -> None:
        stop = watch(asyncio.get_running_loop(), report, limit_ms=SHORT_MS)
        await asyncio.sleep(0)
        is_reported.wait(10)
        await asyncio.sleep(0)
        stop()

    asyncio.run(run())
    assert [stall.is_over for stall in stalls] == [False, True]


def test_two_loops_are_watched_at_once() -> None:
    stalls: dict[str, list[Stall]] = {"a": [], "b": []}

    async def run(name: str) -> None:
        stop = watch(asyncio.get_running_loop(), stalls[name].append, limit_ms=SHORT_MS)
        await asyncio.sleep(0)
        if name == "a":
            sleep()
        await asyncio.sleep(0)
        stop()

    threads = [threading.Thread(target=asyncio.run, args=(run(name),)) for name in stalls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [stall.kind for stall in stalls["a"]] == ["blocked"]
    assert [stall for stall in stalls["b"] if stall.kind != "starved"] == []


def test_an_idle_loop_costs_nothing() -> None:
    """The watchdog's thread waits while the loop waits: it takes no samples of an idle process."""
    watchdog = stall_watchdog._watchdog  # noqa: SLF001

    async def run() -> None:
        stop = watch(asyncio.get_running_loop(), lambda _: None, limit_ms=SHORT_MS)
        loop = asyncio.get_running_loop()
        idle = loop.create_future()
        threading.Thread(target=lambda: loop.call_soon_threadsafe(idle.set_result, is_asleep())).start()
        assert await idle
        stop()
        await wait_until(lambda: True)

    def is_asleep() -> bool:
        until = time.monotonic() + 10
        while not watchdog.is_asleep and time.monotonic() < until:
            time.sleep(0.001)
        return watchdog.is_asleep

    asyncio.run(run())


def test_a_daemon_that_a_test_starts_is_watched(tmp_path: Path, stall_reports: ReportFile) -> None:
    with Editor(tmp_path, before=BLOCKED) as editor:
        editor.hello()
        editor.request("nexus/status", {})  # by then all that a daemon needs is imported
        editor.open(tmp_path / "a.json", "{}")
        editor.goodbye()
    check_reported(list(stalls_in(stall_reports)), editor.process.pid)


def test_a_daemon_without_the_fault_reports_nothing(tmp_path: Path, stall_reports: ReportFile) -> None:
    with Editor(tmp_path) as editor:
        editor.hello()
        editor.open(tmp_path / "a.json", "{}")
        editor.goodbye()
    assert list(stalls_in(stall_reports)) == []


def test_a_shared_daemon_is_watched_until_it_is_killed(tmp_path: Path, stall_reports: ReportFile) -> None:
    """What it reported before the kill is there, also if its log is its own."""
    code = tmp_path / "code"
    for package in (nexus_context, nexus_daemon):
        source, ignored = Path(str(package.__file__)).parent, shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, code / source.name, ignore=ignored)
    dispatch = code / "nexus_daemon" / "lsp" / "dispatch.py"
    opens = "        self._server.documents.open(params.text_document)\n"
    blocks = (
        "        def block_and_open():\n            __import__('time').sleep(0.5)\n        block_and_open()\n"
    )
    text = dispatch.read_text(encoding="utf-8")
    assert opens in text
    dispatch.write_text(text.replace(opens, blocks + opens), encoding="utf-8")
    with shared_home(tmp_path / "home", has_own_log=True) as home:
        home.variables["PYTHONPATH"] = os.pathsep.join([str(code), os.environ["PYTHONPATH"]])
        with home.window() as window:
            window.hello()
            pid = home.pid()
            assert pid not in (None, window.process.pid)
            window.open(tmp_path / "a.json", "{}")
            reports = block_until(lambda: list(stalls_in(stall_reports)))
            home.end(signal.SIGKILL)
        check_reported(reports, pid)


def check_reported(reports: list[str], pid: int | None) -> None:
    """There is one report: of this process, with what blocked it and who called that."""
    (report,) = reports
    head, blocking, calling, *_ = report.split("\n")
    assert head.startswith(f"{pid}: ")
    assert "(blocked; " in head
    assert blocking.endswith("block_and_open")
    assert "nexus_daemon/lsp/dispatch.py:" in calling


def test_a_stall_in_words() -> None:
    stack = (("/x/python3.11/time.py", 3, "sleep"), ("/x/nexus_daemon/windows/daemon.py", 12, "Daemon.join"))
    stall = Stall(kind="blocked", ms=61.4, cpu_ms=1.0, gc_ms=0.0, samples=4, stack=stack)
    assert describe(stall) == (
        "stall: the event loop was blocked for 61 ms (blocked; 1 ms computing, 0 ms collecting garbage; "
        "4 samples)\n  time.py:3 sleep\n  nexus_daemon/windows/daemon.py:12 Daemon.join"
    )


OURS = ("nexus_daemon/windows/daemon.py:12", "Daemon.join")
LIBRARY = ("nexus_context/folder/loading.py:3", "load")
TEST = ("tests/test_state.py:30", "test_join")
SUPPORT = ("support/talk.py:3", "Talk.send")
START = ("nexus_daemon/windows/connection.py:62", "Connection.start")


@pytest.mark.parametrize(
    ("kind", "frames", "fails"),
    [
        ("busy", [OURS], True),
        ("blocked", [("time.py:1", "sleep"), OURS], True),
        ("locked", [("threading.py:1", "Condition.wait"), OURS], True),
        ("starved", [OURS], False),
        ("collecting", [OURS], False),
        ("busy", [LIBRARY, OURS, TEST], True),
        ("busy", [LIBRARY, TEST, OURS], False),
        ("busy", [SUPPORT, OURS], False),
        ("busy", [LIBRARY], False),
        ("busy", [LIBRARY, START], False),
        ("busy", [], False),
    ],
)
def test_which_stalls_fail_a_test(kind: str, frames: list[tuple[str, str]], fails: bool) -> None:
    assert is_fault(kind, frames) is fails


@pytest.mark.parametrize(
    ("kind", "ms", "cpu_ms", "fails"),
    [
        ("busy", 160, 155, True),
        ("busy", 990, 73, False),  # it waited for the processor, and then computed
        ("busy", 149, 149, False),
        ("blocked", 160, 0, True),
        ("locked", 160, 3, True),
        ("blocked", 149, 0, False),
    ],
)
def test_how_long_a_turn_may_be(kind: str, ms: float, cpu_ms: float, fails: bool) -> None:
    assert is_long(kind, ms, cpu_ms) is fails
