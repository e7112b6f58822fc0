"""Read and write pipes and sockets without blocking the event loop and without copying.

asyncio's own pipe transports return what they read in new pieces, which must be joined again. They copy bytes
that the pipe does not take at once. For a message of two megabytes, either costs as much time as the pipe
itself.
"""

import asyncio
import os
import select
import socket
from collections import deque
from itertools import islice
from typing import Protocol

from nexus_daemon.lsp import framing

_STEP = 256 * 1024  # bytes in one system call: when a call ends, the other side wakes and reads in parallel
_IOV_MAX = 1024  # pieces in one system call; Linux, macOS and the BSDs agree
_SHORT = 128 * 1024  # bytes; a side with a larger buffer is in the middle of a long message
_READS = 16  # in one turn of the loop: a client that never stops writing must not block everything else


class ReadSide(Protocol):
    """The receiver of the bytes that a reader reads."""

    def get_buffer(self, sizehint: int) -> memoryview: ...

    def buffer_updated(self, nbytes: int) -> None: ...

    def eof_received(self) -> None: ...


class PipeReader:
    """Reads a pollable file descriptor into the buffers of `side`. Use it on the event loop."""

    def __init__(self, descriptor: int, side: ReadSide, loop: asyncio.AbstractEventLoop) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._side = side
        self._loop = loop
        self._reading = self._open = True
        loop.add_reader(descriptor, self._read)

    def pause_reading(self) -> None:
        if self._open and self._reading:
            self._reading = False
            self._loop.remove_reader(self._descriptor)

    def resume_reading(self) -> None:
        if self._open and not self._reading:
            self._reading = True
            self._loop.add_reader(self._descriptor, self._read)

    def hung_up(self) -> bool:
        """Whether the other side has closed its end, even if bytes are unread. False if that is unknown."""
        if not (self._open and hasattr(select, "poll")):
            return False
        poll = select.poll()
        poll.register(self._descriptor, getattr(select, "POLLRDHUP", 0))
        return bool(poll.poll(0))

    def close(self) -> None:
        if self._open:
            self.pause_reading()
            self._open = False
            self._dispose()

    def _receive(self, buffer: memoryview) -> int:
        return os.readv(self._descriptor, (buffer,))

    def _dispose(self) -> None:
        os.close(self._descriptor)

    def _read(self) -> None:
        """Read all that is available: a turn of the loop per piece would cost as much as reading it."""
        for _ in range(_READS):
            if not self._reading:
                return
            try:
                with self._side.get_buffer(-1) as buffer:
                    size = len(buffer)
                    count = self._receive(buffer)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # a socket whose other side is gone
                count = 0
            if not count:
                self.pause_reading()
                self._side.eof_received()
                return
            self._side.buffer_updated(count)
            if count < size <= _SHORT:
                return


class WriteSide(Protocol):
    """The listener of a writer: it learns that the other side read something, or that writing has ended."""

    def wrote(self) -> None: ...

    def writer_lost(self) -> None: ...


class PipeWriter:
    """Writes to a pollable file descriptor; frames stay in order. Use it on the event loop."""

    def __init__(self, descriptor: int, side: WriteSide, loop: asyncio.AbstractEventLoop) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._side = side
        self._loop = loop
        self._parts: deque[framing.Part] = deque()
        self._waiting = 0
        self._closing = self._closed = False
        self._watch_reader()

    def _watch_reader(self) -> None:
        # the system reports a pipe without a reader as readable: that shows its end while nothing is written
        self._loop.add_reader(self._descriptor, self._lost)

    def write(self, *parts: framing.Part) -> None:
        """Write the parts of one frame, in order. They must not change afterwards."""
        if self._closing:
            return
        idle = not self._parts
        self._parts.extend(parts)
        self._waiting += sum(map(len, parts))
        if idle:
            self._flush()
            if self._parts and not self._closed:
                self._loop.add_writer(self._descriptor, self._write_more)

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the other side has not read yet."""
        return self._waiting

    def close(self) -> None:
        """Close the writer once everything is written."""
        self._closing = True
        if not self._parts:
            self._lost()

    def abort(self) -> None:
        """Close the writer now, without writing the rest."""
        self._lost()

    def _write_more(self) -> None:
        self._flush()
        if not self._closed:
            self._side.wrote()

    def _flush(self) -> None:
        try:
            while self._parts:
                some, size = self._next()
                written = self._transmit(some)
                self._waiting -= written
                self._drop(written)
                if written < size:
                    return  # the pipe is full
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # the reader is gone
            self._lost()
            return
        self._loop.remove_writer(self._descriptor)
        if self._closing:
            self._lost()

    def _next(self) -> tuple[list[framing.Part], int]:
        """Return the parts to write in one call, and their size."""
        some: list[framing.Part] = []
        size = 0
        for part in islice(self._parts, _IOV_MAX):
            some.append(part if len(part) <= _STEP else memoryview(part)[:_STEP])
            size += len(some[-1])
            if size >= _STEP:
                break
        return some, size

    def _drop(self, written: int) -> None:
        """Drop what is written."""
        parts = self._parts
        while parts and written >= len(parts[0]):
            written -= len(parts.popleft())
        if written:
            parts[0] = memoryview(parts[0])[written:]

    def _lost(self) -> None:
        if self._closed:
            return
        self._closing = self._closed = True
        self._parts.clear()
        self._waiting = 0
        self._loop.remove_writer(self._descriptor)
        self._dispose()
        self._loop.call_soon(self._side.writer_lost)

    def _transmit(self, parts: list[framing.Part]) -> int:
        return os.writev(self._descriptor, parts)

    def _dispose(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)


class SocketReader(PipeReader):
    """Reads a socket. It does not close the socket; a `SocketWriter` does."""

    def __init__(self, connected: socket.socket, side: ReadSide, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = connected
        super().__init__(connected.fileno(), side, loop)

    def _receive(self, buffer: memoryview) -> int:
        return self._socket.recv_into(buffer)

    def _dispose(self) -> None:
        pass


class SocketWriter(PipeWriter):
    """Writes to a socket, and closes it."""

    def __init__(self, connected: socket.socket, side: WriteSide, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = connected
        super().__init__(connected.fileno(), side, loop)

    def _watch_reader(self) -> None:
        """Nothing: a socket is readable when the client sends something, and its reader sees its end."""

    def _transmit(self, parts: list[framing.Part]) -> int:
        if hasattr(self._socket, "sendmsg"):
            return self._socket.sendmsg(parts)
        return self._socket.send(parts[0])  # Windows

    def _dispose(self) -> None:
        self._loop.remove_reader(self._descriptor)
        self._socket.close()
