"""Reads a piece of a transcript as conversations, and finds where the next piece begins.

1. A file of at most WHOLE bytes is read at once the first time, a larger one in pieces of PIECE bytes.
   Afterwards reading resumes at the last boundary before the end (`record_format`).
2. If what follows does not simply continue what was read, a file of at most WHOLE bytes is read as a whole
   again. A larger file is read on: what the user took back stays part of the conversation.
3. The records behind the boundary are also converted on their own. Reading resumes at the boundary only if
   that gives the same messages.
4. The user may still take back texts that were queued a moment ago, so these are left for later.
"""

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence

import msgspec

from nexus_context.assistants.importing import Conversation
from nexus_context.assistants.mirror.differences import ends_with
from nexus_context.assistants.mirror.transcript_files import TranscriptFile
from nexus_context.assistants.sessions.record import SessionRecord
from nexus_context.assistants.sessions.record_format import MOST_PARENTS, Boundary
from nexus_context.assistants.sessions.record_reader import RecordReader, ResumePoint, mark_of
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.conversation.message import Message
from nexus_context.disk import files
from nexus_context.errors import Span
from nexus_context.ledger.records import MirroredFile
from nexus_context.ledger.rows import unwritable
from nexus_context.text.decoding import decode_as

WHOLE = 64 << 20
"""Bytes of the largest file that is read at once."""

PIECE = 16 << 20
"""Bytes of a piece of a larger file."""

LONGEST_LINE = 256 << 20
"""Bytes of the longest line that is kept."""

UNDECIDED_S = 3600.0
"""Seconds after which a text that the user queued is taken as it is."""

_START = Span(0, 0)
_PEEK = 1 << 20  # bytes
_TAIL = 1 << 16  # bytes at the end, where a move is named
_MOST_FOLDERS = 1_000  # records whose folders are compared
_FOLDER = re.compile(rb'"(?:cwd|relocatedCwd)"\s*:\s*("(?:[^"\\]|\\.)+")')


class Progress(msgspec.Struct, frozen=True):
    """Where reading of a file resumes, and what is needed for that.

    `mark` identifies the file up to `offset` (`record_reader.mark_of`). For `parents` see `Boundary`.
    `positions` maps the id of each conversation to how many messages and turns its session has in the ledger
    before the offset. The other fields describe the main conversation.
    """

    offset: int = 0
    mark: str = ""
    parents: tuple[str, ...] = ()
    positions: dict[str, tuple[int, int]] = {}
    session_id: str | None = None
    model: str | None = None
    folder: str | None = None
    parent: str | None = None
    title: str | None = None
    fork_of: str | None = None
    shared_until: str | None = None


def progress_of(row: MirroredFile | None) -> Progress:
    """Return how far a file was read, by its row in the ledger. Without a row that can be read, it is the
    beginning.
    """
    try:
        return Progress() if row is None else decode_as(row.progress, Progress)
    except msgspec.DecodeError:  # another version wrote it
        return Progress()


