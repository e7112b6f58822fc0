"""Vocabularies that large files wait for: each is loaded once, off the loop, after what is shown first.

Then the folders that waited are read again, and how much of the model's window their files take is told.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from nexus_context.tokens import is_loaded, load_encoding
from nexus_context.tokens.vocabulary import VocabularyError
from nexus_daemon.workspace.folders import Folder

PAUSE_S = 0.5
"""Loading holds up every thread for a moment, so it does not begin while a window is being opened."""

logger = logging.getLogger(__name__)


class Vocabularies:
    """What is being loaded. Lives on the event loop; `work` runs a job in a thread."""

    def __init__(self, work: Callable[..., Awaitable[Any]]) -> None:
        self._work = work
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._waiting: dict[str, set[Folder]] = {}
        self._late: set[tuple[str, str]] = set()  # folders that were read just before a vocabulary was there

    def wanted(self, folder: Folder, encoding: str | None) -> None:
        """A folder, or one of its agents, has been read that waits for an encoding; None: for none."""
        if encoding is None:
            return
        if is_loaded(encoding):
            if (folder.uri, encoding) not in self._late:
                self._late.add((folder.uri, encoding))
                folder.reload.request("tokens")
            return
        self._waiting.setdefault(encoding, set()).add(folder)
        if encoding not in self._loading:
            self._loading[encoding] = asyncio.get_running_loop().create_task(self._load(encoding))

    def end(self) -> None:
        """The daemon ends."""
        for task in self._loading.values():
            task.cancel()

    async def _load(self, encoding: str) -> None:
        await asyncio.sleep(PAUSE_S)
        try:
            await self._work(load_encoding, encoding)
        except VocabularyError:
            logger.exception("how much of the window large files take is not told")
            return
        for folder in self._waiting.pop(encoding, ()):
            folder.reload.request("tokens")
