"""Define a folder of one window: with its conversations, its agents, and announcements of what its context
costs.
"""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from nexus_daemon import protocol, sessions
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions.conversations import Conversations, is_prepared, prepare
from nexus_daemon.sessions.ledger_writer import FolderLedger
from nexus_daemon.workspace.fair_threads import WorkOwner, work_for
from nexus_daemon.workspace.folders import Folder
from nexus_daemon.workspace.publish import Client
from nexus_daemon.workspace.queue import TaskQueue
from nexus_daemon.workspace.reload import Swap
from nexus_daemon.workspace.workers import Workers

if TYPE_CHECKING:  # most folders have no agents
    from nexus_daemon.agents.registry import AgentRegistry

QUIET_S = (
    0.015  # without another reason before a context's cost is announced: several edits are announced once
)
MOST_AGENT_NEWS = 1_000  # the newest starts and ends of agents that a window remembers; others come no more
PATIENCE_S = 0.5  # longest wait for quiet before an announcement
REASONS = (
    "folder",
    "layers",
    "config",
    "model",
    "mcp",
    "instructions",
    "disk",
    "compaction",
    "session",
    "tokens",
)
"""Why a context can change; of several concurrent reasons, the first one here is announced."""


class _Announcement(msgspec.Struct, frozen=True):
    """Why the cost of a folder's context may have changed, and the sessions that changed."""

    reason: str
    sessions: frozenset[str]

    def merge(self, later: "_Announcement") -> "_Announcement":
        reason = min(self.reason, later.reason, key=REASONS.index)
        return _Announcement(reason, self.sessions | later.sessions)


class LiveFolder(Folder):
    """A folder of one client. It shares `conversations` with the same folder in other windows.

    The first request about a session in any of these windows sets `ledger`. The first request or document
    about an agent sets `agents`. `focus` is the conversation that the user is viewing in this window, if the
    client has reported it.
    """

    def __init__(
        self,
        uri: str,
        path: str,
        name: str,
        *,
        client: Client,
        conversations: Conversations,
        workers: Workers,
    ) -> None:
        super().__init__(uri, path, name)
        self.client = client
        self.conversations = conversations
        self.ledger: FolderLedger | None = None
        self.agents: AgentRegistry | None = None
        self.focus: str | None = None
        self.opening_agents: asyncio.Task[None] | None = None
        self._agent_news: dict[tuple[str, int], None] = {}  # that the client was notified of; oldest first
        self._workers = workers
        self._announcements: TaskQueue[_Announcement] | None = None

    def swapped(self, swap: Swap) -> None:
        """Tell the agents which files changed, and announce what the context costs now."""
        super().swapped(swap)
        if swap.old is None or swap.old.revision != swap.new.revision:
            self.announce(min(swap.reasons, key=REASONS.index))
        if self.agents is not None:
            self.agents.files_changed(self.changed)

    def take_agent_news(self, reason: str, number: int) -> bool:
        """Whether to notify the client that the agent with this number in the ledger was started or has
        ended.

        Each window of the folder reports the same news; only the first report counts.
        """
        if (reason, number) in self._agent_news:
            return False
        self._agent_news[reason, number] = None
        if len(self._agent_news) > MOST_AGENT_NEWS:
            del self._agent_news[next(iter(self._agent_news))]
        return True

    def announce(self, reason: str, session: str | None = None) -> None:
        """Announce to the client what the folder's context costs now, once changes have settled.

        Several reasons in a row lead to one announcement, with that reason of them which comes first in
        `REASONS`. `session` is the session that changed.
        """
        if self.snapshot is None or self.reload.cancelled or not self.client.listens:
            return
        self.client.refresh_contexts(self.uri)
        if self._announcements is None:
            self._announcements = TaskQueue(
                self._announce, _Announcement.merge, quiet_s=QUIET_S, patience_s=PATIENCE_S
            )
        names = frozenset(() if session is None else (session,))
        self._announcements.request(_Announcement(reason, names))

    def stop_announcing(self) -> None:
        """Announce nothing more."""
        if self._announcements is not None:
            self._announcements.stop()

    async def close(self) -> None:
        """Stop all work under way, because the folder is removed or the daemon ends."""
        self.reload.cancel()
        self.stop_announcing()
        if self.opening_agents is not None:
            self.opening_agents.cancel()
            await asyncio.wait([self.opening_agents])
        if self.agents is not None:
            await self.agents.close()
        await self.programs.close()
        await self.knowledge.close()

    async def _announce(self, announcement: _Announcement) -> None:
        snapshot, client = self.snapshot, self.client
        if snapshot is None or self.reload.cancelled:
            return
        work_for(WorkOwner(client, self.uri))
        reason = announcement.reason
        names = announcement.sessions if reason in ("session", "compaction") else ()
        session = next(iter(names)) if len(names) == 1 else None
        locate = Locator(snapshot.layers, client.capabilities.position_encoding)
        if not is_prepared():
            await self._workers.run(prepare)
        async with self.conversations.using("main", by=client) as conversation:
            usage = await self._workers.run(
                # in a worker thread: even its import would block the loop for too long
                lambda: sessions.usage.current_usage(
                    snapshot, conversation, self.ledger, locate, now=client.now()
                )
            )
        if not self.reload.cancelled:
            params = protocol.ContextDidChange(
                self.uri, snapshot.revision, reason, usage=usage, session=session
            )
            client.notify("nexus/context/didChange", params)
