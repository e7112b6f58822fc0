"""Open the ledger and find the session that a command line names."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from nexus_context.layers.model import GLOBAL
from nexus_context.ledger import open_ledger, opening
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import Session
from nexus_context.ledger.store import Ledger
from nexus_context.snapshot import Snapshot
from nexus_daemon.cli import invocation, output
from nexus_daemon.cli.folder import absolute, read
from nexus_daemon.sessions.ledger_writer import refuse_url

BEGINS_SESSIONS = (
    "A chat in an editor begins one, or nexus sessions append main TEXT; nexus sessions keep takes over "
    "those of other assistants."
)
MOST_NAMED = 5


@contextmanager
def ledger_for(snapshot: Snapshot, *, writes: bool = False) -> Iterator[Ledger]:
    """Open the ledger that the global configuration names, and print notices about it.

    With `writes`, LedgerError unless it is certain that this is the right ledger and that writes persist.
    """
    broken = check_settings(snapshot, writes=writes)
    ledger = open_ledger(snapshot.effective.get("/ledger/path"), environ=invocation.current().environ)
    try:
        if writes and not ledger.persists:
            raise LedgerError(f"Nothing was done. {ledger.notice}", code="ledger-read-only")
        if broken is not None:
            note(f"{broken} has errors and is ignored; the ledger in use is {ledger.location}.")
        if ledger.notice is not None:
            note(ledger.notice)
        yield ledger
    finally:
        ledger.close()


def accept(snapshot: Snapshot, replacement: str | None) -> tuple[str, str | None]:
    """Accept the ledger as complete, or replace it with another file; see `ledger.opening.accept`."""
    check_settings(snapshot, writes=True)
    return opening.accept(snapshot.effective.get("/ledger/path"), invocation.current().environ, replacement)


def check_settings(snapshot: Snapshot, *, writes: bool) -> str | None:
    """The path of a broken global config.json; LedgerError if the settings allow no command."""
    broken = _broken_settings(snapshot)
    if broken is not None and writes:
        raise LedgerError(
            f"Nothing was done: {broken} has errors, and it may name another ledger (ledger.path). "
            "Fix it first; nexus check shows the errors.",
            code="ledger-io",
        )
    refuse_url(snapshot.effective.get("/ledger/url"))
    return broken


def _broken_settings(snapshot: Snapshot) -> str | None:
    """The path of the global config.json if it exists and could not be loaded."""
    global_files = (file for layer in snapshot.layers.layers if layer.name == GLOBAL for file in layer.files)
    unread = (
        file for file in global_files if file.kind == "config" and file.status not in ("loaded", "missing")
    )
    return next((file.path for file in unread), None)


def load_folder(path: str) -> Snapshot:
    """Load a folder and its settings; a deleted folder may still have sessions."""
    return read(absolute(path))


def workspace_of(path: str) -> str:
    """The ledger's name for a folder; LedgerError for a path that cannot be a folder."""
    try:
        return opening.workspace_of(str(absolute(path)))
    except ValueError:
        raise LedgerError(f"{path!r} cannot be a folder.", code="unknown-session") from None


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


def session_name(ledger: Ledger, workspace: str | None, name: str) -> str:
    """As `find_session`, the name; without a workspace, of a session in any, as it is if none is meant."""
    if workspace is not None:
        return find_session(ledger, workspace, name).name
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
        for ids in [(one.name, one.head.thread, one.origin.id if one.origin else "")]
        if beginning and any(each.startswith(beginning) for each in ids)
    ]


def note(text: str) -> None:
    """Print a line to standard error."""
    output.complain("sessions", text)


def _near(ledger: Ledger, workspace: str, name: str) -> str:
    names = [session.name for session in ledger.sessions(workspace)]
    if not names:
        return "That folder has no sessions; nexus sessions list --all lists those of all folders."
    folded = {one.casefold(): one for one in reversed(names)}
    near = [folded[one] for one in get_close_matches(name.casefold(), folded, MOST_NAMED, 0.5)]
    near += [one for one in names if name.casefold() in one.casefold() and one not in near]
    if near:
        return f"Did you mean {' or '.join(map(repr, near[:MOST_NAMED]))}?"
    listed = ", ".join(map(repr, names[:MOST_NAMED]))
    more = len(names) - MOST_NAMED
    return f"Its sessions: {listed}" + (f" and {more:,} more: see nexus sessions list." if more > 0 else ".")
