"""Compares what was read with the ledger, and writes what is new.

1. Small files are written together, so that they wait for the disk once.
2. If somebody else, such as another mirror, writes to a session meanwhile, the ledger is read again.
3. An error in Nexus is a failure of the file that it came with. LedgerError ends the run; what was written
   stays.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from os.path import expanduser, isabs
from typing import Any, Protocol

import apsw
import msgspec

from nexus_context.assistants.importing import Conversation
from nexus_context.assistants.mirror import excerpts
from nexus_context.assistants.mirror.excerpts import Progress, TranscriptExcerpt
from nexus_context.assistants.mirror.existing_turns import (
    Addition,
    compare_with_ledger,
    compare_with_origin,
    position_before,
    shared_turns,
)
from nexus_context.assistants.mirror.growth import measure_growth
from nexus_context.assistants.mirror.session_turns import count_messages, name_of, new_turns
from nexus_context.assistants.mirror.transcript_files import TranscriptFile
from nexus_context.assistants.opencode import export as opencode_export
from nexus_context.assistants.sessions.session_types import utc
from nexus_context.ledger.errors import HeadMovedError, LedgerError
from nexus_context.ledger.location import workspace_of
from nexus_context.ledger.records import MirroredFile, MirroredSession, MirrorTurns, NewTurn, SessionOrigin
from nexus_context.ledger.store import Ledger
from nexus_context.text.decoding import decode_as
from nexus_context.tokens import TokenCounter, family_of_counter

logger = logging.getLogger(__name__)

TOGETHER = 8 << 20
"""Bytes of files that are written in one transaction."""

MOST_TOGETHER = 200
"""Files that are written in one transaction."""

MOST_MEASURED = 32
"""Conversations of a family of models whose growth is measured in one run."""

ATTEMPTS = 4
_BUSY = "others write to its session all the time; run the command again"

Position = tuple[int, int]
"""Messages and turns of a session."""

CounterOf = Callable[[str | None], TokenCounter]


class Write(Protocol):
    """Writes to the ledger as `MirrorStore.write` does."""

    def __call__(self, changes: Sequence[MirrorTurns], files: Iterable[MirroredFile] = ()) -> None: ...


class FileOutcome(msgspec.Struct, frozen=True):
    """The outcome of a changed file: the names of the sessions that were written, and how many sessions,
    turns and messages.

    `problems` say what of the file could not be read. `failure` says why nothing of it was read, else it is
    None.
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


class _Pending(msgspec.Struct):
    """What is to be written of one excerpt."""

    excerpt: TranscriptExcerpt
    changes: list[MirrorTurns]
    row: MirroredFile
    outcome: FileOutcome


