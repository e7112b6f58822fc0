"""Load the vocabularies that large files wait for: each once, off the event loop, after the first
diagnostics.

Then the folders that waited are loaded again, since the share of the model's window that their files take is
exact now.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from nexus_context.tokens import is_loaded, load_encoding
from nexus_context.tokens.models import get_model_limits
from nexus_context.tokens.vocabulary import VocabularyError
from nexus_daemon.workspace.folders import Folder
from nexus_daemon.workspace.reload import Swap

PAUSE_S = 0.5
"""Loading delays every thread for a moment, so it does not begin while a window is being opened."""

logger = logging.getLogger(__name__)


class VocabularyLoader:
    """The vocabularies that are being loaded. Use it on the event loop; `work` runs a job in a thread.

    `show_work` returns a context in which clients show what is done.
    """

    def __init__(
        self,
        work: Callable[..., Awaitable[Any]],
        show_work: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._work = work
        self._show_work = show_work
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: dict[str, set[Folder]] = {}
        # of each folder, the vocabularies that it was loaded just before
        self._late: WeakKeyDictionary[Folder, set[str]] = WeakKeyDictionary()

    def swapped(self, folder: Folder, swap: Swap) -> None:
        """Load two vocabularies: the one with which the new snapshot's files are to be counted, if they wait
        for it, and the one of the model that its settings name.
        """
        self.require(folder, swap.new.contents.waits_for)
        get = swap.new.effective.get
        self.load(get_model_limits(get("/provider/model"), get("/models") or {}).encoding)

    def require(self, folder: Folder, encoding: str | None) -> None:
        """Load the vocabulary that a snapshot of the folder or of one of its agents waits for.

        If it is loaded already, load the folder again, once.
        """
        if encoding is None:
            return
        if is_loaded(encoding):
            late = self._late.setdefault(folder, set())
            if encoding not in late:
                late.add(encoding)
                folder.reload.request("tokens")
            return
        self._waiting.setdefault(encoding, set()).add(folder)
        self.load(encoding)

    def load(self, encoding: str) -> None:
        """Load a vocabulary, unless it is loaded or being loaded.

        Costs of folders are estimates until then.
        """
        if not is_loaded(encoding) and encoding not in self._tasks:
            self._tasks[encoding] = asyncio.get_running_loop().create_task(self._load(encoding))

    def end(self) -> None:
        """Cancel every load, since the daemon ends."""
        for task in self._tasks.values():
            task.cancel()

    async def _load(self, encoding: str) -> None:
        await asyncio.sleep(PAUSE_S)
        try:
            with self._show_work("Nexus: Loading the vocabulary of the model"):
                await self._work(load_encoding, encoding)
        except VocabularyError:
            logger.exception("the shares of large files in the window stay unknown")
            return
        for folder in self._waiting.pop(encoding, ()):
            folder.reload.request("tokens")
