"""What `nexus check` looks at: a folder for nobody in particular, then as each of its agents sees it.

1. The agents are those of the settings, then those with a file AGENT.<name>.md in a layer of the folder,
   MOST_AGENTS of them.
2. One that could not be started is looked at as if it worked in the folder itself, and why is said.
3. What several of them find is reported once: by file, place and code.
4. Only AGENT.md has variants: a file that looks like one of another bootstrap file is reported, as a warning
   where the folder has an agent of that name.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from nexus_context.config import fixes
from nexus_context.errors import Problem, RequestError, Span
from nexus_context.files import list_directory
from nexus_context.layers.agent_definitions import MAIN
from nexus_context.layers.bootstrap import AGENT_FILE, agent_file, variant_of
from nexus_context.layers.model import DEFAULTS, Layer, LayerFile
from nexus_context.snapshot import LoadInputs, Snapshot, load
from nexus_daemon.agents import previews

MOST_AGENTS = 64
MOST_NAMES = 10_000  # of files in one directory


class Looked(NamedTuple):
    """All that was found, as one snapshot of the folder; for whom, in words; what is to be told besides."""

    snapshot: Snapshot
    readers: str
    notes: tuple[str, ...]


def look(folder: Snapshot, inputs: LoadInputs, *, only: str | None = None) -> Looked:
    """A folder and its agents, or `only` one of them, or only MAIN; `folder` is its snapshot for no agent.

    RequestError where there is no such agent.
    """
    names, unread = _defined(folder)
    if only is not None and only not in (MAIN, *names):
        near = fixes.meant(only, names)
        known = f"did you mean {near!r}?" if near else f"agents: {', '.join((MAIN, *names[:MOST_AGENTS]))}."
        raise RequestError(f"{folder.folder} has no agent {only!r}; {known}", code="unknown-agent")
    chosen = names[:MOST_AGENTS] if only is None else [name for name in names if name == only]
    whole = only is None or only == MAIN
    found = [
        previews.unread_variant(path, is_agent=agent in names)
        for path, agent in unread
        if whole or agent == only
    ]
    views = [folder] if whole else []
    notes = []
    if only is None and len(names) > MOST_AGENTS:
        notes.append(
            f"Only {MOST_AGENTS} of the {len(names):,} agents are looked at. Name another with --agent."
        )
    for name, view, refused in _views(folder, chosen, inputs):
        views.append(view)
        if refused is not None:
            notes.append(f"{name!r} is looked at as if it worked in {folder.folder}: {refused}")
    return Looked(_together(folder, views, found), _readers(chosen, whole=whole), tuple(notes))


def _readers(agents: Sequence[str], *, whole: bool) -> str:
    if not agents:
        return ""
    if not whole:
        return f"for the agent {agents[0]}"
    return "for the folder and " + ("1 agent" if len(agents) == 1 else f"{len(agents)} agents")


def _defined(folder: Snapshot) -> tuple[list[str], list[tuple[str, str]]]:
    """The agents that a folder's settings or files define; files that look like their SOUL.md, with whose."""
    names = dict.fromkeys(folder.effective.get("/agents") or ())
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
    """Agents, each with what it sees, and why it could not be started, if it could not."""
    if not names:
        return
    from nexus_context.agents import AgentPool  # a folder without agents need not wait for it

    pool = AgentPool(folder, inputs, followed=True)  # as at one moment: no directory is read twice
    for name in names:
        try:
            yield name, pool.view_as(name).snapshot, None
        except RequestError as error:
            yield name, _in_the_folder(folder, name, inputs), str(error)


def _in_the_folder(folder: Snapshot, agent: str, inputs: LoadInputs) -> Snapshot:
    inputs = msgspec.structs.replace(inputs, agent=agent)
    return load(folder.folder, inputs, previous=folder, changed=())


def _together(folder: Snapshot, views: Sequence[Snapshot], more: Iterable[Problem]) -> Snapshot:
    """One snapshot with everything that is in the views, and more; what an earlier one has counts."""
    texts: dict[str, str] = {}
    for view in views:
        texts = {**view.layers.texts, **texts}
    layers = msgspec.structs.replace(
        folder.layers, layers=tuple(_layers(view.layers.layers for view in views)), texts=texts
    )
    return msgspec.structs.replace(folder, layers=layers, problems=(*_once(views), *more))


def _layers(views: Iterable[Sequence[Layer]]) -> Iterator[Layer]:
    """Each layer once, by its directories, with all its files."""
    found: dict[tuple[str, str], tuple[Layer, dict[str, LayerFile]]] = {}
    for layers in views:
        for layer in layers:
            _, files = found.setdefault((layer.directory, layer.config_directory), (layer, {}))
            for file in layer.files:
                files.setdefault(file.path, file)
    for layer, files in found.values():
        yield msgspec.structs.replace(layer, files=tuple(files.values()))


def _once(views: Iterable[Snapshot]) -> Iterator[Problem]:
    """The problems of each view that none before it has."""
    known: set[tuple[str, Span, str]] = set()
    for view in views:
        yield from (problem for problem in view.problems if _key(problem) not in known)
        known.update(map(_key, view.problems))


def _key(problem: Problem) -> tuple[str, Span, str]:
    return problem.path, problem.span, problem.code
