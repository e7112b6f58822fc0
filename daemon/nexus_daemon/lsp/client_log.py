"""Send log records to clients: `window/logMessage`, and `$/logTrace` to a client that has asked for all
records.

1. A warning goes to the client that it concerns (`serving`), and to all clients if it concerns the daemon.
2. Records below a warning go as `$/logTrace` to the clients that have set `$/setTrace` to `verbose`.
3. Tracebacks, which may contain text of the user's files, are not sent.
"""

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from nexus_daemon.lsp import lsp_types, serving
from nexus_daemon.process.logs.process_log import want_debug

if TYPE_CHECKING:
    from nexus_daemon.lsp.dispatch import NexusServer


class ClientLog(logging.Handler):
    """The log handler that sends records to all clients of this process."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._busy = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            concerned = serving.current()
            for server in tuple(_servers) if concerned is None else (concerned.server,):
                if server is not None and server.client is not None:
                    _send(server, record)
        except Exception:  # noqa: BLE001 - a log line must not break what it reports
            self.handleError(record)
        finally:
            self._busy.now = False


_servers: set["NexusServer"] = set()
_verbose: set["NexusServer"] = set()


def join(server: "NexusServer") -> None:
    """Send log records to this client from now on. It gets none before it is initialized."""
    _servers.add(server)


def leave(server: "NexusServer") -> None:
    _servers.discard(server)
    set_verbose(server, is_verbose=False)


def set_verbose(server: "NexusServer", *, is_verbose: bool) -> None:
    """Send a client records of all levels if `is_verbose`, else warnings only."""
    if is_verbose != (server in _verbose):
        (_verbose.add if is_verbose else _verbose.discard)(server)
        want_debug(server, is_verbose)


def _send(server: "NexusServer", record: logging.LogRecord) -> None:
    with suppress(RuntimeError):  # the loop is closed
        if record.levelno >= logging.WARNING:
            kind = lsp_types.ERROR if record.levelno >= logging.ERROR else lsp_types.WARNING
            message = lsp_types.ShowMessageParams(kind, record.getMessage())
            server.notify("window/logMessage", message)
        elif server in _verbose:
            text = f"{record.levelname} {record.name}: {record.getMessage()}"
            server.notify("$/logTrace", {"message": text})
