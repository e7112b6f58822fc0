"""Writing frames to a pipe or socket without blocking the loop and without copying them.

asyncio's own pipe writer copies what the pipe does not take at once, and moves the rest with every write:
for a reply of two megabytes that costs as long as the pipe itself.
"""

import asyncio
import os
from collections import deque
from typing import Protocol


class WriteSide(Protocol):
    """Who is told that nothing can be written any more."""

    def writer_lost(self) -> None: ...


class PipeWriter:
    """Writes to a file descriptor that can be polled; frames stay in order. Lives on the event loop."""

    def __init__(self, descriptor: int, side: WriteSide, loop: asyncio.AbstractEventLoop) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._side = side
        self._loop = loop
        self._frames: deque[memoryview] = deque()
        self._waiting = 0
        self._closing = self._closed = False
        # a pipe without a reader is reported as readable: so its end is noticed while nothing is written
        loop.add_reader(descriptor, self._lost)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing:
            return
        idle = not self._frames
        self._frames.append(memoryview(data))
        self._waiting += len(data)
        if idle:
            self._flush()
            if self._frames and not self._closed:
                self._loop.add_writer(self._descriptor, self._flush)

    def get_write_buffer_size(self) -> int:
        """Bytes that the other side has not taken yet."""
        return self._waiting

    def close(self) -> None:
        """Close when everything is written."""
        self._closing = True
        if not self._frames:
            self._lost()

    def abort(self) -> None:
        """Close now."""
        self._lost()

    def _flush(self) -> None:
        try:
            while self._frames:
                written = os.write(self._descriptor, self._frames[0])
                self._waiting -= written
                if written < len(self._frames[0]):
                    self._frames[0] = self._frames[0][written:]
                    return
                self._frames.popleft()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # the reader is gone
            self._lost()
            return
        self._loop.remove_writer(self._descriptor)
        if self._closing:
            self._lost()

    def _lost(self) -> None:
        if self._closed:
            return
        self._closing = self._closed = True
        self._frames.clear()
        self._waiting = 0
        self._loop.remove_writer(self._descriptor)
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._loop.call_soon(self._side.writer_lost)
