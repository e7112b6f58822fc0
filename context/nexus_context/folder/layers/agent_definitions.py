"""Finds the agents that config.json defines: their directories, and mistakes in their definitions.

An agent that could not start is an error; one that would start without what it asks for is a warning.

1. `cwd` is relative to the directory of the layer that sets it; in the global file, to the folder.
2. A missing directory is an error in a workspace file only: the global file serves many folders. A directory
   outside the folder, or a link that leads out, is a warning, since another workspace folder may contain it.
3. An agent's parent is the folder itself or another agent of the settings. An undefined parent is an error,
   as are circles of parents and chains that are too deep.
4. Permissions and tools only narrow from the folder down. Errors are a level above the parent's, patterns
   that the parent does not allow, tools that it cannot have, anything but a worker below a worker, and an
   invalid name.
5. A pattern of tools is a warning if the settings switch those tools off, if it is nearly the name of an MCP
   server, or if it names a server that an ancestor was not granted. `mcp__` always names a server: one that
   does not exist is a warning, too.
6. A stale file gets no problems: its value may be gone from its text.
7. For an agent in a directory of the opened folder, only that directory's own file is checked: other files
   apply elsewhere, too, where more may be allowed.
8. Only the directories are checked on every load; the other results are reused for the same settings.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import functools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from nexus_context.config import fixes
from nexus_context.config.limits import MOST_AGENTS
from nexus_context.config.mcp import McpServer
from nexus_context.config.merge import Effective, Provenance
from nexus_context.config.patterns import Patterns, literally, servers_named
from nexus_context.config.scope import LEVELS
from nexus_context.disk.files import exists, is_dir
from nexus_context.errors import Problem, Related, Severity
from nexus_context.folder.layers.bootstrap import agent_file
from nexus_context.folder.layers.layer_types import GLOBAL, LOCAL, AgentRemarks, Layers
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.walk import LayerPlace, within
from nexus_context.text.json import pointer_text

MAX_DEPTH = 5
"""How deep agents may nest below a workspace folder."""
MAIN = "main"
"""The name of a workspace folder's own agent."""
UNIFIED, WORKER = "unified", "worker"
MOST_REMARKS = 100  # reported for one folder's agents
MAX_EXAMINED = 64  # agents whose directories are checked
_MCP = "mcp__"
_MOST_NAMES = 8  # names that a message lists


def configured_directory(layers: Layers, agent: str) -> str | None:
    """Return the absolute path of the directory that the settings define for an agent, or None."""
    origin = _origin(layers.effective, agent, "cwd")
    if origin is None:
        return None
    layer = next((candidate for candidate in layers.layers if candidate.name == origin.layer), None)
    base = layers.folder if layer is None or not layer.in_workspace else layer.directory
    return os.path.normpath(os.path.join(base, str(origin.value)))


def agent_problems(
    reading: Reading,
    effective: Effective,
    places: Sequence[LayerPlace],
    servers: Sequence[McpServer],
) -> Iterator[Problem]:
    """Check the agents of the settings. The problems point at the exact values."""
    agents = effective.get("/agents")
    if not isinstance(agents, dict) or not agents:
        return
    by_name = {place.name: place for place in places}
    local_place = by_name.get(LOCAL)
    layers = by_name.keys() if local_place is None or local_place.tree == local_place.directory else {LOCAL}
    names = tuple(dict.fromkeys(server.name for server in servers))
    checker = AgentChecker(reading, effective, agents, names, layers=frozenset(layers))
    for name in list(agents)[:MAX_EXAMINED]:
        if name != MAIN:
            yield from checker.directory(name, by_name)
    yield from checker.remarks()


