"""Open documents that only one agent would read, while it does not live: checked as if it did.

1. Which they are says their name: AGENT.<agent>.md in the `.nexus3` of a folder, of a directory in it, or of
   another of its layers. Or where they are: instruction files and what is in `.nexus3`, where an agent of the
   settings would work or on the way there, unless the folder itself reads them.
2. The agent is looked at as it would be started. Where that cannot be, or it would not read the document, it
   is looked at as a worker of `main` in the document's directory, or in the folder for a document above that.
3. What is told is what is wrong in open documents that it reads and the folder itself does not, to whom they
   are open. Of a live agent everything is told anyway: it is no draft.
4. SOUL.<agent>.md and its like are read by nobody, and say so.
5. An agent is looked at again only where something that it depends on can have changed. A settings file that
   stays broken changes nothing for it.
"""

import importlib
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.errors import Problem, RequestError, Severity, Span
from nexus_context.files import exists
from nexus_context.layers.agent_definitions import MAIN, configured_directory
from nexus_context.layers.bootstrap import AGENT_FILE, agent_file, variant_of
from nexus_context.layers.walk import CONFIG_DIRECTORY
from nexus_context.snapshot import Snapshot

if TYPE_CHECKING:  # most folders have no agents
    from nexus_context.agents import Agent, AgentPool
    from nexus_daemon.state import Daemon
    from nexus_daemon.workspace.folders import Folder

logger = logging.getLogger(__name__)

MOST_DRAFTS = 64
"""Documents of one folder that are looked at so."""
KINDS = (".md", ".json")
"""How what an agent reads in `.nexus3` ends."""
PLAIN: dict[str, Any] = {"parent": MAIN, "role": "worker", "tools": [], "permissions": {}}
"""What can always be started, if its directory is there."""


class Draft(msgspec.Struct, frozen=True):
    """A document of one agent; `kind` is the bootstrap file that it is a variant of, or empty for others."""

    path: str
    kind: str
    agent: str


def draft_of(path: str) -> Draft | None:
    """What a document is by its name; None: nothing that one agent only would read."""
    if not path.endswith(".md"):
        return None
    kind, agent = variant_of(os.path.basename(path)) or ("", "")
    return Draft(path, kind, agent) if kind and (kind, agent) != (AGENT_FILE, MAIN) else None


class Configured(msgspec.Struct, frozen=True):
    """An agent for each directory that those of the settings would read, and what its files are called."""

    agents: Mapping[str, str] = {}
    names: frozenset[str] = frozenset()

    def draft(self, path: str) -> Draft | None:
        """What a document is by where it is; None: nothing that one of these agents would read."""
        if not self.agents:
            return None
        directory, name = os.path.split(path)
        inside = os.path.basename(directory) == CONFIG_DIRECTORY
        agent = self.agents.get(os.path.dirname(directory) if inside else directory)
        named = name.endswith(KINDS) if inside else name in self.names
        return Draft(path, "", agent) if named and agent is not None else None


def configured(folder: Snapshot) -> Configured:
    """What the settings say of who would read what below the folder."""
    found: dict[str, str] = {}
    directories = [
        (directory, agent)
        for agent in folder.effective.get("/agents") or ()
        if agent != MAIN and (directory := configured_directory(folder.layers, agent)) is not None
    ]
    for directory, agent in sorted(directories, key=lambda one: len(one[0])):  # who works there comes first
        above = directory
        while above.startswith(folder.folder.rstrip(os.sep) + os.sep):
            found.setdefault(above, agent)
            above = os.path.dirname(above)
    return Configured(found, frozenset(folder.effective.get("/context/instruction_files") or ()))


def unread(path: str, *, is_agent: bool) -> Problem:
    """That nobody reads a file like SOUL.<agent>.md; `is_agent`: there is an agent of that name."""
    name = os.path.basename(path)
    kind, agent = variant_of(name) or (name, MAIN)
    instead = kind if agent == MAIN else agent_file(agent)
    message = f"{name} is not read: only {AGENT_FILE} can be another for one agent. Write it into {instead}."
    severity = Severity.WARNING if is_agent else Severity.INFORMATION
    return Problem(path, Span(0, 0), "layer.no-variant", severity, message)


async def begin(daemon: "Daemon", folder: "Folder") -> None:
    """Make the agents of a folder, for the first document that is about one."""
    agents = await daemon.work(importlib.import_module, "nexus_daemon.agents.registry")
    try:
        (await agents.opened(daemon, folder)).noticed(frozenset())
    except RequestError as error:
        if not folder.reload.cancelled:
            logger.warning("documents of agents of %s are not checked: %s", folder.path, error)


class Said(msgspec.Struct, frozen=True):
    """What is wrong in open documents of agents that do not live.

    `documents` are those documents, each with the path that it is read by, which is another where a link
    leads to it. `texts` are theirs and of files that problems point to. `watch` are the paths that matter to
    this, `views` what the agents would see.
    """

    documents: Mapping[str, str] = {}
    texts: Mapping[str, str] = {}
    problems: tuple[Problem, ...] = ()
    watch: frozenset[str] = frozenset()
    views: tuple[Snapshot, ...] = ()

    def snapshot(self, folder: Snapshot, documents: Collection[str]) -> Snapshot | None:
        """The folder with nothing in it but these of the documents; None where it has none of them."""
        read = {path: by for path, by in self.documents.items() if path in documents}
        if not read:
            return None
        told = frozenset(read.values())
        others = frozenset(self.documents.values()) - told
        layers = msgspec.structs.replace(
            folder.layers,
            texts={path: text for path, text in self.texts.items() if path not in others},
            links={path: by for path, by in read.items() if by != path},
        )
        problems = tuple(problem for problem in self.problems if problem.path in told)
        return msgspec.structs.replace(folder, layers=layers, problems=problems)