class SessionWriter:
    """Compares excerpts with a ledger, and writes what is new. Call `finish` after the last excerpt."""

    def __init__(
        self,
        ledger: Ledger,
        folder: str | None,
        counter_of: CounterOf,
        rows: Mapping[str, MirroredFile],
        *,
        write: Write,
    ) -> None:
        self.outcomes: dict[str, FileOutcome] = {}
        self.size = 0
        self._ledger = ledger
        self._write = write
        self._folder = folder
        self._counter_of = counter_of
        self._rows = rows
        self._imported: dict[str, tuple[str, str]] | None = None
        self._pending: list[_Pending] = []
        self._incomplete: list[MirroredSession] = []
        self._deferred: list[TranscriptExcerpt] | None = []  # forks; None once they are written
        self._pending_size = 0
        self._measured: dict[str, int] = {}  # conversations of each family
        self._positions: dict[
            str, dict[str, tuple[int, int]]
        ] = {}  # by path, of a file that is read in pieces
        self._reread: set[str] = set()  # files of which further pieces are of no use

    def take(self, excerpt: TranscriptExcerpt) -> None:
        """Write an excerpt, at once or together with later ones."""
        self.size += excerpt.size
        path = excerpt.file.path
        if path in self._reread:
            return
        origin = excerpt.next.fork_of
        if origin is not None and excerpt.is_whole and excerpt.is_last and self._deferred is not None:
            self._deferred.append(excerpt)  # its origin first
            return
        if path in self._positions:
            excerpt = msgspec.structs.replace(
                excerpt, start=msgspec.structs.replace(excerpt.start, positions=self._positions[path])
            )
        try:
            if excerpt.is_whole and excerpt.is_last:
                self._pending.append(self._pending_of(excerpt))
            else:
                self.flush()
                self._write_alone(excerpt)
        except HeadMovedError:
            self.flush()
            self._write_alone(excerpt)
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - one file must not keep the others from being written
            self._reread.add(path)
            self._note(failed(excerpt.file, error))
        self._pending_size += excerpt.size
        if self._pending_size > TOGETHER or len(self._pending) >= MOST_TOGETHER:
            self.flush()

    def finish(self) -> None:
        """Write what is not written yet, each fork after its origin."""
        self.flush()
        forks, self._deferred = self._deferred or [], None
        while forks:
            ids = {excerpt.file.session_id.rpartition("-")[2] for excerpt in forks}
            ready = [
                excerpt for excerpt in forks if (excerpt.next.fork_of or "").rpartition("-")[2] not in ids
            ] or forks
            forks = [excerpt for excerpt in forks if excerpt not in ready]
            for excerpt in ready:
                self.size -= excerpt.size  # it was counted when it was read
                self.take(excerpt)
            self.flush()
        for mirrored_session in self._incomplete:  # their program's sessions are the forks now
            self._ledger.delete(mirrored_session.workspace, mirrored_session.session or "")

    def flush(self) -> None:
        """Write the excerpts that wait to be written together."""
        pending, self._pending, self._pending_size = self._pending, [], 0
        if not pending:
            return
        changes = [change for pending_write in pending for change in pending_write.changes]
        try:
            self._write(changes, [pending_write.row for pending_write in pending])
        except HeadMovedError:  # somebody else mirrors, or two files have the same session
            for pending_write in pending:
                self._write_alone(pending_write.excerpt)
            return
        for pending_write in pending:
            self._note(pending_write.outcome)

    def take_database(self, file: TranscriptFile) -> None:
        """Write those sessions of opencode's database that have changed."""
        row = self._rows.get(file.path)
        try:
            read = {} if row is None else decode_as(row.progress, dict[str, int])
        except msgspec.DecodeError:  # another version wrote it
            read = {}
        outcome = FileOutcome(file.assistant, file.path)
        is_complete = True
        try:
            for session in opencode_export.read_changed(file.path, read, self._folder):
                self.size += session.size
                if session.conversation is not None:
                    excerpt = _excerpt_of(file, session)
                    written = self._write_session(excerpt)
                    outcome = _sum(outcome, written)
                    if written.failure is not None:
                        is_complete = False
                        continue
                read = {**read, session.id: session.changed}
        except apsw.Error as error:
            outcome = msgspec.structs.replace(outcome, failure=f"it cannot be read: {error}")
            is_complete = False
        # a run for one folder leaves the others for later
        stamp = file.stamp if is_complete and self._folder is None else ()
        self._write((), [MirroredFile(file.path, stamp, msgspec.json.encode(read).decode())])
        self._note(outcome)

    def _write_session(self, excerpt: TranscriptExcerpt) -> FileOutcome:
        """Write a session of a database."""
        for _ in range(ATTEMPTS):
            try:
                pending = self._pending_of(excerpt)
                self._write(pending.changes)
                return pending.outcome
            except HeadMovedError:
                continue
            except LedgerError:
                raise
            except Exception as error:  # noqa: BLE001 - as above
                return failed(excerpt.file, error)
        return FileOutcome(excerpt.file.assistant, excerpt.file.path, failure=_BUSY)

    def _write_alone(self, excerpt: TranscriptExcerpt) -> None:
        """Write one excerpt at once; the ledger is read again if somebody else wrote to it."""
        for _ in range(ATTEMPTS):
            try:
                pending = self._pending_of(excerpt)
                self._write(pending.changes, [pending.row])
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
        self._note(FileOutcome(excerpt.file.assistant, excerpt.file.path, failure=_BUSY))

    def _note(self, outcome: FileOutcome) -> None:
        previous_outcome = self.outcomes.get(outcome.path)
        self.outcomes[outcome.path] = outcome if previous_outcome is None else _sum(previous_outcome, outcome)

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
        """Add the new messages of a conversation; returns where reading resumes, and the session's end."""
        excerpt = pending.excerpt
        origin = _origin(excerpt, conversation, is_main=is_main)
        existing = self._ledger.mirrors.find(origin.assistant, origin.id)
        if existing is not None and existing.session is None:
            pending.outcome = _sum(pending.outcome, msgspec.structs.replace(pending.outcome, deleted=1))
            return (0, 0), (0, 0)
        predecessor = existing or self._imported_session(origin)
        addition = Addition("new", conversation.messages)
        forked = None
        if is_main and excerpt.next.fork_of is not None and excerpt.is_whole:
            forked = self._ledger.mirrors.find(origin.assistant, excerpt.next.fork_of)
        until = excerpt.next.shared_until
        shared = tuple(shared_turns(self._ledger, forked, until)) if forked and until else ()
        if shared and existing is not None and self._lacks_origin(existing):
            self._incomplete.append(existing)
            predecessor = None
        if predecessor is not None:
            addition = self._addition(predecessor, conversation, excerpt)
        elif shared:
            addition = Addition("forked", conversation.messages, shared[-1].id, existing=shared)
            predecessor = forked
        elif forked is not None and forked.session is not None and until is None:
            addition, predecessor = compare_with_origin(self._ledger, forked, conversation.messages), forked
        is_new = addition.way == "new"
        turns = new_turns(conversation, addition.rest, origin, is_new=is_new) if addition.rest else []
        is_reported = predecessor is not None and predecessor.is_reported
        if turns and not is_reported:
            is_reported = self._measure(conversation, turns)
        if turns or existing is None or existing.origin != origin:
            pending.changes.append(
                MirrorTurns(
                    origin=origin,
                    workspace=_workspace(excerpt.next.folder),
                    name=name_of(conversation, origin, excerpt.next.title if is_main else None),
                    turns=tuple(turns),
                    after=None if is_new else predecessor,
                    base=addition.base,
                    existing=existing,
                    is_reported=is_reported,
                    changed=utc(excerpt.stamp[3]),
                )
            )
            pending.outcome = _sum(pending.outcome, _outcome(pending.outcome, addition, turns, predecessor))
        following = excerpt.following.get(conversation.id or "", ())
        end = position_before(addition, turns, ())
        return position_before(addition, turns, following), end or (0, 0)

    def _addition(
        self, predecessor: MirroredSession, conversation: Conversation, excerpt: TranscriptExcerpt
    ) -> Addition:
        position = excerpt.start.positions.get(conversation.id or "")
        if position is None and excerpt.next.shared_until is not None:
            shared = shared_turns(self._ledger, predecessor, excerpt.next.shared_until)
            position = sum(len(turn.messages) for turn in shared), len(shared)
        if position is None:
            is_later = not excerpt.is_whole and predecessor.head is not None
            position = (
                (predecessor.head.messages, predecessor.head.seq) if is_later and predecessor.head else (0, 0)
            )
        can_reread = not excerpt.is_whole and excerpt.stamp[2] <= excerpts.WHOLE
        addition = compare_with_ledger(
            self._ledger, predecessor, conversation.messages, position=position, can_reread=can_reread
        )
        if addition.way == "unclear":
            raise _UnclearError
        if addition.way == "forked" and not addition.rest:  # it was cleared: go on in a fork
            fork = MirrorTurns(
                origin=predecessor.origin,
                workspace=predecessor.workspace,
                name=predecessor.session or "",
                turns=(),
                after=predecessor,
                base=addition.base,
                existing=predecessor,
                is_reported=predecessor.is_reported,
            )
            self._write([fork])
            raise HeadMovedError(predecessor.session or "")
        return addition

    def _lacks_origin(self, mirrored: MirroredSession) -> bool:
        """Whether a kept fork has only its own turns, as an earlier version wrote it, and is as it was."""
        session = self._ledger.find(mirrored.workspace, mirrored.session or "")
        is_theirs = mirrored.head is not None and mirrored.head.turn == mirrored.turn
        return session is not None and session.forked_from is None and is_theirs

    def _imported_session(self, origin: SessionOrigin) -> MirroredSession | None:
        """The session that was imported from the same file before it was mirrored."""
        if self._imported is None:
            self._imported = self._ledger.mirrors.imported()
        workspace_and_name = self._imported.get(origin.id)
        session = None if workspace_and_name is None else self._ledger.find(*workspace_and_name)
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


