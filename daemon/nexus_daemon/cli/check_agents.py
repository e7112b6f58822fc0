"""Checks a folder for `nexus check`, and then the folder as each of its agents sees it.

1. The agents are those of the settings, then those with a file AGENT.<name>.md in a layer of the folder, at
   most MOST_AGENTS.
2. An agent that could not be started is checked as if it worked in the folder itself; a note says why.
3. A problem that several agents have is reported once, by file, place and code.
4. Only AGENT.md has variants. A file that looks like a variant of another bootstrap file is reported, as a
   warning if the folder has an agent of that name.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from nexus_context.config import fixes
from nexus_context.disk.files import list_directory
from nexus_context.errors import Problem, RequestError, Span
from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_context.folder.layers.bootstrap import AGENT_FILE, agent_file, variant_of
from nexus_context.folder.layers.layer_types import DEFAULTS, Layer, LayerFile
from nexus_context.folder.loading import load
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_daemon.agents import previews

MOST_AGENTS = 64
MOST_NAMES = 10_000  # of files in one directory


class AgentChecks(NamedTuple):
    """The problems of a folder and its agents, as one snapshot of the folder.

    `readers` says in words whom it was checked for. `notes` are for the user.
    """

    snapshot: Snapshot
    readers: str
    notes: tuple[str, ...]


def check_agents(folder: Snapshot, inputs: LoadInputs, *, only: str | None = None) -> AgentChecks:
    """Check a folder and its agents. With `only`, check one agent, or the folder itself for MAIN.

    `folder` is the folder's snapshot without an agent. RequestError if there is no such agent.
    """
    names, unread = _defined(folder)
    if only is not None and only not in (MAIN, *names):
        suggestion = fixes.meant(only, names)
        hint = (
            f"did you mean {suggestion!r}?"
            if suggestion
            else f"agents: {', '.join((MAIN, *names[:MOST_AGENTS]))}."
        )
        raise RequestError(f"{folder.folder} has no agent {only!r}; {hint}", code="unknown-agent")
    chosen_names = names[:MOST_AGENTS] if only is None else [name for name in names if name == only]
    covers_folder = only is None or only == MAIN
    variants = [
        previews.unread_variant(path, is_agent=agent in names)
        for path, agent in unread
        if covers_folder or agent == only
    ]
    views = [folder] if covers_folder else []
    notes = []
    if only is None and len(names) > MOST_AGENTS:
        notes.append(
            f"Only {MOST_AGENTS} of the {len(names):,} agents are checked. Use --agent to check another."
        )
    for name, view, refused in _views(folder, chosen_names, inputs):
        views.append(view)
        if refused is not None:
            notes.append(f"{name!r} is checked as if it worked in {folder.folder}: {refused}")
    return AgentChecks(
        _together(folder, views, variants), _readers(chosen_names, covers_folder=covers_folder), tuple(notes)
    )


def _readers(agents: Sequence[str], *, covers_folder: bool) -> str:
    if not agents:
        return ""
    if not covers_folder:
        return f"for the agent {agents[0]}"
    return "for the folder and " + ("1 agent" if len(agents) == 1 else f"{len(agents)} agents")


def _defined(folder: Snapshot) -> tuple[list[str], list[tuple[str, str]]]:
    """The agents that settings or files define; files that look like variants for agents, with the agent."""
    names: dict[str, None] = dict.fromkeys(folder.effective.get("/agents") or ())
    unread = []
    refused = {skipped.path for skipped in folder.layers.skipped}
    for layer in folder.layers.layers:
        if layer.name == DEFAULTS or layer.config_directory in refused:
            continue
        for name, _ in list_directory(layer.config_directory, MOST_NAMES) or ():
            kind, agent = variant_of(name) or (None, "")
            if kind == AGENT_FILE:
                names[agent] = None
            elif kind is not None:
                unread.append((os.path.join(layer.config_directory, name), agent))
    return [name for name in names if name != MAIN and agent_file(name) is not None], unread


def _views(
    folder: Snapshot, names: Sequence[str], inputs: LoadInputs
) -> Iterator[tuple[str, Snapshot, str | None]]:
    """Yield each agent with its snapshot and the reason why it could not be started, or None."""
    if not names:
        return
    from nexus_context.agents import AgentPool  # a folder without agents does not need it

    pool = AgentPool(folder, inputs, followed=True)  # one state for all agents: no directory is read twice
    for name in names:
        try:
            yield name, pool.view_as(name).snapshot, None
        except RequestError as error:
            in_folder = msgspec.structs.replace(inputs, agent=name)
            yield name, load(folder.folder, in_folder, previous=folder, changed=()), str(error)


def _together(folder: Snapshot, views: Sequence[Snapshot], more_problems: Iterable[Problem]) -> Snapshot:
    """One snapshot with everything in the views, and these problems; earlier views win."""
    texts: dict[str, str] = {}
    for view in views:
        texts = {**view.layers.texts, **texts}
    layers = msgspec.structs.replace(
        folder.layers, layers=tuple(_layers(view.layers.layers for view in views)), texts=texts
    )
    return msgspec.structs.replace(folder, layers=layers, problems=(*_once(views), *more_problems))


def _layers(views: Iterable[Sequence[Layer]]) -> Iterator[Layer]:
    """Each layer once, by its directories, with all its files."""
    merged: dict[tuple[str, str], tuple[Layer, dict[str, LayerFile]]] = {}
    for layers in views:
        for layer in layers:
            _, files = merged.setdefault((layer.directory, layer.config_directory), (layer, {}))
            for file in layer.files:
                files.setdefault(file.path, file)
    for layer, files in merged.values():
        yield msgspec.structs.replace(layer, files=tuple(files.values()))


def _once(views: Iterable[Snapshot]) -> Iterator[Problem]:
    """The problems of each view that no earlier view has."""
    reported: set[tuple[str, Span, str]] = set()
    for view in views:
        yield from (problem for problem in view.problems if _key(problem) not in reported)
        reported.update(map(_key, view.problems))


def _key(problem: Problem) -> tuple[str, Span, str]:
    return problem.path, problem.span, problem.code