class _Seen(msgspec.Struct, frozen=True):
    """What a document's agent would see, and what is said of the document besides; `watch`: see Said."""

    view: Snapshot | None
    watch: frozenset[str]
    problems: tuple[Problem, ...] = ()


class Drafts:
    """What was looked at of one folder. Only a job in a thread touches it, one at a time."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._folder: Snapshot | None = None

    def look(
        self, pool: "AgentPool", drafts: Mapping[str, Draft], changed: Collection[str] | None, *, moved: bool
    ) -> Said:
        """What is to be told of these documents.

        `changed` are the only paths that can have changed since the last look, None: any; `moved`: agents
        were started or have ended.
        """
        seen, self._seen = self._seen, {}  # after a failure everything is looked at
        before, self._folder = self._folder, pool.main.snapshot
        outdated = moved or changed is None
        if not outdated and changed and not _only_problems(before, self._folder, changed):
            seen = {path: one for path, one in seen.items() if not _touched(one, changed)}
        looked = {}
        for path, draft in drafts.items():
            if draft.kind not in ("", AGENT_FILE) or draft.agent not in pool:
                known = None if outdated else seen.get(path)
                looked[path] = known or _look(pool, draft)
        self._seen = looked
        return _said(pool, looked)


def _touched(seen: _Seen, changed: Collection[str]) -> bool:
    from nexus_context.agents.directory_snapshots import marks_of

    return not marks_of(changed).isdisjoint(seen.watch)


def _only_problems(before: Snapshot | None, now: Snapshot, changed: Collection[str]) -> bool:
    """Whether only settings files of the folder changed, and of them only what is wrong there."""
    return (
        before is not None
        and all(path in now.layers.documents for path in changed)
        and before.contents is now.contents
        and before.layers.effective is now.layers.effective
        and before.layers.servers == now.layers.servers
    )


def _look(pool: "AgentPool", draft: Draft) -> _Seen:
    if draft.kind not in ("", AGENT_FILE):
        return _nobodys(pool, draft)
    folder, directory = pool.main.folder, os.path.dirname(os.path.dirname(draft.path))
    inside = directory == folder or directory.startswith(folder.rstrip(os.sep) + os.sep)
    watch = _watch(pool.main) | {draft.path, os.path.dirname(draft.path), directory}
    for asked in ({}, {**PLAIN, "cwd": directory if inside else folder}):
        try:
            agent = pool.view_as(draft.agent, **asked)
        except RequestError:  # what is wrong with it is told where the settings have it
            continue
        watch |= _watch(agent)
        if draft.path in agent.snapshot.layers.texts:
            return _Seen(agent.snapshot, watch)
    return _Seen(None, watch)


def _nobodys(pool: "AgentPool", draft: Draft) -> _Seen:
    """A document that no agent would read."""
    folder = pool.main.snapshot
    name = agent_file(draft.agent) or AGENT_FILE
    places = dict.fromkeys(layer.config_directory for layer in folder.layers.layers)
    files = [os.path.join(place, name) for place in (*places, os.path.dirname(draft.path))]
    is_agent = draft.agent != MAIN and (
        draft.agent in pool
        or draft.agent in (folder.effective.get("/agents") or ())
        or any(file in pool.inputs.overlays or exists(file) for file in files)
    )
    problem = unread(draft.path, is_agent=is_agent)
    return _Seen(None, _watch(pool.main) | {draft.path, *files}, (problem,))


def _watch(agent: "Agent") -> frozenset[str]:
    """The paths that matter to an agent, and to those that it has something from."""
    paths: set[str] = set()
    above: Agent | None = agent
    while above is not None:
        paths.update(above.snapshot.layers.watch)
        paths.update((above.folder, os.path.join(above.folder, CONFIG_DIRECTORY)))
        above = above.parent
    return frozenset(paths)


def _said(pool: "AgentPool", looked: Mapping[str, _Seen]) -> Said:
    documents: dict[str, str] = {}
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    overlays = pool.inputs.overlays
    for draft, seen in looked.items():
        if seen.problems and draft in overlays:
            documents[draft], texts[draft] = draft, overlays[draft]
            problems += seen.problems
        if seen.view is None:
            continue
        mine = dict(_read(seen.view, pool.main.snapshot, draft, overlays))
        told = frozenset(mine.values())
        wrong = [problem for problem in seen.view.problems if problem.path in told]
        pointed = {one.path for problem in wrong for one in problem.related}
        read = seen.view.layers.texts
        texts.update({path: read[path] for path in (*told, *pointed) if path in read})
        documents.update(mine)
        problems += wrong
    watch = frozenset[str]().union(*(one.watch for one in looked.values()))
    views = tuple(one.view for one in looked.values() if one.view is not None)
    return Said(documents, texts, tuple(problems), watch, views)


def _read(view: Snapshot, folder: Snapshot, draft: str, opened: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The open documents that a view has and the folder has not, each with the path that it is read by."""
    texts, links = view.layers.texts, view.layers.links
    for path in opened:
        by = path if path in texts else links.get(path, path)
        if by in texts and (by == draft or by not in folder.layers.texts):
            yield path, by
