"""The directories that agents work in, each as it is for no agent.

1. Agents in one directory share its texts: all are made from its base, which nobody sees.
2. A base is read again where something that matters to it can have changed: at once where agents work, else
   when it is asked for. Of those that nobody works in the last few are kept: people look at one for a while.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from nexus_context.deadline import LOAD_S, Deadline, LoadStopped, Turns
from nexus_context.errors import RequestError
from nexus_context.files import PROMPT_LIMIT, exists, read_text, real_path
from nexus_context.layers.walk import within
from nexus_context.snapshot import LoadInputs, Snapshot, load, overdue

UNUSED_AT_MOST = 4


class DirectorySnapshots:
    """The bases of one workspace folder, by directory. The folder's own is `main`.

    `roots` are all workspace folders; a directory is read as part of the one that it is in, first of `main`.
    `turns` are those that long loads take.
    """

    def __init__(
        self, main: Snapshot, inputs: LoadInputs, roots: Sequence[str] = (), *, turns: Turns | None = None
    ) -> None:
        self.main = main
        self.inputs = inputs
        self._turns = turns
        self.roots = tuple(roots) or (main.folder,)
        self._known: dict[str, Snapshot] = {}  # the one that was asked for last is the last
        self._outdated: set[str] = set()
        self._texts: Collection[str] = frozenset()  # paths that have unsaved text, or had until lately

    def follow(self, main: Snapshot, inputs: LoadInputs) -> None:
        """Take the folder's present snapshot, and what else bases are loaded with."""
        self._texts = self.inputs.overlays.keys() | inputs.overlays.keys()
        self.main, self.inputs = main, inputs

    def get(self, path: str) -> Snapshot | None:
        """What was read last in a directory."""
        return self.main if path == self.main.folder else self._known.get(path)

    def now(self, path: str, *, trusted: bool = False) -> Snapshot:
        """The directory as its files are now; `trusted`: unless `outdate` has told, that is as they were."""
        if path == self.main.folder:
            return self.main
        base = self._known.pop(path, None)
        if base is None or not trusted or path in self._outdated:
            base = self._loaded(path, base, None)
            self._outdated.discard(path)
        self._known[path] = base
        return base

    def again(self, paths: Iterable[str], changed: Collection[str] | None) -> dict[str, Snapshot]:
        """Those of these directories for which something can have changed, as their files are now.

        They are not taken yet.
        """
        candidates = {path: self._known[path] for path in paths if path in self._known}
        if changed is None:
            return {path: self._loaded(path, base, None) for path, base in candidates.items()}
        marks = marks_of(changed)
        touched = {path: base for path, base in candidates.items() if not marks.isdisjoint(base.layers.watch)}
        return {path: self._changed(path, base, changed) for path, base in touched.items()}

    def take(self, loaded: Mapping[str, Snapshot]) -> set[str]:
        """From now on these count; the directories that give something else than before."""
        moved = {path for path, now in loaded.items() if now.revision != self._known[path].revision}
        self._known.update(loaded)
        self._outdated.difference_update(loaded)
        return moved

    def outdate(self, changed: Collection[str] | None) -> None:
        """What changed is to be read when it is asked for; None: anything may have."""
        marks = None if changed is None else marks_of(changed)
        for path, base in self._known.items():
            if marks is None or not marks.isdisjoint(base.layers.watch):
                self._outdated.add(path)

    def keep(self, in_use: Collection[str]) -> None:
        """Forget all but these directories and the last few others."""
        unused = [path for path in self._known if path not in in_use]
        for path in unused[:-UNUSED_AT_MOST]:
            del self._known[path]
            self._outdated.discard(path)

    def watch(self) -> set[str]:
        """The paths that matter to what was read."""
        return {path for base in self._known.values() for path in base.layers.watch}

    def _changed(self, path: str, base: Snapshot, changed: Collection[str]) -> Snapshot:
        touching = [each for each in changed if touches((each,), base)]
        # of a file on the disk more than its text can be another: where it leads, what is beside it
        typed = all(each in self._texts for each in touching)
        return self._loaded(path, base, touching if typed else None)

    def _loaded(self, path: str, before: Snapshot | None, changed: Collection[str] | None) -> Snapshot:
        try:
            with Deadline(LOAD_S, self._turns) as deadline:
                return self._load(path, before or self._beside(), changed, deadline)
        except LoadStopped as stopped:
            if before is None:
                raise RequestError(
                    f"{path} could not be loaded within {stopped.seconds:g} s: it came as far as "
                    f"{stopped.path}. Make its files fewer or smaller.",
                    code="folder-unreadable",
                ) from None
            return overdue(before, stopped)

    def _load(
        self, path: str, previous: Snapshot, changed: Collection[str] | None, deadline: Deadline
    ) -> Snapshot:
        inputs = msgspec.structs.replace(self.inputs, root=self._root(path), choice=self.main.choice)
        return load(path, inputs, previous=previous, changed=changed, deadline=deadline)

    def _root(self, path: str) -> str:
        """The workspace folder that a directory is in, as written and really; it itself if it is in none.

        One that leads out of all of them by now counts as part of the one that it is written in, which
        nothing in it may be read for.
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
        """The workspace folder, for the files that another directory has in common with it."""
        layers = msgspec.structs.replace(self.main.layers, memory=self.main.layers.memory.of_files())
        return msgspec.structs.replace(self.main, layers=layers)


def reads_the_same(snapshot: Snapshot, base: Snapshot) -> bool:
    """Whether the files that an agent reads beside its directory's own are as they were when it was made."""
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
    """Whether some of these files matter to what is seen."""
    return not marks_of(changed).isdisjoint(snapshot.layers.watch)


def marks_of(changed: Iterable[str]) -> frozenset[str]:
    """What `Layers.watch` of those has one of, for whom some of these files matter: it or where it lies."""
    marks: set[str] = set()
    for path in changed:
        above = os.path.dirname(path)
        marks.update((path, above + os.sep, os.path.dirname(above) + os.sep))
    return frozenset(marks)
