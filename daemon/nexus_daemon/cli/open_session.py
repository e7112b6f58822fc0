"""Opens the ledger that the user's settings name, for commands that read or write it themselves."""

from collections.abc import Iterator
from contextlib import contextmanager

from nexus_context.folder.layers.layer_types import GLOBAL
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger import location, open_ledger, opening
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.store import Ledger
from nexus_daemon.cli import invocation, output
from nexus_daemon.cli.folder import absolute, read
from nexus_daemon.sessions.ledger_writer import refuse_url

BEGINS_SESSIONS = (
    "A chat in an editor begins one, or nexus sessions append main TEXT; nexus sessions keep takes over "
    "those of other assistants."
)


@contextmanager
def ledger_for(snapshot: Snapshot, *, writes: bool = False) -> Iterator[Ledger]:
    """Open the ledger that the global configuration names, and print notices about it.

    With `writes`, raise LedgerError unless it is certain that this is the right ledger and that writes
    persist.
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
    """Accept the ledger as complete, or replace it with another file.

    Returns the path of the ledger, and where the previous one was moved to; see `ledger.opening.accept`.
    """
    check_settings(snapshot, writes=True)
    return opening.accept(snapshot.effective.get("/ledger/path"), invocation.current().environ, replacement)


def check_settings(snapshot: Snapshot, *, writes: bool) -> str | None:
    """Return the path of a broken global config.json, or None.

    LedgerError if the settings allow no command, or if they are broken and the command `writes`.
    """
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
    """Load a folder and its settings. A deleted folder may still have sessions."""
    return read(absolute(path))


def workspace_of(path: str) -> str:
    """Return the ledger's name for a folder. LedgerError for a path that cannot be a folder."""
    try:
        return location.workspace_of(str(absolute(path)))
    except ValueError:
        raise LedgerError(f"{path!r} cannot be a folder.", code="unknown-session") from None


def note(text: str) -> None:
    """Print a line to standard error."""
    output.complain("sessions", text)
