"""Write items in a thread, so that no caller waits for a slow file or standard error."""

import _thread
import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")

MOST = 20_000
"""The most items that may wait. Further ones are counted and dropped."""
_BATCH = 500


class Sink(Generic[Item]):
    """Passes items in batches to `write`, in a thread that begins with the first item.

    `write` gets the items and the number of items that were dropped since the last batch. It must not raise.
    `gather_s` is how long the thread waits for more items, so that start-up and bursts cost one write. `idle`
    is called every `idle_s` seconds while there are no items.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[list[Item], int], None],
        *,
        gather_s: float = 0.0,
        idle: Callable[[], None] | None = None,
        idle_s: float | None = None,
    ) -> None:
        self._name = name
        self._write = write
        self._gather_s = gather_s
        self._idle = idle
        self._idle_s = idle_s
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._dropped = 0
        self._is_started = False
        self._starting = threading.Lock()
        self._ended = threading.Event()
        self._ending = threading.Event()

    def put(self, item: Item) -> None:
        """Hand over an item without waiting. Any thread may call it."""
        if self._items.qsize() >= MOST:
            self._dropped += 1
            return
        self._items.put(item)
        if not self._is_started:
            self.start()

    def start(self) -> None:
        """Start the thread unless it runs."""
        with self._starting:
            if not self._is_started:
                self._is_started = True
                # `Thread.start` waits until the thread has begun: on a busy machine for 100 ms
                _thread.start_new_thread(self._run, ())

    def close(self, timeout_s: float) -> bool:
        """Write the items that wait, for at most `timeout_s`. Return False if some are left.

        Items that are put later are lost.
        """
        self._ending.set()
        if not self._is_started:
            return True
        self._items.put(None)
        return self._ended.wait(timeout_s)

    def _run(self) -> None:
        threading.current_thread().name = self._name
        try:
            self._write_all()
        finally:
            self._ended.set()

    def _write_all(self) -> None:
        while True:
            try:
                item = self._items.get(timeout=self._idle_s)
            except queue.Empty:
                if self._idle is not None:
                    self._idle()
                continue
            if item is not None:
                self._ending.wait(self._gather_s)
            items, is_last = self._batch(item)
            dropped, self._dropped = self._dropped, 0
            if items or dropped:
                self._write(items, dropped)
            if is_last:
                return

    def _batch(self, item: Item | None) -> tuple[list[Item], bool]:
        """The items that wait, and whether they are the last ones."""
        items: list[Item] = []
        until = time.monotonic() + 1.0
        while item is not None:
            items.append(item)
            if len(items) >= _BATCH or time.monotonic() > until:
                return items, False
            try:
                item = self._items.get_nowait()
            except queue.Empty:
                return items, False
        return items, True
