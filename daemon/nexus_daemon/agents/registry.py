"""The live agents of one folder: made on first need, kept in the ledger, loaded again when files change.

1. Nothing is imported or done for agents before a request is about one.
2. Agents belong to the folder's workspace in the ledger. Before anything is said of them, what other windows
   started and ended is done here, too. One that is started here lives once the ledger has it: of two windows
   that give one name the second is refused. What was started before the daemon is brought back.
3. An agent that cannot be as it was (its directory is gone, its parent has less) is kept, with a notice.
4. After each snapshot of the folder its agents are loaded again, in a thread; what comes meanwhile leads to
   one more time. Who asks for an agent waits for that.
5. Clients are told who was started, changed and ended, and what is wrong in the files that agents read.
6. Open documents that only an agent would read that does not live are checked, too (`drafts`).
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from nexus_context.agents import MAIN, MAX_AGENTS, Agent, AgentPool
from nexus_context.agents.agent import AgentSpec
from nexus_context.errors import RequestError
from nexus_context.ledger.records import LiveAgent, NewAgent
from nexus_context.snapshot import LoadInputs, Snapshot
from nexus_daemon import protocol
from nexus_daemon.agents.previews import Draft, Drafts, Said

if TYPE_CHECKING:
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.state import Client, Daemon
    from nexus_daemon.workspace.folders import Folder

logger = logging.getLogger(__name__)

DID_CHANGE = "nexus/agent/didChange"
T = TypeVar("T")


class _News(msgspec.Struct, frozen=True):
    """What agents are to be loaded again for. `changed`: the only paths that can have; None: any."""

    snapshot: Snapshot
    overlays: Mapping[str, str]
    changed: frozenset[str] | None


class _Done(msgspec.Struct):
    """What became of agents in a thread, for the loop to tell.

    `watched` are the paths that matter to them and to those that were looked at, `read` to live ones only.
    """

    spawned: list[str] = []
    disposed: list[str] = []
    changed: list[str] = []
    watched: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    live: tuple[Agent, ...] | None = None  # None: nothing has been done
    said: Said = Said()


async def live(daemon: "Daemon", folder: "Folder") -> "Agents":
    """The agents of a folder, as files and ledger are now."""
    agents = await opened(daemon, folder)
    await agents.current()
    return agents


async def opened(daemon: "Daemon", folder: "Folder") -> "Agents":
    """The agents of a folder, for what follows files and ledger itself, as `view_as` does."""
    snapshot = await folder.current()
    ledger = await daemon.folder_ledger(snapshot, folder)
    if folder.agents is None:
        folder.agents = Agents(daemon, folder, ledger)
    return folder.agents


class Agents:
    """The agents of one folder. Lives on the event loop; only a job in a thread touches the pool.

    `ledger` is the folder's.
    """

    def __init__(self, daemon: "Daemon", folder: "Folder", ledger: "FolderLedger") -> None:
        self._daemon = daemon
        self._folder = folder
        self._ledger = ledger
        news = self._everything()
        self._pool = AgentPool(
            news.snapshot, self._load_inputs(news), followed=True, turns=self._daemon.turns
        )
        self._live: dict[str, Agent] = {}
        self._numbers: dict[str, int] = {}  # in the ledger, of each that is followed
        self._version: int | None = None  # of the ledger, when it was followed
        self._lock = asyncio.Lock()
        self._news: _News | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._published: set[str] = set()  # agents that clients have diagnostics or open documents of
        self._drafts = Drafts()
        self._asked: Mapping[str, Draft] = {}  # what was looked for last
        self._said = Said()

    def known(self, name: str) -> Agent | None:
        """The live agent of a name as far as is known now; None for the folder's own, too."""
        return self._live.get(name)

    def get(self, name: str) -> Agent:
        """The live agent of a name, or `main`. RequestError, code unknown-agent."""
        return self._live.get(name) or self._pool.get(name)

    def list(self) -> tuple[Agent, ...]:
        """The live agents, parents before their children."""
        return tuple(self._live.values())

    def reading(self, path: str) -> Snapshot | None:
        """What an agent sees that reads a file, or would see; None where none does."""
        live = (agent.snapshot for agent in self._live.values())
        return next((seen for seen in (*live, *self._said.views) if path in seen.layers.texts), None)

    def name_of(self, snapshot: Snapshot) -> str | None:
        """The live agent that sees this; None: it does not live."""
        return next((name for name, agent in self._live.items() if agent.snapshot is snapshot), None)

    def check_draft(self, path: str) -> None:
        """Look at an open document that only an agent would read, unless that was done."""
        if path not in self._asked:
            self.noticed(frozenset())

    async def current(self) -> None:
        """Wait until every change that was noticed so far is there, of files and of the ledger."""
        await self._run(lambda _: None)

    async def spawn(self, asked: Mapping[str, Any]) -> Agent:
        """Start an agent: `AgentPool.spawn`, with a URI as `cwd`, too."""
        return await self._run(lambda done: self._spawn(asked, done))

    async def view_as(self, asked: Mapping[str, Any]) -> Agent:
        """The agent that `spawn` would start."""
        return await self._run(lambda _: self._pool.view_as(**asked))

    async def dispose(self, name: str) -> tuple[str, ...]:
        """End an agent and all below it; their names, children before their parents."""
        return await self._run(lambda done: self._dispose(name, done))

    def check_message(self, source: str, target: str) -> None:
        """RequestError, code agent-message, where a live agent may not write to the target.

        Names that only clients know may write, and be written to, by all but workers.
        """
        sender = self.known(source)
        if sender is not None and (sender.role == "worker" or target in self._live or target == MAIN):
            self._pool.check_message(source, target)

    def noticed(self, changed: frozenset[str] | None) -> None:
        """The folder has another snapshot, or files of agents moved: only these paths can have changed."""
        news = self._everything()
        if self._news is not None:
            before = self._news.changed
            changed = None if changed is None or before is None else before | changed
        self._news = msgspec.structs.replace(news, changed=changed)
        concerned = self._live or self._asked or self._daemon.folders.drafts_of(self._folder)
        if concerned and self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())

    async def follow(self) -> None:
        """Do what other windows did, if the ledger was written since."""
        version = await self._daemon.work(self._ledger.store.version)
        if version != self._version and not self._folder.reload.cancelled:
            await self.current()

    def show_to(self, client: "Client") -> None:
        """Somebody has come to the folder: show him what is wrong in the files of its agents."""
        for name in self._published:
            client.swap_agent(self._folder, name, self._live[name].snapshot, self._pool.inputs.overlays)

    def hide(self) -> None:
        """The folder has gone: nobody shows any more what is wrong in the files of its agents."""
        for name in tuple(self._published):
            self._show(name, None)
        self._said = Said()
        self._show_drafts()

    async def close(self) -> None:
        """End what goes on for the agents. They stay in the ledger."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])

    # ------------------------------------------------------------ on the loop

    async def _refresh(self) -> None:
        try:
            while self._news is not None and not self._folder.reload.cancelled:
                await self.current()
        except RequestError as error:  # of the ledger: files are followed all the same
            logger.warning("agents of %s: %s", self._folder.path, error)
        except Exception:  # a bug in one refresh must not end the folder
            logger.exception("loading agents again failed; they stay as they were")
        finally:
            self._refreshing = None

    async def _run(self, job: Callable[[_Done], T]) -> T:
        """Have a thread follow files and ledger, then do a job; one at a time."""
        async with self._lock:
            await self._folder.reload.settled()
            news = self._taken()
            asked = self._asked = self._daemon.folders.drafts_of(self._folder)
            done, followed = _Done(), False

            def work() -> T:
                nonlocal followed
                if news is not None:
                    self._renew(news, done)
                followed = True
                try:
                    self._follow(done)
                    return job(done)
                finally:
                    self._sum_up(done, asked, news)

            try:
                return await self._daemon.load(work)
            finally:
                if news is not None and not followed:  # any path may have changed of what came meanwhile, too
                    self._news = msgspec.structs.replace(self._news or news, changed=None)
                self._tell(done)

    def _taken(self) -> _News | None:
        """What agents are to be loaded again for; None: nothing.

        Unsaved texts that the folder does not read lead to no snapshot of it, and count all the same.
        """
        news, self._news = self._news, None
        roots = tuple(one.path for one in self._daemon.folders if any(one.owners.values()))
        roots = tuple(dict.fromkeys((self._folder.path, *roots)))
        if roots != self._pool.roots:
            self._pool.roots = roots
            news = self._everything()
        before, now = self._pool.inputs.overlays, dict(self._daemon.folders.overlays)
        changed = frozenset(path for path in now.keys() | before.keys() if now.get(path) != before.get(path))
        if news is None:
            return msgspec.structs.replace(self._everything(), changed=changed) if changed else None
        both = None if news.changed is None else news.changed | changed
        return _News(news.snapshot, now, both)

    def _everything(self) -> _News:
        """The folder as it is now, and any path may have changed."""
        snapshot = self._folder.reload.snapshot
        if snapshot is None:
            raise ValueError("a folder has agents once it has a snapshot")
        return _News(snapshot, dict(self._daemon.folders.overlays), None)

    def _tell(self, done: _Done) -> None:
        """Tell clients what became of agents."""
        if done.live is None or self._folder.reload.cancelled:
            return
        self._live = {agent.id: agent for agent in done.live}
        for seen in (*(agent.snapshot for agent in done.live), *done.said.views):
            self._daemon.vocabularies.wanted(self._folder, seen.contents.waits_for)
        self._said = done.said
        self._publish()  # first: who adopts a document shows what is said here
        folder, before = self._folder, (self._folder.watched_by_agents, self._folder.read_by_agents)
        folder.watched_by_agents, folder.read_by_agents = done.watched, done.read
        if before != (done.watched, done.read):
            for client in self._daemon.clients:
                client.adopt()
            self._daemon.watcher.refresh()
        told = {"disposed": done.disposed, "spawned": done.spawned, "changed": done.changed}
        for reason, names in told.items():
            for name in names:
                params = protocol.AgentDidChange(self._folder.uri, name, reason)
                for client in self._daemon.clients & self._folder.owners.keys():
                    client.notify(DID_CHANGE, params)

    def _publish(self) -> None:
        """Show what is wrong in the files of agents; one without problems and open documents is left out."""
        overlays = self._pool.inputs.overlays
        says = {
            name
            for name, agent in self._live.items()
            if agent.snapshot.problems or any(path in agent.snapshot.layers.texts for path in overlays)
        }
        gone = self._published - says
        for name in says:
            self._show(name, self._live[name].snapshot)
        self._show_drafts()  # in between: what one of them says at a time is not taken back meanwhile
        for name in gone:
            self._show(name, None)

    def _show(self, name: str, snapshot: Snapshot | None) -> None:
        self._published.add(name) if snapshot is not None else self._published.discard(name)
        for client in tuple(self._daemon.clients):
            client.swap_agent(self._folder, name, snapshot, self._pool.inputs.overlays)

    def _show_drafts(self) -> None:
        """Show what is wrong in documents of agents that do not live, to whom they are open."""
        for client in tuple(self._daemon.clients):
            mine = [path for path in self._said.documents if self._daemon.folders.is_open(path, client)]
            snapshot = self._said.snapshot(self._pool.main.snapshot, mine)
            client.swap_agent(self._folder, "", snapshot, self._pool.inputs.overlays)

    # ------------------------------------------------------------ in a thread

    def _load_inputs(self, news: _News) -> LoadInputs:
        return msgspec.structs.replace(self._daemon.folders.load_inputs, overlays=news.overlays)

    def _renew(self, news: _News, done: _Done) -> None:
        """Load all agents again."""
        notices = {agent.id: agent.notice for agent in self._pool.list()}
        changed = self._pool.refresh(news.snapshot, inputs=self._load_inputs(news), changed=news.changed)
        others = (agent for agent in self._pool.list() if agent.notice != notices[agent.id])
        done.changed = list(dict.fromkeys(agent.id for agent in (*changed, *others)))

    def _follow(self, done: _Done) -> None:
        """Do what other windows did, and what was before the daemon started."""
        ledger = self._ledger.store
        version = ledger.version()
        if version == self._version:
            return
        first = self._version is None
        rows = ledger.agents(self._ledger.workspace)
        numbers = {row.name: row.number for row in rows}
        for name, number in tuple(self._numbers.items()):
            if name in self._numbers and numbers.get(name) != number:
                self._forget(name, done)
        for row in rows:
            if row.name not in self._numbers:
                self._bring_back(row, done)
        if first:  # they have been there all the time
            done.spawned.clear()
        self._version = version

    def _bring_back(self, row: LiveAgent, done: _Done) -> None:
        self._numbers[row.name] = row.number
        try:
            wanted = msgspec.convert(row.wanted, AgentSpec)
            self._pool.restore(msgspec.structs.replace(wanted, id=row.name, parent=row.parent))
        except (RequestError, msgspec.ValidationError) as error:  # one holds up no other
            logger.warning("the agent %s is not brought back: %s", row.name, error)
        else:
            done.spawned.append(row.name)

    def _spawn(self, asked: Mapping[str, Any], done: _Done) -> Agent:
        agent = self._pool.spawn(**asked)
        above = None if agent.parent is None or agent.parent.id == MAIN else agent.parent.id
        try:
            wanted = msgspec.to_builtins(msgspec.structs.replace(agent.spec, folder=self._place(agent)))
            self._numbers[agent.id] = self._ledger.start_agent(NewAgent(agent.id, above, wanted, MAX_AGENTS))
        except BaseException:
            self._pool.dispose(agent.id)
            raise
        done.spawned.append(agent.id)
        return agent

    def _place(self, agent: Agent) -> str:
        """The agent's directory for other windows: from the folder on, whose path may be another there."""
        base = self._folder.path
        inside = agent.folder == base or agent.folder.startswith(base.rstrip(os.sep) + os.sep)
        return os.path.relpath(agent.folder, base) if inside else agent.folder

    def _dispose(self, name: str, done: _Done) -> tuple[str, ...]:
        if name not in self._numbers:
            return self._pool.dispose(name)  # which says why not
        self._ledger.end_agent(name)
        before = len(done.disposed)
        self._forget(name, done)
        return tuple(done.disposed[before:])

    def _forget(self, name: str, done: _Done) -> None:
        """An agent has ended, and all below it."""
        for gone in self._pool.dispose(name) if name in self._pool else (name,):
            self._numbers.pop(gone, None)
            done.disposed.append(gone)

    def _sum_up(self, done: _Done, asked: Mapping[str, Draft], news: _News | None) -> None:
        changed = frozenset[str]() if news is None else news.changed
        moved = bool(done.spawned or done.disposed)
        done.said = self._drafts.look(self._pool, asked, changed, moved=moved)
        done.watched = self._pool.watch() | done.said.watch
        done.live = self._pool.list()
        done.read = frozenset(path for agent in done.live for path in agent.snapshot.layers.watch)
