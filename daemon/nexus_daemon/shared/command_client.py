"""Run a command line in the shared daemon, which has imported everything already.

1. `run` returns None if this process has to run the command itself: if no daemon runs, or if the daemon is
   old, hung or busy. The daemon may also refuse: for help, for wrong usage, in another time zone.
2. None is possible only until the first output. If the daemon ends after that, so does the command.
3. The daemon sends frames: `o <length>\\n` and that many bytes for standard output, `e <length>\\n` and bytes
   for standard error, `x <exit code>\\n` at the end. It sends an empty frame at once and every second.
4. If no daemon runs, `run` costs only a check of one path. Only `connect_for_output` may start a daemon.
"""

import os
import sys

from nexus_daemon.process.version import __version__
from nexus_daemon.shared.identity import NoSharedDaemonError, find_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket  # noqa: N812
    from collections.abc import Sequence
    from typing import TextIO

PURPOSE = "command"
FIRST_S = 2.0  # that the daemon may take to begin
SILENT_S = 10.0  # that it may be silent after that
_READ = 256 * 1024  # bytes
_NO_SIZE = "0 0"
_COLLECTED = "utf-8 replace 0 0 0 65536"  # a stream, as `_stream` describes it


def run(arguments: "Sequence[str]") -> int | None:
    """Run a command in the daemon. Return its exit code, or None if this process has to run it."""
    if sys.stdout is None or sys.stderr is None:  # Windows without a console
        return None
    try:
        connected = _connect(arguments)
        if connected is None:
            return None
        try:
            return follow(connected)
        finally:
            connected.close()  # the daemon ends the command if it still runs
    except KeyboardInterrupt:
        os.write(2, b"\n")
        return 130


def _connect(arguments: "Sequence[str]") -> "Socket | None":
    """A connection to a daemon of this version that runs the command; None if there is none."""
    try:
        place = find_place(os.environ)
        if not os.path.exists(place.socket if place.has_socket else place.token):
            return None
        command_fields = fields(arguments)
        if command_fields is None:
            return None
        from nexus_daemon.shared import client

        hello = client.fields_for(PURPOSE, place, os.environ, more=command_fields)
        greeted = client.connect(place, hello, timeout_s=FIRST_S)
    except (NoSharedDaemonError, OSError):
        return None
    if greeted is None:
        return None
    if greeted.reply.get("version") != __version__:
        greeted.socket.close()
        return None
    return greeted.socket


def connect_for_output(arguments: "Sequence[str]", directory: str) -> "Socket | None":
    """Connect to a daemon that runs the command in a directory, for `collect`.

    A daemon is started if none runs.

    None if the daemon is of another version. NoSharedDaemonError if there can be no daemon.
    """
    from nexus_daemon.shared import client

    place = find_place(os.environ)
    streams = (("stdout", _COLLECTED), ("stderr", _COLLECTED), ("size", _NO_SIZE))
    process_fields = (
        ("cwd", directory),
        ("encoding", sys.getfilesystemencoding()),
        ("program", program()),
        *streams,
    )
    command_fields = (*(("argument", argument) for argument in arguments), *process_fields)
    hello = client.fields_for(PURPOSE, place, os.environ, more=command_fields)
    greeted = client.connect(place, hello, timeout_s=FIRST_S) or client.connect_or_start(place, hello)
    if greeted.reply.get("version") != __version__:
        greeted.socket.close()
        return None
    return greeted.socket


def collect(connected: "Socket") -> tuple[int, bytes, bytes] | None:
    """Return the exit code of a command, and its output and errors as bytes.

    None if the daemon does not run the command, or ends before the command does.
    """
    connected.settimeout(FIRST_S)
    frames = _Frames(connected)
    printed = {"o": bytearray(), "e": bytearray()}
    while True:
        try:
            kind, number = frames.read_head()
            if kind == "x":
                return number, bytes(printed["o"]), bytes(printed["e"])
            printed[kind] += frames.read(number)
        except (OSError, EOFError, ValueError):  # too late, closed, or not a frame
            return None
        connected.settimeout(SILENT_S)