def failed(file: TranscriptFile, error: Exception) -> FileOutcome:
    """Make the outcome of a file that could not be read. Call it while the error is handled."""
    if isinstance(error, OSError):
        reason = f"it cannot be read: {error.strerror or error}"
        return FileOutcome(file.assistant, file.path, failure=reason)
    logger.debug("%s cannot be mirrored", file.path, exc_info=True)
    reason = f"an error in Nexus ({type(error).__name__}: {str(error)[:200]}); please report it"
    return FileOutcome(file.assistant, file.path, failure=reason)


class _UnclearError(Exception):
    """A piece of a file does not fit what the ledger has."""


def _workspace(folder: str | None) -> str:
    """The workspace of a session's folder; the user's home if its file names none, or an impossible one."""
    if folder is not None and isabs(folder) and "\0" not in folder:
        return workspace_of(folder)
    return workspace_of(expanduser("~"))


def _origin(excerpt: TranscriptExcerpt, conversation: Conversation, *, is_main: bool) -> SessionOrigin:
    file = excerpt.file
    is_file = is_main and (conversation.agent is None or file.is_agent or file.is_database)
    parent = excerpt.next.parent if is_file else excerpt.next.session_id or file.session_id
    return SessionOrigin(file.assistant, conversation.id or file.session_id, file.path, parent)


