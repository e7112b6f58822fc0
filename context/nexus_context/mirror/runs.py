"""Mirrors the files of other assistants into a ledger: all of them, or one session.

1. A file whose stamp is unchanged costs one `stat`. Another one is read from where the last run ended, if
   possible (`excerpts`), in a thread of its own, while what was read before is written.
2. Small files are written together: each transaction waits for the disk once.
3. If somebody else writes to a session meanwhile, another mirror for example, the ledger is read again.
4. A file that cannot be read is a failure of that file. LedgerError ends everything; what was written stays.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os.path import expanduser
from queue import Queue
from threading import Event, Thread
from typing import Any

import apsw
import msgspec

from nexus_context.assistant_sessions import claude_code, opencode
from nexus_context.assistant_sessions.model import Place, is_within, utc
from nexus_context.conversation.transcripts import Conversation
from nexus_context.ledger.errors import HeadMovedError
from nexus_context.ledger.opening import workspace_of
from nexus_context.ledger.records import (
    MirroredFile,
    MirroredSession,
    MirrorTurns,
    NewTurn,
    SessionOrigin,
)
from nexus_context.ledger.store import Ledger
from nexus_context.mirror import excerpts, opencode_export, transcript_files
from nexus_context.mirror.excerpts import Progress, TranscriptExcerpt
from nexus_context.mirror.existing_turns import Addition, compare_with_ledger, position_before
from nexus_context.mirror.growth import measure_growth
from nexus_context.mirror.session_turns import count_messages, name_of, new_turns
from nexus_context.mirror.transcript_files import TranscriptFile
from nexus_context.tokens import TokenCounter, counter_for, family_of_counter

logger = logging.getLogger(__name__)

TOGETHER = 8 << 20
"""Bytes of files that are written in one transaction."""

MOST_TOGETHER = 200
"""Files that are written in one transaction."""

MOST_MEASURED = 64
"""Conversations of a family of models whose growth is measured in one run: no more count."""

ATTEMPTS = 4

Position = tuple[int, int]
"""Messages and turns of a session."""

OnProgress = Callable[[int, int], None]
CounterOf = Callable[[str | None], TokenCounter]


class FileOutcome(msgspec.Struct, frozen=True):
    """What became of a file that had changed: how many sessions, turns and messages were written, and where.

    `problems` say what of the file could not be read, `failure` why none of it was.
    """

    assistant: str
    path: str
    sessions: tuple[str, ...] = ()
    new: int = 0
    continued: int = 0
    forked: int = 0
    deleted: int = 0
    turns: int = 0
    messages: int = 0
    problems: tuple[str, ...] = ()
    failure: str | None = None


class MirrorSummary(msgspec.Struct, frozen=True):
    """The outcome of a run. `unchanged` files were not read; `size` bytes were read of the others."""

    files: tuple[FileOutcome, ...]
    unchanged: int
    size: int

    def total(self, field: str) -> int:
        """The sum of a number of all files."""
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
    """Mirror the sessions that Claude Code, Codex and opencode have in a folder and below, or everywhere.

    `home` and `environ` say where these programs write. `on_progress` gets the bytes read so far, and those
    to be read in all. LedgerError if the ledger cannot be written; what was written before stays.
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
) -> MirrorSummary:
    """Mirror the session of one file, and those of its sub-agents: what a hook of an assistant calls.

    `path` is the transcript that the hook names; `assistant` is "claude-code", "codex" or "opencode" (then
    the path of its database). It may be called as often as one likes, also by several processes at once:
    what is there already is not written again. A file that is missing gives an empty summary; one that cannot
    be read is a `failure` in it. LedgerError if the ledger cannot be written.
    """
    file = transcript_files.file_at(path, assistant)
    if file is None:
        return MirrorSummary((), 0, 0)
    agents = transcript_files.agents_of(path) if assistant == claude_code.NAME else ()
    return _run(
        ledger, [file, *agents], folder=None, counter_of=counter_of, on_progress=lambda _done, _size: None
    )


