"""Answers `search_conversations`, `query_memory` and `add_memory`: what was said before in a folder.

1. The conversations are those of the folder and of the folders beneath it, also those of other assistants
   that the ledger has.
2. What mattered in long conversations is worked out once, and then from what was added.
3. A search is that of the memory's fourth level: a message must have all words; if none does, most of them.
"""

import threading
from collections.abc import Iterator
from itertools import islice

from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.summary import readable
from nexus_context.errors import RequestError
from nexus_context.ledger.records import Session
from nexus_context.ledger.search_query import expression
from nexus_context.ledger.store import Ledger
from nexus_context.memory.item import brief
from nexus_context.memory.levels import Levels, session_names
from nexus_context.memory.working import Entry
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import short_path
from nexus_daemon.cli.mcp.call_scope import CallScope
from nexus_daemon.cli.mcp.pages import ToolAnswer
from nexus_daemon.cli.memory import NOTES
from nexus_daemon.cli.open_session import ledger_for, load_folder, workspace_of
from nexus_daemon.sessions.session_names import sessions_that_begin
from nexus_daemon.shared.mcp_server.workspace_folders import is_beneath

MOST_HITS = 60
MOST_ENTRIES = 50
MOST_MESSAGES = 200
MOST_FOLDERS = 50
LONGEST_MESSAGE = 2_000  # characters
MOST_LEDGERS = 4
_LEVELS: dict[str, Levels] = {}  # by the ledger's location
_LOCK = threading.Lock()
_NOTHING = "This folder has no conversations yet."


def search_conversations(scope: CallScope) -> ToolAnswer:
    """Return the hits of a search, best first.

    Without a query, return the messages of one conversation, or the list of conversations.
    """
    query, name = scope.arguments.get("query"), scope.arguments.get("session")
    if query is not None and expression(query) is None:
        raise RequestError(f"`query` {query[:60]!r} has no word to search for.", code="bad-argument")
    with ledger_for(load_folder(scope.folder)) as ledger:
        sessions = _sessions(ledger, scope)
        session = None if name is None else _session(sessions, name)
        if query is None:
            return _list(sessions, scope) if session is None else _read(ledger, session, scope)
        only = None if session is None else session.name
        return _search(ledger, sessions if session is None else [session], scope, only=only)


def query_memory(scope: CallScope) -> ToolAnswer:
    """Return the exchanges that mattered, the summaries, or the notes, of the folder itself."""
    kind, name = scope.arguments.get("kind", "important"), scope.arguments.get("session")
    workspace = workspace_of(scope.folder)
    with ledger_for(load_folder(scope.folder)) as ledger:
        if name is not None:
            name = _session(ledger.sessions(workspace), name).name
        levels = _levels(ledger)
        if kind == "important":
            entries = levels.important(workspace, name, limit=MOST_ENTRIES)
        elif kind == "summaries":
            entries = levels.summaries(workspace, name, limit=MOST_ENTRIES)
        else:
            entries = levels.recent(workspace, name or NOTES, limit=MOST_ENTRIES)
    if not entries:
        return ToolAnswer(f"Nothing of the kind `{kind}` is remembered here yet.")
    titles = {"important": "Exchanges that mattered:", "summaries": "Summaries:", "notes": "Notes:"}
    return ToolAnswer(titles[kind], tuple(_entry(entry) for entry in entries))


def add_memory(scope: CallScope) -> ToolAnswer:
    """Add a note, as `nexus memory add` does."""
    from nexus_daemon import protocol
    from nexus_daemon.api import session
    from nexus_daemon.cli.asking import answer

    note = Message("user", scope.arguments["text"], meta={"pinned": True})
    appended = answer(
        "memory", scope.folder, session.append, lambda uri: protocol.AppendParams(uri, NOTES, messages=[note])
    )
    return ToolAnswer(f"The note is kept in the session {appended.session!r} of this folder.")


def _levels(ledger: Ledger) -> Levels:
    """The levels of a ledger, which know what earlier calls have read."""
    with _LOCK:
        levels = _LEVELS.setdefault(ledger.location, Levels(ledger)).over(ledger)
        if len(_LEVELS) > MOST_LEDGERS:
            del _LEVELS[next(iter(_LEVELS))]
    return levels


