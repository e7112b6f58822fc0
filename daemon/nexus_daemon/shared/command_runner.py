"""Run commands of other processes in the daemon's threads and send their output: the other side of
`command_client`.

1. At most MOST_RUNNING commands run at once. A further client runs its command itself.
2. The output is sent as it comes. A client that reads slowly holds up its own thread only.
3. When the client is gone, the next output ends the command. A command that only computes is not interrupted.
4. An empty frame at once, and every BEAT_S while the command runs, tells the client that the daemon is alive.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from nexus_daemon.shared.hello import Fields

MOST_RUNNING = 4
BEAT_S = 1.0
SLOWEST_S = 3600.0  # that a client may take to read: output that is paged waits for its reader
_BEAT = b"o 0\n"
logger = logging.getLogger(__name__)


class StreamFacts(NamedTuple):
    """How a stream of the client encodes and buffers text."""

    encoding: str
    errors: str
    is_terminal: bool
    line_buffering: bool
    write_through: bool
    buffer_size: int


class CommandRequest(NamedTuple):
    """A command line and the process that it was given to.

    `size` is the columns and lines of its terminal, or 0. `encoding` is that of names in the file system,
    `program` the interpreter and the directory of the code.
    """

    arguments: tuple[str, ...]
    cwd: str
    environ: dict[str, str]
    stdout: StreamFacts
    stderr: StreamFacts
    size: tuple[int, int]
    encoding: str
    program: str


Send = Callable[[str, bytes], None]
"""Sends bytes to the client's standard output ("o") or error ("e"). BrokenPipeError if the client is gone."""
RunCommand = Callable[[CommandRequest, Send], "int | None"]
"""Runs a command and returns its exit code. None, before anything was sent, if the client has to run it."""


def read_request(fields: Fields) -> CommandRequest:
    """Read the command from a client's first message. ValueError if it is incomplete."""
    columns, lines = (int(number) for number in fields.get("size").split(" "))
    return CommandRequest(
        arguments=tuple(fields.get_all("argument")),
        cwd=fields.get("cwd"),
        environ=fields.environ,
        stdout=_read_stream(fields.get("stdout")),
        stderr=_read_stream(fields.get("stderr")),
        size=(columns, lines),
        encoding=fields.get("encoding"),
        program=fields.get("program"),
    )


def _read_stream(text: str) -> StreamFacts:
    encoding, errors, is_terminal, line_buffering, write_through, size = text.split(" ")
    return StreamFacts(
        encoding=encoding,
        errors=errors,
        is_terminal=is_terminal == "1",
        line_buffering=line_buffering == "1",
        write_through=write_through == "1",
        buffer_size=int(size),
    )


class CommandRunner:
    """Runs commands for clients. Use it on the event loop."""

    def __init__(self, run: RunCommand) -> None:
        self._run = run
        self._running = 0
        self._threads = ThreadPoolExecutor(MOST_RUNNING, thread_name_prefix="command")

    async def serve(self, connected: socket.socket, fields: Fields) -> None:
        """Run a client's command and close its connection, a socket that does not block."""
        with connected:
            if self._running >= MOST_RUNNING:
                return
            try:
                request = read_request(fields)
            except ValueError:
                logger.warning("a client's command is incomplete")
                return
            self._running += 1
            try:
                await self._serve(connected, request)
            finally:
                self._running -= 1

    async def _serve(self, connected: socket.socket, request: CommandRequest) -> None:
        loop = asyncio.get_running_loop()
        output = _Output(connected)
        output.beat()  # the client waits for more than imports take
        loop.add_reader(connected, _look, connected, output)
        running = loop.run_in_executor(self._threads, self._execute, request, output)
        try:
            while not (await asyncio.wait((running,), timeout=BEAT_S))[0]:
                output.beat()
        finally:
            loop.remove_reader(connected)
        await running

    def _execute(self, request: CommandRequest, output: "_Output") -> None:
        """Run a command, in a thread."""
        try:
            code = self._run(request, output.send)
            if code is not None:
                output.send_exit(code)
        except BrokenPipeError:
            pass  # the client is gone
        except Exception:
            # the client runs the command again, if it has no output yet, and shows how that fails
            logger.exception("nexus %s failed for another process", request.arguments[0])
        finally:
            output.close()


def _look(connected: socket.socket, output: "_Output") -> None:
    """Notice that the client is gone; it sends nothing else."""
    try:
        data = connected.recv(1)
    except BlockingIOError:
        return
    except OSError:
        data = b""
    if not data:
        output.is_lost = True
        asyncio.get_running_loop().remove_reader(connected)


class _Output:
    """Sends frames to a client, from the thread of its command; the loop sends the beats."""

    def __init__(self, connected: socket.socket) -> None:
        self.is_lost = False
        self._beats = connected
        self._socket = connected.dup()
        self._socket.settimeout(SLOWEST_S)
        self._lock = threading.Lock()
        self._rest = b""  # of a beat that was sent in part

    def send(self, stream: str, data: bytes) -> None:
        if data:
            self._send(b"%s %d\n%s" % (stream.encode(), len(data), data))

    def send_exit(self, code: int) -> None:
        self._send(b"x %d\n" % code)

    def beat(self) -> None:
        """Tell the client that the daemon is alive, unless it is just being sent something."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if not self.is_lost and not self._rest:
                sent_count = self._beats.send(_BEAT)
                self._rest = _BEAT[sent_count:]
        except OSError:
            pass  # full or lost
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._socket.close()

    def _send(self, data: bytes) -> None:
        if self.is_lost:
            raise BrokenPipeError
        with self._lock:
            data, self._rest = self._rest + data, b""
            try:
                self._socket.sendall(data)
            except OSError as error:
                self.is_lost = True
                raise BrokenPipeError from error
