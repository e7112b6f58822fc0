"""Commands that run for another process: in this one, and in a process of their own for comparison."""

import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nexus_daemon.cli import warm
from nexus_daemon.shared.command_client import program
from nexus_daemon.shared.command_runner import CommandRequest, StreamFacts

PIPE = StreamFacts("utf-8", "surrogateescape", False, False, False, 4096)
PIPE_ERRORS = PIPE._replace(errors="backslashreplace", line_buffering=True)
TERMINAL = PIPE._replace(is_terminal=True, line_buffering=True, buffer_size=1024)


class Printed(NamedTuple):
    """The exit code of a command and what it printed; on a terminal everything is `out`."""

    code: int | None
    out: bytes
    err: bytes = b""


def request(
    work: str | Path,
    environ: Mapping[str, str],
    arguments: Sequence[str],
    *,
    size: tuple[int, int] | None = None,
) -> CommandRequest:
    """A command line given to a process in a folder; with `size` on a terminal, else with pipes."""
    stdout, stderr = (PIPE, PIPE_ERRORS) if size is None else (TERMINAL, TERMINAL)
    encoding = sys.getfilesystemencoding()
    return CommandRequest(
        arguments=tuple(arguments),
        cwd=str(work),
        environ=dict(environ),
        stdout=stdout,
        stderr=stderr,
        size=size or (0, 0),
        encoding=encoding,
        program=program(),
    )


def run_warm(command: CommandRequest) -> Printed:
    """Run a command for that process, in this one."""
    chunks: list[tuple[str, bytes]] = []
    code = warm.run_for(command, lambda stream, data: chunks.append((stream, data)))
    if command.stdout.is_terminal:
        return Printed(code, b"".join(data for _, data in chunks))
    streams = (b"".join(data for stream, data in chunks if stream == name) for name in "oe")
    return Printed(code, *streams)


def run_process(
    work: str | Path,
    environ: Mapping[str, str],
    arguments: Sequence[str],
    *,
    size: tuple[int, int] | None = None,
    program: Sequence[str] = ("-m", "nexus_daemon"),
) -> Printed:
    """Run a command in a process of its own."""
    command = [sys.executable, *program, *arguments]
    env = {**environ, "PYTHONUNBUFFERED": ""}
    if size is None:
        done = subprocess.run(
            command, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return Printed(done.returncode, done.stdout, done.stderr)
    return _run_on_terminal(command, work, env, size)


def _run_on_terminal(
    command: list[str], work: str | Path, env: Mapping[str, str], size: tuple[int, int]
) -> Printed:
    import fcntl  # not on Windows
    import pty
    import termios

    ours, theirs = pty.openpty()
    columns, lines = size
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))
    with subprocess.Popen(command, cwd=work, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        received = b""
        while part := _read(ours):
            received += part
        code = process.wait(60)
    os.close(ours)
    return Printed(code, received.replace(b"\r\n", b"\n"))


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other end is closed
        return b""
