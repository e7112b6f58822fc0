"""Starts, previews, reloads and ends the agents of one workspace folder.

1. Each agent has a snapshot of its own directory below its parent's prompt, which comes first.
2. A name belongs to one live agent. Disposing of an agent disposes of its children.
3. An impossible request is refused before anything changes; the error says what to do instead.
"""

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, Unpack

import msgspec

from nexus_context.agents import parents, permissions
from nexus_context.agents.agent import Agent, AgentSpec
from nexus_context.agents.directory_snapshots import (
    DirectorySnapshots,
    marks_of,
    reads_the_same,
    touches,
    work_directory,
)
from nexus_context.agents.spawn import check_child, grant_of, remaining_grant
from nexus_context.disk.deadline import Turns
from nexus_context.disk.files import is_dir
from nexus_context.errors import RequestError
from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_context.folder.loading import load
from nexus_context.folder.prompt.blocks import UNIFIED, WORKER
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_context.ledger.store import Ledger

MAX_AGENTS = 64
"""How many agents of a workspace folder may live at a time."""
VIEWED_AT_MOST = 16
"""How many previewed agents stay in memory."""
UNNAMED = "agent"
"""The name of a previewed agent that has none."""


class SpawnOptions(TypedDict, total=False):
    """The options of a new agent besides name, directory, role and task. `AgentSpec` explains them."""

    parent: str | None
    system_prompt: str | None
    model: str | None
    tools: Sequence[str] | None
    permissions: Mapping[str, Any] | None
    parameters: Mapping[str, Any] | None


class _View(NamedTuple):
    """A previewed agent and the key of what it depends on; None: outdated."""

    key: tuple[Any, ...] | None
    agent: Agent


