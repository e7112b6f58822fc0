"""Record spans of what the daemon does, for a while, on request; `chrome` writes them for a trace viewer.

1. While nothing is recorded, `span` and `phase` cost a fraction of a microsecond and keep nothing.
2. `span` is for code that runs in one thread without `await`, `phase` for code that may wait in between.
3. The parent of a span is the one around it, also across tasks, and across threads if the job runs in a copy
   of the context (`Workers.run`).
4. Facts are names and figures: methods, counts, folders. They never contain text of the user.
5. At most `limit` spans are recorded. Further spans are only counted.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token, copy_context
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

LIMIT = 100_000
"""The most spans in one recording: about 30 MB of JSON."""


class Span:
    """A piece of work that took time. Times are in ns of `perf_counter`.

    `is_sync` says that one thread did all of the work.
    """

    __slots__ = ("_token", "begun", "ended", "facts", "is_sync", "name", "parent", "thread")

    def __init__(
        self,
        recorder: "Recorder",
        name: str,
        facts: dict[str, Any],
        *,
        is_sync: bool,
        begun: int | None = None,
    ) -> None:
        self.name = name
        self.facts = facts
        self.is_sync = is_sync
        self.parent = _current.get()
        self.thread = threading.get_ident()
        self.ended: int | None = None
        self._token: Token[Span | None] | None = None
        self.begun = time.perf_counter_ns() if begun is None else begun
        recorder.add(self)

    def __enter__(self) -> "Span":
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.facts["outcome"] = kind.__name__
        self.end()
        if self._token is not None:
            _current.reset(self._token)

    def end(self, **facts: Any) -> None:
        """End the span and add facts to it. Later calls do nothing."""
        if self.ended is None:
            self.facts |= facts
            self.ended = time.perf_counter_ns()


class _Nothing:
    """The span while nothing is recorded."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:  # `*_` is slower
        return None


class Recorder:
    """One recording: its spans in the order in which they began."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.spans: list[Span] = []
        self.threads: dict[int, str] = {}
        self.dropped = 0
        self.begun = time.perf_counter_ns()
        self.ended: int | None = None
        self._limit = limit

    def add(self, span: Span) -> None:
        if len(self.spans) >= self._limit:
            self.dropped += 1
            return
        self.spans.append(span)
        if span.thread not in self.threads:
            self.threads[span.thread] = threading.current_thread().name


_NOTHING = _Nothing()
_recorder: Recorder | None = None
_current: ContextVar[Span | None] = ContextVar("span", default=None)


def span(name: str, /, **facts: Any) -> Span | _Nothing:
    """Return a span for a `with` block that runs in this thread without waiting for the event loop."""
    recorder = _recorder
    return _NOTHING if recorder is None else Span(recorder, name, facts, is_sync=True)


def phase(name: str, /, **facts: Any) -> Span | _Nothing:
    """Return a span for a `with` block that contains `await`."""
    recorder = _recorder
    return _NOTHING if recorder is None else Span(recorder, name, facts, is_sync=False)


def begin(name: str, /, **facts: Any) -> Span | None:
    """Begin a span that `end` ends. None while nothing is recorded."""
    recorder = _recorder
    return None if recorder is None else Span(recorder, name, facts, is_sync=False)


def end(span: Span | None, **facts: Any) -> None:
    """End the span that `begin` returned, and add facts to it."""
    if span is not None:
        span.end(**facts)


def passed(name: str, begun: int | None, /, **facts: Any) -> None:
    """Record a span from `begun` until now. `begun` is a `now()`, or None if recording was off."""
    recorder = _recorder
    if recorder is not None and begun is not None:
        Span(recorder, name, facts, is_sync=False, begun=begun).end()


def mark(name: str, /, **facts: Any) -> None:
    """Record that something happened now, as a span without duration."""
    passed(name, now(), **facts)


def now() -> int | None:
    """Return the time to give to `passed`. None while nothing is recorded."""
    return None if _recorder is None else time.perf_counter_ns()


def within(parent: Span | None) -> "_Within | _Nothing":
    """Make `parent` the parent of the spans in the block, without ending it. With None, do nothing."""
    return _NOTHING if parent is None else _Within(parent)


def carry(job: Callable[[], T], name: str, *, about: Any = None) -> Callable[[], T]:
    """Wrap a job for another thread: it runs in a copy of this context, with spans for its wait and its work.

    The span of its work is named after the function `about`, or after the job if `about` is None.
    """
    context, queued = copy_context(), now()

    def traced() -> T:
        passed("queue", queued)
        with span(name, job=_name_of(job if about is None else about)):
            return job()

    return partial(context.run, job if queued is None else traced)


def note(**facts: Any) -> None:
    """Add facts to the outermost span around this code."""
    root_span = _current.get() if _recorder is not None else None
    if root_span is None:
        return
    while root_span.parent is not None:
        root_span = root_span.parent
    root_span.facts |= {name: fact for name, fact in facts.items() if fact is not None}


def _name_of(job: Any) -> str:
    while isinstance(job, partial):
        job = job.func
    return str(getattr(job, "__qualname__", type(job).__name__))


class _Within:
    __slots__ = ("_parent", "_token")

    def __init__(self, parent: Span) -> None:
        self._parent = parent

    def __enter__(self) -> None:
        self._token = _current.set(self._parent)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


class AlreadyRecordingError(Exception):
    """Another recording is under way, and only one can be."""


@contextmanager
def recording(limit: int = LIMIT) -> Iterator[Recorder]:
    """Record what the whole process does during the block."""
    global _recorder
    if _recorder is not None:
        raise AlreadyRecordingError
    recorder = _recorder = Recorder(limit)
    try:
        yield recorder
    finally:
        _recorder = None
        recorder.ended = time.perf_counter_ns()
