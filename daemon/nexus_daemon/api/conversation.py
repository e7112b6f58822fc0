"""Answer `nexus/conversation/*`: the conversations of Nexus and of all programs, kept or not, as one list.

1. The setting `tracking.conversations` decides which folder a conversation belongs to: also to a folder above
   or below its own.
2. A conversation that the ledger does not have is read where its program writes it. Reading does not keep it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import apsw
import msgspec

from nexus_context.assistants.mirror.file_search import FileHit, FileSearch, InLedger, search_files
from nexus_context.assistants.mirror.session_reader import read_excerpt
from nexus_context.assistants.programs import WITH_SESSIONS
from nexus_context.assistants.sessions.session_types import AssistantSession, Folders, Place, is_within
from nexus_context.assistants.tracking import AssistantSessions, find_sessions
from nexus_context.assistants.tracking.conversations import (
    LedgerSession,
    ListedConversation,
    belongs_to,
    join_conversations,
    matches,
    of_ledger,
    program_title,
    related_folders,
    sum_costs,
)
from nexus_context.config.conversations import reads_conversations
from nexus_context.errors import RequestError
from nexus_context.ledger.location import workspace_of
from nexus_context.ledger.records import MirroredFile, SessionOrigin
from nexus_context.ledger.search_query import expression
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible_line
from nexus_context.turn.models import model_of
from nexus_daemon import protocol
from nexus_daemon.api import stored_sessions
from nexus_daemon.api import transcript as pages
from nexus_daemon.api.stored_sessions import uri_of
from nexus_daemon.lsp import convert
from nexus_daemon.protocol import SessionInfo

if TYPE_CHECKING:
    from nexus_context.ledger.records import Session
    from nexus_context.ledger.store import Ledger
    from nexus_context.tokens import TokenCounter
    from nexus_daemon.windows.connection import Connection

Failures = Sequence[tuple[str, str]]
"""Paths that could not be read, each with the reason."""
LONGEST_TITLE = 300
MOST_TITLE = 4 * LONGEST_TITLE
"""The most characters of a title that are searched for secrets and shown."""


async def list_conversations(
    client: "Connection", params: protocol.ConversationListParams
) -> protocol.ConversationListResult:
    """List the conversations of Nexus, Claude Code, Codex, opencode and Gemini CLI, kept or not, and their
    sum.

    A conversation that the ledger keeps and the program's file of it are listed as one. The files are only
    read.
    """
    since = None if params.since is None else _seconds(params.since)
    if params.limit is not None and params.limit < 1:
        raise RequestError(f"`limit` is {params.limit}: it must be at least 1.", code="bad-option")
    await stored_sessions.ledger_of(client, params.workspace_folder)  # from now on it has the folder's URI
    folders = await _folders(client, params.workspace_folder)
    stored_infos = await stored_sessions.list_all(client, {})
    place, uris = await _session_place(client, params.workspace_folder), stored_sessions.uris_of(client)

    def read() -> protocol.ConversationListResult:
        of_programs = find_sessions(place, folders)
        conversations = [
            conversation
            for conversation in join(stored_infos, of_programs)
            if belongs_to(conversation, folders) and matches(conversation, params.program, since)
        ]
        return _result(conversations, of_programs.failures, params.limit, uris)

    return await client.read(read)


async def search(
    client: "Connection", params: protocol.ConversationSearchParams
) -> protocol.ConversationSearchResult:
    """Find messages that contain all words: in the ledger, and in the files of conversations that it does not
    keep.

    If the ledger keeps only a part of a file, the rest of the file is searched, too.
    """
    found_matches, uris = await find_matches(client, params), stored_sessions.uris_of(client)
    return protocol.ConversationSearchResult(
        hits=list(found_matches.hits),
        named=[
            msgspec.structs.replace(session, workspace_folder=uri_of(path_of(session) or "", uris))
            for session in found_matches.named
        ],
        file_hits=[_file_hit(hit, uris) for hit in found_matches.files.hits],
        searched=found_matches.files.searched,
        failures=_failure_infos(found_matches.files.failures),
    )


async def transcript(
    client: "Connection", params: protocol.ConversationTranscriptParams
) -> protocol.TranscriptResult:
    """Return a page of a conversation of any folder, in the form of `nexus/session/transcript`.

    A conversation that is not kept is read from the file of its program. For such a conversation it is not
    known which messages the next request would send.
    """
    if not 1 <= params.limit <= pages.MOST_MESSAGES:
        raise RequestError(
            f"`limit` is {params.limit}: it must be from 1 to {pages.MOST_MESSAGES:,}.", code="bad-option"
        )
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    ledger = await client.daemon.ledgers.of(snapshot, folder)
    folders = await _folders(client, params.workspace_folder)
    sources = _Sources(ledger.store, await _session_place(client, params.workspace_folder), folders)
    _, counter = await client.read(model_of, snapshot, None)
    return await client.read(_page, sources, counter, params)


# ---------------------------------------------------------------- list


def join(stored_infos: Iterable[SessionInfo], of_programs: AssistantSessions) -> list[ListedConversation]:
    """Join the ledger's sessions of all folders with the sessions of programs, the last turn first."""
    return join_conversations(map(_of_ledger, stored_infos), of_programs.sessions)


