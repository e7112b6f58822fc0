"""Telling a client that its code lenses are old: another file that its files import may have changed.

1. A client hears of it only if it wants to and has asked for lenses before.
2. Several changes in a row are one: it is told once they pause, and never twice before it has answered.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from nexus_context.errors import NexusError

PAUSE_S = 0.3
ANSWER_S = 10.0
REFRESH = "workspace/codeLens/refresh"


class Lenses:
    """What one client knows of lenses: `wanted` says whether it wants to be told. Lives on the event loop.

    `refresh` asks it to ask again.
    """

    def __init__(self, refresh: Callable[[], Awaitable[object]]) -> None:
        self.wanted = False
        self._refresh = refresh
        self._shown = False
        self._timer: asyncio.TimerHandle | None = None
        self._telling: asyncio.Task[None] | None = None

    def shown(self) -> None:
        """The client has asked for lenses."""
        self._shown = self.wanted

    def changed(self) -> None:
        """Lenses may be others now."""
        if not self._shown:
            return
        self._quiet()
        self._timer = asyncio.get_running_loop().call_later(PAUSE_S, self._begin)

    def end(self) -> None:
        """The client wants to hear nothing more."""
        self._shown = False
        self._quiet()
        if self._telling is not None:
            self._telling.cancel()

    def _quiet(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._timer = None
        if self._telling is not None:
            self.changed()  # once it has answered
            return
        self._telling = asyncio.get_running_loop().create_task(self._tell())
        self._telling.add_done_callback(self._told)

    async def _tell(self) -> None:
        with contextlib.suppress(NexusError, TimeoutError):  # it will ask again sooner or later
            await self._refresh()

    def _told(self, _: object) -> None:
        self._telling = None