def _run(
    ledger: Ledger,
    files: Sequence[TranscriptFile],
    *,
    folder: str | None,
    counter_of: CounterOf,
    on_progress: OnProgress,
) -> MirrorSummary:
    rows = ledger.mirrored_files()
    changed = [file for file in files if file.path not in rows or rows[file.path].stamp != file.stamp]
    changed.sort(key=lambda file: file.stamp[3])  # the newest last, as it would have come
    starts = {file.path: _start_of(rows.get(file.path)) for file in changed}
    size = sum(max(file.stamp[2] - starts[file.path].offset, 0) for file in changed)
    writer = _Writer(ledger, folder, counter_of, rows)
    done = 0
    on_progress(done, size)
    transcripts = [file for file in changed if file.assistant != opencode.NAME]
    for excerpt in _read_ahead(transcripts, starts, folder):
        if isinstance(excerpt, FileOutcome):
            writer.outcomes[excerpt.path] = excerpt
            continue
        writer.take(excerpt)
        done += excerpt.size
        on_progress(done, max(size, done))
    writer.flush()
    for file in changed:
        if file.assistant == opencode.NAME:
            writer.take_database(file)
    unchanged = len(files) - len(changed)
    if folder is not None:  # of Codex, those of other folders are listed, too
        paths = {file.path for file in changed}
        rest = [rows[file.path] for file in files if file.path not in paths]
        unchanged = sum(is_within(_start_of(row).folder or folder, folder) for row in rest)
    return MirrorSummary(tuple(writer.outcomes.values()), unchanged, writer.size)


def _start_of(row: MirroredFile | None) -> Progress:
    try:
        return Progress() if row is None else msgspec.json.decode(row.progress, type=Progress)
    except msgspec.DecodeError:  # another version wrote it
        return Progress()


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
        except OSError as error:
            reason = error.strerror or str(error)
            yield FileOutcome(file.assistant, file.path, failure=f"it cannot be read: {reason}")
        except Exception as error:
            logger.debug("%s cannot be mirrored", file.path, exc_info=True)
            reason = f"an error in Nexus ({type(error).__name__}: {str(error)[:200]}); please report it"
            yield FileOutcome(file.assistant, file.path, failure=reason)


def _read_file(file: TranscriptFile, start: Progress, folder: str | None) -> Iterator[TranscriptExcerpt]:
    if folder is not None and start.folder is None and not is_within(excerpts.peek_folder(file.path), folder):
        return
    if folder is not None and start.folder is not None and not is_within(start.folder, folder):
        return
    now = time.time()
    while True:
        excerpt = excerpts.read_excerpt(file, start, now=now)
        if excerpt is None:
            start = Progress()
            continue
        yield excerpt
        if excerpt.is_last:
            return
        start = excerpt.next


# ---------------------------------------------------------------- writing


class _Pending(msgspec.Struct):
    """What is to be written of one excerpt."""

    excerpt: TranscriptExcerpt
    changes: list[MirrorTurns]
    row: MirroredFile
    outcome: FileOutcome


