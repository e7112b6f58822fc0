"""Keep the knowledge base of one folder: indexed on first use, kept fresh by the watcher, queried with a
message.

1. Nothing is opened, read or watched before the first query, or ever in a folder without paths.
2. While the index is built or updated, a query waits until PATIENCE_S after that began; then the existing
   index answers it.
3. One scan of the disk runs at a time. Changes during a scan lead to one more scan, after QUIET_S for the
   rest of a burst.
4. Up to MOST_WATCHED of the directories with files are watched. Reports can be lost, so a query rescans
   everything if the last full scan is older than RECHECK_S, or than RESCAN_S if not all directories are
   watched or a watch is unconfirmed.
5. Files are indexed as they are on disk, without the unsaved text of editors. The windows of a folder have
   one index: files that the settings of one of them name stay in it.
6. With `memory.knowledge.embeddings`, passages are embedded after each scan, in a task of its own. So words
   are found at once, and meanings once they are embedded. A query waits at most MODEL_PATIENCE_S for the
   model. After that, words alone answer queries until the model has finished.
"""

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nexus_context.config.merge import Provenance
from nexus_context.disk.files import real_path
from nexus_context.errors import Problem, Severity
from nexus_context.folder.layers.layer_types import Layers
from nexus_daemon.process import lazy
from nexus_daemon.workspace.queue import TaskQueue

if TYPE_CHECKING:
    from nexus_context.memory.knowledge import (
        EmbeddingSettings,
        KnowledgeIndex,
        ModelFiles,
        Passage,
        Settings,
        Vectors,
    )
    from nexus_context.tokens import TokenCounter

logger = logging.getLogger(__name__)

PATIENCE_S = 0.1
MODEL_PATIENCE_S = 0.25
WORDS_ONLY = "Files are searched by words only"  # how the problem of a model that cannot be used begins
QUIET_S = 0.03
MOST_WATCHED = 2_000
RESCAN_S = 30.0
RECHECK_S = 600.0


class _Look(NamedTuple):
    """The result of a scan of the disk; None for what the scan did not cover."""

    problems: tuple[Problem, ...] | None = None
    directories: tuple[str, ...] | None = None
    names: frozenset[str] = frozenset()  # the directories, each with a separator at its end


class KnowledgeState(msgspec.Struct, frozen=True, kw_only=True):
    """What is indexed. `paths` and `index` are absolute paths, `files` and `passages` numbers.

    `model` is the model that searches by meaning, or None. `vectors` is the number of different passages that
    it has embedded.
    """

    paths: tuple[str, ...] = ()
    index: str | None = None
    files: int = 0
    passages: int = 0
    model: str | None = None
    vectors: int = 0