# ---------------------------------------------------------------- sessions


def _sessions(ledger: Ledger, scope: CallScope) -> list[Session]:
    """The sessions of the folder, then those beneath it; of each the last changed one first."""
    workspace = workspace_of(scope.folder)
    workspace_sessions = [
        stored_session
        for stored_session in ledger.sessions()
        if is_beneath(stored_session.workspace, workspace)
    ]
    return sorted(workspace_sessions, key=lambda session: session.workspace != workspace)


def _session(sessions: list[Session], name: str) -> Session:
    matching_sessions = sessions_that_begin(sessions, name)
    session = next(
        (candidate for candidate in sessions if candidate.name == name),
        matching_sessions[0] if len(matching_sessions) == 1 else None,
    )
    if session is None:
        names = session_names(matching_sessions or sessions)
        raise RequestError(
            f"This folder has no conversation {name[:60]!r}. It has: {names}.", code="unknown-session"
        )
    return session


def _list(sessions: list[Session], scope: CallScope) -> ToolAnswer:
    if not sessions:
        return ToolAnswer(_NOTHING)
    lines = (
        f"{session.name!r}{_location(session, scope)}: {output.counted(session.head.seq, 'turn')}, "
        f"{session.sent_tokens:,} tokens, changed {session.updated[:16]}"
        for session in sessions
    )
    return ToolAnswer("Conversations of this folder; give `query`, or `session` to read one:", tuple(lines))


def _location(session: Session, scope: CallScope) -> str:
    workspace = workspace_of(scope.folder)
    return "" if session.workspace == workspace else f" in {short_path(session.workspace, workspace)}"


# ---------------------------------------------------------------- search


def _search(ledger: Ledger, sessions: list[Session], scope: CallScope, *, only: str | None) -> ToolAnswer:
    levels = Levels(ledger)
    folders = dict.fromkeys(session.workspace for session in sessions)
    blocks = []
    for folder in islice(folders, MOST_FOLDERS):
        location = "" if folder == workspace_of(scope.folder) else f", {short_path(folder, scope.folder)}"
        entries = levels.across(folder, scope.arguments["query"], limit=MOST_HITS, only=only)
        blocks += [_entry(entry, location) for entry in entries]
    if not blocks:
        return ToolAnswer(
            "No message of an earlier conversation in this folder matches. Try fewer or other words."
            if sessions
            else _NOTHING
        )
    return ToolAnswer("Messages that match; `session` and `turn` read on from there:", tuple(blocks))


def _entry(entry: Entry, location: str = "") -> str:
    turn = f", turn {entry.seq}" if entry.seq else ""
    created = f", {entry.created[:16]}" if entry.created else ""
    return f"[session {entry.session!r}{turn}{created}{location}] {entry.text.strip()}"


# ---------------------------------------------------------------- reading


def _read(ledger: Ledger, session: Session, scope: CallScope) -> ToolAnswer:
    first_turn = scope.arguments.get("turn", 1)
    if first_turn > session.head.seq:
        raise RequestError(
            f"The conversation {session.name!r} has {output.counted(session.head.seq, 'turn')}.",
            code="bad-argument",
        )
    messages = list(islice(_messages(ledger, session, first_turn), MOST_MESSAGES + 1))
    lines = [f"[turn {seq}] {message.role}: {_line(message)}" for seq, message in messages[:MOST_MESSAGES]]
    if len(messages) > MOST_MESSAGES:
        lines.append(f"More follows: read on from turn {messages[MOST_MESSAGES][0]}.")
    return ToolAnswer(f"The conversation {session.name!r} from turn {first_turn} on:", tuple(lines))


def _messages(ledger: Ledger, session: Session, first_turn: int) -> Iterator[tuple[int, Message]]:
    """The messages from a turn on, each with the number of its turn."""
    for turn in ledger.turns(session.workspace, session.name, last=session.head.seq - first_turn + 1):
        for message in turn.messages:
            yield turn.seq, message


def _line(message: Message) -> str:
    """A message in few words: its text, shortened, and the names of the tools that it calls."""
    words = [brief(text_of(readable(message)), LONGEST_MESSAGE)]
    words += [f"[calls {call.name}]" for call in message.tool_calls]
    return " ".join(filter(None, words)) or "(no text)"
