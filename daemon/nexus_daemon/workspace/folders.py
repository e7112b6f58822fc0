"""Keep the folders of one client: folder URI → folder and snapshot; find the innermost folder of a URI."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from nexus_context.config.picked_model import ModelChoice
from nexus_context.disk.deadline import LoadStopped, Turns
from nexus_context.errors import Problem, RequestError
from nexus_context.folder import loading
from nexus_context.folder.layers.layer_types import DEFAULTS
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY, within
from nexus_context.folder.skills import SKILL_FILE
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_daemon.lsp import convert
from nexus_daemon.workspace.agent_documents import (
    AgentDirectories,
    AgentDocument,
    agent_directories,
    named_document,
)
from nexus_daemon.workspace.fair_threads import FolderThreads
from nexus_daemon.workspace.knowledge import Knowledge
from nexus_daemon.workspace.program_checks import ProgramChecks
from nexus_daemon.workspace.reload import Job, Prepare, Reload, Swap

KEYSTROKE_CHARACTERS = 200_000
"""The longest text that is checked again on the event loop, which takes at most a few milliseconds."""
MOST_PREVIEWS = 64
"""The most documents of one folder that are checked for agents that are not running."""

_NUMBERS = count(1)


class Folder:
    """One workspace folder of one client.

    `number` differs for each folder of each window. `is_listed` says that the client listed it; otherwise it
    is the folder of a lone file. `overlays` are the unsaved texts of the current or pending snapshot, and
    `changed` the only paths that may have changed since the last one, or None if any may have. `watched` are
    the paths that matter to the folder, `watched_by_agents` those that matter to its running or previewed
    agents, `read_by_agents` those that matter to running ones. `previewed` are the open documents that it
    checks for agents that do not run. `programs` are the checks of what assistants read. `choice` is the
    picked model of the snapshot. `trusted` is whether the user trusts the folder, or None if the client does
    not say.
    """

    def __init__(self, uri: str, path: str, name: str) -> None:
        self.uri = uri
        self.path = path
        self.name = name
        self.number = next(_NUMBERS)
        self.is_listed = False
        self.choice: ModelChoice | None = None
        self.trusted: bool | None = None
        self.agent_directories = AgentDirectories()
        self.watched: frozenset[str] = frozenset()
        self.watched_by_agents: frozenset[str] = frozenset()
        self.read_by_agents: frozenset[str] = frozenset()
        self.previewed: Mapping[str, AgentDocument] = {}
        self.changed: frozenset[str] | None = None
        self.overlays: Mapping[str, str] = {}
        self.reload: Reload
        self.knowledge: Knowledge
        self.programs: ProgramChecks

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot, with the problems of the knowledge base. None before the first load."""
        snapshot, problems = self.reload.snapshot, self.knowledge.problems
        if snapshot is None or not problems:
            return snapshot
        return msgspec.structs.replace(snapshot, problems=(*snapshot.problems, *problems))

    def swapped(self, swap: Swap) -> None:
        """Use a new snapshot's paths and settings. The callbacks of the folder table run after this."""
        if swap.moves_files:
            self.watched = frozenset(swap.new.layers.watch)
        if swap.old is None or swap.old.effective is not swap.new.effective:
            self.agent_directories = agent_directories(swap.new)
        self.knowledge.configure(swap.new.layers)

    async def current(self) -> Snapshot:
        """Wait until every change noticed so far is loaded, and return the snapshot.

        RequestError if loading fails.
        """
        await self.reload.settled()
        snapshot = self.snapshot
        if snapshot is None and self.reload.stopped is not None:
            stopped = self.reload.stopped
            raise RequestError(
                f"The folder {self.uri} could not be loaded within {stopped.seconds:g} s: loading stopped at "
                f"{stopped.path}. Make its files fewer or smaller; it loads again when one changes.",
                code="folder-unreadable",
            )
        if snapshot is None:
            raise RequestError(
                f"The folder {self.uri} could not be read; the daemon's log says why.",
                code="folder-unreadable",
            )
        return snapshot

    def agent_document(self, path: str) -> AgentDocument | None:
        """Return the document at a path if only an agent of this folder would read it. Else None."""
        document = named_document(path)
        snapshot = self.reload.snapshot
        if document is None:
            is_read = snapshot is not None and path in snapshot.layers.texts
            return None if is_read else self.agent_directories.document(path)
        config = os.path.dirname(path)
        if os.path.basename(config) == CONFIG_DIRECTORY and within(os.path.dirname(config), self.path):
            return document
        layers = () if snapshot is None else snapshot.layers.layers
        is_layer = any(layer.config_directory == config and layer.name != DEFAULTS for layer in layers)
        return document if is_layer else None

    def depends_on(self, path: str) -> bool:
        """Whether a change of `path` may change this folder's snapshot or an agent's.

        Always true before the first snapshot.
        """
        return self.depends_on_any(watch_entries((path,)))

    def depends_on_any(self, entries: Collection[str]) -> bool:
        """Whether a change of some paths may change a snapshot, as `depends_on`.

        `entries` are their `watch_entries`.

        Computing the entries only once matters, since every folder is tested at each keystroke.
        """
        return (
            self.reload.snapshot is None
            or not self.watched.isdisjoint(entries)
            or not self.watched_by_agents.isdisjoint(entries)
        )

    def may_read(self, path: str, entries: Collection[str], *, is_named: bool) -> bool:
        """Whether the folder or a running agent reads a configuration file, or an agent does by its name.

        `entries` are the `watch_entries` of the path. `is_named` says that the file's name belongs to an
        agent. Before the first snapshot, the location of the file decides.
        """
        if is_named and self.agent_document(path) is not None:
            return True
        if self.reload.snapshot is not None:
            return not (self.watched.isdisjoint(entries) and self.read_by_agents.isdisjoint(entries))
        return within(path, self.path) or within(self.path, os.path.dirname(os.path.dirname(path)))


