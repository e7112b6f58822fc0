"""Run the SDK in a thread of its own: what a server sends is decoded there, never on the daemon's event loop.

The thread starts with the first job, which imports the SDK.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

END_S = 6.0  # that servers have to end


class ServerThread:
    """An event loop in a thread of its own. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine in the thread. RuntimeError if the thread has been closed."""
        with self._lock:
            if self._is_closed:
                work.close()
                raise RuntimeError("the servers have ended")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name="nexus-servers", daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `end` in the thread, for at most END_S, then stop the thread, and return when it has
        stopped.
        """
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop, self._thread, self._is_closed = None, None, True
        if loop is None or thread is None:
            return
        ending = asyncio.run_coroutine_threadsafe(end(), loop)
        try:
            ending.result(END_S)
        except Exception:  # noqa: BLE001 - the processes that are left are ended by the guard
            ending.cancel()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(END_S)

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()
