"""Ends work in a thread soon after nobody wants its result.

1. `cancellable` marks the work of a thread. Only work that changes nothing, in memory or on disk, may be
   marked: it can end at every check.
2. Long loops call `check`. Statements of SQLite are interrupted, for `interrupting`.
3. `WorkCancelled` is not an `Exception`, so that code which contains the failures of one file does not catch
   it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_STEPS = 20_000  # of SQLite's virtual machine between two checks; about a millisecond


class WorkCancelled(BaseException):
    """Raised in a thread whose work was cancelled."""


class _Current(threading.local):
    is_cancelled: Callable[[], bool] | None = None


_current = _Current()


@contextmanager
def cancellable(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Let `check` end the work in this `with` block once `is_cancelled()` is true. Only for this thread."""
    outer_check, _current.is_cancelled = _current.is_cancelled, is_cancelled
    try:
        yield
    finally:
        _current.is_cancelled = outer_check


def check() -> None:
    """Raise WorkCancelled if the work of this thread is cancelled."""
    if is_cancelled():
        raise WorkCancelled


def is_cancelled() -> bool:
    """Whether the work of this thread is cancelled."""
    is_cancelled = _current.is_cancelled
    return is_cancelled is not None and is_cancelled()


@contextmanager
def interrupting(connection: Any) -> Iterator[None]:
    """Interrupt the SQLite statements in this `with` block once the work of this thread is cancelled.

    `connection` is an `apsw.Connection`.
    """
    if _current.is_cancelled is None:
        yield
        return
    connection.set_progress_handler(is_cancelled, _STEPS)
    try:
        yield
    finally:
        connection.set_progress_handler(None)