F = TypeVar("F", bound=Folder)


class FolderEvents(msgspec.Struct, Generic[F], frozen=True):
    """The callbacks of a folder table.

    `swapped` is called after a folder has taken in a new snapshot. `knowledge_moved` is called if the
    directories or problems of a knowledge base change. `programs_checked` is called if the problems of what
    assistants read change; its second argument says whether the paths to watch changed, too. `overdue` is
    called if a folder could not be loaded in time; it keeps its last snapshot, if any. `agent_files_changed`
    gets paths that matter only to agents; a swap reloads agents anyway. `show_work` returns a context in
    which the folder's clients show what is done.
    """

    swapped: Callable[[F, Swap], None]
    knowledge_moved: Callable[[F], None] = lambda _: None
    programs_checked: Callable[[F, bool], None] = lambda *_: None
    overdue: Callable[[F], None] = lambda _: None
    agent_files_changed: Callable[[F, frozenset[str]], None] = lambda *_: None
    show_work: Callable[[F, str], AbstractContextManager[object]] = lambda *_: nullcontext()


class FolderTable(Generic[F]):
    """The folders of one client, each made by `create`, and its unsaved texts. Use it on the event loop.

    `overlays` has the unsaved texts by path. `load_inputs` are those of the client. `windows` returns the
    same folder in all windows, in the order in which they came.
    """

    def __init__(
        self,
        create: Callable[[str, str, str], F],
        load_inputs: LoadInputs,
        executor: Executor,
        *,
        turns: Turns,
        events: FolderEvents[F],
        windows: Callable[[F], Sequence[F]] = lambda folder: (folder,),
    ) -> None:
        self.load_inputs = msgspec.structs.replace(load_inputs, load_vocabulary=False)
        self.overlays: dict[str, str] = {}
        self._create = create
        self._windows = windows
        self._named_documents: dict[str, None] = {}  # open documents that belong to an agent by name
        self._executor = executor
        self._turns = turns
        self._events = events
        self._folders: dict[str, F] = {}

    def __iter__(self) -> Iterator[F]:
        return iter(self._folders.values())

    def __len__(self) -> int:
        return len(self._folders)

    def inputs_of(self, folder: Folder, overlays: Mapping[str, str]) -> LoadInputs:
        """Return the inputs to load a folder and its agents with."""
        trusted = self.load_inputs.trusted if folder.trusted is None else folder.trusted
        return msgspec.structs.replace(self.load_inputs, overlays=overlays, trusted=trusted)

    def add(self, uri: str, *, name: str = "", listed: bool = True, trusted: bool | None = None) -> F | None:
        """Add a folder, or return the existing one, and load it. None if the URI is not a file URI.

        `trusted` is whether the user trusts it; None means that the client does not say.
        """
        key = _key(uri)
        folder = self._folders.get(key)
        if folder is None:
            path = convert.uri_to_path(uri)
            if path is None:
                return None
            folder = self._folders[key] = self._create(uri, path, name or Path(path).name)
            folder.trusted = trusted
            threads = FolderThreads(self._executor)
            folder.reload = Reload(
                self._preparer(folder),
                partial(self._swapped, folder),
                threads,
                turns=self._turns,
                on_overdue=partial(self._overdue, folder),
                show_work=partial(self._events.show_work, folder, f"Nexus: Loading {folder.name}"),
            )
            folder.knowledge = Knowledge(
                path,
                threads,
                user_home=self.load_inputs.user_home,
                environ=self.load_inputs.environ,
                on_move=partial(self._events.knowledge_moved, folder),
                windows=partial(self._knowledge_of_windows, folder),
                show_work=partial(self._events.show_work, folder),
            )
            folder.programs = ProgramChecks(
                path,
                FolderThreads(self._executor),
                self.load_inputs,
                overlays=self.overlays,
                on_checked=partial(self._events.programs_checked, folder),
            )
            folder.reload.request("folder")
        else:
            folder.name = name or folder.name
            if trusted not in (None, folder.trusted):
                folder.trusted = trusted
                folder.reload.request("folder")
        folder.is_listed |= listed
        return folder

    def remove(self, uri: str) -> F | None:
        """Remove a folder and return it. None if there is no such folder."""
        folder = self._folders.pop(_key(uri), None)
        if folder is not None:
            folder.reload.cancel()
        return folder

    def get(self, uri: str) -> F | None:
        return self._folders.get(_key(uri))

    def at_path(self, path: str) -> F | None:
        """Return the folder with this absolute path, or None."""
        return self._folders.get(path)

    def at(self, uri: str) -> F:
        """Return the folder with this URI, or the innermost one that contains it.

        RequestError if there is none.
        """
        exact = self._folders.get(_key(uri))
        if exact is not None:
            return exact
        path = convert.uri_to_path(uri)
        folder = None if path is None else self.containing(path)
        if folder is not None:
            return folder
        uris = ", ".join(folder.uri for folder in self._folders.values()) or "none"
        raise RequestError(
            f"{uri} is in no workspace folder. Known folders: {uris}. Add the folder to the workspace.",
            code="unknown-folder",
        )

    def containing(self, path: str) -> F | None:
        """Return the innermost folder that contains a path, or None."""
        folders = [folder for folder in self._folders.values() if within(path, folder.path)]
        return max(folders, key=lambda folder: len(folder.path)) if folders else None

    def trusts(self, directory: str) -> bool:
        """Whether the user trusts the innermost folder that contains a directory.

        The client or `nexus trust` says so.

        `initializationOptions.trusted` applies to the folders that `initialize` lists; a folder that is added
        later has a `trusted` of its own.
        """
        folder = self.containing(directory)
        snapshot = None if folder is None else folder.snapshot
        return snapshot is not None and snapshot.contents.trusted is True

    def problems_inside(self, folder: F) -> list[Problem]:
        """Return the problems of a folder as editors show them.

        Problems in files that a folder further inside reads are left out.
        """
        snapshot = folder.snapshot
        if snapshot is None:
            return []
        findings = folder.programs.findings(snapshot, folder.overlays)
        problems = snapshot.problems if findings is None else findings.problems
        owners = {path: self.containing(path) for path in {problem.path for problem in problems}}
        return [
            problem
            for problem in problems
            if (owner := owners[problem.path]) in (None, folder) or not owner.depends_on(problem.path)
        ]

    def reading(self, path: str) -> Iterator[F]:
        """Yield the folders that depend on a path.

        Those that contain it come first, the innermost first of all.
        """
        entries = watch_entries((path,))
        folders = [folder for folder in self._folders.values() if folder.depends_on_any(entries)]
        yield from sorted(
            folders, key=lambda folder: len(folder.path) * within(path, folder.path), reverse=True
        )

    def set_overlay(self, path: str, text: str | None, reason: str) -> None:
        """Set the unsaved text of a file, and rebuild the folders that read it. None drops the text."""
        if text is not None:
            self.overlays[path] = text
            if named_document(path) is not None:
                self._named_documents[path] = None
        else:
            self.overlays.pop(path, None)
            self._named_documents.pop(path, None)
        entries = watch_entries((path,))
        for folder in self._folders.values():
            folder.programs.edited(path)
            if folder.depends_on_any(entries):
                folder.reload.request(reason, path)
            elif path in folder.previewed:
                self._events.agent_files_changed(folder, frozenset((path,)))

    def may_read(self, path: str) -> bool:
        """Whether a folder or one of its agents reads a configuration file, as in `Folder.may_read`."""
        entries, is_named = watch_entries((path,)), named_document(path) is not None
        return any(folder.may_read(path, entries, is_named=is_named) for folder in self._folders.values())

    def unread_reason(self, path: str) -> str | None:
        """Say why the innermost folder does not read an instruction file. None if it does, or if unknown."""
        folder = self.containing(path)
        snapshot = None if folder is None else folder.reload.snapshot
        unread = () if snapshot is None else snapshot.layers.unread
        return next((skipped.reason for skipped in unread if skipped.path == path), None)

    def previewer(self, path: str) -> F | None:
        """Return the folder that checks an open document that only an agent would read. None if none does.

        It is preferably the innermost listed folder that contains the document, then one that names the
        agent.
        """

        def nearness(pair: tuple[F, AgentDocument]) -> tuple[bool, bool, bool, int]:
            folder, document = pair
            snapshot = folder.reload.snapshot
            agents = () if snapshot is None else snapshot.effective.get("/agents") or ()
            is_named = document.agent in agents
            return within(path, folder.path), folder.is_listed, is_named, len(folder.path)

        is_named = named_document(path) is not None
        pairs = [
            (folder, document)
            for folder in self._folders.values()
            if is_named or folder.agent_directories.agents
            if (document := folder.agent_document(path)) is not None
        ]
        return max(pairs, key=nearness)[0] if pairs else None

    def update_previewed(self, folder: Folder) -> Mapping[str, AgentDocument]:
        """Set and return the open documents that a folder checks for agents, as path → document.

        There are at most MOST_PREVIEWS.
        """
        paths = self.overlays if folder.agent_directories.agents else self._named_documents
        documents = ((path, folder.agent_document(path)) for path in paths)
        previewed = {
            path: document
            for path, document in documents
            if document is not None and self.previewer(path) is folder
        }
        folder.previewed = dict(islice(previewed.items(), MOST_PREVIEWS))
        return folder.previewed

    def changed(self, paths: Collection[str] | None) -> None:
        """Rebuild what depends on files that changed on disk. None means that any file may have changed."""
        entries = watch_entries(paths or ())
        for folder in self._folders.values():
            folder.programs.changed(paths)
            if paths is None or folder.reload.snapshot is None or not folder.watched.isdisjoint(entries):
                folder.reload.request("disk")  # which reloads agents, too
            elif not folder.watched_by_agents.isdisjoint(entries):
                self._agent_files_changed(folder, paths)

    def reread(self, paths: Collection[str]) -> None:
        """Rebuild what depends on files whose text may have changed since folders began to read them."""
        entries = watch_entries(paths)
        for folder in self._folders.values():
            folder.programs.changed(paths)
            if folder.watched.isdisjoint(entries) and folder.watched_by_agents.isdisjoint(entries):
                continue
            folder_paths = [path for path in paths if not folder.watched.isdisjoint(watch_entries((path,)))]
            for path in folder_paths:
                folder.reload.request("disk", path)  # which reloads agents, too
            self._agent_files_changed(folder, [path for path in paths if path not in folder_paths])

    def _agent_files_changed(self, folder: F, paths: Collection[str]) -> None:
        changed = frozenset(
            path for path in paths if not folder.watched_by_agents.isdisjoint(watch_entries((path,)))
        )
        if changed:
            self._events.agent_files_changed(folder, changed)

    def _knowledge_of_windows(self, folder: F) -> list[Knowledge]:
        return [window.knowledge for window in self._windows(folder)]

    def _beside(self, folder: F) -> Snapshot | None:
        """The snapshot of the first window that came before this one; loads share with it what is equal."""
        for window in self._windows(folder):
            if window is folder:
                break
            if window.reload.snapshot is not None:
                return window.reload.snapshot
        return None

    def _preparer(self, folder: F) -> Prepare:
        def prepare(previous: Snapshot | None, changed: frozenset[str] | None) -> Job | Snapshot:
            folder.overlays, folder.changed = dict(self.overlays), changed
            if previous is not None and changed is not None and len(changed) == 1:
                (path,) = changed
                text = folder.overlays.get(path)
                # a round trip to a thread costs as much as the work itself
                if text is not None and len(text) <= KEYSTROKE_CHARACTERS:
                    snapshot = loading.keystroke(previous, path, text, home=self.load_inputs.home)
                    if snapshot is not None:
                        return snapshot
            inputs = msgspec.structs.replace(self.inputs_of(folder, folder.overlays), choice=folder.choice)
            load = partial(
                loading.load,
                folder.path,
                inputs,
                previous=previous,
                changed=changed,
                beside=self._beside(folder),
            )
            return lambda deadline: load(deadline=deadline)

        return prepare

    def _overdue(self, folder: F, stopped: LoadStopped) -> None:
        """Keep the last snapshot, marked as stale by a revision that no later snapshot has."""
        if folder.reload.snapshot is not None:
            folder.reload.snapshot = loading.overdue(folder.reload.snapshot, stopped)
        self._events.overdue(folder)

    def _swapped(self, folder: F, swap: Swap) -> None:
        folder.swapped(swap)
        self._events.swapped(folder, swap)


def _key(uri: str) -> str:
    """Normalize the URI of a folder: clients differ in escapes and trailing slashes."""
    path = convert.uri_to_path(uri)
    return uri.rstrip("/") if path is None else path


def watch_entries(paths: Collection[str]) -> Collection[str]:
    """Return the entries that may stand for one of these paths in a list of watched paths.

    They are the path itself, and `directory/` for a directory that contains it or its skill: such an entry
    watches the whole directory.
    """
    entries = set(paths)
    for path in paths:
        directory = os.path.dirname(path)
        if os.path.basename(path) == SKILL_FILE:
            directory = os.path.dirname(directory)
        entries.add(directory + os.sep)
    return entries
