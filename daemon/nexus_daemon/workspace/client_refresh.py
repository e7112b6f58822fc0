"""Asks a client to request its code lenses again: another file that its files import may have changed.

1. A client is asked only if it supports it and has requested lenses before.
2. Several changes in a row lead to one request once they pause, and to no other one before its reply.
"""

import contextlib
from collections.abc import Awaitable, Callable

from nexus_context.errors import NexusError
from nexus_daemon.workspace.queue import TaskQueue

PAUSE_S = 0.3
REPLY_S = 10.0
REFRESH = "workspace/codeLens/refresh"


class LensRefresh:
    """The refresh requests to one client; `is_supported` by it. Lives on the event loop.

    `refresh` sends the request and waits for its reply.
    """

    def __init__(self, refresh: Callable[[], Awaitable[object]]) -> None:
        self.is_supported = False
        self._refresh = refresh
        self._has_lenses = False
        self._queue: TaskQueue[None] = TaskQueue(self._send, lambda _, later: later, quiet_s=PAUSE_S)

    def lenses_requested(self) -> None:
        """The client has requested lenses."""
        self._has_lenses = self.is_supported

    def lenses_changed(self) -> None:
        """The client's lenses may be outdated now."""
        if self._has_lenses:
            self._queue.request(None)

    def end(self) -> None:
        """Send nothing more."""
        self._queue.stop()

    async def _send(self, _: None) -> None:
        with contextlib.suppress(NexusError, TimeoutError):  # the client will request lenses sooner or later
            await self._refresh()
