"""Searches the files of programs for messages that the ledger does not have.

1. A file is searched from where the last `keep` ended, and not read if it has not changed since. Of each
   session, as many first messages are left out as the ledger has.
2. A file is decoded only if its bytes have all words (`word_matcher`). The newest file is searched first, and
   the newest message of each is found first. The search ends after `limit` matches.
3. A file that cannot be read is a failure of that file alone.
"""

import time
from collections.abc import Iterable, Mapping
from os.path import basename

import apsw
import msgspec

from nexus_context.assistants.importing import Conversation
from nexus_context.assistants.mirror import excerpts, transcript_files
from nexus_context.assistants.mirror.excerpts import Progress, progress_of
from nexus_context.assistants.mirror.session_turns import name_of
from nexus_context.assistants.mirror.transcript_files import TranscriptFile
from nexus_context.assistants.mirror.word_matcher import WordMatcher
from nexus_context.assistants.opencode import export as opencode_export
from nexus_context.assistants.sessions.session_types import AssistantSession, Folders, Place, is_within
from nexus_context.disk import cancellation, files
from nexus_context.ledger.records import MirroredFile, SessionOrigin
from nexus_context.ledger.rows import searchable
from nexus_context.text.decoding import decode_as

HEAD = 1 << 16
"""Bytes of a file in which its folder is sought."""


class InLedger(msgspec.Struct, frozen=True):
    """What the ledger has: each path → how far the file was read, and each program and id → the number of
    messages of that session.
    """

    files: Mapping[str, MirroredFile]
    messages: Mapping[tuple[str, str], int]


class FileHit(msgspec.Struct, frozen=True, kw_only=True):
    """A message that matches a search, in the file at `path`. `position` is its number in the conversation,
    from 0.

    `title` is the name that the session would get in the ledger, None if its beginning was not read.
    """

    program: str
    id: str
    title: str | None
    folder: str | None
    path: str
    position: int
    role: str
    created: str | None  # ISO 8601
    snippet: str


class FileSearch(msgspec.Struct):
    """The outcome of a search: the matches, and the number of conversations that were searched. `failures`
    are paths that could not be read, each with the reason.
    """

    hits: list[FileHit] = []
    searched: int = 0
    failures: list[tuple[str, str]] = []


class _Search(msgspec.Struct):
    """One search; its parts add to the `outcome`."""

    matcher: WordMatcher
    folder: Folders
    in_ledger: InLedger
    limit: int
    outcome: FileSearch = msgspec.field(default_factory=FileSearch)


def search_files(
    query: str,
    place: Place,
    folder: Folders,
    in_ledger: InLedger,
    *,
    session: AssistantSession | None = None,
    limit: int = 20,
) -> FileSearch:
    """Search those messages in some folders, or in all if `folder` is None, that the ledger does not have.

    With a `session`, only that session and its sub-agents are searched.
    """
    search = _Search(WordMatcher(query), folder, in_ledger, limit)
    searched_files: Iterable[TranscriptFile] = transcript_files.list_files(place, folder)
    if session is not None:
        file = transcript_files.file_at(session.path, session.assistant)
        searched_files = [*filter(None, [file]), *transcript_files.agents_of(session.path, session.assistant)]
    for file in sorted(searched_files, key=lambda file: file.stamp[3], reverse=True):
        cancellation.check()
        row = in_ledger.files.get(file.path)
        if row is not None and row.stamp == file.stamp:
            continue
        try:
            if file.is_database:
                _search_database(search, file, row, None if session is None else session.id)
            else:
                _search_file(search, file, progress_of(row))
        except FileNotFoundError:  # it was deleted meanwhile
            continue
        except (apsw.Error, OSError) as error:
            search.outcome.failures.append((file.path, getattr(error, "strerror", None) or str(error)))
        if len(search.outcome.hits) >= limit:
            break
    del search.outcome.hits[limit:]
    return search.outcome


def _search_file(search: _Search, file: TranscriptFile, start: Progress) -> None:
    if search.folder is not None:
        folder = start.folder or excerpts.peek_folder(file, most=HEAD)
        if not is_within(folder, search.folder):
            return
    search.outcome.searched += not (file.is_agent or file.parent)
    if not search.matcher.may_match(lambda at, size: files.read_range(file.path, at, size)[1], start.offset):
        return
    for excerpt in excerpts.read_excerpts(file, start, now=time.time()):
        if is_within(excerpt.next.folder, search.folder):
            for conversation in excerpt.conversations:
                messages_before = excerpt.start.positions.get(conversation.id or "", (0, 0))[0]
                _search_conversation(
                    search, file, conversation, excerpt.next, messages_before=messages_before
                )


def _search_database(
    search: _Search, file: TranscriptFile, row: MirroredFile | None, only: str | None
) -> None:
    try:
        read = {} if row is None else decode_as(row.progress, dict[str, int])
    except msgspec.DecodeError:  # another version wrote it
        read = {}

    def chooses(name: str, data: bytes) -> bool:
        if only not in (None, name):
            return False
        search.outcome.searched += 1
        return search.matcher.may_match(lambda at, size: data[at : at + size])

    for session in opencode_export.read_changed(file.path, read, search.folder, chooses=chooses):
        if session.conversation is not None:
            conversation = msgspec.structs.replace(session.conversation, id=session.id)
            about = Progress(folder=session.folder, title=session.title, parent=session.parent)
            _search_conversation(search, file, conversation, about)


def _search_conversation(
    search: _Search,
    file: TranscriptFile,
    conversation: Conversation,
    about: Progress,
    *,
    messages_before: int = 0,
) -> None:
    """Add the matches of a conversation, the newest first; `messages_before` precede its piece."""
    name = conversation.id or basename(file.path)
    stored_count = search.in_ledger.messages.get((file.assistant, name), 0)
    messages = conversation.messages[max(0, stored_count - messages_before) :]
    first_position = messages_before + len(conversation.messages) - len(messages)
    title = about.title
    if not messages_before:
        parent = about.parent if conversation.agent is None else about.session_id
        origin = SessionOrigin(file.assistant, name, file.path, parent)
        title = name_of(conversation, origin, title)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        text = searchable(message)
        if not search.matcher.matches(text):
            continue
        created = message.timestamp
        search.outcome.hits.append(
            FileHit(
                program=file.assistant,
                id=name,
                title=title,
                folder=about.folder,
                path=file.path,
                position=first_position + index,
                role=message.role,
                created=created if isinstance(created, str) else None,
                snippet=search.matcher.snippet(text),
            )
        )
        if len(search.outcome.hits) >= search.limit:
            return
