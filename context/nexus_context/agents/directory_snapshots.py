"""Keeps a snapshot of each directory in which agents work. These snapshots belong to no agent.

1. The snapshots of all agents in a directory are derived from that directory's snapshot, so that they share
   its texts.
2. When a file that a snapshot depends on may have changed, the snapshot is loaded again: at once if agents
   work in the directory, else when it is next used. The last few directories without an agent stay in memory,
   since people often look at one several times.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from nexus_context.disk.deadline import LOAD_S, Deadline, LoadStopped, Turns
from nexus_context.disk.files import PROMPT_LIMIT, exists, is_dir, read_text, real_path
from nexus_context.errors import RequestError
from nexus_context.folder.layers.walk import within
from nexus_context.folder.loading import load, overdue
from nexus_context.folder.snapshot import LoadInputs, Snapshot

UNUSED_AT_MOST = 4


class DirectorySnapshots:
    """The directory snapshots of one workspace folder, by path. `main` is the snapshot of the folder itself.

    `roots` are all workspace folders. A directory is read as part of the workspace folder that contains it;
    the folder of `main` is tried first. Long loads take `turns`: they run one at a time.
    """

    def __init__(
        self, main: Snapshot, inputs: LoadInputs, roots: Sequence[str] = (), *, turns: Turns | None = None
    ) -> None:
        self.main = main
        self.inputs = inputs
        self._turns = turns
        self.roots = tuple(roots) or (main.folder,)
        self._known: dict[str, Snapshot] = {}  # the last used one is the last
        self._outdated: set[str] = set()
        self._texts: Collection[str] = frozenset()  # paths that have unsaved text, or had some until lately

    def follow(self, main: Snapshot, inputs: LoadInputs) -> None:
        """Replace the workspace folder's snapshot, and the inputs with which later loads are made."""
        self._texts = self.inputs.overlays.keys() | inputs.overlays.keys()
        self.main, self.inputs = main, inputs

    def get(self, path: str) -> Snapshot | None:
        """Return the last snapshot of a directory, without loading it again. Return None if there is none."""
        return self.main if path == self.main.folder else self._known.get(path)

    def now(self, path: str, *, trusted: bool = False) -> Snapshot:
        """Return the snapshot of a directory as its files are now. With `trusted`, the stored snapshot is
        returned unless `outdate` marked it.
        """
        if path == self.main.folder:
            return self.main
        base = self._known.pop(path, None)
        if base is None or not trusted or path in self._outdated:
            base = self._loaded(path, base, None)
            self._outdated.discard(path)
        self._known[path] = base
        return base

    def again(self, paths: Iterable[str], changed: Collection[str] | None) -> dict[str, Snapshot]:
        """Load those of the directories `paths` that the changed files can affect, or all of them if
        `changed` is None. The results are stored only when the caller passes them to `take`.
        """
        candidates = {path: self._known[path] for path in paths if path in self._known}
        if changed is None:
            return {path: self._loaded(path, base, None) for path, base in candidates.items()}
        marks = marks_of(changed)
        touched = {path: base for path, base in candidates.items() if not marks.isdisjoint(base.layers.watch)}
        return {path: self._changed(path, base, changed) for path, base in touched.items()}

    def take(self, loaded: Mapping[str, Snapshot]) -> set[str]:
        """Store these snapshots as the present ones. Return the directories whose snapshot differs from the
        previous one.
        """
        moved = {path for path, now in loaded.items() if now.revision != self._known[path].revision}
        self._known.update(loaded)
        self._outdated.difference_update(loaded)
        return moved

    def outdate(self, changed: Collection[str] | None) -> None:
        """Mark the snapshots that these changed files can affect, so that they are loaded again when they are
        next used. None marks all.
        """
        marks = None if changed is None else marks_of(changed)
        for path, base in self._known.items():
            if marks is None or not marks.isdisjoint(base.layers.watch):
                self._outdated.add(path)

    def keep(self, in_use: Collection[str]) -> None:
        """Forget all directories except those `in_use` and the last few others that were used."""
        unused = [path for path in self._known if path not in in_use]
        for path in unused[:-UNUSED_AT_MOST]:
            del self._known[path]
            self._outdated.discard(path)

    def watch(self) -> set[str]:
        """Return the paths that the snapshots depend on."""
        return {path for base in self._known.values() for path in base.layers.watch}

    def _changed(self, path: str, base: Snapshot, changed: Collection[str]) -> Snapshot:
        touching = [changed_path for changed_path in changed if touches((changed_path,), base)]
        # on the disk, more than a file's text can change: where a link leads, what lies beside the file
        typed = all(changed_path in self._texts for changed_path in touching)
        return self._loaded(path, base, touching if typed else None)

    def _loaded(self, path: str, previous: Snapshot | None, changed: Collection[str] | None) -> Snapshot:
        try:
            with Deadline(LOAD_S, self._turns) as deadline:
                return self._load(path, previous or self._beside(), changed, deadline)
        except LoadStopped as stopped:
            if previous is None:
                raise RequestError(
                    f"{path} could not be loaded within {stopped.seconds:g} s: loading stopped at "
                    f"{stopped.path}. Make its files fewer or smaller.",
                    code="folder-unreadable",
                ) from None
            return overdue(previous, stopped)

    def _load(
        self, path: str, previous: Snapshot, changed: Collection[str] | None, deadline: Deadline
    ) -> Snapshot:
        inputs = msgspec.structs.replace(self.inputs, root=self._root(path), choice=self.main.choice)
        return load(path, inputs, previous=previous, changed=changed, deadline=deadline)

    def _root(self, path: str) -> str:
        """The workspace folder that contains a directory, as written and really; the directory itself if none
        does.

        A directory that now leads out of all of them counts as part of the one that its path is in. Nothing
        in it may be read for that one.
        """
        real = real_path(path)
        inner = sorted(self.roots, key=len, reverse=True)
        holding = [root for root in (self.main.folder, *inner) if within(path, root)]
        for root in holding:
            if within(real, real_path(root)):
                return root
        elsewhere = any(within(real, real_path(root)) for root in self.roots)
        return path if elsewhere or not holding else holding[0]

    def _beside(self) -> Snapshot:
        """The workspace folder's snapshot, for the files that another directory shares with it."""
        layers = msgspec.structs.replace(self.main.layers, memory=self.main.layers.memory.of_files())
        return msgspec.structs.replace(self.main, layers=layers)


