"""Convert a recording to Chrome trace format, which Perfetto (https://ui.perfetto.dev) and chrome://tracing
open.

1. There are two processes. *requests* has a lane for each request under way of a connection, and lanes for
   work that no request caused (reloads, changes on disk). *threads* has the threads by name.
2. A span lies in the lane of its parent, or in a free lane if it runs at the same time as another part of the
   request. In a lane every span lies within the one above it, as the format requires.
3. A span that outlives its parent (a thread that still works for a cancelled request) has a lane of its own.
4. Times are in µs since the recording began. A span that had not ended has `unfinished`.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from collections.abc import Callable, Iterable
from typing import Any

from nexus_daemon.process.tracing import Recorder, Span

REQUESTS, THREADS = 1, 2
"""Numbers of the two processes."""
_NS_IN_US = 1000.0

Event = dict[str, Any]


class _Lane:
    """A row of the viewer; `open` are the spans that contain the present moment, outermost first."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.open: list[tuple[Span, int]] = []

    def takes(self, span: Span, end: int) -> bool:
        """Whether the span may begin here: in an empty lane, or within its parent."""
        while self.open and self.open[-1][1] <= span.begun:
            self.open.pop()
        return not self.open or (end <= self.open[-1][1] and _is_within(span, self.open[-1][0]))


def chrome_trace(recorder: Recorder, cover: Callable[[str], str] = str) -> dict[str, Any]:
    """Return the recording as a JSON object. `cover` removes from texts what must not be in a report."""
    ended = recorder.ended or max((span.ended or span.begun for span in recorder.spans), default=0)
    events: list[Event] = [_named("process_name", REQUESTS, 0, "requests")]
    events.append(_named("process_name", THREADS, 0, "threads"))
    events += _request_rows(recorder, ended, cover)
    events += _thread_rows(recorder, ended, cover)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"spans": len(recorder.spans), "dropped": recorder.dropped},
    }


def _request_rows(recorder: Recorder, ended: int, cover: Callable[[str], str]) -> Iterable[Event]:
    groups: dict[str, list[_Lane]] = {}
    lane_of: dict[Span, _Lane] = {}
    count = 0
    # a parent begins before its children, and is recorded before those that begin with it
    for span in sorted(recorder.spans, key=lambda span: span.begun):
        lanes = groups.setdefault(_group(span), [])
        end = span.ended or ended
        parent_lanes = () if span.parent is None or span.parent not in lane_of else (lane_of[span.parent],)
        lane = next((lane for lane in (*parent_lanes, *lanes) if lane.takes(span, end)), None)
        if lane is None:
            count += 1
            lane = _Lane(count)
            lanes.append(lane)
            yield _named("thread_name", REQUESTS, count, _group(span))
            number = _root(span).facts.get("connection")
            yield {
                "ph": "M",
                "name": "thread_sort_index",
                "pid": REQUESTS,
                "tid": count,
                "args": {"sort_index": number if isinstance(number, int) else 1_000_000},
            }
        lane.open.append((span, end))
        lane_of[span] = lane
        row = (REQUESTS, lane.number)
        yield _complete(span, row, (recorder.begun, end), cover)


def _thread_rows(recorder: Recorder, ended: int, cover: Callable[[str], str]) -> Iterable[Event]:
    numbers = {thread: number for number, thread in enumerate(recorder.threads, 1)}
    for thread, number in numbers.items():
        yield _named("thread_name", THREADS, number, recorder.threads[thread])
    for span in recorder.spans:
        if span.is_sync:
            row, times = (THREADS, numbers[span.thread]), (recorder.begun, span.ended or ended)
            yield _complete(span, row, times, cover)


def _group(span: Span) -> str:
    root = _root(span)
    number = root.facts.get("connection")
    return "background" if number is None else f"connection {number}"


def _root(span: Span) -> Span:
    while span.parent is not None:
        span = span.parent
    return span


def _is_within(span: Span, ancestor: Span) -> bool:
    parent = span.parent
    while parent is not None and parent is not ancestor:
        parent = parent.parent
    return parent is ancestor


def _complete(span: Span, row: tuple[int, int], times: tuple[int, int], cover: Callable[[str], str]) -> Event:
    start, end = times
    facts = {name: cover(fact) if isinstance(fact, str) else fact for name, fact in span.facts.items()}
    if span.ended is None:
        facts["unfinished"] = True
    return {
        "ph": "X",
        "name": str(facts.pop("method", span.name)),
        "cat": span.name,
        "pid": row[0],
        "tid": row[1],
        "ts": max(span.begun - start, 0) / _NS_IN_US,
        "dur": max(end - max(span.begun, start), 0) / _NS_IN_US,
        "args": facts,
    }


def _named(kind: str, process: int, row: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": row, "args": {"name": name}}
