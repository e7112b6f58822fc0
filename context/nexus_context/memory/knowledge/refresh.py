"""Brings the index up to date with the disk.

1. A file whose stamp is unchanged is not read. A file whose text is unchanged is not indexed again.
2. Unusable files (too large, binary, not UTF-8, of another user) are not in the index, and are reported.
3. Transactions are small: queries in between see the present state.
4. If only some paths changed, only those are read, unless one is a directory.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from nexus_context.disk.files import FileRead, RealFiles, is_dir
from nexus_context.disk.ownership import trusted_read
from nexus_context.errors import Problem
from nexus_context.folder.layers.layer_types import Skipped
from nexus_context.folder.layers.walk import RealPaths, needs_examination
from nexus_context.memory.knowledge.chunks import chunks
from nexus_context.memory.knowledge.file_selection import MOST_FILES, KnowledgePath, Settings, walk
from nexus_context.memory.knowledge.passage_index import (
    Changed,
    Indexed,
    IndexedPassage,
    IndexLostError,
    KnowledgeIndex,
)
from nexus_context.memory.knowledge.terms import searchable

FILE_LIMIT = 1 << 20
"""Largest file that is indexed, in bytes."""

BATCH_CHARACTERS = 500_000
BATCH_FILES = 200
MOST_SKIPPED = 100
TRAIL = " › "
_ATTEMPTS = 4


class Refreshed(msgspec.Struct, frozen=True):
    """The result of a refresh.

    `directories` are those that were searched, beginning with those that have selected files. It is None if
    only single files were read. `changed` and `removed` are numbers of files, and `skipped` has the first
    unusable files.
    """

    changed: int = 0
    removed: int = 0
    directories: tuple[str, ...] | None = None
    problems: tuple[Problem, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def refresh(
    index: KnowledgeIndex,
    settings: Settings,
    *,
    changed: Collection[str] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    keeps: Callable[[str], bool] = lambda _: False,
) -> Refreshed:
    """Bring the index up to date. If `changed` is not None, only these absolute paths are checked.

    `stopped` is called between two files; when it returns true, the refresh ends, and what is done by then
    stays done. `keeps` says which files stay in the index although the settings do not select them, because
    other folders that share the index do. Raise IndexBusyError if another process holds the index for too
    long.
    """
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            if changed is not None:
                done = _some(index, settings, changed, stopped, keeps=keeps)
                if done is not None:
                    return done
            return _all(index, settings, stopped, keeps=keeps)
        except IndexLostError:
            if not attempts_left:
                raise
            changed = None
    raise AssertionError("unreachable: the last attempt returns or raises")


def _all(
    index: KnowledgeIndex, settings: Settings, stopped: Callable[[], bool], *, keeps: Callable[[str], bool]
) -> Refreshed:
    walked = walk(settings, stopped)
    indexed = index.indexed_files()
    update = _Update(index, indexed)
    for path, knowledge_path in walked.files.items():
        if stopped():
            break
        update.look(path, knowledge_path)
    if not stopped():  # otherwise there may be more files than were listed
        gone = (path for path in indexed if path not in walked.files)
        update.let_go(path for path in gone if settings.covers(path) or not keeps(path))
    update.flush()
    file_directories = {os.path.dirname(path): None for path in walked.files}
    return update.done(tuple(file_directories | walked.directories), walked.problems)


def _some(
    index: KnowledgeIndex,
    settings: Settings,
    changed: Collection[str],
    stopped: Callable[[], bool],
    *,
    keeps: Callable[[str], bool],
) -> Refreshed | None:
    """As `refresh` for some paths; None if everything has to be read."""
    meant: dict[str, KnowledgePath] = {}
    for path in changed:
        if is_dir(path) or index.has_below(path):
            return None
        knowledge_path = next(
            (knowledge_path for knowledge_path in settings.places if knowledge_path.covers(path)), None
        )
        if knowledge_path is not None:
            meant[path] = knowledge_path
    indexed = index.indexed_files(changed)
    files, _ = index.totals()
    if files + len(meant) - len(indexed) > MOST_FILES:
        return None
    update = _Update(index, indexed)
    for path, knowledge_path in meant.items():
        if stopped():
            break
        if knowledge_path.permits(path):
            update.look(path, knowledge_path)
        else:
            update.let_go([path])
    update.let_go(path for path in indexed if path not in meant and not keeps(path))
    update.flush()
    return update.done(None, [])


class _Update:
    """One refresh: what waits to be written, and what was done."""

    def __init__(self, index: KnowledgeIndex, indexed: Mapping[str, Indexed]) -> None:
        self._index = index
        self._known = indexed
        self._put: list[Changed] = []
        self._gone: list[str] = []
        self._characters = 0
        self._changed = self._removed = 0
        self._skipped: list[Skipped] = []
        self._real_paths = RealPaths()
        self._files = RealFiles()

    def look(self, path: str, knowledge_path: KnowledgePath) -> None:
        """Read a file's present state."""
        indexed_before = self._known.get(path)
        real = self._real_paths[path]
        previous = (
            FileRead(path, "loaded", None, stamp=indexed_before.stamp, real=real) if indexed_before else None
        )
        reason = knowledge_path.forbidden(path, self._real_paths.__getitem__)
        if reason is not None:
            read = FileRead(path, "unreadable", None)
        else:
            read = self._files.read(path, real, limit=FILE_LIMIT, previous=previous)
            if read is previous:
                return
            reason = _unusable(read, knowledge_path)
        if reason is not None or read.text is None or read.stamp is None:
            if reason:
                self._skipped.append(Skipped(path, reason))
            self.let_go([path])
            return
        digest = hashlib.blake2b(read.text.encode(), digest_size=16).digest()
        indexed = Indexed(read.stamp, digest)
        if indexed_before is not None and indexed_before.digest == digest:
            self._put.append(Changed(path, indexed, None))
        else:
            self._put.append(Changed(path, indexed, tuple(passages(path, read.text))))
            self._characters += len(read.text)
            self._changed += 1
        if self._characters > BATCH_CHARACTERS or len(self._put) >= BATCH_FILES:
            self.flush()

    def let_go(self, paths: Iterable[str]) -> None:
        """Drop indexed files."""
        self._gone += [path for path in paths if path in self._known]

    def flush(self) -> None:
        """Write what is pending."""
        if self._put or self._gone:
            self._index.write(self._put, self._gone)
        self._removed += len(self._gone)
        self._put, self._gone, self._characters = [], [], 0

    def done(self, directories: tuple[str, ...] | None, problems: list[Problem]) -> Refreshed:
        skipped = tuple(self._skipped[:MOST_SKIPPED])
        return Refreshed(self._changed, self._removed, directories, tuple(problems), skipped=skipped)


def passages(path: str, text: str) -> list[IndexedPassage]:
    """Divide a text into passages for the index. The words of the file's name are searchable, too."""
    name = os.path.splitext(os.path.basename(path))[0]
    indexed_passages = []
    for chunk in chunks(path, text):
        heading = TRAIL.join(chunk.heading)
        words = searchable(f"{name} {heading}")
        indexed_passages.append(
            IndexedPassage(heading, chunk.text, chunk.span, words, words=searchable(chunk.text))
        )
    return indexed_passages


def _unusable(read: FileRead, knowledge_path: KnowledgePath) -> str | None:
    """Why a file is not indexed; empty if it does not exist."""
    if read.status == "missing":
        return ""
    if read.status != "loaded":
        return read.problems[0].message if read.problems else read.status
    if knowledge_path.in_workspace and needs_examination(read.path, strict=knowledge_path.strict):
        return trusted_read(read)
    return None