def _excerpt_of(file: TranscriptFile, session: opencode_export.ExportedSession) -> TranscriptExcerpt:
    """A session of opencode, which is read as a whole."""
    conversations = () if session.conversation is None else (session.conversation,)
    progress = Progress(
        session_id=session.id, folder=session.folder, parent=session.parent, fork_of=session.fork_of
    )
    stamp: Any = (0, 0, session.size, session.changed * 1_000_000, 0)
    return TranscriptExcerpt(
        file=file,
        start=Progress(),
        next=progress,
        stamp=stamp,
        conversations=tuple(
            msgspec.structs.replace(conversation, id=session.id) for conversation in conversations
        ),
        following={},
        size=session.size,
        is_whole=True,
        is_last=True,
        problems=session.problems,
    )


def _outcome(
    outcome: FileOutcome, addition: Addition, turns: Sequence[NewTurn], predecessor: MirroredSession | None
) -> FileOutcome:
    """What the turns of one conversation add to an outcome."""
    name = () if predecessor is None or predecessor.session is None else (predecessor.session,)
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


def _sum(outcome: FileOutcome, other: FileOutcome) -> FileOutcome:
    numbers = ("new", "continued", "forked", "deleted", "turns", "messages")
    return FileOutcome(
        outcome.assistant,
        outcome.path,
        sessions=tuple(dict.fromkeys((*outcome.sessions, *other.sessions))),
        problems=tuple(dict.fromkeys((*outcome.problems, *other.problems))),
        failure=other.failure or outcome.failure,
        **{name: getattr(outcome, name) + getattr(other, name) for name in numbers},
    )
