"""Define `SessionScope`: all that a request about one conversation needs, passed along as one value."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from nexus_context.folder.snapshot import Snapshot
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import sync
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger

if TYPE_CHECKING:  # most conversations belong to no agent
    from nexus_context.agents import Agent
    from nexus_context.servers.offered import OfferedTool
    from nexus_daemon.lsp.client_capabilities import ClientCapabilities
    from nexus_daemon.providers import Target
    from nexus_daemon.workspace.folders import Folder, FolderTable
    from nexus_daemon.workspace.git_state import WorkingTrees
    from nexus_daemon.workspace.workers import Workers

T = TypeVar("T")


class OffersTools(Protocol):
    """The methods that a turn needs from the MCP servers."""

    async def offered(
        self, folder: Any, snapshot: Snapshot, /, *, starts: bool
    ) -> "Sequence[OfferedTool]": ...


class Services(Protocol):
    """The members that a session needs from the daemon."""

    git: "WorkingTrees"
    workers: "Workers"

    @property
    def servers(self) -> "OffersTools": ...


class Requester(Protocol):
    """The members that a session needs from the client that sent the request."""

    @property
    def daemon(self) -> Services: ...

    @property
    def folders(self) -> "FolderTable[Any]": ...

    @property
    def capabilities(self) -> "ClientCapabilities": ...

    @property
    def provider(self) -> "Target | None":
        """Return the provider that the user chose in place of the one in the settings.

        None if there is none.
        """
        ...

    def now(self) -> datetime: ...

    async def ask(self, method: str, params: Any, result_type: Any, *, timeout_s: float) -> Any: ...


class SessionScope(msgspec.Struct, frozen=True, kw_only=True):
    """A locked conversation and what belongs to it, for the duration of one request.

    `snapshot` is that of `agent`, or the folder's own if there is no agent. It is rendered for the model of
    the conversation (`next_request`).
    """

    client: Requester
    folder: "Folder"
    conversation: Conversation
    snapshot: Snapshot
    ledger: FolderLedger
    locate: Locator
    agent: "Agent | None" = None

    async def work(self, job: Callable[..., T], /, *args: Any) -> T:
        """Run `job(scope, *args)` in a worker thread, where it may block."""
        return await self.client.daemon.workers.run(job, self, *args)

    def follow(self) -> None:
        """Read what other windows wrote, as far back as the next request can send it."""
        tokens = sync.tokens_to_send(self.snapshot)
        sync.follow(self.conversation, self.ledger, self.snapshot, tokens=tokens)

    def follow_to_compact(self) -> None:
        """Read as much of the history as a compaction needs."""
        tokens = sync.tokens_to_compact(self.snapshot)
        sync.follow(self.conversation, self.ledger, self.snapshot, tokens=tokens)

    def follow_all(self) -> None:
        """Read the whole history."""
        sync.follow(self.conversation, self.ledger, self.snapshot, tokens=None)
