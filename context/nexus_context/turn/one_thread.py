"""Guards objects that only one thread may use at a time: a second thread gets an error."""

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from nexus_context.errors import RequestError

_Class = TypeVar("_Class", bound=type)


class OneThread:
    """A lock that its own thread may enter again. If another thread holds it, entering raises RequestError,
    code `concurrent-use`.

    It never waits, so threads that take turns are not affected.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[type["OneThread"], tuple[()]]:
        return OneThread, ()  # a copy is used by itself

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RequestError(
                "Another thread is using this conversation. Let threads take turns: hold a lock around it.",
                code="concurrent-use",
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def in_one_thread(*names: str) -> Callable[[_Class], _Class]:
    """Decorate a class whose objects have a `OneThread` as `in_use`: the methods with these names enter
    it.
    """

    def guard(guarded: _Class) -> _Class:
        for name in names:
            setattr(guarded, name, _guarded(getattr(guarded, name)))
        return guarded

    return guard


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def entered(self: Any, *arguments: Any, **options: Any) -> Any:
        with self.in_use:
            return method(self, *arguments, **options)

    return entered