def reads_the_same(snapshot: Snapshot, base: Snapshot) -> bool:
    """Whether an agent's own files are unchanged since its snapshot was loaded. These are the files that the
    directory's snapshot `base` does not depend on.
    """
    reads = snapshot.layers.memory.reads
    for path in set(snapshot.layers.watch).difference(base.layers.watch):
        if (read := reads.get(path)) is None:
            if exists(path):
                return False
            continue
        now = read_text(path, limit=PROMPT_LIMIT, previous=read)
        if (now.status, now.text) != (read.status, read.text):
            return False
    return True


def touches(changed: Collection[str], snapshot: Snapshot) -> bool:
    """Whether a snapshot depends on one of the changed files."""
    return not marks_of(changed).isdisjoint(snapshot.layers.watch)


def marks_of(changed: Iterable[str]) -> frozenset[str]:
    """Return the entries of `Layers.watch` that a change of these files affects: their paths and the two
    directories above each.
    """
    marks: set[str] = set()
    for path in changed:
        directory = os.path.dirname(path)
        marks.update((path, directory + os.sep, os.path.dirname(directory) + os.sep))
    return frozenset(marks)


def work_directory(agent: str, cwd: str, *, base: str, roots: Sequence[str]) -> str:
    """Return the absolute path of an agent's directory. `cwd` is relative to `base`, or absolute.

    `roots` are the workspace folders. Raise RequestError, code agent-cwd, if the path is not a directory in
    one of them.
    """
    path = os.path.normpath(os.path.join(base, cwd))
    if "\0" in path:
        raise _cwd_error(agent, path, "is not a valid path. Remove its NUL characters")
    if not is_dir(path):
        raise _cwd_error(agent, path, _cwd_fault(path))
    real = real_path(path)
    if not any(within(real, real_path(root)) for root in roots):
        folders = ", ".join(roots)
        where = f" (it leads to {real})" if real != path else ""
        why = f"is outside every workspace folder{where}. Open it as one, or choose one in {folders}"
        raise _cwd_error(agent, path, why)
    return path


def _cwd_fault(path: str) -> str:
    read = read_text(path, limit=1)
    if read.status == "missing":
        dangling = exists(path)
        return "is a broken symbolic link. Correct it" if dangling else "does not exist. Create it"
    cause = read.problems[0].message if read.problems else ""
    if cause.startswith(_UNREADABLE):
        return "cannot be opened: " + cause.removeprefix(_UNREADABLE).rstrip(".")
    return "is not a directory. Name the directory that the agent works in"


_UNREADABLE = "Cannot read the file: "


def _cwd_error(agent: str, path: str, why: str) -> RequestError:
    return RequestError(f"The cwd of agent {agent!r}, {path}, {why}.", code="agent-cwd")
