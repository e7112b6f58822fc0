"""Keep the live agents of one folder in one window: start them, restore them, and load them again when files
change.

1. Nothing is imported or done for agents before a request or an open document is about one.
2. Agents belong to the folder's workspace in the ledger. Each window has its own registry, since an agent
   reads files with the unsaved text of the window that asks.
3. Before each answer the registry takes over what other windows started and ended. It reports its own and
   these changes to the daemon, so the other windows follow at once.
4. An agent lives once the ledger has it. If two windows start an agent of the same name, the second one is
   refused. Agents of an earlier daemon are restored.
5. An agent that cannot be restored as it was stays, with a notice. Its directory may be gone, or its parent
   may have fewer permissions.
6. After each snapshot of the folder its agents are loaded again, in a thread. A request for an agent waits
   for that.
7. The client is notified of agents that were started, changed and ended, and of problems in the files that
   agents read.
8. Open documents that only an agent that is not running would read are checked, too (`previews`).
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from nexus_context.agents import MAIN, MAX_AGENTS, Agent, AgentPool
from nexus_context.agents.agent import AgentSpec
from nexus_context.errors import RequestError
from nexus_context.folder.layers.walk import within
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_context.ledger.records import LiveAgent, NewAgent
from nexus_context.text.decoding import convert_to
from nexus_daemon import protocol
from nexus_daemon.agents.previews import AgentChecker, PreviewResult
from nexus_daemon.sessions.ledger_writer import FolderLedger
from nexus_daemon.workspace.agent_documents import AgentDocument
from nexus_daemon.workspace.folders import Folder, FolderTable
from nexus_daemon.workspace.publish import Client
from nexus_daemon.workspace.queue import TaskQueue
from nexus_daemon.workspace.vocabulary_loader import VocabularyLoader
from nexus_daemon.workspace.workers import Workers

logger = logging.getLogger(__name__)

DID_CHANGE = "nexus/agent/didChange"
T = TypeVar("T")


class AgentNews(msgspec.Struct, frozen=True):
    """A notice that an agent was started or has ended.

    `number` identifies this life of the agent in the ledger: a later agent of the same name has another
    number.
    """

    reason: Literal["spawned", "disposed"]
    agent: str
    number: int


class AgentServices(msgspec.Struct, frozen=True):
    """The dependencies of a folder's agents: the window's `folders` and `client`, and what all windows share.

    Call `refresh_watches` when the set of paths to watch has changed. `report` notifies all windows of the
    folder.
    """

    folders: FolderTable[Any]
    workers: Workers
    client: Client
    vocabularies: VocabularyLoader
    refresh_watches: Callable[[], None]
    report: Callable[[Sequence[AgentNews]], None]


class _Change(msgspec.Struct, frozen=True):
    """A change that agents are reloaded for. Only `paths` can have changed; None means any path."""

    snapshot: Snapshot
    overlays: Mapping[str, str]
    paths: frozenset[str] | None


class _Outcome(msgspec.Struct):
    """What a thread did to agents, for the loop to publish.

    `watched` are the paths that matter to live and previewed agents, `read` those that matter to live ones.
    """

    spawned: list[AgentNews] = []
    disposed: list[AgentNews] = []
    changed: list[str] = []
    watched: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    live: tuple[Agent, ...] | None = None  # None: nothing was done
    previews: PreviewResult = PreviewResult()


class AgentRegistry:
    """The live agents of one folder in one window.

    Use it on the event loop; only its jobs in threads use the pool.
    """

    def __init__(self, folder: Folder, ledger: FolderLedger, services: AgentServices) -> None:
        self._folder = folder
        self._ledger = ledger
        self._services = services
        change = self._everything()
        self._pool = AgentPool(
            change.snapshot, self._load_inputs(change), followed=True, turns=services.workers.turns
        )
        self._live: dict[str, Agent] = {}
        self._numbers: dict[
            str, int
        ] = {}  # in the ledger, of each agent that is restored or was started here
        self._version: int | None = None  # of the ledger, when the registry last caught up with it
        self._lock = asyncio.Lock()
        self._change: _Change | None = None  # that no job has taken yet
        self._queue: TaskQueue[None] = TaskQueue(self._refresh, lambda _, later: later)
        self._published: set[str] = set()  # agents that the client has diagnostics or open documents of
        self._must_follow = False
        self._checker = AgentChecker()
        self._previews = PreviewResult()

    def find(self, name: str) -> Agent | None:
        """Return the live agent named `name`, without waiting for changes.

        None for an unknown name and for `main`.
        """
        return self._live.get(name)

    def get(self, name: str) -> Agent:
        """Return the live agent named `name`, or `main`.

        RequestError with the code unknown-agent if there is none.
        """
        return self._live.get(name) or self._pool.get(name)

    def list(self) -> tuple[Agent, ...]:
        """Return the live agents, parents before their children."""
        return tuple(self._live.values())

    def view_reading(self, path: str) -> Snapshot | None:
        """Return the snapshot of a live or previewed agent that reads a file. None if no agent does."""
        live = (agent.snapshot for agent in self._live.values())
        return next((view for view in (*live, *self._previews.views) if path in view.layers.texts), None)

    def name_of(self, snapshot: Snapshot) -> str | None:
        """Return the name of the live agent with this snapshot. None if the snapshot is a preview."""
        return next((name for name, agent in self._live.items() if agent.snapshot is snapshot), None)

    def preview(self, path: str) -> None:
        """Check an open document that only an agent would read, unless it has been checked already."""
        if path not in self._folder.previewed:
            self.files_changed(frozenset())

    async def current(self) -> None:
        """Wait until all changes of files and of the ledger that were noticed so far are taken over."""
        await self._run(lambda _: None)

    async def spawn(self, options: Mapping[str, Any]) -> Agent:
        """Start an agent with the options of `AgentPool.spawn`, and return it once the ledger has it."""
        return await self._run(lambda outcome: self._spawn(options, outcome))

    async def view_as(self, options: Mapping[str, Any]) -> Agent:
        """Return the agent that `spawn` would start with these options, without starting it."""
        return await self._run(lambda _: self._pool.view_as(**options))

    async def dispose(self, name: str) -> tuple[str, ...]:
        """End an agent and its descendants; returns their names, children before their parents."""
        return await self._run(lambda outcome: self._dispose(name, outcome))

    def check_message(self, source: str, target: str) -> None:
        """Raise RequestError with the code agent-message if the live agent `source` may not write to
        `target`.

        Anyone who is not a live agent may write to any name. If `target` is not a live agent, only workers
        are refused.
        """
        sender = self.find(source)
        if sender is not None and (sender.role == "worker" or target in self._live or target == MAIN):
            self._pool.check_message(source, target)

    def files_changed(self, paths: frozenset[str] | None) -> None:
        """Load the agents again, since the folder has a new snapshot or files of agents changed.

        `paths` are the only paths that changed; None means that any may have.
        """
        if self._change is not None:
            pending_paths = self._change.paths
            paths = None if paths is None or pending_paths is None else pending_paths | paths
        self._change = msgspec.structs.replace(self._everything(), paths=paths)
        if self._live or self._folder.previewed or self._services.folders.update_previewed(self._folder):
            self._queue.request(None)

    def follow(self) -> None:
        """Take over soon what other windows did, and check the open documents."""
        self._must_follow = True
        self.files_changed(frozenset())
        self._queue.request(None)

    async def catch_up(self) -> None:
        """Take over what other windows did, if the ledger was written since the last time."""
        version = await self._services.workers.run(self._ledger.store.version)
        if version != self._version and not self._folder.reload.cancelled:
            await self.current()

    def unpublish(self) -> None:
        """Withdraw all problems in the files of agents, since the folder is being removed."""
        for name in tuple(self._published):
            self._publish_agent(name, None)
        self._previews = PreviewResult()
        self._publish_previews()

    async def close(self) -> None:
        """End the work that is under way. The agents stay in the ledger."""
        await self._queue.close()

    # ------------------------------------------------------------ on the loop

    async def _refresh(self, _: None) -> None:
        try:
            if (self._change is not None or self._must_follow) and not self._folder.reload.cancelled:
                self._must_follow = False
                await self.current()
        except RequestError as error:  # of the ledger: files count all the same
            if error.code != "folder-removed":  # the folder was closed meanwhile: nobody waits for its agents
                logger.warning("agents of %s: %s", self._folder.path, error)

    async def _run(self, job: Callable[[_Outcome], T]) -> T:
        """Catch up with files and ledger in a thread, then do a job there; one at a time."""
        async with self._lock:
            await self._folder.reload.settled()
            change = self._take_change()
            documents = self._services.folders.update_previewed(self._folder)
            outcome, is_loaded = _Outcome(), False

            def work() -> T:
                nonlocal is_loaded
                if change is not None:
                    self._load(change, outcome)
                is_loaded = True
                try:
                    self._follow_ledger(outcome)
                    return job(outcome)
                finally:
                    self._sum_up(outcome, documents, change)

            try:
                return await self._services.workers.load(work)
            finally:
                if change is not None and not is_loaded:  # for later changes any path may have changed, too
                    self._change = msgspec.structs.replace(self._change or change, paths=None)
                self._publish(outcome)

    def _take_change(self) -> _Change | None:
        """Take the change for which agents must be reloaded. None if there is none.

        Unsaved texts count even if the folder does not read them and so gets no new snapshot.
        """
        change, self._change = self._change, None
        folders = self._services.folders
        roots = tuple(folder.path for folder in folders if folder.is_listed)
        roots = tuple(dict.fromkeys((self._folder.path, *roots)))
        if roots != self._pool.roots:
            self._pool.roots = roots
            change = self._everything()
        previous_overlays, overlays = self._pool.inputs.overlays, dict(folders.overlays)
        changed_overlays = frozenset(
            path
            for path in overlays.keys() | previous_overlays.keys()
            if overlays.get(path) != previous_overlays.get(path)
        )
        if change is None:
            return (
                msgspec.structs.replace(self._everything(), paths=changed_overlays)
                if changed_overlays
                else None
            )
        return _Change(
            change.snapshot, overlays, None if change.paths is None else change.paths | changed_overlays
        )

    def _everything(self) -> _Change:
        """The folder as it is now, where any path may have changed."""
        snapshot = self._folder.reload.snapshot
        if snapshot is None:
            raise ValueError("a folder has agents once it has a snapshot")
        return _Change(snapshot, dict(self._services.folders.overlays), None)

    def _publish(self, outcome: _Outcome) -> None:
        """Publish what became of agents to the client, and report it to the other windows."""
        if outcome.live is None or self._folder.reload.cancelled:
            return
        folder = self._folder
        self._live = {agent.id: agent for agent in outcome.live}
        for view in (*(agent.snapshot for agent in outcome.live), *outcome.previews.views):
            self._services.vocabularies.require(folder, view.contents.waits_for)
        self._previews = outcome.previews
        self._publish_problems()  # first: a client that adopts a document shows these problems
        previous_files = folder.watched_by_agents, folder.read_by_agents
        folder.watched_by_agents, folder.read_by_agents = outcome.watched, outcome.read
        if previous_files != (outcome.watched, outcome.read):
            self._services.client.documents.adopt()
            self._services.refresh_watches()
        if outcome.disposed or outcome.spawned:
            self._services.report((*outcome.disposed, *outcome.spawned))
        for agent in outcome.changed:
            self._services.client.notify(DID_CHANGE, protocol.AgentDidChange(folder.uri, agent, "changed"))

    def _publish_problems(self) -> None:
        """Publish the problems of agents; one without problems and open documents is left out."""
        overlays = self._pool.inputs.overlays
        names = {
            name
            for name, agent in self._live.items()
            if agent.snapshot.problems or any(path in agent.snapshot.layers.texts for path in overlays)
        }
        removed = self._published - names
        for name in names:
            self._publish_agent(name, self._live[name].snapshot)
        self._publish_previews()  # in between, so that a problem that moves from one to another stays
        for name in removed:
            self._publish_agent(name, None)

    def _publish_agent(self, name: str, snapshot: Snapshot | None) -> None:
        self._published.add(name) if snapshot is not None else self._published.discard(name)
        self._services.client.swap_agent(self._folder, name, snapshot, self._pool.inputs.overlays)

    def _publish_previews(self) -> None:
        """Publish the problems in previewed documents that are still open."""
        paths = [path for path in self._previews.documents if path in self._services.folders.overlays]
        snapshot = self._previews.snapshot(self._pool.main.snapshot, paths)
        self._services.client.swap_agent(self._folder, "", snapshot, self._pool.inputs.overlays)

    # ------------------------------------------------------------ in a thread

    def _load_inputs(self, change: _Change) -> LoadInputs:
        return self._services.folders.inputs_of(self._folder, change.overlays)

    def _load(self, change: _Change, outcome: _Outcome) -> None:
        """Load all agents again."""
        notices = {agent.id: agent.notice for agent in self._pool.list()}
        changed = self._pool.refresh(change.snapshot, inputs=self._load_inputs(change), changed=change.paths)
        noticed = (agent for agent in self._pool.list() if agent.notice != notices[agent.id])
        outcome.changed = list(dict.fromkeys(agent.id for agent in (*changed, *noticed)))

    def _follow_ledger(self, outcome: _Outcome) -> None:
        """Restore and end agents as other windows, or an earlier daemon, started and ended them."""
        store = self._ledger.store
        version = store.version()
        if version == self._version:
            return
        is_first = self._version is None
        rows = store.agents.running(self._ledger.workspace)
        numbers = {row.name: row.number for row in rows}
        for name, number in tuple(self._numbers.items()):
            if name in self._numbers and numbers.get(name) != number:
                self._forget(name, outcome)
        for row in rows:
            if row.name not in self._numbers:
                self._restore(row, outcome)
        if is_first:  # they were there before
            outcome.spawned.clear()
        self._version = version

    def _restore(self, row: LiveAgent, outcome: _Outcome) -> None:
        self._numbers[row.name] = row.number
        try:
            options = convert_to(row.wanted, AgentSpec)
            self._pool.restore(msgspec.structs.replace(options, id=row.name, parent=row.parent))
        except (RequestError, msgspec.ValidationError) as error:  # a broken row must not stop the others
            logger.warning("the agent %s is not restored: %s", row.name, error)
        else:
            outcome.spawned.append(AgentNews("spawned", row.name, row.number))

    def _spawn(self, options: Mapping[str, Any], outcome: _Outcome) -> Agent:
        agent = self._pool.spawn(**options)
        parent = None if agent.parent is None or agent.parent.id == MAIN else agent.parent.id
        try:
            row = msgspec.to_builtins(msgspec.structs.replace(agent.spec, folder=self._portable_path(agent)))
            self._numbers[agent.id] = self._ledger.start_agent(NewAgent(agent.id, parent, row, MAX_AGENTS))
        except BaseException:
            self._pool.dispose(agent.id)
            raise
        outcome.spawned.append(AgentNews("spawned", agent.id, self._numbers[agent.id]))
        return agent

    def _portable_path(self, agent: Agent) -> str:
        """The agent's directory for other windows: relative to the folder, whose path may differ there."""
        base = self._folder.path
        return os.path.relpath(agent.folder, base) if within(agent.folder, base) else agent.folder

    def _dispose(self, name: str, outcome: _Outcome) -> tuple[str, ...]:
        if name not in self._numbers:
            return self._pool.dispose(name)  # which raises the right error
        self._ledger.end_agent(name)
        earlier_count = len(outcome.disposed)
        self._forget(name, outcome)
        return tuple(news.agent for news in outcome.disposed[earlier_count:])

    def _forget(self, name: str, outcome: _Outcome) -> None:
        """Remove an agent that has ended, and its descendants."""
        for agent_id in self._pool.dispose(name) if name in self._pool else (name,):
            outcome.disposed.append(AgentNews("disposed", agent_id, self._numbers.pop(agent_id, 0)))

    def _sum_up(
        self, outcome: _Outcome, documents: Mapping[str, AgentDocument], change: _Change | None
    ) -> None:
        paths = frozenset[str]() if change is None else change.paths
        has_moved = bool(outcome.spawned or outcome.disposed)
        outcome.previews = self._checker.check(self._pool, documents, paths, moved=has_moved)
        outcome.watched = self._pool.watch() | outcome.previews.watch
        outcome.live = self._pool.list()
        outcome.read = frozenset(path for agent in outcome.live for path in agent.snapshot.layers.watch)