def _of_ledger(info: SessionInfo) -> ListedConversation:
    return of_ledger(
        ledger_session_of(info),
        None if info.origin is None else SessionOrigin(**msgspec.structs.asdict(info.origin)),
        last_turn=info.last_turn or info.updated,
        tokens=info.tokens,
        estimated=info.estimated,
        fork_of=info.forked_from,
    )


def ledger_session_of(info: SessionInfo) -> LedgerSession:
    """Return the ledger's key of a session that comes from a list of all folders."""
    return LedgerSession(path_of(info) or "", info.session, info.thread)


def path_of(info: SessionInfo) -> str | None:
    """Return the path of a session's folder, for a session that comes from a list of all folders."""
    uri = info.workspace_folder
    return None if uri is None else convert.uri_to_path(uri) or uri


async def _folders(client: "Connection", uri: str | None) -> Folders:
    if uri is None:
        return None
    path, home = client.folders.at(uri).path, str(client.folders.load_inputs.user_home)
    return await client.read(lambda: related_folders(workspace_of(path), home))


async def _session_place(client: "Connection", uri: str | None) -> Place:
    """Where programs have their sessions; for all folders, any of the client's may forbid to read them.

    A folder that cannot be loaded hides no list of all folders.
    """
    allowed: list[bool] = []
    for folder in tuple(client.folders) if uri is None else (client.folders.at(uri),):
        try:
            allowed.append(reads_conversations((await folder.current()).effective))
        except RequestError:
            if uri is not None:
                raise
    inputs = client.folders.load_inputs
    return Place(str(inputs.user_home), inputs.environ, bool(allowed) and all(allowed))


def _result(
    conversations: Sequence[ListedConversation],
    failures: Failures,
    limit: int | None,
    uris: Mapping[str, str],
) -> protocol.ConversationListResult:
    cost = sum_costs(conversations)
    return protocol.ConversationListResult(
        conversations=[_info(conversation, uris) for conversation in conversations[:limit]],
        total=protocol.ConversationTotal(
            conversations=len(conversations),
            tokens=sum(conversation.tokens or 0 for conversation in conversations),
            cost_usd=cost.usd,
            cost_lacks=list(cost.lacks),
        ),
        failures=_failure_infos(failures),
    )


def _info(conversation: ListedConversation, uris: Mapping[str, str]) -> protocol.ConversationInfo:
    ledger_session, session, title = conversation.kept, conversation.session, conversation.title
    folder = conversation.folder
    return protocol.ConversationInfo(
        program=conversation.program,
        program_title=program_title(conversation.program),
        id=conversation.short_name,
        title=None if title is None else _title_of(title),
        folder=None if folder is None else uri_of(folder, uris),
        last_turn=conversation.last_turn,
        tokens=conversation.tokens,
        estimated=conversation.estimated,
        window=None if session is None else session.window,
        cost_usd=conversation.cost.usd,
        cost_lacks=list(conversation.cost.lacks),
        kept=ledger_session is not None,
        session=None if ledger_session is None else ledger_session.name,
        thread=None if ledger_session is None else ledger_session.thread,
        workspace_folder=None if ledger_session is None else uri_of(ledger_session.workspace, uris),
        uri=None if session is None else convert.path_to_uri(session.path),
        parent=conversation.parent,
        fork_of=conversation.fork_of,
    )


def _title_of(text: str) -> str:
    return visible_line(redact(text[:MOST_TITLE]))[:LONGEST_TITLE]


def _failure_infos(failures: Failures) -> list[protocol.AssistantSessionFailure]:
    return [protocol.AssistantSessionFailure(convert.path_to_uri(path), reason) for path, reason in failures]


def _seconds(since: str) -> float:
    try:
        return datetime.fromisoformat(since).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise RequestError(f"`since` is {since[:60]!r}: use ISO 8601.", code="bad-option") from error


# ---------------------------------------------------------------- search


class Matches(NamedTuple):
    """What a search found: messages of the ledger, sessions by their name, and messages in files."""

    hits: Sequence[protocol.SearchHit]
    named: Sequence[SessionInfo] = ()
    files: FileSearch = FileSearch()


