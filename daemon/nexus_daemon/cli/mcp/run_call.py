"""Run the call of a tool: in the shared daemon, which is started where none runs, else in this process.

1. The daemon runs the command line `nexus mcp --tool …` for this process, as it runs every command that only
   reads. What it prints is collected: if it ends meanwhile, the call runs here.
2. A call that writes runs here, as every command that writes does.
3. A daemon that cannot be used is left alone for RETRY_S.
4. Notices that the call prints to standard error are part of its text, since nobody else reads them.
"""

import contextlib
import json
import os
import socket
import sys
import threading
import time

from nexus_daemon.cli.mcp import clients, definitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from nexus_daemon.cli.mcp.stdio_server import RunningCall, ToolCall

RETRY_S = 30.0
MOST_NOTICES = 1_000  # characters


class CallRunner:
    """Runs calls, in any thread. `assistant` and `options` are those of the command line of the server."""

    def __init__(
        self, *, assistant: str | None = None, options: tuple[str, ...] = (), uses_daemon: bool = True
    ) -> None:
        self._assistant = assistant
        self._options = options
        self._uses_daemon = uses_daemon
        self._lock = threading.Lock()  # one thread at a time starts a daemon
        self._not_before = 0.0  # seconds of the monotonic clock

    def run(self, tool_call: "ToolCall", running: "RunningCall") -> "dict[str, Any]":
        """The result of a call as `tools/call` has it."""
        arguments = self.command_line(tool_call)
        printed = None
        if tool_call.name not in definitions.WRITING:
            printed = self._run_in_daemon(arguments, tool_call.folders[0], running)
        if printed is None and not running.is_cancelled:
            printed = _run_here(arguments, tool_call.folders[0], lambda: running.is_cancelled)
        if printed is None:
            return {"content": []}  # nobody waits for it
        return _result(*printed)

    def command_line(self, tool_call: "ToolCall") -> list[str]:
        """The command line that answers a call."""
        assistant = self._assistant or clients.assistant_of(tool_call.client)
        return [
            *("mcp", "--tool", tool_call.name, "--json", "--arguments", json.dumps(tool_call.arguments)),
            *(word for folder in tool_call.folders for word in ("--folder", folder)),
            *(() if assistant is None else ("--for", assistant)),
            *self._options,
        ]

    def _run_in_daemon(
        self, arguments: list[str], folder: str, running: "RunningCall"
    ) -> tuple[bytes, bytes] | None:
        connected = self._connect(arguments, folder)
        if connected is None:
            return None
        from nexus_daemon.shared import command_client

        with connected:
            if not running.use_abort(lambda: _shut_down(connected)):
                return None
            try:
                collected = command_client.collect(connected)
            finally:
                running.use_abort(None)
        return None if collected is None or collected[0] != 0 else collected[1:]

    def _connect(self, arguments: list[str], folder: str) -> socket.socket | None:
        """A connection to a daemon that runs the command line; None if there is none."""
        if not self._uses_daemon or time.monotonic() < self._not_before:
            return None
        from nexus_daemon.shared import command_client
        from nexus_daemon.shared.identity import NoSharedDaemonError

        try:
            with self._lock:
                return command_client.connect_for_output(arguments, folder)
        except (NoSharedDaemonError, OSError):
            self._not_before = time.monotonic() + RETRY_S
            return None


def _shut_down(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def _run_here(
    arguments: list[str], folder: str, is_cancelled: "Callable[[], bool]"
) -> tuple[bytes, bytes] | None:
    """What the command line prints in a thread of this process; None if it was cancelled."""
    import io
    from typing import cast

    from nexus_context.cancellation import WorkCancelled, cancellable
    from nexus_context.deadline import Turns
    from nexus_daemon.cli import output
    from nexus_daemon.cli.invocation import RemoteInvocation, running
    from nexus_daemon.cli.mcp import answer_call
    from nexus_daemon.cli.parser import parse

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in range(2)]
    invocation = RemoteInvocation(
        environ=os.environ,
        cwd=folder,
        stdout=streams[0],
        stderr=output.Guard(streams[1]),
        terminal_size=(0, 0),
        turns=Turns(),
    )
    with running(invocation):
        options = parse(arguments)
        try:
            if options.tool in definitions.WRITING:
                answer_call.print_answer(options)
            else:
                with cancellable(is_cancelled):
                    answer_call.print_answer(options)
        except WorkCancelled:
            return None
    out, err = (cast("io.BytesIO", _flushed(stream).buffer).getvalue() for stream in streams)
    return out, err


def _flushed(stream: "Any") -> "Any":
    stream.flush()
    return stream


def _result(out: bytes, notices: bytes) -> "dict[str, Any]":
    """The result that a command line printed, with its notices."""
    result: dict[str, Any] = json.loads(out)
    text = notices.decode("utf-8", "replace").strip()
    if text:
        sys.stderr.write(f"{text}\n")
        result["content"].append({"type": "text", "text": f"Note: {text[:MOST_NOTICES]}"})
    return result
