"""Give hooks the folder that they work in, loaded in the daemon with its snapshot, knowledge base and ledger.

1. If the folder is open in a window, hooks use the window's folder. Otherwise the folder is loaded for hooks
   alone. It stays loaded and watched until a window opens it, or until hooks have used MOST_FOLDERS other
   folders.
2. Hooks run in threads of their own. They wait there for the work that the event loop does for them.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_context.config.conversations import reads_conversations
from nexus_context.disk import files
from nexus_context.errors import RequestError
from nexus_daemon.lsp.client_capabilities import ClientCapabilities
from nexus_daemon.lsp.convert import path_to_uri
from nexus_daemon.workspace.inputs import load_inputs

if TYPE_CHECKING:  # most hooks need no folder
    from nexus_context.folder.snapshot import Snapshot
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.windows.daemon import Daemon
    from nexus_daemon.windows.live_folder import LiveFolder
    from nexus_daemon.workspace.folders import Folder

logger = logging.getLogger(__name__)

MOST_FOLDERS = 8
PATIENCE_S = 10.0  # for a folder that takes long to load

T = TypeVar("T")
_Key = tuple[str, frozenset[tuple[str, str]]]
"""A folder's path and the environment that it is loaded with."""


class _NoDocuments:
    def adopt(self) -> None: ...


class HookClient:
    """The client that owns a folder loaded for hooks. Nothing is shown to it."""

    name = "hooks"
    capabilities = ClientCapabilities()
    documents = _NoDocuments()
    listens = False
    running = unread = 0

    def now(self) -> datetime:
        return datetime.now().astimezone()

    def swap(self, folder: "Folder", snapshot: "Snapshot | None") -> None: ...

    def swap_agent(
        self, folder: "Folder", agent: str, snapshot: "Snapshot | None", overlays: Mapping[str, str]
    ) -> None: ...

    def notify(self, method: str, params: Any) -> None: ...

    def refresh_lenses(self) -> None: ...

    def refresh_contexts(self, folder: str) -> None: ...

    def show_work(self, _: str) -> AbstractContextManager[Any]:
        return nullcontext()


class HookFolders:
    """Finds the folder that a hook call belongs to.

    `start` returns the daemon, which it starts if needed; it is always called on the event loop. Other
    threads call the methods of this class.
    """

    def __init__(self, start: "Callable[[], Daemon]", loop: asyncio.AbstractEventLoop) -> None:
        self._start = start
        self._loop = loop
        self._clients: OrderedDict[_Key, HookClient] = OrderedDict()  # used last at the end

    def ask(
        self,
        path: str,
        environ: Mapping[str, str],
        work: "Callable[[Daemon, LiveFolder], Coroutine[Any, Any, T]]",
    ) -> T | None:
        """Run `work` on the folder at a path and return its result. None if there is no folder at the path.

        RequestError if the folder cannot be loaded, TimeoutError after PATIENCE_S.
        """
        if not files.is_dir(path):
            return None
        import nexus_daemon.windows.daemon  # noqa: F401 - in this thread, for which the loop does not wait

        pending = asyncio.run_coroutine_threadsafe(self._work(path, environ, work), self._loop)
        try:
            return pending.result(PATIENCE_S)
        finally:
            pending.cancel()

    def reads_conversations(self, path: str, environ: Mapping[str, str]) -> bool:
        """Whether the settings of the folder at a path allow reading its transcripts.

        False without such a folder.
        """

        async def ask_settings(_: "Daemon", folder: "LiveFolder") -> bool:
            return reads_conversations((await folder.current()).effective)

        try:
            return self.ask(path, environ, ask_settings) is True
        except (RequestError, TimeoutError) as error:
            logger.info("no transcript is read: %s", str(error) or "its folder takes too long to load")
            return False

    def ledger(self, path: str, environ: Mapping[str, str]) -> "FolderLedger | None":
        """Return the ledger of the folder at a path. None and errors as for `ask`."""

        async def open_ledger(daemon: "Daemon", folder: "LiveFolder") -> "FolderLedger":
            return await daemon.ledgers.of(await folder.current(), folder)

        return self.ask(path, environ, open_ledger)

    async def _work(
        self,
        path: str,
        environ: Mapping[str, str],
        work: "Callable[[Daemon, LiveFolder], Coroutine[Any, Any, T]]",
    ) -> T:
        daemon = self._start()
        return await work(daemon, self._folder(daemon, path, environ))

    def _folder(self, daemon: "Daemon", path: str, environ: Mapping[str, str]) -> "LiveFolder":
        hook_clients = set(self._clients.values())
        windows = (
            live_folder
            for live_folder in daemon.windows.folders
            if live_folder.path == path and live_folder.client not in hook_clients
        )
        window = next(windows, None)
        if window is not None:
            for key in [key for key in self._clients if key[0] == path]:
                daemon.leave(self._clients.pop(key))
            return window
        key = (path, frozenset(environ.items()))
        client = self._clients.pop(key, None)
        if client is None:
            client = HookClient()
            daemon.join(client, load_inputs(environ))
            daemon.add_folder(client, path_to_uri(path), name="", listed=True)
        self._clients[key] = client
        while len(self._clients) > MOST_FOLDERS:
            daemon.leave(self._clients.popitem(last=False)[1])
        return next(folder for folder in daemon.windows.folders if folder.client == client)