class AgentChecker:
    """Checks the agents of one folder's settings.

    Only values of the layers named in `layers` are reported.
    """

    def __init__(
        self,
        reading: Reading,
        effective: Effective,
        agents: dict[str, Any],
        servers: tuple[str, ...],
        layers: frozenset[str],
    ) -> None:
        self.reading = reading
        self.effective = effective
        self.agents = agents
        self.servers = servers
        self.layers = layers
        self._tools = functools.cache(lambda agent: Patterns(_strings_in(agents[agent], "tools")))
        self._allowed = functools.cache(Patterns)
        self._servers, self._names = Patterns(map(literally, servers)), frozenset(servers)
        self._named = functools.cache(self._servers.meet)
        self._granted = functools.cache(self._granted_to)

    def remarks(self) -> tuple[Problem, ...]:
        """Return the problems that do not depend on the disk.

        The same settings and servers have the same ones.
        """
        merged, documents = self.reading.merged, self.reading.documents
        layers = merged.layers if merged else ()
        present = tuple(documents.get(layer.document.path) is layer.document for layer in layers)
        remarks = self.reading.previous.agents
        if (
            remarks is None
            or remarks.effective is not self.effective
            or (remarks.present, remarks.servers, remarks.layers) != (present, self.servers, self.layers)
        ):
            every = (problem for name in islice(self.agents, MOST_AGENTS) for problem in self._of(name))
            problems = tuple(islice(every, MOST_REMARKS))
            remarks = AgentRemarks(self.effective, present, self.servers, self.layers, problems=problems)
        self.reading.agents = remarks
        return remarks.problems

    def _of(self, name: str) -> Iterator[Problem]:
        merged = self.reading.merged
        if merged is not None and merged.layers:
            self.reading.checkpoint(merged.layers[-1].document.path)
        yield from self.name(name)
        if name != MAIN:
            yield from self.parent(name)
            yield from self.role(name)
            yield from self.permissions(name)
            yield from self.tools(name)

    def name(self, name: str) -> Iterator[Problem]:
        if name == MAIN:
            message = f"{fixes.quoted(name)} is the name of the folder's own agent. Choose another name."
        elif agent_file(name) is None:
            message = (
                f"{fixes.quoted(name)} is not a valid agent name. Use 1 to 64 letters, digits, `_`, `.` or "
                "`-`; it must not start with `.` or `-`."
            )
        else:
            return
        pointer = ("agents", name)
        for layer in self.reading.merged.layers if self.reading.merged else ():
            document = layer.document
            present = self.reading.documents.get(document.path) is document
            if present and layer.name in self.layers and name in (document.value or {}).get("agents", {}):
                span = document.key_span(pointer) or document.span(pointer)
                yield Problem(document.path, span, "config.agent-name", Severity.ERROR, message=message)

    def directory(self, name: str, places: dict[str, LayerPlace]) -> Iterator[Problem]:
        origin = self._origin(name, "cwd")
        if origin is None or origin.layer not in places or origin.layer == GLOBAL:
            return
        place = places[origin.layer]
        path = os.path.normpath(os.path.join(place.directory, str(origin.value)))
        self.reading.watch.add(path)
        if not is_dir(path):
            why = "is not a directory" if exists(path) else "does not exist"
            message = f"{path} {why}: agent {fixes.quoted(name)} could not work there. "
            message += "Create it or correct the path."
            yield _problem(origin, "config.agent-cwd", message)
            return
        real = self.reading.real_path(path)
        if not within(real, self.reading.real_path(place.tree)):
            leads = "" if not within(path, place.tree) else f" leads to {real}, which"
            message = (
                f"{path}{leads} is outside {place.tree}: agent {fixes.quoted(name)} could work there only if "
                f"another workspace folder contains it. Open it as one, or choose one in {place.tree}."
            )
            yield _problem(origin, "config.agent-cwd", message, Severity.WARNING)

    def parent(self, name: str) -> Iterator[Problem]:
        origin = self._origin(name, "parent")
        if origin is None:
            return
        parent = str(origin.value)
        if parent != MAIN and parent not in self.agents:
            near = fixes.meant(parent, (*self.agents, MAIN))
            hint = f": did you mean {fixes.quoted(near)}?" if near else ". Define it, or remove this."
            message = f"There is no agent {fixes.quoted(parent)}{hint}"
            yield _problem(origin, "config.agent-parent", message, instead=near)
        elif name in self.cycles:
            yield self._cycle(name, origin)
        elif name in self.has and (depth := self.has[name].depth) > MAX_DEPTH:
            message = (
                f"{fixes.quoted(name)} would be {depth} deep, and agents are at most {MAX_DEPTH}: "
                "it could not be started. Choose a parent further up."
            )
            yield _problem(origin, "config.agent-depth", message)

    def role(self, name: str) -> Iterator[Problem]:
        parent, origin = _parent_of(self.agents[name]), self._origin(name, "role")
        parent_limits = self.has.get(parent)
        if parent_limits is None or origin is None or parent_limits.role != WORKER or origin.value == WORKER:
            return
        message = (
            f"{fixes.quoted(name)} is below the worker {fixes.quoted(parent)}, which may start only workers. "
            f"Make it a worker, or make {fixes.quoted(parent)} a manager."
        )
        yield _problem(origin, "config.agent-role", message, instead=WORKER)

    def permissions(self, name: str) -> Iterator[Problem]:
        parent = _parent_of(self.agents[name])
        has_parent = parent != MAIN and parent in self.has
        owner = f"its parent {fixes.quoted(parent)}" if has_parent else "the folder"
        limits = self.has[parent if has_parent else MAIN]  # no agent has more than the folder
        origin = self._origin(name, "permissions", "level")
        if origin is not None and LEVELS.index(origin.value) > LEVELS.index(limits.level):
            message = (
                f'"{origin.value}" is wider than the "{limits.level}" of {owner}, and an agent never has '
                f'more than its parent. Write "{limits.level}" or less.'
            )
            yield _problem(origin, "config.agent-permissions", message, instead=limits.level)
        for number, pattern in enumerate(_strings_in(self.agents[name], "permissions", "allow")):
            origin = self._origin(name, "permissions", "allow", str(number))
            if origin is not None and limits.allow and not self._allowed(limits.allow).cover(pattern):
                message = (
                    f"{fixes.quoted(pattern)} is more than {owner} is allowed, and an agent never has more "
                    f"than its parent. Name what is within {_listed(limits.allow)}."
                )
                yield _problem(origin, "config.agent-permissions", message)

    def tools(self, name: str) -> Iterator[Problem]:
        for number, pattern in enumerate(_strings_in(self.agents[name], "tools")):
            origin = self._origin(name, "tools", str(number))
            if origin is None:
                continue
            lacking, server = self._lacking(name, pattern), self._unknown(pattern)
            severity = Severity.WARNING if lacking is None else Severity.ERROR
            near = None if server is None else fixes.meant(server, self.servers)
            if server is not None and near is not None:
                head = _MCP if pattern.startswith(_MCP) else ""
                meant = head + near + pattern[len(head + server) :]
                message = (
                    f"There is no MCP server {fixes.quoted(server)}: did you mean {fixes.quoted(meant)}?"
                )
                yield _problem(origin, "config.agent-tool", message, severity, instead=meant)
                continue
            reason = self._nothing(name, pattern, server) if lacking is None else lacking
            if reason is not None:
                yield _problem(origin, "config.agent-tool", reason, severity)

    def _lacking(self, name: str, pattern: str) -> str | None:
        """Why the agent could not be granted a tool: an ancestor has no tool that the pattern can match."""
        parent_limits = self.has.get(_parent_of(self.agents[name]))
        for ancestor, tools in reversed(parent_limits.tools if parent_limits is not None else ()):
            if not self._tools(ancestor).meet(pattern):
                remedy = f"{_listed(tools)}. Choose among those" if tools else "none. Remove it"
                return (
                    f"{fixes.quoted(name)} could not be given {fixes.quoted(pattern)}: "
                    f"{fixes.quoted(ancestor)} above it has {remedy}, "
                    f"or add it to the tools of {fixes.quoted(ancestor)}."
                )
        return None

    def _nothing(self, name: str, pattern: str, unknown: str | None) -> str | None:
        """Why a pattern that could be granted matches nothing; `unknown` is a server that does not exist."""
        off = self.disabled.naming(pattern)
        if off is not None:
            quoted = fixes.quoted(pattern)
            return (
                f"{quoted} matches no tool: tools.disabled contains {fixes.quoted(off)}. Remove one of them."
            )
        if unknown is not None and pattern.startswith(_MCP):
            quoted = fixes.quoted(pattern)
            alternatives = f"There are {_listed(self.servers)}" if self.servers else "None is configured"
            return (
                f"{quoted} gives {fixes.quoted(name)} nothing: "
                f"there is no MCP server {fixes.quoted(unknown)}. {alternatives}."
            )
        without = self._without(name, pattern)
        if without is None:
            return None
        ancestor, server = without
        quoted = fixes.quoted(pattern)
        return (
            f"{quoted} gives {fixes.quoted(name)} nothing of the MCP server {fixes.quoted(server)}: "
            f"{fixes.quoted(ancestor)} above it has none. Add {quoted} to the tools "
            f"of {fixes.quoted(ancestor)}."
        )

    def _unknown(self, pattern: str) -> str | None:
        """The MCP server that a pattern names, if none exists that it can match."""
        return next((server for server in servers_named(pattern) if not self._named(server)), None)

    def _without(self, name: str, pattern: str) -> tuple[str, str] | None:
        """The nearest ancestor that was not granted a server, and the server that the pattern names."""
        named = [candidate for candidate in servers_named(pattern) if candidate in self._names]
        ancestor = _parent_of(self.agents[name])
        while named and ancestor != MAIN and ancestor in self.has and self.has[ancestor].depth < MAX_DEPTH:
            granted = self._granted(ancestor)
            lacking = next((server for server in named if not granted.matches(server)), None)
            if lacking is not None:
                return ancestor, lacking
            ancestor = _parent_of(self.agents[ancestor])
        return None

    @functools.cached_property
    def has(self) -> "dict[str, AgentLimits]":
        """The limits of the folder and of each agent below it."""
        level, allow = self.effective.get("/permissions/level"), self.effective.get("/permissions/allow")
        return agent_limits(self.agents, str(level), tuple(allow or ()))

    @functools.cached_property
    def cycles(self) -> dict[str, list[str]]:
        """The agents in circles of parents, each with its circle."""
        return parent_circles(self.agents, self.has)

    @functools.cached_property
    def disabled(self) -> Patterns:
        """The tools that the settings switch off."""
        return Patterns(self.effective.get("/tools/disabled") or ())

    def _granted_to(self, name: str) -> Patterns:
        """The MCP servers that an agent of the settings was granted by name."""
        tools = _strings_in(self.agents[name], "tools")
        return Patterns(server for tool in tools for server in servers_named(tool))

    def _cycle(self, name: str, origin: Provenance) -> Problem:
        cycle = self.cycles[name]
        at = cycle.index(name)
        line = [*cycle[at:], *cycle[:at], name]
        names = " → ".join(line if len(line) <= _MOST_NAMES else [*line[: _MOST_NAMES - 2], "…", name])
        message = f"These agents form a circle of parents: {names}. Remove one of the parents."
        next_origin = self._origin(line[1], "parent") if len(cycle) > 1 else None
        related = (
            ()
            if next_origin is None
            else (Related(next_origin.path, next_origin.span, "The next one is here."),)
        )
        return Problem(
            origin.path,
            origin.span,
            "config.agent-cycle",
            Severity.ERROR,
            message=message,
            fix=None,
            related=related,
        )

    def _origin(self, name: str, *steps: str) -> Provenance | None:
        """Where a value in force stands in a file's present text."""
        origin = _origin(self.effective, name, *steps)
        if origin is None or origin.layer not in self.layers:
            return None
        if self.reading.documents.get(origin.path) is not origin.document:
            return None
        return origin


