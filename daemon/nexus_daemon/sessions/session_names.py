"""Find the conversation that a person names: by its name, its id, or the beginning of one."""

from collections.abc import Sequence
from difflib import get_close_matches

from nexus_context.assistants.tracking.conversations import id_begins
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Session
from nexus_context.ledger.store import Ledger

MOST_NAMED = 5


def find_session(ledger: Ledger, workspace: str, name: str) -> Session:
    """Return the session with this name, or the only one that begins with it.

    LedgerError, with suggestions, if there is none or if several begin so.
    """
    session = ledger.find(workspace, name)
    if session is not None:
        return session
    matching = sessions_that_begin(ledger.sessions(workspace), name)
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(repr(candidate.name) for candidate in matching)
    hint = (
        f"{len(matching):,} begin so: {names}. Write more of it."
        if matching
        else _near(ledger, workspace, name)
    )
    raise LedgerError(f"There is no session {name!r} in {workspace}. {hint}", code="unknown-session")


def name_of(ledger: Ledger, name: str) -> str:
    """Complete the beginning of a session name, in all workspaces.

    Return it unchanged unless exactly one name fits.
    """
    sessions = ledger.sessions()
    if any(session.name == name for session in sessions):
        return name
    names = {session.name for session in sessions_that_begin(sessions, name)}
    return names.pop() if len(names) == 1 else name


def sessions_that_begin(sessions: Sequence[Session], beginning: str) -> list[Session]:
    """Return the sessions whose name, id in their program or id in the ledger begins with `beginning`."""
    return [
        session
        for session in sessions
        if beginning
        and (
            session.name.startswith(beginning)
            or session.head.thread.startswith(beginning)
            or (session.origin is not None and id_begins(session.origin.id, beginning))
        )
    ]


def _near(ledger: Ledger, workspace: str, name: str) -> str:
    names = [session.name for session in ledger.sessions(workspace)]
    if not names:
        return "Nexus keeps none of that folder; nexus sessions list --all lists those of all folders."
    folded = {session_name.casefold(): session_name for session_name in reversed(names)}
    similar_names = [
        folded[session_name] for session_name in get_close_matches(name.casefold(), folded, MOST_NAMED, 0.5)
    ]
    similar_names += [
        session_name
        for session_name in names
        if name.casefold() in session_name.casefold() and session_name not in similar_names
    ]
    if similar_names:
        return f"Did you mean {' or '.join(map(repr, similar_names[:MOST_NAMED]))}?"
    names_text = ", ".join(map(repr, names[:MOST_NAMED]))
    more_count = len(names) - MOST_NAMED
    return f"Its sessions: {names_text}" + (
        f" and {more_count:,} more: see nexus sessions list." if more_count > 0 else "."
    )
