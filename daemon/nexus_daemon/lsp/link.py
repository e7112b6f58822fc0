"""Move the bytes of one connection: frames in, frames out, and every way in which it can end.

1. A connection ends once: when the client sends `exit`, closes its side or sends a malformed frame, or when
   its process is dead. Open requests are answered first, and written bytes are flushed for a short while.
2. The link stops reading from a client that does not read. Once `unread_high` bytes wait for the client, its
   messages wait until at most `unread_low` bytes are left. Nothing is lost, and the backlog is bounded.
3. While `in_flight` requests of a client are under way, its other messages wait in order, and the link stops
   reading when many wait. Only messages that may let a request end are handled at once.
4. A client that has closed its side and reads nothing more has left, even if its pipe is still open.
5. A client may be slow without having left: an editor stops at a breakpoint, a forwarder waits for its
   editor. Meanwhile the bytes that wait for it are bounded. If it reads nothing for `hang_seconds`, its
   connection ends. The seconds are counted in polls, since no polls happen while the computer is suspended.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Iterable
from typing import Protocol

import msgspec

from nexus_daemon.lsp import framing

_BACKLOG = 1024 * 1024  # bytes of messages that may wait until others are handled
logger = logging.getLogger(__name__)


class Limits(msgspec.Struct, frozen=True):
    """The limits of what the daemon takes from one client at once. Sizes are in bytes, times in seconds."""

    body: int = framing.BODY_LIMIT
    unread_high: int = 4 * 1024 * 1024  # that wait for the client, without the frame being written
    unread_low: int = 1024 * 1024
    in_flight: int = 64  # requests whose handlers run
    poll_seconds: float = 3.0
    hang_seconds: float = 24 * 3600.0  # for which a client may read nothing of what waits for it
    flush_seconds: float = 2.0


class Receiver(Protocol):
    """The methods that a link needs from the protocol above it."""

    @property
    def state(self) -> str: ...

    @property
    def in_flight(self) -> int: ...

    @property
    def running(self) -> list[framing.Id]: ...

    def receive(self, body: framing.Body) -> bool: ...

    def is_urgent(self, body: framing.Body, /) -> bool: ...

    def drained(self) -> None: ...

    def close(self, waiting_bodies: Iterable[framing.Body]) -> None: ...


class Reader(Protocol):
    """The methods that a link needs from the transport that it reads from."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def hung_up(self) -> bool: ...

    def close(self) -> None: ...


