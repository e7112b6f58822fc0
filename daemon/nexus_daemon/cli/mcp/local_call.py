"""Answers a call in a thread of the server, where the shared daemon cannot: the same text as there."""

import io
from collections.abc import Callable
from typing import cast

from nexus_context.disk.cancellation import WorkCancelled, cancellable
from nexus_context.disk.deadline import Turns
from nexus_daemon.cli.guard import Guard
from nexus_daemon.cli.invocation import RemoteInvocation, current, running
from nexus_daemon.cli.mcp.answer_call import print_answer
from nexus_daemon.cli.parser import parse
from nexus_daemon.shared.mcp_server import definitions

_TURNS = Turns()  # of long loads


def run_here(
    arguments: list[str], folder: str, is_cancelled: Callable[[], bool]
) -> tuple[bytes, bytes] | None:
    """Run a command line with `--tool` and return the text of both streams. None if it was cancelled."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in range(2)]
    invocation = RemoteInvocation(
        environ=current().environ,
        cwd=folder,
        stdout=streams[0],
        stderr=Guard(streams[1]),
        terminal_size=(0, 0),
        turns=_TURNS,
    )
    with running(invocation):
        options = parse(arguments)
        writes = options.tool in definitions.WRITING  # what writes is never interrupted
        try:
            with cancellable(lambda: not writes and is_cancelled()):
                print_answer(options)
        except WorkCancelled:
            return None
    out, err = (_bytes_of(stream) for stream in streams)
    return out, err


def _bytes_of(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    return cast("io.BytesIO", stream.buffer).getvalue()