class TranscriptExcerpt(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations in a piece of a file from `start.offset` on.

    `next` is where reading resumes. `following` maps the id of each conversation to its messages behind that
    place. `is_whole` is true if the file was read from its beginning. `is_waiting` is true if texts of the
    user still wait in the queue.
    """

    file: TranscriptFile
    start: Progress
    next: Progress
    stamp: tuple[int, ...]
    conversations: tuple[Conversation, ...]
    following: dict[str, tuple[Message, ...]]
    size: int  # bytes
    is_whole: bool
    is_last: bool
    is_waiting: bool = False
    problems: tuple[str, ...] = ()


def read_excerpts(file: TranscriptFile, start: Progress, *, now: float) -> Iterator[TranscriptExcerpt]:
    """Yield the pieces of a file from a place on. If the file does not continue there, it is read from its
    beginning (`read_excerpt`).
    """
    while True:
        excerpt = read_excerpt(file, start, now=now)
        if excerpt is None:
            start = Progress()
            continue
        yield excerpt
        if excerpt.is_last:
            return
        start = excerpt.next


def read_excerpt(file: TranscriptFile, start: Progress, *, now: float) -> TranscriptExcerpt | None:
    """Read a piece of a file from `start` on. Return None if the file does not continue there, so that it
    must be read as a whole.

    `now` is in seconds since 1970. Raise OSError if the file cannot be read.
    """
    piece = _read_piece(file, start)
    if piece is None:
        return None
    if start.offset and not _continues(file, start.parents, piece.records) and piece.stamp[2] <= WHOLE:
        return None
    return _excerpt(file, start, piece, now=now)


def _read_piece(file: TranscriptFile, start: Progress) -> "_Piece | None":
    """Read records from `start` on; None if the file has changed before that offset."""
    reader: RecordReader[SessionRecord] = RecordReader(
        file.path,
        file.format.record_type,
        resume=ResumePoint(start.offset, start.mark) if start.offset else None,
        whole=sys.maxsize,
        longest=LONGEST_LINE,
    )
    size = WHOLE if not start.offset and file.stamp[2] <= WHOLE else PIECE
    piece = _Piece(start.offset)
    for record in reader.read():
        if start.offset and reader.restarts:
            return None
        piece.records.append(record)
        piece.ends.append(reader.end)
        if reader.end - start.offset >= size:
            piece.boundary = _find_boundary(file, piece.records)
            if piece.boundary is not None or size >= WHOLE:
                piece.end, piece.is_last = reader.end, False
                break
            size *= 2
    else:
        if reader.stamp is None:  # it is gone, or another one since
            raise FileNotFoundError(file.path)
        if start.offset and reader.restarts:
            return None
        piece.end = reader.offset
        piece.boundary = _find_boundary(file, piece.records)
    piece.stamp = reader.stamp or files.file_stamp(file.path) or file.stamp
    piece.damaged, piece.first_damaged = reader.damaged + reader.long_lines, reader.first_damaged
    return piece


class _Piece(msgspec.Struct):
    """The records in a piece of a file, each with the offset behind its line.

    `end` is behind the last line that was read; `is_last` whether the file ended there, but for an unfinished
    line. `boundary` is the last place among them where reading can resume. `damaged` counts the lines that
    are no records; `first_damaged` is the offset of the first.
    """

    start: int
    records: list[SessionRecord] = []
    ends: list[int] = []
    end: int = 0
    is_last: bool = True
    boundary: Boundary | None = None
    stamp: tuple[int, ...] = ()
    damaged: int = 0
    first_damaged: int | None = None


def at_end(excerpt: TranscriptExcerpt, progress: Progress) -> Progress:
    """Return `progress` moved to the end of what was read, where it was at the boundary before."""
    offset = excerpt.start.offset + excerpt.size
    mark = mark_of(excerpt.file.path, offset)
    return msgspec.structs.replace(progress, offset=offset, mark=mark)


def peek_folder(file: TranscriptFile, *, most: int = _PEEK) -> str | None:
    """Return the folder where the session of a file works, else None. Only the beginning and the end of the
    file are read, and only if its path does not tell.
    """
    folder = file.format.find_folder(file.path)
    if folder is not None:
        return folder
    _, data = files.read_range(file.path, 0, most)
    end = files.read_range(file.path, max(file.stamp[2] - _TAIL, 0), _TAIL)[1]
    relocated = _folders(end if b'"relocatedCwd"' in end else b"", is_last=True)
    return relocated[0] if relocated else file.format.choose_folder(file.path, _folders(data))


def _folders(data: bytes, *, is_last: bool = False) -> list[str]:
    """The folders that records name; `is_last`: only the last one to which the session was moved."""
    encoded_folders = [match[1] for match in _FOLDER.finditer(data) if match[0].startswith(b'"r') == is_last]
    folders = []
    for text in dict.fromkeys(encoded_folders[-1:] if is_last else encoded_folders[:_MOST_FOLDERS]):
        with contextlib.suppress(msgspec.DecodeError):
            folders.append(str(msgspec.json.decode(text)))
    return folders


def folder_of(file: TranscriptFile, records: Sequence[SessionRecord]) -> str | None:
    """Return the folder where a session works, by its records, else None."""
    relocated = [record.relocated for record in records if record.relocated is not None]
    if relocated:
        return relocated[-1]
    return file.format.choose_folder(
        file.path, [record.folder for record in records if record.folder is not None]
    )


def title_of(records: Sequence[SessionRecord]) -> str | None:
    """Return the title that records give their session, else None. The title with the highest rank counts,
    and of several with this rank the last.
    """
    titles: dict[int, str] = {}
    for record in records:
        titles.update(record.titles)
    return titles[max(titles)] if titles else None


def _excerpt(file: TranscriptFile, start: Progress, piece: _Piece, *, now: float) -> TranscriptExcerpt:
    records, boundary = piece.records, piece.boundary
    waiting_indexes: list[int] = []
    if piece.is_last and now - piece.stamp[3] / 1e9 < UNDECIDED_S:
        waiting_indexes = file.format.list_waiting(records)
    # a piece that is not the last is read up to the boundary: the rest is part of the next one
    count = len(records) if piece.is_last or boundary is None else boundary.at
    sent_records = [record for at, record in enumerate(records[:count]) if at not in set(waiting_indexes)]
    report = Report(file.path, unwritable)
    conversations = _convert(file, sent_records, start, report)
    problems = [problem.message for problem in report.problems() if problem.severity.name == "ERROR"]
    if piece.damaged:
        lines = "1 line is" if piece.damaged == 1 else f"{piece.damaged:,} lines are"
        where = (
            f"at byte {piece.first_damaged:,}"
            if piece.damaged == 1
            else f"from byte {piece.first_damaged:,} on"
        )
        problems.append(f"{lines} not JSON or too long (the first {where}); left out.")
    following: dict[str, tuple[Message, ...]] = {}
    if boundary is not None and piece.is_last:
        following_records = [
            record
            for at, record in enumerate(records)
            if at >= boundary.at and at not in set(waiting_indexes)
        ]
        following, boundary = _convert_following(
            file, following_records, start, conversations=conversations, boundary=boundary
        )
    resume = start
    if piece.is_last and boundary is None:  # all of it is read again
        following = {conversation.id or "": conversation.messages for conversation in conversations}
    else:
        resume = _next(file, start, piece, boundary)
    main = conversations[0] if conversations else None
    resume = msgspec.structs.replace(
        resume,
        session_id=start.session_id or (main.id if main else None),
        model=(main.model if main else None) or start.model,
        folder=start.folder or folder_of(file, records) or file.format.find_folder(file.path),
        parent=start.parent or file.parent or _parent(file, records),
        title=title_of(records) or start.title,
        shared_until=start.shared_until or (records[0].shared_until if records else None),
        fork_of=start.fork_of or _origin(file, records, start),
    )
    return TranscriptExcerpt(
        file=file,
        start=start,
        next=resume,
        stamp=piece.stamp,
        conversations=conversations,
        following=following,
        size=piece.end - piece.start,
        is_whole=start.offset == 0,
        is_last=piece.is_last,
        is_waiting=bool(waiting_indexes),
        problems=tuple(problems),
    )


def _origin(file: TranscriptFile, records: Sequence[SessionRecord], start: Progress) -> str | None:
    """From which session this one was forked."""
    origin = None if file.is_agent or start.offset else file.format.find_origin(file.path)
    return origin or next((record.fork_of for record in records if record.fork_of is not None), None)


def _next(file: TranscriptFile, start: Progress, piece: _Piece, boundary: Boundary | None) -> Progress:
    """Where reading resumes: at the boundary, or behind a piece without one."""
    if boundary is None:
        uuids = [record.uuid for record in piece.records if record.uuid is not None]
        offset, parents = piece.end, tuple(uuids[-MOST_PARENTS:])
    else:
        offset, parents = piece.ends[boundary.at - 1], boundary.parents
    mark = mark_of(file.path, offset)
    return msgspec.structs.replace(start, offset=offset, mark=mark, parents=parents)


def _convert_following(
    file: TranscriptFile,
    records: Sequence[SessionRecord],
    start: Progress,
    *,
    conversations: Sequence[Conversation],
    boundary: Boundary,
) -> tuple[dict[str, tuple[Message, ...]], Boundary | None]:
    """The messages behind a boundary; no boundary if they are not those at the ends of the conversations."""
    messages = {conversation.id or "": conversation.messages for conversation in conversations}
    resumed = msgspec.structs.replace(start, session_id=conversations[0].id if conversations else None)
    following_conversations = _convert(file, records, resumed, Report(file.path, unwritable))
    following = {
        conversation.id or "": conversation.messages
        for conversation in following_conversations
        if conversation.messages
    }
    agrees = all(ends_with(messages.get(name, ()), end) for name, end in following.items())
    return (following, boundary) if agrees else ({}, None)


def _convert(
    file: TranscriptFile, records: Sequence[SessionRecord], start: Progress, report: Report
) -> tuple[Conversation, ...]:
    """The conversations in some records; those that continue have the id and the model of the beginning."""
    reader = file.format.reader
    try:
        lines = [Record(record.value, _START, "A line") for record in records]
        converted = reader.convert([line for line in lines if reader.is_record(line.value)], report, True)
    except Exception as error:  # noqa: BLE001 - one file must not keep the others from being read
        report.add_internal(_START, "The file", error)
        return ()
    conversations = []
    for conversation in converted:
        is_main = conversation.agent is None or file.is_agent
        # the name of a file of Claude Code is its session's; records that it copied name another one
        name = file.session_id if file.format.is_named_by_file else start.session_id or conversation.id
        if not is_main or file.is_agent:
            name = conversation.id
        model = conversation.model or (start.model if is_main else None)
        conversations.append(msgspec.structs.replace(conversation, id=name or file.session_id, model=model))
    return tuple(conversation for conversation in conversations if conversation.messages)


def _find_boundary(file: TranscriptFile, records: Sequence[SessionRecord]) -> Boundary | None:
    """Find the last boundary; None if the conversation behind it does not continue the one before."""
    boundary = file.format.find_boundary(records, file.is_agent)
    if boundary is None or _continues(file, boundary.parents, records[boundary.at :]):
        return boundary
    return None


def _continues(file: TranscriptFile, parents: Sequence[str], records: Sequence[SessionRecord]) -> bool:
    return file.format.continues(records, parents, file.is_agent)


def _parent(file: TranscriptFile, records: Sequence[SessionRecord]) -> str | None:
    """The session that started a sub-agent, by its path or its records."""
    if file.is_agent:
        return next((record.session for record in records if record.session is not None), None)
    return file.format.find_parent(file.path) or (records[0].parent_session if records else None)
