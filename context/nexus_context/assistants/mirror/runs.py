"""Mirrors the files of other assistants into a ledger: all of them, or one session.

1. A file whose stamp is unchanged costs one `stat`. Any other file is read from where the last run ended, if
   possible (`excerpts`). This is done in a thread of its own, while what was read before is written.
2. A file that cannot be read is a failure of that file alone. LedgerError ends the run; what was written
   stays.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from queue import Queue
from threading import Event, Thread

import msgspec

from nexus_context.assistants.mirror import excerpts, transcript_files
from nexus_context.assistants.mirror.excerpts import Progress, TranscriptExcerpt, progress_of
from nexus_context.assistants.mirror.session_writer import (
    CounterOf,
    FileOutcome,
    SessionWriter,
    Write,
    failed,
)
from nexus_context.assistants.mirror.transcript_files import TranscriptFile
from nexus_context.assistants.sessions.session_types import Place, is_within
from nexus_context.ledger.records import MirroredFile
from nexus_context.ledger.store import Ledger
from nexus_context.tokens import counter_for

OnProgress = Callable[[int, int], None]


class MirrorSummary(msgspec.Struct, frozen=True):
    """The outcome of a run. `unchanged` counts the files that were not read; of the others, `size` bytes were
    read.
    """

    files: tuple[FileOutcome, ...]
    unchanged: int
    size: int

    def total(self, field: str) -> int:
        """Add up one number, such as "turns", over all files."""
        return sum(getattr(file, field) for file in self.files)


def mirror_files(
    ledger: Ledger,
    home: str,
    environ: Mapping[str, str],
    *,
    folder: str | None = None,
    assistant: str | None = None,
    counter_of: CounterOf = lambda model: counter_for(model or ""),
    on_progress: OnProgress = lambda _done, _size: None,
) -> MirrorSummary:
    """Mirror the sessions that other assistants have in a folder and below, or everywhere if `folder` is
    None.

    `home` and `environ` say where these programs write. `on_progress` gets the bytes read so far, and those
    to be read in all. Raise LedgerError if the ledger cannot be written; what was written before stays.
    """
    place = Place(home, environ)
    return _run(
        ledger,
        list(transcript_files.list_files(place, folder, assistant)),
        folder=folder,
        counter_of=counter_of,
        on_progress=on_progress,
    )


def mirror_session(
    ledger: Ledger,
    path: str,
    assistant: str,
    *,
    counter_of: CounterOf = lambda model: counter_for(model or ""),
    write: Write | None = None,
) -> MirrorSummary:
    """Mirror the session of one file and those of its sub-agents. A hook of an assistant calls this.

    `path` is the transcript that the hook names, or for "opencode" its database; `assistant` is one of
    `PROGRAMS`. It may be called as often as one likes, also by several processes at once: what is there
    already is not written again. If the file is missing, the summary is empty; if it cannot be read, the
    summary has a `failure`. `write` replaces `MirrorStore.write` in a program in which only one thread
    writes. Raise LedgerError if the ledger cannot be written.
    """
    file = transcript_files.file_at(path, assistant)
    if file is None:
        return MirrorSummary((), 0, 0)
    agents = transcript_files.agents_of(path, assistant)
    return _run(
        ledger,
        [file, *agents],
        folder=None,
        counter_of=counter_of,
        on_progress=lambda _done, _size: None,
        write=write,
    )


def _run(
    ledger: Ledger,
    files: Sequence[TranscriptFile],
    *,
    folder: str | None,
    counter_of: CounterOf,
    on_progress: OnProgress,
    write: Write | None = None,
) -> MirrorSummary:
    stored_files = ledger.mirrors.files()
    rows = {
        file.path: stored_files[file.path]
        for file in files
        if file.path in stored_files and _knows_forks(file, stored_files)
    }
    changed = [file for file in files if file.path not in rows or rows[file.path].stamp != file.stamp]
    changed.sort(key=lambda file: file.stamp[3])  # the newest last, as it would have come
    starts = {file.path: progress_of(rows.get(file.path)) for file in changed}
    size = sum(max(file.stamp[2] - starts[file.path].offset, 0) for file in changed)
    writer = SessionWriter(ledger, folder, counter_of, rows, write=write or ledger.mirrors.write)
    done = 0
    on_progress(done, size)
    transcripts = [file for file in changed if not file.is_database]
    for excerpt in _read_ahead(transcripts, starts, folder):
        if isinstance(excerpt, FileOutcome):
            writer.outcomes[excerpt.path] = excerpt
            continue
        writer.take(excerpt)
        done += excerpt.size
        on_progress(done, max(size, done))
    writer.finish()
    for file in changed:
        if file.is_database:
            writer.take_database(file)
    unchanged = len(files) - len(changed)
    if folder is not None:  # of Codex, those of other folders are listed, too
        paths = {file.path for file in changed}
        other_rows = [rows[file.path] for file in files if file.path not in paths]
        unchanged = sum(is_within(progress_of(row).folder or folder, folder) for row in other_rows)
    return MirrorSummary(tuple(writer.outcomes.values()), unchanged, writer.size)


def _knows_forks(file: TranscriptFile, rows: Mapping[str, MirroredFile]) -> bool:
    """Whether who read a file knew of `history_base`: else what Codex's forks share may be missing."""
    return file.assistant != "codex" or '"shared_until"' in rows[file.path].progress


# ---------------------------------------------------------------- reading


def _read_ahead(
    files: Sequence[TranscriptFile], starts: Mapping[str, Progress], folder: str | None
) -> Iterator[TranscriptExcerpt | FileOutcome]:
    """The excerpts of files, read by a thread while those before are written."""
    if len(files) < 2 and sum(file.stamp[2] for file in files) < excerpts.PIECE:
        yield from _read_all(files, starts, folder)
        return
    queue: Queue[TranscriptExcerpt | FileOutcome | BaseException | None] = Queue(maxsize=2)
    stopped = Event()

    def read() -> None:
        try:
            for excerpt in _read_all(files, starts, folder):
                queue.put(excerpt)
                if stopped.is_set():
                    return
            queue.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the queue is read
            queue.put(error)

    thread = Thread(target=read, name="mirror-reader", daemon=True)
    thread.start()
    try:
        while (excerpt := queue.get()) is not None:
            if isinstance(excerpt, BaseException):
                raise excerpt
            yield excerpt
    finally:
        stopped.set()
        while thread.is_alive():
            while not queue.empty():
                queue.get_nowait()
            thread.join(0.01)


def _read_all(
    files: Iterable[TranscriptFile], starts: Mapping[str, Progress], folder: str | None
) -> Iterator[TranscriptExcerpt | FileOutcome]:
    for file in files:
        try:
            yield from _read_file(file, starts[file.path], folder)
        except FileNotFoundError:  # it was deleted meanwhile: what is there stays
            continue
        except Exception as error:  # noqa: BLE001 - one file must not keep the others from being read
            yield failed(file, error)


def _read_file(file: TranscriptFile, start: Progress, folder: str | None) -> Iterator[TranscriptExcerpt]:
    if folder is not None and start.folder is None and not is_within(excerpts.peek_folder(file), folder):
        return
    if folder is not None and start.folder is not None and not is_within(start.folder, folder):
        return
    yield from excerpts.read_excerpts(file, start, now=time.time())