class _Writer:
    """Compares excerpts with a ledger, and writes what is new."""

    def __init__(
        self, ledger: Ledger, folder: str | None, counter_of: CounterOf, rows: Mapping[str, MirroredFile]
    ) -> None:
        self.outcomes: dict[str, FileOutcome] = {}
        self.size = 0
        self._ledger = ledger
        self._folder = folder
        self._counter_of = counter_of
        self._rows = rows
        self._imported: dict[str, tuple[str, str]] | None = None
        self._pending: list[_Pending] = []
        self._pending_size = 0
        self._measured: dict[str, int] = {}  # conversations of each family
        self._positions: dict[
            str, dict[str, tuple[int, int]]
        ] = {}  # by path, of a file that is read in pieces
        self._reread: set[str] = set()  # files of which further pieces are of no use

    def take(self, excerpt: TranscriptExcerpt) -> None:
        """Write an excerpt, perhaps with later ones."""
        self.size += excerpt.size
        path = excerpt.file.path
        if path in self._reread:
            return
        if path in self._positions:
            excerpt = msgspec.structs.replace(
                excerpt, start=msgspec.structs.replace(excerpt.start, positions=self._positions[path])
            )
        if not excerpt.is_whole or not excerpt.is_last:
            self.flush()
            self._write_alone(excerpt)
            return
        try:
            self._pending.append(self._pending_of(excerpt))
        except HeadMovedError:
            self.flush()
            self._write_alone(excerpt)
        self._pending_size += excerpt.size
        if self._pending_size > TOGETHER or len(self._pending) >= MOST_TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Write what is pending."""
        pending, self._pending, self._pending_size = self._pending, [], 0
        if not pending:
            return
        changes = [change for each in pending for change in each.changes]
        try:
            self._ledger.mirror(changes, [each.row for each in pending])
        except HeadMovedError:  # somebody else mirrors, or two files have the same session
            for each in pending:
                self._write_alone(each.excerpt)
            return
        for each in pending:
            self._note(each.outcome)

    def take_database(self, file: TranscriptFile) -> None:
        """Write the sessions of opencode that have changed."""
        row = self._rows.get(file.path)
        read: dict[str, int] = {} if row is None else msgspec.json.decode(row.progress, type=dict[str, int])
        outcome = FileOutcome(file.assistant, file.path)
        is_complete = True
        try:
            for session in opencode_export.read_changed(file.path, read, self._folder):
                self.size += session.size
                if session.conversation is not None:
                    excerpt = _excerpt_of(file, session)
                    for _ in range(ATTEMPTS):
                        pending = self._pending_of(excerpt)
                        try:
                            self._ledger.mirror(pending.changes)
                            outcome = _sum(outcome, pending.outcome)
                            break
                        except HeadMovedError:
                            continue
                    else:
                        is_complete = False
                        continue
                read = {**read, session.id: session.changed}
        except apsw.Error as error:
            outcome = msgspec.structs.replace(outcome, failure=f"it cannot be read: {error}")
            is_complete = False
        # a run for one folder leaves the others for later
        stamp = file.stamp if is_complete and self._folder is None else ()
        self._ledger.mirror((), [MirroredFile(file.path, stamp, msgspec.json.encode(read).decode())])
        self._note(outcome)

    def _write_alone(self, excerpt: TranscriptExcerpt) -> None:
        """Write one excerpt at once; the ledger is read again if somebody else wrote to it."""
        for _ in range(ATTEMPTS):
            try:
                pending = self._pending_of(excerpt)
                self._ledger.mirror(pending.changes, [pending.row])
            except HeadMovedError:
                continue
            except _UnclearError:
                again = excerpts.read_excerpt(excerpt.file, Progress(), now=time.time())
                self._reread.add(excerpt.file.path)
                if again is None:
                    break
                excerpt = again
                continue
            self._note(pending.outcome)
            return
        reason = "others write to its session all the time; run the command again"
        self._note(FileOutcome(excerpt.file.assistant, excerpt.file.path, failure=reason))

    def _note(self, outcome: FileOutcome) -> None:
        before = self.outcomes.get(outcome.path)
        self.outcomes[outcome.path] = outcome if before is None else _sum(before, outcome)

    def _pending_of(self, excerpt: TranscriptExcerpt) -> _Pending:
        """What to write of an excerpt. _UnclearError: the whole file has to be read."""
        file = excerpt.file
        pending = _Pending(
            excerpt, [], MirroredFile(file.path, (), ""), FileOutcome(file.assistant, file.path)
        )
        positions = dict(excerpt.start.positions)
        is_aligned = True
        for number, conversation in enumerate(excerpt.conversations):
            position, end = self._add(pending, conversation, is_main=number == 0)
            is_aligned = is_aligned and position is not None
            positions[conversation.id or ""] = position or end
        progress = msgspec.structs.replace(excerpt.next, positions=positions)
        if not is_aligned and excerpt.stamp[2] <= excerpts.WHOLE:
            progress = msgspec.structs.replace(progress, offset=0, mark="")
        elif not is_aligned:  # what was read is not read again
            progress = excerpts.at_end(excerpt, progress)
        if not progress.offset:
            progress = msgspec.structs.replace(progress, positions={})
        self._positions[file.path] = positions
        is_done = excerpt.is_last and not excerpt.is_waiting
        stamp = excerpt.stamp if is_done else ()
        pending.row = MirroredFile(file.path, stamp, msgspec.json.encode(progress).decode())
        pending.outcome = msgspec.structs.replace(pending.outcome, problems=excerpt.problems)
        return pending

    def _add(
        self, pending: _Pending, conversation: Conversation, *, is_main: bool
    ) -> tuple[Position | None, Position]:
        """Add what is new of a conversation; returns where its session is read on, and its end."""
        excerpt = pending.excerpt
        origin = _origin(excerpt, conversation, is_main=is_main)
        existing = self._ledger.mirrored_session(origin.assistant, origin.id)
        if existing is not None and existing.session is None:
            pending.outcome = _sum(pending.outcome, msgspec.structs.replace(pending.outcome, deleted=1))
            return (0, 0), (0, 0)
        after = existing or self._imported_session(origin)
        addition = Addition("new", conversation.messages)
        if after is not None:
            addition = self._addition(after, conversation, excerpt)
        is_new = addition.way == "new"
        turns = new_turns(conversation, addition.rest, origin, is_new=is_new) if addition.rest else []
        is_reported = after is not None and after.is_reported
        if turns and not is_reported:
            is_reported = self._measure(conversation, turns)
        if turns or existing is None or existing.origin != origin:
            pending.changes.append(
                MirrorTurns(
                    origin=origin,
                    workspace=workspace_of(excerpt.next.folder or expanduser("~")),
                    name=name_of(conversation, origin),
                    turns=tuple(turns),
                    after=None if is_new else after,
                    base=addition.base,
                    existing=existing,
                    is_reported=is_reported,
                    changed=utc(excerpt.stamp[3]),
                )
            )
            pending.outcome = _sum(pending.outcome, _outcome(pending.outcome, addition, turns, after))
        following = excerpt.following.get(conversation.id or "", ())
        end = position_before(addition, turns, ())
        return position_before(addition, turns, following), end or (0, 0)

    def _addition(
        self, after: MirroredSession, conversation: Conversation, excerpt: TranscriptExcerpt
    ) -> Addition:
        position = excerpt.start.positions.get(conversation.id or "")
        if position is None:
            is_later = not excerpt.is_whole and after.head is not None
            position = (after.head.messages, after.head.seq) if is_later and after.head else (0, 0)
        can_reread = not excerpt.is_whole and excerpt.stamp[2] <= excerpts.WHOLE
        addition = compare_with_ledger(
            self._ledger, after, conversation.messages, position=position, can_reread=can_reread
        )
        if addition.way == "unclear":
            raise _UnclearError
        if addition.way == "forked" and not addition.rest:  # it was cleared: go on in a fork
            fork = MirrorTurns(
                origin=after.origin,
                workspace=after.workspace,
                name=after.session or "",
                turns=(),
                after=after,
                base=addition.base,
                existing=after,
                is_reported=after.is_reported,
            )
            self._ledger.mirror([fork])
            raise HeadMovedError(after.session or "")
        return addition

    def _imported_session(self, origin: SessionOrigin) -> MirroredSession | None:
        """The session that was imported from the same file before it was mirrored."""
        if self._imported is None:
            self._imported = self._ledger.imported_sessions()
        place = self._imported.get(origin.id)
        session = None if place is None else self._ledger.find(*place)
        if session is None or session.origin is not None or session.forked_from is not None:
            return None
        return MirroredSession(
            origin, session.workspace, session.name, turn=None, head=session.head, is_reported=True
        )

    def _measure(self, conversation: Conversation, turns: list[NewTurn]) -> bool:
        """Add a report of the provider's usages to the last turn; whether there is one."""
        if conversation.model is None or len(conversation.answers) < 2:
            return False
        counter = self._counter_of(conversation.model)
        family = family_of_counter(counter).name
        if self._measured.get(family, 0) >= MOST_MEASURED:
            return False
        counts = count_messages(conversation.messages)
        report = measure_growth(conversation, counts, counter)
        if report is None:
            return False
        self._measured[family] = self._measured.get(family, 0) + 1
        turns[-1] = msgspec.structs.replace(turns[-1], report=report)
        return True