class AgentLimits(msgspec.Struct, frozen=True):
    """The limits that an agent's ancestors set.

    `tools` has the name and the list of each ancestor with a list.
    """

    depth: int
    role: str
    level: str
    allow: tuple[str, ...]
    tools: tuple[tuple[str, tuple[str, ...]], ...] = ()


def agent_limits(agents: Mapping[str, Any], level: str, allow: tuple[str, ...]) -> dict[str, AgentLimits]:
    """Return the limits of the folder, which are `level` and `allow`, and of each agent below it.

    Parents come first.
    """
    children: dict[str, list[str]] = {}
    for name, agent in agents.items():
        if name != MAIN:
            children.setdefault(_parent_of(agent), []).append(name)
    limits = {MAIN: AgentLimits(0, UNIFIED, level, allow)}
    line = [MAIN]
    for parent in line:  # grows while it is walked
        for name in children.get(parent, ()):
            limits[name] = _narrowed(limits[parent], name, agents[name])
            line.append(name)
    return limits


def parent_circles(agents: Mapping[str, Any], below: Collection[str]) -> dict[str, list[str]]:
    """Return the agents in a circle of parents, each with the whole circle, from child to parent.

    `below` are the agents that are known to be below the folder.
    """
    cycle_of: dict[str, list[str]] = {}
    visited = set(below)
    for start_name in agents:
        line: dict[str, int] = {}
        name = start_name
        while name in agents and name not in visited:
            visited.add(name)
            line[name] = len(line)
            name = _parent_of(agents[name])
        if name in line:
            cycle = list(line)[line[name] :]
            cycle_of.update(dict.fromkeys(cycle, cycle))
    return cycle_of


