"""Check open documents that only an agent that is not running would read, as if that agent ran (a preview).

1. `workspace.agent_documents` says which documents these are, by their name or their directory.
2. The agent is checked as it would be started. If it cannot be started, or would not read the document, a
   worker of `main` is checked in its place. That worker works in the document's directory, or in the folder
   if the document is above it.
3. A problem is reported if it is in an open document that the agent reads and the folder itself does not. It
   is reported to the clients that have the document open. A running agent needs no preview: its problems are
   reported anyway.
4. Nobody reads SOUL.<agent>.md and its like; a problem says so.
5. An agent is checked again only if something that it depends on may have changed. A settings file that stays
   broken causes no new check.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.disk.files import exists
from nexus_context.errors import Problem, RequestError, Severity, Span
from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_context.folder.layers.bootstrap import AGENT_FILE, agent_file, variant_of
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY, within
from nexus_context.folder.snapshot import Snapshot
from nexus_daemon.process import lazy
from nexus_daemon.workspace.agent_documents import AgentDocument

if TYPE_CHECKING:  # `nexus check` imports this for folders without agents, too
    from nexus_context.agents import Agent, AgentPool

PLAIN: dict[str, Any] = {"parent": MAIN, "role": "worker", "tools": [], "permissions": {}}
"""Options of an agent that can always be started, if its directory exists."""


def unread_variant(path: str, *, is_agent: bool) -> Problem:
    """Build the problem that nobody reads a file like SOUL.<agent>.md.

    It is a warning if `is_agent`, which means that an agent has that name, else an information.
    """
    name = os.path.basename(path)
    kind, agent = variant_of(name) or (name, MAIN)
    target = kind if agent == MAIN else agent_file(agent)
    message = f"{name} is not read: only {AGENT_FILE} has variants for agents. Write it into {target}."
    severity = Severity.WARNING if is_agent else Severity.INFORMATION
    return Problem(path, Span(0, 0), "layer.no-variant", severity=severity, message=message)


class PreviewResult(msgspec.Struct, frozen=True):
    """The problems in open documents of agents that are not running.

    `documents` maps each open document to the path that the agent reads it by; the two differ if the document
    is reached through a link. `texts` maps paths to the texts of the documents and of files that problems
    point to. `watch` holds the paths that the result depends on, `views` the snapshots of the agents.
    """

    documents: Mapping[str, str] = {}
    texts: Mapping[str, str] = {}
    problems: tuple[Problem, ...] = ()
    watch: frozenset[str] = frozenset()
    views: tuple[Snapshot, ...] = ()

    def snapshot(self, folder: Snapshot, documents: Collection[str]) -> Snapshot | None:
        """Return the folder's snapshot with the previews of only these `documents`.

        None if no preview reads them.
        """
        reading_paths = {
            path: reading_path for path, reading_path in self.documents.items() if path in documents
        }
        if not reading_paths:
            return None
        paths = frozenset(reading_paths.values())
        other_paths = frozenset(self.documents.values()) - paths
        layers = msgspec.structs.replace(
            folder.layers,
            texts={path: text for path, text in self.texts.items() if path not in other_paths},
            links={
                path: reading_path for path, reading_path in reading_paths.items() if reading_path != path
            },
        )
        problems = tuple(problem for problem in self.problems if problem.path in paths)
        return msgspec.structs.replace(folder, layers=layers, problems=problems)


class _Preview(msgspec.Struct, frozen=True):
    """The view of a document's agent, and problems of the document besides; `watch`: see PreviewResult."""

    view: Snapshot | None
    watch: frozenset[str]
    problems: tuple[Problem, ...] = ()


class AgentChecker:
    """Checks the previews of one folder. Only a job in a worker thread uses it, one job at a time."""

    def __init__(self) -> None:
        self._previews: dict[str, _Preview] = {}
        self._folder: Snapshot | None = None

    def check(
        self,
        pool: "AgentPool",
        documents: Mapping[str, AgentDocument],
        changed: Collection[str] | None,
        *,
        moved: bool,
    ) -> PreviewResult:
        """Check the open documents `documents` (path → document), and return the problems.

        `changed` are the only paths that may have changed since the last check; None means that any may have.
        `moved` means that agents were started or have ended.
        """
        earlier_previews, self._previews = self._previews, {}  # after a failure everything is checked
        previous_folder, self._folder = self._folder, pool.main.snapshot
        if moved or changed is None:
            earlier_previews = {}
        elif changed and not _only_problems_changed(previous_folder, self._folder, changed):
            marks = lazy.directory_snapshots.marks_of(changed)
            earlier_previews = {
                path: preview for path, preview in earlier_previews.items() if marks.isdisjoint(preview.watch)
            }
        previews = {
            path: earlier_previews.get(path) or _preview(pool, document)
            for path, document in documents.items()
            if document.kind not in ("", AGENT_FILE) or document.agent not in pool
        }
        self._previews = previews
        return _result(pool, previews)


