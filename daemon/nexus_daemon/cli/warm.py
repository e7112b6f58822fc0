"""Runs a command in a thread of the daemon for another process: the same bytes and exit code as there.

1. Only commands of `commands.WARM` run here. They read the disk, never the unsaved text of an editor.
2. The client runs the command itself where this process could not do exactly the same: help and wrong usage,
   whose layout is the interpreter's; another installation, time zone or encoding of the file system; a PATH
   that depends on the working directory; a bug of Nexus, which is logged where it happens.
3. The streams are Python's, over frames instead of file descriptors, so that encoding, errors, line ends and
   the order of the two are the same.
"""

import importlib
import io
import os
import sys
import time
from typing import cast

from nexus_context.disk import containment
from nexus_context.disk.deadline import Turns
from nexus_daemon.cli import output
from nexus_daemon.cli.commands import may_run_warm
from nexus_daemon.cli.guard import Guard
from nexus_daemon.cli.invocation import LocalOnlyError, RemoteInvocation, running
from nexus_daemon.cli.parser import parse
from nexus_daemon.shared.command_client import program
from nexus_daemon.shared.command_runner import CommandRequest, Send, StreamFacts

_TURNS = Turns()  # of long loads: together, commands slow down editors no more than one of them
_ZONE = os.environ.get("TZ")


def run_for(request: CommandRequest, send: Send) -> int | None:
    """Run a command for another process in this thread, as `command_runner.RunCommand` requires.

    Returns its exit code, or None if the client has to run it.
    """
    if not (may_run_warm(request.arguments) and _is_alike(request)):
        return None
    frames = _Frames(send)
    try:
        return _run(request, frames)
    except LocalOnlyError:
        return None
    finally:
        frames.close()


def _run(request: CommandRequest, frames: "_Frames") -> int:
    stdout = _stream("o", request.stdout, frames)
    stderr = _stream("e", request.stderr, frames)
    stdout.reconfigure(errors="replace")  # as the command line does in its own process
    invocation = RemoteInvocation(
        environ=request.environ,
        cwd=request.cwd,
        stdout=stdout,
        stderr=Guard(stderr),
        terminal_size=request.size,
        turns=_TURNS,
    )
    with running(invocation):
        options = parse(request.arguments)
        code: int = importlib.import_module(f"nexus_daemon.cli.{options.command}").run(options)
        output.flush()
    return code


def _is_alike(request: CommandRequest) -> bool:
    """Whether this process has the client's code, clock and home, and no search depends on a directory."""
    if hasattr(time, "tzset"):
        time.tzset()  # the zone of the system may have changed
    home = request.environ.get("HOME" if os.name != "nt" else "USERPROFILE", "")
    return (
        request.program == program()
        and request.environ.get("TZ") == _ZONE
        and os.path.isabs(home)
        and os.path.isabs(request.cwd)
        and all(map(os.path.isabs, request.environ.get("PATH", os.sep).split(os.pathsep)))
        and request.encoding == sys.getfilesystemencoding()
    )


class _Frames:
    """Sends the output of a command until it is closed. Output that is flushed after a failure is dropped."""

    def __init__(self, send: Send) -> None:
        self._send: Send | None = send
        self._bugs: int | None = containment.bugs_met()

    def send(self, stream: str, data: bytes) -> None:
        """Send bytes; LocalOnlyError instead of the first ones if Nexus met a bug before them."""
        if self._send is None:
            return
        if self._bugs not in (None, containment.bugs_met()):
            self.close()  # a stream that nobody holds any more is flushed again
            raise LocalOnlyError
        self._bugs = None
        self._send(stream, data)

    def close(self) -> None:
        self._send = None


def _stream(name: str, facts: StreamFacts, frames: _Frames) -> io.TextIOWrapper:
    raw = cast("io.FileIO", _RemoteFile(name, frames, is_terminal=facts.is_terminal))
    return io.TextIOWrapper(
        cast("io.BufferedWriter", raw) if facts.write_through else io.BufferedWriter(raw, facts.buffer_size),
        encoding=facts.encoding,
        errors=facts.errors,
        line_buffering=facts.line_buffering,
        write_through=facts.write_through,
    )


class _RemoteFile(io.RawIOBase):
    """A stream of another process, as a file."""

    def __init__(self, name: str, frames: _Frames, *, is_terminal: bool) -> None:
        self._name = name
        self._frames = frames
        self._is_terminal = is_terminal

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        self._frames.send(self._name, bytes(data))
        return len(data)
