"""Open the registries of agents of a daemon's folders when they are first needed."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_daemon import agents, protocol
from nexus_daemon.windows.folder_ledgers import FolderLedgers
from nexus_daemon.windows.live_folder import LiveFolder
from nexus_daemon.windows.open_windows import Windows
from nexus_daemon.workspace.vocabulary_loader import VocabularyLoader
from nexus_daemon.workspace.workers import Workers

if TYPE_CHECKING:  # most folders have no agents
    from nexus_daemon.agents.registry import AgentNews, AgentRegistry

logger = logging.getLogger(__name__)


class FolderAgents:
    """The agents of all folders of a daemon. Use it on the event loop."""

    def __init__(
        self,
        windows: Windows,
        ledgers: FolderLedgers,
        workers: Workers,
        *,
        vocabularies: VocabularyLoader,
        refresh_watches: Callable[[], None],
    ) -> None:
        self._windows = windows
        self._ledgers = ledgers
        self._workers = workers
        self._vocabularies = vocabularies
        self._refresh_watches = refresh_watches

    async def of(self, folder: LiveFolder) -> "AgentRegistry":
        """Return the agents of a folder, perhaps outdated: the caller catches up with files and ledger
        itself.
        """
        if folder.agents is None:
            registry = await self._workers.run(lambda: agents.registry)  # the import takes a while
            snapshot = await folder.current()
            ledger = await self._ledgers.of(snapshot, folder)
            await folder.reload.settled()  # RequestError if the client has left meanwhile
            services = registry.AgentServices(
                folders=self._windows.tables[folder.client],
                workers=self._workers,
                client=folder.client,
                vocabularies=self._vocabularies,
                refresh_watches=self._refresh_watches,
                report=partial(self._changed, folder),
            )
            if folder.agents is None:
                folder.agents = registry.AgentRegistry(folder, ledger, services)
        return folder.agents

    async def current(self, folder: LiveFolder) -> "AgentRegistry":
        """Return the agents of a folder, up to date with files and ledger."""
        registry = await self.of(folder)
        await registry.current()
        return registry

    def preview(self, folder: LiveFolder, path: str) -> None:
        """Check an open document that only an agent of the folder would read.

        If the registry of the folder's agents cannot be opened, the next document does not try again.
        """
        if folder.agents is not None:
            folder.agents.preview(path)
        else:
            self.open_later(folder)

    def open_later(self, folder: LiveFolder) -> None:
        """Open the registry of a folder's agents in a task, unless it is open or being opened."""
        if folder.agents is None and folder.opening_agents is None:
            folder.opening_agents = asyncio.get_running_loop().create_task(self._open(folder))

    async def _open(self, folder: LiveFolder) -> None:
        try:
            (await self.of(folder)).follow()
        except RequestError as error:
            if not folder.reload.cancelled:
                logger.warning("cannot check the agents' documents of %s: %s", folder.path, error)

    def files_changed(self, folder: LiveFolder, paths: frozenset[str]) -> None:
        """Tell the agents of a folder which files changed."""
        if folder.agents is not None:
            folder.agents.files_changed(paths)

    def _changed(self, folder: LiveFolder, news: "Sequence[AgentNews]") -> None:
        """Notify every window of a folder of agents that started and ended, once, and let it follow."""
        workspace = None if folder.ledger is None else folder.ledger.workspace
        for window in [] if workspace is None else self._windows.in_workspace(workspace):
            for agent_news in news:
                if window.take_agent_news(agent_news.reason, agent_news.number):
                    params = protocol.AgentDidChange(window.uri, agent_news.agent, agent_news.reason)
                    window.client.notify("nexus/agent/didChange", params)
            if window is not folder and window.agents is not None:
                window.agents.follow()
            elif window is not folder:
                self.open_later(window)