class _UnclearError(Exception):
    """A piece of a file does not fit what the ledger has."""


def _origin(excerpt: TranscriptExcerpt, conversation: Conversation, *, is_main: bool) -> SessionOrigin:
    file = excerpt.file
    is_file = is_main and (conversation.agent is None or file.is_agent or file.assistant == opencode.NAME)
    parent = excerpt.next.parent if is_file else excerpt.next.session_id or file.session_id
    return SessionOrigin(file.assistant, conversation.id or file.session_id, file.path, parent)


def _excerpt_of(file: TranscriptFile, session: opencode_export.ExportedSession) -> TranscriptExcerpt:
    """A session of opencode, which is read as a whole."""
    conversations = () if session.conversation is None else (session.conversation,)
    progress = Progress(session_id=session.id, folder=session.folder, parent=session.parent)
    stamp: Any = (0, 0, session.size, session.changed * 1_000_000, 0)
    return TranscriptExcerpt(
        file=file,
        start=Progress(),
        next=progress,
        stamp=stamp,
        conversations=tuple(msgspec.structs.replace(one, id=session.id) for one in conversations),
        following={},
        size=session.size,
        is_whole=True,
        is_last=True,
        problems=session.problems,
    )


def _outcome(
    outcome: FileOutcome, addition: Addition, turns: Sequence[NewTurn], after: MirroredSession | None
) -> FileOutcome:
    """What the turns of one conversation add to an outcome."""
    name = () if after is None or after.session is None else (after.session,)
    return FileOutcome(
        outcome.assistant,
        outcome.path,
        sessions=name,
        new=int(addition.way == "new"),
        continued=int(addition.way == "continued"),
        forked=int(addition.way == "forked"),
        turns=len(turns),
        messages=sum(len(turn.messages) for turn in turns),
    )


def _sum(one: FileOutcome, other: FileOutcome) -> FileOutcome:
    numbers = ("new", "continued", "forked", "deleted", "turns", "messages")
    return FileOutcome(
        one.assistant,
        one.path,
        sessions=tuple(dict.fromkeys((*one.sessions, *other.sessions))),
        problems=tuple(dict.fromkeys((*one.problems, *other.problems))),
        failure=other.failure or one.failure,
        **{name: getattr(one, name) + getattr(other, name) for name in numbers},
    )