def _only_problems_changed(previous: Snapshot | None, current: Snapshot, changed: Collection[str]) -> bool:
    """Whether the change touched nothing but the problems of settings files."""
    return (
        previous is not None
        and all(path in current.layers.documents for path in changed)
        and previous.contents is current.contents
        and previous.layers.effective is current.layers.effective
        and previous.layers.servers == current.layers.servers
    )


def _preview(pool: "AgentPool", document: AgentDocument) -> _Preview:
    if document.kind not in ("", AGENT_FILE):
        return _unread_preview(pool, document)
    folder, directory = pool.main.folder, os.path.dirname(os.path.dirname(document.path))
    watch = _watch(pool.main) | {document.path, os.path.dirname(document.path), directory}
    for options in ({}, {**PLAIN, "cwd": directory if within(directory, folder) else folder}):
        try:
            agent = pool.view_as(document.agent, **options)
        except RequestError:  # its problems are reported where the settings define it
            continue
        watch |= _watch(agent)
        if document.path in agent.snapshot.layers.texts:
            return _Preview(agent.snapshot, watch)
    return _Preview(None, watch)


def _unread_preview(pool: "AgentPool", document: AgentDocument) -> _Preview:
    """The preview of a document that no agent would read."""
    folder = pool.main.snapshot
    name = agent_file(document.agent) or AGENT_FILE
    directories = dict.fromkeys(layer.config_directory for layer in folder.layers.layers)
    files = [os.path.join(path, name) for path in (*directories, os.path.dirname(document.path))]
    is_agent = document.agent != MAIN and (
        document.agent in pool
        or document.agent in (folder.effective.get("/agents") or ())
        or any(file in pool.inputs.overlays or exists(file) for file in files)
    )
    problem = unread_variant(document.path, is_agent=is_agent)
    return _Preview(None, _watch(pool.main) | {document.path, *files}, (problem,))


def _watch(agent: "Agent") -> frozenset[str]:
    """The paths that an agent depends on, with those of its ancestors."""
    paths: set[str] = set()
    ancestor: Agent | None = agent
    while ancestor is not None:
        paths.update(ancestor.snapshot.layers.watch)
        paths.update((ancestor.folder, os.path.join(ancestor.folder, CONFIG_DIRECTORY)))
        ancestor = ancestor.parent
    return frozenset(paths)


def _result(pool: "AgentPool", previews: Mapping[str, _Preview]) -> PreviewResult:
    documents: dict[str, str] = {}
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    overlays = pool.inputs.overlays
    for path, preview in previews.items():
        if preview.problems and path in overlays:
            documents[path], texts[path] = path, overlays[path]
            problems += preview.problems
        if preview.view is None:
            continue
        read_by = dict(_documents_of(preview.view, pool.main.snapshot, path, overlays))
        paths = frozenset(read_by.values())
        view_problems = [problem for problem in preview.view.problems if problem.path in paths]
        related_paths = {
            related_problem.path for problem in view_problems for related_problem in problem.related
        }
        view_texts = preview.view.layers.texts
        texts.update({path: view_texts[path] for path in (*paths, *related_paths) if path in view_texts})
        documents.update(read_by)
        problems += view_problems
    watch = frozenset[str]().union(*(preview.watch for preview in previews.values()))
    views = tuple(preview.view for preview in previews.values() if preview.view is not None)
    return PreviewResult(documents, texts, tuple(problems), watch=watch, views=views)


def _documents_of(
    view: Snapshot, folder: Snapshot, document: str, open_paths: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """The open documents that a view has and the folder has not, each with the path that it is read by."""
    texts, links = view.layers.texts, view.layers.links
    for path in open_paths:
        reading_path = path if path in texts else links.get(path, path)
        if reading_path in texts and (reading_path == document or reading_path not in folder.layers.texts):
            yield path, reading_path