def _parent_of(agent: Any) -> str:
    """The name of the parent that the settings define for an agent."""
    return str(agent.get("parent") or MAIN)


def _strings_in(agent: Any, *steps: str) -> list[str]:
    """The strings of a list in an agent's settings; empty where there is no such list."""
    value = agent
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _narrowed(parent: AgentLimits, name: str, agent: Any) -> AgentLimits:
    """The limits of an agent below another."""
    permissions, tools = agent.get("permissions") or {}, agent.get("tools")
    level = permissions.get("level")
    lists = parent.tools
    if isinstance(tools, list) and parent.depth < MAX_DEPTH:  # deeper agents do not start
        lists = (*lists, (name, tuple(_strings_in(agent, "tools"))))
    return AgentLimits(
        parent.depth + 1,
        agent.get("role") or WORKER,
        min(level or parent.level, parent.level, key=LEVELS.index),
        tuple(_strings_in(agent, "permissions", "allow")) or parent.allow,
        tools=lists,
    )


@functools.lru_cache(maxsize=64)
def _pointer(name: str) -> str:
    return pointer_text(("agents", name))


def _origin(effective: Effective, name: str, *steps: str) -> Provenance | None:
    chain = effective.provenance.get("/".join((_pointer(name), *steps)), ())
    origin = next((entry for entry in chain if entry.wins and entry.document is not None), None)
    return None if origin is None or origin.value is None else origin


@functools.lru_cache(maxsize=64)
def _listed(names: tuple[str, ...]) -> str:
    quoted = [fixes.quoted(name) for name in names[:_MOST_NAMES]]
    return fixes.listed(
        quoted if len(names) <= _MOST_NAMES else [*quoted, f"{len(names) - _MOST_NAMES} more"]
    )


def _problem(
    origin: Provenance,
    code: str,
    message: str,
    severity: Severity = Severity.ERROR,
    *,
    instead: str | None = None,
) -> Problem:
    """A problem of a value; `instead` is a value that fixes it."""
    fix = None
    if instead is not None and origin.document is not None:
        fix = fixes.replace(origin.document, origin.pointer, fixes.as_json(instead))
    return Problem(origin.path, origin.span, code, severity, message=message, fix=fix)