async def find_matches(client: "Connection", params: protocol.ConversationSearchParams) -> Matches:
    """Do the work of `search`; the result has the matches in files in the library's form."""
    query, uri, limit = params.query, params.workspace_folder, params.limit
    in_ledger_alone = protocol.SearchParams(
        query=query, workspace_folder=uri, inside=True, above=True, limit=limit
    )
    hits = (await stored_sessions.search(client, in_ledger_alone)).hits
    if expression(query) is None:  # no word
        return Matches(())
    stored_infos, folders = await stored_sessions.list_all(client, {}), await _folders(client, uri)
    ledger = await stored_sessions.ledger_of(client, uri)
    place, sessions_of_hits = (
        await _session_place(client, params.workspace_folder),
        {hit.session for hit in hits},
    )

    def read() -> Matches:
        named_sessions = [
            session
            for session in stored_infos
            if session.session not in sessions_of_hits and session.forked_from is None
            if _is_named(session, query) and is_within(path_of(session), folders)
        ]
        in_ledger = in_ledger_of(ledger.store.mirrors.files(), stored_infos)
        return Matches(hits, named_sessions, search_files(query, place, folders, in_ledger, limit=limit))

    return await client.read(read)


def in_ledger_of(mirrored: Mapping[str, MirroredFile], stored_infos: Iterable[SessionInfo]) -> InLedger:
    """Build the index of the ledger that files are compared with.

    It has the mirrored files by path, and the number of stored messages by (assistant, session id).
    """
    messages: dict[tuple[str, str], int] = {}
    for session in stored_infos:
        if session.origin is not None:
            messages.setdefault((session.origin.assistant, session.origin.id), session.messages)
    return InLedger(mirrored, messages)


def _is_named(session: SessionInfo, query: str) -> bool:
    """Whether the name of a session has all words of a query."""
    name = session.session.casefold()
    return all(word.casefold() in name for word in query.split())


def _file_hit(hit: FileHit, uris: Mapping[str, str]) -> protocol.ConversationHit:
    return protocol.ConversationHit(
        program=hit.program,
        program_title=program_title(hit.program),
        id=hit.id,
        title=hit.title,
        folder=None if hit.folder is None else uri_of(hit.folder, uris),
        uri=convert.path_to_uri(hit.path),
        position=hit.position,
        role=hit.role,
        created=hit.created,
        snippet=hit.snippet,
    )


# ---------------------------------------------------------------- transcript


class _Sources(NamedTuple):
    """The ledger, where programs have their files, and the folders to look at first."""

    store: "Ledger"
    place: Place
    folders: Folders


def _page(
    sources: _Sources, counter: "TokenCounter", params: protocol.ConversationTranscriptParams
) -> protocol.TranscriptResult:
    """Read the page: in the ledger if it gave the id, else in the program's file as long as there is one."""
    ledger_sessions = sources.store.sessions()
    stored_session = next(
        (candidate for candidate in ledger_sessions if candidate.head.thread == params.id), None
    )
    session = _find_in_programs(sources, params) if stored_session is None else None
    if session is not None:
        return _file_page(session, counter, params)
    origin = (params.program, params.id)
    for candidate in [stored_session] if stored_session is not None else ledger_sessions:
        if candidate is stored_session or (
            candidate.origin is not None and (candidate.origin.assistant, candidate.origin.id) == origin
        ):
            return _stored_page(sources.store, candidate, counter, params)
    raise RequestError(
        f"There is no conversation {params.id!r} of {params.program!r}; nexus/conversation/list lists all.",
        code="unknown-session",
    )


def _stored_page(
    store: "Ledger",
    session: "Session",
    counter: "TokenCounter",
    params: protocol.ConversationTranscriptParams,
) -> protocol.TranscriptResult:
    excerpt = store.pages.excerpt(
        session.workspace, session.name, first=params.first, before=params.before, limit=params.limit
    )
    if excerpt is None:
        raise RequestError(f"The session {session.name!r} was deleted.", code="unknown-session")
    return msgspec.structs.replace(
        pages.page_of(excerpt, visible_line(session.name), counter, {}), sent_unknown=True
    )


def _file_page(
    session: AssistantSession, counter: "TokenCounter", params: protocol.ConversationTranscriptParams
) -> protocol.TranscriptResult:
    try:
        excerpt = read_excerpt(
            session, params.id, first=params.first, before=params.before, limit=params.limit
        )
    except (apsw.Error, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RequestError(f"{session.path} cannot be read: {reason}", code="unknown-session") from error
    return msgspec.structs.replace(
        pages.page_of(excerpt, _title_of(session.prompt or params.id), counter, {}),
        sent_unknown=True,
        read_from=program_title(session.assistant),
        forked_from=session.fork_of,
    )


def _find_in_programs(
    sources: _Sources, params: protocol.ConversationTranscriptParams
) -> AssistantSession | None:
    """Find the session with the id, or with a sub-agent of this id, in the folders, else everywhere."""
    if params.program not in WITH_SESSIONS:
        return None
    place, names = sources.place, (params.id, params.id.partition("/")[0])
    for folders in dict.fromkeys((sources.folders, None)):
        sessions = find_sessions(place, folders, assistants=(params.program,)).sessions
        for name in names:
            session = next((listed_session for listed_session in sessions if listed_session.id == name), None)
            if session is not None:
                return session
    return None
