"""The agents that config.json names: where they work, and what of their definitions cannot be.

1. `cwd` is relative to the directory of the layer that says it, in the global file to the folder.
2. A directory that is not there is an error of a workspace file; the global one speaks for many folders.
3. An agent's parent is the folder itself, or another agent of the settings; a parent that nobody defines is
   an error, as are agents that are each other's parents.
4. Permissions only narrow from the folder down: a level that is wider than the parent's, or patterns that it
   does not allow, would be refused.
5. A pattern of tools that the settings switch off, or that is nearly the name of an MCP server, is a warning;
   so is one that names a server which an agent above was not granted, for then there is nothing to hand down.
6. A stale file's value may be gone from its text: nothing is said of it.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from nexus_context.config import mend
from nexus_context.config.mcp import McpServer
from nexus_context.config.merge import Effective, Provenance
from nexus_context.config.scope import LEVELS, allowed_by
from nexus_context.errors import Problem, Related, Severity
from nexus_context.files import exists, is_dir
from nexus_context.jsontext import pointer_text
from nexus_context.layers.model import GLOBAL, Layers
from nexus_context.layers.reading import Reading
from nexus_context.layers.walk import Place

MAX_LOOKED_AT = 64  # agents whose directories are looked for
MAIN = "main"
"""The name of a workspace folder's own agent."""


def configured_directory(layers: Layers, agent: str) -> str | None:
    """The absolute path that the settings give an agent; None where they do not."""
    origin = _origin(layers.effective, agent, "cwd")
    if origin is None:
        return None
    layer = next((one for one in layers.layers if one.name == origin.layer), None)
    base = layers.folder if layer is None or not layer.in_workspace else layer.directory
    return os.path.normpath(os.path.join(base, str(origin.value)))


def servers_named(tool: str) -> list[str]:
    """The patterns of MCP servers that a pattern of tools names: what stands before the tool's own name."""
    if tool == "*":
        return ["*"]
    if tool.startswith("mcp__"):
        return [tool.removeprefix("mcp__").partition("__")[0]]
    server, dot, _ = tool.rpartition(".")
    return [server] if dot else []


def agent_problems(
    reading: Reading,
    effective: Effective,
    places: Sequence[Place],
    servers: Sequence[McpServer],
) -> Iterator[Problem]:
    """What is wrong with the agents of the settings, at the exact values."""
    agents = effective.get("/agents")
    if not isinstance(agents, dict) or not agents:
        return
    bases = {place.name: place.directory for place in places if place.name != GLOBAL}
    looked = _Look(reading, effective, agents, [server.name for server in servers])
    for number, name in enumerate(agents):
        if number < MAX_LOOKED_AT:
            yield from looked.directory(name, bases)
        yield from looked.parent(name)
        yield from looked.permissions(name)
        yield from looked.tools(name)