class Writer(Protocol):
    """The methods that a link needs from the transport that it writes to."""

    def write(self, *parts: framing.Part) -> None: ...

    def get_write_buffer_size(self) -> int: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class StreamLink:
    """Joins a reader, a writer and a protocol. The future `done` becomes the exit code."""

    def __init__(self, limits: Limits) -> None:
        self._protocol: Receiver
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._frames = framing.FrameReader(body_limit=limits.body)
        self._reader: Reader | None = None
        self._writer: Writer | None = None
        self._paused = self._continuing = self._eof = False
        self._parked: deque[framing.Body] = deque()  # messages that wait for requests under way
        self._parked_size = 0
        self._code: int | None = None
        self._writable = asyncio.Event()  # not set while the client has too much unread
        self._writable.set()
        self._still_polls = 0  # in a row in which the client read nothing
        self._progress = (0, 0)  # unread bytes and requests under way at the last poll
        self._process_id: int | None = None
        self._tick = self._loop.call_later(limits.poll_seconds, self._poll)
        self.done: asyncio.Future[int] = self._loop.create_future()
        self.goodbye: framing.Part | None = None
        """The last frame to the client, if any."""
        self._begins_requests = True
        self._settled: asyncio.Future[None] | None = None  # resolved when no request is under way

    def use_protocol(self, protocol: Receiver) -> None:
        """Pass messages to this protocol from now on."""
        self._protocol = protocol

    def use_writer(self, writer: Writer) -> None:
        self._writer = writer

    def use_reader(self, reader: Reader) -> None:
        self._reader = reader

    # ------------------------------------------------------------ reading

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's name
        """Return the buffer that the reader fills next, as `asyncio.BufferedProtocol` requires."""
        return self._frames.room()

    def buffer_updated(self, nbytes: int) -> None:
        if self._code is None:
            self._frames.filled(nbytes)
            self._arrived()

    def data_received(self, data: bytes) -> None:
        """Take bytes that the transport could not read into the link's own buffer."""
        if self._code is None:
            self._frames.feed(data)
            self._arrived()

    def _arrived(self) -> None:
        if not self._continuing:
            self._pump()
        elif self._frames.pending > _BACKLOG:
            self._pause()

    def eof_received(self) -> None:
        self._eof = True
        if not self._continuing:
            self._pump()

    def wake(self) -> None:
        """Schedule the handling of waiting messages for the next turn of the event loop."""
        if self._settled is not None and not self._protocol.in_flight and not self._settled.done():
            self._settled.set_result(None)
        if (self._paused or self._parked or self._frames.pending or self._eof) and not self._continuing:
            self._continuing = True
            self._loop.call_soon(self._continue)

    def _pump(self) -> None:
        """Handle the complete messages; after one that started a task, let the task's first step run."""
        while self._code is None and not self.stalled:
            try:
                body = self._next()
            except framing.FrameError as error:
                logger.error("closing the connection: %s", error)
                self.end(1, str(error))
                return
            if body is None:
                break
            if self._protocol.receive(body):
                self._continuing = True
                self._loop.call_soon(self._continue)
                return
        if self.stalled or self._parked_size > _BACKLOG:
            self._pause()
            return
        if self._paused and self._reader is not None:
            self._paused = False
            self._reader.resume_reading()
        if self._eof:
            if self._frames.pending and self._code is None:
                logger.error("the input ended inside a message")
            self._leave("end of input")

    def _next(self) -> framing.Body | None:
        """The next message to handle now; None until more arrives or a request ends."""
        may_begin = self._begins_requests and self._protocol.in_flight < self._limits.in_flight
        if may_begin and self._parked:
            body = self._parked.popleft()
            self._parked_size -= len(body)
            return body
        while self._parked_size <= _BACKLOG and (arrived := self._frames.next()) is not None:
            if may_begin or self._protocol.is_urgent(arrived):
                return arrived
            self._parked.append(arrived)
            self._parked_size += len(arrived)
        return None

    def _pause(self) -> None:
        if not self._paused and self._reader is not None:
            self._paused = True
            self._reader.pause_reading()

    def _continue(self) -> None:
        self._continuing = False
        self._pump()

    # ------------------------------------------------------------ writing

    @property
    def stalled(self) -> bool:
        """Whether the client has more unread bytes than `unread_high` allows."""
        return not self._writable.is_set()

    async def writable(self) -> None:
        """Wait until the client has read enough or the connection ends."""
        await self._writable.wait()

    def send(self, *parts: framing.Part) -> None:
        """Write one frame whose body is the concatenated parts, which must not change afterwards."""
        if self._writer is None:
            return
        size = sum(map(len, parts))
        header = framing.header(size)
        # a single frame may have any length: only what the client left unread before counts
        unread = self._writer.get_write_buffer_size()
        if size > framing.LONG:
            self._writer.write(header, *parts)
        else:
            self._writer.write(b"".join((header, *parts)))
        if unread > self._limits.unread_high and self._code is None:
            self._writable.clear()

    def wrote(self) -> None:
        """Take note that the client has read some of the bytes that waited for it."""
        self._still_polls = 0
        writer = self._writer
        if self.stalled and writer is not None and writer.get_write_buffer_size() <= self._limits.unread_low:
            self._writable.set()
            self._protocol.drained()
            self.wake()

    def writer_lost(self) -> None:
        """Take note that the client's side is closed, or that everything is flushed after `end`."""
        self._writer = None
        self._leave("the client closed its side")
        self._resolve()

    # ------------------------------------------------------------ the end

    def watch(self, process_id: int) -> None:
        """End the connection when this process dies.

        A process that is not visible (in a container) is not watched.
        """
        if process_alive(process_id):
            self._process_id = process_id
        else:
            logger.info("process %d of the client is not visible from here: not watched", process_id)

    @property
    def unread(self) -> int:
        """Return the number of bytes that wait for the client to read them."""
        return 0 if self._writer is None else self._writer.get_write_buffer_size()

    @property
    def running(self) -> list[framing.Id]:
        """Return the ids of the requests under way."""
        return self._protocol.running

    async def settle(self) -> None:
        """Begin no more requests, and wait until those under way have their replies."""
        self._begins_requests = False
        if self._protocol.in_flight and self._code is None:
            self._settled = self._loop.create_future()
            await self._settled

    def end(self, code: int, why: str) -> None:
        """End the connection with an exit code and the reason for the log. Later calls do nothing."""
        if self._code is not None:
            return
        logger.info("the connection ends: %s", why)
        # nothing more is read, and open requests are answered before the protocol closes
        self._code = code
        self._tick.cancel()
        parked_bodies, self._parked = self._parked, deque()
        self._protocol.close(parked_bodies)
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)
        if self.goodbye is not None:
            self.send(self.goodbye)
        self._writable.set()
        if self._reader is not None:
            self._reader.close()
        if self._writer is None:
            self._resolve()
            return
        self._writer.close()
        self._tick = self._loop.call_later(self._limits.flush_seconds, self._abandon)

    def _leave(self, why: str) -> None:
        """End the connection because the client left: with code 0 if it sent `shutdown` before."""
        self.end(0 if self._protocol.state == "shutdown" else 1, why)

    def _abandon(self) -> None:
        if self._writer is not None:
            self._writer.abort()
        self._resolve()

    def _resolve(self) -> None:
        self._tick.cancel()
        if not self.done.done():
            self.done.set_result(1 if self._code is None else self._code)

    def _poll(self) -> None:
        self._tick = self._loop.call_later(self._limits.poll_seconds, self._poll)
        if self._process_id is not None and not process_alive(self._process_id):
            logger.warning("process %d of the client is dead", self._process_id)
            self.end(1, "the client is dead")
            return
        unread = 0 if self._writer is None else self._writer.get_write_buffer_size()
        progress = (unread, self._protocol.in_flight)
        hung_up = self._paused and self._reader is not None and self._reader.hung_up()
        if (self._eof or hung_up) and progress == self._progress:
            self._leave("the client closed its side and does not read")
        self._progress = progress
        self._still_polls = self._still_polls + 1 if self.stalled else 0
        if self._still_polls * self._limits.poll_seconds > self._limits.hang_seconds:
            logger.warning("the client has read nothing for %g hours", self._limits.hang_seconds / 3600)
            self.end(1, "the client hangs")


def process_alive(process_id: int) -> bool:
    """Whether a process exists. Always True on Windows, where the end of the pipe shows that it has ended."""
    if os.name == "nt" or process_id <= 0:
        return True
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
