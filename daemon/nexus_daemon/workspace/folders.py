"""The folder table: folder URI → snapshot and conversations; the innermost folder of a URI."""

import asyncio
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nexus_context import snapshot as snapshots
from nexus_context.config.picked_model import ModelChoice
from nexus_context.deadline import LoadStopped, Turns
from nexus_context.errors import RequestError
from nexus_context.layers.model import DEFAULTS
from nexus_context.layers.walk import CONFIG_DIRECTORY
from nexus_context.skills import SKILL_FILE
from nexus_context.snapshot import LoadInputs, Snapshot
from nexus_daemon.agents.previews import MOST_DRAFTS, Configured, Draft, begin, configured, draft_of
from nexus_daemon.lsp import convert
from nexus_daemon.sessions.conversations import Conversations
from nexus_daemon.sessions.ledger_writer import FolderLedger
from nexus_daemon.workspace.knowledge import Knowledge
from nexus_daemon.workspace.reload import Job, Prepare, Reload

if TYPE_CHECKING:  # most folders have no agents
    from nexus_daemon.agents.registry import Agents
    from nexus_daemon.state import Daemon

KEYSTROKE_CHARACTERS = 200_000
"""Texts up to this length are checked again on the loop, which takes at most a few milliseconds."""


class Folder:
    """One workspace folder.

    `owners` are who brought it: true where they listed it, false where it is the folder of a lone file.
    `overlays` are the unsaved texts that the snapshot, or the one that is being made, was made with, and
    `changed` the only paths that can have changed for it; None: any. `agents` come with the first request
    or document about one; `watched_by_agents` are the paths that matter to them beside the folder's own
    `watched`, and to those that are only looked at; `read_by_agents` those that matter to live ones.
    `configured` is where agents of the settings would work. `knowledge` asks nothing of the disk before it is
    asked itself. `focus` is the conversation that the user looks at, as far as a client has said; `choice`
    the picked model that the snapshot is made for.
    """

    def __init__(self, uri: str, path: str, *, name: str) -> None:
        self.uri = uri
        self.path = path
        self.name = name
        self.owners: dict[object, bool] = {}
        self.conversations = Conversations()
        self.ledger: FolderLedger | None = None  # once a session was asked for
        self.focus: str | None = None
        self.choice: ModelChoice | None = None
        self.agents: Agents | None = None
        self.configured = Configured()
        self.watched: frozenset[str] = frozenset()
        self.watched_by_agents: frozenset[str] = frozenset()
        self.read_by_agents: frozenset[str] = frozenset()
        self.changed: frozenset[str] | None = None
        self.overlays: Mapping[str, str] = {}
        self.reload: Reload
        self.knowledge: Knowledge
        self._beginning: asyncio.Task[None] | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot, with what was found wrong where the files of the knowledge base were looked for."""
        made, more = self.reload.snapshot, self.knowledge.problems
        if made is None or not more:
            return made
        return msgspec.structs.replace(made, problems=(*made.problems, *more))

    async def current(self) -> Snapshot:
        """The snapshot with every change that was noticed so far."""
        await self.reload.settled()
        snapshot = self.snapshot
        if snapshot is None and self.reload.stopped is not None:
            stopped = self.reload.stopped
            raise RequestError(
                f"The folder {self.uri} could not be loaded within {stopped.seconds:g} s: it came as far as "
                f"{stopped.path}. Make its files fewer or smaller: it is loaded again when one changes.",
                code="folder-unreadable",
            )
        if snapshot is None:
            raise RequestError(
                f"The folder {self.uri} could not be read; the daemon's log says why.",
                code="folder-unreadable",
            )
        return snapshot

    async def close(self) -> None:
        """The folder has gone, or the daemon ends: end what goes on for it."""
        self.reload.cancel()
        if self._beginning is not None:
            self._beginning.cancel()
            await asyncio.wait([self._beginning])
        if self.agents is not None:
            await self.agents.close()
        await self.knowledge.close()

    def check_draft(self, daemon: "Daemon", path: str) -> None:
        """See to it that an open document is checked that only an agent would read (`FolderTable.drafting`).

        The agents that this takes are made once: where they cannot be, the next document does not try again.
        """
        if self.agents is not None:
            self.agents.check_draft(path)
        elif self._beginning is None:
            self._beginning = asyncio.get_running_loop().create_task(begin(daemon, self))

    def drafts(self, path: str) -> Draft | None:
        """What a document is to the folder, if it is one that only an agent would read."""
        draft = draft_of(path)
        snapshot = self.reload.snapshot
        if draft is None:
            read = snapshot is not None and path in snapshot.layers.texts
            return None if read else self.configured.draft(path)
        config = os.path.dirname(path)
        if os.path.basename(config) == CONFIG_DIRECTORY and _contains(self.path, os.path.dirname(config)):
            return draft
        layers = () if snapshot is None else snapshot.layers.layers
        has = any(one.config_directory == config and one.name != DEFAULTS for one in layers)
        return draft if has else None

    def cares_about(self, path: str) -> bool:
        """Whether a change of `path` can change this folder's snapshot, or an agent's; any can before there
        is one.
        """
        return self.reload.snapshot is None or self._watches(path)

    def changed_on_disk(self, paths: Collection[str] | None) -> None:
        """These paths may have changed, or, None, anything may have: look again at what reads them."""
        if paths is None or self.reload.snapshot is None:
            self.reload.request("disk")
        elif any(_watches(self.watched, path) for path in paths):
            self.reload.request("disk")  # after which agents are loaded again, too
        elif self.agents is not None:
            mine = frozenset(path for path in paths if _watches(self.watched_by_agents, path))
            if mine:
                self.agents.noticed(mine)

    def reread(self, paths: Collection[str]) -> None:
        """The texts of these files may be others than were read."""
        own = {path for path in paths if _watches(self.watched, path)}
        for path in own:
            self.reload.request("disk", path)  # after which agents are told, too
        rest = frozenset(path for path in paths if path not in own and _watches(self.watched_by_agents, path))
        if rest and self.agents is not None:
            self.agents.noticed(rest)

    def may_read(self, path: str) -> bool:
        """Whether the folder or a live agent reads a configuration file, or its name says whose it is.

        Before the first snapshot where it lies counts.
        """
        draft = self.drafts(path)
        if draft is not None and draft.kind:
            return True
        if self.reload.snapshot is not None:
            return _watches(self.watched, path) or _watches(self.read_by_agents, path)
        return _contains(self.path, path) or _contains(os.path.dirname(os.path.dirname(path)), self.path)

    def _watches(self, path: str) -> bool:
        return _watches(self.watched, path) or _watches(self.watched_by_agents, path)


OnSwap = Callable[[Folder, Snapshot | None, Snapshot, frozenset[str]], None]
OnMove = Callable[[Folder], None]


class FolderTable:
    """Every folder of this daemon. Lives on the event loop.

    Folders and unsaved texts belong to whoever brought them, and go with the last one who did. `overlays`
    has one text a path: of several owners' texts the one that was set last. `on_move` is called when a
    folder's knowledge base has other directories or problems than before, `on_overdue` when one could not be
    loaded in time: it then has its last snapshot, or none. `load_inputs` are read once, at the start.
    """

    def __init__(
        self,
        load_inputs: LoadInputs,
        executor: Executor,
        turns: Turns,
        on_swap: OnSwap,
        on_move: OnMove = lambda _: None,
        on_overdue: OnMove = lambda _: None,
    ) -> None:
        self.load_inputs = msgspec.structs.replace(load_inputs, load_vocabulary=False)
        self.overlays: dict[str, str] = {}
        self._drafts: dict[str, None] = {}  # of the open documents those that are an agent's by their name
        self._texts: dict[str, dict[object, str]] = {}
        self._executor = executor
        self._turns = turns
        self._on_swap = on_swap
        self._on_move = on_move
        self._on_overdue = on_overdue
        self._folders: dict[str, Folder] = {}

    def __iter__(self) -> Iterator[Folder]:
        return iter(self._folders.values())

    def __len__(self) -> int:
        return len(self._folders)

    def add(self, uri: str, *, name: str = "", listed: bool = True, owner: object = None) -> Folder | None:
        """Take a folder in and start reading it; None when the URI is not a file URI. Known ones stay."""
        key = _key(uri)
        folder = self._folders.get(key)
        if folder is None:
            path = convert.uri_to_path(uri)
            if path is None:
                return None
            folder = self._folders[key] = Folder(uri, path, name=name or Path(path).name)
            folder.reload = Reload(
                self._preparer(folder),
                self._swapper(folder),
                self._executor,
                self._turns,
                partial(self._overdue, folder),
            )
            folder.knowledge = Knowledge(
                path,
                self._executor,
                user_home=self.load_inputs.user_home,
                environ=self.load_inputs.environ,
                moved=partial(self._on_move, folder),
            )
            folder.reload.request("folder")
        folder.owners[owner] = folder.owners.get(owner, False) or listed
        return folder

    def remove(self, uri: str, *, owner: object = None) -> Folder | None:
        """Let go of a folder; it is returned when nobody else has it, and gone."""
        folder = self._folders.get(_key(uri))
        if folder is None or owner not in folder.owners:
            return None
        del folder.owners[owner]
        if folder.owners:
            return None
        del self._folders[_key(uri)]
        folder.reload.cancel()
        return folder

    def get(self, uri: str) -> Folder | None:
        return self._folders.get(_key(uri))

    def at(self, uri: str) -> Folder:
        """The folder with this URI, or the innermost one that contains it."""
        exact = self._folders.get(_key(uri))
        if exact is not None:
            return exact
        path = convert.uri_to_path(uri)
        inside = [f for f in self._folders.values() if path is not None and _contains(f.path, path)]
        if inside:
            return max(inside, key=lambda f: len(f.path))
        known = ", ".join(f.uri for f in self._folders.values()) or "none"
        raise RequestError(
            f"{uri} is in no workspace folder. Known folders: {known}. Add the folder to the workspace.",
            code="unknown-folder",
        )

    def containing(self, path: str) -> Folder | None:
        """The innermost folder that contains a path."""
        inside = [f for f in self._folders.values() if _contains(f.path, path)]
        return max(inside, key=lambda f: len(f.path)) if inside else None

    def reading(self, path: str) -> Iterator[Folder]:
        """The folders whose snapshot depends on a path, the innermost that contain it first."""
        caring = [folder for folder in self._folders.values() if folder.cares_about(path)]
        yield from sorted(
            caring, key=lambda folder: len(folder.path) * _contains(folder.path, path), reverse=True
        )

    def set_overlay(self, path: str, text: str | None, reason: str, *, owner: object = None) -> None:
        """Set or drop an owner's unsaved text of a file, and rebuild the folders that read it."""
        texts = self._texts.setdefault(path, {})
        texts.pop(owner, None)
        if text is not None:
            texts[owner] = text
        if texts:
            self.overlays[path] = next(reversed(texts.values()))
            if draft_of(path) is not None:
                self._drafts[path] = None
        else:
            del self._texts[path]
            self.overlays.pop(path, None)
            self._drafts.pop(path, None)
        drafting = self.drafting(path)
        for folder in self._folders.values():
            if folder.cares_about(path):
                folder.reload.request(reason, path)
            elif folder is drafting and folder.agents is not None:
                folder.agents.noticed(frozenset((path,)))

    def is_open(self, path: str, owner: object) -> bool:
        """Whether an owner has brought a text of a file: it is open there."""
        return owner in self._texts.get(path, ())

    def drafting(self, path: str) -> Folder | None:
        """The folder that is to check a document that only an agent would read; None: there is none.

        Of several the one that it lies in, the innermost that a client listed; else one that names the agent.
        """

        def nearness(one: tuple[Folder, Draft]) -> tuple[bool, bool, bool, int]:
            folder, draft = one
            snapshot = folder.reload.snapshot
            agents = () if snapshot is None else snapshot.effective.get("/agents") or ()
            listed, named = any(folder.owners.values()), draft.agent in agents
            return _contains(folder.path, path), listed, named, len(folder.path)

        looked = ((folder, folder.drafts(path)) for folder in self._folders.values())
        found = [(folder, draft) for folder, draft in looked if draft is not None]
        return max(found, key=nearness)[0] if found else None

    def drafts_of(self, folder: Folder) -> dict[str, Draft]:
        """The open documents that a folder is to check as if an agent lived; at most MOST_DRAFTS."""
        among = self.overlays if folder.configured.agents else self._drafts
        found = ((path, folder.drafts(path)) for path in among)
        mine = {path: draft for path, draft in found if draft is not None and self.drafting(path) is folder}
        return dict(islice(mine.items(), MOST_DRAFTS))

    def drop_overlays(self, owner: object) -> None:
        """Drop every unsaved text of an owner."""
        for path in [path for path, texts in self._texts.items() if owner in texts]:
            self.set_overlay(path, None, "disk", owner=owner)

    def changed(self, paths: Collection[str] | None) -> None:
        """Files changed on disk, None: any may have. Rebuild the folders that read them."""
        for folder in self._folders.values():
            folder.changed_on_disk(paths)

    def reread(self, paths: Collection[str]) -> None:
        """Texts of files that folders have begun to read may be others by now."""
        for folder in self._folders.values():
            folder.reread(paths)

    def _preparer(self, folder: Folder) -> Prepare:
        def prepare(previous: Snapshot | None, changed: frozenset[str] | None) -> Job | Snapshot:
            folder.overlays, folder.changed = dict(self.overlays), changed
            if previous is not None and changed is not None and len(changed) == 1:
                (path,) = changed
                text = folder.overlays.get(path)
                # a thread and back costs as much as the work itself
                if text is not None and len(text) <= KEYSTROKE_CHARACTERS:
                    typed = snapshots.keystroke(previous, path, text, home=self.load_inputs.home)
                    if typed is not None:
                        return typed
            inputs = msgspec.structs.replace(self.load_inputs, overlays=folder.overlays, choice=folder.choice)
            load = partial(snapshots.load, folder.path, inputs, previous=previous, changed=changed)
            return lambda deadline: load(deadline=deadline)

        return prepare

    def _overdue(self, folder: Folder, stopped: LoadStopped) -> None:
        """The last snapshot stays, and says so: it has a revision of its own, which no later one has."""
        if folder.reload.snapshot is not None:
            folder.reload.snapshot = snapshots.overdue(folder.reload.snapshot, stopped)
        self._on_overdue(folder)

    def _swapper(self, folder: Folder) -> Callable[[Snapshot | None, Snapshot, frozenset[str]], None]:
        def swap(old: Snapshot | None, new: Snapshot, reasons: frozenset[str]) -> None:
            if old is None or old.layers.watch != new.layers.watch:
                folder.watched = frozenset(new.layers.watch)
            if old is None or old.effective is not new.effective:
                folder.configured = configured(new)
            self._on_swap(folder, old, new, reasons)

        return swap


def _key(uri: str) -> str:
    """One spelling for the URIs of one folder: clients differ in escapes and in a last slash."""
    path = convert.uri_to_path(uri)
    return uri.rstrip("/") if path is None else path


def _watches(watched: Collection[str], path: str) -> bool:
    """Whether a path is watched, or is in a directory of which all matters, or is a skill's there."""
    if path in watched:
        return True
    above = os.path.dirname(path)
    if os.path.basename(path) == SKILL_FILE:
        above = os.path.dirname(above)
    return above + os.sep in watched


def _contains(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
