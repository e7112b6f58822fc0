"""Spans: nothing while nothing is recorded, their parents across tasks and threads, and the trace format."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_daemon.process import tracing
from nexus_daemon.process.tracing import Recorder, Span
from nexus_daemon.process.tracing.chrome import REQUESTS, THREADS, chrome_trace

Event = dict[str, Any]


def check(recorder: Recorder) -> list[Event]:
    """The spans of a recording in the trace format, after a look at the format's rules."""
    trace = json.loads(json.dumps(chrome_trace(recorder), allow_nan=False))
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    rows: dict[tuple[int, int], list[Event]] = {}
    named = set()
    for event in trace["traceEvents"]:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            named.add((event["pid"], event["tid"]))
            continue
        assert event["ph"] == "X"
        assert isinstance(event["name"], str)
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert (event["pid"], event["tid"]) in named
        rows.setdefault((event["pid"], event["tid"]), []).append(event)
    for events in rows.values():
        check_nesting(events)
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def check_nesting(events: list[Event]) -> None:
    """Of two spans in a row, one contains the other, or they do not overlap."""
    ends: list[float] = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while ends and ends[-1] <= event["ts"] + 1e-6:
            ends.pop()
        assert not ends or event["ts"] + event["dur"] <= ends[-1] + 1e-6, event
        ends.append(event["ts"] + event["dur"])


def parents(recorder: Recorder) -> dict[str, str | None]:
    return {span.name: None if span.parent is None else span.parent.name for span in recorder.spans}


def test_nothing_is_kept_while_nothing_is_recorded() -> None:
    with tracing.span("a") as one, tracing.phase("b"):
        tracing.mark("c")
        tracing.note(folder="x")
        assert (one, tracing.begin("d"), tracing.now()) == (None, None, None)
        tracing.end(None)
    with tracing.recording() as recorder:
        pass
    assert recorder.spans == []


def test_parents_across_tasks_and_threads() -> None:
    async def child() -> None:
        with tracing.phase("task"):
            await asyncio.sleep(0)

    async def run() -> None:
        with tracing.phase("request"), ThreadPoolExecutor(1) as executor:
            job = tracing.carry(lambda: tracing.mark("inside"), "worker")
            await asyncio.gather(child(), asyncio.wrap_future(executor.submit(job)))
        with tracing.span("next"):
            pass

    with tracing.recording() as recorder:
        asyncio.run(run())
    expected = {"request": None, "task": "request", "queue": "request", "worker": "request"}
    assert parents(recorder) == {**expected, "inside": "worker", "next": None}
    assert {event["cat"] for event in check(recorder) if event["pid"] == THREADS} == {"worker", "next"}


def test_parallel_parts_of_a_request_have_lanes_of_their_own() -> None:
    async def part(name: str) -> None:
        with tracing.phase(name):
            await asyncio.sleep(0)

    async def run() -> None:
        with tracing.phase("request", method="m", connection=3):
            await asyncio.gather(part("a"), part("b"))

    with tracing.recording() as recorder:
        asyncio.run(run())
    rows = {event["cat"]: event["tid"] for event in check(recorder) if event["pid"] == REQUESTS}
    assert rows == {"request": 1, "a": 1, "b": 2}


def test_a_span_has_its_outcome_and_facts() -> None:
    with tracing.recording() as recorder:
        with pytest.raises(KeyError), tracing.phase("request", method="nexus/x"):
            tracing.note(folder="/home/ana/x", session=None)
            with tracing.span("inner"):
                tracing.note(total=3)
            raise KeyError("the user's words")
        tracing.begin("open")
    events = {event["cat"]: event for event in check(recorder)}
    assert events["request"]["name"] == "nexus/x"
    assert events["request"]["args"] == {"folder": "/home/ana/x", "total": 3, "outcome": "KeyError"}
    assert events["open"]["args"] == {"unfinished": True}


def test_texts_are_covered() -> None:
    with tracing.recording() as recorder, tracing.span("a", folder="/home/ana"):
        pass
    trace = chrome_trace(recorder, lambda text: text.replace("/home/ana", "~"))
    assert "/home/ana" not in json.dumps(trace)


def test_only_so_many_spans_are_recorded() -> None:
    with tracing.recording(limit=2) as recorder:
        for name in "abcd":
            tracing.mark(name)
    assert chrome_trace(recorder)["otherData"] == {"spans": 2, "dropped": 2}


def test_only_one_recording_at_a_time() -> None:
    with tracing.recording():
        with pytest.raises(tracing.AlreadyRecordingError), tracing.recording():
            pass
        assert tracing.now() is not None
    assert tracing.now() is None


def test_threads_are_named() -> None:
    def work() -> None:
        with tracing.span("a"):
            pass

    with tracing.recording() as recorder:
        thread = threading.Thread(target=work, name="nexus-7")
        thread.start()
        thread.join()
    events = chrome_trace(recorder)["traceEvents"]
    names = [event["args"].get("name") for event in events if event["name"] == "thread_name"]
    assert names == ["background", "nexus-7"]


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(-1, 10), st.sampled_from([None, 1, 2])),
        max_size=12,
    )
)
def test_every_recording_is_a_valid_trace(drawn: list[tuple[int, int, int, int | None]]) -> None:
    """Spans of any times and parents, as late threads, cancellations and clocks make them."""
    recorder = Recorder()
    recorder.begun = 0
    for begin, length, above, connection in sorted(drawn, key=lambda one: one[0]):
        facts = {} if connection is None else {"connection": connection}
        span = Span(recorder, "a", facts, is_sync=False, begun=begin * 1000)
        span.parent = recorder.spans[above] if 0 <= above < len(recorder.spans) - 1 else None
        span.ended = None if length == 0 else (begin + length) * 1000
    recorder.ended = 50_000
    assert len(check(recorder)) == len(drawn)