class Knowledge:
    """The knowledge base of the folder at an absolute path. Use it on the event loop; it works in `executor`.

    It calls `on_move` on the event loop when `watched()` or `problems` change. `windows` returns the
    knowledge bases of the same folder in all windows. `show_work` returns a context in which the client shows
    what is done.
    """

    def __init__(
        self,
        folder: str,
        executor: Executor,
        *,
        user_home: str,
        environ: Mapping[str, str],
        on_move: Callable[[], None] = lambda: None,
        windows: "Callable[[], Iterable[Knowledge]]" = lambda: (),
        show_work: Callable[[str], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
    ) -> None:
        self._file_problems: tuple[Problem, ...] = ()
        self._model_problems: tuple[Problem, ...] = ()
        self._folder = folder
        self._executor = executor
        self._user_home = user_home
        self._environ = environ
        self._on_move = on_move
        self._windows = windows
        self._settings: Settings | None = None  # of the last scan
        self._show_work = show_work
        self._layers: Layers | None = None
        self._paths: dict[_Name, Provenance] = {}
        self._index: KnowledgeIndex | None = None
        self._opening = threading.Lock()
        self._begun = False
        self._stop = threading.Event()
        self._queue: TaskQueue[frozenset[str] | None] = TaskQueue(self._update, _merge_paths, quiet_s=QUIET_S)
        self._since = 0.0  # when the queue became busy (monotonic seconds)
        self._directories: tuple[str, ...] = ()
        self._names: frozenset[str] = frozenset()  # the same, each with a separator at its end
        self._standing: frozenset[str] = frozenset()  # the names whose watch is confirmed
        # when the last full scan began (monotonic seconds); None asks for a scan. Zero is no substitute:
        # this clock counts from the boot, so zero is recent on a machine that has just started
        self._looked: float | None = None
        self._embedding_queue: TaskQueue[None] = TaskQueue(self._embed, lambda _, __: None)
        self._vectors: tuple[ModelFiles, Vectors] | None = None  # of the model that the settings name
        self._slow_query: Future[list[Passage]] | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of the settings and, after a scan of the disk, also those of the files."""
        return self._file_problems + self._model_problems

    @property
    def is_updating(self) -> bool:
        """Whether files are being indexed or embedded, so that the index may be older than the files."""
        return self._queue.is_busy or self._embedding_queue.is_busy

    def configure(self, layers: Layers) -> None:
        """Apply the settings of a new snapshot, and rescan if their paths changed.

        Unchanged paths cost next to nothing: their problems only move with the text around them.
        """
        self._layers = layers
        previous_paths, self._paths = self._paths, _paths(layers)
        self._file_problems = _moved(self._file_problems, previous_paths, self._paths)
        self._model_problems = _moved(self._model_problems, previous_paths, self._paths)
        if previous_paths.keys() != self._paths.keys():
            self._request(None)

    def watched(self) -> Iterator[str]:
        """Return the paths to watch. Empty before the first query.

        Each path ends with a separator, which stands for every entry of the directory (`watcher.covering`).
        """
        return (os.path.join(directory, "") for directory in self._directories[:MOST_WATCHED])

    def changed(self, paths: set[str] | None) -> None:
        """Handle a watcher report, which also confirms the watch.

        `paths` may have changed; None means any path.
        """
        if not self._begun:
            return
        if paths is None:
            self._standing = self._names
            self._request(None)
            return
        self._standing |= self._names & paths
        mine = {
            path
            for path in paths
            if os.path.join(os.path.dirname(path), "") in self._names or os.path.join(path, "") in self._names
        }
        if mine:
            self._request(mine)

    async def query(
        self,
        text: str,
        counter: "TokenCounter",
        *,
        top_k: int | None = None,
        max_tokens: int | None = None,
    ) -> "list[Passage]":
        """Return the passages that match a text, best first. The limits default to the settings.

        Never raises, whatever state the files and the index are in.
        """
        layers = self._layers
        if layers is None or not self._paths or not text.strip() or self._stop.is_set():
            return []
        await self._settle()
        ask = partial(self._ask, layers, text, counter, top_k=top_k, max_tokens=max_tokens)
        if self._vectors is not None and (self._slow_query is None or self._slow_query.done()):
            self._slow_query = self._executor.submit(partial(ask, vectors=self._vectors[1]))
            with contextlib.suppress(TimeoutError):
                answer = asyncio.shield(asyncio.wrap_future(self._slow_query))
                return await asyncio.wait_for(answer, MODEL_PATIENCE_S)
            logger.info("the model took too long: passages are found by words only")
        return await asyncio.get_running_loop().run_in_executor(self._executor, ask)

    async def state(self) -> KnowledgeState:
        """Return what is indexed now. Like a query, it starts the index and waits for it.

        IndexBusyError or IndexLostError if the index cannot be read.
        """
        layers = self._layers
        if layers is None or not self._paths or self._stop.is_set():
            return KnowledgeState()
        await self._settle()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._executor, self._read_state, layers)
        except lazy.knowledge.IndexLostError:
            self._looked = None  # the next call scans again
            raise

    async def close(self) -> None:
        """Stop the work under way after its current file, and close the index."""
        self._stop.set()
        await self._queue.close()
        await self._embedding_queue.close()
        index, self._index = self._index, None
        if index is not None:
            with contextlib.suppress(RuntimeError):  # the threads have ended, and the process is about to
                await asyncio.get_running_loop().run_in_executor(self._executor, index.close)

    async def _settle(self) -> None:
        """Request what `_begin` says, and wait for the index until PATIENCE_S after its update began."""
        self._begin()
        if self._queue.is_busy:
            patience_s = self._since + PATIENCE_S - time.monotonic()
            with contextlib.suppress(TimeoutError, asyncio.InvalidStateError):  # the latter if it is closed
                async with asyncio.timeout(max(patience_s, 0.0)):
                    await self._queue.settled()

    def _begin(self) -> None:
        """Request a full scan if there was none yet, or the last one is too old."""
        is_fully_watched = self._standing == self._names and len(self._directories) <= MOST_WATCHED
        limit_s = RECHECK_S if is_fully_watched else RESCAN_S
        late = self._looked is None or time.monotonic() - self._looked > limit_s
        if not self._begun or (late and not self._queue.is_busy):
            self._begun = True
            self._request(None)

    def _request(self, paths: Iterable[str] | None) -> None:
        if self._stop.is_set():
            return
        if not self._queue.is_busy:
            self._since = time.monotonic()
        is_awaited = self._begun and self._looked is None  # a query waits for the first scan
        self._queue.request(None if paths is None else frozenset(paths), at_once=is_awaited)

    async def _update(self, paths: frozenset[str] | None) -> None:
        """Scan these paths, or all if None, and apply the result."""
        if self._begun and paths is None:
            self._looked = time.monotonic()
        layers = self._layers
        work = partial(self._look, layers, paths, begun=self._begun, windows=tuple(self._windows()))
        try:
            with self._show_work("Nexus: Indexing the knowledge base"):
                look = await asyncio.get_running_loop().run_in_executor(self._executor, work)
            if look is not None and layers is not None:
                self._take(look, _paths(layers))
                if _embeds(layers) or self._vectors is not None or self._model_problems:
                    self._embedding_queue.request(None)
        except Exception:  # a bug, or the threads have ended: the next query tries again
            if not self._stop.is_set():
                self._looked = None
                logger.exception("updating the knowledge base failed")

    def _take(self, look: "_Look", paths: "Mapping[_Name, Provenance]") -> None:
        """Apply the result of a scan that ran with these paths in the settings."""
        previous_state = self.problems, self._directories[:MOST_WATCHED]
        if look.directories is not None:
            self._standing &= look.names
            self._directories, self._names = look.directories, look.names
        if look.problems is not None:
            self._file_problems = _moved(look.problems, paths, self._paths)
        if previous_state != (self.problems, self._directories[:MOST_WATCHED]):
            self._on_move()

    async def _embed(self, _: None) -> None:
        """Embed the passages that have no vector, as the settings say."""
        layers = self._layers
        if layers is None or self._stop.is_set():
            return
        work = partial(self._embed_passages, layers, begun=self._begun)
        try:
            with self._show_work("Nexus: Preparing the knowledge base for search by meaning"):
                problems = await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except Exception:  # a bug, or the threads have ended: the next query tries again
            if not self._stop.is_set():
                self._looked = None
                logger.exception("embedding the knowledge base failed")
            return
        problems = _moved(problems, _paths(layers), self._paths)
        if problems != self._model_problems:
            self._model_problems = problems
            self._on_move()

    def _embed_passages(self, layers: Layers, *, begun: bool) -> tuple[Problem, ...]:
        """Check the settings' model and, after the first query, embed passages; in a worker thread."""
        settings, _ = lazy.knowledge.settings_of(layers, self._user_home)
        embeddings = settings.embeddings
        if embeddings is None:
            self._vectors = None
            return ()
        try:
            files = lazy.knowledge.find_model(embeddings.model)
            if not begun:
                return ()
            vectors = self._loaded_vectors(files, embeddings)
            if vectors.refresh(stopped=self._stop.is_set).is_limited:
                vector_limit = lazy.knowledge.MOST_VECTORS
                message = (
                    f"There are too many passages: only the first {vector_limit:,} are searched by meaning. "
                    "Name fewer directories, or use patterns."
                )
                return (_model_problem(embeddings, message),)
        except lazy.knowledge.EmbeddingError as error:
            self._vectors = None
            return (_model_problem(embeddings, f"{WORDS_ONLY}: {error}."),)
        except (lazy.knowledge.IndexLostError, lazy.knowledge.IndexBusyError) as error:
            logger.debug("%s", error)
            self._looked = None  # the next query scans again
        return ()

    def _loaded_vectors(self, files: "ModelFiles", embeddings: "EmbeddingSettings") -> "Vectors":
        if self._vectors is None or self._vectors[0] != files:
            model = lazy.knowledge.load_model(files)
            self._vectors = files, lazy.knowledge.Vectors(self._opened(), model)
        vectors = self._vectors[1]
        vectors.min_similarity = embeddings.min_similarity
        return vectors

    def _look(
        self,
        layers: Layers | None,
        pending: frozenset[str] | None,
        *,
        begun: bool,
        windows: "Iterable[Knowledge]",
    ) -> "_Look | None":
        """Check the settings' paths and, after the first query, scan the files; in a worker thread."""
        if layers is None:
            return None
        other_windows = [window for window in windows if window is not self]
        settings, problems = lazy.knowledge.settings_of(layers, self._user_home)
        if not begun:
            return _Look(problems)
        self._settings = settings
        other_settings = [
            known_settings
            for window in other_windows
            if (known_settings := window._settings) is not None  # noqa: SLF001
        ]
        try:
            scan = lazy.knowledge.refresh(
                self._opened(),
                settings,
                changed=pending,
                stopped=self._stop.is_set,
                keeps=lambda path: any(window_settings.covers(path) for window_settings in other_settings),
            )
        except lazy.knowledge.IndexBusyError as error:
            logger.debug("%s", error)
            self._looked = None  # the next query tries again
            return None
        for skipped_file in scan.skipped:
            logger.info("not indexed: %s: %s", skipped_file.path, skipped_file.reason)
        if self._stop.is_set():
            return None
        if scan.directories is None:
            return _Look()
        names = frozenset(os.path.join(directory, "") for directory in scan.directories)
        return _Look((*problems, *scan.problems), scan.directories, names)

    def _ask(
        self,
        layers: Layers,
        text: str,
        counter: "TokenCounter",
        *,
        top_k: int | None,
        max_tokens: int | None,
        vectors: "Vectors | None" = None,
    ) -> "list[Passage]":
        """Ask the index, in a worker thread."""
        settings, _ = lazy.knowledge.settings_of(layers, self._user_home)
        return lazy.knowledge.query(
            self._opened(),
            text,
            counter,
            top_k=settings.top_k if top_k is None else top_k,
            max_tokens=settings.max_tokens if max_tokens is None else max_tokens,
            accepts=settings.covers,
            vectors=vectors,
        )

    def _read_state(self, layers: Layers) -> KnowledgeState:
        """Read the state of the index, in a worker thread."""
        settings, _ = lazy.knowledge.settings_of(layers, self._user_home)
        if not settings.places:
            return KnowledgeState()
        index = self._opened()
        files, passages = index.totals()
        vectors = self._vectors
        return KnowledgeState(
            paths=tuple(place.selection for place in settings.places),
            index=index.location,
            files=files,
            passages=passages,
            model=None if vectors is None else vectors[1].embedder.name,
            vectors=0 if vectors is None else vectors[1].count,
        )

    def _opened(self) -> "KnowledgeIndex":
        """The index; in a worker thread."""
        with self._opening:
            if self._index is None:
                self._index = lazy.knowledge.KnowledgeIndex(
                    lazy.knowledge.index_path(real_path(self._folder), self._environ)
                )
            return self._index


_EMBEDDINGS = "/memory/knowledge/embeddings"

_Name = tuple[str, str, int]
"""Identifies a path in the settings: its layer, its text, and how often that layer named it before.

Of the settings of the model, the text is key and value, and the number is -1.
"""


def _paths(layers: Layers) -> dict[_Name, Provenance]:
    """The paths that the settings of a folder name, and how they are to be embedded."""
    entries: dict[_Name, Provenance] = {}
    paths = layers.effective.get("/memory/knowledge/paths")
    for index in range(len(paths or ())):
        for entry in layers.effective.provenance.get(f"/memory/knowledge/paths/{index}", ()):
            if not entry.ignored:
                layer, text, number = entry.layer, str(entry.value), 0
                while (layer, text, number) in entries:
                    number += 1
                entries[layer, text, number] = entry
    if entries:
        for key in ("enabled", "model", "min_similarity") if _embeds(layers) else ():
            for entry in layers.effective.provenance.get(f"{_EMBEDDINGS}/{key}", ()):
                if entry.wins and entry.document is not None:
                    entries[entry.layer, f"{key}: {entry.value}", -1] = entry
    return entries


def _embeds(layers: Layers) -> bool:
    return layers.effective.get(f"{_EMBEDDINGS}/enabled") is True


def _model_problem(embeddings: "EmbeddingSettings", message: str) -> Problem:
    return Problem(embeddings.path, embeddings.span, "config.knowledge", Severity.WARNING, message=message)


def _moved(
    problems: tuple[Problem, ...],
    previous_paths: Mapping[_Name, Provenance],
    current_paths: Mapping[_Name, Provenance],
) -> tuple[Problem, ...]:
    """Move the problems to where their paths are now, and drop those of removed paths."""
    if not problems or all(current_paths.get(name) is entry for name, entry in previous_paths.items()):
        return problems
    places = {(entry.path, entry.span): current_paths.get(name) for name, entry in previous_paths.items()}
    moved_problems = ((problem, places.get((problem.path, problem.span))) for problem in problems)
    return tuple(
        msgspec.structs.replace(problem, path=entry.path, span=entry.span)
        for problem, entry in moved_problems
        if entry is not None
    )


def _merge_paths(earlier: frozenset[str] | None, later: frozenset[str] | None) -> frozenset[str] | None:
    """The paths of two requests; None means all."""
    return None if earlier is None or later is None else earlier | later