def fields(arguments: "Sequence[str]") -> "tuple[tuple[str, str], ...] | None":
    """Return the facts of this process that the daemon needs. None if it could not act the same way."""
    if os.name == "nt" and (sys.stdout.isatty() or sys.stderr.isatty()):
        return None  # colours and widths of a console are for its own processes to find out
    try:
        cwd = os.getcwd()
    except OSError:
        return None
    stdout, stderr = _stream(sys.stdout), _stream(sys.stderr)
    if stdout is None or stderr is None:
        return None
    streams = (("stdout", stdout), ("stderr", stderr), ("size", _size()))
    process_fields = (
        ("cwd", cwd),
        ("encoding", sys.getfilesystemencoding()),
        ("program", program()),
        *streams,
    )
    return (*(("argument", argument) for argument in arguments), *process_fields)


def program() -> str:
    """Return the interpreter's version and the directory of the code.

    A daemon with other ones may print something else.
    """
    return f"{sys.hexversion:x} {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}"


def _stream(stream: "TextIO") -> str | None:
    """Encoding, treatment of errors, whether it is a terminal, when it is flushed, the size of its buffer."""
    import io

    if not isinstance(stream, io.TextIOWrapper):
        return None
    raw = getattr(stream.buffer, "raw", stream.buffer)
    size = getattr(raw, "_blksize", io.DEFAULT_BUFFER_SIZE)
    flags = (stream.isatty(), stream.line_buffering, stream.write_through)
    return f"{stream.encoding} {stream.errors} {' '.join(str(int(flag)) for flag in flags)} {size}"


def _size() -> str:
    """Columns and lines of the terminal, if one of the standard streams is one."""
    for descriptor in (0, 1, 2):
        try:
            columns, lines = os.get_terminal_size(descriptor)
        except (OSError, ValueError):
            continue
        return f"{columns} {lines}"
    return _NO_SIZE


def follow(connected: "Socket") -> int | None:
    """Copy the output of a command until it ends.

    Return its exit code, or None if this process has to run it.
    """
    connected.settimeout(FIRST_S)
    frames = _Frames(connected)
    has_written = False
    while True:
        try:
            kind, number = frames.read_head()
            data = b"" if kind == "x" else frames.read(number)
        except (OSError, EOFError, ValueError):  # too late, closed, or not a frame
            if not has_written:
                return None
            os.write(2, b"nexus: the daemon ended while the command ran. Run it again.\n")
            return 1
        connected.settimeout(SILENT_S)
        if kind == "x":
            return number
        try:
            _write(1 if kind == "o" else 2, data)
        except BrokenPipeError:  # the reader of the output (head, less) has closed it
            return 0
        except OSError as error:
            os.write(2, f"nexus: the output cannot be written: {error.strerror}\n".encode())
            return 1
        has_written = has_written or bool(data)


class _Frames:
    """The frames that the daemon sends. EOFError at the end; ValueError if it is not a frame."""

    def __init__(self, connected: "Socket") -> None:
        self._socket = connected
        self._data = b""

    def read_head(self) -> tuple[str, int]:
        """The kind of the next frame, and its length or exit code."""
        while b"\n" not in self._data:
            self._receive()
        line, _, self._data = self._data.partition(b"\n")
        kind, _, number = line.decode("ascii").partition(" ")
        if kind not in ("o", "e", "x"):
            raise ValueError(line)
        return kind, int(number)

    def read(self, length: int) -> bytes:
        while len(self._data) < length:
            self._receive()
        data, self._data = self._data[:length], self._data[length:]
        return data

    def _receive(self) -> None:
        data = self._socket.recv(_READ)
        if not data:
            raise EOFError
        self._data += data


def _write(descriptor: int, data: bytes) -> None:
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[os.write(descriptor, unwritten) :]
