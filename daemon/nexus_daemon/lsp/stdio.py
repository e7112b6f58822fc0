"""Serve one client on standard input and output."""

import asyncio
import contextlib
import gc
import os
import queue
import signal
import stat
import sys
import threading
from collections.abc import Awaitable, Callable

from nexus_daemon.lsp import framing, serving
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.lsp.first_message import NOTHING, Opening, take_stdio
from nexus_daemon.lsp.link import Limits, StreamLink
from nexus_daemon.lsp.pipe import PipeReader, PipeWriter

GC_THRESHOLD = 200_000  # new objects between two collections
_PIPE_SIZE = 512 * 1024  # bytes; the usual 64 KiB cost 8 times as many switches for a long message
_READ_SIZE = 256 * 1024  # bytes

Build = Callable[[NexusServer], None]


async def serve_stdio(
    build: Build,
    streams: tuple[int, int] | None = None,
    opening: Opening = NOTHING,
    *,
    limits: Limits | None = None,
) -> int:
    """Serve the client on stdin and stdout until it leaves. Return the exit code.

    `build` registers the features. `streams` are those of `take_stdio`, from which `opening` was read.
    """
    stdin, stdout = streams or take_stdio()

    async def connect(link: StreamLink) -> None:
        await _connect(link, stdin, stdout)
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError):  # Windows
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, link.end, 128 + number, number.name)

    with contextlib.ExitStack() as log:

        def build_logged(server: NexusServer) -> None:
            # after the reply to `initialize`; what is logged before goes to standard error
            from nexus_daemon.lsp.client_log import ClientLog
            from nexus_daemon.process.logs.process_log import logging_process

            log.enter_context(logging_process("stdio", serving.current_number, ClientLog()))
            build(server)

        return await serve_stream(connect, build_logged, opening, limits=limits or Limits())


async def serve_stream(
    connect: Callable[[StreamLink], Awaitable[None]],
    build: Build,
    opening: Opening = NOTHING,
    *,
    limits: Limits,
) -> int:
    """Serve one client on the transports that `connect` attaches to the link. Return the exit code.

    The caller sets up the process's log (`logging_process`), since one process may serve several clients.
    """
    serving.begin_connection()
    link = StreamLink(limits)
    server = NexusServer()
    build(server)
    server.protocol.attach(link)
    # objects of the start-up stay: exclude them from collections, which `nexus serve` has kept off; once,
    # since what clients leave behind must not be excluded
    if not gc.get_freeze_count():
        gc.freeze()
    # a settings file creates thousands of objects without a cycle: 700 would collect at every keystroke
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    gc.enable()
    link.use_protocol(server.protocol)
    await connect(link)
    if opening.client is not None:
        server.protocol.adopt(opening.client)
    if opening.unhandled:
        link.data_received(opening.unhandled)
    return await link.done


async def _connect(link: StreamLink, stdin: int, stdout: int) -> None:
    loop = asyncio.get_running_loop()
    # with one socket for both directions, PipeWriter would mistake our input for the end of the connection
    pollable = os.name != "nt" and not os.path.sameopenfile(stdin, stdout)
    if pollable and _is_stream(stdout):
        _enlarge(stdout)
        link.use_writer(PipeWriter(stdout, link, loop))
    else:
        link.use_writer(_ThreadWriter(stdout, link, loop))
    if pollable and _is_stream(stdin):
        _enlarge(stdin)
        link.use_reader(PipeReader(stdin, link, loop))
    else:
        link.use_reader(_ThreadReader(stdin, link, loop))


def _is_stream(descriptor: int) -> bool:
    """Whether a descriptor is a pipe or socket, hence pollable; a shared terminal must stay blocking."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _enlarge(descriptor: int) -> None:
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):  # a socket, or the user's share of pipe memory is used up
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)


class _ThreadReader:
    """Reads in a thread from what is not pollable: a file, a terminal, a Windows pipe.

    Each read waits until the data of the previous one is handled and reading is not paused.
    """

    def __init__(self, descriptor: int, link: StreamLink, loop: asyncio.AbstractEventLoop) -> None:
        self._descriptor = descriptor
        self._link = link
        self._loop = loop
        self._paused = False
        self._may_read = threading.Event()
        self._may_read.set()
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._may_read.set()

    def hung_up(self) -> bool:
        """Return False: only a read can tell."""
        return False

    def close(self) -> None:
        """Leave the daemon thread in its read, which nothing can interrupt."""

    def _run(self) -> None:
        data = b"-"
        while data:
            self._may_read.wait()
            try:
                data = os.read(self._descriptor, _READ_SIZE)
            except OSError:
                data = b""
            self._may_read.clear()
            with contextlib.suppress(RuntimeError):  # the loop is closed
                if data:
                    self._loop.call_soon_threadsafe(self._take, data)
                else:
                    self._loop.call_soon_threadsafe(self._link.eof_received)

    def _take(self, data: bytes) -> None:
        self._link.data_received(data)
        if not self._paused:
            self._may_read.set()


class _ThreadWriter:
    """Writes in a thread to what is not pollable; frames stay in order."""

    def __init__(self, descriptor: int, link: StreamLink, loop: asyncio.AbstractEventLoop) -> None:
        self._descriptor = descriptor
        self._link = link
        self._loop = loop
        self._waiting = 0
        self._frames: queue.SimpleQueue[framing.Part | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    def write(self, *parts: framing.Part) -> None:
        for part in parts:
            self._waiting += len(part)
            self._frames.put(part)

    def get_write_buffer_size(self) -> int:
        return self._waiting

    def close(self) -> None:
        self._frames.put(None)

    def abort(self) -> None:
        self.close()

    def _run(self) -> None:
        while (data := self._frames.get()) is not None:
            try:
                unwritten = memoryview(data)
                while unwritten:
                    unwritten = unwritten[os.write(self._descriptor, unwritten) :]
            except OSError:
                break
            self._call(self._wrote, len(data))
        self._call(self._link.writer_lost)

    def _wrote(self, count: int) -> None:
        self._waiting -= count
        self._link.wrote()

    def _call(self, function: Callable[..., None], *values: int) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *values)