class _Look:
    """The agents of one folder's settings while they are looked at."""

    def __init__(
        self, reading: Reading, effective: Effective, agents: dict[str, Any], servers: list[str]
    ) -> None:
        self.reading = reading
        self.effective = effective
        self.agents = agents
        self.servers = servers

    def directory(self, name: str, bases: dict[str, str]) -> Iterator[Problem]:
        origin = self._origin(name, "cwd")
        if origin is None or origin.layer not in bases:
            return
        given = str(origin.value)
        path = os.path.normpath(os.path.join(bases[origin.layer], given))
        self.reading.watch.add(path)
        if is_dir(path):
            return
        why = "is not a directory" if exists(path) else "does not exist"
        message = (
            f"{path} {why}: agent {mend.quoted(name)} could not work there. Create it or correct the path."
        )
        yield _problem(origin, "config.agent-cwd", message, Severity.ERROR)

    def parent(self, name: str) -> Iterator[Problem]:
        origin = self._origin(name, "parent")
        if origin is None:
            return
        parent = str(origin.value)
        if parent != MAIN and parent not in self.agents:
            near = mend.meant(parent, (*self.agents, MAIN))
            hint = f": did you mean {mend.quoted(near)}?" if near else ". Define it, or remove this."
            fix = mend.replace(origin.document, origin.pointer, mend.quoted(near)) if near else None  # type: ignore[arg-type]
            message = f"There is no agent {mend.quoted(parent)}{hint}"
            yield Problem(origin.path, origin.span, "config.agent-parent", Severity.ERROR, message, fix)
            return
        cycle = self._above(name)
        if name in cycle[1:]:
            shown = " → ".join(cycle)
            message = f"These agents are each other's parents: {shown}. Remove one of the parents."
            other = self._origin(cycle[1], "parent")
            related = (
                ()
                if other is None or len(cycle) < 3
                else (Related(other.path, other.span, "The next one is here."),)
            )
            yield Problem(
                origin.path, origin.span, "config.agent-cycle", Severity.ERROR, message, None, related
            )

    def permissions(self, name: str) -> Iterator[Problem]:
        parent = (self.agents[name].get("parent") or MAIN) if isinstance(self.agents[name], dict) else MAIN
        level, allow, whose = self._may(parent)
        origin = self._origin(name, "permissions", "level")
        if origin is not None and LEVELS.index(origin.value) > LEVELS.index(level):
            message = (
                f'"{origin.value}" is wider than the "{level}" of {whose}, and an agent never has more than '
                f'its parent. Write "{level}" or less.'
            )
            fix = mend.replace(origin.document, origin.pointer, f'"{level}"') if origin.document else None
            yield Problem(
                origin.path, origin.span, "config.agent-permissions", Severity.WARNING, message, fix
            )
        for number, pattern in enumerate(_list(self.agents[name], "permissions", "allow")):
            origin = self._origin(name, "permissions", "allow", str(number))
            if origin is not None and allow and not allowed_by(pattern, allow):
                within = mend.listed([mend.quoted(one) for one in allow])
                message = (
                    f"{mend.quoted(pattern)} is more than {whose} is allowed, and an agent never has more "
                    f"than its parent. Name what is within {within}."
                )
                yield _problem(origin, "config.agent-permissions", message, Severity.WARNING)

    def tools(self, name: str) -> Iterator[Problem]:
        disabled = self.effective.get("/tools/disabled") or ()
        for number, pattern in enumerate(_list(self.agents[name], "tools")):
            origin = self._origin(name, "tools", str(number))
            if origin is None:
                continue
            off = next((one for one in disabled if fnmatchcase(pattern, one)), None)
            server = pattern.rpartition(".")[0]
            near = mend.meant(server, self.servers) if server and server not in self.servers else None
            if off is not None:
                both = f"{mend.quoted(pattern)} names no tool: tools.disabled has {mend.quoted(off)}"
                message = f"{both}. Remove one of them."
                yield _problem(origin, "config.agent-tool", message, Severity.WARNING)
            elif near is not None and not any(fnmatchcase(one, server) for one in self.servers):
                meant = mend.quoted(near + pattern[len(server) :])
                message = f"There is no MCP server {mend.quoted(server)}: did you mean {meant}?"
                fix = mend.replace(origin.document, origin.pointer, meant) if origin.document else None
                yield Problem(origin.path, origin.span, "config.agent-tool", Severity.WARNING, message, fix)
            elif (without := self._without(name, pattern)) is not None:
                above, server = without
                message = (
                    f"{mend.quoted(pattern)} gives {mend.quoted(name)} nothing of the MCP server "
                    f"{mend.quoted(server)}: {mend.quoted(above)} above it has none. Add "
                    f"{mend.quoted(pattern)} to the tools of {mend.quoted(above)}."
                )
                yield _problem(origin, "config.agent-tool", message, Severity.WARNING)

    def _without(self, name: str, pattern: str) -> tuple[str, str] | None:
        """The nearest agent above that was not granted a server, and the server that the pattern names."""
        named = [one for one in servers_named(pattern) if one in self.servers]
        for server in named:
            for above in self._above(name)[1:]:
                if above in (MAIN, name) or above not in self.agents:
                    break
                tools = _list(self.agents[above], "tools")
                granted = (one for tool in tools for one in servers_named(tool))
                if not any(fnmatchcase(server, one) for one in granted):
                    return above, server
        return None

    def _may(self, name: str) -> tuple[str, list[str], str]:
        """Level and allowed patterns of an agent, as its own parents leave them, and how it is called."""
        level = str(self.effective.get("/permissions/level"))
        allow = list(self.effective.get("/permissions/allow") or ())
        for one in reversed(self._above(name)):
            if one == MAIN or not isinstance(self.agents.get(one), dict):
                continue
            own = (self.agents[one].get("permissions") or {}).get("level")
            level = min(level, own, key=LEVELS.index) if own in LEVELS else level
            allow = _list(self.agents[one], "permissions", "allow") or allow
        return level, allow, "the folder" if name == MAIN else f"its parent {mend.quoted(name)}"

    def _above(self, name: str) -> list[str]:
        """An agent and those above it, up to the folder or to the first that comes again."""
        chain = [name]
        while chain[-1] in self.agents:
            agent = self.agents[chain[-1]]
            parent = agent.get("parent") if isinstance(agent, dict) else None
            if not isinstance(parent, str):
                break
            chain.append(parent)
            if parent in chain[:-1]:
                break
        return chain

    def _origin(self, name: str, *steps: str) -> Provenance | None:
        """Where a value that counts stands in a text that is there now."""
        origin = _origin(self.effective, name, *steps)
        if origin is None or self.reading.documents.get(origin.path) is not origin.document:
            return None
        return origin


def _origin(effective: Effective, name: str, *steps: str) -> Provenance | None:
    chain = effective.provenance.get(pointer_text(("agents", name, *steps)), ())
    origin = next((entry for entry in chain if entry.wins and entry.document is not None), None)
    return None if origin is None or origin.value is None else origin


def _list(agent: Any, *steps: str) -> list[str]:
    value = agent
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _problem(origin: Provenance, code: str, message: str, severity: Severity) -> Problem:
    return Problem(origin.path, origin.span, code, severity, message)
