"""When a load has to end, and what remains."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from nexus_context.disk import deadline
from nexus_context.disk.deadline import PATIENCE_S, Deadline, LoadStopped, Turns
from nexus_context.errors import Severity
from nexus_context.folder.loading import OVERDUE, load, overdue
from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_inputs

FILES = """
//- /home/co/.nexus3/config.json
{"agents": {"a": {}, "b": {}}}
//- /home/co/.nexus3/mcp.json
{"servers": {"x": {"command": "x"}}}
//- /home/co/.nexus3/NEXUS.md
Hello @other.md
//- /home/co/.nexus3/other.md
There.
//- /home/co/.nexus3/skills/s/SKILL.md
---
name: s
description: s
---
"""


class Clock:
    """Seconds since it was made: one more at each call."""

    def __init__(self) -> None:
        self._seconds: Iterator[int] = count()

    def __call__(self) -> float:
        return next(self._seconds)


def check(tree: Fixture, seconds: int) -> Snapshot | str:
    """The folder, loaded with this number of check points, or the path at which that ended."""
    try:
        return load(
            tree.path("/home/co"),
            load_inputs(tree.path("/home")),
            deadline=Deadline(seconds, clock=Clock()),
        )
    except LoadStopped as stopped:
        assert not stopped.superseded
        return stopped.path.removeprefix(tree.root)


def test_a_load_may_end_before_each_file_and_each_step(tmp_path: Path) -> None:
    tree = write_fixture(FILES, tmp_path)
    ends = []
    for seconds in range(1000):
        ended = check(tree, seconds)
        if isinstance(ended, Snapshot):
            break
        ends.append(ended)
    else:
        pytest.fail("a load asks more than a thousand times")
    for name in ("config.json", "mcp.json", "NEXUS.md", "other.md", "skills/s/SKILL.md"):
        assert f"/home/co/.nexus3/{name}" in ends
    assert ends[-1] == "/home/co"  # what is left is to render the prompt
    assert ends.count("/home/co/.nexus3/config.json") >= 5  # read, parsed, checked; each agent


def test_what_is_superseded_has_a_little_time_left() -> None:
    now = [0.0]
    end = Deadline(100, clock=lambda: now[0])
    end.supersede()
    for now[0] in (0.0, PATIENCE_S):
        end.check("/a")
    now[0] = PATIENCE_S + 0.1
    with pytest.raises(LoadStopped) as stopped:
        end.check("/b")
    assert (stopped.value.path, stopped.value.superseded) == ("/b", True)


def test_long_loads_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four threads compute: one at a time continues, all reach their end, and waiting costs no time."""
    monkeypatch.setattr(deadline, "QUICK_S", 0.0)
    monkeypatch.setattr(deadline, "TURN_S", 0.0)
    monkeypatch.setattr(deadline, "LONGEST_TURN_S", 60.0)  # a busy machine
    turns, order, working = Turns(), list[int](), [0]
    began = threading.Barrier(4)

    def compute(number: int) -> None:
        began.wait()
        with Deadline(5.0, turns) as end:
            for _ in range(20):
                end.check("/a")
                working[0] += 1
                assert working[0] == 1
                order.append(number)
                time.sleep(0.001)
                working[0] -= 1

    with ThreadPoolExecutor(4) as executor:
        for job in [executor.submit(compute, number) for number in range(4)]:
            job.result(10)
    assert sorted(order) == sorted([*range(4)] * 20)
    whole = order[4:-4]  # once all are there, each has every fourth turn
    assert sum(whole[at] != whole[at - 4] for at in range(4, len(whole))) <= len(whole) // 4


def test_who_waits_for_a_turn_does_not_run_out_of_time() -> None:
    now = [0.0]
    turns = Turns()
    turns.take("another")
    with pytest.MonkeyPatch.context() as patch, Deadline(10, turns, clock=lambda: now[0]) as end:
        patch.setattr(deadline, "QUICK_S", -1.0)

        def pass_by() -> None:
            now[0] += 100
            turns.give("another")

        timer = threading.Timer(0.05, pass_by)
        timer.start()
        end.check("/a")  # which waits for the turn
        timer.join()
        end.check("/b")
        now[0] += 10.1
        with pytest.raises(LoadStopped):
            end.check("/c")


def test_a_quick_load_waits_for_nobody() -> None:
    turns = Turns()
    turns.take("another")  # and never gives it back
    with Deadline(10, turns) as end:
        for _ in range(100):
            end.check("/a")


def test_a_load_that_hangs_loses_its_turn() -> None:
    turns = Turns()
    turns.take("hung")
    waiting = [threading.Thread(target=turns.take, args=(name,), daemon=True) for name in ("a", "b")]
    for thread in waiting:
        thread.start()
        thread.join(0.05)  # so that they stand in this order
    waiting[0].join(10)
    assert not waiting[0].is_alive()
    turns.give("hung")  # at last: the turn is no longer its own
    turns.give("a")
    waiting[1].join(10)
    assert not waiting[1].is_alive()


def test_who_contains_failures_does_not_contain_this() -> None:
    assert not issubclass(LoadStopped, Exception)
    assert deadline.LOAD_S > PATIENCE_S


def test_the_last_snapshot_says_that_there_is_no_newer_one(tmp_path: Path) -> None:
    tree = write_fixture(FILES, tmp_path)
    before = check(tree, 1000)
    assert isinstance(before, Snapshot)
    stopped = LoadStopped(tree.path("/home/co/.nexus3/mcp.json"), superseded=False, seconds=30)
    late = overdue(before, stopped)
    (problem,) = (one for one in late.problems if one.code == OVERDUE)
    assert (problem.path, problem.severity) == (stopped.path, Severity.ERROR)
    assert problem.message == snapshot(
        "Loading the folder was stopped here after 30 s; what was read before stays in "
        "force. Make its files fewer or smaller. The folder is loaded again when one of them "
        "changes."
    )
    assert (late.revision, late.prompt) == (before.revision + 1, before.prompt)
    assert overdue(late, stopped) is late
    assert json.dumps(late.effective.values) == json.dumps(before.effective.values)
