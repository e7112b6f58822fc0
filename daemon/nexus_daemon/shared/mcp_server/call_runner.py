"""Run the call of a tool: in the shared daemon, which is started if none runs, else in this process.

1. The daemon runs the command line `nexus mcp --tool …` for this process, as it runs every command that only
   reads. Its output is collected. If the daemon ends meanwhile, the call runs in this process.
2. A call that writes runs in this process, as every command that writes does.
3. A daemon that cannot be used is not tried again for RETRY_S.
4. Notices that the call prints to standard error become part of its text, since nothing else reads them.
"""

import contextlib
import json
import sys
import threading
import time

from nexus_daemon.shared.mcp_server import clients, definitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket  # noqa: N812
    from collections.abc import Callable
    from typing import Any

    from nexus_daemon.shared.mcp_server.stdio_server import RunningCall, ToolRequest

    RunHere = Callable[[list[str], str, Callable[[], bool]], tuple[bytes, bytes] | None]
    """Runs a command line in a folder, in this thread: what it prints; None if it was cancelled."""

RETRY_S = 30.0
MOST_NOTICES = 1_000  # characters


class CallRunner:
    """Runs calls, in any thread. `assistant` and `options` are those of the server's command line."""

    def __init__(
        self,
        run_here: "RunHere",
        *,
        assistant: str | None = None,
        options: tuple[str, ...] = (),
        uses_daemon: bool = True,
    ) -> None:
        self._run_here = run_here
        self._assistant = assistant
        self._options = options
        self._uses_daemon = uses_daemon
        self._lock = threading.Lock()  # one thread at a time starts a daemon
        self._not_before = 0.0  # seconds of the monotonic clock

    def run(self, tool_call: "ToolRequest", running: "RunningCall") -> "dict[str, Any]":
        """Return the result of a call in the form of `tools/call`."""
        arguments = self.command_line(tool_call)
        printed = None
        if tool_call.name not in definitions.WRITING:
            printed = self._run_in_daemon(arguments, tool_call.folders[0], running)
        if printed is None and not running.is_cancelled:
            printed = self._run_here(arguments, tool_call.folders[0], lambda: running.is_cancelled)
        if printed is None:
            return {"content": []}  # nobody waits for it
        return _result(*printed)

    def command_line(self, tool_call: "ToolRequest") -> list[str]:
        """Build the command line that answers a call."""
        assistant = self._assistant or clients.assistant_of(tool_call.client)
        return [
            *("mcp", "--tool", tool_call.name, "--json", "--arguments", json.dumps(tool_call.arguments)),
            *(word for folder in tool_call.folders for word in ("--folder", folder)),
            *(() if assistant is None else ("--for", assistant)),
            *(("--write",) if tool_call.name in definitions.WRITING else ()),
            *self._options,
        ]

    def _run_in_daemon(
        self, arguments: list[str], folder: str, running: "RunningCall"
    ) -> tuple[bytes, bytes] | None:
        connected = self._connect(arguments, folder)
        if connected is None:
            return None
        from nexus_daemon.shared import command_client

        with contextlib.closing(connected):
            if not running.use_abort(lambda: _shut_down(connected)):
                return None
            try:
                collected = command_client.collect(connected)
            finally:
                running.use_abort(None)
        return None if collected is None or collected[0] != 0 else collected[1:]

    def _connect(self, arguments: list[str], folder: str) -> "Socket | None":
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


def _shut_down(connected: "Socket") -> None:
    import _socket

    with contextlib.suppress(OSError):
        connected.shutdown(_socket.SHUT_RDWR)


def _result(out: bytes, notices: bytes) -> "dict[str, Any]":
    """The result that a command line printed, with its notices."""
    result: dict[str, Any] = json.loads(out)
    text = notices.decode("utf-8", "replace").strip()
    if text:
        sys.stderr.write(f"{text}\n")
        result["content"].append({"type": "text", "text": f"Note: {text[:MOST_NOTICES]}"})
    return result
