"""Find the conversation that a person names: by its name, its id, or the beginning of one."""

from collections.abc import Sequence
from difflib import get_close_matches

from nexus_context.assistants.tracking.conversations import id_begins
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Session
from nexus_context.ledger.store import Ledger

MOST_NAMED = 5


def find_session(ledger: Ledger, workspace: str, name: str) -> Session:
    """The session of a name or of its beginning; LedgerError, with the names that were meant, if none is."""
    session = ledger.find(workspace, name)
    if session is not None:
        return session
    begun = sessions_that_begin(ledger.sessions(workspace), name)
    if len(begun) == 1:
        return begun[0]
    names = ", ".join(repr(one.name) for one in begun)
    near = f"{len(begun):,} begin so: {names}. Write more of it." if begun else _near(ledger, workspace, name)
    raise LedgerError(f"There is no session {name!r} in {workspace}. {near}", code="unknown-session")


def name_of(ledger: Ledger, name: str) -> str:
    """The name that a name or its beginning means in all workspaces; as it is if it means none or several."""
    sessions = ledger.sessions()
    if any(one.name == name for one in sessions):
        return name
    names = {one.name for one in sessions_that_begin(sessions, name)}
    return names.pop() if len(names) == 1 else name


def sessions_that_begin(sessions: Sequence[Session], beginning: str) -> list[Session]:
    """The sessions whose name, or id in their program or in the ledger, begins so."""
    return [
        one
        for one in sessions
        if beginning
        and (
            one.name.startswith(beginning)
            or one.head.thread.startswith(beginning)
            or (one.origin is not None and id_begins(one.origin.id, beginning))
        )
    ]


def _near(ledger: Ledger, workspace: str, name: str) -> str:
    names = [session.name for session in ledger.sessions(workspace)]
    if not names:
        return "Nexus keeps none of that folder; nexus sessions list --all lists those of all folders."
    folded = {one.casefold(): one for one in reversed(names)}
    near = [folded[one] for one in get_close_matches(name.casefold(), folded, MOST_NAMED, 0.5)]
    near += [one for one in names if name.casefold() in one.casefold() and one not in near]
    if near:
        return f"Did you mean {' or '.join(map(repr, near[:MOST_NAMED]))}?"
    listed = ", ".join(map(repr, names[:MOST_NAMED]))
    more = len(names) - MOST_NAMED
    return f"Its sessions: {listed}" + (f" and {more:,} more: see nexus sessions list." if more > 0 else ".")