class AgentPool:
    """The agents of one workspace folder. Any thread may use it; one change is made at a time.

    `main` is the folder's own agent, and the parent of agents that name no other. It is not in the list.
    """

    def __init__(
        self,
        folder: Snapshot,
        inputs: LoadInputs,
        *,
        roots: Sequence[str] = (),
        followed: bool = False,
        turns: Turns | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """`folder` is the folder's snapshot for no agent; `roots` are all workspace folders, including it.
        With a `ledger`, the conversation of each agent is the session `Agent.session` of the folder.

        `followed`: the caller watches `watch` and reports every change to `refresh`. Snapshots are loaded
        with `inputs`; long loads take `turns`.
        """
        self._place = None if ledger is None else (ledger, folder.folder)
        spec = AgentSpec(MAIN, folder.folder, UNIFIED)
        self.main = Agent(spec, parent=None, snapshot=folder, place=self._place)
        self.main.permissions = permissions.of(folder.effective)
        self._agents: dict[str, Agent] = {}
        self._directories = DirectorySnapshots(folder, inputs, roots, turns=turns)
        self._followed = followed
        self._last: dict[str, int] = {}  # revisions of disposed agents
        # previewed agents and the parents made for them, the last used at the end
        self._views: dict[str, _View] = {}
        self._lock = threading.RLock()

    @property
    def roots(self) -> tuple[str, ...]:
        """All workspace folders. A new one counts from the next `refresh` on."""
        return self._directories.roots

    @roots.setter
    def roots(self, roots: Sequence[str]) -> None:
        self._directories.roots = tuple(roots)

    @property
    def inputs(self) -> LoadInputs:
        """The inputs with which snapshots are loaded now."""
        return self._directories.inputs

    def __len__(self) -> int:
        return len(self._agents)

    def __contains__(self, agent_id: str) -> bool:
        return agent_id in self._agents

    def list(self) -> tuple[Agent, ...]:
        """Return the live agents, parents before their children."""
        with self._lock:
            return tuple(self._agents.values())

    def get(self, agent_id: str) -> Agent:
        """Return the live agent with this name, or the folder's own agent for `main`. Otherwise raise
        RequestError, code unknown-agent, which lists the live agents.
        """
        agent = self.main if agent_id == MAIN else self._agents.get(agent_id)
        if agent is None:
            raise parents.unknown_agent(agent_id, self.main.snapshot, self._agents)
        return agent

    def spawn(
        self,
        agent_id: str,
        cwd: str | None = None,
        role: str | None = None,
        task: str | None = None,
        **options: Unpack[SpawnOptions],
    ) -> Agent:
        """Start an agent in a directory, which is absolute or relative to the workspace folder.

        Missing options come from `agents.<agent_id>` of the settings, then from the parent. Without any, it
        is a worker in its parent's directory. Raise RequestError with one of these codes: agent-id,
        agent-exists, unknown-agent, agent-cycle, agent-cwd, agent-role, agent-depth, agent-count,
        agent-permissions, agent-tools, bad-parameter.
        """
        with self._lock:
            self._check_free(agent_id)
            if len(self._agents) >= MAX_AGENTS:
                raise RequestError(
                    f"{self.main.folder} has {MAX_AGENTS} live agents, the most that it may have. Dispose of "
                    "one.",
                    code="agent-count",
                )
            spec = AgentSpec(agent_id, cwd, role, task, **_listed(options))
            spec = parents.with_parent(spec, self.main.snapshot)
            unstarted = parents.unstarted_parents(spec, self.main.snapshot, self._agents)
            if unstarted:
                raise parents.parents_not_started(spec, unstarted, self.main.snapshot)
            agent = self._placed(spec, self.get(spec.parent or MAIN))
            return self._joined(self._begun(agent, self._snapshot_for(agent)))

    def restore(self, spec: AgentSpec) -> Agent:
        """Restore an agent from the `Agent.spec` of another process. `spec.folder` is a path as in `spawn`.

        The spec counts as it is, without additions from the settings. If the directory is missing, or the
        parent grants less than before, the agent's `notice` says so. Raise RequestError if the name is taken
        or the parent is not running.
        """
        with self._lock:
            self._check_free(spec.id)
            parent = self.get(spec.parent or MAIN)
            path = os.path.normpath(os.path.join(self.main.folder, spec.folder or parent.folder))
            agent = Agent(spec, parent=parent, snapshot=self._base_of(parent), place=self._place)
            agent.folder = path
            return self._joined(self._begun(agent, self._snapshot_since_start(agent)))

    def view_as(
        self,
        agent_id: str | None = None,
        cwd: str | None = None,
        role: str | None = None,
        task: str | None = None,
        **options: Unpack[SpawnOptions],
    ) -> Agent:
        """Return the agent that `spawn` would start, without starting it. Its name may be missing, or that of
        a live agent.

        Parents that only the settings define are previewed, too. Raise RequestError as `spawn` does.
        """
        with self._lock:
            name = agent_id or (UNNAMED if options.get("parent") != UNNAMED else f"{UNNAMED}-2")
            spec = AgentSpec(name, cwd, role, task, **_listed(options))
            spec = parents.with_parent(spec, self.main.snapshot)
            if spec.id == MAIN:
                self._check_free(MAIN)
            chain = (*parents.unstarted_parents(spec, self.main.snapshot, self._agents), spec)
            agent = self.get(chain[0].parent or MAIN)
            for chain_spec in chain:
                agent = self._viewed(chain_spec, agent)
            while len(self._views) > VIEWED_AT_MOST:
                del self._views[next(iter(self._views))]
            return agent

    def watch(self) -> frozenset[str]:
        """Return the paths that live and recently previewed agents depend on. Some of them may not exist."""
        with self._lock:
            paths = self._directories.watch()
            for agent in self._in_use():
                paths.update(agent.snapshot.layers.watch)
                paths.update((agent.folder, os.path.join(agent.folder, CONFIG_DIRECTORY)))
            return frozenset(paths)

    def dispose(self, agent_id: str) -> tuple[str, ...]:
        """End an agent and all agents below it. Return their names, children before their parents."""
        with self._lock:
            agent = self.get(agent_id)
            if agent is self.main:
                raise RequestError(f"{MAIN!r} is the folder's own agent. Name another.", code="unknown-agent")
            gone = [name for child in tuple(agent.children) for name in self.dispose(child)]
            if agent.parent is not None:
                agent.parent.children.remove(agent_id)
            del self._agents[agent_id]
            self._last[agent_id] = agent.snapshot.revision
            self._age_views()
            self._directories.keep(self._read())
            return (*gone, agent_id)

    def refresh(
        self, folder: Snapshot, *, inputs: LoadInputs | None = None, changed: Collection[str] | None = None
    ) -> tuple[Agent, ...]:
        """Load the agents again whose files may have changed. Return those whose snapshot differs.

        `folder` is the workspace folder's present snapshot. `changed` are the only paths that may have
        changed, or None if any may have. An agent whose directory is gone keeps its last snapshot, and an
        agent whose parent has less than before is granted less. In both cases its `notice` says so.
        """
        with self._lock:
            self._directories.follow(folder, inputs or self.inputs)
            moved = set() if _gives_the_same(self.main.snapshot, folder) else {self.main.folder}
            self.main.snapshot = folder
            self.main.permissions = permissions.of(folder.effective)
            self._directories.outdate(changed)
            lost, read = self._all_lost(), {agent.snapshot.folder for agent in self._agents.values()}
            loaded = self._directories.again(read - lost, changed)
            lost |= self._all_lost()  # a directory that meanwhile leads elsewhere was read there
            moved |= self._directories.take({path: now for path, now in loaded.items() if path not in lost})
            news = self._renewed(changed, lost, moved)
            views = (view.agent.snapshot for view in self._views.values())
            if moved or news or changed is None or any(touches(changed, snapshot) for snapshot in views):
                self._age_views()
            return news

    def _renewed(
        self, changed: Collection[str] | None, lost: Collection[str], moved: Collection[str]
    ) -> tuple[Agent, ...]:
        """Load the agents again that can be affected, parents first. Returns those whose snapshot differs.

        `moved` are the directories whose snapshot differs.
        """
        reviewed: set[str] = {MAIN} if self.main.folder in moved else set()
        marks = None if changed is None else marks_of(changed)
        news = []
        for agent in self._agents.values():
            parent_id = MAIN if agent.parent is None else agent.parent.id
            touched = marks is None or not marks.isdisjoint(agent.snapshot.layers.watch)
            base = agent.snapshot.folder
            odd = agent.notice is not None or agent.folder in lost or agent.folder != base
            if touched or odd or base in moved or parent_id in reviewed:
                reviewed.add(agent.id)
                news += [agent] if self._renew(agent) else []
        return tuple(news)

    def check_message(self, sender: str, target: str) -> None:
        """Raise RequestError, code agent-message, if `sender` may not send a message to `target`.

        A worker may write to its parent and its own children. Other agents may write to every agent but
        themselves.
        """
        sender_agent, target_agent = self.get(sender), self.get(target)
        if sender_agent is target_agent:
            raise RequestError(
                f"Agent {sender!r} cannot send itself a message. Name another.", code="agent-message"
            )
        if (
            sender_agent.role == WORKER
            and target_agent is not sender_agent.parent
            and target_agent.parent is not sender_agent
        ):
            reports_to = MAIN if sender_agent.parent is None else sender_agent.parent.id
            raise RequestError(
                f"Worker {sender!r} reports to {reports_to!r} only. Send it there.", code="agent-message"
            )

    def _check_free(self, agent_id: str) -> None:
        if agent_id in self._agents or agent_id == MAIN:
            remedy = "Choose another name" + (", or dispose of that one." if agent_id != MAIN else ".")
            raise RequestError(
                f"Agent {agent_id!r} already exists in {self.main.folder}. {remedy}",
                code="agent-exists",
            )

    def _joined(self, agent: Agent) -> Agent:
        self._agents[agent.id] = agent
        if agent.parent is not None:
            agent.parent.children.append(agent.id)
        return agent

    def _viewed(self, spec: AgentSpec, parent: Agent) -> Agent:
        """The agent as it would be below this parent; the previous preview if nothing that it depends on
        changed.
        """
        agent = self._placed(spec, parent, trusted=self._followed)
        base = agent.snapshot
        key = agent.spec, parent, base.folder, base.revision
        view = self._views.pop(agent.id, None)
        is_current = view is not None and view.key == key
        if (
            view is None
            or not is_current
            or not (self._followed or reads_the_same(view.agent.snapshot, base))
        ):
            view = _View(key, self._begun(agent, self._snapshot_for(agent)))
        self._views[agent.id] = view
        return view.agent

    def _age_views(self) -> None:
        """Outdate all previews. They stay in memory, so that the caller goes on watching their files."""
        self._views = {name: _View(None, view.agent) for name, view in self._views.items()}

    def _placed(self, spec: AgentSpec, parent: Agent, *, trusted: bool = False) -> Agent:
        """The agent with its complete spec, and its directory as a snapshot for no agent.

        `trusted`: its files are unchanged unless `refresh` reported a change.
        """
        spec, cwd = parents.resolve_spec(spec, self.main.snapshot, parent)
        check_child(spec, parent)
        path = work_directory(spec.id, cwd, base=self.main.folder, roots=self.roots)
        return Agent(spec, parent=parent, snapshot=self._base(path, trusted=trusted), place=self._place)

    def _begun(self, agent: Agent, snapshot: Snapshot) -> Agent:
        """The agent with its first snapshot. Revisions follow those of an earlier agent of its name."""
        agent.snapshot = msgspec.structs.replace(snapshot, revision=self._last.get(agent.id, 0) + 1)
        return agent

    def _snapshot_for(self, agent: Agent, *, insist: bool = True) -> Snapshot:
        """The agent's snapshot. `insist`: refuse a spec that its parent cannot grant in full."""
        base = self._base_of(agent)
        inputs = msgspec.structs.replace(
            self.inputs,
            agent=agent.id,
            grant=(grant_of if insist else remaining_grant)(agent, base),
            root=base.layers.root,
            choice=self.main.snapshot.choice,
        )
        return load(base.folder, inputs, previous=base, changed=())

    def _renew(self, agent: Agent) -> bool:
        """Load the agent again; whether its snapshot differs."""
        previous = agent.snapshot
        now = self._snapshot_since_start(agent)
        is_same = now.prompt == previous.prompt and now.problems == previous.problems
        is_same = is_same and now.effective.values == previous.effective.values
        agent.snapshot = msgspec.structs.replace(now, revision=previous.revision + (not is_same))
        return not is_same

    def _snapshot_since_start(self, agent: Agent) -> Snapshot:
        """The present snapshot of an agent that was started earlier. Its `notice` reports what went wrong
        since.
        """
        agent.notice = self._lost(agent)
        if agent.snapshot.folder != agent.folder:  # its directory did not exist when the agent was restored
            if agent.notice is None:
                agent.snapshot = self._base(agent.folder)
            else:
                agent.notice += " Until then it has no tools, since its settings are unknown."
        try:
            return self._snapshot_for(agent)
        except RequestError as error:
            agent.notice = agent.notice or f"{error} Until then it has what its parent can grant."
            return self._snapshot_for(agent, insist=False)

    def _all_lost(self) -> set[str]:
        return {agent.folder for agent in self._agents.values() if self._lost(agent) is not None}

    def _lost(self, agent: Agent) -> str | None:
        """Why the agent's directory can no longer be read; None where it can."""
        if not is_dir(agent.folder):
            return f"{agent.folder} is not a directory any more. Dispose of the agent."
        try:
            work_directory(agent.id, agent.folder, base=self.main.folder, roots=self.roots)
        except RequestError as error:
            return str(error)
        return None

    def _base_of(self, agent: Agent) -> Snapshot:
        return self._directories.get(agent.snapshot.folder) or agent.snapshot

    def _base(self, path: str, *, trusted: bool = False) -> Snapshot:
        """The directory's snapshot for no agent, as its files are now."""
        base = self._directories.now(path, trusted=trusted)
        self._directories.keep(self._read())
        return base

    def _read(self) -> set[str]:
        """The directories of live and previewed agents."""
        return {agent.snapshot.folder for agent in self._in_use()}

    def _in_use(self) -> tuple[Agent, ...]:
        return (*self._agents.values(), *(view.agent for view in self._views.values()))


def _listed(options: SpawnOptions) -> dict[str, Any]:
    tools = options.get("tools")
    return {**options, "tools": None if tools is None else tuple(tools)}


def _gives_the_same(before: Snapshot, now: Snapshot) -> bool:
    """Whether agents below a folder inherit the same as before; its problems do not matter."""
    if before.revision == now.revision:
        return True
    layers_before, layers_now = before.layers, now.layers
    is_same = before.contents is now.contents and layers_before.effective is layers_now.effective
    return is_same and layers_before.servers == layers_now.servers and layers_before.texts == layers_now.texts
