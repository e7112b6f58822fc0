"""Ask a client to request something again, such as its code lenses, if another file changes what it has.

1. A client is asked only if it supports it and has requested that before.
2. Several changes in a row lead to one request once they pause. No further request is sent before its reply.
"""

import contextlib
from collections.abc import Awaitable, Callable

from nexus_context.errors import NexusError
from nexus_daemon.workspace.queue import TaskQueue

PAUSE_S = 0.3
REPLY_S = 10.0
REFRESH_LENSES = "workspace/codeLens/refresh"


class ClientRefresh:
    """Sends one client the refresh requests of one kind, if it supports them (`is_supported`).

    Use it on the event loop.

    `refresh` sends the request and waits for its reply.
    """

    def __init__(self, refresh: Callable[[], Awaitable[object]]) -> None:
        self.is_supported = False
        self._refresh = refresh
        self._is_due = False
        self._queue: TaskQueue[None] = TaskQueue(self._send, lambda _, later: later, quiet_s=PAUSE_S)

    def requested(self) -> None:
        """Take note that the client has requested the data, so that it may be asked to request it again."""
        self._is_due = self.is_supported

    def changed(self) -> None:
        """Request a refresh, since the client's data may be outdated."""
        if self._is_due:
            self._queue.request(None)

    def end(self) -> None:
        """Send nothing more."""
        self._queue.stop()

    async def _send(self, _: None) -> None:
        with contextlib.suppress(NexusError, TimeoutError):  # the client will request it sooner or later
            await self._refresh()
